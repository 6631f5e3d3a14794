//! `check` finds problems and repairs those that can be repaired.

use std::sync::Mutex;

use super::*;
use quire_storage::backend::{Backend, RawSnapshot};
use quire_storage::memory::{MemoryBackend, MemorySnapshot};
use quire_storage::{
    Bytes, Caps, Committer, CommitterOptions, Mode, Op, Page, ScanRequest, Size, Snapshot, Space,
    StorageError, begin,
};

fn damaged(damage: impl FnOnce(&mut quire_storage::Txn, &Collection)) -> Arc<Store> {
    let store = store();
    index(&store, "d.t", &doc! { "key": { "a": 1 }, "name": "a" }).unwrap();
    index(&store, "d.t", &doc! { "key": { "u": 1 }, "name": "u", "unique": true }).unwrap();
    for id in 0..20 {
        insert(&store, "d.t", &doc! { "_id": id, "a": id % 3, "u": id }).unwrap();
    }
    assert_clean(&store);
    let collection = collection(&store, "d.t");
    let mut txn = begin(store.engine(), Mode::Write).unwrap();
    damage(&mut txn, &collection);
    txn.commit(CommitOptions::synced()).unwrap();
    store
}

fn keys(txn: &quire_storage::Txn, space: Space, prefix: u32) -> Vec<Bytes> {
    let (start, end) = (prefix.to_be_bytes(), (prefix + 1).to_be_bytes());
    let mut page = Page::default();
    txn.scan(&ScanRequest::new(space, &start, &end), &mut page).unwrap();
    page.rows.into_iter().map(|(key, _)| key).collect()
}

fn repairs(store: &Arc<Store>, findings: usize) {
    assert_eq!(check(store, false).unwrap().findings.len(), findings);
    let report = check(store, true).unwrap();
    assert!(report.findings.len() == findings && report.is_repaired(), "{:#?}", report.findings);
    assert_clean(store);
}

#[test]
fn missing_and_surplus_entries() {
    repairs(
        &damaged(|txn, c| {
            for index in &c.indexes {
                let gone = keys(txn, Space::Idx, index.id.0)[3].clone();
                txn.delete(Space::Idx, gone).unwrap();
            }
        }),
        3,
    );
    repairs(
        &damaged(|txn, c| {
            for index in &c.indexes {
                let key = keys(txn, Space::Idx, index.id.0)[3].clone();
                let value = txn.get(Space::Idx, &key).unwrap().unwrap();
                let mut other = key.to_vec();
                other[5] ^= 1;
                txn.put(Space::Idx, other.into(), value).unwrap();
            }
        }),
        3,
    );
}

#[test]
fn an_index_that_has_lost_everything_is_one_finding() {
    let lose_all = |txn: &mut quire_storage::Txn, c: &Collection| {
        for index in &c.indexes {
            for key in keys(txn, Space::Idx, index.id.0) {
                txn.delete(Space::Idx, key).unwrap();
            }
        }
    };
    let store = damaged(lose_all);
    let found = check(&store, false).unwrap().findings;
    let problems: Vec<_> = found.iter().map(|finding| finding.problem.as_str()).collect();
    let lost = ["_id_", "a", "u"].map(|name| format!("{name} has lost all its 20 entries"));
    assert_eq!(problems, lost);
    repairs(&store, 3);
}

#[test]
fn a_document_that_is_gone() {
    repairs(
        &damaged(|txn, c| {
            let gone = keys(txn, Space::Doc, c.id.0)[7].clone();
            txn.delete(Space::Doc, gone).unwrap();
        }),
        4,
    );
}

#[test]
fn counters_and_strays() {
    repairs(&damaged(|txn, c| txn.add_counts(c.id.0, 3, -1)), 1);
    repairs(
        &damaged(|txn, _| {
            let key = Bytes::from_static(&[0, 0, 9, 9, 1, 2, 3]);
            txn.put(Space::Idx, key, Bytes::from_static(b"x")).unwrap();
            txn.add_counts(777, 3, 30);
        }),
        2,
    );
}

