//! `quire export`; its canonical output can be imported again byte for byte.

use crate::{Directory, Serving, quire, text};
use quire_document::{DocBuf, doc, literal};

/// One value of every BSON type, including deprecated types and limits.
const EVERY_TYPE: &[&str] = &[
    "1.0",
    "-0.0",
    "1.7976931348623157e+308",
    "5e-324",
    "NaN",
    "Infinity",
    "-Infinity",
    "\"\"",
    "\"é😀\\u0000\\u001f\\\"\\\\\"",
    "{}",
    "{a: {b: {}}}",
    "[]",
    "[[1], {x: [2]}]",
    "BinData(0, \"\")",
    "BinData(0, \"AQID\")",
    "BinData(2, \"AwAAAAECAw==\")",
    "BinData(3, \"AAECAwQFBgcICQoLDA0ODw==\")",
    "BinData(5, \"AAECAwQFBgcICQoLDA0ODw==\")",
    "BinData(6, \"AQID\")",
    "BinData(8, \"AQID\")",
    "BinData(128, \"AQID\")",
    "BinData(255, \"AQID\")",
    "UUID(\"00112233-4455-6677-8899-aabbccddeeff\")",
    "undefined",
    "ObjectId(\"0123456789abcdef01234567\")",
    "true",
    "false",
    "Date(0)",
    "Date(1736929800001)",
    "Date(-1)",
    "Date(9223372036854775807)",
    "Date(-9223372036854775808)",
    "null",
    "/^a\\/b$/imsx",
    "RegExp(\"\", \"\")",
    "DBPointer(\"db.c\", ObjectId(\"0123456789abcdef01234567\"))",
    "Code(\"f()\")",
    "Code(\"f()\", {x: 1, y: Date(5)})",
    "Symbol(\"s\")",
    "0",
    "-2147483648",
    "2147483647",
    "Timestamp(0, 0)",
    "Timestamp(4294967295, 4294967295)",
    "NumberLong(\"0\")",
    "NumberLong(\"9223372036854775807\")",
    "NumberLong(\"-9223372036854775808\")",
    "NumberDecimal(\"0\")",
    "NumberDecimal(\"-0E+6111\")",
    "NumberDecimal(\"1.10\")",
    "NumberDecimal(\"9.999999999999999999999999999999999E+6144\")",
    "NumberDecimal(\"1E-6176\")",
    "NumberDecimal(\"NaN\")",
    "NumberDecimal(\"-Infinity\")",
    "MinKey",
    "MaxKey",
];

fn first_batch(server: &Serving, collection: &str) -> Vec<DocBuf> {
    let find = doc! { "find": collection, "sort": { "_id": 1 }, "$db": "test" };
    let reply = server.run(find);
    let cursor = reply.get("cursor").unwrap().as_document().unwrap();
    let batch = cursor.get("firstBatch").unwrap().as_array().unwrap();
    batch.iter().map(|value| value.as_document().unwrap().to_owned()).collect()
}

