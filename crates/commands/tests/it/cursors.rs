//! The memory of open cursors.

use super::{Server, at};
use quire_document::{DocBuf, Value, doc};

const MB: usize = 1 << 20;

/// A sorted result stays in memory until its last batch: a client could open any number of such
/// cursors and leave them.
#[test]
fn the_memory_of_a_cursor_is_counted_until_it_is_closed() {
    let server = Server::new();
    let mut client = server.client(1);
    let text = "x".repeat(1000);
    for thousand in 0..16 {
        let docs: Vec<DocBuf> =
            (0..1000).map(|at| doc! { "_id": thousand * 1000 + at, "t": text.as_str() }).collect();
        let docs: quire_document::ArrayBuf = docs.iter().collect();
        client.works(doc! { "insert": "t", "documents": &docs, "$db": "test" });
    }
    let sort = doc! { "find": "t", "sort": { "t": 1 }, "batchSize": 1, "$db": "test" };
    let group = doc! { "$group": { "_id": "$_id", "t": { "$first": "$t" } } };
    let group = doc! { "aggregate": "t", "pipeline": [&group], "cursor": { "batchSize": 1 }, "$db": "test" };
    let later = doc! { "find": "t", "sort": { "t": -1 }, "batchSize": 0, "$db": "test" };
    for (command, is_later) in [(sort, false), (group, false), (later, true)] {
        let before = server.0.memory().used();
        let reply = client.works(command.clone());
        let Some(Value::Int64(id)) = at(&reply, "cursor.id") else { panic!("{reply:?}") };
        if is_later {
            assert!(server.0.memory().used() < before + 8 * MB);
            let more = doc! { "getMore": id, "collection": "t", "batchSize": 1, "$db": "test" };
            client.works(more);
        }
        let held = server.0.memory().used();
        assert!(held > before + 12 * MB, "{command:?}: {before} {held}");
        client.works(doc! { "killCursors": "t", "cursors": [id], "$db": "test" });
        assert!(server.0.memory().used() < held - 12 * MB, "{command:?}");
    }
}

/// A batch ends before a document that does not fit in it, and a stage before the rest of what it
/// made: clients could leave any number of cursors that kept such documents.
#[test]
fn the_rows_that_a_cursor_keeps_for_its_next_batch_are_counted() {
    let server = Server::new();
    let mut client = server.client(1);
    let text = "x".repeat(7 * MB);
    for id in 0..3 {
        let insert =
            doc! { "insert": "t", "documents": [{ "_id": id, "t": text.as_str() }], "$db": "test" };
        client.works(insert);
    }
    let aggregate = |pipeline: &[DocBuf]| {
        let stages: quire_document::ArrayBuf = pipeline.iter().collect();
        doc! { "aggregate": "t", "pipeline": &stages, "cursor": { "batchSize": 1 }, "$db": "test" }
    };
    let numbers = doc! { "$set": { "t": 1, "a": { "$range": [0, 600_000] } } };
    let others = doc! { "$lookup": { "from": "t", "pipeline": [], "as": "a" } };
    let unwind = doc! { "$unwind": "$a" };
    let graph = doc! { "$graphLookup": { "from": "t", "startWith": { "$literal": [0, 1, 2] }, "connectFromField": "_id", "connectToField": "_id", "as": "a" } };
    let all = doc! { "find": "t", "batchSize": 3, "$db": "test" };
    for command in [
        all,
        aggregate(&[numbers.clone(), unwind.clone()]),
        doc! { "aggregate": "t", "pipeline": [{ "$set": { "b": 1 } }], "cursor": { "batchSize": 3 }, "$db": "test" },
        aggregate(&[doc! { "$match": { "_id": 1 } }, others, unwind.clone()]),
        aggregate(&[graph, unwind]),
    ] {
        let before = server.0.memory().used();
        let reply = client.works(command.clone());
        let Some(Value::Int64(id)) = at(&reply, "cursor.id") else { panic!("{reply:?}") };
        let held = server.0.memory().used();
        assert!(held > before + 5 * MB, "{command:?}: {before} {held}");
        client.works(doc! { "killCursors": "t", "cursors": [id], "$db": "test" });
        assert!(server.0.memory().used() < held - 5 * MB, "{command:?}");
    }
}
