//! Statements that change the catalog.

use super::*;
use quire_collections::{DropIndexes, Rename};
use quire_error::ErrorCode;
use quire_storage::Interruption;
use std::time::Duration;

#[test]
fn create_drop_and_create_again() {
    let engine: Arc<dyn quire_storage::Engine> = quire_storage::open_memory().unwrap();
    let store = open(Arc::clone(&engine));
    insert(&store, "d.t", &doc! { "_id": 1 }).unwrap();
    let first = collection(&store, "d.t");
    assert!(store.drop_collection(&ns("d.t"), &CommitOptions::synced()).unwrap().is_some());
    assert!(store.drop_collection(&ns("d.t"), &CommitOptions::synced()).unwrap().is_none());
    assert!(store.catalog().database("d").is_none());
    insert(&store, "d.t", &doc! { "_id": 1 }).unwrap();
    let second = collection(&store, "d.t");
    assert!(second.id > first.id && second.uuid != first.uuid);
    insert(&store, "d.u", &doc! { "_id": 1 }).unwrap();
    insert(&store, "e.u", &doc! { "_id": 1 }).unwrap();
    assert_eq!(store.drop_database("d", &CommitOptions::synced()).unwrap(), 2);
    assert_eq!(collection_names(&store), ["e.u"]);
    let again = open(engine);
    assert_eq!(collection_names(&again), ["e.u"]);
    assert!(collection(&again, "e.v").id > second.id);
    assert_clean(&again);
}

#[test]
fn names_that_differ_in_case_clash() {
    let store = store();
    collection(&store, "d.t");
    assert_eq!(
        store.ensure_collection(&ns("D.t")).unwrap_err().code(),
        ErrorCode::DatabaseDifferCase
    );
}

#[test]
fn indexes_are_built_over_existing_documents() {
    let store = store();
    for id in 0..2500 {
        insert(&store, "d.t", &doc! { "_id": id, "a": id % 100 }).unwrap();
    }
    let built = index(&store, "d.t", &doc! { "key": { "a": 1 }, "name": "a_1" }).unwrap();
    assert_eq!((built.before, built.after, built.created_collection), (1, 2, false));
    assert_eq!(built.note(1), None);
    let again = index(&store, "d.t", &doc! { "key": { "a": 1.0 }, "name": "a_1" }).unwrap();
    assert_eq!(
        (again.before, again.after, again.note(1)),
        (2, 2, Some("all indexes already exist"))
    );
    let error =
        index(&store, "d.t", &doc! { "key": { "a": 1, "b": 1 }, "name": "u", "unique": true });
    assert_eq!(error.unwrap_err().code().number(), 11000);
    assert_eq!(collection(&store, "d.t").indexes.len(), 2);
    let code = |spec: &DocBuf| index(&store, "d.t", spec).unwrap_err().code().number();
    assert_eq!(code(&doc! { "key": { "a": 1 }, "name": "other" }), 85);
    assert_eq!(code(&doc! { "key": { "b": 1 }, "name": "a_1" }), 86);
    assert_eq!(code(&doc! { "key": { "a": 1 }, "name": "a_1", "unique": true }), 86);
    assert_eq!(code(&doc! { "key": { "a": 1 }, "name": "a_1", "hidden": true }), 85);
    // The numbers of `a` are no geometry.
    assert_eq!(code(&doc! { "key": { "a": "2dsphere" }, "name": "h" }), 16755);
    assert_clean(&store);
}

#[test]
fn indexes_are_dropped_by_name_key_and_star() {
    let store = store();
    for (key, name) in
        [(doc! { "a": 1 }, "a_1"), (doc! { "b": 1 }, "b_1"), (doc! { "c": 1 }, "c_1")]
    {
        index(&store, "d.t", &doc! { "key": &key, "name": name }).unwrap();
    }
    insert(&store, "d.t", &doc! { "_id": 1, "a": 1 }).unwrap();
    let drop =
        |which: DropIndexes| store.drop_indexes(&ns("d.t"), &which, &CommitOptions::synced());
    let code = |which: DropIndexes| drop(which).unwrap_err().code().number();
    assert_eq!(code(DropIndexes::Name("_id_".into())), 72);
    assert_eq!(code(DropIndexes::Name("x".into())), 27);
    assert_eq!(code(DropIndexes::Names(vec!["a_1".into(), "x".into()])), 27);
    assert_eq!(drop(DropIndexes::Key(doc! { "a": 1 })).unwrap().before, 4);
    assert_eq!(drop(DropIndexes::Name("b_1".into())).unwrap().before, 3);
    assert_eq!(drop(DropIndexes::All).unwrap().names, ["c_1"]);
    assert_eq!(drop(DropIndexes::All).unwrap().before, 1);
    assert_clean(&store);
}

