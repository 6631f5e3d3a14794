//! `quire record` and `quire replay`: a trace of one thread replayed gives the same data, and a trace
//! without values contains none.

use crate::{Directory, Serving, quire, text};
use quire_document::{DocBuf, Value, doc};
use std::path::Path;
use std::time::Duration;

/// Records the traffic of `work` into a file.
fn recorded(serving: &Serving, file: &Path, values: &str, work: impl FnOnce()) {
    let (path, uri) = (file.to_str().unwrap().to_owned(), serving.uri());
    std::thread::scope(|scope| {
        let recorder = scope.spawn(move || {
            quire(&["record", "--for", "1h", "-o", &path, "--values", values, "--uri", &uri])
        });
        // The file is created when the trace has begun.
        while !file.exists() && !recorder.is_finished() {
            std::thread::park_timeout(Duration::from_millis(10));
        }
        work();
        serving.run(doc! { "quireRecorder": "endTrace", "$db": "admin" });
        let output = recorder.join().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        assert!(text(&output.stdout).contains(", 0 lost"), "{}", text(&output.stdout));
    });
}

const SECRET: &str = "a-literal-that-must-not-stand-in-a-file";

fn traffic(serving: &Serving) {
    let run = |command: DocBuf| {
        let mut command = command;
        command.append("$db", "shop");
        serving.run(command)
    };
    for at in 0..20 {
        let order = doc! { "_id": at, "user": at % 3, "note": SECRET, "n": 0 };
        run(doc! { "insert": "orders", "documents": [&order] });
        let update = doc! { "q": { "user": at % 3 }, "u": { "$inc": { "n": 1 } }, "multi": true };
        run(doc! { "update": "orders", "updates": [&update] });
    }
    run(doc! { "delete": "orders", "deletes": [{ "q": { "_id": 7 }, "limit": 1 }] });
    run(doc! { "find": "orders", "filter": { "note": SECRET, "user": { "$in": [1, 2] } } });
    let matching = doc! { "$match": { "note": SECRET } };
    run(doc! { "aggregate": "orders", "pipeline": [&matching], "cursor": { "batchSize": 2 } });
    run(
        doc! { "findAndModify": "orders", "query": { "_id": 3 }, "update": { "$set": { "n": 99 } } },
    );
}

fn documents(serving: &Serving) -> Vec<u8> {
    let found = serving.run(doc! { "find": "orders", "batchSize": 1000, "$db": "shop" });
    let cursor = found.get("cursor").and_then(|cursor| cursor.as_document()).unwrap();
    cursor.get("firstBatch").unwrap().as_array().unwrap().as_bytes().to_vec()
}

#[test]
fn a_trace_of_one_thread_replayed_gives_the_same_data() {
    let directory = Directory::new();
    let file = directory.join("trace");
    let serving = Serving::start(&["--memory"]);
    recorded(&serving, &file, "keep", || traffic(&serving));
    let other = Serving::start(&["--memory"]);
    let output = quire(&["replay", file.to_str().unwrap(), "--noPauses", "--uri", &other.uri()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    assert!(table.contains("update shop.orders user"), "{table}");
    assert!(table.contains("0 statements failed"), "{table}");
    assert!(documents(&serving).len() > 1000);
    assert_eq!(documents(&other), documents(&serving));
    // A file that exists is not replaced.
    let path = file.to_str().unwrap();
    let again = quire(&["record", "--for", "1s", "-o", path, "--uri", &serving.uri()]);
    assert_ne!(again.status.code(), Some(0));
}

#[test]
fn no_literal_stands_in_a_trace_of_hashes_or_in_the_windows() {
    let directory = Directory::new();
    let (file, data) = (directory.join("trace"), directory.join("db"));
    let serving = Serving::start(&["--dbpath", data.to_str().unwrap()]);
    recorded(&serving, &file, "hash", || traffic(&serving));
    let bytes = std::fs::read(&file).unwrap();
    let contains = |bytes: &[u8], text: &str| {
        bytes.windows(text.len()).any(|window| window == text.as_bytes())
    };
    assert!(contains(&bytes, "note") && contains(&bytes, "hashes"));
    assert!(!contains(&bytes, SECRET));
    let show = doc! { "quireRecorder": "show", "from": Value::Date(0), "$db": "admin" };
    let windows = serving.run(show);
    assert!(contains(windows.as_bytes(), "note"));
    assert!(!contains(windows.as_bytes(), SECRET));
    let output = quire(&["replay", file.to_str().unwrap(), "--uri", &serving.uri()]);
    assert!(text(&output.stderr).contains("no values"), "{}", text(&output.stderr));
}
