//! The document from which an upsert starts: the equalities of its filter.

use quire_document::{Doc, DocBuf, Value};
use quire_error::{Error, ErrorCode, Result};
use std::collections::BTreeMap;
use std::ops::Bound;

type Equalities<'f> = BTreeMap<&'f str, Value<'f>>;

/// Returns a document with all values that the filter requires to be equal, or only `_id` (for
/// replacements).
///
/// # Errors
/// 54 NotSingleValueField if a path has two values; 111 NotExactValueField if a replacement would
/// get only parts of its `_id` from the filter.
pub(super) fn seed(filter: Doc<'_>, only_id: bool) -> Result<DocBuf> {
    let mut equalities = Equalities::new();
    collect(filter, only_id, &mut equalities)?;
    let part_of_id = equalities.keys().find(|path| path.starts_with("_id."));
    if let Some(path) = part_of_id.filter(|_| only_id) {
        let text =
            format!("field at '_id' must be exactly specified, field at sub-path '{path}'found");
        return Err(Error::new(ErrorCode::NotExactValueField, text));
    }
    let mut root = Branch::default();
    for (path, value) in &equalities {
        let parts: Vec<&str> = path.split('.').collect();
        if !(only_id && parts.first() != Some(&"_id")) {
            root.insert(&parts, *value);
        }
    }
    Ok(DocBuf::build(|writer| root.write(writer)))
}

/// Collects the equalities of a filter.
fn collect<'f>(filter: Doc<'f>, only_id: bool, equalities: &mut Equalities<'f>) -> Result<()> {
    for (key, value) in filter.fields() {
        match (key, value) {
            ("$and", Value::Array(filters)) => {
                for filter in filters.iter().filter_map(|value| value.as_document()) {
                    collect(filter, only_id, equalities)?;
                }
            }
            ("$or", Value::Array(filters)) if filters.count() == 1 => {
                if let Some(Value::Document(filter)) = filters.get(0) {
                    collect(filter, only_id, equalities)?;
                }
            }
            (key, _) if key.starts_with('$') => {}
            (path, _) if only_id && path.split('.').next() != Some("_id") => {}
            (path, value) => collect_field(path, value, equalities)?,
        }
    }
    Ok(())
}

fn collect_field<'f>(
    path: &'f str,
    value: Value<'f>,
    equalities: &mut Equalities<'f>,
) -> Result<()> {
    let Value::Document(operators) = value else {
        return match value {
            Value::Regex(_) => Ok(()),
            value => add(path, value, equalities),
        };
    };
    let first = operators.first().map_or("", |first| first.key());
    if !first.starts_with('$') || matches!(first, "$ref" | "$id" | "$db") {
        return add(path, value, equalities);
    }
    for (operator, operand) in operators.fields() {
        match (operator, operand) {
            ("$eq", value) => add(path, value, equalities)?,
            ("$in", Value::Array(values)) if values.count() == 1 => match values.get(0) {
                Some(Value::Regex(_)) | None => {}
                Some(value) => add(path, value, equalities)?,
            },
            ("$all", Value::Array(values)) => {
                for value in values.iter() {
                    let elem_match =
                        value.as_document().is_some_and(|doc| doc.contains("$elemMatch"));
                    if !elem_match && !matches!(value, Value::Regex(_)) {
                        add(path, value, equalities)?;
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn add<'f>(path: &'f str, value: Value<'f>, equalities: &mut Equalities<'f>) -> Result<()> {
    super::path::check_length(path)?;
    let clash = |message: String| Err(Error::new(ErrorCode::NotSingleValueField, message));
    if equalities.contains_key(path) {
        return clash(format!("cannot infer query fields to set, path '{path}' is matched twice"));
    }
    let dots = path.match_indices('.').map(|(at, _)| at);
    let above = dots.map(|at| &path[..at]).find(|above| equalities.contains_key(above));
    let start = format!("{path}.");
    let below = || {
        let from = (Bound::Included(start.as_str()), Bound::Unbounded);
        let (next, _) = equalities.range::<str, _>(from).next()?;
        next.starts_with(&start).then_some(*next)
    };
    if let Some(known) = above.or_else(below) {
        return clash(format!(
            "cannot infer query fields to set, both paths '{path}' and '{known}' are matched"
        ));
    }
    equalities.insert(path, value);
    Ok(())
}

/// A document that is built from dotted paths.
#[derive(Default)]
struct Branch<'f> {
    children: Vec<(&'f str, Option<Value<'f>>, Branch<'f>)>,
}

impl<'f> Branch<'f> {
    fn insert(&mut self, parts: &[&'f str], value: Value<'f>) {
        let Some((first, rest)) = parts.split_first() else { return };
        // The paths are sorted, so those with the same prefix follow each other.
        if self.children.last().is_none_or(|(name, _, _)| name != first) {
            self.children.push((first, None, Branch::default()));
        }
        let at = self.children.len() - 1;
        if rest.is_empty() {
            self.children[at].1 = Some(value);
        } else {
            self.children[at].2.insert(rest, value);
        }
    }

    fn write(&self, writer: &mut quire_document::DocWriter<'_>) {
        for (name, value, branch) in &self.children {
            match value {
                Some(value) => {
                    writer.append(name, *value);
                }
                None => branch.write(&mut writer.document(name)),
            }
        }
    }
}

/// Fails for an invalid `_id`: an array, a regular expression or undefined.
pub(super) fn check_id(id: Value<'_>) -> Result<()> {
    match id {
        Value::Array(_) | Value::Regex(_) | Value::Undefined => {
            let message = format!("The '_id' value cannot be of type {}", id.type_name());
            Err(Error::new(ErrorCode::InvalidIdField, message))
        }
        Value::Document(doc) => check_id_fields(doc),
        _ => Ok(()),
    }
}

fn check_id_fields(doc: Doc<'_>) -> Result<()> {
    let mut names = doc.fields().map(|(name, _)| name);
    let is_reference = names.next() == Some("$ref")
        && names.next() == Some("$id")
        && names.all(|name| name == "$db" || !name.starts_with('$'));
    for (name, value) in doc.fields() {
        if name.starts_with('$') && !is_reference {
            let message = format!(
                "_id fields may not contain '$'-prefixed fields: {name} is not valid for storage."
            );
            return Err(Error::new(ErrorCode::DollarPrefixedFieldName, message));
        }
        match value {
            Value::Document(inner) => check_id_fields(inner)?,
            Value::Array(inner) => check_id_fields(inner.as_doc())?,
            _ => {}
        }
    }
    Ok(())
}