#[test]
fn renames_within_and_across_databases() {
    let store = store();
    for id in 0..1500 {
        insert(&store, "d.t", &doc! { "_id": id, "a": id }).unwrap();
    }
    index(&store, "d.t", &doc! { "key": { "a": 1 }, "name": "a_1" }).unwrap();
    insert(&store, "d.u", &doc! { "_id": 1 }).unwrap();
    let rename = |from: &str, to: &str, drop_target| {
        let rename =
            Rename { from: ns(from), to: ns(to), drop_target, from_uuid: None, target_uuid: None };
        store.rename_collection(&rename, &Interrupt::new(), &CommitOptions::synced())
    };
    assert_eq!(rename("d.x", "d.y", false).unwrap_err().code(), ErrorCode::NamespaceNotFound);
    assert_eq!(rename("d.t", "d.u", false).unwrap_err().code(), ErrorCode::NamespaceExists);
    assert_eq!(rename("d.t", "d.t", false).unwrap_err().code(), ErrorCode::IllegalOperation);
    rename("d.t", "d.u", true).unwrap();
    assert_eq!(collection_names(&store), ["d.u"]);
    assert_eq!(all(&store, "d.u").len(), 1500);
    rename("d.u", "e.v", false).unwrap();
    assert_eq!(collection_names(&store), ["e.v"]);
    assert_eq!(all(&store, "e.v").len(), 1500);
    assert_eq!(collection(&store, "e.v").indexes.len(), 2);
    assert!(!collection(&store, "e.v").options.is_temporary());
    insert(&store, "e.v", &doc! { "_id": 5000 }).unwrap();
    assert_clean(&store);
}

/// The copy that a rename makes in the other database is dropped with that database. Writes
/// continued into the dropped copy, and then the source was dropped.
#[test]
fn a_rename_into_a_database_that_is_dropped_meanwhile_loses_nothing() {
    const DOCUMENTS: i32 = 3000;
    let store = store();
    for id in 0..DOCUMENTS {
        insert(&store, "d.t", &doc! { "_id": id }).unwrap();
    }
    let dropping = std::thread::spawn({
        let store = Arc::clone(&store);
        move || {
            while store.catalog().database("e").is_none() {
                std::thread::yield_now();
            }
            store.drop_database("e", &CommitOptions::synced()).unwrap()
        }
    });
    let rename = Rename {
        from: ns("d.t"),
        to: ns("e.t"),
        drop_target: false,
        from_uuid: None,
        target_uuid: None,
    };
    let renamed = store.rename_collection(&rename, &Interrupt::new(), &CommitOptions::synced());
    assert_eq!(dropping.join().unwrap(), 1);
    match renamed {
        Ok(()) => assert_eq!(collection_names(&store), Vec::<String>::new()),
        Err(error) => {
            assert_eq!(error.code(), ErrorCode::NamespaceNotFound);
            assert_eq!(collection_names(&store), ["d.t"]);
            assert_eq!(all(&store, "d.t").len(), DOCUMENTS as usize);
            insert(&store, "d.t", &doc! { "_id": DOCUMENTS }).unwrap();
        }
    }
    assert_clean(&store);
}

/// A transaction that makes an index multikey holds the index's record. A drop retried without a
/// pause, ignored its time limit, and locked out every other statement.
#[test]
fn a_drop_waits_for_a_transaction_as_long_as_it_may() {
    let store = store();
    index(&store, "d.t", &doc! { "key": { "a": 1 }, "name": "a" }).unwrap();
    let mut transaction = store.writer(WriterMode::Transaction).unwrap();
    let array = doc! { "_id": 1, "a": [1, 2] };
    transaction.insert(&collection(&store, "d.t"), array.as_doc()).unwrap();
    transaction.push().unwrap();
    let drop_within = |interrupt: &Arc<Interrupt>| {
        let options =
            CommitOptions { interrupt: Some(Arc::clone(interrupt)), ..CommitOptions::buffered() };
        store.drop_collection(&ns("d.t"), &options)
    };
    let soon = Interrupt::with_deadline(Duration::from_millis(20));
    assert_eq!(drop_within(&soon).unwrap_err().code(), ErrorCode::MaxTimeMSExpired);
    let conflicts = || store.engine().stats().conflicts;
    let before = conflicts();
    std::thread::scope(|scope| {
        let dropping = scope.spawn(|| drop_within(&Interrupt::new()));
        while conflicts() == before {
            std::thread::yield_now();
        }
        for n in 0..50 {
            collection(&store, &format!("d.other{n}"));
        }
        assert_eq!(conflicts(), before + 1, "it waits");
        drop(transaction);
        assert!(dropping.join().unwrap().unwrap().is_some());
    });
    assert_clean(&store);
}

