//! Commands that can be run, for the statements of a recorded workload. A recorder keeps shapes and no
//! values, so the values come from documents of the collection: a condition gets the value that a
//! document has at its path. Such a command finds at least that document.

use crate::indexes::advice::IndexRequest;
use crate::workload::{Cause, Kind, ShapeUse};
use quire_document::{Array, ArrayBuf, Doc, DocBuf, ObjectId, Value, ValueBuf, array, doc};

/// The fields of a shape that are no arguments of its command.
const NOT_ARGUMENTS: &[&str] = &["cmdNs", "command"];
/// The rows of a limit and of a skip, which a shape does not keep.
const ROWS: i32 = 20;
/// The most commands that stand for one shape.
pub const INSTANCES_MAX: usize = 3;

/// Returns commands of a shape, each with its share of the executions, with values of `documents`,
/// which are some of the collection. Empty for statements that no client sent.
pub fn instances(used: &ShapeUse, documents: &[DocBuf]) -> Vec<IndexRequest> {
    let count = used.measures.count as f64;
    if used.cause != Cause::Client || count == 0.0 {
        return Vec::new();
    }
    if used.kind == Kind::Insert {
        let inserted = used.measures.inserted.max(used.measures.count) as f64;
        let collection = collection_of(used);
        let command = doc! { "insert": collection, "documents": [{}] };
        return vec![IndexRequest { command, count: inserted }];
    }
    let commands: Vec<DocBuf> = match used.samples.is_empty() {
        false => used.samples.iter().take(INSTANCES_MAX).cloned().collect(),
        true if documents.is_empty() => vec![instance(used, Doc::empty())],
        true => {
            let documents = documents.iter().take(INSTANCES_MAX);
            documents.map(|document| instance(used, document.as_doc())).collect()
        }
    };
    let share = count / commands.len().max(1) as f64;
    commands.into_iter().map(|command| IndexRequest { command, count: share }).collect()
}

fn collection_of(used: &ShapeUse) -> &str {
    used.namespace.split_once('.').map_or("", |(_, collection)| collection)
}

/// Returns a command of the shape with the values of a document.
fn instance(used: &ShapeUse, document: Doc<'_>) -> DocBuf {
    let (collection, shape) = (collection_of(used), used.shape.as_doc());
    let part = |names: [&str; 2]| {
        let found = names.into_iter().find_map(|name| shape.get(name)?.as_document());
        found.map(|filter| filled_document(filter, "", document)).unwrap_or_default()
    };
    let filter = || part(["filter", "query"]);
    let sort = shape.get("sort");
    let collation = shape.get("collation");
    match used.kind {
        Kind::Update => {
            let multi = used.measures.modified.max > 1 || sort.is_none();
            let statement = DocBuf::build(|out| {
                out.append("q", &filter()).append("u", &written(used)).append("multi", multi);
                out.append_some("collation", collation);
            });
            doc! { "update": collection, "updates": [&statement] }
        }
        Kind::Delete => {
            let statement = DocBuf::build(|out| {
                out.append("q", &filter()).append("limit", 0);
                out.append_some("collation", collation);
            });
            doc! { "delete": collection, "deletes": [&statement] }
        }
        Kind::FindAndModify => DocBuf::build(|out| {
            out.append("findAndModify", collection).append("query", &filter());
            out.append_some("sort", sort).append("update", &written(used));
            out.append_some("collation", collation);
        }),
        _ => DocBuf::build(|out| {
            match collection {
                "$cmd.aggregate" => out.append(used.kind.name(), 1),
                collection => out.append(used.kind.name(), collection),
            };
            let arguments = shape.fields().filter(|(name, _)| !NOT_ARGUMENTS.contains(name));
            for (name, value) in arguments {
                match name {
                    "collation" | "key" | "sort" => out.append(name, value),
                    "limit" | "skip" => out.append(name, ROWS),
                    _ => out.append(name, &filled(value, "", document)),
                };
            }
            if used.kind == Kind::Aggregate {
                out.document("cursor").finish();
            }
        }),
    }
}

/// Returns an update that changes the paths of the shape.
fn written(used: &ShapeUse) -> DocBuf {
    let mut paths = DocBuf::new();
    for written in used.parts().written {
        if !written.path.is_empty() && !paths.as_doc().contains(&written.path) {
            paths.append(&written.path, 1);
        }
    }
    match paths.as_doc().is_empty() {
        // A replacement.
        true => DocBuf::new(),
        false => doc! { "$set": &paths },
    }
}

/// Returns the value with values of the document in place of the types; `path` is the path to which
/// the value belongs.
fn filled(value: Value<'_>, path: &str, document: Doc<'_>) -> ValueBuf {
    match value {
        Value::Document(doc) => filled_document(doc, path, document).into(),
        Value::Array(items) => filled_array(items, path, document).into(),
        Value::String(text) => literal(text, path, document).unwrap_or_else(|| ValueBuf::new(text)),
        other => ValueBuf::new(other),
    }
}

fn filled_document(doc: Doc<'_>, path: &str, document: Doc<'_>) -> DocBuf {
    DocBuf::build(|out| {
        for (name, value) in doc.fields() {
            let below = match name {
                _ if name.starts_with('$') => path.to_owned(),
                _ if path.is_empty() => name.to_owned(),
                _ => format!("{path}.{name}"),
            };
            match (name, value) {
                ("$options", Value::String("?string")) => drop(out.append(name, "")),
                ("$limit" | "$skip" | "limit" | "skip", Value::String("?number")) => {
                    out.append(name, ROWS);
                }
                _ => drop(out.append(name, &filled(value, &below, document))),
            }
        }
    })
}

