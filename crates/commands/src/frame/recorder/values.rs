//! The values of statements and of their results as hashes under the key of a trace.

use quire_access::scram::hmac_sha256;
use quire_advisor::trace::PathHashes;
use quire_document::{Array, Doc, Value, key};

/// The documents of a result whose values are hashed, and the hashes of one path.
const DOCS_MAX: usize = 100;
const HASHES_MAX: usize = 200;
/// The paths of a statement or of a result.
const PATHS_MAX: usize = 32;
/// How deep values are looked for.
const DEPTH_MAX: usize = 4;
/// Longer texts are no identifiers.
const TEXT_BYTES_MAX: usize = 256;

/// Hashes a value; `None` for one that identifies nothing, such as a date.
pub(super) type Hash<'h> = dyn Fn(Value<'_>) -> Option<i64> + 'h;

/// Returns the hash of a value under a key. Equal numbers of different types have one hash.
pub(super) fn hash(secret: &[u8], value: Value<'_>) -> Option<i64> {
    let identifies = match value {
        Value::ObjectId(_) => true,
        Value::String(text) => !text.is_empty() && text.len() <= TEXT_BYTES_MAX,
        Value::Binary(binary) => binary.bytes.len() <= TEXT_BYTES_MAX,
        number => number.exact_i64().is_some(),
    };
    identifies.then(|| first(&hmac_sha256(secret, &key::encode(value))))
}

/// Returns the hash of a whole aggregate with its values; 0 for another command.
pub(super) fn statement(secret: &[u8], namespace: &str, body: Doc<'_>) -> u64 {
    let Some(pipeline) = body.get("pipeline").and_then(|stages| stages.as_array()) else {
        return 0;
    };
    let mut bytes = namespace.as_bytes().to_vec();
    bytes.push(0);
    bytes.extend_from_slice(pipeline.as_bytes());
    for name in ["let", "collation"] {
        if let Some(part) = body.get(name).and_then(|part| part.as_document()) {
            bytes.extend_from_slice(part.as_bytes());
        }
    }
    first(&hmac_sha256(secret, &bytes)) as u64
}

fn first(digest: &[u8; 32]) -> i64 {
    let mut word = [0; 8];
    word.copy_from_slice(&digest[..8]);
    i64::from_be_bytes(word)
}

/// Returns the values with which a statement tests paths for equality.
pub(super) fn asked(statement: Doc<'_>, hash: &Hash<'_>) -> Vec<PathHashes> {
    let mut found = Vec::new();
    let filter = ["q", "filter", "query"].into_iter().find_map(|name| statement.get(name));
    if let Some(filter) = filter.and_then(|filter| filter.as_document()) {
        of_filter(filter, hash, &mut found);
    }
    let stages = statement.get("pipeline").and_then(|stages| stages.as_array());
    let stages = stages.into_iter().flat_map(|stages| stages.iter());
    let first = stages.filter_map(|stage| stage.as_document()?.first()).map_while(|stage| {
        (stage.key() == "$match").then(|| stage.value().as_document()).flatten()
    });
    first.for_each(|filter| of_filter(filter, hash, &mut found));
    found
}

fn of_filter(filter: Doc<'_>, hash: &Hash<'_>, out: &mut Vec<PathHashes>) {
    for (name, value) in filter.fields() {
        match (name, value) {
            ("$and", Value::Array(branches)) => branches
                .iter()
                .filter_map(|branch| branch.as_document())
                .for_each(|branch| of_filter(branch, hash, out)),
            (path, Value::Document(tests)) if !path.starts_with('$') => {
                for (operator, value) in tests.fields() {
                    match (operator, value) {
                        ("$eq", value) => note(path, value, hash, out),
                        ("$in", Value::Array(list)) => {
                            list.iter().for_each(|value| note(path, value, hash, out));
                        }
                        _ => {}
                    }
                }
            }
            (path, value) if !path.starts_with('$') => note(path, value, hash, out),
            _ => {}
        }
    }
}

fn note(path: &str, value: Value<'_>, hash: &Hash<'_>, out: &mut Vec<PathHashes>) {
    let Some(hash) = hash(value) else { return };
    let at = out.iter().position(|known| known.path == path).unwrap_or(out.len());
    if at == out.len() {
        if at >= PATHS_MAX {
            return;
        }
        out.push(PathHashes { path: path.to_owned(), hashes: Vec::new() });
    }
    let Some(known) = out.get_mut(at) else { return };
    if known.hashes.len() < HASHES_MAX && !known.hashes.contains(&hash) {
        known.hashes.push(hash);
    }
}

/// Returns the documents of a reply with a cursor.
pub(super) fn batch(reply: Doc<'_>) -> Option<Array<'_>> {
    let cursor = reply.get("cursor")?.as_document()?;
    ["firstBatch", "nextBatch"].into_iter().find_map(|name| cursor.get(name)?.as_array())
}

/// Returns the cursor that a reply leaves open; 0 without one.
pub(super) fn cursor(reply: Doc<'_>) -> i64 {
    let cursor = reply.get("cursor").and_then(|cursor| cursor.as_document());
    cursor.and_then(|cursor| cursor.get("id")?.exact_i64()).unwrap_or(0)
}

/// Returns the values in the documents of a reply.
pub(super) fn returned(reply: Doc<'_>, hash: &Hash<'_>) -> Vec<PathHashes> {
    let mut found = Vec::new();
    if let Some(batch) = batch(reply) {
        let documents = batch.iter().take(DOCS_MAX).filter_map(|value| value.as_document());
        documents.for_each(|doc| of_document(doc, "", hash, DEPTH_MAX, &mut found));
    }
    if let Some(doc) = reply.get("value").and_then(|value| value.as_document()) {
        of_document(doc, "", hash, DEPTH_MAX, &mut found);
    }
    if let Some(values) = reply.get("values").and_then(|values| values.as_array()) {
        values.iter().take(HASHES_MAX).for_each(|value| note("values", value, hash, &mut found));
    }
    found
}

fn of_document(
    doc: Doc<'_>,
    above: &str,
    hash: &Hash<'_>,
    depth: usize,
    out: &mut Vec<PathHashes>,
) {
    for (name, value) in doc.fields() {
        let path = if above.is_empty() { name.to_owned() } else { format!("{above}.{name}") };
        of_value(value, &path, hash, depth, out);
    }
}

fn of_value(
    value: Value<'_>,
    path: &str,
    hash: &Hash<'_>,
    depth: usize,
    out: &mut Vec<PathHashes>,
) {
    match value {
        _ if depth == 0 => {}
        Value::Document(inner) => of_document(inner, path, hash, depth - 1, out),
        Value::Array(items) => {
            let items = items.iter().take(HASHES_MAX);
            items.for_each(|item| of_value(item, path, hash, depth - 1, out));
        }
        value => note(path, value, hash, out),
    }
}