/// Scans begin at the stored mark. A mark that was too high hid documents, and a check did not
/// report it.
#[test]
fn a_low_water_mark_that_hides_documents_is_found() {
    for value in [&10_u64.to_be_bytes()[..], &[1, 2, 3]] {
        let store = damaged(|txn, c| {
            let key = Bytes::copy_from_slice(&quire_catalog::low_water_key(c.id));
            txn.put(Space::Meta, key, Bytes::copy_from_slice(value)).unwrap();
        });
        // The state that a new process sees.
        let reopened = open(Arc::clone(store.engine()));
        let inserted = insert(&reopened, "d.t", &doc! { "_id": 100, "u": 100 });
        match value.len() {
            8 => assert_eq!(all(&reopened, "d.t").len(), 12),
            _ => assert!(inserted.is_err()),
        }
        repairs(&reopened, 1);
        let there = all(&reopened, "d.t").len();
        assert_eq!(there, 20 + usize::from(inserted.is_ok()));
    }
}

/// A damaged log can lose the commit that created a collection, and with it the record of the next
/// number. The repair dropped the documents, and the next collection got their number: its
/// documents were dropped at the next start.
#[test]
fn documents_without_a_catalog_record_become_a_collection_and_keep_their_number() {
    let store = store();
    index(&store, "d.t", &doc! { "key": { "a": 1 }, "name": "a" }).unwrap();
    for id in 0..20 {
        insert(&store, "d.t", &doc! { "_id": id, "a": id % 3 }).unwrap();
    }
    let lost = collection(&store, "d.t");
    let mut txn = begin(store.engine(), Mode::Write).unwrap();
    txn.delete(Space::Meta, Bytes::from_static(b"f")).unwrap();
    txn.delete(Space::Meta, Bytes::copy_from_slice(&quire_catalog::collection_key(lost.id)))
        .unwrap();
    txn.add_counts(lost.id.0, 100, 1);
    txn.commit(CommitOptions::synced()).unwrap();
    // The state that a new process would see.
    let reopened = open(Arc::clone(store.engine()));
    assert!(reopened.catalog().lookup(&ns("d.t")).is_none());
    let fresh = collection(&reopened, "d.fresh");
    let used: Vec<u32> = lost.indexes.iter().map(|index| index.id.0).chain([lost.id.0]).collect();
    assert!(fresh.id.0 > *used.iter().max().unwrap(), "{fresh:?}");
    insert(&reopened, "d.fresh", &doc! { "_id": 1 }).unwrap();
    assert_eq!(check(&reopened, false).unwrap().findings.len(), 3);
    let report = check(&reopened, true).unwrap();
    assert!(report.is_repaired(), "{:#?}", report.findings);
    assert_clean(&reopened);
    let name = format!("recovered.collection_{}", lost.id.0);
    assert_eq!(all(&reopened, &name).len(), 20);
    let recovered = collection(&reopened, &name);
    assert_eq!((recovered.id, reopened.counts(&recovered).documents), (lost.id, 20));
    let again = open(Arc::clone(reopened.engine()));
    assert_eq!((all(&again, &name).len(), all(&again, "d.fresh").len()), (20, 1));
    insert(&again, &name, &doc! { "_id": "new" }).unwrap();
    assert_clean(&again);
}

#[test]
fn a_drop_that_waits_for_a_reader_leaves_no_strays() {
    let store = damaged(|_, _| ());
    let reader = store.engine().snapshot().unwrap();
    store.drop_collection(&ns("d.t"), &CommitOptions::synced()).unwrap();
    assert_clean(&store);
    assert_eq!(store.engine().dropped_ranges().len(), 4);
    drop(reader);
    assert_clean(&store);
    assert_eq!(store.engine().dropped_ranges().len(), 0);
}

