//! Insert, read, update, delete; unique, sparse, multikey and long keys.

use super::*;
use quire_collections::{CollectionCursor, IndexCursor, IndexRange, Writer};
use quire_document::{ArrayBuf, Value, array};
use quire_storage::Direction;

#[test]
fn documents_come_back_byte_for_byte_and_in_order_of_insertion() {
    let store = store();
    for id in [5, 3, 9, 1] {
        insert(&store, "d.t", &doc! { "_id": id, "x": "y" }).unwrap();
    }
    let found = all(&store, "d.t");
    let ids: Vec<_> = found.iter().map(|doc| format!("{:?}", doc.get("_id").unwrap())).collect();
    assert_eq!(ids, ["Int32(5)", "Int32(3)", "Int32(9)", "Int32(1)"]);
    assert_eq!(found[0].as_bytes(), doc! { "_id": 5, "x": "y" }.as_bytes());
    let view = store.read_view().unwrap();
    let c = view.catalog().collection("d", "t").unwrap();
    assert!(view.view().get_by_id(c, Value::Double(9.0)).unwrap().is_some());
    assert!(view.view().get_by_id(c, Value::Int32(2)).unwrap().is_none());
    let mut backwards = Vec::new();
    let mut cursor = CollectionCursor::new(c, Direction::Reverse);
    while cursor.next_page(&view.view(), c, 1, 1 << 20, &mut backwards).unwrap() {}
    assert_eq!(backwards.len(), 4);
    assert_eq!(backwards[0].doc.as_bytes(), found[3].as_bytes());
    assert_clean(&store);
}

#[test]
fn ids_are_made_moved_and_checked() {
    let store = store();
    insert(&store, "d.t", &doc! { "a": 1, "_id": 7 }).unwrap();
    insert(&store, "d.t", &doc! { "a": 2 }).unwrap();
    let found = all(&store, "d.t");
    assert_eq!(found[0].as_bytes(), doc! { "_id": 7, "a": 1 }.as_bytes());
    assert!(matches!(found[1].get("_id"), Some(Value::ObjectId(_))));
    let code = |doc: &DocBuf| insert(&store, "d.t", doc).unwrap_err().code().number();
    assert_eq!(code(&doc! { "_id": [1] }), 53);
    assert_eq!(code(&doc! { "_id": Value::Undefined }), 53);
    assert_eq!(code(&doc! { "_id": { "$a": 1 } }), 52);
    assert_eq!(code(&doc! { "_id": 7.0 }), 11000);
    let big = "x".repeat(16 << 20);
    assert_eq!(code(&doc! { "_id": 8, "big": &big }), 10334);
    assert_clean(&store);
}

/// An `_id` above all others is written without a look-up of its own. It must not miss an existing
/// one: of the same batch, of earlier batches, of one that commits meanwhile, or of one that is
/// undone.
#[test]
fn only_an_id_above_all_others_needs_no_look_up() {
    let store = store();
    let c = collection(&store, "d.t");
    let begin = || store.writer(WriterMode::Statement).unwrap();
    let put = |writer: &mut Writer, ids: &[i32]| -> Vec<i32> {
        let mut refused = ids.to_vec();
        refused.retain(|id| writer.insert(&c, doc! { "_id": *id }.as_doc()).is_err());
        refused
    };
    let (mut first, mut second, mut third) = (begin(), begin(), begin());
    assert_eq!(put(&mut first, &[10, 20, 20, 30]), [20]);
    assert_eq!(put(&mut second, &[40, 25, 40]), [40]);
    assert_eq!(put(&mut third, &[5, 50]), []);
    second.commit(CommitOptions::buffered()).unwrap();
    first.commit(CommitOptions::buffered()).unwrap();

    // The snapshot of the third is older than the commit that it conflicts with.
    assert_eq!(put(&mut third, &[40]), []);
    assert!(third.commit(CommitOptions::buffered()).is_err());

    let mut undone = begin();
    let before = undone.savepoint();
    assert_eq!(put(&mut undone, &[41, 100, 101]), []);
    undone.rollback_to(before);
    assert_eq!(put(&mut undone, &[100, 40, 42]), [40]);
    undone.commit(CommitOptions::buffered()).unwrap();
    delete(&store, "d.t", 100).unwrap();
    let mut last = begin();
    assert_eq!(put(&mut last, &[42, 100, 43, 100, 25]), [42, 100, 25]);
    last.commit(CommitOptions::buffered()).unwrap();
    assert_eq!(all(&store, "d.t").len(), 8);
    assert_clean(&store);
}

