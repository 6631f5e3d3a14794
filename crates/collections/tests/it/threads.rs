//! Several threads write, build and drop indexes, drop and rename collections, while others read.

use super::*;
use crate::model::random_doc;
use quire_collections::{
    CheckOptions, DropIndexes, Failure, IndexCursor, IndexRange, Rename, check_collection,
};
use quire_document::Value;
use quire_error::Error;
use quire_storage::Direction;
use quire_storage::rng::Rng;
use std::sync::atomic::{AtomicBool, Ordering};

/// Returns true for an error that a client may get meanwhile.
fn tolerable(error: &Error) -> bool {
    matches!(error.code().number(), 11000 | 171 | 26 | 27 | 48 | 67 | 85 | 86 | 117 | 276)
}

fn write(store: &Arc<Store>, dice: &mut Rng, name: &str) -> Result<()> {
    let id = dice.below(60) as i32;
    let doc = random_doc(dice, id);
    let delete = dice.below(4) == 0;
    store.ensure_collection(&ns(name))?;
    store
        .write(&CommitOptions::buffered(), &Interrupt::new(), |writer| {
            let Some(collection) = writer.catalog().lookup(&ns(name)).cloned() else {
                return Ok(());
            };
            match writer.view().get_by_id(&collection, id.into())? {
                None => writer.insert(&collection, doc.as_doc()).map(|_| ()),
                Some(found) if delete => writer.delete(&collection, found.id, found.doc.as_doc()),
                Some(found) => {
                    writer.replace(&collection, found.id, found.doc.as_doc(), doc.as_doc())
                }
            }
        })
        .map(|_| ())
}

fn transaction(store: &Arc<Store>, dice: &mut Rng, name: &str) -> Result<()> {
    let mut writer = store.writer(WriterMode::Transaction)?;
    let Some(collection) = writer.catalog().lookup(&ns(name)).cloned() else { return Ok(()) };
    let mut step = |writer: &mut quire_collections::Writer| -> quire_collections::Attempt<()> {
        for _ in 0..4 {
            let id = dice.below(60) as i32;
            let doc = random_doc(dice, id);
            match writer.view().get_by_id(&collection, id.into())? {
                None => writer.insert(&collection, doc.as_doc()).map(|_| ())?,
                Some(found) => {
                    writer.replace(&collection, found.id, found.doc.as_doc(), doc.as_doc())?;
                }
            }
            writer.push()?;
        }
        Ok(())
    };
    let ended =
        step(&mut writer).and_then(|()| writer.commit(CommitOptions::buffered()).map(|_| ()));
    match ended {
        Ok(()) | Err(Failure::Conflict(_)) => Ok(()),
        Err(Failure::Error(error)) => Err(error),
    }
}

fn change_schema(store: &Arc<Store>, dice: &mut Rng, name: &str) -> Result<()> {
    let specs = [
        doc! { "key": { "a": 1 }, "name": "a" },
        doc! { "key": { "u": 1 }, "name": "u", "unique": true, "sparse": true },
        doc! { "key": { "a.b": -1, "u": 1 }, "name": "ab" },
    ];
    let which = dice.below(3) as usize;
    match dice.below(10) {
        0..=4 => index(store, name, &specs[which]).map(|_| ()),
        5..=7 => {
            let which = DropIndexes::Name(["a", "u", "ab"][which].into());
            store.drop_indexes(&ns(name), &which, &CommitOptions::buffered()).map(|_| ())
        }
        8 => store.drop_collection(&ns(name), &CommitOptions::buffered()).map(|_| ()),
        _ => {
            let to = if dice.below(2) == 0 { "t.moved" } else { "s.moved" };
            let rename = Rename {
                from: ns(name),
                to: ns(to),
                drop_target: true,
                from_uuid: None,
                target_uuid: None,
            };
            store.rename_collection(&rename, &Interrupt::new(), &CommitOptions::buffered())
        }
    }
}

