//! kill -9 of the whole server under eight clients that write with majority, or that load: no
//! acknowledged write is lost, none is executed twice, and `quire check` finds no problem.
//! `QUIRE_CRASH_ROUNDS=200` for the long run.

use crate::{Directory, Serving, exchange, quire, text, try_exchange};
use quire_document::{Array, ArrayBuf, DocBuf, Value, doc};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::net::TcpStream;
use std::time::Duration;

const WRITERS: i32 = 8;
/// The number of rounds after which a new directory is used, so that the number of documents stays
/// small.
const ROUNDS_OF_A_DIRECTORY: u64 = 20;

/// The documents of one writer by number; true if the document was found.
type Documents = BTreeMap<i32, bool>;

/// The steps of a writer, each with one document. Of every five steps three insert, the fourth
/// changes the first of them, also in its array, and the fifth deletes the second.
enum Step {
    Insert(i32),
    See(i32),
    Delete(i32),
}

impl Step {
    fn new(number: i32) -> Step {
        match number % 5 {
            3 => Step::See(number - 3),
            4 => Step::Delete(number - 3),
            _ => Step::Insert(number),
        }
    }

    fn command(&self, writer: i32) -> DocBuf {
        let concern = doc! { "w": "majority" };
        match self {
            Step::Insert(n) => {
                let filling = "x".repeat((n % 50 * 40) as usize);
                doc! {
                    "insert": "c", "$db": "test", "writeConcern": &concern,
                    "documents": [{
                        "writer": writer, "n": *n, "tags": [*n, "new"], "filling": filling.as_str(),
                    }],
                }
            }
            Step::See(n) => doc! {
                "update": "c", "$db": "test", "writeConcern": &concern,
                "updates": [{
                    "q": { "writer": writer, "n": *n },
                    "u": { "$set": { "seen": true }, "$push": { "tags": "seen" } },
                }],
            },
            Step::Delete(n) => doc! {
                "delete": "c", "$db": "test", "writeConcern": &concern,
                "deletes": [{ "q": { "writer": writer, "n": *n }, "limit": 1 }],
            },
        }
    }

    fn apply(&self, documents: &mut Documents) {
        match self {
            Step::Insert(n) => documents.insert(*n, false),
            Step::See(n) => documents.insert(*n, true),
            Step::Delete(n) => documents.remove(n),
        };
    }
}

fn is_one(value: Option<Value<'_>>) -> bool {
    matches!(value, Some(Value::Int32(1) | Value::Double(1.0)))
}

/// Continues after `done` steps until the connection breaks. Returns the number of acknowledged
/// steps.
fn write_until_broken(port: u16, writer: i32, mut done: i32) -> i32 {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { return done };
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    while let Some(reply) = try_exchange(&mut stream, Step::new(done).command(writer)) {
        let worked = is_one(reply.get("ok")) && is_one(reply.get("n"));
        assert!(worked && reply.get("writeErrors").is_none(), "step {done}: {reply:?}");
        done += 1;
    }
    done
}

/// Reads all documents, by writer.
fn read(server: &Serving) -> BTreeMap<i32, Documents> {
    let mut stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    let mut found: BTreeMap<i32, Documents> = BTreeMap::new();
    let mut take = |batch: Array<'_>| {
        for document in batch.iter().filter_map(|value| value.as_document()) {
            let (Some(Value::Int32(writer)), Some(Value::Int32(n))) =
                (document.get("writer"), document.get("n"))
            else {
                panic!("{document:?}");
            };
            let earlier =
                found.entry(writer).or_default().insert(n, document.get("seen").is_some());
            assert_eq!(earlier, None, "writer {writer}: {n} is there twice");
        }
    };
    let fields = doc! { "_id": 0, "writer": 1, "n": 1, "seen": 1 };
    let find = doc! { "find": "c", "projection": &fields, "$db": "test" };
    let mut reply = exchange(&mut stream, find);
    let mut batch = "firstBatch";
    loop {
        let cursor = reply.get("cursor").and_then(|cursor| cursor.as_document()).unwrap();
        take(cursor.get(batch).and_then(|batch| batch.as_array()).unwrap());
        let Some(Value::Int64(id)) = cursor.get("id") else { panic!("{reply:?}") };
        if id == 0 {
            return found;
        }
        batch = "nextBatch";
        reply = exchange(&mut stream, doc! { "getMore": id, "collection": "c", "$db": "test" });
    }
}

/// Returns how many steps the documents of a writer show: the acknowledged ones, or one more, whose
/// reply was lost.
fn steps(writer: i32, found: &Documents, acknowledged: i32) -> i32 {
    let mut expected = Documents::new();
    (0..acknowledged).for_each(|number| Step::new(number).apply(&mut expected));
    if *found == expected {
        return acknowledged;
    }
    Step::new(acknowledged).apply(&mut expected);
    let missing: Vec<_> = expected.iter().filter(|(n, seen)| found.get(n) != Some(seen)).collect();
    let added: Vec<_> = found.iter().filter(|(n, seen)| expected.get(n) != Some(seen)).collect();
    let told = format!("writer {writer} after {acknowledged} steps: {missing:?}, {added:?}");
    assert!(missing.is_empty() && added.is_empty(), "{told}");
    acknowledged + 1
}

