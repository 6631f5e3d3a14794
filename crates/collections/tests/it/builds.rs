//! Index builds while other clients write: before the last document is read, and after writers have
//! begun to maintain the index themselves.

use super::*;
use quire_collections::{BuiltIndexes, CatalogChange, DropIndexes, IndexCursor, IndexRange};
use quire_error::ErrorCode;
use quire_storage::rng::Rng;
use quire_storage::{
    Bytes, Crash, Direction, Faults, Mode, Page, ScanRequest, SimulatedDisk, Space, Txn, begin,
};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

/// The point at which a build waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wait {
    /// All documents are read and their entries are written; writers note what they change.
    Loaded,
    /// Writers maintain the index, and their notes have not been processed.
    HandedOver,
}

/// Makes the builds of a store wait.
struct Pause(Arc<Mutex<Plan>>);

#[derive(Default)]
struct Plan {
    wait: Option<Wait>,
    started: bool,
    /// A transaction that holds the record of the collection, which the build changes to hand the
    /// index over.
    holder: Option<Txn>,
    /// The channels by which the build reports that it waits, and is released.
    gate: Option<(Sender<()>, Receiver<()>)>,
}

impl Pause {
    fn of(store: &Arc<Store>) -> Self {
        let plan = Arc::new(Mutex::new(Plan::default()));
        let (observed, weak) = (Arc::clone(&plan), Arc::downgrade(store));
        store
            .observe_catalog(Box::new(move |changes| {
                let Some(store) = weak.upgrade() else { return };
                observed.lock().unwrap().changed(&store, changes);
            }))
            .unwrap();
        Pause(plan)
    }

    /// Builds a unique index on `u`, and runs a function while the build waits.
    fn build(
        &self,
        store: &Arc<Store>,
        wait: Wait,
        meanwhile: impl FnOnce(),
    ) -> Result<BuiltIndexes> {
        self.build_index(store, wait, "unique", meanwhile)
    }

    /// Builds an index on `u` with an option.
    fn build_index(
        &self,
        store: &Arc<Store>,
        wait: Wait,
        option: &str,
        meanwhile: impl FnOnce(),
    ) -> Result<BuiltIndexes> {
        let ((arrived, at), (go, gate)) = (channel(), channel());
        *self.0.lock().unwrap() =
            Plan { wait: Some(wait), gate: Some((arrived, gate)), ..Plan::default() };
        let conflicts = store.engine().stats().conflicts;
        std::thread::scope(|scope| {
            let spec = doc! { "key": { "u": 1 }, "name": "u", option: true };
            let build = scope.spawn(move || index(store, "d.t", &spec));
            at.recv().unwrap();
            while wait == Wait::Loaded && store.engine().stats().conflicts == conflicts {
                std::thread::yield_now();
            }
            meanwhile();
            match wait {
                Wait::Loaded => drop(self.0.lock().unwrap().holder.take()),
                Wait::HandedOver => go.send(()).unwrap(),
            }
            build.join().unwrap()
        })
    }
}

impl Plan {
    fn changed(&mut self, store: &Arc<Store>, changes: &[CatalogChange]) {
        let starts = |change: &CatalogChange| matches!(change, CatalogChange::IndexStarted(..));
        let (Some(wait), starts) = (self.wait, changes.iter().any(starts)) else { return };
        self.started |= starts;
        match wait {
            Wait::Loaded if starts => {
                let key = quire_catalog::collection_key(collection(store, "d.t").id);
                let mut holder = begin(store.engine(), Mode::Transaction).unwrap();
                holder.put(Space::Meta, Bytes::copy_from_slice(&key), Bytes::new()).unwrap();
                holder.push().unwrap();
                self.holder = Some(holder);
                self.gate.take().unwrap().0.send(()).unwrap();
            }
            Wait::HandedOver if self.started && !starts => {
                let Some((arrived, gate)) = self.gate.take() else { return };
                arrived.send(()).unwrap();
                gate.recv().unwrap();
            }
            _ => {}
        }
    }
}

fn names(store: &Arc<Store>) -> Vec<String> {
    collection(store, "d.t").indexes.iter().map(|index| index.name.clone()).collect()
}

