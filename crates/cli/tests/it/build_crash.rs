//! kill -9 of the server while it builds indexes and a client writes: after the restart each index
//! is complete or does not exist, acknowledged writes are there, and the build succeeds again.

use crate::{Directory, Serving, exchange, quire, text, try_exchange};
use quire_document::{ArrayBuf, DocBuf, Value, doc};
use rustix::process::Signal;
use std::net::TcpStream;
use std::time::Duration;

const DOCUMENTS: i32 = 20_000;

/// Returns the indexes to build: one for each entry format.
fn create_indexes() -> DocBuf {
    doc! {
        "createIndexes": "c", "$db": "test",
        "indexes": [
            { "key": { "n": 1 }, "name": "n", "unique": true },
            { "key": { "tags": 1, "n": -1 }, "name": "tags" },
            { "key": { "$**": 1 }, "name": "all" },
        ],
    }
}

fn document(n: i32) -> DocBuf {
    doc! { "_id": n, "n": n, "tags": [(n % 100), "x", "y"], "sub": { "list": [n, (-n)] } }
}

fn insert(documents: &[DocBuf]) -> DocBuf {
    let documents: ArrayBuf = documents.iter().collect();
    let concern = doc! { "w": "majority" };
    doc! { "insert": "c", "documents": &documents, "writeConcern": &concern, "$db": "test" }
}

fn is_one(reply: &DocBuf, name: &str) -> bool {
    matches!(reply.get(name), Some(Value::Int32(1) | Value::Double(1.0) | Value::Bool(true)))
}

fn index_names(server: &Serving) -> Vec<String> {
    let reply = server.run(doc! { "listIndexes": "c", "$db": "test" });
    let Some(Value::Document(cursor)) = reply.get("cursor") else { panic!("{reply:?}") };
    let Some(Value::Array(batch)) = cursor.get("firstBatch") else { panic!("{cursor:?}") };
    let name = |index: Value<'_>| index.as_document()?.get("name")?.as_str().map(str::to_owned);
    batch.iter().filter_map(name).collect()
}

/// Returns how many documents the build has read; `None` if no build is reported.
fn progress(stream: &mut TcpStream) -> Option<i64> {
    let builds = doc! { "$regex": "^Index Build" };
    let reply = exchange(stream, doc! { "currentOp": 1, "msg": &builds, "$db": "admin" });
    let operation = reply.get("inprog")?.as_array()?.iter().next()?.as_document()?;
    operation.get("progress")?.as_document()?.get("done")?.exact_i64()
}

/// Inserts documents one by one, each durably, until the connection breaks. Returns the number of
/// acknowledged ones.
fn write_until_broken(port: u16, from: i32) -> i32 {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    for n in from.. {
        match try_exchange(&mut stream, insert(&[document(n)])) {
            Some(reply) => assert!(is_one(&reply, "n"), "{reply:?}"),
            None => return n - from,
        }
    }
    0
}

#[test]
fn an_index_build_that_a_kill_ends_leaves_the_index_whole_or_nothing() {
    let mut cut = 0;
    for round in 0..3_u64 {
        let directory = Directory::new();
        let path = directory.join("db");
        let path = path.to_str().unwrap();
        let server = Serving::start(&["--dbpath", path]);
        for chunk in (0..DOCUMENTS).step_by(1000) {
            let documents: Vec<DocBuf> = (chunk..chunk + 1000).map(document).collect();
            assert!(is_one(&server.run(insert(&documents)), "ok"));
        }
        let port = server.port();
        let writer = std::thread::spawn(move || write_until_broken(port, DOCUMENTS));
        let building = std::thread::spawn(move || {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
            try_exchange(&mut stream, create_indexes())
        });
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        // In the middle of reading, at its end, and while the entries are written.
        let wanted = [1, i64::from(DOCUMENTS) / 2, i64::from(DOCUMENTS)][round as usize];
        while !building.is_finished() && progress(&mut stream).is_none_or(|done| done < wanted) {
            std::thread::sleep(Duration::from_millis(1));
        }
        server.signal(Signal::KILL);
        let acknowledged = writer.join().unwrap();
        let built = building.join().unwrap();
        drop(server);

        let server = Serving::start(&["--dbpath", path]);
        let names = index_names(&server);
        let whole = ["_id_", "n", "tags", "all"];
        assert!(names == whole || names == ["_id_"], "{names:?}");
        assert!(built.is_none() || names == whole, "an acknowledged index is there");
        cut += i32::from(names == ["_id_"]);
        let counted = server.run(doc! { "count": "c", "$db": "test" });
        let there = counted.get("n").and_then(|n| n.exact_i64()).unwrap();
        let sure = i64::from(DOCUMENTS + acknowledged);
        assert!(there == sure || there == sure + 1, "{there} of {sure}");
        let again = server.run(create_indexes());
        assert!(is_one(&again, "ok"), "{again:?}");
        assert_eq!(index_names(&server), whole);
        let checked = server.run(doc! { "validate": "c", "$db": "test" });
        assert!(is_one(&checked, "valid"), "{checked:?}");
        assert_eq!(server.end().code(), Some(0));
        let checked = quire(&["check", path]);
        assert_eq!(checked.status.code(), Some(0), "{}", text(&checked.stdout));
    }
    assert!(cut > 0, "no build was cut");
}
