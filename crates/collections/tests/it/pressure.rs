//! Statements that change the catalog while the engine is behind: they wait, and other statements
//! do not wait for them. Inserts while a table of documents is about to begin.

use std::ops::Range;
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use super::*;
use quire_catalog::CollectionOptions;
use quire_storage::backend::Backend;
use quire_storage::memory::{MemoryBackend, MemorySnapshot};
use quire_storage::{
    Bytes, Caps, Committer, CommitterOptions, Interruption, Op, Size, Space, Version,
};

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
    /// A table of documents is about to begin.
    wants_cut: bool,
    /// The late keys of each table that has begun.
    cuts: Vec<Vec<Range<Bytes>>>,
    /// How often the late keys have ended.
    ended: usize,
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
        self.memory.apply(ops, sync)
    }

    fn wants_cut(&self) -> bool {
        self.gate.state.lock().unwrap().wants_cut
    }

    fn cut(&self, late: &mut dyn FnMut() -> Vec<Range<Bytes>>) -> quire_storage::Result<()> {
        self.gate.set(|state| {
            state.wants_cut = false;
            state.cuts.push(late());
        });
        Ok(())
    }

    fn end_late(&self) {
        self.gate.set(|state| state.ended += 1);
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
        let implied = scope.spawn(|| {
            store.ensure_collection_for(&ns("d.e"), Some(&interrupt), &|| true).map(drop)
        });
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

/// Begins a table of documents with an insert.
fn cut(store: &Arc<Store>, gate: &Gate, name: &str, id: i32) {
    gate.set(|state| state.wants_cut = true);
    let mut writer = store.writer(WriterMode::Statement).unwrap();
    insert(&mut writer, name, id);
    writer.commit(CommitOptions::buffered()).unwrap();
}

/// Documents of a writer that was not finished when a table began overlapped the table before. Both
/// tables were merged, which wrote each document once more.
#[test]
fn documents_of_unfinished_writers_go_to_the_table_before() {
    let (store, gate) = behind();
    let open = |name: &str, ids: std::ops::Range<i32>| {
        create(&store, name, &Interrupt::new()).unwrap();
        let mut writer = store.writer(WriterMode::Statement).unwrap();
        ids.for_each(|id| insert(&mut writer, name, id));
        writer
    };
    let mut first = open("d.c", 0..2);
    let second = open("d.e", 0..5);
    create(&store, "d.f", &Interrupt::new()).unwrap();
    cut(&store, &gate, "d.c", 7);
    // The next ids are 3 in the first collection and 6 in the second; the third has no writer.
    let mut late = gate.state.lock().unwrap().cuts.pop().unwrap();
    late.sort_by(|one, other| one.start.cmp(&other.start));
    let [one, other] = &late[..] else { panic!("{late:?}") };
    for (range, below) in [(one, 3_u64), (other, 6)] {
        assert_eq!(range.start[..4], range.end[..4]);
        assert_eq!((&range.start[4..], &range.end[4..]), (&[0; 8][..], &below.to_be_bytes()[..]));
    }
    // Ids that the unfinished writer takes now are not late.
    insert(&mut first, "d.c", 2);
    first.commit(CommitOptions::buffered()).unwrap();
    let ended = || {
        let mut writer = store.writer(WriterMode::Statement).unwrap();
        insert(&mut writer, "d.f", 1);
        gate.state.lock().unwrap().ended
    };
    assert_eq!(ended(), 0, "the second writer is unfinished");
    drop(second);
    assert_eq!((ended(), ended()), (1, 1));
    cut(&store, &gate, "d.c", 8);
    assert_eq!(gate.state.lock().unwrap().cuts, [vec![]]);
    assert_eq!(ended(), 1);
}

/// A transaction that stays open does not stop the inserts of others.
#[test]
fn a_writer_that_does_not_end_is_not_waited_for() {
    let (store, gate) = behind();
    create(&store, "d.c", &Interrupt::new()).unwrap();
    let mut open = store.writer(WriterMode::Transaction).unwrap();
    insert(&mut open, "d.c", 1);
    (2..5).for_each(|id| cut(&store, &gate, "d.c", id));
    let state = gate.state.lock().unwrap();
    assert_eq!((state.cuts.len(), state.ended), (3, 0));
}
