//! `quire status` of a running server.

use crate::{Directory, Serving, quire, text};
use quire_document::doc;
use rustix::process::Signal;
use std::time::Duration;

#[test]
fn a_screen_lines_and_json() {
    let serving = Serving::start(&["--memory"]);
    serving.run(doc! { "insert": "c", "documents": [{ "_id": 1 }], "$db": "test" });
    let uri = serving.uri();
    let shown = quire(&["status", "--uri", &uri]);
    assert_eq!(shown.status.code(), Some(0));
    let screen = text(&shown.stdout);
    assert!(screen.contains("replica set rs0"), "{screen}");
    let inserts = screen.lines().find(|line| line.trim_start().starts_with("inserts")).unwrap();
    assert_eq!(inserts.split_whitespace().last(), Some("1"), "{inserts}");
    let lines = quire(&["status", "--uri", &uri, "--every", "0.1", "--count", "21"]);
    let lines = text(&lines.stdout).lines().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(lines.len(), 23, "{lines:?}");
    assert!(lines[0].contains("queries") && lines[21] == lines[0]);
    let json = quire(&["status", "--uri", &uri, "--json"]);
    assert!(text(&json.stdout).contains("\"opcounters\""));
}

/// Returns the samples of a server's history.
fn samples(serving: &Serving) -> usize {
    let reply = serving.run(doc! {
        "aggregate": 1, "pipeline": [{ "$statusHistory": {} }], "cursor": {}, "$db": "admin",
    });
    let cursor = reply.get("cursor").and_then(|cursor| cursor.as_document()).unwrap();
    cursor.get("firstBatch").and_then(|rows| rows.as_array()).unwrap().count()
}

/// What a server did is known after it was killed, and goes on after the next start.
#[test]
fn the_history_outlives_the_server() {
    let directory = Directory::new();
    let path = directory.join("data");
    let path = path.to_str().unwrap();
    let often = ["--dbpath", path, "--setParameter", "diagnosticDataCollectionPeriodMillis=100"];
    let serving = Serving::start(&often);
    serving.run(doc! { "insert": "c", "documents": [{ "_id": 1 }, { "_id": 2 }], "$db": "test" });
    while samples(&serving) < 4 {
        std::thread::sleep(Duration::from_millis(20));
    }
    let uri = serving.uri();
    let shown = quire(&["status", "--uri", &uri, "--since", "1h", "--count", "2"]);
    let shown = text(&shown.stdout);
    assert_eq!(shown.lines().count(), 3, "{shown}");
    assert!(shown.starts_with("UTC") && shown.contains("inserts"), "{shown}");
    assert!(
        text(&quire(&["status", "--uri", &uri, "--since", "2999-01-01"]).stdout)
            .contains("no samples")
    );
    serving.signal(Signal::KILL);
    drop(serving);

    let all = text(&quire(&["status", "--dbpath", path, "--json"]).stdout);
    let before = all.lines().count();
    assert!(before >= 4, "{all}");
    assert!(all.lines().all(|line| line.starts_with('{') && line.contains("\"opcounters\"")));
    let serving = Serving::start(&often);
    while samples(&serving) < before + 2 {
        std::thread::sleep(Duration::from_millis(20));
    }
    // The restart is no negative rate.
    let lines = text(&quire(&["status", "--dbpath", path, "--count", "1000"]).stdout);
    assert!(lines.lines().count() > before, "{lines}");
    let negative = |word: &str| word.starts_with('-') && word != "-";
    assert!(!lines.split_whitespace().any(negative), "{lines}");
    serving.end();
    let missing = quire(&["status", "--dbpath", directory.0.to_str().unwrap()]);
    assert!(text(&missing.stderr).contains("there is no history in"), "{}", text(&missing.stderr));
}

#[test]
fn a_server_in_memory_keeps_no_history() {
    let serving = Serving::start(&["--memory"]);
    let shown = quire(&["status", "--uri", &serving.uri(), "--since", "1h"]);
    assert!(text(&shown.stderr).contains("keeps no history"), "{}", text(&shown.stderr));
}
