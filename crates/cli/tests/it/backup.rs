//! Backups: of a running server under load, and targets that a server refuses.

use crate::{Directory, Serving, quire, text};
use quire_document::{DocBuf, Value, doc};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const WRITERS: i32 = 8;

fn backup(server: &Serving, to: &str) -> std::process::Output {
    quire(&["backup", "--uri", &server.uri(), to])
}

fn number(reply: &DocBuf, name: &str) -> i64 {
    match reply.get(name) {
        Some(Value::Int32(number)) => number.into(),
        Some(Value::Int64(number)) => number,
        other => panic!("{name}: {other:?} in {reply:?}"),
    }
}

/// Returns how many documents of a writer a scan of a collection finds.
fn counted(server: &Serving, collection: &str, writer: i32) -> i64 {
    let count = doc! { "count": collection, "query": { "w": writer }, "$db": "test" };
    number(&server.run(count), "n")
}

/// Each writer inserts into `a`, then into `b`, then increments its counter: in every consistent
/// copy the three are equal or one apart, in this order.
fn write(port: u16, writer: i32, stop: &AtomicBool, written: &AtomicU64) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let mut send = |body: DocBuf| {
        let reply = crate::exchange(&mut stream, body);
        assert_eq!(number(&reply, "n"), 1, "{reply:?}");
    };
    let filling = "x".repeat(500);
    for n in 0.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        for collection in ["a", "b"] {
            send(doc! {
                "insert": collection, "$db": "test", "writeConcern": { "w": 1 },
                "documents": [{ "w": writer, "n": n, "filling": filling.as_str() }],
            });
        }
        send(doc! {
            "update": "counters", "$db": "test", "writeConcern": { "w": 1 },
            "updates": [{ "q": { "_id": writer }, "u": { "$inc": { "n": 1 } }, "upsert": true }],
        });
        written.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_running_server_is_copied_under_eight_writers() {
    let directory = Directory::new();
    let (data, copy) = (directory.join("db"), directory.join("copy"));
    let (data, copy) = (data.to_str().unwrap(), copy.to_str().unwrap());
    let server = Serving::start(&["--dbpath", data]);
    for collection in ["a", "b"] {
        let indexes = doc! {
            "createIndexes": collection, "$db": "test",
            "indexes": [{ "key": { "w": 1, "n": 1 }, "name": "w_n", "unique": true }],
        };
        server.run(indexes);
    }
    let (stop, written) = (AtomicBool::new(false), AtomicU64::new(0));
    let (port, stop, written) = (server.port(), &stop, &written);
    let (before, after) = std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            scope.spawn(move || write(port, writer, stop, written));
        }
        while written.load(Ordering::Relaxed) < 2000 {
            std::thread::yield_now();
        }
        let before = written.load(Ordering::Relaxed);
        let output = backup(&server, copy);
        let after = written.load(Ordering::Relaxed);
        stop.store(true, Ordering::Relaxed);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        assert!(text(&output.stdout).contains("are copied to"), "{}", text(&output.stdout));
        (before, after)
    });
    assert!(after > before, "the writers went on");
    let checked = quire(&["check", copy]);
    assert_eq!(
        checked.status.code(),
        Some(0),
        "{}{}",
        text(&checked.stdout),
        text(&checked.stderr)
    );

    let restored = Serving::start(&["--dbpath", copy]);
    let mut rounds = 0;
    for writer in 0..WRITERS {
        let (a, b) = (counted(&restored, "a", writer), counted(&restored, "b", writer));
        let find = doc! { "find": "counters", "filter": { "_id": writer }, "$db": "test" };
        let found = restored.run(find);
        let batch = found.get("cursor").unwrap().as_document().unwrap().get("firstBatch").unwrap();
        let counter = batch.as_array().unwrap().get(0).unwrap().as_document().unwrap();
        let counter = number(&counter.to_owned(), "n");
        assert!(a >= b && b >= counter && a - counter <= 1, "{writer}: {a} {b} {counter}");
        rounds += counter;
    }
    assert!((before as i64 - i64::from(WRITERS)..=after as i64).contains(&rounds), "{rounds}");
    for collection in ["a", "b"] {
        let all = number(&restored.run(doc! { "count": collection, "$db": "test" }), "n");
        let scanned = (0..WRITERS).map(|writer| counted(&restored, collection, writer)).sum();
        assert_eq!(all, scanned, "the counters are those of the cut");
    }
    // The copy accepts writes.
    let insert = doc! { "insert": "a", "documents": [{ "w": 99, "n": 1 }], "$db": "test" };
    assert_eq!(number(&restored.run(insert), "n"), 1);
    assert_eq!(restored.end().code(), Some(0));
    assert_eq!(server.end().code(), Some(0));
}