/// Writes with another record's key failed with E11000, even if the index build failed later.
#[test]
fn a_unique_build_refuses_no_write() {
    for wait in [Wait::Loaded, Wait::HandedOver] {
        let store = store();
        let pause = Pause::of(&store);
        for id in 0..20 {
            insert(&store, "d.t", &doc! { "_id": id, "u": id }).unwrap();
        }
        let all_at_once = || {
            // Two new documents, an old and a new one, an update, keys in an array.
            for (id, u) in [(30, 30), (31, 30), (32, 31), (33, 32)] {
                insert(&store, "d.t", &doc! { "_id": id, "u": u }).unwrap();
            }
            insert(&store, "d.t", &doc! { "_id": 34, "u": [7, 40, 30] }).unwrap();
            update(&store, "d.t", 33, doc! { "_id": 33, "u": 31 }.as_doc()).unwrap();
        };
        let error = pause.build(&store, wait, all_at_once).unwrap_err();
        assert_eq!(error.code(), ErrorCode::DuplicateKey);
        assert!(error.message().starts_with("Index build failed: "), "{}", error.message());
        assert_eq!((names(&store), all(&store, "d.t").len()), (vec!["_id_".to_owned()], 25));
        assert_clean(&store);
        let settled = || {
            insert(&store, "d.t", &doc! { "_id": 40, "u": 33 }).unwrap();
            insert(&store, "d.t", &doc! { "_id": 41, "u": 33 }).unwrap();
            assert_clean(&store);
            // First the documents that had the key first are deleted, then those that came later.
            delete(&store, "d.t", 30).unwrap();
            delete(&store, "d.t", 33).unwrap();
            delete(&store, "d.t", 7).unwrap();
            delete(&store, "d.t", 31).unwrap();
            update(&store, "d.t", 40, doc! { "_id": 40, "u": 34 }.as_doc()).unwrap();
        };
        pause.build(&store, wait, settled).unwrap();
        assert_eq!(names(&store), ["_id_", "u"]);
        assert_clean(&store);
        for u in [40, 31, 30, 34, 33] {
            let refused = insert(&store, "d.t", &doc! { "_id": 50, "u": u }).unwrap_err();
            assert_eq!(refused.code(), ErrorCode::DuplicateKey, "{u}");
        }
    }
}

/// `prepareUnique` applies from the commit that publishes the index, as in mongod. Documents
/// written before stay, also with equal keys; a write that began before and commits later is
/// checked.
#[test]
fn prepare_unique_holds_once_the_index_is_built() {
    for wait in [Wait::Loaded, Wait::HandedOver] {
        let store = store();
        let pause = Pause::of(&store);
        for (id, u) in [(1, 1), (2, 1), (3, 3)] {
            insert(&store, "d.t", &doc! { "_id": id, "u": u }).unwrap();
        }
        let mut open = None;
        let built = pause.build_index(&store, wait, "prepareUnique", || {
            insert(&store, "d.t", &doc! { "_id": 4, "u": 3 }).unwrap();
            update(&store, "d.t", 2, doc! { "_id": 2, "u": 5 }.as_doc()).unwrap();
            insert(&store, "d.t", &doc! { "_id": 6, "u": [5, 60] }).unwrap();
            let mut writer = store.writer(WriterMode::Transaction).unwrap();
            let twice = doc! { "_id": 7, "u": 1 };
            writer.insert(&collection(&store, "d.t"), twice.as_doc()).unwrap();
            writer.push().unwrap();
            open = Some(writer);
        });
        built.unwrap();
        let failed = open.unwrap().commit(CommitOptions::buffered()).unwrap_err();
        assert!(matches!(failed, quire_collections::Failure::Conflict(_)), "{wait:?}");
        assert_eq!((names(&store).len(), all(&store, "d.t").len()), (2, 5));
        assert_clean(&store);
        for u in [1, 3, 5, 60] {
            let refused = insert(&store, "d.t", &doc! { "_id": 50, "u": u }).unwrap_err();
            assert_eq!(refused.code(), ErrorCode::DuplicateKey, "{wait:?}, {u}");
        }
        insert(&store, "d.t", &doc! { "_id": 51, "u": 51 }).unwrap();
        assert_clean(&store);
    }
}

