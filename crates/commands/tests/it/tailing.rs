//! Cursors that wait for documents: what they return, what wakes them and what ends them.

use super::{Client, Server, at, code};
use quire_document::{DocBuf, Value, doc};
use quire_storage::{Interrupt, Interruption};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle, yield_now};

/// The longest wait of a getMore: longer than any test waits.
const LONG: i64 = 600_000;

fn create(client: &mut Client, name: &str) {
    client.works(doc! { "create": name, "capped": true, "size": 1 << 24, "$db": "test" });
    insert(client, name, 0);
}

fn insert(client: &mut Client, name: &str, id: i32) {
    client.works(doc! { "insert": name, "documents": [{ "_id": id }], "$db": "test" });
}

/// Opens a tailable cursor with `awaitData`, and returns its id and its first batch.
fn tail(client: &mut Client, name: &str, filter: DocBuf) -> (i64, Vec<DocBuf>) {
    let find = doc! { "find": name, "filter": &filter, "tailable": true, "awaitData": true, "$db": "test" };
    let mut reply = client.run(find.clone());
    // On a busy machine a small ring goes round while the first batch is read.
    while code(&reply) == 136 {
        reply = client.run(find.clone());
    }
    let Some(Value::Int64(id)) = at(&reply, "cursor.id") else { panic!("{reply:?}") };
    assert_ne!(id, 0);
    (id, batch(&reply, "cursor.firstBatch"))
}

fn batch(reply: &DocBuf, path: &str) -> Vec<DocBuf> {
    let Some(Value::Array(docs)) = at(reply, path) else { panic!("{reply:?}") };
    docs.iter().map(|doc| doc.as_document().unwrap().to_owned()).collect()
}

fn more(id: i64, name: &str, max_time_ms: i64) -> DocBuf {
    doc! { "getMore": id, "collection": name, "maxTimeMS": max_time_ms, "$db": "test" }
}

fn integer(doc: &DocBuf, name: &str) -> i64 {
    doc.get(name).unwrap().exact_i64().unwrap_or_default()
}

fn wait_until(mut ready: impl FnMut() -> bool) {
    while !ready() {
        yield_now();
    }
}

fn waiting(server: &Server) -> u64 {
    server.0.store().engine().stats().watches
}

fn wakes(server: &Server) -> u64 {
    server.0.store().engine().stats().wakes
}

/// Runs a getMore on a thread of its own.
fn begin(
    mut client: Client,
    command: DocBuf,
    interrupt: &Arc<Interrupt>,
) -> JoinHandle<(Client, DocBuf)> {
    let interrupt = Arc::clone(interrupt);
    let work = move || {
        let reply = client.exchange(&command, interrupt).0;
        (client, reply)
    };
    Builder::new().stack_size(1 << 20).spawn(work).unwrap()
}

/// 1,000 clients wait at the end of a collection beside a writer of another one.
#[test]
fn a_commit_wakes_only_the_cursors_of_its_collection() {
    let server = Server::new();
    let mut writer = server.client(1);
    create(&mut writer, "quiet");
    create(&mut writer, "busy");
    let begin_one = |number: u64| {
        let mut client = server.client(number);
        let (id, _) = tail(&mut client, "quiet", DocBuf::new());
        begin(client, more(id, "quiet", LONG), &Interrupt::new())
    };
    let waiters: Vec<_> = (2..1002).map(begin_one).collect();
    wait_until(|| waiting(&server) == 1000);
    let before = wakes(&server);
    for id in 1..=200 {
        insert(&mut writer, "busy", id);
    }
    writer.works(doc! { "insert": "plain", "documents": [{ "_id": 1 }], "$db": "other" });
    let idle = wakes(&server) - before;
    // The creation of a collection is the only commit that wakes all: their own may be gone.
    assert!(idle <= 1000, "{idle} wakes");
    insert(&mut writer, "quiet", 1);
    for waiter in waiters {
        let (_, reply) = waiter.join().unwrap();
        assert_eq!(batch(&reply, "cursor.nextBatch"), [doc! { "_id": 1 }]);
    }
    assert_eq!(waiting(&server), 0);
}

