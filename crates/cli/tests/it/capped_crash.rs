//! kill -9 of the whole server while eight clients insert into a capped collection and four follow
//! it. The model is a ring: after each kill the collection holds the newest documents that fit, in
//! the order in which every tail saw them, no tail has skipped one, and nothing acknowledged is
//! lost. `QUIRE_CRASH_ROUNDS=200` for the long run.

use crate::{Directory, Serving, exchange, quire, text, try_exchange};
use quire_document::{Array, DocBuf, Value, doc};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const WRITERS: i32 = 8;
const TAILS: i32 = 4;
/// The code of MongoDB's CappedPositionLost.
const POSITION_LOST: i32 = 136;

/// Who inserted a document: the round and the writer. Numbers rise within one.
type Source = (i32, i32);

/// A document as a reader saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Seen {
    source: Source,
    n: i32,
    bytes: u64,
}

/// The bounds of a round: the documents are the limit in one round, their bytes in the next.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    docs_max: u64,
    bytes_max: u64,
}

impl Bounds {
    fn of(round: i32) -> Bounds {
        match round % 2 {
            0 => Bounds { docs_max: 60, bytes_max: 1 << 20 },
            _ => Bounds { docs_max: 1000, bytes_max: 20 << 10 },
        }
    }

    fn hold(self, docs: &[Seen]) -> bool {
        let bytes: u64 = docs.iter().map(|seen| seen.bytes).sum();
        docs.len() as u64 <= self.docs_max && bytes <= self.bytes_max
    }
}

/// The inserts of one writer in one round.
#[derive(Debug, Clone, Copy)]
struct Written {
    acknowledged: i32,
    /// The acknowledged ones and those of the batch whose reply was lost.
    sent: i32,
}

fn number(value: Option<Value<'_>>) -> i32 {
    match value {
        Some(Value::Int32(number)) => number,
        other => panic!("no number: {other:?}"),
    }
}

fn connect(port: u16) -> Option<TcpStream> {
    TcpStream::connect(("127.0.0.1", port)).ok()
}

/// Inserts batches until the connection breaks. `total` counts the acknowledged documents of all.
fn write_until_broken(port: u16, (round, writer): Source, total: &AtomicUsize) -> Written {
    let mut acknowledged = 0;
    let Some(mut stream) = connect(port) else { return Written { acknowledged, sent: 0 } };
    loop {
        let batch = 1 + (acknowledged + writer) % 4;
        let insert = DocBuf::build(|insert| {
            insert.append("insert", "ring");
            let mut documents = insert.array("documents");
            for n in acknowledged..acknowledged + batch {
                let filling = "x".repeat((n * 37 + writer * 11) as usize % 400);
                documents.push(&doc! { "r": round, "w": writer, "n": n, "f": filling.as_str() });
            }
            documents.finish();
            insert.append("writeConcern", &doc! { "w": "majority" }).append("$db", "test");
        });
        let Some(reply) = try_exchange(&mut stream, insert) else {
            return Written { acknowledged, sent: acknowledged + batch };
        };
        assert!(number(reply.get("n")) == batch && reply.get("writeErrors").is_none(), "{reply:?}");
        acknowledged += batch;
        total.fetch_add(batch as usize, Ordering::Relaxed);
    }
}

fn take(batch: Array<'_>, seen: &mut Vec<Seen>) {
    for document in batch.iter().filter_map(|value| value.as_document()) {
        let source = (number(document.get("r")), number(document.get("w")));
        let bytes = document.as_bytes().len() as u64;
        seen.push(Seen { source, n: number(document.get("n")), bytes });
    }
}