/// Several writers add the same keys while the index is built and published: no two documents
/// written after the reply have the same key.
#[test]
fn no_duplicate_slips_in_while_an_index_with_prepare_unique_is_published() {
    let store = store();
    for id in 0..3000 {
        insert(&store, "d.t", &doc! { "_id": id, "u": (-id) }).unwrap();
    }
    let is_built = std::sync::atomic::AtomicBool::new(false);
    let order = std::sync::atomic::Ordering::SeqCst;
    let after = std::thread::scope(|scope| {
        let writers: Vec<_> = (1..4)
            .map(|thread| {
                let (store, is_built) = (&store, &is_built);
                scope.spawn(move || {
                    let mut after = Vec::new();
                    for u in 1.. {
                        let began_after = is_built.load(order);
                        let doc = doc! { "_id": (thread * 1_000_000 + u), "u": u };
                        match insert(store, "d.t", &doc) {
                            Ok(()) if began_after => after.push(u),
                            Ok(()) => {}
                            Err(error) => assert_eq!(error.code(), ErrorCode::DuplicateKey),
                        }
                        if after.len() == 50 {
                            break;
                        }
                    }
                    after
                })
            })
            .collect();
        let spec = doc! { "key": { "u": 1 }, "name": "u", "prepareUnique": true };
        index(&store, "d.t", &spec).unwrap();
        is_built.store(true, order);
        writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect::<Vec<_>>()
    });
    let distinct: std::collections::HashSet<_> = after.iter().collect();
    assert_eq!(distinct.len(), after.len());
    assert_clean(&store);
}

/// The loaded entries differ from the documents at the end of the build: a value changed, moved
/// from one document to another, was removed, got another type, or changed and changed back.
#[test]
fn documents_that_changed_during_a_build_are_read_again() {
    for wait in [Wait::Loaded, Wait::HandedOver] {
        let store = store();
        let pause = Pause::of(&store);
        for id in 0..20 {
            insert(&store, "d.t", &doc! { "_id": id, "u": id }).unwrap();
        }
        let change = |id: i32, u: f64| {
            update(&store, "d.t", id, doc! { "_id": id, "u": u }.as_doc()).unwrap();
        };
        let built = pause.build(&store, wait, || {
            delete(&store, "d.t", 3).unwrap();
            // 4 takes the key of 5, and 5 that of 3, which is deleted.
            change(5, 3.0);
            change(4, 5.0);
            // The value stays the same, its type changes.
            change(6, 6.0);
            change(7, 77.0);
            change(7, 7.0);
            insert(&store, "d.t", &doc! { "_id": 30, "u": 30 }).unwrap();
            delete(&store, "d.t", 30).unwrap();
            insert(&store, "d.t", &doc! { "_id": 31, "u": 30 }).unwrap();
            update(&store, "d.t", 8, doc! { "_id": 8, "u": [8, 80, 81] }.as_doc()).unwrap();
        });
        built.unwrap();
        assert_clean(&store);
        let collection = collection(&store, "d.t");
        let index = collection.index_by_name("u").unwrap();
        assert!(index.is_multikey(), "{wait:?}");
        let (view, mut entries) = (store.read_view().unwrap(), Vec::new());
        let mut cursor = IndexCursor::new(index, IndexRange::whole(index), Direction::Forward);
        while cursor.next_page(&view.view(), 7, &mut entries).unwrap() {}
        assert_eq!(entries.len(), 19 + 1 + 2, "{wait:?}");
    }
}

/// Writes that a transaction has not committed when the index is handed over are not in the index,
/// and its commit fails as after any change of the catalog.
#[test]
fn a_transaction_that_began_before_the_index_is_handed_over_conflicts() {
    let store = store();
    let pause = Pause::of(&store);
    insert(&store, "d.t", &doc! { "_id": 1, "u": 1 }).unwrap();
    let mut open = None;
    let built = pause.build(&store, Wait::Loaded, || {
        let mut writer = store.writer(WriterMode::Transaction).unwrap();
        let twice = doc! { "_id": 2, "u": 1 };
        writer.insert(&collection(&store, "d.t"), twice.as_doc()).unwrap();
        writer.push().unwrap();
        open = Some(writer);
    });
    built.unwrap();
    let failed = open.unwrap().commit(CommitOptions::buffered()).unwrap_err();
    assert!(matches!(failed, quire_collections::Failure::Conflict(_)));
    assert_eq!(all(&store, "d.t").len(), 1);
    assert_clean(&store);
}

