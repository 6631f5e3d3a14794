//! `check` finds what is wrong and mends what can be mended.

use super::*;
use quire_storage::{Bytes, Mode, Page, ScanRequest, Snapshot, Space, begin};

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

fn mends(store: &Arc<Store>, findings: usize) {
    assert_eq!(check(store, false).unwrap().findings.len(), findings);
    let report = check(store, true).unwrap();
    assert!(report.findings.len() == findings && report.is_mended(), "{:#?}", report.findings);
    assert_clean(store);
}

#[test]
fn missing_and_surplus_entries() {
    mends(
        &damaged(|txn, c| {
            for index in &c.indexes {
                let gone = keys(txn, Space::Idx, index.id.0)[3].clone();
                txn.delete(Space::Idx, gone).unwrap();
            }
        }),
        3,
    );
    mends(
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
    mends(&store, 3);
}

#[test]
fn a_document_that_is_gone() {
    mends(
        &damaged(|txn, c| {
            let gone = keys(txn, Space::Doc, c.id.0)[7].clone();
            txn.delete(Space::Doc, gone).unwrap();
        }),
        4,
    );
}

#[test]
fn counters_and_strays() {
    mends(&damaged(|txn, c| txn.add_counts(c.id.0, 3, -1)), 1);
    mends(
        &damaged(|txn, _| {
            let key = Bytes::from_static(&[0, 0, 9, 9, 1, 2, 3]);
            txn.put(Space::Doc, key.clone(), Bytes::from_static(b"x")).unwrap();
            txn.put(Space::Idx, key, Bytes::from_static(b"x")).unwrap();
        }),
        2,
    );
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

/// Nothing but the writer's own look at the catalog finds that out: the drop came first, so there
/// is no conflict.
#[test]
fn nobody_writes_to_a_collection_after_its_drop() {
    let store = damaged(|_, _| ());
    let stale = collection(&store, "d.t");
    store.drop_collection(&ns("d.t"), &CommitOptions::synced()).unwrap();
    collection(&store, "d.t");
    let doc = doc! { "_id": 1 };
    let written = store.write(&CommitOptions::synced(), &Interrupt::new(), |writer| {
        writer.insert(&stale, doc.as_doc()).map(|_| ())
    });
    assert_eq!(written.unwrap_err().code(), quire_error::ErrorCode::NamespaceNotFound);
    assert_clean(&store);
}

#[test]
fn a_document_that_is_none_is_told_and_kept() {
    let store = damaged(|txn, c| {
        let key = keys(txn, Space::Doc, c.id.0)[7].clone();
        let mut bytes = txn.get(Space::Doc, &key).unwrap().unwrap().to_vec();
        let at = bytes.len() - 6;
        bytes[at] = 0x77;
        txn.put(Space::Doc, key, bytes.into()).unwrap();
    });
    let report = check(&store, true).unwrap();
    assert_eq!(report.findings.len(), 1, "{:#?}", report.findings);
    assert!(!report.is_mended());
    assert_eq!(report.documents, 20);
}
