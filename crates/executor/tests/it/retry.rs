//! Retryable writes on the simulated disk: after a crash a repeated statement is not executed
//! twice, and a statement that was not executed does not count as executed.

use super::*;
use quire_collections::{Effect, Image, RetryLog, SessionKey, load_retry_log};
use quire_document::{Value, doc};
use quire_executor::modify::{
    FindAndModifyRequest, FoundChange, InsertOptions, UpdateRequest, find_and_modify, insert_many,
    update,
};
use quire_storage::rng::Rng;
use quire_storage::simulated::{Crash, Faults, SimulatedDisk};

const SESSION: [u8; 16] = [7; 16];

fn log(store: &Arc<Store>) -> RetryLog {
    load_retry_log(store, SessionKey::new(&SESSION, None)).unwrap()
}

fn target<'t>(
    store: &'t Arc<Store>,
    log: &'t mut RetryLog,
    statements: &'t [i32],
    commit: &CommitOptions,
) -> Own<'t> {
    Own { store, commit: commit.clone(), retry: Some((log, statements)) }
}

/// Adds 1 to the only document's `n`.
fn increment(store: &Arc<Store>, log: &mut RetryLog, statement: i32, commit: &CommitOptions) {
    let (filter, change) = (doc! { "_id": 1 }, doc! { "$inc": { "n": 1 } });
    let request = UpdateRequest {
        collation: Default::default(),
        namespace: ns("d.t"),
        filter: filter.as_doc(),
        update: Value::Document(change.as_doc()),
        array_filters: &[],
        multi: false,
        upsert: false,
        supplied: None,
        sort: Doc::empty(),
        hint: None,
        let_vars: Doc::empty(),
    };
    let statements = [statement];
    update(&mut target(store, log, &statements, commit), &request, &params()).unwrap();
}

fn count(store: &Arc<Store>) -> i32 {
    let view = store.read_view().unwrap();
    let collection = view.catalog().lookup(&ns("d.t")).cloned().unwrap();
    let found = view.view().get_by_id(&collection, Value::Int32(1)).unwrap().unwrap();
    match found.doc.get("n") {
        Some(Value::Int32(n)) => n,
        other => panic!("{other:?}"),
    }
}

/// A client increments in batches and repeats each batch that got no reply before the crash.
fn life(seed: u64, crash: Crash, commit: &CommitOptions) {
    let mut dice = Rng::new(seed);
    let faults = Faults { conflict_one_in: 5, ..Faults::none(seed) };
    let mut disk = SimulatedDisk::new(faults);
    let mut store = open(&disk);
    insert_all(&store, "d.t", [doc! { "_id": 1, "n": 0 }.as_doc()]);
    store.engine().barrier(store.engine().version()).unwrap();
    let mut log = log(&store);
    let mut wanted = 0;
    for number in 0..20 {
        let statements = 1 + dice.below(5) as i32;
        wanted += statements;
        loop {
            log.begin(number, 0);
            let reached = dice.below(1 + 2 * statements as u64) as i32;
            for statement in 0..statements.min(reached) {
                if !log.is_executed(statement) {
                    increment(&store, &mut log, statement, commit);
                }
            }
            if reached >= statements {
                break;
            }
            disk.crash(crash);
            store = open(&disk);
            log = self::log(&store);
        }
    }
    assert_eq!(count(&store), wanted, "seed {seed}");
}

fn open(disk: &SimulatedDisk) -> Arc<Store> {
    let options = StoreOptions { random_seed: 7, ..StoreOptions::default() };
    Store::open(disk.open().unwrap(), options).unwrap()
}

#[test]
fn a_batch_repeated_after_a_crash_is_done_once() {
    for seed in 1..=40 {
        life(seed, Crash::Process, &CommitOptions::buffered());
        life(seed, Crash::Power, &CommitOptions::synced());
        life(seed, Crash::TornTail, &CommitOptions::synced());
    }
}

