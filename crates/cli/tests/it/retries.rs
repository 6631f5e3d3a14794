//! A server that is killed between a write and its reply: a command that the client repeats with
//! the same transaction number is executed once.

use crate::{Directory, Serving, exchange, try_exchange};
use quire_document::{Binary, DocBuf, Value, doc};
use rustix::process::Signal;
use std::net::TcpStream;
use std::time::Duration;

const STATEMENTS: i32 = 5;

fn lsid(writer: u8) -> DocBuf {
    let bytes = [writer; 16];
    doc! { "id": Value::Binary(Binary { subtype: 4, bytes: &bytes }) }
}

/// Returns `STATEMENTS` increments of the writer's document, and an insert that would fail if
/// executed twice.
fn commands(writer: u8, number: i64) -> [DocBuf; 2] {
    let id = i32::from(writer);
    let one = doc! { "q": { "_id": id }, "u": { "$inc": { "n": 1 } }, "upsert": true };
    let updates = quire_document::ArrayBuf::build(|list| {
        (0..STATEMENTS).for_each(|_| {
            list.push(&one);
        });
    });
    let session = lsid(writer);
    let update = doc! {
        "update": "counters", "updates": &updates, "lsid": &session, "txnNumber": 2 * number,
        "writeConcern": { "w": 1 }, "$db": "test",
    };
    let key = format!("{writer}-{number}");
    let insert = doc! {
        "insert": "log", "documents": [{ "_id": key.as_str() }], "lsid": &session,
        "txnNumber": 2 * number + 1, "writeConcern": { "w": 1 }, "$db": "test",
    };
    [update, insert]
}

/// Returns true if the command and each of its statements succeeded.
fn worked(reply: &DocBuf) -> bool {
    matches!(reply.get("ok"), Some(Value::Double(1.0))) && reply.get("writeErrors").is_none()
}

/// Writes batch after batch until the connection breaks. Returns the commands without a reply.
fn write_until_broken(
    port: u16,
    writer: u8,
    mut number: i64,
    pending: Vec<DocBuf>,
) -> (i64, Vec<DocBuf>) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut pending = std::collections::VecDeque::from(pending);
    loop {
        if pending.is_empty() {
            number += 1;
            pending.extend(commands(writer, number));
        }
        let Some(reply) = try_exchange(&mut stream, pending[0].clone()) else {
            return (number, pending.into());
        };
        assert!(worked(&reply), "{reply:?}");
        pending.pop_front();
    }
}

#[test]
fn a_write_repeated_after_kill_9_is_done_once() {
    let directory = Directory::new();
    let path = directory.join("db");
    let path = path.to_str().unwrap();
    let mut writers: Vec<(i64, Vec<DocBuf>)> = vec![(0, Vec::new()); 3];
    for life in 0..4 {
        let server = Serving::start(&["--dbpath", path]);
        let port = server.port();
        let threads: Vec<_> = writers
            .drain(..)
            .enumerate()
            .map(|(writer, (number, pending))| {
                std::thread::spawn(move || write_until_broken(port, writer as u8, number, pending))
            })
            .collect();
        // Long enough for some batches, and a different moment in each round.
        std::thread::sleep(Duration::from_millis(300 + 77 * life));
        server.signal(Signal::KILL);
        writers = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        drop(server);
    }
    let server = Serving::start(&["--dbpath", path]);
    for (writer, (number, pending)) in writers.iter().enumerate() {
        let mut stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
        for command in pending {
            let reply = exchange(&mut stream, command.clone());
            assert!(worked(&reply), "{reply:?}");
        }
        assert!(*number > 0, "writer {writer} has written nothing");
        let found = server.run(doc! {
            "find": "counters", "filter": { "_id": writer as i32 }, "$db": "test",
        });
        let cursor = found.get("cursor").unwrap().as_document().unwrap();
        let first = cursor.get("firstBatch").unwrap().as_array().unwrap().iter().next().unwrap();
        let Some(Value::Int32(counted)) = first.as_document().unwrap().get("n") else {
            panic!("{found:?}");
        };
        assert_eq!(counted, STATEMENTS * *number as i32, "writer {writer}: once each");
    }
    server.end();
}
