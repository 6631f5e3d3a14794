//! Building all indexes of a collection again.

use super::*;
use quire_collections::DropIndexes;
use quire_error::ErrorCode;
use std::sync::atomic::{AtomicBool, Ordering};

fn rebuild(store: &Arc<Store>) -> Result<quire_collections::RebuiltIndexes> {
    store.rebuild_indexes(&ns("d.t"), &Interrupt::new(), &CommitOptions::buffered())
}

fn specs(store: &Arc<Store>) -> Vec<DocBuf> {
    collection(store, "d.t").indexes.iter().map(|index| index.to_document()).collect()
}

/// Returns a collection with an index of each kind, and 40 documents.
fn filled() -> Arc<Store> {
    let store = store();
    for spec in [
        doc! { "key": { "a": 1 }, "name": "a" },
        doc! { "key": { "u": -1 }, "name": "u", "unique": true, "sparse": true },
        doc! { "key": { "p": 1 }, "name": "p", "prepareUnique": true, "hidden": true },
        doc! { "key": { "u": "hashed" }, "name": "h" },
        doc! { "key": { "$**": 1 }, "name": "w" },
        doc! { "key": { "at": 1 }, "name": "t", "expireAfterSeconds": 100,
        "partialFilterExpression": { "a": { "$gt": 3 } } },
    ] {
        index(&store, "d.t", &spec).unwrap();
    }
    for id in 0..40 {
        let doc = doc! { "_id": id, "a": (id % 7), "u": id, "p": id, "b": { "c": [id, 1] } };
        insert(&store, "d.t", &doc).unwrap();
    }
    store
}

#[test]
fn every_index_is_built_again_under_the_same_specification() {
    let store = filled();
    let before = specs(&store);
    let numbers = |store| -> Vec<u32> {
        collection(store, "d.t").indexes.iter().map(|index| index.id.0).collect()
    };
    let old = numbers(&store);
    let rebuilt = rebuild(&store).unwrap();
    assert_eq!((rebuilt.before, rebuilt.specs), (7, before.clone()));
    assert_eq!(specs(&store), before);
    assert!(numbers(&store).iter().all(|number| !old.contains(number)));
    assert_clean(&store);
    let code = |doc: DocBuf| insert(&store, "d.t", &doc).unwrap_err().code();
    for taken in
        [doc! { "_id": 7 }, doc! { "_id": 50, "u": 7, "p": 50 }, doc! { "_id": 50, "p": 7 }]
    {
        assert_eq!(code(taken), ErrorCode::DuplicateKey);
    }
    delete(&store, "d.t", 39).unwrap();
    insert(&store, "d.t", &doc! { "_id": 39, "p": 100 }).unwrap();
    assert_clean(&store);
}

/// A writer knows the greatest `_id` of the index and does not search for greater ones. The
/// greatest key of the replaced index is below every key of the new one.
#[test]
fn duplicates_of_id_are_refused_by_a_new_index() {
    let store = filled();
    let all_at_once = |ids: &[i32]| {
        let interrupt = Interrupt::new();
        let write = store.write(&CommitOptions::buffered(), &interrupt, |writer| {
            let collection = writer.catalog().lookup(&ns("d.t")).cloned().unwrap();
            for id in ids {
                writer.insert(&collection, doc! { "_id": *id, "p": *id }.as_doc())?;
            }
            Ok(())
        });
        write.map(|_| ())
    };
    all_at_once(&[100, 101, 102]).unwrap();
    for round in 0..3 {
        rebuild(&store).unwrap();
        for taken in [[200, 201, 5], [200, 201, 102], [5, 6, 7]] {
            let refused = all_at_once(&taken).unwrap_err();
            assert_eq!(refused.code(), ErrorCode::DuplicateKey, "{round}");
        }
        let new = 110 + 3 * round;
        all_at_once(&[new, new + 2, new + 1]).unwrap();
        assert_eq!(all_at_once(&[new + 200, new]).unwrap_err().code(), ErrorCode::DuplicateKey);
        assert_clean(&store);
    }
    let empty = crate::store();
    collection(&empty, "d.t");
    rebuild(&empty).unwrap();
    insert(&empty, "d.t", &doc! { "_id": 1 }).unwrap();
    assert_clean(&empty);
}

/// An index stays multikey even without an array; an index that is built again does not.
#[test]
fn an_index_is_no_longer_multikey_after_a_rebuild() {
    let store = filled();
    insert(&store, "d.t", &doc! { "_id": 100, "a": [1, 2] }).unwrap();
    let is_multikey =
        || collection(&store, "d.t").index_by_name("a").is_some_and(|index| index.is_multikey());
    delete(&store, "d.t", 100).unwrap();
    assert!(is_multikey());
    rebuild(&store).unwrap();
    assert!(!is_multikey());
    insert(&store, "d.t", &doc! { "_id": 100, "a": [1, 2], "p": 100 }).unwrap();
    assert!(is_multikey());
    assert_clean(&store);
}

#[test]
fn indexes_are_built_again_while_others_write() {
    let store = filled();
    for id in 1000..3000 {
        insert(&store, "d.t", &doc! { "_id": id, "a": id, "p": id, "u": id }).unwrap();
    }
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let (store, done) = (&store, &done);
            scope.spawn(move || {
                for round in 0.. {
                    if done.load(Ordering::SeqCst) && round > 300 {
                        break;
                    }
                    // The same `_id`s are inserted and deleted repeatedly.
                    let id = 10_000 * (thread + 1) + round % 50;
                    let doc = doc! { "_id": id, "a": [round, id], "p": (-id), "u": (-id) };
                    insert(store, "d.t", &doc).unwrap();
                    let twice = doc! { "_id": id };
                    let refused = insert(store, "d.t", &twice).unwrap_err();
                    assert_eq!(refused.code(), ErrorCode::DuplicateKey);
                    delete(store, "d.t", id).unwrap();
                }
            });
        }
        for _ in 0..5 {
            rebuild(&store).unwrap();
            assert_clean(&store);
        }
        done.store(true, Ordering::SeqCst);
    });
    assert_eq!(all(&store, "d.t").len(), 2040);
    assert_clean(&store);
}

#[test]
fn an_index_that_is_dropped_meanwhile_stays_dropped() {
    let store = filled();
    let weak = Arc::downgrade(&store);
    let once = std::sync::Once::new();
    store
        .observe_catalog(Box::new(move |changes| {
            let starts =
                |change: &_| matches!(change, quire_collections::CatalogChange::IndexStarted(..));
            let Some(store) = weak.upgrade().filter(|_| changes.iter().any(starts)) else { return };
            once.call_once(|| {
                std::thread::spawn(move || {
                    let which = DropIndexes::Name("a".to_owned());
                    store.drop_indexes(&ns("d.t"), &which, &CommitOptions::buffered()).unwrap();
                })
                .join()
                .unwrap();
            });
        }))
        .unwrap();
    assert_eq!(rebuild(&store).unwrap_err().code(), ErrorCode::IndexBuildAborted);
    assert_eq!(specs(&store).len(), 6);
    assert_clean(&store);
    assert_eq!(rebuild(&store).unwrap().before, 6);
    assert_eq!(rebuild(&crate::store()).unwrap_err().code(), ErrorCode::NamespaceNotFound);
}