/// Only the writer's own check of the catalog detects this: the drop came first, so there is no
/// conflict.
#[test]
fn no_write_reaches_a_dropped_collection() {
    let store = damaged(|_, _| ());
    let stale = collection(&store, "d.t");
    store.drop_collection(&ns("d.t"), &CommitOptions::synced()).unwrap();
    collection(&store, "d.t");
    let doc = doc! { "_id": 1 };
    let written = store.write(&CommitOptions::synced(), &Interrupt::new(), |writer| {
        writer.insert(&stale, doc.as_doc()).map(|_| ())
    });
    let error = written.unwrap_err();
    assert_eq!(error.code(), quire_error::ErrorCode::NamespaceNotFound);
    assert!(error.message().ends_with("was dropped meanwhile"), "{}", error.message());
    assert_clean(&store);
}

/// The error message said that the collection had been dropped.
#[test]
fn no_write_reaches_a_renamed_collection_by_its_old_name() {
    let store = damaged(|_, _| ());
    let stale = collection(&store, "d.t");
    let (from, to) = (ns("d.t"), ns("d.new"));
    let rename = quire_collections::Rename {
        from,
        to,
        drop_target: false,
        from_uuid: None,
        target_uuid: None,
    };
    store.rename_collection(&rename, &Interrupt::new(), &CommitOptions::synced()).unwrap();
    let doc = doc! { "_id": 100 };
    let written = store.write(&CommitOptions::synced(), &Interrupt::new(), |writer| {
        writer.insert(&stale, doc.as_doc()).map(|_| ())
    });
    let error = written.unwrap_err();
    assert_eq!(error.code(), quire_error::ErrorCode::NamespaceNotFound);
    assert_eq!(error.message(), "Collection d.t was renamed to d.new meanwhile");
    assert_clean(&store);
}

#[test]
fn a_value_that_is_not_a_document_is_reported_and_kept() {
    let store = damaged(|txn, c| {
        let key = keys(txn, Space::Doc, c.id.0)[7].clone();
        let mut bytes = txn.get(Space::Doc, &key).unwrap().unwrap().to_vec();
        let at = bytes.len() - 6;
        bytes[at] = 0x77;
        txn.put(Space::Doc, key, bytes.into()).unwrap();
    });
    let report = check(&store, true).unwrap();
    assert_eq!(report.findings.len(), 1, "{:#?}", report.findings);
    assert!(!report.is_repaired());
    assert_eq!(report.documents, 20);
}

/// The keys of damaged blocks: the first and the last of each.
type Blocks = Arc<Mutex<Vec<(Space, Bytes, Bytes)>>>;

/// An engine in memory with damaged blocks.
struct Damaged(MemoryBackend, Blocks);

struct DamagedSnapshot(MemorySnapshot, Blocks);

fn hits(blocks: &Blocks, space: Space, key: &[u8]) -> quire_storage::Result<()> {
    let is_in = |(of, first, last): &(Space, Bytes, Bytes)| {
        *of == space && &first[..] <= key && key <= &last[..]
    };
    match blocks.lock().unwrap().iter().any(is_in) {
        true => Err(StorageError::Corruption { place: "a block".into() }),
        false => Ok(()),
    }
}

impl RawSnapshot for DamagedSnapshot {
    fn get(&self, space: Space, key: &[u8]) -> quire_storage::Result<Option<Bytes>> {
        hits(&self.1, space, key)?;
        self.0.get(space, key)
    }

    fn scan(&self, request: &ScanRequest<'_>, page: &mut Page) -> quire_storage::Result<()> {
        hits(&self.1, request.space, request.start)?;
        self.0.scan(request, page)?;
        page.rows.iter().try_for_each(|(key, _)| hits(&self.1, request.space, key))
    }
}

impl Backend for Damaged {
    type Snap = DamagedSnapshot;

    fn caps(&self) -> &Caps {
        self.0.caps()
    }

    fn snapshot(&self) -> quire_storage::Result<DamagedSnapshot> {
        Ok(DamagedSnapshot(self.0.snapshot()?, Arc::clone(&self.1)))
    }

    fn apply(&self, ops: Vec<Op>, sync: bool) -> quire_storage::Result<()> {
        self.0.apply(ops, sync)
    }

    fn sync(&self) -> quire_storage::Result<()> {
        self.0.sync()
    }