#[test]
fn a_build_while_others_write_misses_nothing() {
    let store = store();
    for id in 0..3000 {
        insert(&store, "d.t", &doc! { "_id": id, "a": id }).unwrap();
    }
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let store = &store;
            scope.spawn(move || {
                for round in 0..300 {
                    let id = (round * 7 + thread * 1000) % 3000;
                    match round % 3 {
                        0 => update(store, "d.t", id, doc! { "_id": id, "a": [id, -id] }.as_doc())
                            .unwrap(),
                        1 => insert(
                            store,
                            "d.t",
                            &doc! { "_id": 10_000 + thread * 1000 + round, "a": round },
                        )
                        .unwrap(),
                        _ => {
                            update(store, "d.t", id, doc! { "_id": id, "a": "x" }.as_doc()).unwrap()
                        }
                    }
                }
            });
        }
        index(&store, "d.t", &doc! { "key": { "a": 1 }, "name": "a_1" }).unwrap();
        index(&store, "d.t", &doc! { "key": { "_id": 1, "a": 1 }, "name": "both", "unique": true })
            .unwrap();
    });
    assert_clean(&store);
}

#[test]
fn the_head_of_a_queue_is_remembered() {
    let store = store();
    for id in 0..200 {
        insert(&store, "d.q", &doc! { "_id": id }).unwrap();
    }
    for id in 0..200 {
        assert_eq!(records(&store, "d.q").len(), 200 - id as usize);
        delete(&store, "d.q", id).unwrap();
    }
    assert!(records(&store, "d.q").is_empty());
    insert(&store, "d.q", &doc! { "_id": 1 }).unwrap();
    assert_eq!(records(&store, "d.q").len(), 1);
    assert_clean(&store);
}

fn collection_names(store: &Arc<Store>) -> Vec<String> {
    let catalog = store.catalog();
    let mut names: Vec<_> = catalog.collections().map(|c| c.namespace.to_string()).collect();
    names.sort();
    names
}

#[test]
fn two_copies_replace_one_after_the_other() {
    let store = store();
    insert(&store, "d.t", &doc! { "_id": 1 }).unwrap();
    index(&store, "d.t", &doc! { "key": { "a": 1 }, "name": "a_1" }).unwrap();
    let model = collection(&store, "d.t");
    let options = CommitOptions::buffered();
    let source = (Some(&*model), &model.options);
    let copy = |name: &str| store.create_copy(source, &ns(name), &options).unwrap();
    let put = |copy: &quire_catalog::Collection| {
        store.put_in_place(copy, &ns("d.t"), Some(&*model), &options)
    };
    let (first, second, third) = (copy("d.first"), copy("d.second"), copy("d.third"));
    put(&first).unwrap();
    put(&second).unwrap();
    assert_eq!(collection(&store, "d.t").id, second.id);
    index(&store, "d.t", &doc! { "key": { "b": 1 }, "name": "b_1" }).unwrap();
    let error = put(&third).unwrap_err();
    assert_eq!(error.code(), ErrorCode::CommandFailed, "{error}");
    store.drop_collection(&ns("d.t"), &options).unwrap();
    assert_eq!(put(&third).unwrap_err().code(), ErrorCode::CommandFailed);
    assert_clean(&store);
}

/// Comparing each of 100,000 specifications with all before it took a minute under the lock of the
/// catalog, and every statement that creates something waited.
#[test]
fn more_specifications_than_fit_are_refused_at_once() {
    let store = store();
    collection(&store, "test.t");
    let specs = (0..100_000).map(|at| {
        let (field, name) = (format!("a{at}"), format!("n{at}"));
        let key = DocBuf::build(|writer| {
            writer.append(&field, 1);
        });
        IndexSpec::parse(doc! { "key": &key, "name": name.as_str() }.as_doc(), false).unwrap()
    });
    let request = CreateIndexes { namespace: ns("test.t"), specs: specs.collect() };
    let refused = store.create_indexes(&request, &Interrupt::new(), &CommitOptions::buffered());
    assert_eq!(refused.unwrap_err().code(), ErrorCode::CannotCreateIndex);

    let killed = Interrupt::new();
    killed.kill(Interruption::Killed);
    let refused = store.create_indexes(&request, &killed, &CommitOptions::buffered());
    assert_eq!(refused.unwrap_err().code(), ErrorCode::Interrupted);
}
