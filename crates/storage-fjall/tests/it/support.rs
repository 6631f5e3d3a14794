//! What the tests here share: records, images of a directory as a crash leaves it.

use std::path::Path;
use std::sync::Arc;

use quire_storage::{
    Bytes, CommitOptions, Committed, Engine, Mode, Page, ScanRequest, Snapshot, Space, begin,
};

/// The key of record `number` in collection `collection`.
pub fn key(collection: u32, number: u64) -> Bytes {
    let mut key = collection.to_be_bytes().to_vec();
    key.extend_from_slice(&number.to_be_bytes());
    Bytes::from(key)
}

/// A document of this length that compression cannot shrink much.
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

/// Inserts many in few commits.
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

/// The numbers of a collection's records.
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

/// Copies a directory as it is now: what a crash of the process leaves.
pub fn image(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            image(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}