#[test]
fn a_duplicate_names_index_pattern_and_value() {
    let store = store();
    index(&store, "d.t", &doc! { "key": { "b": -1, "a.x": 1 }, "name": "mine", "unique": true })
        .unwrap();
    insert(&store, "d.t", &doc! { "_id": 1, "a": { "x": 1 }, "b": 2 }).unwrap();
    let error =
        insert(&store, "d.t", &doc! { "_id": 3, "a": { "x": [0, 1] }, "b": 2 }).unwrap_err();
    assert_eq!(
        error.message(),
        "E11000 duplicate key error collection: d.t index: mine dup key: { b: 2, a.x: 1 }"
    );
    let details = Doc::from_valid_bytes(error.details().unwrap());
    let expected = doc! { "keyPattern": { "b": -1, "a.x": 1 }, "keyValue": { "b": 2, "a.x": 1 } };
    assert_eq!(details.as_bytes(), expected.as_bytes());
    insert(&store, "d.t", &doc! { "_id": 4 }).unwrap();
    let error = insert(&store, "d.t", &doc! { "_id": 5 }).unwrap_err();
    assert!(error.message().ends_with("dup key: { b: null, a.x: null }"), "{error}");
    assert_eq!(all(&store, "d.t").len(), 2);
    update(&store, "d.t", 4, doc! { "_id": 4, "b": 2, "a": { "x": 1 } }.as_doc()).unwrap_err();
    delete(&store, "d.t", 1).unwrap();
    update(&store, "d.t", 4, doc! { "_id": 4, "b": 2, "a": { "x": 1 } }.as_doc()).unwrap();
    assert_clean(&store);
}

#[test]
fn an_index_is_read_in_order_and_returns_its_values() {
    let store = store();
    index(&store, "d.t", &doc! { "key": { "a": 1, "b": -1 }, "name": "ab" }).unwrap();
    insert(&store, "d.t", &doc! { "_id": 1, "a": 2, "b": 1 }).unwrap();
    insert(&store, "d.t", &doc! { "_id": 2, "a": 1.0, "b": "x" }).unwrap();
    insert(&store, "d.t", &doc! { "_id": 3, "a": 2i64, "b": 5 }).unwrap();
    insert(&store, "d.t", &doc! { "_id": 4, "b": [1, 2] }).unwrap();
    let view = store.read_view().unwrap();
    let c = view.catalog().collection("d", "t").unwrap();
    let index = c.index_by_name("ab").unwrap();
    assert!(index.is_multikey() && index.multikey_paths().field(1));
    let walk = |range: IndexRange, direction| {
        let mut cursor = IndexCursor::new(index, range, direction);
        let mut out = Vec::new();
        while cursor.next_page(&view.view(), 1, &mut out).unwrap() {}
        out.iter()
            .map(|entry| {
                let key = entry.decode(&index.keys).unwrap().unwrap();
                let text = |value: &Option<quire_document::ValueBuf>| {
                    value.as_ref().map_or("-".into(), |v| quire_catalog::debug_value(v.as_value()))
                };
                format!(
                    "{}:{}",
                    entry.record,
                    key.values.iter().map(text).collect::<Vec<_>>().join(",")
                )
            })
            .collect::<Vec<_>>()
    };
    let whole = IndexRange::whole(index);
    assert_eq!(
        walk(whole.clone(), Direction::Forward),
        ["4:-,2", "4:-,1", "2:1.0,\"x\"", "3:2,5", "1:2,1"]
    );
    assert_eq!(walk(whole, Direction::Reverse)[0], "1:2,1");
    let two = [Value::Int32(2)];
    assert_eq!(walk(IndexRange::equal(index, &two), Direction::Forward), ["3:2,5", "1:2,1"]);
    let from = [Value::Int32(2), Value::Int32(5)];
    assert_eq!(
        walk(IndexRange::new(index, &from, false, &[], false), Direction::Forward),
        ["1:2,1"]
    );
    assert_eq!(walk(IndexRange::new(index, &[], true, &two, false), Direction::Forward).len(), 3);
    assert_clean(&store);
}

