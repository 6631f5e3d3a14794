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

/// It ended at the first block of documents that it could not read, and told of nothing else.
#[test]
fn a_damaged_block_of_documents_costs_only_its_own() {
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
    for repair in [false, true] {
        let words = ["check", "--repair", path.to_str().unwrap()];
        let words = if repair { &words[..] } else { &[words[0], words[2]][..] };
        let output = quire(words);
        let (said, failed) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(1), "{said}{failed}");
        assert_eq!(said.lines().count(), 1, "{said}");
        let ids = said.trim().strip_prefix("test.t: records ").unwrap();
        let (first, last) =
            ids.strip_suffix(" cannot be read").unwrap().split_once(" to ").unwrap();
        let lost = last.parse::<i32>().unwrap() - first.parse::<i32>().unwrap() + 1;
        assert!((10..300).contains(&lost), "{said}");
        let left = format!("2 collections, {} documents, {} ", DOCUMENTS + 1 - lost, DOCUMENTS + 1);
        assert!(failed.contains(&left), "{failed}");
    }
}
