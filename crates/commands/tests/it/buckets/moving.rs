//! Cursors and other readers while points move between records and buckets.

use super::documents::unpacked;
use super::{all, bucket_count, close, closing_server, create, insert, sorted};
use crate::{Client, Server, at, number};
use quire_catalog::Namespace;
use quire_collections::{ClosePolicy, Closing, check};
use quire_document::{DocBuf, Value, array, doc};
use quire_storage::Interrupt;
use std::sync::atomic::{AtomicBool, Ordering};

fn point(n: i64) -> DocBuf {
    doc! { "t": Value::Date(n * 100), "m": (n % 7), "_id": n, "v": (n % 10) }
}

fn filled(client: &mut Client, name: &str, count: i64) -> Vec<DocBuf> {
    create(client, name);
    let points: Vec<DocBuf> = (0..count).map(|n| point(n * 37 % count)).collect();
    insert(client, name, &points);
    points
}

/// Reopens the buckets of a source, by an update that changes nothing.
fn reopen(client: &mut Client, name: &str, source: i64) {
    let change = doc! { "q": { "m": source }, "u": { "$set": { "m": source } }, "multi": true };
    let changed = client.works(doc! { "update": name, "updates": [&change], "$db": "test" });
    assert_eq!(number(&changed, "nModified"), Some(0));
}

/// Reads a cursor to its end and calls `between` before each further batch.
fn read(client: &mut Client, command: DocBuf, between: &mut dyn FnMut(usize)) -> Vec<DocBuf> {
    let mut command = command;
    let name = command.get("find").and_then(|name| name.as_str()).unwrap().to_owned();
    command.extend(|fields| {
        fields.append("batchSize", 10).append("$db", "test");
    });
    let mut reply = client.works(command);
    let (mut found, mut batches) = (Vec::new(), 0);
    loop {
        for name in ["cursor.firstBatch", "cursor.nextBatch"] {
            let Some(Value::Array(rows)) = at(&reply, name) else { continue };
            found.extend(rows.iter().map(|row| row.as_document().unwrap().to_owned()));
        }
        let id = number(&reply, "cursor.id").unwrap();
        if id == 0 {
            return found;
        }
        batches += 1;
        between(batches);
        let name = name.as_str();
        reply = client
            .works(doc! { "getMore": id, "collection": name, "batchSize": 10, "$db": "test" });
    }
}

#[test]
fn a_cursor_returns_each_point_once_while_points_are_closed_and_reopened() {
    for (sort, filter) in [
        (doc! {}, doc! {}),
        (doc! { "t": -1 }, doc! {}),
        (doc! { "t": 1 }, doc! { "v": { "$lt": 7 } }),
        (doc! {}, doc! { "m": { "$in": [1, 2, 3] } }),
        (doc! { "m": 1, "t": 1 }, doc! {}),
        (doc! { "m": 1 }, doc! {}),
        (doc! { "m": -1, "t": -1 }, doc! { "v": { "$lt": 7 } }),
    ] {
        for begins_closed in [false, true] {
            let server = closing_server();
            let mut client = server.client(1);
            let points = filled(&mut client, "s", 400);
            if begins_closed {
                close(&mut client, "s");
            }
            let expected = all(&mut client, doc! { "find": "s", "filter": &filter }, 1000);
            let mut other = server.client(2);
            let command = doc! { "find": "s", "filter": &filter, "sort": &sort };
            let mut between = |batch: usize| match batch % 3 {
                0 => reopen(&mut other, "s", batch as i64 % 7),
                1 => {
                    close(&mut other, "s");
                }
                _ => insert(&mut other, "s", &[point(5000 + batch as i64)]),
            };
            let found = read(&mut client, command, &mut between);
            let old: Vec<DocBuf> = found
                .iter()
                .filter(|point| point.get("_id").unwrap().to_f64().unwrap() < 5000.0)
                .cloned()
                .collect();
            assert_eq!(sorted(old), sorted(expected), "{sort:?} {filter:?} {begins_closed}");
            assert!(points.len() <= found.len() || !filter.as_doc().is_empty());
            assert!(check(server.0.store(), false).unwrap().findings.is_empty());
        }
    }
}

#[test]
fn buckets_as_tools_see_them_have_each_point_once_while_points_are_closed_and_reopened() {
    for begins_closed in [false, true] {
        let server = closing_server();
        let mut client = server.client(1);
        let points = filled(&mut client, "s", 3000);
        if begins_closed {
            close(&mut client, "s");
        }
        let (mut other, mut batches) = (server.client(2), 0);
        let mut between = |batch: usize| {
            batches = batch;
            match batch % 3 {
                0 => reopen(&mut other, "s", batch as i64 % 7),
                1 => {
                    close(&mut other, "s");
                }
                _ => insert(&mut other, "s", &[point(5000 + batch as i64)]),
            }
        };
        let buckets = read(&mut client, doc! { "find": "system.buckets.s" }, &mut between);
        let found = buckets.iter().flat_map(unpacked);
        let found: Vec<DocBuf> =
            found.filter(|point| point.get("_id").unwrap().to_f64().unwrap() < 5000.0).collect();
        assert_eq!(sorted(found), sorted(points), "{begins_closed}");
        assert!(batches > 5, "{batches}");
    }
}