#[test]
fn long_keys_are_shortened_and_still_unique() {
    let store = store();
    index(&store, "d.t", &doc! { "key": { "a": 1 }, "name": "a", "unique": true }).unwrap();
    let long = |end: &str| "x".repeat(3000) + end;
    insert(&store, "d.t", &doc! { "_id": 1, "a": &long("1") }).unwrap();
    insert(&store, "d.t", &doc! { "_id": 2, "a": &long("2") }).unwrap();
    assert!(insert(&store, "d.t", &doc! { "_id": 3, "a": &long("1") }).is_err());
    let view = store.read_view().unwrap();
    let c = view.catalog().collection("d", "t").unwrap();
    let index = c.index_by_name("a").unwrap();
    assert!(index.has_long_keys());
    let value = long("1");
    let mut cursor = IndexCursor::new(
        index,
        IndexRange::equal(index, &[Value::String(&value)]),
        Direction::Forward,
    );
    let mut out = Vec::new();
    cursor.next_page(&view.view(), 10, &mut out).unwrap();
    assert_eq!(out.len(), 2, "the range is wider than asked");
    assert!(out[0].is_shortened() && out[0].decode(&index.keys).unwrap().is_none());
    assert_clean(&store);
}

#[test]
fn the_keys_of_one_document_are_bounded() {
    // A long string beside an array is part of the key of each element: 600 MB for one document.
    let store = store();
    index(&store, "d.t", &doc! { "key": { "s": 1, "a": 1 }, "name": "sa" }).unwrap();
    let (long, elements) = ("x".repeat(1_000_000), |count: i32| {
        DocBuf::build(|out| {
            let mut elements = out.array("a");
            (0..count).for_each(|at| {
                elements.push(at);
            });
        })
    });
    let with = |id: i32, count: i32| {
        let array = elements(count);
        doc! { "_id": id, "s": &long, "a": array.get("a").unwrap() }
    };
    insert(&store, "d.t", &with(1, 20)).unwrap();
    let refused = insert(&store, "d.t", &with(2, 600)).unwrap_err();
    assert_eq!(refused.code(), quire_error::ErrorCode::CannotBuildIndexKeys);
    assert_eq!(all(&store, "d.t").len(), 1);
    assert_clean(&store);
}

#[test]
fn sparse_indexes_leave_out_and_parallel_arrays_fail() {
    let store = store();
    index(&store, "d.t", &doc! { "key": { "a": 1 }, "name": "a", "unique": true, "sparse": true })
        .unwrap();
    index(&store, "d.t", &doc! { "key": { "x": 1, "y": 1 }, "name": "xy" }).unwrap();
    for id in 0..3 {
        insert(&store, "d.t", &doc! { "_id": id }).unwrap();
    }
    insert(&store, "d.t", &doc! { "_id": 9, "a": 1 }).unwrap();
    let parallel = doc! { "_id": 10, "x": [1], "y": [2], "a": 5 };
    assert_eq!(insert(&store, "d.t", &parallel).unwrap_err().code().number(), 171);
    insert(&store, "d.t", &doc! { "_id": 11, "a": 5 }).unwrap();
    update(&store, "d.t", 11, doc! { "_id": 11, "x": &array![1, 2] }.as_doc()).unwrap();
    insert(&store, "d.t", &doc! { "_id": 12, "a": 5 }).unwrap();
    assert_clean(&store);
}

