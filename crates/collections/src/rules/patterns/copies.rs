//! The copies of a reference in a document: where they are, and the document with others. Pure
//! functions over BSON.
//!
//! A reference and its copies belong together by the part of their paths that is the same: with
//! `items.productId` and `items.product`, each element of `items` has its own copies. Values in an
//! array that only the path of the reference passes, as `authorIds: [1, 2]`, have their copies in an
//! array of the same length, one document for each value.

use quire_document::path::{Lookup, Part, lookup};
use quire_document::{Array, ArrayBuf, Doc, DocBuf, Value, ValueBuf, equal};

use crate::failure::Attempt;

/// The copies of one reference: a name and a value for each field; `None` for a field that is absent.
pub(super) type Copies = Vec<(String, Option<ValueBuf>)>;

/// Returns the copies of a reference, given its value and the document that has them now.
pub(super) type Compute<'c> =
    dyn FnMut(Option<Value<'_>>, Option<Doc<'_>>) -> Attempt<Option<Copies>> + 'c;

/// Where a reference and its copies are.
pub(super) struct Places<'p> {
    /// The path of the reference.
    pub local: &'p [Part],
    /// The path of the document with the copies; empty if nothing is copied.
    pub into: &'p [Part],
}

impl Places<'_> {
    /// Returns the document with the copies that `compute` returns for each of its references;
    /// `None` if nothing changes. `compute` returns `None` to leave the copies as they are.
    pub fn rewrite(&self, doc: Doc<'_>, compute: &mut Compute<'_>) -> Attempt<Option<DocBuf>> {
        level(doc, self.local, self.into, compute)
    }
}

fn level(
    doc: Doc<'_>,
    local: &[Part],
    into: &[Part],
    compute: &mut Compute<'_>,
) -> Attempt<Option<DocBuf>> {
    if let ([first, rest @ ..], [shared, into @ ..]) = (local, into)
        && !rest.is_empty()
        && first == shared
    {
        return match doc.get(first.name()) {
            Some(Value::Document(inner)) => {
                let changed = level(inner, rest, into, compute)?;
                Ok(changed.map(|changed| with(doc, first.name(), Some(changed.into()))))
            }
            Some(Value::Array(array)) => {
                let changed = elements(array, rest, into, compute)?;
                Ok(changed.map(|changed| with(doc, first.name(), Some(changed.into()))))
            }
            _ => Ok(None),
        };
    }
    match lookup(doc, local) {
        Lookup::Missing => one(doc, into, None, compute),
        Lookup::Value(Value::Array(array)) => {
            let values: Vec<Option<Value<'_>>> = array.iter().map(Some).collect();
            many(doc, into, &values, compute)
        }
        Lookup::Value(value) => one(doc, into, Some(value), compute),
        Lookup::Array(array, rest) => {
            let inner = |value| inner_value(value, rest);
            let values: Vec<Option<Value<'_>>> = array.iter().map(inner).collect();
            many(doc, into, &values, compute)
        }
    }
}

/// Returns the value at `path` in an element of an array.
fn inner_value<'a>(element: Value<'a>, path: &[Part]) -> Option<Value<'a>> {
    match lookup(element.as_document()?, path) {
        Lookup::Value(value) => Some(value),
        Lookup::Missing | Lookup::Array(..) => None,
    }
}

/// Rewrites the documents of an array that both paths pass.
fn elements(
    array: Array<'_>,
    local: &[Part],
    into: &[Part],
    compute: &mut Compute<'_>,
) -> Attempt<Option<ArrayBuf>> {
    let (mut changed, mut ended) = (false, Ok(()));
    let rebuilt = ArrayBuf::build(|out| {
        for value in array.iter() {
            let new = match (value, &ended) {
                (Value::Document(inner), Ok(())) => level(inner, local, into, compute),
                _ => Ok(None),
            };
            match new {
                Ok(Some(new)) => {
                    changed = true;
                    out.push(&new);
                }
                Ok(None) => drop(out.push(value)),
                Err(failure) => ended = Err(failure),
            }
        }
    });
    ended.map(|()| changed.then_some(rebuilt))
}

/// Rewrites the copies of one value.
fn one(
    doc: Doc<'_>,
    into: &[Part],
    reference: Option<Value<'_>>,
    compute: &mut Compute<'_>,
) -> Attempt<Option<DocBuf>> {
    let existing = match into {
        [] => Some(doc),
        _ => match lookup(doc, into) {
            Lookup::Value(Value::Document(existing)) => Some(existing),
            _ => None,
        },
    };
    let Some(copies) = compute(reference, existing)? else { return Ok(None) };
    Ok(place(doc, into, &copies))
}

