//! `quire status` of a running server.

use crate::{Serving, quire, text};
use quire_document::doc;

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