#[test]
fn one_document_gives_an_index_a_bounded_number_of_keys() {
    let store = store();
    index(&store, "d.t", &doc! { "key": { "a": 1 }, "name": "a" }).unwrap();
    let numbers = |count: i32| (0..count).collect::<ArrayBuf>();
    insert(&store, "d.t", &doc! { "_id": 1, "a": &numbers(100_000) }).unwrap();
    let error = insert(&store, "d.t", &doc! { "_id": 2, "a": &numbers(100_001) }).unwrap_err();
    assert_eq!(error.code().number(), 201, "{error}");
    assert_clean(&store);
}

#[test]
fn facts_about_indexes_survive_a_restart_and_a_failed_write_leaves_none() {
    let engine: Arc<dyn quire_storage::Engine> = quire_storage::open_memory().unwrap();
    let store = open(Arc::clone(&engine));
    index(&store, "d.t", &doc! { "key": { "a.b": 1 }, "name": "a" }).unwrap();
    insert(&store, "d.t", &doc! { "_id": 1, "a": 1 }).unwrap();
    insert(&store, "d.t", &doc! { "_id": 1, "a": [1] }).unwrap_err();
    insert(&store, "d.t", &doc! { "_id": 2, "a": [{ "b": [2] }] }).unwrap();
    let again = open(engine);
    let c = again.catalog().collection("d", "t").cloned().unwrap();
    assert_eq!(c.index_by_name("a").unwrap().multikey_paths().0, [3]);
    assert_eq!(again.counts(&c).documents, 2);
    insert(&again, "d.t", &doc! { "_id": 3 }).unwrap();
    assert_eq!(records(&again, "d.t").iter().map(|r| r.id.0).collect::<Vec<_>>(), [1, 3, 4]);
    assert_clean(&again);
}

#[test]
fn partial_indexes_follow_their_filter() {
    let store = store();
    let spec = doc! { "key": { "a": 1 }, "name": "a", "unique": true, "partialFilterExpression": { "x.y": { "$gt": 5 } } };
    index(&store, "d.t", &spec).unwrap();
    insert(&store, "d.t", &doc! { "_id": 1, "a": 1 }).unwrap();
    insert(&store, "d.t", &doc! { "_id": 2, "a": 1, "x": { "y": 6 } }).unwrap();
    insert(&store, "d.t", &doc! { "_id": 3, "a": 1, "x": { "y": 5 } }).unwrap();
    let inside = doc! { "_id": 3, "a": 1, "x": { "y": 7 } };
    assert_eq!(update(&store, "d.t", 3, inside.as_doc()).unwrap_err().code().number(), 11000);
    update(&store, "d.t", 2, doc! { "_id": 2, "a": 1, "x": { "y": 0 } }.as_doc()).unwrap();
    update(&store, "d.t", 3, inside.as_doc()).unwrap();
    delete(&store, "d.t", 3).unwrap();
    assert_clean(&store);
}

#[test]
fn documents_expire() {
    let store = store();
    index(&store, "d.t", &doc! { "key": { "at": 1 }, "name": "at", "expireAfterSeconds": 60 })
        .unwrap();
    index(&store, "d.u", &doc! { "key": { "at": -1 }, "name": "at", "expireAfterSeconds": 0 })
        .unwrap();
    for (id, at) in [(1, 0i64), (2, 40_000), (3, 40_001), (4, i64::MAX)] {
        insert(&store, "d.t", &doc! { "_id": id, "at": Value::Date(at) }).unwrap();
        insert(&store, "d.u", &doc! { "_id": id, "at": Value::Date(at) }).unwrap();
    }
    insert(&store, "d.t", &doc! { "_id": 5, "at": [Value::Date(90_000), Value::Date(5)] }).unwrap();
    insert(&store, "d.t", &doc! { "_id": 6, "at": "never" }).unwrap();
    let expired = quire_collections::expire_documents(&store, 100_000, &Interrupt::new()).unwrap();
    assert_eq!((expired.deleted, expired.failures.len()), (3 + 3, 0));
    assert_eq!(all(&store, "d.t").len(), 3);
    assert_eq!(all(&store, "d.u").len(), 1);
    assert_clean(&store);
}
