//! `quire top` of a running server.

use crate::{Serving, quire, text};
use quire_document::{ArrayBuf, DocBuf, doc, extjson};
use std::sync::atomic::{AtomicBool, Ordering};

/// Ends the traffic of a test, also if the test fails.
struct End<'e>(&'e AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Returns the first document of a screen as JSON in which `wanted` is a statement.
fn screen_with(uri: &str, words: &[&str], wanted: &str) -> DocBuf {
    loop {
        let all = [&["top", "--uri", uri, "--once", "--json", "--every", "0.3"], words].concat();
        let output = quire(&all);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let screen = extjson::parse_doc(&text(&output.stdout)).unwrap();
        let rows = screen.get("statements").and_then(|rows| rows.as_array()).unwrap();
        let is_wanted =
            |row: quire_document::Doc<'_>| row.get("ns").and_then(|ns| ns.as_str()) == Some(wanted);
        if rows.iter().any(|row| row.as_document().is_some_and(is_wanted)) {
            return screen;
        }
    }
}

#[test]
fn the_shapes_of_an_interval_are_shown() {
    let serving = Serving::start(&["--memory"]);
    let documents: Vec<DocBuf> = (0..50).map(|at| doc! { "_id": at, "n": at % 5 }).collect();
    let documents: ArrayBuf = documents.iter().collect();
    for db in ["shop", "other"] {
        serving.run(doc! { "insert": "orders", "documents": &documents, "$db": db });
    }
    let uri = serving.uri();
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                for db in ["shop", "other"] {
                    serving.run(doc! { "find": "orders", "filter": { "n": 3 }, "$db": db });
                }
            }
        });
        let _end = End(&ended);
        let found = screen_with(&uri, &["--db", "shop", "--sort", "examined"], "shop.orders");
        let rows = found.get("statements").and_then(|rows| rows.as_array()).unwrap();
        assert_eq!(rows.count(), 1, "only one database: {found:?}");
        let row = rows.get(0).and_then(|row| row.as_document()).unwrap();
        let number = |name: &str| row.get(name).and_then(|number| number.exact_i64()).unwrap();
        assert_eq!(row.get("command").and_then(|name| name.as_str()), Some("find"));
        let shape = r#"{"filter":{"n":{"$eq":"?number"}}}"#;
        assert_eq!(row.get("shape").and_then(|shape| shape.as_str()), Some(shape));
        let count = number("count");
        assert!(count > 0);
        assert_eq!((number("docsExamined"), number("returned")), (count * 50, count * 10));
        assert_eq!(number("collectionScans"), count);
        assert_eq!(found.get("origin").and_then(|name| name.as_str()), Some("quireRecorder"));
        assert!(found.get("running").and_then(|running| running.as_array()).is_some());
        screen_with(&uri, &[], "other.orders");
        let output = quire(&["top", "--uri", &uri, "--once", "--every", "0.3", "--limit", "1"]);
        let screen = text(&output.stdout);
        assert!(screen.contains("statements a second") && screen.contains("running: "), "{screen}");
    });
    assert_eq!(serving.end().code(), Some(0));
}

#[test]
fn a_server_without_a_recorder_says_so() {
    let serving = Serving::start(&["--memory", "--recorder", "off"]);
    let output = quire(&["top", "--uri", &serving.uri(), "--once"]);
    assert_eq!(output.status.code(), Some(100));
    let said = text(&output.stderr);
    assert!(said.contains("the recorder of the server is off"), "{said}");
    assert_eq!(serving.end().code(), Some(0));
}
