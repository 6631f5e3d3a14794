//! Helpers of the tests: records, and copies of a directory as a crash leaves it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use quire_storage::{
    Bytes, CommitOptions, Committed, Engine, Maintenance, Mode, Page, ScanRequest, Snapshot, Space,
    begin,
};
use quire_storage_lsm::{LsmOptions, Opened, open};
use tempfile::TempDir;

/// Returns the key of record `number` in collection `collection`.
pub fn key(collection: u32, number: u64) -> Bytes {
    let mut key = collection.to_be_bytes().to_vec();
    key.extend_from_slice(&number.to_be_bytes());
    Bytes::from(key)
}

/// Returns a document of this length that hardly compresses.
pub fn document(number: u64, length: usize) -> Bytes {
    let mut rng = quire_storage::rng::Rng::new(number);
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        bytes.extend_from_slice(&rng.next_u64().to_le_bytes());
    }
    bytes.truncate(length);
    Bytes::from(bytes)
}

/// Inserts a document with its index entry, its change record and the counters.
pub fn insert(
    engine: &Arc<dyn Engine>,
    collection: u32,
    number: u64,
    document: Bytes,
    options: CommitOptions,
) -> Committed {
    let mut txn = begin(engine, Mode::Write).unwrap();
    let bytes = i64::try_from(document.len()).unwrap();
    txn.insert(Space::Doc, key(collection, number), document, 0).unwrap();
    txn.put_entry(Space::Idx, key(collection, number), Bytes::new()).unwrap();
    txn.append_log(key(collection, number));
    txn.add_counts(collection, 1, bytes);
    txn.commit(options).unwrap()
}

/// Inserts `documents` documents in few commits.
pub fn fill(engine: &Arc<dyn Engine>, collection: u32, documents: u64, length: usize) {
    for chunk in 0..documents.div_ceil(1000) {
        let mut txn = begin(engine, Mode::Write).unwrap();
        for number in chunk * 1000..documents.min((chunk + 1) * 1000) {
            let document = document(number, length);
            txn.add_counts(collection, 1, i64::try_from(length).unwrap());
            txn.put_entry(Space::Doc, key(collection, number), document).unwrap();
        }
        txn.commit(CommitOptions::buffered()).unwrap();
    }
}

/// Returns the numbers of a collection's records.
pub fn numbers(snapshot: &dyn Snapshot, space: Space, collection: u32) -> Vec<u64> {
    let (start, end) = (collection.to_be_bytes(), (collection + 1).to_be_bytes());
    let request = ScanRequest::new(space, &start, &end).keys_only();
    let (mut out, mut page) = (Vec::new(), Page::default());
    let mut resume: Option<Bytes> = None;
    loop {
        let step = resume.as_deref().map_or(request, |key| request.resumed(key));
        snapshot.scan(&step, &mut page).unwrap();
        let number = |key: &Bytes| u64::from_be_bytes(key[4..12].try_into().unwrap());
        out.extend(page.rows.iter().map(|(key, _)| number(key)));
        match page.resume.take() {
            Some(key) => resume = Some(key),
            None => return out,
        }
    }
}

/// The number of documents that the tests of damage write to the tables, and to the log.
pub const SMALL: u64 = 300;

/// Returns a database whose rows are all in tables.
pub fn flushed() -> TempDir {
    let directory = TempDir::new().unwrap();
    let engine = open(directory.path(), LsmOptions::default()).unwrap().engine;
    for number in 0..SMALL {
        insert(&engine, 1, number, document(number, 400), CommitOptions::buffered());
    }
    engine.maintenance(Maintenance::Flush).unwrap();
    engine.close().unwrap();
    directory
}

/// Returns a database after a crash, with documents in tables and in the log, and an unused table.
pub fn crashed_with_tables_and_log() -> TempDir {
    let live = TempDir::new().unwrap();
    let engine = open(live.path(), LsmOptions::default()).unwrap().engine;
    for number in 0..2 * SMALL {
        insert(&engine, 1, number, document(number, 400), CommitOptions::buffered());
        if number == SMALL {
            engine.maintenance(Maintenance::Flush).unwrap();
        }
    }
    let directory = TempDir::new().unwrap();
    image(live.path(), directory.path());
    engine.close().unwrap();
    std::fs::write(directory.path().join("data/keyspaces/2/tables/999"), "left").unwrap();
    std::fs::write(directory.path().join("data/keyspaces/2/v999"), "left").unwrap();
    directory
}

/// Opens a directory and repairs it.
pub fn repair(directory: &Path) -> Opened {
    open(directory, LsmOptions { repair: true, ..LsmOptions::default() }).unwrap()
}

/// Returns every file below a directory with its content, and every directory.
pub fn content_of(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(content_of(&path));
            found.insert(path, Vec::new());
        } else {
            found.insert(path.clone(), std::fs::read(&path).unwrap());
        }
    }
    found
}

/// Copies a directory as it is now, which is the state that a crash of the process leaves. Copies
/// it again if a background thread has changed it meanwhile.
pub fn image(from: &Path, to: &Path) {
    loop {
        let before = lengths(from);
        if copy(from, to).is_ok() && lengths(from) == before {
            return;
        }
        std::fs::remove_dir_all(to).unwrap();
    }
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// Returns every file below a directory with its length and the time of its last change. A file
/// that is removed meanwhile is left out.
fn lengths(directory: &Path) -> BTreeMap<PathBuf, (u64, Option<SystemTime>)> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(directory).unwrap().flatten() {
        let path = entry.path();
        let Ok(metadata) = path.metadata() else { continue };
        if metadata.is_dir() {
            found.extend(lengths(&path));
        }
        found.insert(path, (metadata.len(), metadata.modified().ok()));
    }
    found
}
