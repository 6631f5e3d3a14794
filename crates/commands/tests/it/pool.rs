//! The memory that all requests of a server share: what runs is charged while it runs, and a request
//! that asks for more than is left fails alone.

use super::{Client, Server, allocator, at, code, number};
use quire_commands::{Service, ServiceOptions};
use quire_document::{ArrayBuf, DocBuf, Value, doc};
use quire_storage::open_memory;

const MB: usize = 1 << 20;

/// Returns a server whose requests may use `bytes` together, and a client.
fn limited(bytes: usize) -> (Server, Client) {
    let options =
        ServiceOptions { request_bytes_max: bytes, ..ServiceOptions::in_process("memory", None) };
    let server = Server(Service::open(open_memory().unwrap(), options).unwrap());
    let client = server.client(1);
    (server, client)
}

/// Inserts `count` documents with a text of `bytes`.
fn load(client: &mut Client, count: i32, bytes: usize) {
    let text = "t".repeat(bytes);
    for id in 0..count {
        let document = doc! { "_id": id, "k": id % 3, "next": id + 1, "t": text.as_str() };
        client.works(doc! { "insert": "c", "documents": [&document], "$db": "test" });
    }
}

/// Returns pipelines over the collection that hold all of its texts at a time, and return little.
fn pipelines() -> Vec<(&'static str, Vec<DocBuf>)> {
    let size = doc! { "$project": { "n": { "$size": "$a" } } };
    let all = doc! { "$match": { "t": { "$ne": 1 } } };
    let other = doc! { "from": "c", "pipeline": [&all], "as": "a" };
    let by_key = doc! { "from": "c", "localField": "k", "foreignField": "k", "as": "a" };
    let graph = doc! {
        "from": "c", "startWith": "$_id", "connectFromField": "next", "connectToField": "_id", "as": "a"
    };
    let one = doc! { "$match": { "_id": 0 } };
    vec![
        ("group", vec![doc! { "$group": { "_id": 1, "a": { "$push": "$t" } } }, size.clone()]),
        ("facet", vec![doc! { "$facet": { "a": [&all], "b": [&all] } }, size.clone()]),
        ("lookup", vec![one.clone(), doc! { "$lookup": &other }, size.clone()]),
        ("lookup by a key", vec![one.clone(), doc! { "$lookup": &by_key }, size.clone()]),
        ("graph", vec![one, doc! { "$graphLookup": &graph }, size]),
    ]
}

fn aggregate(stages: &[DocBuf], on_disk: bool) -> DocBuf {
    let stages: ArrayBuf = stages.iter().collect();
    doc! { "aggregate": "c", "pipeline": &stages, "cursor": {}, "allowDiskUse": on_disk, "$db": "test" }
}

/// 40 connections with such stages took 2.5 to 6.5 GB of a server with a limit of 1 GiB.
#[test]
fn stages_are_charged_while_they_run() {
    const LIMIT: usize = 6 * MB;
    let (small, mut poor) = limited(LIMIT);
    let (large, mut rich) = limited(512 * MB);
    for client in [&mut poor, &mut rich] {
        load(client, 600, 20_000);
    }
    for (name, stages) in pipelines() {
        let command = aggregate(&stages, false);
        let (reply, held) = allocator::peak(|| poor.run(command.clone()));
        assert_eq!(code(&reply), 146, "{name}: {reply:?}");
        assert!(held < 3 * LIMIT, "{name}: {held} bytes");
        assert_eq!(small.0.memory().used(), 0, "{name}");
        let reply = rich.run(command);
        assert_eq!(code(&reply), 0, "{name}: {reply:?}");
        assert_eq!(large.0.memory().used(), 0, "{name}");
    }
    assert!(large.0.memory().most_used() > 20 * MB);
    // Others go on.
    poor.works(doc! { "find": "c", "filter": { "_id": 1 }, "$db": "test" });
}

/// What may go to disk goes there before the request fails.
#[test]
fn stages_go_to_disk_if_the_memory_is_taken() {
    let (server, mut client) = limited(6 * MB);
    load(&mut client, 600, 20_000);
    let sort = [doc! { "$sort": { "t": 1, "_id": -1 } }, doc! { "$project": { "k": 1 } }];
    let groups = [
        doc! { "$group": { "_id": "$_id", "a": { "$first": "$t" } } },
        doc! { "$project": { "n": { "$strLenCP": "$a" } } },
    ];
    for stages in [sort, groups] {
        assert_eq!(code(&client.run(aggregate(&stages, false))), 146);
        client.works(aggregate(&stages, true));
    }
    assert!(server.0.memory().refused() > 0);
}