/// Checks on one view that every ready index has exactly the documents of the collection.
fn look(store: &Arc<Store>, name: &str) {
    let view = store.read_view().unwrap();
    let Some(collection) = view.catalog().lookup(&ns(name)) else { return };
    let (mut records, mut cursor) =
        (Vec::new(), CollectionCursor::new(collection, Direction::Forward));
    while cursor.next_page(&view.view(), collection, 7, 1 << 20, &mut records).unwrap() {}
    for index in collection.ready_indexes().filter(|index| !index.keys.is_sparse()) {
        let mut entries = Vec::new();
        let mut cursor = IndexCursor::new(index, IndexRange::whole(index), Direction::Forward);
        while cursor.next_page(&view.view(), 7, &mut entries).unwrap() {}
        let mut seen: Vec<_> = entries.iter().map(|entry| entry.record).collect();
        seen.sort();
        seen.dedup();
        assert_eq!(seen, records.iter().map(|record| record.id).collect::<Vec<_>>());
        assert!(entries.len() == records.len() || index.is_multikey(), "{}", index.name);
    }
    for record in &records {
        let id: Value<'_> = record.doc.get("_id").unwrap();
        assert_eq!(view.view().get_by_id(collection, id).unwrap().unwrap().id, record.id);
    }
}

#[test]
fn everything_at_once_leaves_a_clean_store() {
    let store = store();
    std::thread::scope(|scope| {
        for thread in 0..6u64 {
            let store = &store;
            scope.spawn(move || {
                let mut dice = Rng::new(thread + 77);
                for _ in 0..400 {
                    let name = ["t.one", "t.two"][dice.below(2) as usize];
                    let done = match thread {
                        0 => change_schema(store, &mut dice, name),
                        1 | 2 => transaction(store, &mut dice, name),
                        3 => {
                            look(store, name);
                            Ok(())
                        }
                        _ => write(store, &mut dice, name),
                    };
                    if let Err(error) = done {
                        assert!(tolerable(&error), "{error}");
                    }
                }
            });
        }
    });
    for name in ["t.one", "t.two", "t.moved", "s.moved"] {
        look(&store, name);
    }
    assert_clean(&store);
}

/// Inserts, changes or deletes one of thirty documents, whose keys are often another document's.
fn clash(store: &Arc<Store>, dice: &mut Rng) -> Result<()> {
    let id = dice.below(30) as i32;
    let (u, delete) = (dice.below(500) as i32, dice.below(4) == 0);
    let doc = doc! { "_id": id, "u": u };
    let write = |writer: &mut quire_collections::Writer| {
        let collection = writer.catalog().lookup(&ns("t.one")).cloned().unwrap();
        match writer.view().get_by_id(&collection, id.into())? {
            None => writer.insert(&collection, doc.as_doc()).map(|_| ()),
            Some(found) if delete => writer.delete(&collection, found.id, found.doc.as_doc()),
            Some(found) => writer.replace(&collection, found.id, found.doc.as_doc(), doc.as_doc()),
        }
    };
    store.write(&CommitOptions::buffered(), &Interrupt::new(), write).map(|_| ())
}

/// An entry stayed behind if a build processed a document between a delete's look-up of its entry
/// and the delete's commit.
#[test]
fn unique_builds_with_duplicates_have_the_right_entries() {
    let store = store();
    collection(&store, "t.one");
    let (stopped, mut problems) = (AtomicBool::new(false), Vec::new());
    std::thread::scope(|scope| {
        for thread in 0..3u64 {
            let (store, stopped) = (&store, &stopped);
            scope.spawn(move || {
                let mut dice = Rng::new(thread + 5);
                while !stopped.load(Ordering::Relaxed) {
                    if let Err(error) = clash(store, &mut dice) {
                        assert_eq!(error.code().number(), 11000, "{error}");
                    }
                }
            });
        }
        // A panic here would leave the other threads running.
        let (mut built, mut failed) = (0, 0);
        while (built < 40 || failed < 40) && problems.is_empty() {
            let spec = doc! { "key": { "u": 1 }, "name": "u", "unique": true };
            match index(&store, "t.one", &spec) {
                Ok(_) => {
                    built += 1;
                    let (collection, interrupt) = (collection(&store, "t.one"), Interrupt::new());
                    let options = CheckOptions::default();
                    let found = check_collection(&store, &collection, options, &interrupt);
                    let found = found.unwrap();
                    if !found.is_sound("u") {
                        problems.extend(found.findings.into_iter().map(|found| found.problem));
                    }
                    let which = DropIndexes::Name("u".into());
                    store.drop_indexes(&ns("t.one"), &which, &CommitOptions::buffered()).unwrap();
                }
                Err(error) if error.code().number() == 11000 => failed += 1,
                Err(error) => problems.push(error.to_string()),
            }
        }
        stopped.store(true, Ordering::Relaxed);
    });
    assert!(problems.is_empty(), "{problems:#?}");
    assert_clean(&store);
}
