//! A server with a full disk: a truncated write of the log, and a file system that is really full.

use crate::{Directory, QUIRE, Serving, exchange, quire, text, try_exchange};
use quire_document::{DocBuf, Value, doc};
use std::fs::File;
use std::io::Write;
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// The error code OutOfDiskSpace.
const FULL: i32 = 14031;

fn insert(id: i32, bytes: usize) -> DocBuf {
    // The text cannot be compressed, so that the log grows with the inserts.
    let mut state = id as u32;
    let mut letter = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from(b'0' + (state >> 26) as u8)
    };
    let text: String = (0..bytes).map(|_| letter()).collect();
    let document = doc! { "_id": id, "text": text.as_str() };
    doc! {
        "insert": "c", "documents": [&document], "writeConcern": { "w": "majority" }, "$db": "test",
    }
}

/// Returns the code of a failed command or of its first write error; 0 for none.
fn code(reply: &DocBuf) -> i32 {
    let errors = reply.get("writeErrors").and_then(|errors| errors.as_array());
    let first = errors.and_then(|errors| errors.get(0)).and_then(|error| error.as_document());
    match first.map_or_else(|| reply.get("code"), |error| error.get("code")) {
        Some(Value::Int32(code)) => code,
        _ => 0,
    }
}

fn connect(server: &Serving) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

fn count(server: &Serving) -> i32 {
    let reply = server.run(doc! { "count": "c", "$db": "test" });
    match reply.get("n") {
        Some(Value::Int32(n)) => n,
        other => panic!("{other:?}"),
    }
}

/// Files are limited to 64 MiB and 4 KiB (`ulimit` counts 512 bytes). A log file is full after 64
/// MiB, so the last write to it is cut short.
#[test]
fn a_write_that_is_cut_short_ends_the_server_and_loses_nothing_acknowledged() {
    let directory = Directory::new();
    let path = directory.join("db");
    let path = path.to_str().unwrap();
    let limited = "trap '' XFSZ; ulimit -f 131080; exec \"$@\"";
    let words = ["-c", limited, "sh", QUIRE, "serve", "--port", "0", "--dbpath", path];
    let mut serving = Serving::start_program(Path::new("/bin/sh"), &words, "ready: ");
    let mut stream = connect(&serving);
    let mut acknowledged = 0;
    while acknowledged < 1000 {
        match try_exchange(&mut stream, insert(acknowledged, 250_000)) {
            Some(reply) if code(&reply) == 0 => acknowledged += 1,
            _ => break,
        }
    }
    assert!((100..1000).contains(&acknowledged), "{acknowledged}");
    let until = Instant::now() + Duration::from_secs(30);
    let ended = loop {
        match serving.child.try_wait().unwrap() {
            Some(status) => break status,
            None => assert!(Instant::now() < until, "the server did not end"),
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    assert_eq!(ended.code(), Some(14));
    let serving = Serving::start(&["--dbpath", path]);
    let found = count(&serving);
    assert!(found == acknowledged || found == acknowledged + 1, "{found}, not {acknowledged}");
    assert_eq!(code(&serving.run(insert(5000, 1000))), 0);
    assert_eq!(serving.end().code(), Some(0));
    let checked = quire(&["check", path]);
    assert!(checked.status.success(), "{}", text(&checked.stdout));
}

/// Fills a real file system. `QUIRE_SMALL_DISK` names an empty directory on one of 200 MB to 2 GB,
/// for example on a tmpfs; without it the test does nothing.
#[test]
fn a_server_outlives_a_full_disk() {
    let Some(disk) = std::env::var_os("QUIRE_SMALL_DISK") else { return };
    let (path, filler) = (Path::new(&disk).join("db"), Path::new(&disk).join("filler"));
    let words = ["--dbpath", path.to_str().unwrap()];
    let serving = Serving::start(&words);
    let mut stream = connect(&serving);
    let mut acknowledged = 0;
    let refused = loop {
        let reply = exchange(&mut stream, insert(acknowledged, 250_000));
        match code(&reply) {
            0 => acknowledged += 1,
            code => break code,
        }
    };
    assert_eq!(refused, FULL);
    let delete = |id: i32| {
        let one = doc! { "q": { "_id": id }, "limit": 1 };
        doc! { "delete": "c", "deletes": [&one], "$db": "test" }
    };
    // Each delete is of another document: a delete that finds nothing writes nothing.
    let mut deleted = 0;
    let mut delete_until = |stream: &mut TcpStream, wanted: i32| {
        let until = Instant::now() + Duration::from_secs(5);
        loop {
            let found = code(&exchange(stream, delete(deleted)));
            deleted += i32::from(found == 0);
            if found == wanted {
                return deleted;
            }
            assert!(Instant::now() < until, "deletes answer {found}, not {wanted}");
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    delete_until(&mut stream, 0);

    // Another program takes the rest of the space.
    let mut file = File::create(&filler).unwrap();
    while file.write_all(&[1; 4096]).is_ok() {}
    drop(file);
    let gone = delete_until(&mut stream, FULL);
    for command in [insert(5000, 10), doc! { "drop": "c", "$db": "test" }] {
        assert_eq!(code(&exchange(&mut stream, command)), FULL);
    }
    let hello = exchange(&mut stream, doc! { "hello": 1, "$db": "admin" });
    assert!(matches!(hello.get("isWritablePrimary"), Some(Value::Bool(true))), "{hello:?}");
    assert_eq!(count(&serving), acknowledged - gone);

    std::fs::remove_file(&filler).unwrap();
    let all = doc! { "q": {}, "limit": 0 };
    let all = doc! { "delete": "c", "deletes": [&all], "$db": "test" };
    let before = acknowledged - delete_until(&mut stream, 0);
    assert_eq!(count(&serving), before);
    assert_eq!(serving.end().code(), Some(0));
    let serving = Serving::start(&words);
    assert_eq!(count(&serving), before);
    assert_eq!(code(&serving.run(all)), 0);
    assert_eq!(code(&serving.run(doc! { "drop": "c", "$db": "test" })), 0);
    let until = Instant::now() + Duration::from_secs(60);
    while code(&serving.run(insert(1, 1000))) == FULL {
        assert!(Instant::now() < until, "a dropped collection gave no space back");
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(count(&serving), 1);
    assert_eq!(serving.end().code(), Some(0));
}
