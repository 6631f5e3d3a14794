//! Statements that change the catalog while the engine is behind: they wait, and other statements
//! do not wait for them. Inserts while a table of documents is about to begin.

use std::sync::{Condvar, Mutex};
use std::time::Duration;

use super::*;
use quire_catalog::CollectionOptions;
use quire_storage::backend::Backend;
use quire_storage::memory::{MemoryBackend, MemorySnapshot};
use quire_storage::{Caps, Committer, CommitterOptions, Interruption, Op, Size, Space, Version};

/// The switches and counters of a [`Behind`].
#[derive(Default)]
struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// New commits must wait.
    pressure: bool,
    /// Batches wait inside the backend, as during a slow fsync.
    blocked: bool,
    /// The number of batches that wait there.
    waiting: usize,
    /// The number of batches that were applied.
    applied: usize,
    /// A table of documents is about to begin.
    wants_cut: bool,
    /// The number of batches that were applied before each table began.
    cuts: Vec<usize>,
}

impl Gate {
    fn set(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap());
        self.changed.notify_all();
    }

    fn wait(&self, until: impl Fn(&State) -> bool) {
        let state = self.state.lock().unwrap();
        let limit = Duration::from_secs(20);
        let waited = self.changed.wait_timeout_while(state, limit, |state| !until(state)).unwrap();
        assert!(!waited.1.timed_out());
    }
}

/// A backend in memory that is behind with its work while the gate says so.
struct Behind {
    memory: MemoryBackend,
    gate: Arc<Gate>,
}

impl Backend for Behind {
    type Snap = MemorySnapshot;

    fn caps(&self) -> &Caps {
        self.memory.caps()
    }

    fn snapshot(&self) -> quire_storage::Result<MemorySnapshot> {
        self.memory.snapshot()
    }

    fn apply(&self, ops: Vec<Op>, sync: bool) -> quire_storage::Result<()> {
        self.gate.set(|state| state.waiting += 1);
        self.gate.wait(|state| !state.blocked);
        self.gate.set(|state| state.waiting -= 1);
        self.memory.apply(ops, sync)?;
        self.gate.set(|state| state.applied += 1);
        Ok(())
    }

    fn wants_cut(&self) -> bool {
        self.gate.state.lock().unwrap().wants_cut
    }

    fn cut(&self) -> quire_storage::Result<()> {
        self.gate.set(|state| {
            state.wants_cut = false;
            state.cuts.push(state.applied);
        });
        Ok(())
    }

    fn sync(&self) -> quire_storage::Result<()> {
        self.memory.sync()
    }

    fn under_pressure(&self) -> bool {
        self.gate.state.lock().unwrap().pressure
    }

    fn approximate_size(&self, space: Space, a: &[u8], b: &[u8]) -> quire_storage::Result<Size> {
        self.memory.approximate_size(space, a, b)
    }
}

fn behind() -> (Arc<Store>, Arc<Gate>) {
    let gate = Arc::new(Gate::default());
    let backend = Behind { memory: MemoryBackend::default(), gate: Arc::clone(&gate) };
    let engine = Arc::new(Committer::open(backend, CommitterOptions::default()).unwrap());
    (Store::open(engine, StoreOptions::default()).unwrap(), gate)
}

fn create(store: &Arc<Store>, name: &str, interrupt: &Arc<Interrupt>) -> Result<()> {
    let options = CommitOptions::buffered().ended_by(interrupt);
    store.create_collection(&ns(name), CollectionOptions::default(), &options).map(drop)
}

/// Returns the version that a new reader sees, read on a separate thread.
fn read(store: &Arc<Store>) -> Option<Version> {
    let store = Arc::clone(store);
    let (done, answer) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let view = store.read_view().unwrap();
        let _ = done.send(quire_storage::Snapshot::version(view.view().snapshot()));
    });
    answer.recv_timeout(Duration::from_secs(2)).ok()
}

