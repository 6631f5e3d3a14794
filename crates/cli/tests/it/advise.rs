//! `quire advise` over a server, and over a dump with a log of mongod.

use crate::{Directory, Serving, quire, text};
use quire_document::{ArrayBuf, DocBuf, doc};
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// Orders with an amount that is a text in each tenth.
fn orders() -> Vec<DocBuf> {
    let order = |at: i32| match at % 10 {
        3 => doc! { "_id": at, "amount": "12", "state": "new" },
        _ => doc! { "_id": at, "amount": at, "state": "paid" },
    };
    (0..400).map(order).collect()
}

fn dump(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    let bytes: Vec<u8> = orders().iter().flat_map(|one| one.as_bytes().to_vec()).collect();
    fs::write(folder.join("orders.bson"), bytes).unwrap();
    let metadata = r#"{"options":{"validator":{"a":1}},"indexes":[{"v":2,"key":{"_id":1},"name":"_id_"},{"v":2,"key":{"amount":1},"name":"amount_1"}]}"#;
    fs::write(folder.join("orders.metadata.json"), metadata).unwrap();
}

/// A hundred slow finds without an index, one each second.
fn log(path: &Path) {
    let mut lines = String::new();
    for at in 0..100 {
        let (minute, second) = (at / 60, at % 60);
        writeln!(
            lines,
            r#"{{"t":{{"$date":"2025-05-01T10:0{minute}:{second:02}.000+00:00"}},"s":"I","c":"COMMAND","id":51803,"ctx":"conn1","msg":"Slow query","attr":{{"type":"command","ns":"shop.orders","command":{{"find":"orders","filter":{{"state":"new"}},"$db":"shop"}},"planSummary":"COLLSCAN","keysExamined":0,"docsExamined":400,"nreturned":4,"durationMillis":120}}}}"#
        )
        .unwrap();
    }
    fs::write(path, lines).unwrap();
}

#[test]
fn a_dump_and_a_log_are_enough() {
    let directory = Directory::new();
    let (folder, lines, page) =
        (directory.join("shop"), directory.join("mongod.log"), directory.join("page.html"));
    dump(&folder);
    log(&lines);
    let (folder, lines, page) =
        (folder.to_str().unwrap(), lines.to_str().unwrap(), page.to_str().unwrap());
    let words = ["advise", "--quiet", "--all", "--dump", folder, "--log", lines, "--report", page];
    let output = quire(&words);
    let screen = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{screen} {}", text(&output.stderr));
    let place = |part: &str| screen.find(part).unwrap_or_else(|| panic!("no {part}: {screen}"));
    assert!(place("I1 ") < place("A9 "), "{screen}");
    place("db.orders.createIndex({\"state\":1})");
    let written = fs::read_to_string(page).unwrap();
    assert!(written.starts_with("<!DOCTYPE html>") && written.contains("createIndex"));
    let output = quire(&[&words[..], &["--fail-on", "high", "--lang", "zh"]].concat());
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("语句没有可用的索引"));
    let silent = ["--fail-on", "low", "--silence", "I1", "--silence", "A9:orders.amount"];
    let output = quire(&[&words[..], &silent].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
    assert!(text(&output.stdout).contains("Already right"));
    // The log alone gives what was asked.
    let output = quire(&["profile", "--log", lines, "-d", "shop"]);
    assert!(text(&output.stdout).contains("find orders"), "{}", text(&output.stdout));
    let output = quire(&["profile", "--log", page, "-d", "shop"]);
    assert_eq!(output.status.code(), Some(100));
}

#[test]
fn a_server_is_advised_over_the_wire() {
    let serving = Serving::start(&["--memory"]);
    let documents = orders();
    let documents: ArrayBuf = documents.iter().collect();
    serving.run(doc! { "insert": "orders", "documents": &documents, "$db": "shop" });
    let index = doc! { "key": { "amuont": 1 }, "name": "amuont_1" };
    serving.run(doc! { "createIndexes": "orders", "indexes": [&index], "$db": "shop" });
    let uri = format!("{}shop", serving.uri());
    let output = quire(&["advise", "--quiet", "--all", "--json", "--uri", &uri]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let found = quire_document::extjson::parse_doc(&text(&output.stdout)).unwrap();
    let findings = found.get("findings").and_then(|all| all.as_array()).unwrap();
    let first = findings.get(0).and_then(|one| one.as_document()).unwrap();
    assert_eq!(first.get("rule").and_then(|rule| rule.as_str()), Some("A11"));
    let evidence = first.get("evidence").and_then(|evidence| evidence.as_document()).unwrap();
    assert_eq!(evidence.get("meant").and_then(|meant| meant.as_str()), Some("amount"));
    // What the tool has read is no request of a client.
    let recorded = serving.run(doc! { "quireRecorder": "show", "ns": "shop", "$db": "admin" });
    let shapes =
        recorded.get("workload").and_then(|one| one.as_document()?.get("shapes")?.as_array());
    let kinds = shapes.unwrap().iter().filter_map(|one| one.as_document()?.get("kind")?.as_str());
    assert_eq!(kinds.collect::<Vec<_>>(), ["insert"]);
    // A database that does not exist is not already right.
    for tool in ["advise", "profile"] {
        let output = quire(&[tool, "--quiet", "--uri", &format!("{}shpo", serving.uri())]);
        assert_eq!(output.status.code(), Some(1), "{}", text(&output.stdout));
        let said = text(&output.stderr);
        assert!(said.contains("there is no database shpo with a collection"), "{said}");
    }
    assert_eq!(serving.end().code(), Some(0));
}

/// Quire has a laboratory: the index was built there and the statements ran with it before the tool
/// proposes it.
#[test]
fn a_missing_index_is_tried_on_the_server() {
    let serving = Serving::start(&["--memory"]);
    let documents = orders();
    let documents: ArrayBuf = documents.iter().collect();
    serving.run(doc! { "insert": "orders", "documents": &documents, "$db": "shop" });
    for at in 0..10 {
        serving.run(doc! { "find": "orders", "filter": { "amount": at * 10 }, "$db": "shop" });
    }
    let uri = format!("{}shop", serving.uri());
    let words = ["advise", "--quiet", "--all", "--uri", &uri];
    let output = quire(&[&words[..], &["--json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let found = quire_document::extjson::parse_doc(&text(&output.stdout)).unwrap();
    let findings = found.get("findings").and_then(|all| all.as_array()).unwrap();
    let is_missing = |one: &quire_document::Doc<'_>| {
        one.get("rule").and_then(|rule| rule.as_str()) == Some("I1")
    };
    let missing = findings.iter().filter_map(|one| one.as_document()).find(is_missing).unwrap();
    let confidence = missing.get("confidence").and_then(|found| found.as_document()).unwrap();
    assert_eq!(confidence.get("kind").and_then(|kind| kind.as_str()), Some("executed"));
    assert_eq!(confidence.get("copied").and_then(|copied| copied.exact_i64()), Some(400));
    assert_eq!(missing.get("path").and_then(|path| path.as_str()), Some("amount_1"));
    let screen = text(&quire(&words).stdout);
    assert!(screen.contains("run with the change on 400 / 400"), "{screen}");
    assert_eq!(serving.end().code(), Some(0));
}