/// The index is not published while an open transaction has met another record's key.
#[test]
fn a_unique_build_waits_for_a_transaction_that_met_anothers_key() {
    for commits in [true, false] {
        let store = store();
        let pause = Pause::of(&store);
        insert(&store, "d.t", &doc! { "_id": 5, "u": 5 }).unwrap();
        let built = pause.build(&store, Wait::HandedOver, || {
            insert(&store, "d.t", &doc! { "_id": 1, "u": 1 }).unwrap();
            let mut writer = store.writer(WriterMode::Transaction).unwrap();
            let twice = doc! { "_id": 2, "u": 1 };
            writer.insert(&collection(&store, "d.t"), twice.as_doc()).unwrap();
            writer.push().unwrap();
            let engine = Arc::clone(store.engine());
            let conflicts = engine.stats().conflicts;
            std::thread::spawn(move || {
                // The build continues, and meets the transaction's key.
                while engine.stats().conflicts == conflicts {
                    std::thread::yield_now();
                }
                match commits {
                    true => writer.commit(CommitOptions::buffered()).map(|_| ()).unwrap(),
                    false => drop(writer),
                }
            });
        });
        assert_eq!(built.is_err(), commits, "{built:?}");
        assert_eq!(all(&store, "d.t").len(), if commits { 3 } else { 2 });
        assert_clean(&store);
    }
}

/// A crash during a build leaves entries, and notes of duplicate keys, which are removed with the
/// index.
#[test]
fn a_unique_build_that_a_crash_ends_leaves_nothing() {
    for (wait, rows) in [(Wait::Loaded, 2), (Wait::HandedOver, 2 + 3)] {
        let mut disk = SimulatedDisk::new(Faults::none(1));
        let store = open(disk.open().unwrap());
        let pause = Pause::of(&store);
        insert(&store, "d.t", &doc! { "_id": 5, "u": 5 }).unwrap();
        insert(&store, "d.t", &doc! { "_id": 6, "u": 6 }).unwrap();
        let record = store.engine().snapshot().unwrap().get(Space::Meta, b"f").unwrap().unwrap();
        let next = Doc::from_valid_bytes(&record).get("nextId").unwrap().exact_i64().unwrap();
        let number = u32::try_from(next).unwrap().to_be_bytes();
        let entries = |engine: &Arc<dyn quire_storage::Engine>| {
            let mut page = Page::default();
            let request = ScanRequest::new(Space::Idx, &number, &[]);
            engine.snapshot().unwrap().scan(&request, &mut page).unwrap();
            page.rows.len()
        };
        let crash = || {
            insert(&store, "d.t", &doc! { "_id": 1, "u": 1 }).unwrap();
            insert(&store, "d.t", &doc! { "_id": 2, "u": 1 }).unwrap();
            // The documents' entries, then one entry, one note and the key that all notes write.
            assert_eq!(entries(store.engine()), rows, "{wait:?}");
            disk.crash(Crash::Process);
        };
        pause.build(&store, wait, crash).unwrap_err();
        let engine = disk.open().unwrap();
        let again = open(Arc::clone(&engine));
        assert_eq!(names(&again), ["_id_"]);
        assert_clean(&again);
        engine.maintenance(quire_storage::Maintenance::Reclaim).unwrap();
        assert_eq!(entries(&engine), 0);
    }
}

