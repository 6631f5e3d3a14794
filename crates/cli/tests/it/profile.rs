//! `quire profile` over a server, a directory and a dump: they give the same profile.

use crate::{Directory, Serving, quire, text};
use quire_document::{DocBuf, doc};
use std::fs;
use std::path::Path;

/// Orders that refer to customers, one of them to none.
fn customers() -> Vec<DocBuf> {
    (0..20).map(|at| doc! { "_id": format!("customer {at}").as_str(), "n": at }).collect()
}

fn orders() -> Vec<DocBuf> {
    let customer =
        |at: i32| if at == 7 { "nobody".to_owned() } else { format!("customer {}", at % 20) };
    (0..100)
        .map(|at| doc! { "_id": at, "customer": customer(at).as_str(), "lines": [1, 2] })
        .collect()
}

fn fill(serving: &Serving) {
    for (name, documents) in [("customers", customers()), ("orders", orders())] {
        let documents: quire_document::ArrayBuf = documents.iter().collect();
        serving.run(doc! { "insert": name, "documents": &documents, "$db": "shop" });
    }
}

fn dump(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    for (name, documents) in [("customers", customers()), ("orders", orders())] {
        let bytes: Vec<u8> = documents.iter().flat_map(|one| one.as_bytes().to_vec()).collect();
        fs::write(folder.join(format!("{name}.bson")), bytes).unwrap();
        let metadata = r#"{"indexes":[{"v":{"$numberInt":"2"},"key":{"_id":{"$numberInt":"1"}},"name":"_id_"}]}"#;
        fs::write(folder.join(format!("{name}.metadata.json")), metadata).unwrap();
    }
}

fn profiled(words: &[&str]) -> String {
    let output = quire(&[&["profile", "--quiet", "--all"], words].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn a_server_a_directory_and_a_dump_give_one_profile() {
    let directory = Directory::new();
    let (path, folder) = (directory.join("db"), directory.join("shop"));
    dump(&folder);
    let (path, folder) = (path.to_str().unwrap(), folder.to_str().unwrap());
    let serving = Serving::start(&["--dbpath", path]);
    fill(&serving);
    let uri = format!("{}shop", serving.uri());
    let screen = profiled(&["--uri", &uri]);
    assert!(screen.contains("-> customers._id, 5 for one at the median, 5 at most"), "{screen}");
    assert!(screen.contains("1 of 21 values do not exist"), "{screen}");
    assert!(screen.contains("2 elements at the median, 2 at most"), "{screen}");
    let json = profiled(&["--uri", &uri, "--json"]);
    assert!(json.contains("\"version\": 1"), "{json}");
    let schema = profiled(&["--uri", &uri, "--schema", "-c", "orders"]);
    assert_eq!(serving.end().code(), Some(0));
    assert_eq!(profiled(&["--dbpath", path, "-d", "shop"]), screen);
    assert_eq!(profiled(&["--dump", folder]), screen);
    assert_eq!(profiled(&["--dump", folder, "--schema", "-c", "orders"]), schema);
}

#[test]
fn damaged_dumps_and_wrong_options_are_refused() {
    let directory = Directory::new();
    let folder = directory.join("shop");
    dump(&folder);
    let shown = folder.to_str().unwrap();
    let refused = |words: &[&str], code: i32, said: &str| {
        let output = quire(&[&["profile", "--quiet"], words].concat());
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {message}");
        assert!(message.contains(said), "{words:?}: {message}");
    };
    refused(&["--dump", shown, "--schema"], 2, "use --collection");
    refused(&["--dump", shown, "--uri", "mongodb://x"], 2, "--dump excludes");
    refused(&["--dump", shown, "--sample", "0"], 2, "greater than 0");
    refused(&["--dump", shown, "-c", "nope"], 100, "no collection nope");
    refused(&["--dump", directory.join("none").to_str().unwrap()], 100, "is not a folder");
    refused(&["--sampel", "5"], 2, "unexpected option '--sampel'");
    let orders = folder.join("orders.bson");
    let whole = fs::read(&orders).unwrap();
    fs::write(&orders, &whole[..whole.len() - 3]).unwrap();
    refused(&["--dump", shown], 100, "document 100: the file ends within a document");
    let mut absurd = whole.clone();
    absurd[3] = 0x7f;
    fs::write(&orders, absurd).unwrap();
    refused(&["--dump", shown], 100, "document 1: a length of");
    let mut broken = whole;
    broken[4] = 0x77;
    fs::write(&orders, broken).unwrap();
    refused(&["--dump", shown], 100, "document 1: ");
}
