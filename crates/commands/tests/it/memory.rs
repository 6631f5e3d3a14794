//! The peak memory of commands, counted by the allocator, for small requests with large results.

use crate::{Client, Server, allocator, code};
use quire_document::{ArrayBuf, DocBuf, ValueBuf, doc};

/// The bound of a command's memory in bytes: the 100 MiB of an evaluation, twice while its buffer
/// grows, and the documents themselves.
const HELD_BYTES_MAX: usize = 320 << 20;

/// Returns a server with 200 documents of 100 kB.
fn loaded() -> (Server, Client) {
    let server = Server::new();
    let mut client = server.client(1);
    let text = "t".repeat(100_000);
    for id in 0..200 {
        let document = doc! { "_id": id, "k": (id % 3), "t": text.as_str() };
        client.works(doc! { "insert": "c", "documents": [&document], "$db": "test" });
    }
    (server, client)
}

/// The scan that runs the projection wrote each document completely before it checked the size: 10
/// GB for a thousand times `$$ROOT` of 10 MB.
#[test]
fn a_projection_has_the_memory_limit_of_an_evaluation() {
    let (_server, mut client) = loaded();
    let many = |count: usize| -> ArrayBuf { (0..count).map(|_| "$$ROOT").collect() };
    let fields = DocBuf::build(|writer| {
        for at in 0..5000 {
            writer.append(&format!("f{at}"), "$$ROOT");
        }
    });
    let mut projections: Vec<DocBuf> = vec![fields];
    // One that is refused while it is written, one that is refused after it, one that is allowed.
    for (count, works) in [(20_000, false), (300, false), (100, true)] {
        let projection = doc! { "x": &many(count) };
        let find = doc! { "find": "c", "projection": &projection, "batchSize": 1, "$db": "test" };
        assert_eq!(code(&client.run(find)) == 0, works, "{count}");
        projections.push(projection);
    }
    for projection in &projections {
        let commands = [
            doc! { "find": "c", "projection": projection, "batchSize": 1 },
            doc! { "find": "c", "filter": { "k": 1 }, "projection": projection, "sort": { "_id": 1 } },
            doc! { "aggregate": "c", "pipeline": [{ "$project": projection }], "cursor": {} },
            doc! { "aggregate": "c", "pipeline": [{ "$set": projection }, { "$match": { "k": 5 } }], "cursor": {} },
            doc! { "aggregate": "c", "pipeline": [{ "$project": projection }, { "$group": { "_id": "$k" } }], "cursor": {} },
            doc! { "explain": { "aggregate": "c", "pipeline": [{ "$project": projection }], "cursor": {} } },
            doc! { "findAndModify": "c", "query": { "_id": 1 }, "update": { "$set": { "a": 1 } }, "fields": projection },
            doc! { "aggregate": "c", "pipeline": [{ "$lookup": { "from": "c", "pipeline": [{ "$project": projection }], "as": "j" } }], "cursor": {} },
            doc! { "aggregate": "c", "pipeline": [{ "$facet": { "a": [{ "$project": projection }] } }], "cursor": {} },
            doc! { "aggregate": "c", "pipeline": [{ "$unionWith": { "coll": "c", "pipeline": [{ "$project": projection }] } }], "cursor": {} },
        ];
        for mut command in commands {
            command.append("$db", "test");
            let (reply, held) = allocator::peak(|| client.run(command.clone()));
            let shown = format!("{command:?}");
            let shown = &shown[..shown.len().min(300)];
            assert!(held < HELD_BYTES_MAX, "{held} bytes, code {}: {shown}", code(&reply));
        }
    }
}