/// Makes a pass as the background does. Returns the number of closed points, and whether readers held it up.
fn pass(server: &Server) -> (u64, bool) {
    let store = server.0.store();
    let namespace = Namespace::parse("test.s").unwrap();
    let collection = store.catalog().lookup(&namespace).cloned().unwrap();
    let policy = ClosePolicy { now_ms: 0, everything: true, is_forced: false };
    let mut closing = Closing::new(&collection, policy);
    while closing.step(store, &Interrupt::new()).unwrap() {}
    (closing.closed().points, closing.is_held_up())
}

#[test]
fn closing_waits_until_no_cursor_is_open() {
    let server = closing_server();
    let mut client = server.client(1);
    filled(&mut client, "s", 400);
    for command in [doc! { "find": "s" }, doc! { "find": "s", "sort": { "v": 1 } }] {
        let mut seen = 0;
        let found = read(&mut client, command, &mut |batch| {
            seen = batch;
            assert_eq!(pass(&server), (0, true), "batch {batch}");
        });
        assert!(found.len() == 400 && seen >= 39, "{} {seen}", found.len());
    }
    let stages = array![{ "$project": { "v": 1 } }];
    let cursor = doc! { "batchSize": 10 };
    let reply = client
        .works(doc! { "aggregate": "s", "pipeline": &stages, "cursor": &cursor, "$db": "test" });
    assert_eq!(pass(&server), (0, true));
    let id = number(&reply, "cursor.id").unwrap();
    client.works(doc! { "killCursors": "s", "cursors": [id], "$db": "test" });
    assert_eq!(pass(&server), (400, false));
    assert_eq!(pass(&server), (0, false));
    assert_eq!(all(&mut client, doc! { "find": "s" }, 1000).len(), 400);
}

/// Ends the other threads when it is dropped.
struct Stopping<'s>(&'s AtomicBool);

impl Drop for Stopping<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn readers_and_deletes_beside_closing_see_every_point_once() {
    let server = closing_server();
    let mut client = server.client(1);
    let points = filled(&mut client, "s", 300);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (server, stop) = (&server, &stop);
        // Also after a failed assertion.
        let stopping = Stopping(stop);
        scope.spawn(move || {
            let mut client = server.client(2);
            while !stop.load(Ordering::Relaxed) {
                close(&mut client, "s");
            }
        });
        scope.spawn(move || {
            let mut client = server.client(3);
            let mut source = 0;
            while !stop.load(Ordering::Relaxed) {
                source = (source + 1) % 7;
                reopen(&mut client, "s", source);
            }
        });
        for round in 0..20_i64 {
            let found =
                all(&mut client, doc! { "find": "s", "filter": { "_id": { "$lt": 1000 } } }, 25);
            assert_eq!(sorted(found), sorted(points.clone()), "round {round}");
            let count = client
                .works(doc! { "count": "s", "query": { "_id": { "$lt": 1000 } }, "$db": "test" });
            assert_eq!(number(&count, "n"), Some(300));
            let more: Vec<DocBuf> = (0..10).map(|n| point(1000 + round * 10 + n)).collect();
            insert(&mut client, "s", &more);
            let id = 1000 + round * 10;
            let gone = doc! { "q": { "_id": { "$gte": id, "$lt": (id + 5) } }, "limit": 0 };
            let deleted = client.works(doc! { "delete": "s", "deletes": [&gone], "$db": "test" });
            assert_eq!(number(&deleted, "n"), Some(5), "round {round}");
            let one = doc! { "q": { "_id": (id + 5) }, "limit": 1 };
            let deleted = client.works(doc! { "delete": "s", "deletes": [&one], "$db": "test" });
            assert_eq!(number(&deleted, "n"), Some(1), "round {round}");
        }
        drop(stopping);
    });
    let count = client.works(doc! { "count": "s", "$db": "test" });
    assert_eq!(number(&count, "n"), Some(300 + 20 * 4));
    assert!(close(&mut client, "s") > 0);
    assert!(check(server.0.store(), false).unwrap().findings.is_empty());
}

#[test]
fn buckets_survive_a_restart_and_go_with_their_collection() {
    let server = closing_server();
    let mut client = server.client(1);
    let points = filled(&mut client, "s", 200);
    let count = close(&mut client, "s");
    assert!(count > 0);
    let again = server.reopened();
    let mut client = again.client(1);
    assert_eq!(bucket_count(&mut client, "s"), count);
    let found = all(&mut client, doc! { "find": "s" }, 1000);
    assert_eq!(sorted(found), sorted(points.clone()));
    // Records get numbers that no bucket has used.
    insert(&mut client, "s", &points);
    let found = all(&mut client, doc! { "find": "s" }, 1000);
    assert_eq!(found.len(), 400);
    client.works(doc! { "drop": "s", "$db": "test" });
    assert!(all(&mut client, doc! { "find": "s" }, 10).is_empty());
    create(&mut client, "s");
    assert_eq!(bucket_count(&mut client, "s"), 0);
    insert(&mut client, "s", &points);
    client.works(doc! { "dropDatabase": 1, "$db": "test" });
    let findings = check(again.0.store(), false).unwrap().findings;
    assert!(findings.is_empty(), "{findings:?}");
}