/// Rewrites the copies of the values of an array, in an array beside it.
fn many(
    doc: Doc<'_>,
    into: &[Part],
    references: &[Option<Value<'_>>],
    compute: &mut Compute<'_>,
) -> Attempt<Option<DocBuf>> {
    let existing = match lookup(doc, into) {
        Lookup::Value(Value::Array(array)) if !into.is_empty() => Some(array),
        _ => None,
    };
    let at = |index| existing.and_then(|array| array.get(index)?.as_document());
    let mut rows = Vec::with_capacity(references.len());
    for (index, reference) in references.iter().enumerate() {
        let copies = compute(*reference, at(index))?;
        let empty = || at(index).map(Doc::to_owned).unwrap_or_default();
        rows.push(copies.map_or_else(empty, |copies| merged(Doc::default(), &copies)));
    }
    if into.is_empty() {
        return Ok(None);
    }
    let array = ArrayBuf::build(|out| {
        rows.iter().for_each(|row| {
            out.push(row);
        });
    });
    let same = existing.is_some_and(|existing| existing.as_bytes() == array.as_bytes());
    if same || existing.is_none() && lookup_is_missing(doc, into) && array.as_array().is_empty() {
        return Ok(None);
    }
    Ok(Some(put(doc, into, Some(array.into()))))
}

fn lookup_is_missing(doc: Doc<'_>, path: &[Part]) -> bool {
    matches!(lookup(doc, path), Lookup::Missing)
}

/// Returns the document with copies in the document at `into`; `None` if it has them already.
fn place(doc: Doc<'_>, into: &[Part], copies: &Copies) -> Option<DocBuf> {
    let Some((first, rest)) = into.split_first() else {
        let new = merged(doc, copies);
        return (new.as_bytes() != doc.as_bytes()).then_some(new);
    };
    let has_copies = copies.iter().any(|(_, value)| value.is_some());
    match doc.get(first.name()) {
        Some(Value::Document(inner)) => {
            let new = place(inner, rest, copies)?;
            let new = (!new.as_doc().is_empty()).then(|| new.into());
            Some(with(doc, first.name(), new))
        }
        // What is there instead of the document belongs to the client as long as there is nothing to
        // copy.
        _ if !has_copies => None,
        _ => {
            let inner = place(Doc::default(), rest, copies).unwrap_or_default();
            Some(with(doc, first.name(), Some(inner.into())))
        }
    }
}

/// Returns the document with another value at a path of documents. What is no document on the way
/// is replaced by one.
fn put(doc: Doc<'_>, path: &[Part], value: Option<ValueBuf>) -> DocBuf {
    match path {
        [] => doc.to_owned(),
        [last] => with(doc, last.name(), value),
        [first, rest @ ..] => {
            let inner = doc.get(first.name()).and_then(|value| value.as_document());
            let inner = put(inner.unwrap_or_default(), rest, value);
            with(doc, first.name(), Some(inner.into()))
        }
    }
}

/// Returns the document with the copies. Fields that are there keep their place.
fn merged(doc: Doc<'_>, copies: &Copies) -> DocBuf {
    DocBuf::build(|writer| {
        for (name, value) in doc.fields() {
            match copies.iter().find(|(copied, _)| copied == name) {
                None => drop(writer.append(name, value)),
                Some((_, Some(copy))) => drop(writer.append(name, copy.as_value())),
                Some((_, None)) => {}
            }
        }
        for (name, value) in copies {
            if let Some(value) = value
                && !doc.contains(name)
            {
                writer.append(name, value.as_value());
            }
        }
    })
}

/// Returns the document with another value of one field, at the field's place; `None` removes it.
fn with(doc: Doc<'_>, name: &str, value: Option<ValueBuf>) -> DocBuf {
    merged(doc, &vec![(name.to_owned(), value)])
}

/// Appends every value at `local`, through documents and arrays, except null and missing ones.
pub(super) fn references<'a>(doc: Doc<'a>, local: &[Part], out: &mut Vec<Value<'a>>) {
    let Some((first, rest)) = local.split_first() else { return };
    match (doc.get(first.name()), rest) {
        (Some(Value::Array(array)), []) => {
            out.extend(array.iter().filter(|value| !value.is_nullish()));
        }
        (Some(value), []) if !value.is_nullish() => out.push(value),
        (Some(Value::Document(inner)), _) => references(inner, rest, out),
        (Some(Value::Array(array)), _) => {
            let inner = array.iter().filter_map(|value| value.as_document());
            inner.for_each(|inner| references(inner, rest, out));
        }
        _ => {}
    }
}

/// Returns true if the document has `value` at `local`.
pub(super) fn refers(doc: Doc<'_>, local: &[Part], value: Value<'_>) -> bool {
    let mut found = Vec::new();
    references(doc, local, &mut found);
    found.iter().any(|reference| equal(*reference, value, None))
}

/// Returns the document with null in place of `value` at `local`.
pub(super) fn nulled(doc: Doc<'_>, local: &[Part], value: Value<'_>) -> DocBuf {
    let Some((first, rest)) = local.split_first() else { return doc.to_owned() };
    let new: ValueBuf = match (doc.get(first.name()), rest) {
        (None, _) => return doc.to_owned(),
        (Some(Value::Document(inner)), [_, ..]) => nulled(inner, rest, value).into(),
        (Some(Value::Array(array)), rest) => {
            let array = ArrayBuf::build(|out| {
                for element in array.iter() {
                    match (element, rest) {
                        (Value::Document(inner), [_, ..]) => {
                            out.push(&nulled(inner, rest, value));
                        }
                        (element, []) if equal(element, value, None) => {
                            out.push(Value::Null);
                        }
                        (element, _) => {
                            out.push(element);
                        }
                    }
                }
            });
            array.into()
        }
        (Some(found), []) if equal(found, value, None) => ValueBuf::new(Value::Null),
        (Some(_), _) => return doc.to_owned(),
    };
    with(doc, first.name(), Some(new))
}
