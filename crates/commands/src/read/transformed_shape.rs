//! A shape with hashes in place of the names of databases, collections and fields, so that it can be
//! shown to people who may not know them. Operators, types and the names of arguments stay.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use quire_access::scram::hmac_sha256;
use quire_document::{Array, ArrayBuf, Doc, DocBuf, Value, ValueBuf};

/// Hashes names with a key of the client.
pub struct Hasher {
    /// The key of the HMAC.
    pub key: Vec<u8>,
}

impl Hasher {
    /// Returns the hash of a name in base64.
    fn name(&self, name: &str) -> String {
        STANDARD.encode(hmac_sha256(&self.key, name.as_bytes()))
    }

    /// Returns the path with the hash of each name in it. Array indexes are names, too.
    fn path(&self, path: &str) -> String {
        path.split('.').map(|name| self.name(name)).collect::<Vec<_>>().join(".")
    }
}

/// Stages and operators whose operand has names of fields as keys, or conditions of such.
const OF_FIELDS: &[&str] = &[
    "$match",
    "$elemMatch",
    "$not",
    "$group",
    "$project",
    "$addFields",
    "$set",
    "$sort",
    "$sortByCount",
    "$jsonSchema",
];

/// Arguments whose value is no name: it stays.
const KEPT: &[&str] = &[
    "command",
    "collation",
    "unit",
    "method",
    "whenMatched",
    "whenNotMatched",
    "startOfWeek",
    "$meta",
    "bsonType",
    "$type",
];

/// Parts of a request whose keys are names of fields.
const PARTS_OF_FIELDS: &[&str] =
    &["filter", "query", "sort", "projection", "let", "min", "max", "sortBy", "output"];

/// Returns the shape with hashed names.
pub fn transformed(shape: Doc<'_>, hasher: &Hasher) -> DocBuf {
    arguments(shape, hasher)
}

/// Returns a document whose keys are arguments: they stay.
fn arguments(doc: Doc<'_>, hasher: &Hasher) -> DocBuf {
    DocBuf::build(|out| {
        for (name, found) in doc.fields() {
            out.append(name, &argument(name, found, hasher));
        }
    })
}

/// Returns a document whose keys are names of fields, unless they are operators.
fn named(doc: Doc<'_>, hasher: &Hasher) -> DocBuf {
    DocBuf::build(|out| {
        for (name, found) in doc.fields() {
            match name.starts_with('$') {
                true => out.append(name, &argument(name, found, hasher)),
                false => out.append(&hasher.path(name), &value(found, hasher)),
            };
        }
    })
}

fn argument(name: &str, found: Value<'_>, hasher: &Hasher) -> ValueBuf {
    match found {
        found if KEPT.contains(&name) => ValueBuf::new(found),
        Value::Document(doc) if OF_FIELDS.contains(&name) || PARTS_OF_FIELDS.contains(&name) => {
            named(doc, hasher).into()
        }
        Value::Document(doc) => arguments(doc, hasher).into(),
        Value::Array(items) => list(items, hasher).into(),
        other => scalar(other, hasher),
    }
}

/// Returns a value below the name of a field.
fn value(found: Value<'_>, hasher: &Hasher) -> ValueBuf {
    match found {
        Value::Document(doc) => named(doc, hasher).into(),
        Value::Array(items) => list(items, hasher).into(),
        other => scalar(other, hasher),
    }
}

fn list(items: Array<'_>, hasher: &Hasher) -> ArrayBuf {
    ArrayBuf::build(|out| {
        items.iter().for_each(|item| {
            out.push(&value(item, hasher));
        });
    })
}

fn scalar(found: Value<'_>, hasher: &Hasher) -> ValueBuf {
    let Value::String(text) = found else { return ValueBuf::new(found) };
    let hashed = match text {
        text if text.starts_with('?') || text == "[]" => text.to_owned(),
        text => match (text.strip_prefix("$$"), text.strip_prefix('$')) {
            (Some(variable), _) if variable.starts_with(|first: char| first.is_uppercase()) => {
                match variable.split_once('.') {
                    Some((variable, path)) => format!("$${variable}.{}", hasher.path(path)),
                    None => text.to_owned(),
                }
            }
            (Some(variable), _) => format!("$${}", hasher.path(variable)),
            (None, Some(path)) => format!("${}", hasher.path(path)),
            (None, None) => hasher.path(text),
        },
    };
    ValueBuf::new(hashed.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_document::doc;

    #[test]
    fn names_are_hashed_and_structure_stays() {
        let hasher = Hasher { key: b"key".to_vec() };
        let shape = doc! {
            "cmdNs": { "db": "shop", "coll": "orders" },
            "command": "aggregate",
            "pipeline": [
                { "$match": { "$and": [{ "a.b": { "$eq": "?number" } }, { "c": { "$exists": "?bool" } }] } },
                { "$group": { "_id": "$a.b", "n": { "$sum": "$$ROOT.c" } } },
                { "$limit": "?number" },
            ],
        };
        let [shop, orders, a, b, c, n, id] =
            ["shop", "orders", "a", "b", "c", "n", "_id"].map(|name| hasher.name(name));
        let (ab, path) = (format!("{a}.{b}"), format!("${a}.{b}"));
        let root = format!("$$ROOT.{c}");
        let condition = |path: &str, test: DocBuf| {
            DocBuf::build(|out| {
                out.append(path, &test);
            })
        };
        let first = condition(&ab, doc! { "$eq": "?number" });
        let second = condition(&c, doc! { "$exists": "?bool" });
        let group = DocBuf::build(|out| {
            out.append(&id, path.as_str()).append(&n, &doc! { "$sum": root.as_str() });
        });
        let expected = doc! {
            "cmdNs": { "db": shop.as_str(), "coll": orders.as_str() },
            "command": "aggregate",
            "pipeline": [
                { "$match": { "$and": [&first, &second] } },
                { "$group": &group },
                { "$limit": "?number" },
            ],
        };
        assert_eq!(transformed(shape.as_doc(), &hasher), expected);
    }
}
