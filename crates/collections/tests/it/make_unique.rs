//! Indexes with `prepareUnique`, and their conversion to unique ones.

use super::*;
use quire_collections::{DropIndexes, IndexChoice, MakeUnique, ModifyCollection, ModifyIndex};
use quire_document::Value;
use quire_error::ErrorCode;
use quire_storage::{Crash, Faults, SimulatedDisk};

fn a() -> IndexChoice {
    IndexChoice::Name("a".to_owned())
}

fn prepare(store: &Arc<Store>, prepare_unique: bool) {
    let change = ModifyIndex {
        index: a(),
        hidden: None,
        prepare_unique: Some(prepare_unique),
        expire_after_seconds: None,
    };
    let change = ModifyCollection { index: Some(change), ..ModifyCollection::default() };
    store.modify_collection(&ns("d.t"), &change, &CommitOptions::buffered()).unwrap();
}

fn convert(store: &Arc<Store>, dry_run: bool) -> Result<bool> {
    let change = MakeUnique { index: a(), dry_run };
    store.make_unique(&ns("d.t"), &change, &Interrupt::new(), &CommitOptions::buffered())
}

fn with_index(documents: &[DocBuf]) -> Arc<Store> {
    let store = store();
    for document in documents {
        insert(&store, "d.t", document).unwrap();
    }
    index(&store, "d.t", &doc! { "key": { "a": 1 }, "name": "a" }).unwrap();
    store
}

fn code<T: std::fmt::Debug>(result: Result<T>) -> ErrorCode {
    result.unwrap_err().code()
}

#[test]
fn old_duplicates_stay_and_new_ones_are_refused() {
    let store = with_index(&[doc! { "_id": 1, "a": 5 }, doc! { "_id": 2, "a": 5 }]);
    assert_eq!(code(convert(&store, false)), ErrorCode::InvalidOptions);
    prepare(&store, true);
    insert(&store, "d.t", &doc! { "_id": 3, "a": 6 }).unwrap();
    for a in [5, 6] {
        let twice = insert(&store, "d.t", &doc! { "_id": 9, "a": a });
        assert_eq!(code(twice), ErrorCode::DuplicateKey, "{a}");
    }
    let array = insert(&store, "d.t", &doc! { "_id": 9, "a": [1, 6] });
    assert_eq!(code(array), ErrorCode::DuplicateKey);
    // The key stays the same, so the rest of the document may change.
    update(&store, "d.t", 1, doc! { "_id": 1, "a": 5, "b": 1 }.as_doc()).unwrap();
    let moved = update(&store, "d.t", 3, doc! { "_id": 3, "a": 5 }.as_doc());
    assert_eq!(code(moved), ErrorCode::DuplicateKey);
    // A removed key may be added again.
    delete(&store, "d.t", 3).unwrap();
    insert(&store, "d.t", &doc! { "_id": 4, "a": 6 }).unwrap();
    prepare(&store, false);
    insert(&store, "d.t", &doc! { "_id": 5, "a": 6 }).unwrap();
    assert_clean(&store);
}

#[test]
fn a_conversion_lists_the_duplicates_and_works_without_them() {
    let documents: Vec<DocBuf> = (0..2500).map(|id| doc! { "_id": id, "a": id / 2 * 2 }).collect();
    let store = with_index(&documents);
    prepare(&store, true);
    for dry_run in [true, false] {
        let error = convert(&store, dry_run).unwrap_err();
        assert_eq!(error.code(), ErrorCode::CannotConvertIndexToUnique);
        let details = Doc::from_valid_bytes(error.details().unwrap());
        let Some(Value::Array(groups)) = details.get("violations") else { panic!("{details:?}") };
        assert_eq!(groups.iter().count(), 1250);
        let Some(Value::Document(first)) = groups.iter().next() else { panic!("{groups:?}") };
        assert_eq!(format!("{first:?}"), format!("{:?}", doc! { "ids": [0, 1] }.as_doc()));
    }
    for id in (1..2500).step_by(2) {
        delete(&store, "d.t", id).unwrap();
    }
    assert!(!convert(&store, true).unwrap());
    assert!(!collection(&store, "d.t").indexes[1].unique);
    assert!(convert(&store, false).unwrap());
    assert!(!convert(&store, false).unwrap(), "it is unique already");
    let indexes = &collection(&store, "d.t").indexes;
    assert_eq!(indexes.len(), 2);
    assert!(indexes[1].unique && !indexes[1].prepare_unique);
    let spec = doc! { "v": 2, "key": { "a": 1 }, "name": "a", "unique": true };
    assert_eq!(indexes[1].to_document(), spec);
    assert_eq!(code(insert(&store, "d.t", &doc! { "_id": 1, "a": 8 })), ErrorCode::DuplicateKey);
    assert_clean(&store);
}