/// 400 clients that read batches of a thousand documents of 100 KB took 5.5 GB.
#[test]
fn a_batch_is_shorter_if_the_memory_is_taken() {
    let (server, mut client) = limited(8 * MB);
    load(&mut client, 14, MB);
    let count = |reply: &DocBuf, batch: &str| {
        at(reply, batch).and_then(|batch| Some(batch.as_array()?.iter().count())).unwrap()
    };
    let (mut reply, held) = allocator::peak(|| client.works(doc! { "find": "c", "$db": "test" }));
    assert!(held < 24 * MB, "{held} bytes");
    let mut seen = count(&reply, "cursor.firstBatch");
    assert!((1..8).contains(&seen), "{seen}");
    while let Some(id) = number(&reply, "cursor.id").filter(|id| *id != 0) {
        reply = client.works(doc! { "getMore": id, "collection": "c", "$db": "test" });
        seen += count(&reply, "cursor.nextBatch");
    }
    assert_eq!(seen, 14);
    let single = doc! { "find": "c", "singleBatch": true, "$db": "test" };
    assert_eq!(code(&client.run(single)), 146);
    assert_eq!(server.0.memory().used(), 0);
}

/// `quire serve` logs the refusals when they begin, once a minute and when they end.
#[test]
fn refusals_are_counted() {
    let (server, mut client) = limited(2 * MB);
    load(&mut client, 300, 20_000);
    let (_, stages) = pipelines().swap_remove(0);
    for _ in 0..5 {
        assert_eq!(code(&client.run(aggregate(&stages, false))), 146);
    }
    assert!(server.0.refusals().memory >= 5);
    let status = client.works(doc! { "serverStatus": 1, "$db": "admin" });
    assert_eq!(number(&status, "mem.requests.limitBytes"), Some(2 << 20));
    assert_eq!(number(&status, "mem.requests.usedBytes"), Some(0));
    assert!(number(&status, "mem.requests.refused").unwrap() >= 5);
    assert!(number(&status, "mem.requests.mostUsedBytes").unwrap() <= 2 << 20);
}

/// The smallest limit of a server lets the largest messages through.
#[test]
fn a_message_of_the_largest_size_is_never_refused() {
    let (server, mut client) = limited(256 * MB);
    let text = "x".repeat(MB);
    let docs: Vec<DocBuf> = (0..45).map(|id| doc! { "_id": id, "t": text.as_str() }).collect();
    let docs: ArrayBuf = docs.iter().collect();
    client.works(doc! { "insert": "c", "documents": &docs, "$db": "test" });
    let statements: Vec<DocBuf> = (0..45)
        .map(|id| doc! { "q": { "_id": id }, "u": { "n": id, "t": text.as_str() } })
        .collect();
    let statements: ArrayBuf = statements.iter().collect();
    client.works(doc! { "update": "c", "updates": &statements, "$db": "test" });
    assert_eq!(server.0.memory().used(), 0);
    assert!(server.0.memory().most_used() > 40 * MB);
}

/// A mask of 14 MB became a list of 800 MB.
#[test]
fn a_long_mask_of_bits_takes_its_own_size() {
    let (_server, mut client) = limited(usize::MAX);
    client.works(doc! { "insert": "c", "documents": [{ "_id": 1, "n": 5 }], "$db": "test" });
    let bits = vec![0xff; 8 * MB];
    let bits = Value::Binary(quire_document::Binary { subtype: 0, bytes: &bits });
    for operator in ["$bitsAnySet", "$bitsAllSet", "$bitsAnyClear", "$bitsAllClear"] {
        let find = doc! { "find": "c", "filter": { "n": { operator: bits } }, "$db": "test" };
        let (reply, held) = allocator::peak(|| client.run(find.clone()));
        assert_eq!(code(&reply), 0, "{operator}");
        assert!(held < 80 * MB, "{operator}: {held} bytes");
        let explain = doc! { "explain": { "find": "c", "filter": { "n": { operator: bits } } }, "$db": "test" };
        let (_, held) = allocator::peak(|| client.run(explain));
        assert!(held < 200 * MB, "{operator}: {held} bytes");
    }
}
