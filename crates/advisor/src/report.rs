//! A profile as one document, whose form docs/profile.md describes. Version 1.

use crate::database::DatabaseProfile;
use crate::profile::{CollectionProfile, PathProfile};
use crate::references::Reference;
use crate::source::{Extent, SourceCollection};
use quire_document::{DocBuf, DocWriter, Value};

/// The version of the form. It rises when a field changes its meaning.
pub const VERSION: i32 = 1;

/// The number of frequent values of a path.
const TOP: usize = 10;
/// The number of sets of fields.
const FIELD_SETS: usize = 20;

/// Returns the profile of a database as a document.
pub fn report(database: &str, profile: &DatabaseProfile) -> DocBuf {
    DocBuf::build(|writer| {
        writer.append("version", VERSION).append("database", database);
        if let Extent::Sample(documents) = profile.extent {
            writer.append("sample", documents as i64);
        }
        let mut collections = writer.array("collections");
        for (collection, profile) in &profile.collections {
            write_collection(&mut collections.document(), collection, profile);
        }
        collections.finish();
        write_relations(writer, profile);
    })
}

/// Returns the document of a single collection: its entry of `collections`, then its references and
/// copies.
pub fn report_collection(profile: &DatabaseProfile) -> Option<DocBuf> {
    let (collection, found) = profile.collections.first()?;
    Some(DocBuf::build(|writer| {
        write_collection(writer, collection, found);
        write_relations(writer, profile);
    }))
}

fn write_relations(writer: &mut DocWriter<'_>, profile: &DatabaseProfile) {
    let mut references = writer.array("references");
    for reference in &profile.references {
        write_reference(&mut references.document(), reference);
    }
    references.finish();
    let mut copies = writer.array("copies");
    for copy in &profile.copies {
        let mut row = copies.document();
        row.append("from", copy.from.as_str()).append("path", copy.path.as_str());
        row.append("through", copy.through.as_str());
        row.append("to", copy.to.as_str()).append("field", copy.field.as_str());
        row.append("compared", copy.compared as i64).append("equal", copy.equal as i64);
    }
}

fn write_collection(
    writer: &mut DocWriter<'_>,
    collection: &SourceCollection,
    profile: &CollectionProfile,
) {
    writer.append("name", collection.name.as_str());
    if let Some(documents) = collection.documents {
        writer.append("documents", documents as i64);
    }
    writer.append("read", profile.documents() as i64);
    writer.append("bytes", profile.bytes() as i64);
    write_quantiles(&mut writer.document("size"), |rank| profile.size_at(rank));
    let mut indexes = writer.array("indexes");
    for index in &collection.indexes {
        indexes.push(index);
    }
    indexes.finish();
    let mut uses = writer.array("indexUses");
    for index in &collection.uses {
        let mut row = uses.document();
        row.append("name", index.name.as_str());
        row.append_some("uses", index.uses.map(|uses| Value::Int64(uses as i64)));
        row.append("seconds", index.seconds.round() as i64);
        row.append_some("bytes", index.bytes.map(|bytes| Value::Int64(bytes as i64)));
    }
    uses.finish();
    let mut paths = writer.array("paths");
    profile.for_each_path(&mut |path, values, parent| {
        write_path(&mut paths.document(), (path, values, parent), profile);
    });
    paths.finish();
    if profile.left_out() > 0 {
        writer.append("pathsLeftOut", profile.left_out() as i64);
    }
    let (sets, others) = profile.field_sets();
    let mut written = writer.array("fieldSets");
    let mut rest = others;
    for (place, (names, count)) in sets.into_iter().enumerate() {
        if place >= FIELD_SETS {
            rest += count;
            continue;
        }
        let mut set = written.document();
        let mut fields = set.array("fields");
        names.iter().for_each(|name| {
            fields.push(&**name);
        });
        fields.finish();
        set.append("documents", count as i64);
    }
    written.finish();
    if rest > 0 {
        writer.append("otherFieldSets", rest as i64);
    }
}

fn write_path(
    writer: &mut DocWriter<'_>,
    (path, values, parent): (&str, &PathProfile, &PathProfile),
    profile: &CollectionProfile,
) {
    writer.append("path", path).append("present", values.present() as i64);
    // Elements of an array, and the names behind `*`, occur any number of times in a parent.
    if !path.ends_with("[]") && parent.names().is_none() {
        let objects = parent.of_type("object").max(1);
        writer.append("presence", values.present() as f64 / objects as f64);
    }
    let mut types = writer.document("types");
    values.types().for_each(|(name, count)| {
        types.append(name, count as i64);
    });
    types.finish();
    writer
        .document("bytes")
        .append("total", values.bytes() as i64)
        .append("share", values.bytes() as f64 / profile.bytes().max(1.0));
    if let Some((least, greatest)) = values.extremes() {
        writer.append("distinct", values.distinct() as i64);
        writer.append("min", least.as_value()).append("max", greatest.as_value());
        let mut top = writer.array("top");
        for (value, least, most) in values.top(TOP) {
            let mut row = top.document();
            row.append("value", value.as_value()).append("count", least as i64);
            if most > least {
                row.append("countAtMost", most as i64);
            }
        }
    }
    if let Some(lengths) = values.lengths() {
        let mut written = writer.document("lengths");
        written.append("mean", lengths.mean());
        write_quantiles(&mut written, |rank| lengths.at(rank));
        if let Some(growth) = lengths.growth() {
            written
                .document("growth")
                .append("perDay", growth.per_day)
                .append("correlation", growth.correlation);
        }
    }
    if let Some(names) = values.names() {
        writer.append("fieldNames", names as i64);
    }
}

fn write_quantiles(writer: &mut DocWriter<'_>, at: impl Fn(f64) -> f64) {
    for (name, rank) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0)] {
        writer.append(name, at(rank).round() as i64);
    }
}

fn write_reference(writer: &mut DocWriter<'_>, reference: &Reference) {
    writer
        .append("from", reference.from.as_str())
        .append("path", reference.path.as_str())
        .append("inArray", reference.in_array)
        .append("to", reference.to.as_str())
        .append("field", reference.field.as_str())
        .append("tree", reference.is_tree())
        .append("valuesLookedUp", reference.looked_up as i64)
        .append("orphans", reference.orphans());
    let mut fan_out = writer.document("fanOut");
    for (name, count) in ["p50", "p90", "p99", "max"].into_iter().zip(reference.fan_out) {
        fan_out.append(name, count as i64);
    }
    fan_out.finish();
    writer.append("sampled", reference.sampled);
}
