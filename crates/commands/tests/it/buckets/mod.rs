//! Buckets of time-series collections: closing changes nothing that a client can see.

mod documents;
mod filters;
mod groups;
mod indexes;
mod model;
mod moving;
mod restoring;
mod sources;

use crate::{Client, Server, at, number};
use quire_document::{ArrayBuf, Doc, DocBuf, Value, ValueBuf, doc};

/// Returns a server that closes points when `compact` asks for it.
fn closing_server() -> Server {
    Server::with(&[("enableTestCommands", "1"), ("quireTimeSeriesClosing", "true")])
}

/// Creates a time-series collection with buckets of ten seconds.
fn create(client: &mut Client, name: &str) {
    let series = doc! {
        "timeField": "t", "metaField": "m", "bucketMaxSpanSeconds": 10, "bucketRoundingSeconds": 10,
    };
    client.works(doc! { "create": name, "timeseries": &series, "$db": "test" });
}

/// Closes all points of a collection that can be closed. Returns the number of its buckets.
fn close(client: &mut Client, name: &str) -> i64 {
    client.works(doc! { "compact": name, "force": true, "$db": "test" });
    bucket_count(client, name)
}

fn bucket_count(client: &mut Client, name: &str) -> i64 {
    let stats = client.works(doc! { "collStats": name, "$db": "test" });
    number(&stats, "timeseries.bucketCount").unwrap()
}

fn insert(client: &mut Client, name: &str, points: &[DocBuf]) {
    let list: ArrayBuf = points.iter().collect();
    let reply = client.works(doc! { "insert": name, "documents": &list, "$db": "test" });
    assert_eq!(number(&reply, "n"), Some(points.len() as i64));
}

/// Returns all documents of a command with a cursor, read in batches of `batch`.
fn all(client: &mut Client, command: DocBuf, batch: i64) -> Vec<DocBuf> {
    let mut found = Vec::new();
    let mut command = command;
    let options = if command.get("aggregate").is_some() { "cursor" } else { "batchSize" };
    command.extend(|fields| {
        match options {
            "cursor" => fields.append("cursor", &doc! { "batchSize": batch }),
            _ => fields.append("batchSize", batch),
        };
        fields.append("$db", "test");
    });
    let mut reply = client.works(command);
    loop {
        let id = number(&reply, "cursor.id").unwrap();
        for name in ["cursor.firstBatch", "cursor.nextBatch"] {
            let Some(Value::Array(rows)) = at(&reply, name) else { continue };
            found.extend(rows.iter().map(|row| row.as_document().unwrap().to_owned()));
        }
        if id == 0 {
            return found;
        }
        let name = at(&reply, "cursor.ns").unwrap();
        let name = name.as_str().unwrap().trim_start_matches("test.").to_owned();
        reply = client.works(doc! {
            "getMore": id, "collection": name.as_str(), "batchSize": batch, "$db": "test",
        });
    }
}

/// Returns documents in an order of their own, to compare sets.
fn sorted(mut docs: Vec<DocBuf>) -> Vec<DocBuf> {
    docs.sort_by(|a, b| a.as_bytes().cmp(b.as_bytes()));
    docs
}

/// Returns a document with its fields in the order of their names, also in documents within it: a time series returns
/// fields in another order than other collections.
fn by_names(doc: Doc<'_>) -> DocBuf {
    let mut fields: Vec<(&str, Value<'_>)> = doc.fields().collect();
    fields.sort_by_key(|(name, _)| *name);
    DocBuf::build(|ordered| {
        for (name, value) in fields {
            ordered.append(name, &value_by_names(value));
        }
    })
}

fn value_by_names(value: Value<'_>) -> ValueBuf {
    match value {
        Value::Document(doc) => ValueBuf::from(by_names(doc)),
        Value::Array(list) => {
            let values: Vec<ValueBuf> = list.iter().map(value_by_names).collect();
            let list: ArrayBuf = values.iter().collect();
            ValueBuf::new(Value::Array(list.as_array()))
        }
        value => ValueBuf::new(value),
    }
}
