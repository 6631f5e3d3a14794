//! Statements over more documents than a request may have conditions: the limits of a request hold
//! for each statement that a stage or a command compiles, not for all of them together.
//! `QUIRE_MANY_DOCUMENTS=1000000` for the long run.

use super::*;
use quire_document::{ArrayBuf, doc};

const FIELDS: i32 = 20;
/// The documents of an insert.
const BATCH: i32 = 1000;

/// Returns the number of documents of the source. `$merge` compiles an update for each; its 42 parts
/// exceeded the 250,000 of a request after 5,952 documents.
fn documents() -> i32 {
    let asked = std::env::var("QUIRE_MANY_DOCUMENTS").ok();
    let asked = asked.and_then(|text| text.parse::<i32>().ok()).unwrap_or(6000);
    asked / BATCH * BATCH
}

fn document(id: i32) -> DocBuf {
    DocBuf::build(|writer| {
        writer.append("_id", id);
        for field in 1..FIELDS {
            writer.append(&format!("f{field}"), id % (field + 1));
        }
    })
}

/// Returns a client of a server whose collection `source` has all documents.
fn filled() -> Client {
    let server = Server::new();
    let mut client = server.client(1);
    for first in (0..documents()).step_by(BATCH as usize) {
        let documents: Vec<DocBuf> = (first..first + BATCH).map(document).collect();
        let documents: ArrayBuf = documents.iter().collect();
        client.works(doc! { "insert": "source", "documents": &documents, "$db": "db" });
    }
    client
}

fn count(client: &mut Client, collection: &str, filter: DocBuf) -> i64 {
    let reply = client.works(doc! { "count": collection, "query": &filter, "$db": "db" });
    number(&reply, "n").unwrap()
}

fn pipeline(client: &mut Client, stages: &[DocBuf]) {
    let stages: ArrayBuf = stages.iter().collect();
    client.works(doc! { "aggregate": "source", "pipeline": &stages, "cursor": {}, "$db": "db" });
}

#[test]
fn stages_that_write_have_no_limit_on_their_documents() {
    let mut client = filled();
    let all = i64::from(documents());
    // First every document is inserted, then every document is changed.
    for mark in [1, 2] {
        pipeline(&mut client, &[doc! { "$set": { "mark": mark } }, doc! { "$merge": "merged" }]);
        assert_eq!(count(&mut client, "merged", doc! { "mark": mark }), all);
    }
    let keeping = doc! { "$merge": { "into": "kept", "whenMatched": "keepExisting" } };
    pipeline(&mut client, &[keeping]);
    assert_eq!(count(&mut client, "kept", doc! { "f19": { "$exists": true } }), all);
    let set = doc! { "$set": { "by": "$$new.f3" } };
    let computing = doc! { "$merge": { "into": "merged", "whenMatched": [&set] } };
    pipeline(&mut client, &[computing]);
    assert_eq!(count(&mut client, "merged", doc! { "by": { "$exists": true } }), all);
    pipeline(&mut client, &[doc! { "$out": "copied" }]);
    assert_eq!(count(&mut client, "copied", doc! {}), all);
}

#[test]
fn commands_that_write_have_no_limit_on_their_documents() {
    let mut client = filled();
    let all = i64::from(documents());
    let key = doc! { "key": { "f1": 1, "f2": -1, "f3": 1 }, "name": "built" };
    client.works(doc! { "createIndexes": "source", "indexes": [&key], "$db": "db" });
    let update = doc! { "q": {}, "u": { "$inc": { "f1": 1 }, "$set": { "g": 1 } }, "multi": true };
    let reply = client.works(doc! { "update": "source", "updates": [&update], "$db": "db" });
    assert_eq!(number(&reply, "nModified"), Some(all));
    let upsert = |id: i32| {
        let fields = document(id);
        doc! { "q": { "_id": id }, "u": { "$setOnInsert": { "first": true }, "$set": { "d": &fields } },
        "upsert": true }
    };
    for first in (0..documents()).step_by(BATCH as usize) {
        let upserts: Vec<DocBuf> = (first..first + BATCH).map(upsert).collect();
        let upserts: ArrayBuf = upserts.iter().collect();
        let reply = client.works(doc! { "update": "upserted", "updates": &upserts, "$db": "db" });
        assert_eq!(number(&reply, "n"), Some(i64::from(BATCH)));
    }
    assert_eq!(count(&mut client, "upserted", doc! { "first": true }), all);
    let delete = doc! { "q": { "f1": { "$gte": 0 } }, "limit": 0 };
    let reply = client.works(doc! { "delete": "source", "deletes": [&delete], "$db": "db" });
    assert_eq!(number(&reply, "n"), Some(all));
}