/// Follows the collection until the connection breaks. Each list is what one cursor returned: the
/// next cursor begins after the writers have overtaken the one before. `followers` counts the tails
/// that have seen a document.
fn follow_until_broken(port: u16, filter: &DocBuf, followers: &AtomicUsize) -> Vec<Vec<Seen>> {
    let (mut lists, mut follows) = (Vec::new(), false);
    let Some(mut stream) = connect(port) else { return lists };
    loop {
        let mut seen = Vec::new();
        let find = doc! {
            "find": "ring", "filter": filter, "tailable": true, "awaitData": true, "$db": "test",
        };
        let (mut command, mut name) = (find, "firstBatch");
        while let Some(reply) = try_exchange(&mut stream, command) {
            if let Some(code) = reply.get("code") {
                assert_eq!(number(Some(code)), POSITION_LOST, "{reply:?}");
                break;
            }
            let cursor = reply.get("cursor").and_then(|cursor| cursor.as_document()).unwrap();
            take(cursor.get(name).and_then(|batch| batch.as_array()).unwrap(), &mut seen);
            if !seen.is_empty() && !std::mem::replace(&mut follows, true) {
                followers.fetch_add(1, Ordering::Relaxed);
            }
            let Some(Value::Int64(id)) = cursor.get("id") else { panic!("{reply:?}") };
            if id == 0 {
                break;
            }
            command = doc! { "getMore": id, "collection": "ring", "$db": "test" };
            name = "nextBatch";
        }
        let is_over = connect(port).is_none();
        lists.push(seen);
        if is_over {
            return lists;
        }
    }
}

/// Reads the collection in one direction of insertion.
fn read(server: &Serving, direction: i32) -> Vec<Seen> {
    let mut stream = connect(server.port()).unwrap();
    let mut seen = Vec::new();
    let sort = doc! { "$natural": direction };
    let mut reply = exchange(&mut stream, doc! { "find": "ring", "sort": &sort, "$db": "test" });
    let mut name = "firstBatch";
    loop {
        let cursor = reply.get("cursor").and_then(|cursor| cursor.as_document()).unwrap();
        take(cursor.get(name).and_then(|batch| batch.as_array()).unwrap(), &mut seen);
        let Some(Value::Int64(id)) = cursor.get("id") else { panic!("{reply:?}") };
        if id == 0 {
            return seen;
        }
        name = "nextBatch";
        reply = exchange(&mut stream, doc! { "getMore": id, "collection": "ring", "$db": "test" });
    }
}

/// Checks that the numbers of each source follow each other without a gap. Returns the last ones.
fn check_gaps(seen: &[Seen]) -> BTreeMap<Source, i32> {
    let mut last = BTreeMap::new();
    for Seen { source, n, .. } in seen {
        if let Some(before) = last.insert(*source, *n) {
            assert_eq!(*n, before + 1, "{source:?}: after {before} of {seen:?}");
        }
    }
    last
}

/// Checks what survived the kill against the ring.
fn check_ring(ring: &[Seen], bounds: Bounds, written: &BTreeMap<Source, Written>) {
    assert!(bounds.hold(ring), "{bounds:?}: {ring:?}");
    for (source, last) in check_gaps(ring) {
        let Written { acknowledged, sent } = written[&source];
        let ends = acknowledged - 1..sent;
        assert!(ends.contains(&last), "{source:?} ends at {last}, not in {ends:?}: {ring:?}");
    }
}

/// Checks what a tail without a filter saw against the ring that survived.
fn check_tail(
    seen: &[Seen],
    ring: &[Seen],
    (bounds, written): (Bounds, &BTreeMap<Source, Written>),
) {
    let Some(head) = ring.first().and_then(|head| seen.iter().position(|seen| seen == head)) else {
        return;
    };
    // What follows the head is the ring, and perhaps what was not durable yet.
    let common = ring.len().min(seen.len() - head);
    assert_eq!(&seen[head..head + common], &ring[..common], "the tail saw another order");
    for lost in &seen[head + common..] {
        let is_acknowledged = lost.n < written[&lost.source].acknowledged;
        assert!(!is_acknowledged, "{lost:?} was acknowledged and is gone");
    }
    // What the ring has dropped does not fit beside the rest.
    if let Some(before) = head.checked_sub(1) {
        let more = [&seen[before..=before], ring].concat();
        assert!(!bounds.hold(&more), "{:?} was dropped too early: {ring:?}", seen[before]);
    }
}