    fn approximate_size(&self, space: Space, a: &[u8], b: &[u8]) -> quire_storage::Result<Size> {
        self.0.approximate_size(space, a, b)
    }
}

/// A check ended at the first unreadable block of documents.
#[test]
fn a_check_goes_on_behind_damaged_blocks() {
    let blocks = Blocks::default();
    let backend = Damaged(MemoryBackend::default(), Arc::clone(&blocks));
    let engine = Committer::open(backend, CommitterOptions::default()).unwrap();
    let store = open(Arc::new(engine));
    index(&store, "d.t", &doc! { "key": { "a": 1 }, "name": "a" }).unwrap();
    index(&store, "d.t", &doc! { "key": { "u": 1 }, "name": "u", "unique": true }).unwrap();
    for id in 0..1500 {
        insert(&store, "d.t", &doc! { "_id": id, "a": id % 3, "u": id }).unwrap();
    }
    insert(&store, "d.other", &doc! { "_id": 1 }).unwrap();
    let damaged = collection(&store, "d.t");
    let block = |first: u64, last: u64| {
        let key = |id: u64| [&damaged.id.to_bytes()[..], &id.to_be_bytes()].concat().into();
        blocks.lock().unwrap().push((Space::Doc, key(first), key(last)));
    };
    block(1, 3);
    block(201, 300);
    block(310, 310);
    block(1500, 1600);
    let mut txn = begin(store.engine(), Mode::Write).unwrap();
    let gone = keys(&txn, Space::Idx, damaged.indexes[2].id.0)[700].clone();
    txn.delete(Space::Idx, gone).unwrap();
    txn.commit(CommitOptions::synced()).unwrap();
    let unreadable = ["1 to 3", "201 to 300", "310 to 310", "1500 to 1600"];
    let problems = |report: quire_collections::Report| -> Vec<String> {
        assert_eq!(report.documents, 1500 - 3 - 100 - 1 - 1 + 1);
        report.findings.into_iter().map(|found| found.problem).collect()
    };
    let mut expected: Vec<_> =
        unreadable.iter().map(|which| format!("records {which} cannot be read")).collect();
    expected.push("record 701 lacks an entry in u".into());
    assert_eq!(problems(check(&store, false).unwrap()), expected);
    let repaired = check(&store, true).unwrap();
    assert_eq!(repaired.findings.iter().filter(|found| found.repaired).count(), 1);
    expected.pop();
    assert_eq!(problems(check(&store, false).unwrap()), expected);
    // Nothing unreadable was treated as deleted.
    blocks.lock().unwrap().clear();
    assert_clean(&store);
    let of_index = damaged.indexes[1].id.to_bytes();
    let end = [&of_index[..], &[0xFF]].concat().into();
    blocks.lock().unwrap().push((Space::Idx, Bytes::copy_from_slice(&of_index), end));
    let found = check(&store, true).unwrap().findings;
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0].problem, "a cannot be read");
}

/// One TTL index with an unreadable document ended the pass over all other indexes.
#[test]
fn a_ttl_index_that_fails_does_not_end_the_pass_for_the_others() {
    let store = store();
    for name in ["d.a", "d.b", "d.c"] {
        let keys = doc! { "key": { "at": 1 }, "name": "at", "expireAfterSeconds": 60 };
        index(&store, name, &keys).unwrap();
        insert(&store, name, &doc! { "_id": 1, "at": quire_document::Value::Date(5) }).unwrap();
    }
    let damaged = collection(&store, "d.b");
    let mut txn = begin(store.engine(), Mode::Write).unwrap();
    let key = keys(&txn, Space::Doc, damaged.id.0)[0].clone();
    txn.put(Space::Doc, key, Bytes::from_static(b"x")).unwrap();
    txn.commit(CommitOptions::buffered()).unwrap();
    let expired = quire_collections::expire_documents(&store, 100_000, &Interrupt::new()).unwrap();
    assert_eq!(expired.deleted, 2);
    let failed: Vec<_> =
        expired.failures.iter().map(|failure| failure.namespace.as_str()).collect();
    assert_eq!(failed, ["d.b"]);
}
