//! Random statements on the simulated disk: the state after a crash is one that existed, it is not
//! older than the durable acknowledgements, and every index matches its documents.

use super::*;
use crate::model::random_doc;
use quire_collections::Rename;
use quire_document::array;
use quire_storage::rng::Rng;
use quire_storage::simulated::{Crash, Faults, SimulatedDisk};
use std::collections::BTreeMap;

/// Documents by namespace and `_id`.
type State = BTreeMap<String, BTreeMap<i32, Vec<u8>>>;

struct Run {
    store: Arc<Store>,
    history: Vec<State>,
    durable: usize,
}

/// A point or a line, whose keys in an index are few or many.
fn geometry(dice: &mut Rng) -> DocBuf {
    let mut place = || array![dice.below(360) as f64 - 180.0, dice.below(180) as f64 - 90.0];
    let (one, other) = (place(), place());
    match dice.below(2) {
        0 => doc! { "type": "Point", "coordinates": &one },
        _ => doc! { "type": "LineString", "coordinates": &array![&one, &other] },
    }
}

impl Run {
    fn step(&mut self, dice: &mut Rng) {
        let mut state = self.history.last().cloned().unwrap_or_default();
        let name = ["d.a", "d.b", "e.a"][dice.below(3) as usize];
        let id = dice.below(20) as i32;
        let mut doc = random_doc(dice, id);
        doc.append("p", &geometry(dice));
        let synced = dice.below(6) == 0;
        let options = if synced { CommitOptions::synced() } else { CommitOptions::buffered() };
        let interrupt = Interrupt::new();
        let exists = state.get(name).is_some_and(|docs| docs.contains_key(&id));
        match dice.below(12) {
            0..=4 if !exists => {
                let collection = collection(&self.store, name);
                state.entry(name.into()).or_default();
                self.history.push(state.clone());
                let done = self.store.write(&options, &interrupt, |writer| {
                    writer.insert(&collection, doc.as_doc()).map(|_| ())
                });
                if done.is_ok() {
                    state.entry(name.into()).or_default().insert(id, doc.into_bytes());
                }
            }
            5..=7 if exists => {
                if self.change(name, id, Some(doc.as_doc()), &options).is_ok() {
                    state.entry(name.into()).or_default().insert(id, doc.into_bytes());
                }
            }
            8 if exists => {
                self.change(name, id, None, &options).unwrap();
                state.entry(name.into()).or_default().remove(&id);
            }
            9 => {
                let spec = [
                    doc! { "key": { "a": 1 }, "name": "a" },
                    doc! { "key": { "u": 1 }, "name": "u", "unique": true, "sparse": true },
                    doc! { "key": { "$**": "text" }, "name": "t", "default_language": "none" },
                    doc! { "key": { "p": "2dsphere", "a": 1 }, "name": "p" },
                ];
                let spec = IndexSpec::parse(spec[dice.below(4) as usize].as_doc(), false).unwrap();
                let request = CreateIndexes { namespace: ns(name), specs: vec![spec] };
                state.entry(name.into()).or_default();
                // The collection is created first, even if the index fails.
                self.history.push(state.clone());
                let _ = self.store.create_indexes(&request, &interrupt, &options);
                if self.store.catalog().lookup(&ns(name)).is_none() {
                    state.remove(name);
                }
            }
            10 if dice.below(4) == 0 => {
                self.store.drop_collection(&ns(name), &options).unwrap();
                state.remove(name);
            }
            11 if dice.below(4) == 0 && state.contains_key(name) => {
                let rename = Rename {
                    from: ns(name),
                    to: ns("d.c"),
                    drop_target: true,
                    from_uuid: None,
                    target_uuid: None,
                };
                if name.starts_with("d.") {
                    self.store.rename_collection(&rename, &interrupt, &options).unwrap();
                    let docs = state.remove(name).unwrap();
                    state.insert("d.c".into(), docs);
                }
            }
            _ => return,
        }
        self.history.push(state);
        if synced {
            // A failed statement wrote nothing, and earlier ones may still be only in memory.
            self.store.engine().barrier(self.store.engine().version()).unwrap();
            self.durable = self.history.len() - 1;
        }
    }

    fn change(
        &self,
        name: &str,
        id: i32,
        new: Option<Doc<'_>>,
        options: &CommitOptions,
    ) -> Result<()> {
        self.store
            .write(options, &Interrupt::new(), |writer| {
                let collection = writer.catalog().lookup(&ns(name)).cloned().unwrap();
                let found = writer.view().get_by_id(&collection, id.into())?.unwrap();
                match new {
                    Some(new) => writer.replace(&collection, found.id, found.doc.as_doc(), new),
                    None => writer.delete(&collection, found.id, found.doc.as_doc()),
                }
            })
            .map(|_| ())
    }
}

fn state_of(store: &Arc<Store>) -> State {
    let catalog = store.catalog();
    let names = catalog.collections().map(|c| c.namespace.to_string());
    names
        .map(|name| {
            let docs = all(store, &name).into_iter().map(|doc| {
                let Some(quire_document::Value::Int32(id)) = doc.get("_id") else { panic!() };
                (id, doc.into_bytes())
            });
            let docs = docs.collect();
            (name, docs)
        })
        .collect()
}

