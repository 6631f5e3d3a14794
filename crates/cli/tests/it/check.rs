//! `quire check` of a directory whose tables are damaged.

use crate::{Directory, Serving, quire, text};
use quire_document::{ArrayBuf, doc};
use std::path::{Path, PathBuf};

const DOCUMENTS: i32 = 3000;

fn tables(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let (directories, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let is_table = |path: &PathBuf| path.parent().unwrap().ends_with("tables");
    files.into_iter().filter(is_table).chain(directories.iter().flat_map(|d| tables(d))).collect()
}

/// The check ended at the first unreadable block of documents, and reported nothing else.
#[test]
fn a_damaged_block_of_documents_loses_only_its_documents() {
    let directory = Directory::new();
    let path = directory.join("db");
    let serving = Serving::start(&["--dbpath", path.to_str().unwrap()]);
    let mut words = quire_storage::rng::Rng::new(1);
    for from in (0..DOCUMENTS).step_by(1000) {
        let documents = ArrayBuf::build(|list| {
            for id in from..from + 1000 {
                let text: String = (0..20).map(|_| format!("{:x}", words.next_u64())).collect();
                list.document().append("_id", id).append("text", text.as_str());
            }
        });
        serving.run(doc! { "insert": "t", "documents": &documents, "$db": "test" });
    }
    serving.run(doc! { "insert": "other", "documents": [{ "_id": 1 }], "$db": "test" });
    assert_eq!(serving.end().code(), Some(0));
    let found = tables(&path.join("data/keyspaces/2"));
    let table = found.iter().max_by_key(|path| path.metadata().unwrap().len()).unwrap();
    let mut bytes = std::fs::read(table).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    std::fs::write(table, bytes).unwrap();
    let shown = path.to_str().unwrap();
    let output = quire(&["check", shown]);
    let (said, failed) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{said}{failed}");
    let (file, records) = said.trim().split_once('\n').unwrap();
    assert!(file.starts_with(table.to_str().unwrap()) && file.contains("at byte"), "{said}");
    let ids = records.strip_prefix("test.t: records ").unwrap();
    let (first, last) = ids.strip_suffix(" cannot be read").unwrap().split_once(" to ").unwrap();
    let lost = last.parse::<i32>().unwrap() - first.parse::<i32>().unwrap() + 1;
    assert!((10..300).contains(&lost), "{said}");
    // Beside the documents above there are one in `local.startup_log` and one in `admin.system.version`.
    let (left, ids) = (DOCUMENTS + 3 - lost, DOCUMENTS + 3);
    let left = format!("5 collections, {left} documents, {ids} ");
    assert!(failed.contains(&left), "{failed}");

    let output = quire(&["check", "--repair", shown]);
    let (said, failed) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{said}{failed}");
    // A scan that ends just before the damaged block, or begins after it, may read it too.
    let told =
        said.lines().find_map(|line| line.strip_prefix("test.t: ")?.split_once(" documents"));
    let repaired: i32 = told.unwrap().0.parse().unwrap();
    assert!((lost - 8..=lost).contains(&repaired), "{said}");
    assert!(said.contains("data.damaged-doc-0"), "{said}");
    let output = quire(&["check", shown]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
    let serving = Serving::start(&["--dbpath", shown]);
    let counted = serving.run(doc! { "count": "t", "$db": "test" });
    let left = DOCUMENTS - repaired;
    assert!(matches!(counted.get("n"), Some(quire_document::Value::Int32(n)) if n == left));
}

/// After a killed repair the database opened as a healthy one.
#[test]
fn a_repair_that_was_killed_is_not_served() {
    let directory = Directory::new();
    let path = directory.join("db");
    let shown = path.to_str().unwrap();
    let serving = Serving::start(&["--dbpath", shown]);
    serving.run(doc! { "insert": "t", "documents": [{ "_id": 1 }], "$db": "test" });
    assert_eq!(serving.end().code(), Some(0));
    std::fs::write(path.join("REPAIR"), "").unwrap();
    let refused = quire(&["serve", "--dbpath", shown, "--port", "0"]);
    let why = text(&refused.stderr);
    assert!(refused.status.code() == Some(100) && why.contains("check --repair"), "{why}");
    assert_eq!(quire(&["check", shown]).status.code(), Some(1));
    assert_eq!(quire(&["check", "--repair", shown]).status.code(), Some(0));
    let serving = Serving::start(&["--dbpath", shown]);
    assert_eq!(serving.end().code(), Some(0));
}