#[test]
fn every_type_comes_back_byte_for_byte() {
    let server = Serving::start(&["--memory"]);
    let fields: Vec<_> =
        EVERY_TYPE.iter().enumerate().map(|(at, value)| format!("f{at}: {value}")).collect();
    let all = fields.join(", ");
    let whole = literal::parse_doc(&format!(
        "{{_id: 1, {all}, nested: {{a: [{{{all}}}]}}, \"a.b\": 1, \"\": 2, \"sp ace\": 3}}"
    ));
    let insert = DocBuf::build(|insert| {
        insert.append("insert", "from");
        let mut documents = insert.array("documents");
        documents.push(&whole.unwrap());
        for (at, value) in EVERY_TYPE.iter().enumerate() {
            let text = format!("{{_id: {}, v: {value}, l: [{value}]}}", at + 2);
            documents.push(&literal::parse_doc(&text).unwrap());
        }
        documents.finish();
        insert.append("$db", "test");
    });
    let reply = server.run(insert);
    let stored = first_batch(&server, "from");
    assert_eq!(stored.len(), EVERY_TYPE.len() + 1, "{reply:?}");
    let directory = Directory::new();
    let uri = server.uri();
    for words in [&["--quiet"][..], &["--jsonArray"], &["--pretty"], &["--jsonArray", "--pretty"]] {
        let file = directory.join("file.json");
        let file = file.to_str().unwrap();
        let export =
            ["export", "--uri", &uri, "-c", "from", "--jsonFormat", "canonical", "-o", file];
        let output = quire(&[&export, words].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let array = if words.contains(&"--jsonArray") { &["--jsonArray"][..] } else { &[] };
        let import = ["import", "--uri", &uri, "-c", "to", "--drop", file];
        let output = quire(&[&import[..], array].concat());
        assert_eq!(output.status.code(), Some(0), "{words:?}: {}", text(&output.stderr));
        let found = first_batch(&server, "to");
        assert_eq!(found.len(), stored.len());
        for (found, stored) in found.iter().zip(&stored) {
            assert_eq!(found.as_bytes(), stored.as_bytes(), "{stored:?}");
        }
    }
}

/// The names of the elements of a batch made a reply longer than a document may be.
#[test]
fn a_large_collection_comes_in_batches_that_fit() {
    let server = Serving::start(&["--memory"]);
    let directory = Directory::new();
    let file = directory.join("c.json");
    let filling = "x".repeat(100);
    let lines = (0..160_000).map(|n| format!("{{\"_id\":{n},\"t\":\"{filling}\"}}\n"));
    let text_in = lines.collect::<String>();
    std::fs::write(&file, &text_in).unwrap();
    let uri = server.uri();
    let file = file.to_str().unwrap();
    let output = quire(&["import", "--uri", &uri, "-d", "test", file]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let output = quire(&["export", "--uri", &uri, "-c", "c"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout) == text_in, "the same lines in the same order");
}

#[test]
fn the_requested_documents_are_written() {
    let server = Serving::start(&["--memory"]);
    let documents = (1..=500).map(|n| doc! { "_id": n, "n": { "half": n / 2 }, "t": "x,y" });
    let insert = DocBuf::build(|insert| {
        insert.append("insert", "c");
        let mut array = insert.array("documents");
        documents.for_each(|document| {
            array.push(&document);
        });
        array.finish();
        insert.append("$db", "test");
    });
    server.run(insert);
    let uri = format!("{}test", server.uri());
    let export = |words: &[&str]| {
        let output = quire(&[&["export", "--uri", &uri, "-c", "c"], words].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        (text(&output.stdout), text(&output.stderr))
    };
    let (out, told) = export(&[]);
    assert_eq!(out.lines().count(), 500);
    assert!(told.contains("exported 500 document(s)"), "{told}");
    let words = ["-q", "{\"_id\":{\"$lte\":10}}", "--sort", "{\"_id\":-1}", "--skip", "1"];
    let (out, told) = export(&[&words[..], &["--limit", "2", "--fields", "t", "--quiet"]].concat());
    assert_eq!(out, "{\"_id\":9,\"t\":\"x,y\"}\n{\"_id\":8,\"t\":\"x,y\"}\n");
    assert_eq!(told, "");
    let table =
        ["--type", "csv", "--fields", "n.half,t,none", "--limit", "1", "--sort", "{\"_id\":1}"];
    assert_eq!(export(&table).0, "n.half,t,none\n0,\"x,y\",\n");
    let (out, _) = export(&["-q", "{\"_id\":-1}", "--jsonArray"]);
    assert_eq!(out, "[]\n");
    let missing = quire(&["export", "--uri", &uri, "-c", "none", "--assertExists"]);
    assert_eq!(missing.status.code(), Some(100));
    let refused = quire(&["export", "--uri", &uri, "-c", "c", "-q", "{\"$bad\":1}"]);
    assert_eq!(refused.status.code(), Some(100));
    assert!(text(&refused.stderr).contains("$bad"), "{}", text(&refused.stderr));
}

/// The directory was created, with an empty database in it.
#[test]
fn a_directory_without_a_database_is_refused_and_stays_as_it_is() {
    let directory = Directory::new();
    let (missing, empty) = (directory.join("missing"), directory.join("empty"));
    std::fs::create_dir_all(&empty).unwrap();
    for path in [&missing, &empty] {
        for words in [&["export", "-c", "c", "--quiet"][..], &["profile", "--db", "test"]] {
            let output = quire(&[words, &["--dbpath", path.to_str().unwrap()]].concat());
            let told = text(&output.stderr);
            assert_eq!(output.status.code(), Some(100), "{words:?}: {told}");
            assert!(told.contains("is not a database directory"), "{words:?}: {told}");
        }
    }
    assert!(!missing.exists());
    assert_eq!(std::fs::read_dir(&empty).unwrap().count(), 0);
}