fn life(seed: u64) {
    let mut dice = Rng::new(seed);
    let faults = Faults { conflict_one_in: 9, ..Faults::none(seed) };
    let mut disk = SimulatedDisk::new(faults);
    let mut run =
        Run { store: open(disk.open().unwrap()), history: vec![State::new()], durable: 0 };
    for _ in 0..4 {
        for _ in 0..60 {
            run.step(&mut dice);
        }
        let how = [Crash::Process, Crash::Power, Crash::TornTail][dice.below(3) as usize];
        drop(run.store);
        disk.crash(how);
        disk.set_faults(Faults::none(seed));
        let store = open(disk.open().unwrap());
        let found = state_of(&store);
        let least = if how == Crash::Process { run.history.len() - 1 } else { run.durable };
        let survived = run.history[least..].contains(&found);
        assert!(survived, "seed {seed}: after {how:?} there is a state that never was");
        let report = check(&store, false).unwrap();
        assert!(report.is_clean(), "seed {seed} after {how:?}: {:#?}", report.findings);
        disk.set_faults(faults);
        run = Run { store, history: vec![found], durable: 0 };
    }
}

#[test]
fn crashes_leave_a_state_that_there_was() {
    (1..=30).for_each(life);
}

/// The copy stayed in the other database forever.
#[test]
fn a_crash_in_a_rename_to_another_database_leaves_no_copy() {
    let mut disk = SimulatedDisk::new(Faults::none(1));
    let store = open(disk.open().unwrap());
    index(&store, "d.t", &doc! { "key": { "a": 1 }, "name": "a" }).unwrap();
    for id in 0..20 {
        insert(&store, "d.t", &doc! { "_id": id }).unwrap();
    }
    // After the copy is made, the rename waits for the transaction that makes the index multikey.
    let mut transaction = store.writer(WriterMode::Transaction).unwrap();
    let array = doc! { "_id": 50, "a": [1, 2] };
    transaction.insert(&collection(&store, "d.t"), array.as_doc()).unwrap();
    transaction.push().unwrap();
    let conflicts = store.engine().stats().conflicts;
    let renaming = std::thread::spawn({
        let store = Arc::clone(&store);
        move || {
            let (from, to) = (ns("d.t"), ns("e.t"));
            let rename =
                Rename { from, to, drop_target: false, from_uuid: None, target_uuid: None };
            store.rename_collection(&rename, &Interrupt::new(), &CommitOptions::synced())
        }
    });
    while store.engine().stats().conflicts == conflicts {
        std::thread::yield_now();
    }
    let copy = store.catalog().database("e").unwrap().collections().next().unwrap().clone();
    assert_eq!(all(&store, copy.namespace.as_str()).len(), 20);
    assert_eq!(copy.options.document().to_owned(), doc! { "temp": true });
    disk.crash(Crash::Process);
    let again = open(disk.open().unwrap());
    let names: Vec<_> = again.catalog().collections().map(|c| c.namespace.to_string()).collect();
    assert_eq!(names, ["d.t"]);
    assert_eq!(all(&again, "d.t").len(), 20);
    assert_clean(&again);
    drop(transaction);
    assert!(renaming.join().unwrap().is_err(), "its disk is gone");
}

/// One read in twelve fails, also in the middle of a statement.
#[test]
fn a_statement_whose_read_fails_leaves_no_trace() {
    let (mut failed, mut done) = (0, 0);
    for seed in 0..10 {
        let mut dice = Rng::new(seed);
        let disk = SimulatedDisk::new(Faults::none(seed));
        let store = open(disk.open().unwrap());
        index(&store, "d.a", &doc! { "key": { "a": 1 }, "name": "a" }).unwrap();
        let unique = doc! { "key": { "u": 1 }, "name": "u", "unique": true, "sparse": true };
        index(&store, "d.a", &unique).unwrap();
        let mut state = State::from([("d.a".to_owned(), BTreeMap::new())]);
        for step in 0..200 {
            let id = dice.below(20) as i32;
            let doc = random_doc(&mut dice, id);
            let (exists, deletes) = (state["d.a"].contains_key(&id), dice.below(3) == 0);
            disk.set_faults(Faults { read_error_one_in: 12, ..Faults::none(seed) });
            let written = store.write(&CommitOptions::buffered(), &Interrupt::new(), |writer| {
                let collection = writer.catalog().lookup(&ns("d.a")).cloned().unwrap();
                if !exists {
                    return writer.insert(&collection, doc.as_doc()).map(|_| ());
                }
                let found = writer.view().get_by_id(&collection, id.into())?.unwrap();
                let (record, old) = (found.id, found.doc.as_doc());
                match deletes {
                    true => writer.delete(&collection, record, old),
                    false => writer.replace(&collection, record, old, doc.as_doc()).map(|_| ()),
                }
            });
            disk.set_faults(Faults::none(seed));
            let documents = state.get_mut("d.a").unwrap();
            match written {
                Err(_) => failed += 1,
                Ok(_) if exists && deletes => drop(documents.remove(&id)),
                Ok(_) => drop(documents.insert(id, doc.into_bytes())),
            }
            done += 1;
            if step % 20 == 19 {
                assert_eq!(state_of(&store), state, "seed {seed}, step {step}");
                assert_clean(&store);
            }
        }
    }
    assert!((100..done / 2).contains(&failed), "{failed} of {done} failed");
}
