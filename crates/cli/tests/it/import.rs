//! `quire import`: the imported documents, the reported lines, and the exit code.

use crate::{Directory, Serving, quire, text};
use quire_document::doc;
use quire_document::extjson::{Format, print};
use std::process::Output;

/// Imports a text with some options.
fn import(server: &Serving, content: &str, words: &[&str]) -> Output {
    let directory = Directory::new();
    let file = directory.join("items.txt");
    std::fs::write(&file, content).unwrap();
    let uri = server.uri();
    quire(&[&["import", "--uri", &uri, "-d", "test", file.to_str().unwrap()], words].concat())
}

/// Returns the documents of `items`, by `_id`, in relaxed JSON.
fn items(server: &Serving) -> Vec<String> {
    let find = doc! { "find": "items", "sort": { "_id": 1 }, "$db": "test" };
    let reply = server.run(find);
    let cursor = reply.get("cursor").unwrap().as_document().unwrap();
    let batch = cursor.get("firstBatch").unwrap().as_array().unwrap();
    batch.iter().map(|value| print(value, Format::default())).collect()
}

fn count(server: &Serving) -> usize {
    items(server).len()
}

#[test]
fn bad_lines_are_named_and_the_others_arrive() {
    let server = Serving::start(&["--memory"]);
    let content = "{\"_id\":1}\n{\"_id\":2\nnonsense\n{\"_id\":1}\n\n{\"_id\":{\"$oid\":\"x\"}}\n{\"_id\":7}\n";
    let output = import(&server, content, &[]);
    assert_eq!(output.status.code(), Some(1));
    let told = text(&output.stderr);
    for line in ["line 2: ", "line 3: ", "line 4: E11000", "line 6: "] {
        assert!(told.contains(line), "{line}: {told}");
    }
    assert!(!told.contains("line 1:") && !told.contains("line 7:"), "{told}");
    let said = text(&output.stdout);
    assert!(
        said.contains("2 document(s) imported into test.items. 4 document(s) failed."),
        "{said}"
    );
    assert_eq!(count(&server), 2);

    let output = import(&server, content, &["--drop", "--stopOnError"]);
    assert_eq!(output.status.code(), Some(100));
    assert!(text(&output.stderr).contains("stopped at line 2"), "{}", text(&output.stderr));
    assert_eq!(count(&server), 1);
}

#[test]
fn modes() {
    let server = Serving::start(&["--memory"]);
    let first = "{\"_id\":1,\"a\":1,\"b\":1}\n{\"_id\":2,\"a\":2,\"b\":2}";
    assert_eq!(import(&server, first, &[]).status.code(), Some(0));
    let second = "{\"_id\":1,\"a\":9}\n{\"_id\":3,\"a\":3}";
    assert_eq!(import(&server, second, &["--mode", "merge"]).status.code(), Some(0));
    let found = items(&server);
    assert_eq!(found.len(), 3);
    assert!(found[0] == "{\"_id\":1,\"a\":9,\"b\":1}", "{found:?}");
    assert_eq!(import(&server, second, &["--mode", "upsert"]).status.code(), Some(0));
    assert!(!items(&server)[0].contains("\"b\""));
    let by_a = import(&server, "{\"a\":2,\"c\":1}", &["--mode", "upsert", "--upsertFields", "a"]);
    assert_eq!(by_a.status.code(), Some(0));
    assert!(items(&server)[1].contains("\"c\""));
    let output = import(&server, "{\"_id\":1}\n{\"x\":1}\n{\"_id\":3}", &["--mode", "delete"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("line 2: "), "{}", text(&output.stderr));
    assert_eq!(count(&server), 1);
}

#[test]
fn tables() {
    let server = Serving::start(&["--memory"]);
    let csv = "_id,name,address.city,age\n1,\"Lee, A\",Bonn,30\n2,Mo,,x\n";
    let output = import(&server, csv, &["--type", "csv", "--headerline"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let find = doc! { "find": "items", "filter": { "_id": 1 }, "$db": "test" };
    let reply = server.run(find);
    let cursor = reply.get("cursor").unwrap().as_document().unwrap();
    let found = cursor.get("firstBatch").unwrap().as_array().unwrap().get(0).unwrap();
    let expected = doc! { "_id": 1, "name": "Lee, A", "address": { "city": "Bonn" }, "age": 30 };
    assert_eq!(found.as_document().unwrap().to_owned(), expected);

    let typed = "_id.int32(),born.date(2006-01-02)\n5,1990-02-28\n6,1990-02-30\n7,1991-01-01\n";
    let options = ["--type", "csv", "--headerline", "--columnsHaveTypes", "--drop"];
    let output = import(&server, typed, &[&options[..], &["--parseGrace", "skipRow"]].concat());
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("line 3: column 'born'"), "{}", text(&output.stderr));
    assert_eq!(count(&server), 2);
    let output = import(&server, typed, &options);
    assert_eq!(output.status.code(), Some(100));
    assert_eq!(count(&server), 1);
    let output = import(&server, "8\ta\tb\n", &["--type", "tsv", "--fields", "_id,x,y"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(count(&server), 2);
}

#[test]
fn many_documents_over_several_connections() {
    let server = Serving::start(&["--memory"]);
    let lines: Vec<_> = (0..25_000).map(|n| format!("{{\"_id\":{n},\"x\":\"{n}\"}}")).collect();
    let output = import(&server, &lines.join("\n"), &["--numInsertionWorkers", "4"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let reply = server.run(doc! { "count": "items", "$db": "test" });
    assert!(matches!(reply.get("n"), Some(quire_document::Value::Int32(25_000))), "{reply:?}");
    let array = format!("[{}]", lines[..3000].join(",\n"));
    let output = import(&server, &array, &["--jsonArray", "--drop"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("3000 document(s) imported"));
    let output = import(&server, &array, &[]);
    assert_eq!(output.status.code(), Some(100));
    assert!(text(&output.stderr).contains("--jsonArray"), "{}", text(&output.stderr));
}

#[test]
fn a_stopped_directory_and_a_running_one() {
    let directory = Directory::new();
    let (data, file) = (directory.join("db"), directory.join("items.json"));
    std::fs::write(&file, "{\"_id\":1}\n{\"_id\":2}\n").unwrap();
    let (data, file) = (data.to_str().unwrap(), file.to_str().unwrap());
    let output = quire(&["import", "--dbpath", data, file]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let output = quire(&["export", "--dbpath", data, "-c", "items", "--quiet"]);
    assert_eq!(text(&output.stdout), "{\"_id\":1}\n{\"_id\":2}\n");
    let server = Serving::start(&["--dbpath", data]);
    let output = quire(&["import", "--dbpath", data, file]);
    assert_eq!(output.status.code(), Some(100));
    assert!(text(&output.stderr).contains("in use"), "{}", text(&output.stderr));
    assert_eq!(count(&server), 2);
    let output = quire(&["import", "--port", "1", file]);
    assert_eq!(output.status.code(), Some(100));
    assert!(text(&output.stderr).contains("127.0.0.1:1"), "{}", text(&output.stderr));
}
