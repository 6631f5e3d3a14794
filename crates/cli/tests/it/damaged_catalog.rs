//! A flipped bit in the log of a killed server, also in batches that change the catalog.
//! `QUIRE_CRASH_ROUNDS=200` for the long run.

use crate::{Directory, Serving, quire, text};
use quire_document::{Value, doc};
use quire_storage::rng::Rng;
use rustix::process::Signal;
use std::path::Path;

const COLLECTIONS: i32 = 4;
const DOCUMENTS: i32 = 20;
/// The collection that is created last. What its creation says of it and of the next number stands
/// nowhere else.
const LAST: &str = "lonely";

/// Creates, fills, indexes, renames and drops collections, one document in each commit.
fn fill(path: &Path) {
    let serving = Serving::start(&["--dbpath", path.to_str().unwrap()]);
    for number in 0..COLLECTIONS {
        let name = format!("c{number}");
        for id in 0..DOCUMENTS {
            let document = doc! { "_id": id, "a": id % 3, "text": "x".repeat(50).as_str() };
            serving.run(doc! { "insert": name.as_str(), "documents": [&document], "$db": "test" });
            if id == DOCUMENTS / 2 {
                let indexes = [doc! { "key": { "a": 1 }, "name": "a_1" }];
                serving.run(doc! {
                    "createIndexes": name.as_str(), "indexes": [&indexes[0]], "$db": "test",
                });
            }
        }
    }
    serving.run(doc! { "renameCollection": "test.c2", "to": "test.renamed", "$db": "admin" });
    serving.run(doc! { "drop": "c1", "$db": "test" });
    for id in 0..DOCUMENTS {
        serving.run(doc! { "insert": LAST, "documents": [{ "_id": id }], "$db": "test" });
    }
    serving.signal(Signal::KILL);
}

/// Returns the documents of all collections.
fn documents(serving: &Serving) -> i32 {
    let mut sum = 0;
    for database in ["test", "recovered"] {
        let listed = serving.run(doc! { "listCollections": 1, "nameOnly": true, "$db": database });
        let cursor = listed.get("cursor").and_then(|cursor| cursor.as_document()).unwrap();
        let batch = cursor.get("firstBatch").and_then(|batch| batch.as_array()).unwrap();
        for collection in batch.iter() {
            let Value::Document(collection) = collection else { panic!("{listed:?}") };
            let Some(Value::String(name)) = collection.get("name") else { panic!("{listed:?}") };
            let counted = serving.run(doc! { "count": name, "$db": database });
            let Some(Value::Int32(count)) = counted.get("n") else { panic!("{counted:?}") };
            sum += count;
        }
    }
    sum
}

fn insert_new(serving: &Serving) {
    for id in 0..10 {
        let inserted =
            serving.run(doc! { "insert": "new", "documents": [{ "_id": id }], "$db": "test" });
        assert!(matches!(inserted.get("n"), Some(Value::Int32(1))), "{inserted:?}");
    }
}

/// A repair dropped the documents of a collection whose record was lost, and reused its number:
/// later acknowledged writes were dropped at the next start.
#[test]
fn a_flipped_bit_in_the_log_loses_one_batch_and_nothing_later() {
    let rounds = std::env::var("QUIRE_CRASH_ROUNDS").ok().and_then(|rounds| rounds.parse().ok());
    let directory = Directory::new();
    let pristine = directory.join("pristine");
    fill(&pristine);
    let log = std::fs::read(pristine.join("data/0.jnl")).unwrap();
    let used = log.iter().rposition(|byte| *byte != 0).unwrap() as u64;
    let creation = log.windows(LAST.len()).position(|bytes| bytes == LAST.as_bytes()).unwrap();
    for seed in 0..=rounds.unwrap_or(4) {
        let mut rng = Rng::new(seed);
        let path = directory.join(&format!("db{seed}"));
        copy(&pristine, &path);
        let random = rng.below(used) as usize;
        let (at, mut bytes) = (if seed == 0 { creation } else { random }, log.clone());
        bytes[at] ^= 1 << rng.below(8);
        std::fs::write(path.join("data/0.jnl"), bytes).unwrap();
        let shown = path.to_str().unwrap();
        let checked = quire(&["check", shown]);
        assert_eq!(checked.status.code(), Some(1), "seed {seed}, byte {at}: a check sees nothing");
        let repaired = quire(&["check", "--repair", shown]);
        let said = text(&repaired.stdout) + &text(&repaired.stderr);
        assert_eq!(repaired.status.code(), Some(0), "seed {seed}, byte {at}: {said}");
        let checked = quire(&["check", shown]);
        assert_eq!(checked.status.code(), Some(0), "{seed}: {}", text(&checked.stdout));
        let serving = Serving::start(&["--dbpath", shown]);
        let there = documents(&serving);
        let wanted = COLLECTIONS * DOCUMENTS;
        assert!(there >= wanted - 1, "seed {seed}, byte {at}: {there} of {wanted}; {said}");
        insert_new(&serving);
        serving.signal(Signal::KILL);
        drop(serving);
        let serving = Serving::start(&["--dbpath", shown]);
        assert_eq!(documents(&serving), there + 10, "seed {seed}, byte {at}");
        drop(serving);
        std::fs::remove_dir_all(path).unwrap();
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(std::fs::copy(entry.path(), target).unwrap()),
        }
    }
}