/// Inserts and follows until the server is killed. Notes what the writers of the round wrote, and
/// returns what each tail saw.
fn run_until_killed(
    server: Serving,
    round: i32,
    written: &mut BTreeMap<Source, Written>,
) -> Vec<Vec<Vec<Seen>>> {
    let (port, total) = (server.port(), Arc::new(AtomicUsize::new(0)));
    let followers = Arc::new(AtomicUsize::new(0));
    let tails: Vec<_> = (0..TAILS)
        .map(|tail| match tail % 2 {
            0 => doc! {},
            _ => doc! { "w": { "$gte": tail } },
        })
        .map(|filter| {
            let followers = Arc::clone(&followers);
            std::thread::spawn(move || follow_until_broken(port, &filter, &followers))
        })
        .collect();
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let total = Arc::clone(&total);
            std::thread::spawn(move || write_until_broken(port, (round, writer), &total))
        })
        .collect();
    // More than fits, and another moment in each round.
    let enough = 150 + round as usize * 7919 % 200;
    let goes_on = || {
        let all_follow = followers.load(Ordering::Relaxed) == TAILS as usize;
        total.load(Ordering::Relaxed) < enough || !all_follow
    };
    while goes_on() {
        std::thread::yield_now();
    }
    server.signal(Signal::KILL);
    for (writer, thread) in (0..).zip(writers) {
        written.insert((round, writer), thread.join().unwrap());
    }
    tails.into_iter().map(|tail| tail.join().unwrap()).collect()
}

#[test]
fn a_capped_collection_is_a_ring_for_writers_and_tails_when_the_server_is_killed() {
    let rounds = std::env::var("QUIRE_CRASH_ROUNDS").ok().and_then(|text| text.parse().ok());
    let directory = Directory::new();
    let path = directory.join("db");
    let path = path.to_str().unwrap();
    let mut written: BTreeMap<Source, Written> = BTreeMap::new();
    for round in 0..rounds.unwrap_or(3) {
        let bounds = Bounds::of(round);
        let server = Serving::start(&["--dbpath", path]);
        let (size, max) = (bounds.bytes_max as i64, bounds.docs_max as i64);
        if round == 0 {
            server.run(
                doc! { "create": "ring", "capped": true, "size": size, "max": max, "$db": "test" },
            );
            // A tailable cursor over nothing would end at once.
            server.run(
                doc! { "insert": "ring", "documents": [{ "r": -1, "w": 0, "n": 0 }], "$db": "test" },
            );
            written.insert((-1, 0), Written { acknowledged: 1, sent: 1 });
        }
        let change =
            doc! { "collMod": "ring", "cappedSize": size, "cappedMax": max, "$db": "test" };
        let changed = server.run(change);
        assert!(changed.get("code").is_none(), "{changed:?}");
        let tails = run_until_killed(server, round, &mut written);
        let server = Serving::start(&["--dbpath", path]);
        let ring = read(&server, 1);
        let mut reversed = read(&server, -1);
        reversed.reverse();
        assert_eq!(ring, reversed);
        check_ring(&ring, bounds, &written);
        for (tail, lists) in (0..).zip(&tails) {
            for seen in lists {
                check_gaps(seen);
                if tail % 2 == 0 {
                    check_tail(seen, &ring, (bounds, &written));
                }
            }
        }
        let counted = server.run(doc! { "count": "ring", "$db": "test" });
        assert_eq!(number(counted.get("n")) as usize, ring.len());
        assert_eq!(server.end().code(), Some(0));
        let checked = quire(&["check", path]);
        assert_eq!(checked.status.code(), Some(0), "round {round}: {}", text(&checked.stdout));
    }
}