#[test]
fn lost_statements_are_not_remembered_after_a_power_loss() {
    for seed in 1..=40 {
        let mut disk = SimulatedDisk::new(Faults::none(seed));
        let store = open(&disk);
        insert_all(&store, "d.t", [doc! { "_id": 1, "n": 0 }.as_doc()]);
        store.engine().barrier(store.engine().version()).unwrap();
        let mut log = log(&store);
        log.begin(1, 0);
        for statement in 0..10 {
            increment(&store, &mut log, statement, &CommitOptions::buffered());
        }
        disk.crash(Crash::Power);
        let store = open(&disk);
        let log = self::log(&store);
        let remembered = (0..10).filter(|statement| log.is_executed(*statement)).count();
        assert_eq!(count(&store), remembered as i32, "seed {seed}");
    }
}

#[test]
fn chunks_of_an_insert_are_remembered_by_document() {
    let store = store();
    let mut log = log(&store);
    log.begin(5, 0);
    let docs: Vec<DocBuf> = (0..2500).map(|id| doc! { "_id": id }).collect();
    let docs: Vec<Doc<'_>> = docs.iter().map(DocBuf::as_doc).collect();
    let statements: Vec<i32> = (100..2600).collect();
    let commit = CommitOptions::buffered();
    let mut into = target(&store, &mut log, &statements, &commit);
    let outcome =
        insert_many(&mut into, &ns("d.t"), &docs, InsertOptions::ORDERED, &Interrupt::new())
            .unwrap();
    assert_eq!(outcome.inserted, 2500);
    let again = self::log(&store);
    assert_eq!((again.number(), again.len()), (Some(5), 2500));
    let snapshot = store.engine().snapshot().unwrap();
    let found = again.find(&*snapshot, 2599).unwrap().unwrap();
    assert_eq!(found.effect, Effect::Insert);
    assert_eq!(found.image, Some((Image::Id, doc! { "_id": 2499 })));
    assert_eq!(again.find(&*snapshot, 99).unwrap(), None);
}

#[test]
fn a_new_number_replaces_the_rows_of_the_last() {
    let store = store();
    insert_all(&store, "d.t", [doc! { "_id": 1, "n": 0 }.as_doc()]);
    let mut log = log(&store);
    log.begin(1, 10);
    (0..4).for_each(|statement| increment(&store, &mut log, statement, &CommitOptions::buffered()));
    let mut log = self::log(&store);
    assert_eq!(log.len(), 4);
    log.begin(2, 20);
    assert!(!log.is_executed(0));
    increment(&store, &mut log, 0, &CommitOptions::buffered());
    let nobody = |_: &[u8; 16], _: Option<&[u8; 32]>| false;
    let stop = Interrupt::new();
    // No record is older than the last write, and the three later rows of number 1 are gone.
    assert_eq!(store.reap_retry_records(20, &nobody, &stop).unwrap(), 0);
    let everybody = |_: &[u8; 16], _: Option<&[u8; 32]>| true;
    assert_eq!(store.reap_retry_records(21, &everybody, &stop).unwrap(), 0);
    assert_eq!(store.reap_retry_records(21, &nobody, &stop).unwrap(), 1);
    assert_eq!(self::log(&store).number(), None);
}

#[test]
fn find_and_modify_keeps_the_document_that_it_answered() {
    let store = store();
    insert_all(&store, "d.t", [doc! { "_id": 1, "n": 1 }.as_doc()]);
    let mut log = log(&store);
    let (filter, change) = (doc! { "_id": 1 }, doc! { "$inc": { "n": 1 } });
    let commit = CommitOptions::buffered();
    for (number, answers_after, image, n) in
        [(1, false, Image::Before, 1), (2, true, Image::After, 3)]
    {
        log.begin(number, 0);
        let request = FindAndModifyRequest {
            collation: Default::default(),
            namespace: ns("d.t"),
            filter: filter.as_doc(),
            sort: Doc::empty(),
            change: FoundChange::Update {
                update: Value::Document(change.as_doc()),
                array_filters: &[],
                upsert: false,
            },
            hint: None,
            let_vars: Doc::empty(),
            answers_after,
        };
        find_and_modify(&mut target(&store, &mut log, &[0], &commit), &request, &params()).unwrap();
        let snapshot = store.engine().snapshot().unwrap();
        let found = self::log(&store).find(&*snapshot, 0).unwrap().unwrap();
        assert_eq!(found.effect, Effect::Update);
        assert_eq!(found.image, Some((image, doc! { "_id": 1, "n": n })));
    }
}