/// A statement that changed the catalog waited for backpressure, for its group and for the group's
/// fsync while it held the lock of the published catalog, which every reader takes.
#[test]
fn nobody_waits_for_a_catalog_change_that_waits() {
    let (store, gate) = behind();
    let interrupt = Interrupt::new();
    for block in
        [|state: &mut State| state.pressure = true, |state: &mut State| state.blocked = true]
    {
        gate.set(block);
        let name = format!("d.c{}", store.catalog().collections().count());
        std::thread::scope(|scope| {
            let creating = scope.spawn(|| create(&store, &name, &interrupt));
            if gate.state.lock().unwrap().blocked {
                gate.wait(|state| state.waiting > 0);
            } else {
                std::thread::sleep(Duration::from_millis(50));
            }
            let seen = read(&store);
            assert!(store.catalog().lookup(&ns(&name)).is_none());
            gate.set(|state| *state = State { waiting: state.waiting, ..State::default() });
            creating.join().unwrap().unwrap();
            assert!(seen.is_some(), "a reader waited");
        });
        assert!(store.catalog().lookup(&ns(&name)).is_some());
    }
}

/// The wait under backpressure could not be interrupted.
#[test]
fn a_catalog_change_that_waits_can_be_interrupted() {
    let (store, gate) = behind();
    gate.set(|state| state.pressure = true);
    let interrupt = Interrupt::new();
    std::thread::scope(|scope| {
        let creating = scope.spawn(|| create(&store, "d.c", &interrupt));
        let implied =
            scope.spawn(|| store.ensure_collection_for(&ns("d.e"), Some(&interrupt)).map(drop));
        std::thread::sleep(Duration::from_millis(50));
        interrupt.kill(Interruption::Killed);
        for ended in [creating.join().unwrap(), implied.join().unwrap()] {
            assert_eq!(ended.unwrap_err().code().number(), 11601);
        }
    });
    gate.set(|state| state.pressure = false);
    assert_eq!(store.catalog().collections().count(), 0);
}

fn insert(writer: &mut quire_collections::Writer, name: &str, id: i32) {
    let collection = writer.collection(&ns(name)).unwrap();
    writer.insert(&collection, quire_document::doc! { "_id": id }.as_doc()).unwrap();
}

/// Documents of a writer that was not finished when a table began overlapped the table before. Both
/// tables were merged, which wrote each document once more.
#[test]
fn a_table_begins_when_no_record_id_is_under_way() {
    let (store, gate) = behind();
    create(&store, "d.c", &Interrupt::new()).unwrap();
    let before = gate.state.lock().unwrap().applied;
    let mut first = store.writer(WriterMode::Statement).unwrap();
    insert(&mut first, "d.c", 1);
    gate.set(|state| state.wants_cut = true);
    let since = std::time::Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut second = store.writer(WriterMode::Statement).unwrap();
            insert(&mut second, "d.c", 2);
            second.commit(CommitOptions::buffered()).unwrap();
        });
        std::thread::sleep(Duration::from_millis(2));
        first.commit(CommitOptions::buffered()).unwrap();
        // If the machine was busy for longer, the second writer has stopped waiting.
        let in_time = since.elapsed() < Duration::from_millis(15);
        gate.wait(|state| !state.wants_cut);
        let cuts = gate.state.lock().unwrap().cuts.clone();
        assert!(cuts == [before + 1] || (!in_time && cuts == [before]), "{cuts:?}, {before}");
    });
}

/// A transaction that stays open does not stop the inserts of others.
#[test]
fn a_writer_that_does_not_end_is_not_waited_for() {
    let (store, gate) = behind();
    create(&store, "d.c", &Interrupt::new()).unwrap();
    let mut open = store.writer(WriterMode::Transaction).unwrap();
    insert(&mut open, "d.c", 1);
    for id in 2..5 {
        gate.set(|state| state.wants_cut = true);
        let mut writer = store.writer(WriterMode::Statement).unwrap();
        insert(&mut writer, "d.c", id);
        writer.commit(CommitOptions::buffered()).unwrap();
    }
    assert_eq!(gate.state.lock().unwrap().cuts.len(), 3);
}
