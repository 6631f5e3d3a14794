//! Readers that wait for commits: no commit is missed, and no other one wakes them.

use std::sync::Arc;
use std::time::Duration;

use quire_storage::{
    Bytes, CommitOptions, Engine, Faults, Interrupt, Interruption, Maintenance, Mode, OnPublish,
    Reach, SimulatedDisk, Space, StorageError, Version, Watched, begin, open_memory,
};

/// Commits a document of a collection and returns the version.
fn write(engine: &Arc<dyn Engine>, collection: u32, options: CommitOptions) -> Version {
    let mut txn = begin(engine, Mode::Write).unwrap();
    let key = [collection.to_be_bytes().as_slice(), &[0; 8]].concat();
    txn.put_entry(Space::Doc, Bytes::from(key), Bytes::from_static(b"doc")).unwrap();
    txn.commit(options).unwrap().version
}

#[test]
fn a_commit_wakes_the_readers_of_its_collection() {
    let engine = open_memory().unwrap();
    for round in 0..50 {
        let collection = round % 3;
        let past = engine.version();
        let watched =
            if round % 2 == 0 { Watched::Everything } else { Watched::Collection(collection) };
        let waiter = std::thread::spawn({
            let engine = Arc::clone(&engine);
            let watch = engine.watch(watched, Reach::Visible, &Interrupt::new());
            move || watch.wait(past, None).map(|ready| (ready, engine.version() > past))
        });
        write(&engine, collection, CommitOptions::buffered());
        assert_eq!(waiter.join().unwrap(), Ok((true, true)));
    }
    assert_eq!(engine.stats().watches, 0);
}

#[test]
fn commits_of_other_collections_wake_nobody() {
    let engine = open_memory().unwrap();
    let interrupts: Vec<_> = (0..1000).map(|_| Interrupt::new()).collect();
    let watches: Vec<_> = (0..1000)
        .zip(&interrupts)
        .map(|(number, interrupt)| {
            engine.watch(Watched::Collection(number), Reach::Visible, interrupt)
        })
        .collect();
    let past = engine.version();
    for _ in 0..500 {
        write(&engine, 5000, CommitOptions::buffered());
    }
    assert_eq!((engine.stats().watches, engine.stats().wakes), (1000, 0));
    write(&engine, 7, CommitOptions::buffered());
    write(&engine, 7, CommitOptions::buffered());
    assert_eq!(engine.stats().wakes, 1, "a reader that is awake is not woken again");
    let now = Some(Duration::ZERO);
    let ready: Vec<usize> =
        (0..1000).filter(|number| watches[*number].wait(past, now).unwrap()).collect();
    assert_eq!(ready, [7]);
    // What the reader has read meanwhile ends no wait.
    assert_eq!(watches[7].wait(engine.version(), now), Ok(false));
    write(&engine, 7, CommitOptions::buffered());
    assert_eq!(engine.stats().wakes, 2);
}

#[test]
fn a_reader_of_the_catalog_is_woken_by_commits_that_publish_one() {
    let engine = open_memory().unwrap();
    let watch = engine.watch(Watched::Catalog, Reach::Visible, &Interrupt::new());
    let past = engine.version();
    write(&engine, 1, CommitOptions::buffered());
    assert!(!watch.has_news(past));
    let mut txn = begin(&engine, Mode::Write).unwrap();
    txn.on_publish(OnPublish(Box::new(|_, publish| publish())));
    txn.put_entry(Space::Meta, Bytes::from_static(b"catalog"), Bytes::new()).unwrap();
    let changed = txn.commit(CommitOptions::buffered()).unwrap().version;
    assert!(watch.has_news(past));
    assert!(!watch.has_news(changed));
}

#[test]
fn a_reader_of_durable_commits_waits_for_the_disk() {
    let disk = SimulatedDisk::new(Faults::none(1));
    let engine = disk.open().unwrap();
    let interrupt = Interrupt::new();
    let watch = engine.watch(Watched::Collection(1), Reach::Durable, &interrupt);
    let (past, now) = (engine.version(), Some(Duration::ZERO));
    let buffered = write(&engine, 1, CommitOptions::buffered());
    assert_eq!(watch.wait(past, now), Ok(false));
    engine.maintenance(Maintenance::Tick).unwrap();
    assert_eq!(engine.stats().wakes, 1);
    assert_eq!(watch.wait(past, now), Ok(true));
    assert_eq!(watch.wait(buffered, now), Ok(false));
    let synced = write(&engine, 1, CommitOptions::synced());
    assert_eq!(watch.wait(buffered, now), Ok(true));
    // A later commit that is not durable does not hide the earlier one.
    write(&engine, 1, CommitOptions::buffered());
    assert_eq!(watch.wait(buffered, now), Ok(true));
    assert_eq!(watch.wait(synced, now), Ok(false));
}

#[test]
fn an_interrupt_and_the_end_of_the_engine_end_a_wait() {
    let engine = open_memory().unwrap();
    let (killed, late) = (Interrupt::new(), Interrupt::with_deadline(Duration::from_millis(5)));
    killed.kill(Interruption::Killed);
    for (interrupt, why) in [(killed, Interruption::Killed), (late, Interruption::DeadlineExceeded)]
    {
        let watch = engine.watch(Watched::Everything, Reach::Visible, &interrupt);
        assert_eq!(watch.wait(engine.version(), None), Err(StorageError::Interrupted(why)));
    }
    let watch = engine.watch(Watched::Collection(1), Reach::Visible, &Interrupt::new());
    engine.wake(2);
    assert_eq!(watch.wait(engine.version(), Some(Duration::ZERO)), Ok(false));
    engine.wake(1);
    assert_eq!(watch.wait(engine.version(), None), Ok(true), "woken without a commit");
    let past = engine.version();
    let waiter = std::thread::spawn(move || watch.wait(past, None));
    engine.close().unwrap();
    assert_eq!(waiter.join().unwrap(), Err(StorageError::Closed));
}