/// Two transactions with the same key conflict, although neither sees the other's entry.
#[test]
fn one_of_two_that_add_a_key_at_once_is_refused() {
    let store = with_index(&[]);
    prepare(&store, true);
    let c = collection(&store, "d.t");
    let mut first = store.writer(WriterMode::Statement).unwrap();
    let mut second = store.writer(WriterMode::Statement).unwrap();
    first.insert(&c, doc! { "_id": 1, "a": 7 }.as_doc()).unwrap();
    second.insert(&c, doc! { "_id": 2, "a": 7 }.as_doc()).unwrap();
    first.commit(CommitOptions::buffered()).unwrap();
    let failure = second.commit(CommitOptions::buffered()).map(|_| ()).unwrap_err();
    assert!(failure.error().is_none(), "a conflict, and no error: {failure:?}");
    assert_eq!(all(&store, "d.t").len(), 1);
}

#[test]
fn a_conversion_while_others_write_misses_nothing() {
    let documents: Vec<DocBuf> = (0..3000).map(|id| doc! { "_id": id, "a": id }).collect();
    let store = with_index(&documents);
    prepare(&store, true);
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let store = &store;
            scope.spawn(move || {
                for round in 0..300 {
                    let id = thread * 1000 + (round * 7) % 1000;
                    let a = 10_000 + (round + thread * 50) % 400;
                    // Some of the updates meet each other's keys.
                    match update(store, "d.t", id, doc! { "_id": id, "a": a }.as_doc()) {
                        Ok(()) => {}
                        Err(error) => assert_eq!(error.code(), ErrorCode::DuplicateKey),
                    }
                }
            });
        }
        assert!(convert(&store, false).unwrap());
    });
    let indexes = collection(&store, "d.t").indexes.len();
    assert_eq!(indexes, 2);
    assert_clean(&store);
}

/// A crash during a conversion: `prepareUnique` is kept, the successor is not.
#[test]
fn a_crash_keeps_the_prepared_index() {
    let mut disk = SimulatedDisk::new(Faults::none(1));
    let store = open(disk.open().unwrap());
    insert(&store, "d.t", &doc! { "_id": 1, "a": 1 }).unwrap();
    index(&store, "d.t", &doc! { "key": { "a": 1 }, "name": "a", "prepareUnique": true }).unwrap();
    disk.crash(Crash::Process);
    let again = open(disk.open().unwrap());
    let twice = insert(&again, "d.t", &doc! { "_id": 2, "a": 1 });
    assert_eq!(code(twice), ErrorCode::DuplicateKey);
    assert!(convert(&again, false).unwrap());
    disk.crash(Crash::Process);
    let last = open(disk.open().unwrap());
    assert!(collection(&last, "d.t").indexes[1].unique);
    assert_clean(&last);
}

#[test]
fn an_equal_index_and_a_drop() {
    let store = with_index(&[doc! { "_id": 1, "a": 1 }]);
    prepare(&store, true);
    let plain = index(&store, "d.t", &doc! { "key": { "a": 1 }, "name": "a" });
    assert_eq!(code(plain), ErrorCode::IndexOptionsConflict);
    let equal = doc! { "key": { "a": 1 }, "name": "a", "prepareUnique": true };
    assert_eq!(index(&store, "d.t", &equal).unwrap().existed, 1);
    assert!(convert(&store, false).unwrap());
    let unique = doc! { "key": { "a": 1 }, "name": "a", "unique": true };
    assert_eq!(index(&store, "d.t", &unique).unwrap().existed, 1);
    let dropped = DropIndexes::Name("a".to_owned());
    store.drop_indexes(&ns("d.t"), &dropped, &CommitOptions::buffered()).unwrap();
    assert_clean(&store);
    for spec in [
        doc! { "key": { "a": "hashed" }, "name": "a", "prepareUnique": true },
        doc! { "key": { "$**": 1 }, "name": "a", "prepareUnique": true },
    ] {
        assert!(index(&store, "d.t", &spec).is_err(), "{spec:?}");
    }
}