#[test]
fn a_server_writes_only_into_new_places() {
    let directory = Directory::new();
    let data = directory.join("db");
    let server = Serving::start(&["--dbpath", data.to_str().unwrap()]);
    let full = directory.join("full");
    std::fs::create_dir(&full).unwrap();
    std::fs::write(full.join("file"), "x").unwrap();
    for (path, reason) in [
        (full.to_str().unwrap().to_owned(), "not empty"),
        (data.join("copy").to_str().unwrap().to_owned(), "data directory"),
        (directory.join("no/such").to_str().unwrap().to_owned(), "No such file"),
        (full.join("file").to_str().unwrap().to_owned(), "no directory"),
    ] {
        let output = backup(&server, &path);
        assert_eq!(output.status.code(), Some(100), "{path}");
        assert!(text(&output.stderr).contains(reason), "{path}: {}", text(&output.stderr));
    }
    let reply = server.run(doc! { "quireBackup": "relative", "$db": "admin" });
    assert_eq!(number(&reply, "code"), 2);
    let reply = server.run(doc! { "quireBackup": "/tmp/x", "more": 1, "$db": "admin" });
    assert_eq!(number(&reply, "code"), 40415);
    let empty = directory.join("empty");
    std::fs::create_dir(&empty).unwrap();
    assert_eq!(backup(&server, empty.to_str().unwrap()).status.code(), Some(0));
    drop(server);
    let memory = Serving::start(&["--memory"]);
    let output = backup(&memory, directory.join("memory").to_str().unwrap());
    assert_eq!(output.status.code(), Some(100));
    assert!(text(&output.stderr).contains("has no backup"), "{}", text(&output.stderr));
    assert!(!directory.join("memory").exists());
}

#[test]
fn words_that_make_no_sense() {
    for (words, reason) in [
        (&["backup", "a"][..], "two directories"),
        (&["backup", "--port", "1", "a", "b"], "one directory"),
        (&["backup", "--uri", "nonsense", "a"], "connection string"),
        (&["backup", "--uri", "mongodb://a", "--port", "1", "b"], "excludes"),
    ] {
        let output = quire(words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(text(&output.stderr).contains(reason), "{words:?}: {}", text(&output.stderr));
    }
    let output = quire(&["backup", "--uri", "mongodb://127.0.0.1:1", "/tmp/nowhere"]);
    assert_eq!(output.status.code(), Some(100));
    assert!(text(&output.stderr).contains("127.0.0.1:1"), "{}", text(&output.stderr));
}

/// What the recorder has counted is in the server's own space, which a copy has too.
#[test]
fn a_copy_has_the_windows_of_the_recorder() {
    let directory = Directory::new();
    let (data, copy) = (directory.join("db"), directory.join("copy"));
    let (data, copy) = (data.to_str().unwrap(), copy.to_str().unwrap());
    let server = Serving::start(&["--dbpath", data]);
    server.run(doc! { "insert": "c", "documents": [{ "_id": 1, "a": 7 }], "$db": "test" });
    for _ in 0..3 {
        server.run(doc! { "find": "c", "filter": { "a": 7 }, "$db": "test" });
    }
    let stored = |server: &Serving| {
        let show = doc! {
            "quireRecorder": "show", "ns": "test.c", "from": Value::Date(0), "$db": "admin",
        };
        let reply = server.run(show);
        let workload = reply.get("workload").and_then(|workload| workload.as_document()).unwrap();
        let shapes = workload.get("shapes").and_then(|shapes| shapes.as_array()).unwrap();
        let count = |shape: quire_document::Doc<'_>| {
            let kind = shape.get("kind").and_then(|kind| kind.as_str())?;
            let count = shape.get("measures")?.as_document()?.get("count")?.exact_i64()?;
            (kind == "find").then_some(count)
        };
        shapes.iter().filter_map(|shape| count(shape.as_document()?)).sum::<i64>()
    };
    assert_eq!(stored(&server), 3);
    let output = backup(&server, copy);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(server.end().code(), Some(0));
    let copied = Serving::start(&["--dbpath", copy]);
    assert_eq!(stored(&copied), 3);
    assert_eq!(copied.end().code(), Some(0));
}