/// A plan keeps the lists and few copies of them.
#[test]
fn a_list_of_constants_is_in_memory_about_once() {
    let (_server, mut client) = loaded();
    let numbers: ArrayBuf = (0..100_000).collect();
    let bytes = numbers.as_array().as_bytes().len();
    for part in [
        ValueBuf::from(doc! { "$in": ["$k", &numbers] }),
        ValueBuf::from(doc! { "$setIsSubset": [["$k"], &numbers] }),
    ] {
        let filter = doc! { "$expr": &part };
        let find = doc! { "find": "c", "filter": &filter, "batchSize": 1, "$db": "test" };
        let (reply, held) = allocator::peak(|| client.run(find));
        assert_eq!(code(&reply), 0);
        assert!(held < bytes * 20, "{held} bytes for {bytes}");
    }
}

/// `currentOp` shows each running operation, here itself, in a few kilobytes.
#[test]
fn an_operation_of_megabytes_is_shown_in_kilobytes() {
    let (_server, mut client) = loaded();
    let text = "x".repeat(1_000_000);
    let list: ArrayBuf = (0..100_000).collect();
    let fields = DocBuf::build(|writer| {
        (0..20_000).for_each(|at| {
            writer.append(&format!("field{at}"), at);
        });
    });
    for comment in [
        doc! { "comment": text.as_str() },
        doc! { "comment": &list },
        doc! { "comment": &fields },
        doc! { "comment": { (text.as_str()): 1 } },
    ] {
        let mut command = doc! { "currentOp": 1 };
        command.extend(|writer| {
            writer.append_all(comment.as_doc());
        });
        command.append("$db", "admin");
        let size = command.as_bytes().len();
        let (reply, held) = allocator::peak(|| client.run(command));
        assert_eq!(code(&reply), 0);
        assert!(reply.as_bytes().len() < 64 * 1024, "{} bytes", reply.as_bytes().len());
        assert!(held < 2 * size + (1 << 20), "{held} bytes were held");
    }
}

/// Each accumulator of a group had a limit, and all together none: their states come back from disk
/// a run after another.
#[test]
fn the_accumulators_of_one_group_have_a_limit_together() {
    let (_server, mut client) = loaded();
    let project = doc! { "x": { "$substrBytes": ["$t", 0, 1000] }, "r": { "$range": [0, 15] } };
    let rows = [doc! { "$project": &project }, doc! { "$unwind": "$r" }];
    let fields = DocBuf::build(|writer| {
        for at in 0..200 {
            writer.append(&format!("f{at}"), &doc! { "$push": "$x" });
        }
    });
    let mut group = doc! { "_id": 1 };
    fields.as_doc().fields().for_each(|(name, value)| {
        group.append(name, value);
    });
    for last in [
        doc! { "$group": &group },
        doc! { "$bucketAuto": { "groupBy": "$r", "buckets": 1, "output": &fields } },
    ] {
        let pipeline: ArrayBuf = rows.iter().chain([&last]).collect();
        let aggregate =
            doc! { "aggregate": "c", "pipeline": &pipeline, "cursor": {}, "$db": "test" };
        let (reply, held) = allocator::peak(|| client.run(aggregate));
        assert_eq!(code(&reply), 146);
        assert!(held < 2 * HELD_BYTES_MAX, "{held} bytes");
    }
}

#[test]
fn a_distinct_ends_within_one_array_and_has_the_room_of_a_reply() {
    let server = Server::new();
    let mut client = server.client(1);
    for (id, count) in [(1, 700_000), (2, 1_300_000)] {
        let numbers: ArrayBuf = (0..count).collect();
        let document = doc! { "_id": id, "a": &numbers };
        client.works(doc! { "insert": "c", "documents": [&document], "$db": "test" });
    }
    let distinct =
        |id: i32| doc! { "distinct": "c", "key": "a", "query": { "_id": id }, "$db": "test" };
    let reply = client.works(distinct(1));
    assert_eq!(
        reply.get("values").and_then(|it| Some(it.as_array()?.iter().count())),
        Some(700_000)
    );
    for collation in [None, Some(doc! { "locale": "en" })] {
        let mut late = distinct(2);
        late.append("maxTimeMS", 1);
        if let Some(collation) = collation {
            late.append("collation", &collation);
        }
        assert_eq!(code(&client.run(late)), 50);
    }
}
