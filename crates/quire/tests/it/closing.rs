//! Closing: by shutdown, by the last drop, during other work; and which process may open a
//! directory.

use crate::on_both_engines;
use quire::bson::{DateTime, Document, doc};
use quire::error::ErrorKind;
use quire::options::{IndexModel, IndexOptions, WriteConcern};
use quire::{Client, OpenOptions};
use std::time::{Duration, Instant};

#[test]
fn a_directory_has_one_user() {
    let directory = tempfile::tempdir().unwrap();
    let first = Client::open(directory.path()).unwrap();
    let error = Client::open(directory.path()).unwrap_err();
    assert!(matches!(&*error.kind, ErrorKind::Open { .. }));
    let text = error.to_string();
    assert!(text.contains("in use"), "{text}");
    assert!(text.contains(&std::process::id().to_string()), "{text}");
    drop(first);
    Client::open(directory.path()).unwrap();
}

#[test]
fn after_a_shutdown_everything_answers() {
    on_both_engines(|client| {
        let c = client.database("test").collection::<Document>("c");
        c.insert_many((0..10).map(|n| doc! { "_id": n })).run().unwrap();
        let mut cursor = c.find(doc! {}).batch_size(2).run().unwrap();
        client.clone().shutdown().run().unwrap();
        client.clone().shutdown().run().unwrap();
        let error = c.insert_one(doc! {}).run().unwrap_err();
        assert!(matches!(&*error.kind, ErrorKind::Shutdown));
        // Documents that were fetched can still be read.
        assert!(cursor.next().unwrap().is_ok());
        assert!(cursor.next().unwrap().is_ok());
        assert!(cursor.next().unwrap().is_err());
    });
}

#[test]
fn the_shutdown_command_closes_too() {
    let directory = tempfile::tempdir().unwrap();
    let client = Client::open(directory.path()).unwrap();
    let error = client.database("admin").run_command(doc! { "shutdown": 1 }).run().unwrap_err();
    assert!(matches!(&*error.kind, ErrorKind::Shutdown));
    Client::open(directory.path()).unwrap();
}

#[test]
fn a_shutdown_ends_running_operations() {
    on_both_engines(|client| {
        let c = client.database("test").collection::<Document>("c");
        c.insert_many((0..2000).map(|n| doc! { "_id": n })).run().unwrap();
        // Minutes of work, unless it is interrupted.
        let sum = doc! { "$reduce": {
            "input": { "$range": [0, 100_000] }, "initialValue": 0,
            "in": { "$add": ["$$value", "$$this"] },
        } };
        let working = std::thread::spawn(move || {
            let pipeline = [doc! { "$group": { "_id": 1, "x": { "$sum": sum } } }];
            c.aggregate(pipeline).run().map(|_| ())
        });
        let busy = || {
            let running = client.database("admin").run_command(doc! { "currentOp": 1 }).run();
            let running = running.unwrap();
            let running = running.get_array("inprog").unwrap();
            running.iter().any(|op| op.to_string().contains("$reduce"))
        };
        while !busy() {
            assert!(!working.is_finished(), "it was to take minutes");
            std::thread::yield_now();
        }
        client.clone().shutdown().run().unwrap();
        let error = working.join().unwrap().unwrap_err();
        assert_eq!(error.code(), Some(11600), "{error:?}");
    });
}

#[test]
fn writers_during_a_shutdown_lose_nothing_acknowledged() {
    let directory = tempfile::tempdir().unwrap();
    let client = Client::open(directory.path()).unwrap();
    let c = client.database("test").collection::<Document>("c");
    let writers: Vec<_> = (0..4)
        .map(|thread| {
            let c = c.clone();
            std::thread::spawn(move || {
                let buffered = WriteConcern::nodes(1);
                let insert = |n: i32| c.insert_one(doc! { "t": thread, "n": n });
                (0..)
                    .take_while(|n| insert(*n).write_concern(buffered.clone()).run().is_ok())
                    .count()
            })
        })
        .collect();
    while c.estimated_document_count().run().unwrap() < 200 {
        std::thread::yield_now();
    }
    client.shutdown().run().unwrap();
    let acknowledged: usize = writers.into_iter().map(|writer| writer.join().unwrap()).sum();
    drop(c);
    let client = Client::open(directory.path()).unwrap();
    let c = client.database("test").collection::<Document>("c");
    let found = c.count_documents(doc! {}).run().unwrap() as usize;
    // An interrupted insert may or may not have been committed.
    assert!((acknowledged..=acknowledged + 4).contains(&found), "{acknowledged} {found}");
}

#[test]
fn background_jobs_run() {
    let client = OpenOptions::new().parameter("ttlMonitorSleepSecs", "1").in_memory().unwrap();
    let c = client.database("test").collection::<Document>("c");
    let options = IndexOptions::builder().expire_after_seconds(0i64).build();
    let index = IndexModel::builder().keys(doc! { "at": 1 }).options(options).build();
    c.create_index(index).run().unwrap();
    let far = DateTime::from_millis(DateTime::now().timestamp_millis() + 3_600_000);
    let old = DateTime::from_millis(0);
    c.insert_many([doc! { "at": old }, doc! { "at": far }]).run().unwrap();
    let until = Instant::now() + Duration::from_secs(30);
    while c.count_documents(doc! {}).run().unwrap() > 1 {
        assert!(Instant::now() < until, "the TTL job does not run");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(c.find_one(doc! { "at": far }).run().unwrap().is_some());
}

#[test]
fn a_wrong_parameter_is_refused() {
    let error = OpenOptions::new().parameter("nonsense", "1").in_memory().unwrap_err();
    assert!(error.to_string().contains("nonsense"), "{error}");
}