#[test]
fn each_end_of_a_wait_is_seen_at_once() {
    let server = Server::new();
    let mut other = server.client(1);
    create(&mut other, "c");
    for number in 0..5 {
        let mut client = server.client(10 + number);
        let (id, _) = tail(&mut client, "c", DocBuf::new());
        let interrupt = Interrupt::new();
        let waiter = begin(client, more(id, "c", LONG), &interrupt);
        wait_until(|| waiting(&server) == 1);
        match number {
            0 => interrupt.kill(Interruption::Disconnected),
            1 => interrupt.kill(Interruption::ShuttingDown),
            2 => {
                other.works(doc! { "killCursors": "c", "cursors": [id], "$db": "test" });
            }
            3 => {
                let running = doc! { "$currentOp": {} };
                let own = doc! { "$match": { "op": "getmore" } };
                let list = doc! { "aggregate": 1, "pipeline": [&running, &own], "cursor": {}, "$db": "admin" };
                let found = batch(&other.works(list), "cursor.firstBatch");
                let op = found[0].get("opid").unwrap();
                other.works(doc! { "killOp": 1, "op": op, "$db": "admin" });
            }
            _ => {
                other.works(doc! { "drop": "c", "$db": "test" });
            }
        }
        let (mut client, reply) = waiter.join().unwrap();
        let expected: &[i32] = match number {
            0 => &[279],
            1 => &[91, 11600],
            2 | 3 => &[11601, 237],
            _ => &[175],
        };
        assert!(expected.contains(&code(&reply)), "{number}: {reply:?}");
        assert_eq!(code(&client.run(more(id, "c", 1))), 43, "{number}");
        assert_eq!(waiting(&server), 0);
    }
}

/// Follows a collection until it has seen `count` documents.
fn follow(mut client: Client, name: &str, filter: DocBuf, count: usize) -> Vec<DocBuf> {
    let (id, mut seen) = tail(&mut client, name, filter);
    while seen.len() < count {
        let reply = client.works(more(id, name, LONG));
        seen.extend(batch(&reply, "cursor.nextBatch"));
    }
    seen
}

/// Each tail sees every document once and in the order of insertion, whatever the writers do.
#[test]
fn tails_skip_no_document_of_several_writers() {
    const WRITERS: i32 = 3;
    const EACH: i32 = 50;
    let server = Server::new();
    let mut client = server.client(1);
    create(&mut client, "c");
    let seen = std::thread::scope(|scope| {
        let tails: Vec<_> = [DocBuf::new(), DocBuf::new(), doc! { "w": 1 }]
            .into_iter()
            .enumerate()
            .map(|(number, filter)| {
                let count = if number == 2 { EACH } else { WRITERS * EACH + 1 };
                let client = server.client(10 + number as u64);
                scope.spawn(move || follow(client, "c", filter, count as usize))
            })
            .collect();
        for writer in 0..WRITERS {
            let mut client = server.client(20 + writer as u64);
            scope.spawn(move || {
                for number in 0..EACH {
                    let id = 1 + writer * EACH + number;
                    let doc = doc! { "_id": id, "w": writer, "n": number };
                    let insert = match number % 3 {
                        0 => doc! { "insert": "c", "documents": [&doc], "writeConcern": { "w": 1 }, "$db": "test" },
                        _ => doc! { "insert": "c", "documents": [&doc], "$db": "test" },
                    };
                    client.works(insert);
                    // An insert that fails takes a record id and leaves it unused.
                    client.run(doc! { "insert": "c", "documents": [{ "_id": 0 }], "$db": "test" });
                }
            });
        }
        tails.into_iter().map(|tail| tail.join().unwrap()).collect::<Vec<_>>()
    });
    let all = doc! { "find": "c", "batchSize": 1000, "singleBatch": true, "$db": "test" };
    let all = batch(&client.works(all), "cursor.firstBatch");
    assert_eq!(all.len() as i32, WRITERS * EACH + 1);
    assert!(seen[0] == all && seen[1] == all);
    let of_one: Vec<_> = all
        .iter()
        .filter(|doc| doc.get("w").is_some() && integer(doc, "w") == 1)
        .cloned()
        .collect();
    assert_eq!(seen[2], of_one);
}

/// Tails of a small ring lose their place when it goes round faster than they read, and say so.
#[test]
fn a_tail_that_is_overtaken_says_so() {
    let server = Server::new();
    let mut writer = server.client(1);
    writer.works(doc! { "create": "r", "capped": true, "size": 1 << 20, "max": 8, "$db": "test" });
    insert(&mut writer, "r", 0);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for number in 0..3 {
            let (mut client, done) = (server.client(10 + number), &done);
            scope.spawn(move || {
                while !done.load(Ordering::SeqCst) {
                    let (id, first) = tail(&mut client, "r", DocBuf::new());
                    let mut last = first.last().map(|doc| integer(doc, "_id"));
                    loop {
                        let reply = client.run(more(id, "r", 20));
                        if code(&reply) != 0 {
                            assert_eq!(code(&reply), 136, "{reply:?}");
                            break;
                        }
                        for doc in batch(&reply, "cursor.nextBatch") {
                            let next = integer(&doc, "_id");
                            assert_eq!(last.map(|id| id + 1), Some(next));
                            last = Some(next);
                        }
                        if done.load(Ordering::SeqCst) {
                            break;
                        }
                    }
                }
            });
        }
        for id in 1..400 {
            insert(&mut writer, "r", id);
        }
        done.store(true, Ordering::SeqCst);
    });
}
