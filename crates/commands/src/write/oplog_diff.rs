//! The differences between two documents as MongoDB's oplog has them (`$v: 2`): fields that are
//! deleted (`d`), updated (`u`), inserted at the end (`i`), and the differences of a field (`s` and
//! its name). Those of an array have `a: true`, its new length (`l`), and positions in place of names.

use quire_document::{Array, ArrayWriter, Doc, DocBuf, DocWriter, Value};
use quire_error::{Error, Result};
use std::collections::{HashMap, HashSet};

/// The differences of a document, by name.
#[derive(Default)]
struct Changes<'d> {
    gone: HashSet<&'d str>,
    updated: HashMap<&'d str, Value<'d>>,
    inserted: HashSet<&'d str>,
    inner: HashMap<&'d str, Doc<'d>>,
}

/// Returns the document after the differences.
///
/// # Errors
/// `BadValue` for a field that differences do not have.
pub fn apply(doc: Doc<'_>, diff: Doc<'_>) -> Result<DocBuf> {
    let mut applied = Ok(());
    let after = DocBuf::build(|out| applied = document(doc, diff, out));
    applied.map(|()| after)
}

fn document(doc: Doc<'_>, diff: Doc<'_>, out: &mut DocWriter<'_>) -> Result<()> {
    let changes = Changes::parse(diff)?;
    let mut kept = HashSet::new();
    for element in doc.iter() {
        let name = element.key();
        if changes.gone.contains(name) || changes.inserted.contains(name) {
            continue;
        }
        if let Some(value) = changes.updated.get(name) {
            kept.insert(name);
            out.append(name, *value);
            continue;
        }
        match (changes.inner.get(name), element.value()) {
            (Some(inner), Value::Array(before)) if is_array(*inner) => {
                array(before, *inner, &mut out.array(name))?;
            }
            (Some(inner), Value::Document(before)) if !is_array(*inner) => {
                document(before, *inner, &mut out.document(name))?;
            }
            // The field has another type by now; a later entry of the oplog has set it.
            _ => {
                out.append_element(element);
            }
        }
    }
    for (name, value) in section(diff, "u")?.fields().filter(|(name, _)| !kept.contains(name)) {
        out.append(name, value);
    }
    out.append_all(section(diff, "i")?);
    Ok(())
}

fn array(before: Array<'_>, diff: Doc<'_>, out: &mut ArrayWriter<'_>) -> Result<()> {
    let mut length = before.iter().count();
    let mut changes: HashMap<usize, (bool, Value<'_>)> = HashMap::new();
    for (name, value) in diff.fields() {
        let at = name.get(1..).and_then(|at| at.parse::<usize>().ok());
        match (name.as_bytes().first(), at) {
            (Some(b'a'), None) => {}
            (Some(b'l'), None) => {
                let given = value.exact_i64().and_then(|given| usize::try_from(given).ok());
                length = given.ok_or_else(|| unknown(name))?.min(length);
            }
            (Some(b'u'), Some(at)) => {
                changes.insert(at, (true, value));
            }
            (Some(b's'), Some(at)) => {
                changes.insert(at, (false, value));
            }
            _ => return Err(unknown(name)),
        }
    }
    let appended = changes.iter().filter(|(_, (whole, _))| *whole).map(|(at, _)| at + 1).max();
    let end = appended.unwrap_or(0).max(length);
    if end > before.iter().count() + changes.len() {
        return Err(Error::bad_value("the differences of an array leave out positions"));
    }
    let mut elements = before.iter();
    for at in 0..end {
        let element = elements.next();
        match (changes.get(&at), element) {
            (Some((true, value)), _) => {
                out.push(*value);
            }
            (Some((false, Value::Document(inner))), Some(Value::Array(before)))
                if is_array(*inner) =>
            {
                array(before, *inner, &mut out.array())?;
            }
            (Some((false, Value::Document(inner))), Some(Value::Document(before)))
                if !is_array(*inner) =>
            {
                document(before, *inner, &mut out.document())?;
            }
            (_, Some(element)) if at < length => {
                out.push(element);
            }
            _ => {
                out.push(Value::Null);
            }
        }
    }
    Ok(())
}

impl<'d> Changes<'d> {
    fn parse(diff: Doc<'d>) -> Result<Self> {
        let mut changes = Changes {
            gone: section(diff, "d")?.fields().map(|(name, _)| name).collect(),
            updated: section(diff, "u")?.fields().collect(),
            inserted: section(diff, "i")?.fields().map(|(name, _)| name).collect(),
            inner: HashMap::new(),
        };
        for (name, value) in diff.fields().filter(|(name, _)| !matches!(*name, "d" | "u" | "i")) {
            match (name.strip_prefix('s'), value) {
                (Some(field), Value::Document(inner)) => {
                    changes.inner.insert(field, inner);
                }
                _ => return Err(unknown(name)),
            }
        }
        Ok(changes)
    }
}

fn is_array(diff: Doc<'_>) -> bool {
    matches!(diff.get("a"), Some(Value::Bool(true)))
}

fn section<'d>(diff: Doc<'d>, name: &str) -> Result<Doc<'d>> {
    match diff.get(name) {
        None => Ok(Doc::empty()),
        Some(Value::Document(section)) => Ok(section),
        Some(_) => Err(unknown(name)),
    }
}

fn unknown(name: &str) -> Error {
    Error::bad_value(format!("'{name}' is no part of the differences between two documents"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_document::doc;
    use quire_document::literal::print;

    #[test]
    fn differences_of_documents_and_arrays_are_applied() {
        let before =
            doc! { "_id": 1, "a": 1, "b": { "c": 1, "d": 2 }, "e": [1, { "f": 1 }, 3, 4], "g": 5 };
        let diff = doc! {
            "d": { "g": false }, "u": { "a": 2, "new": 0 }, "i": { "h": 1 },
            "sb": { "u": { "c": 9 }, "d": { "d": false } },
            "se": { "a": true, "l": 3, "u0": 7, "s1": { "u": { "f": 2 } } },
        };
        let after = apply(before.as_doc(), diff.as_doc()).unwrap();
        let expected =
            doc! { "_id": 1, "a": 2, "b": { "c": 9 }, "e": [7, { "f": 2 }, 3], "new": 0, "h": 1 };
        assert_eq!(print(after.as_doc()), print(expected.as_doc()));
        let longer = doc! { "d": { "g": false, "b": false }, "se": { "a": true, "u4": 5 } };
        let after = apply(before.as_doc(), longer.as_doc()).unwrap();
        let expected = doc! { "_id": 1, "a": 1, "e": [1, { "f": 1 }, 3, 4, 5] };
        assert_eq!(print(after.as_doc()), print(expected.as_doc()));
        for wrong in [
            doc! { "x": 1 },
            doc! { "u": 1 },
            doc! { "se": { "a": true, "z": 1 } },
            doc! { "se": { "a": true, "u900": 1 } },
        ] {
            assert!(apply(before.as_doc(), wrong.as_doc()).is_err(), "{wrong:?}");
        }
    }
}