fn create_indexes(server: &Serving) {
    let reply = server.run(doc! {
        "createIndexes": "c", "$db": "test",
        "indexes": [
            { "key": { "writer": 1, "n": 1 }, "name": "number", "unique": true },
            { "key": { "tags": 1 }, "name": "tags" },
            { "key": { "seen": 1, "n": -1 }, "name": "seen", "sparse": true },
        ],
    });
    assert!(is_one(reply.get("ok")), "{reply:?}");
}

/// Returns how often a test kills a server.
fn rounds() -> u64 {
    std::env::var("QUIRE_CRASH_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(3)
}

#[test]
fn nothing_that_a_server_acknowledged_is_lost_when_it_is_killed() {
    let rounds = rounds();
    let mut directory = Directory::new();
    let mut done = vec![0; WRITERS as usize];
    let mut total = 0;
    for round in 0..rounds {
        if round % ROUNDS_OF_A_DIRECTORY == 0 {
            directory = Directory::new();
            done.fill(0);
        }
        let path = directory.join("db");
        let path = path.to_str().unwrap();

        let server = Serving::start(&["--dbpath", path]);
        create_indexes(&server);
        let port = server.port();
        let threads: Vec<_> = (0..WRITERS)
            .zip(done.iter().copied())
            .map(|(writer, done)| {
                std::thread::spawn(move || write_until_broken(port, writer, done))
            })
            .collect();
        // A different moment in each round.
        std::thread::sleep(Duration::from_millis(50 + round * 7919 % 400));
        server.signal(Signal::KILL);
        let acknowledged: Vec<i32> = threads.into_iter().map(|t| t.join().unwrap()).collect();
        drop(server);
        total += acknowledged.iter().zip(&done).map(|(now, before)| now - before).sum::<i32>();

        let server = Serving::start(&["--dbpath", path]);
        let found = read(&server);
        for (writer, acknowledged) in acknowledged.iter().enumerate() {
            let none = Documents::new();
            let found = found.get(&(writer as i32)).unwrap_or(&none);
            done[writer] = steps(writer as i32, found, *acknowledged);
        }
        let there: usize = found.values().map(Documents::len).sum();
        let counted = server.run(doc! { "count": "c", "$db": "test" });
        assert!(matches!(counted.get("n"), Some(Value::Int32(n)) if n as usize == there));
        assert_eq!(server.end().code(), Some(0));
        let checked = quire(&["check", path]);
        let (said, status) = (text(&checked.stdout), checked.status.code());
        assert_eq!(status, Some(0), "round {round}: {said}{}", text(&checked.stderr));
        if rounds > 10 {
            println!("round {round}: {there} documents, {done:?}");
        }
    }
    assert!(total > 0, "nothing was ever acknowledged");
    println!("{total} acknowledged writes in {rounds} rounds");
}

/// The bytes of a document of a load, and the documents of a batch.
const LOADED_BYTES: usize = 8 << 10;
const BATCH: i32 = 40;

/// Inserts batches into one of two collections until the connection breaks. Returns the number of
/// acknowledged documents.
fn load_until_broken(port: u16, writer: i32) -> i32 {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let filling = "x".repeat(LOADED_BYTES);
    let document = |n: i32| doc! { "_id": n * WRITERS + writer, "filling": filling.as_str() };
    let collection = format!("c{}", writer % 2);
    let mut done = 0;
    loop {
        let documents: Vec<DocBuf> = (done..done + BATCH).map(document).collect();
        let documents: ArrayBuf = documents.iter().collect();
        let insert = doc! {
            "insert": collection.as_str(), "$db": "test", "documents": &documents,
            "writeConcern": { "w": 1 },
        };
        let Some(reply) = try_exchange(&mut stream, insert) else { return done };
        assert!(is_one(reply.get("ok")), "{reply:?}");
        done += BATCH;
    }
}

/// A server is killed while its memtables become tables all the time, some of them with late
/// documents (docs/adr/0022-tables-of-new-documents.md).
#[test]
fn a_load_that_was_acknowledged_is_there_when_the_server_is_killed() {
    for round in 0..rounds() {
        let directory = Directory::new();
        let path = directory.join("db");
        let path = path.to_str().unwrap();
        let server = Serving::start(&["--dbpath", path]);
        let port = server.port();
        let threads: Vec<_> = (0..WRITERS)
            .map(|writer| std::thread::spawn(move || load_until_broken(port, writer)))
            .collect();
        std::thread::sleep(Duration::from_millis(1500 + round * 7919 % 1000));
        server.signal(Signal::KILL);
        let acknowledged: Vec<i32> = threads.into_iter().map(|t| t.join().unwrap()).collect();
        drop(server);

        let server = Serving::start(&["--dbpath", path]);
        for collection in 0..2 {
            let writers = acknowledged.iter().skip(collection).step_by(2);
            let name = format!("c{collection}");
            let count = server.run(doc! { "count": name.as_str(), "$db": "test" });
            let Some(Value::Int32(count)) = count.get("n") else { panic!("{count:?}") };
            assert!(count >= writers.sum(), "{name}: {count} of {acknowledged:?}");
        }
        assert_eq!(server.end().code(), Some(0));
        let checked = quire(&["check", path]);
        let (said, status) = (text(&checked.stdout), checked.status.code());
        assert_eq!(status, Some(0), "round {round}: {said}{}", text(&checked.stderr));
        println!("round {round}: {acknowledged:?}");
    }
}
