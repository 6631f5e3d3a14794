//! A JSON Schema of a collection, for a validator or for people.

use crate::profile::{CollectionProfile, PathProfile};
use quire_document::{DocBuf, DocWriter, Type};

/// The number of example values of a field.
const EXAMPLES: usize = 10;

/// What a schema contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Only keywords that a server accepts in `$jsonSchema`.
    Validator,
    /// Beside them `x-bsonType`, `x-metadata` (count, probability, duplicates) and `x-sampleValues`
    /// as MongoDB Compass writes them.
    Expanded,
}

/// Returns the schema of a collection. Every document that was read complies with it.
pub fn json_schema(profile: &CollectionProfile, form: Form) -> DocBuf {
    DocBuf::build(|writer| {
        if form == Form::Expanded {
            writer.append("$schema", "https://json-schema.org/draft/2020-12/schema");
        }
        writer.append("bsonType", Type::Document.alias());
        write_fields(writer, profile.root(), form);
    })
}

/// Writes `required` and `properties`, or `additionalProperties` if the names are data.
fn write_fields(writer: &mut DocWriter<'_>, parent: &PathProfile, form: Form) {
    if parent.names().is_some() {
        if let Some((_, field)) = parent.fields().next() {
            write_path(&mut writer.document("additionalProperties"), field, parent, form);
        }
        return;
    }
    let objects = parent.of_type(Type::Document.alias());
    let required: Vec<&str> = parent
        .fields()
        .filter(|(_, field)| field.present() == objects)
        .map(|(name, _)| name)
        .collect();
    if !required.is_empty() {
        let mut names = writer.array("required");
        required.into_iter().for_each(|name| {
            names.push(name);
        });
    }
    if parent.fields().next().is_some() {
        let mut properties = writer.document("properties");
        for (name, field) in parent.fields() {
            write_path(&mut properties.document(name), field, parent, form);
        }
    }
}

fn write_path(writer: &mut DocWriter<'_>, path: &PathProfile, parent: &PathProfile, form: Form) {
    let types: Vec<&str> = path.types().map(|(name, _)| name).collect();
    let name = if form == Form::Expanded { "x-bsonType" } else { "bsonType" };
    match types.as_slice() {
        [only] => {
            writer.append(name, *only);
        }
        several => {
            let mut names = writer.array(name);
            several.iter().for_each(|name| {
                names.push(*name);
            });
        }
    }
    if form == Form::Expanded {
        write_metadata(writer, path, parent);
    }
    if let Some(items) = path.items() {
        write_path(&mut writer.document("items"), items, path, form);
    }
    write_fields(writer, path, form);
}

fn write_metadata(writer: &mut DocWriter<'_>, path: &PathProfile, parent: &PathProfile) {
    let share = path.present() as f64 / parent.present().max(1) as f64;
    writer
        .document("x-metadata")
        .append("hasDuplicates", path.distinct() < path.scalars())
        .append("probability", share.min(1.0))
        .append("count", path.present() as i64);
    let mut examples = writer.array("x-sampleValues");
    for (value, _) in path.sample().take(EXAMPLES) {
        examples.push(value.as_value());
    }
}