/// Several indexes are built at once and their entries do not fit into the memory of a build: the
/// entries are the same as those of a build in memory.
#[test]
fn entries_beyond_the_memory_of_a_build_are_sorted_on_disk() {
    let store = store();
    let mut dice = Rng::new(3);
    let text = "x".repeat(700);
    for id in 0..3000 {
        let s = format!("{text}{}", dice.below(1000));
        let doc = doc! { "_id": id, "a": (dice.below(1 << 20) as i32), "b": [id % 7, -1], "s": &s };
        insert(&store, "d.t", &doc).unwrap();
    }
    let specs = [
        doc! { "key": { "a": 1 }, "name": "a" },
        doc! { "key": { "s": -1 }, "name": "s" },
        doc! { "key": { "b": 1, "a": -1 }, "name": "ba" },
        doc! { "key": { "a": 1, "_id": 1 }, "name": "unique", "unique": true },
    ];
    let parse = |spec: &DocBuf| IndexSpec::parse(spec.as_doc(), false).unwrap();
    let request = CreateIndexes { namespace: ns("d.t"), specs: specs.iter().map(parse).collect() };
    store.set_build_memory(3 << 20);
    store.create_indexes(&request, &Interrupt::new(), &CommitOptions::buffered()).unwrap();
    assert_eq!(collection(&store, "d.t").indexes.len(), 5);
    assert_clean(&store);
    let twice = doc! { "key": { "b": 1 }, "name": "twice", "unique": true };
    assert_eq!(index(&store, "d.t", &twice).unwrap_err().code(), ErrorCode::DuplicateKey);
    assert_clean(&store);
}

/// A long collection is read in pieces, by several threads where the machine has several processors.
#[test]
fn a_build_by_threads_has_the_entries_of_all_documents() {
    const DOCUMENTS: i32 = 20_000;
    const CHUNK: i32 = 1000;
    let store = store();
    let made = collection(&store, "d.t");
    for first in (0..DOCUMENTS).step_by(CHUNK as usize) {
        let insert = |writer: &mut Writer| {
            for id in first..first + CHUNK {
                // Each number once, in no order.
                let mixed = id * 7919 % DOCUMENTS;
                let doc = doc! { "_id": id, "u": mixed, "b": [id % 7, -1] };
                writer.insert(&made, doc.as_doc())?;
            }
            Ok(())
        };
        store.write(&CommitOptions::buffered(), &Interrupt::new(), insert).unwrap();
    }
    for memory in [200 << 20, 1 << 20] {
        store.set_build_memory(memory);
        let specs = [
            doc! { "key": { "u": 1 }, "name": "unique", "unique": true },
            doc! { "key": { "b": 1, "u": -1 }, "name": "multikey" },
        ];
        let parse = |spec: &DocBuf| IndexSpec::parse(spec.as_doc(), false).unwrap();
        let request =
            CreateIndexes { namespace: ns("d.t"), specs: specs.iter().map(parse).collect() };
        store.create_indexes(&request, &Interrupt::new(), &CommitOptions::buffered()).unwrap();
        assert_clean(&store);
        let twice = doc! { "key": { "b": 1 }, "name": "twice", "unique": true };
        assert_eq!(index(&store, "d.t", &twice).unwrap_err().code(), ErrorCode::DuplicateKey);
        let both = DropIndexes::Names(vec!["unique".to_owned(), "multikey".to_owned()]);
        store.drop_indexes(&ns("d.t"), &both, &CommitOptions::buffered()).unwrap();
        assert_clean(&store);
    }
}

/// More notes than a build processes in one commit, for records that other clients change
/// meanwhile.
#[test]
fn many_changes_while_the_entries_are_loaded_are_settled_beside_writers() {
    let store = store();
    let pause = Pause::of(&store);
    for id in 0..4000 {
        insert(&store, "d.t", &doc! { "_id": id, "u": id }).unwrap();
    }
    let change = |store: &Arc<Store>, from: i32, to: i32, by: i32| {
        for id in from..to {
            update(store, "d.t", id, doc! { "_id": id, "u": (id + by) }.as_doc()).unwrap();
        }
    };
    let others = std::sync::OnceLock::new();
    pause
        .build(&store, Wait::Loaded, || {
            change(&store, 0, 4000, 100_000);
            let store = Arc::clone(&store);
            let run = move || (1..4).for_each(|round| change(&store, 0, 1500, 100_000 * round));
            others.set(std::thread::spawn(run)).ok().unwrap();
        })
        .unwrap();
    others.into_inner().unwrap().join().unwrap();
    assert_clean(&store);
}