fn filled_array(items: Array<'_>, path: &str, document: Doc<'_>) -> ArrayBuf {
    ArrayBuf::build(|out| {
        items.iter().for_each(|item| {
            out.push(&filled(item, path, document));
        });
    })
}

/// Returns a value of the type that a text names; `None` for another text.
fn literal(text: &str, path: &str, document: Doc<'_>) -> Option<ValueBuf> {
    if text == "[]" {
        return Some(ArrayBuf::new().into());
    }
    if let Some(inner) = text.strip_prefix("?array<").and_then(|inner| inner.strip_suffix('>')) {
        let element = literal(inner, path, document).unwrap_or_else(|| ValueBuf::new(1));
        return Some(array![&element].into());
    }
    let wanted = text.strip_prefix('?')?;
    let mut found = None;
    find(document, path, wanted, &mut found);
    Some(found.unwrap_or_else(|| default_of(wanted)))
}

/// Finds the first value of a type at a path, also in arrays.
fn find(document: Doc<'_>, path: &str, wanted: &str, found: &mut Option<ValueBuf>) {
    if found.is_some() {
        return;
    }
    let (name, rest) = path.split_once('.').map_or((path, None), |(name, rest)| (name, Some(rest)));
    match (document.get(name), rest) {
        (Some(Value::Document(inner)), Some(rest)) => find(inner, rest, wanted, found),
        (Some(Value::Array(items)), Some(rest)) => {
            let inner = items.iter().filter_map(|item| item.as_document());
            inner.for_each(|inner| find(inner, rest, wanted, found));
        }
        (Some(Value::Array(items)), None) if wanted != "array" => {
            *found = items.iter().find(|item| type_of(*item) == wanted).map(ValueBuf::new);
        }
        (Some(value), None) if type_of(value) == wanted => *found = Some(ValueBuf::new(value)),
        _ => {}
    }
}

/// Returns the name that a shape gives to the type of a value.
fn type_of(value: Value<'_>) -> &'static str {
    match value.type_name() {
        "int" | "long" | "double" | "decimal" => "number",
        other => other,
    }
}

/// Returns some value of a type.
fn default_of(wanted: &str) -> ValueBuf {
    match wanted {
        "number" => ValueBuf::new(1),
        "string" | "regex" | "symbol" => ValueBuf::new("string"),
        "bool" => ValueBuf::new(true),
        "date" => ValueBuf::new(Value::Date(0)),
        "objectId" => ValueBuf::new(ObjectId::from_parts(0, [0; 5], 0)),
        "object" => DocBuf::new().into(),
        "array" => ArrayBuf::new().into(),
        _ => ValueBuf::new(Value::Null),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Measures;

    fn used(kind: Kind, shape: DocBuf) -> ShapeUse {
        ShapeUse {
            namespace: "shop.orders".to_owned(),
            kind,
            cause: Cause::Client,
            shape,
            samples: Vec::new(),
            measures: Measures { count: 10, ..Measures::default() },
        }
    }

    #[test]
    fn conditions_get_the_values_of_documents() {
        let find = used(
            Kind::Find,
            doc! {
                "cmdNs": { "db": "shop", "coll": "orders" }, "command": "find",
                "filter": { "$and": [
                    { "user": { "$eq": "?string" } }, { "items.sku": { "$in": "?array<?string>" } },
                    { "total": { "$gte": "?number" } },
                ] },
                "sort": { "at": -1 }, "limit": "?number",
            },
        );
        let document = doc! { "user": "u7", "items": [{ "sku": "x" }], "total": 2.5 };
        let found = instances(&find, &[document]);
        let expected = doc! {
            "find": "orders",
            "filter": { "$and": [
                { "user": { "$eq": "u7" } }, { "items.sku": { "$in": ["x"] } },
                { "total": { "$gte": 2.5 } },
            ] },
            "sort": { "at": -1 }, "limit": 20,
        };
        assert_eq!(found.len(), 1);
        assert_eq!((&found[0].command, found[0].count), (&expected, 10.0));
    }

    #[test]
    fn writes_become_commands_and_other_causes_nothing() {
        let update = used(
            Kind::Update,
            doc! {
                "cmdNs": { "db": "shop", "coll": "orders" }, "command": "update",
                "query": { "a": { "$eq": "?number" } }, "update": { "$inc": { "b": "?number" } },
            },
        );
        let found = instances(&update, &[doc! { "a": 4 }, doc! { "a": 5 }]);
        let expected = doc! {
            "update": "orders",
            "updates": [{ "q": { "a": { "$eq": 4 } }, "u": { "$set": { "b": 1 } }, "multi": true }],
        };
        assert_eq!((&found[0].command, found[0].count), (&expected, 5.0));
        let insert = used(Kind::Insert, doc! { "command": "insert" });
        assert_eq!(
            instances(&insert, &[])[0].command,
            doc! { "insert": "orders", "documents": [{}] }
        );
        let mut ttl = update;
        ttl.cause = Cause::Ttl;
        assert!(instances(&ttl, &[]).is_empty());
    }
}
