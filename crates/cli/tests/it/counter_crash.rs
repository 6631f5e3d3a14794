//! A server that is killed while clients increment one counter, whose increments commit together: each
//! increment is counted once, and is one event of a change stream.

use crate::{Directory, Serving, exchange, try_exchange};
use quire_document::{Binary, DocBuf, Value, doc};
use rustix::process::Signal;
use std::net::TcpStream;
use std::time::Duration;

const WRITERS: usize = 6;

fn increment(writer: usize, number: i64) -> DocBuf {
    let bytes = [writer as u8; 16];
    let session = doc! { "id": Value::Binary(Binary { subtype: 4, bytes: &bytes }) };
    let one = doc! { "q": { "_id": "home" }, "u": { "$inc": { "views": 1 } } };
    doc! {
        "update": "pages", "updates": [&one], "lsid": &session, "txnNumber": number,
        "writeConcern": { "w": 1 }, "$db": "d"
    }
}

fn modified(reply: &DocBuf) -> i64 {
    reply.get("nModified").and_then(|n| n.exact_i64()).unwrap_or_default()
}

/// Increments until the connection breaks, from an increment without a reply on. Returns the number of
/// the next one without a reply.
fn increment_until_broken(port: u16, writer: usize, mut number: i64) -> i64 {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    while let Some(reply) = try_exchange(&mut stream, increment(writer, number)) {
        assert_eq!(modified(&reply), 1, "{reply:?}");
        number += 1;
    }
    number
}

/// Opens a change stream, from a token on if there is one.
fn watch(server: &Serving, options: &DocBuf) -> DocBuf {
    let pipeline = quire_document::array![{ "$changeStream": options }];
    let opened = server.run(doc! {
        "aggregate": "pages", "pipeline": &pipeline, "cursor": { "batchSize": 0 }, "$db": "d"
    });
    opened.get("cursor").unwrap_or_else(|| panic!("{opened:?}")).as_document().unwrap().to_owned()
}

/// Returns the values of the counter in the `count` events after `token`, and in those that follow.
fn values(server: &Serving, token: &DocBuf, count: usize) -> Vec<i64> {
    let id = watch(server, &doc! { "resumeAfter": token }).get("id").unwrap().exact_i64().unwrap();
    let (mut found, mut empty) = (Vec::new(), 0);
    while found.len() < count && empty < 20 || empty == 0 {
        let reply = server.run(doc! { "getMore": id, "collection": "pages", "$db": "d" });
        let cursor = reply.get("cursor").unwrap_or_else(|| panic!("{reply:?}"));
        let batch = cursor.as_document().unwrap().get("nextBatch").unwrap().as_array().unwrap();
        empty += usize::from(batch.is_empty());
        found.extend(batch.iter().map(|event| {
            let event = event.as_document().unwrap();
            let description = event.get("updateDescription").unwrap().as_document().unwrap();
            let fields = description.get("updatedFields").unwrap().as_document().unwrap();
            fields.get("views").unwrap().exact_i64().unwrap()
        }));
    }
    found
}

#[test]
fn each_increment_before_kill_9_counts_once_and_is_one_event() {
    let directory = Directory::new();
    let path = directory.join("db");
    let words = ["--dbpath", path.to_str().unwrap(), "--oplogSize", "256"];
    let server = Serving::start(&words);
    let pattern = doc! { "name": "views", "type": "counter", "path": "views", "merge": true };
    let home = doc! { "_id": "home", "views": 0 };
    for command in [
        doc! { "create": "pages", "patterns": [&pattern], "$db": "d" },
        doc! { "insert": "pages", "documents": [&home], "$db": "d" },
    ] {
        let reply = server.run(command);
        assert!(matches!(reply.get("ok"), Some(Value::Double(1.0))), "{reply:?}");
    }
    let opened = watch(&server, &DocBuf::new());
    let token = opened.get("postBatchResumeToken").unwrap().as_document().unwrap().to_owned();
    server.end();

    let mut numbers = [0_i64; WRITERS];
    for life in 0..3 {
        let server = Serving::start(&words);
        let port = server.port();
        let before = numbers;
        let threads: Vec<_> = numbers
            .into_iter()
            .enumerate()
            .map(|(writer, number)| {
                std::thread::spawn(move || increment_until_broken(port, writer, number))
            })
            .collect();
        // The server is killed among increments, at a different moment in each life.
        let enough = 40 + 30 * life;
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let sum: i64 = before.iter().sum();
        loop {
            let found = exchange(&mut stream, doc! { "find": "pages", "$db": "d" });
            let cursor = found.get("cursor").unwrap().as_document().unwrap();
            let first = cursor.get("firstBatch").unwrap().as_array().unwrap().iter().next();
            let views = first.unwrap().as_document().unwrap().get("views").unwrap().exact_i64();
            if views.unwrap() >= sum + enough {
                break;
            }
        }
        server.signal(Signal::KILL);
        for (number, thread) in numbers.iter_mut().zip(threads) {
            *number = thread.join().unwrap();
        }
    }
    let server = Serving::start(&words);
    let mut stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    for (writer, number) in numbers.iter_mut().enumerate() {
        let reply = exchange(&mut stream, increment(writer, *number));
        assert_eq!(modified(&reply), 1, "{reply:?}");
        *number += 1;
    }
    let total: i64 = numbers.iter().sum();
    assert_eq!(values(&server, &token, total as usize), (1..=total).collect::<Vec<_>>());
    let valid = server.run(doc! { "validate": "pages", "patterns": true, "$db": "d" });
    assert!(matches!(valid.get("valid"), Some(Value::Bool(true))), "{valid:?}");
    server.end();
}
