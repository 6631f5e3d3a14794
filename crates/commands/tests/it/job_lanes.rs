//! Jobs on changes that run in parallel: in order for each key, exactly once across crashes and changes
//! of the job, and without waiting for other keys.

use super::change_streams::array;
use super::user_jobs::{begin, find, insert, open, runs, shown, wait};
use super::*;
use quire_document::doc;
use quire_storage::Crash;
use quire_storage::rng::Rng;

/// A job that appends the number of each event to the list of its key.
fn log_job(parallel: &DocBuf) -> DocBuf {
    let entry = doc! { "$project": { "_id": "$fullDocument.key", "log": ["$fullDocument.n"] } };
    let append = doc! { "$set": { "log": { "$concatArrays": ["$log", "$$new.log"] } } };
    doc! { "createJob": "log", "changes": { "collection": "in", "batchSize": 5, "parallel": parallel },
    "pipeline": [{ "$documents": ["$$event"] }, &entry,
        { "$merge": { "into": "logs", "whenMatched": [&append] } }], "$db": "d" }
}

fn by_key(lanes: i32) -> DocBuf {
    doc! { "by": "$$event.fullDocument.key", "lanes": lanes }
}

/// Returns the lists of the keys.
fn logs(client: &mut Client) -> Vec<(i64, Vec<i64>)> {
    let log = |doc: &DocBuf| {
        let numbers = array(doc, "log").iter().filter_map(|number| number.exact_i64());
        (number(doc, "_id").unwrap(), numbers.collect())
    };
    find(client, "logs").iter().map(log).collect()
}

/// Inserts documents with the numbers `from..to`; the key of a document is its number modulo 7.
fn feed(client: &mut Client, from: i64, to: i64) {
    for n in from..to {
        insert(client, "in", &doc! { "_id": n, "key": (n % 7), "n": n });
    }
}

fn expected(to: i64) -> Vec<(i64, Vec<i64>)> {
    (0..7).map(|key| (key, (0..to).filter(|n| n % 7 == key).collect())).collect()
}

#[test]
fn events_of_a_key_are_handled_in_order_and_once_across_crashes() {
    let rounds = std::env::var("QUIRE_CRASH_ROUNDS").ok().and_then(|rounds| rounds.parse().ok());
    let (mut disk, clock, server, jobs) = begin();
    server.client(1).works(log_job(&by_key(3)));
    let (mut rng, mut fed) = (Rng::new(49), 0);
    let mut held = Some((server, jobs));
    for round in 0..rounds.unwrap_or(6_u64) {
        let (server, jobs) = held.take().unwrap_or_else(|| open(&disk, &clock));
        let mut client = server.client(1);
        let next = fed + 5 + rng.below(30) as i64;
        feed(&mut client, fed, next);
        fed = next;
        match rng.below(4) {
            // A step that runs meanwhile has its effect before the change, or not at all.
            0 => drop(client.works(doc! { "updateJob": "log", "maxTimeMS": 60_000, "$db": "d" })),
            1 => {
                client.works(doc! { "pauseJob": "log", "$db": "d" });
                client.works(doc! { "resumeJob": "log", "$db": "d" });
            }
            2 => drop(runs(&mut client, "log", fed / 2)),
            _ => {}
        }
        drop(jobs);
        drop((client, server));
        disk.crash(if round % 2 == 0 { Crash::Process } else { Crash::Power });
    }
    let (server, _jobs) = open(&disk, &clock);
    let mut client = server.client(1);
    let job = runs(&mut client, "log", fed);
    assert_eq!(number(&job, "runs"), Some(fed));
    assert_eq!(logs(&mut client), expected(fed));
}

/// Returns the lane of a key.
fn lane_of(client: &mut Client, key: i64, lanes: i32) -> i64 {
    let lane = doc! { "$abs": { "$mod": [{ "$toHashedIndexKey": key }, lanes] } };
    let reply = client.works(doc! { "aggregate": 1, "cursor": {}, "pipeline": [
    { "$documents": [{}] }, { "$project": { "lane": &lane } }], "$db": "d" });
    number(
        &super::change_streams::document(array(&reply, "cursor.firstBatch").iter().next()),
        "lane",
    )
    .unwrap()
}

#[test]
fn a_key_that_fails_does_not_stop_those_of_other_lanes() {
    let (_disk, _clock, server, _jobs) = begin();
    let mut client = server.client(1);
    let mut job = log_job(&by_key(4));
    job.append("attempts", 1000);
    client.works(job);
    // A list that is a number cannot be appended to.
    client.works(doc! { "insert": "logs", "documents": [{ "_id": 0, "log": 1 }], "$db": "d" });
    let bad = lane_of(&mut client, 0, 4);
    let good = (1..100).find(|key| lane_of(&mut client, *key, 4) != bad).unwrap();
    for (n, key) in [(1, 0), (2, good), (3, 0), (4, good)] {
        insert(&mut client, "in", &doc! { "_id": n, "key": key, "n": n });
    }
    let failing = wait(&mut client, "log", |job| {
        number(job, "runs") == Some(2) && number(job, "failures").unwrap_or(0) > 0
    });
    assert!(text(&failing, "error").unwrap().contains("concatArrays"), "{failing:?}");
    let mend = doc! { "q": { "_id": 0 }, "u": { "$set": { "log": [] } } };
    client.works(doc! { "update": "logs", "updates": [&mend], "$db": "d" });
    runs(&mut client, "log", 4);
    assert_eq!(logs(&mut client), [(0, vec![1, 3]), (good, vec![2, 4])]);
}

#[test]
fn a_job_is_divided_listed_paused_and_dropped_with_all_its_lanes() {
    let (_disk, _clock, server, _jobs) = begin();
    let mut client = server.client(1);
    let mut alone = log_job(&by_key(3));
    alone = DocBuf::build(|job| {
        for (name, value) in alone.as_doc().fields() {
            match name {
                "changes" => job.append(name, &doc! { "collection": "in" }),
                _ => job.append(name, value),
            };
        }
    });
    client.works(alone);
    feed(&mut client, 0, 20);
    runs(&mut client, "log", 20);
    let rows = || {
        let jobs = server.0.store().jobs(|_| {}).unwrap();
        jobs.iter().filter(|job| job.id.kind == "user").count()
    };
    assert_eq!(rows(), 1);
    let divide = |lanes: i32| {
        let changes = doc! { "collection": "in", "parallel": &by_key(lanes) };
        doc! { "updateJob": "log", "changes": &changes, "$db": "d" }
    };
    client.works(divide(5));
    assert_eq!(rows(), 5);
    feed(&mut client, 20, 60);
    let job = runs(&mut client, "log", 60);
    assert_eq!((number(&job, "runs"), number(&job, "done")), (Some(60), Some(60)));
    assert_eq!(code(&client.run(divide(6))), 20);
    client.works(doc! { "pauseJob": "log", "$db": "d" });
    assert_eq!(rows(), 0);
    assert_eq!(code(&client.run(divide(6))), 20);
    feed(&mut client, 60, 80);
    let paused = shown(&mut client, "log");
    assert_eq!((number(&paused, "runs"), number(&paused, "done")), (Some(60), Some(60)));
    assert!(at(&paused, "last.ended").is_some());
    client.works(doc! { "resumeJob": "log", "$db": "d" });
    assert_eq!(number(&runs(&mut client, "log", 80), "runs"), Some(80));
    assert_eq!(logs(&mut client), expected(80));
    let operations = client.works(doc! { "currentOp": 1, "$all": true, "$db": "admin" });
    let names: Vec<_> = array(&operations, "inprog")
        .iter()
        .filter_map(|row| row.as_document()?.get("job")?.as_document()?.get("name")?.as_str())
        .map(str::to_owned)
        .collect();
    assert!(names.contains(&"d.log".to_owned()) && names.contains(&"d.log lane 4".to_owned()));
    client.works(doc! { "dropJob": "log", "$db": "d" });
    assert_eq!(rows(), 0);
}

#[test]
fn without_a_key_each_document_is_one() {
    let (_disk, _clock, server, _jobs) = begin();
    let mut client = server.client(1);
    let count = doc! { "$project": { "_id": "$documentKey._id", "kinds": ["$operationType"] } };
    let append = doc! { "$set": { "kinds": { "$concatArrays": ["$kinds", "$$new.kinds"] } } };
    client.works(doc! { "createJob": "kinds", "changes": { "collection": "in", "parallel": {} },
    "pipeline": [{ "$documents": ["$$event"] }, &count,
        { "$merge": { "into": "seen", "whenMatched": [&append] } }], "$db": "d" });
    for id in 0..10 {
        insert(&mut client, "in", &doc! { "_id": id });
        let update = doc! { "q": { "_id": id }, "u": { "$set": { "a": id } } };
        client.works(doc! { "update": "in", "updates": [&update], "$db": "d" });
        let delete = doc! { "q": { "_id": id }, "limit": 1 };
        client.works(doc! { "delete": "in", "deletes": [&delete], "$db": "d" });
    }
    runs(&mut client, "kinds", 30);
    let seen = find(&mut client, "seen");
    assert_eq!(seen.len(), 10);
    for doc in seen {
        let kinds: Vec<_> = array(&doc, "kinds").iter().filter_map(|kind| kind.as_str()).collect();
        assert_eq!(kinds, ["insert", "update", "delete"]);
    }
}

#[test]
fn what_divides_no_events_is_refused() {
    let (_disk, _clock, server, _jobs) = begin();
    let mut client = server.client(1);
    for (expected, parallel) in [
        (2, doc! { "lanes": 1 }),
        (2, doc! { "lanes": 17 }),
        (14, doc! { "lanes": "many" }),
        (40_415, doc! { "key": "$a" }),
        (17_276, doc! { "by": "$$nothing" }),
        (168, doc! { "by": { "$nothing": 1 } }),
    ] {
        assert_eq!(code(&client.run(log_job(&parallel))), expected, "{parallel:?}");
    }
}

/// The stream of a collection ends when it is dropped. A job that leaves out the last event had no
/// place to go on from, and failed ever after.
#[test]
fn a_job_goes_on_when_its_collection_was_dropped_and_is_there_again() {
    let (_disk, _clock, server, _jobs) = begin();
    let mut client = server.client(1);
    let inserts = doc! { "$match": { "operationType": "insert" } };
    for (name, parallel) in [("alone", None), ("lanes", Some(by_key(3)))] {
        let changes = DocBuf::build(|changes| {
            changes.append("collection", "in");
            changes.array("pipeline").push(&inserts);
            if let Some(parallel) = &parallel {
                changes.append("parallel", parallel);
            }
        });
        let into = format!("{name}Copies");
        client.works(doc! { "createJob": name, "changes": &changes, "pipeline": [
            { "$documents": ["$$event.fullDocument"] }, { "$merge": { "into": (into.as_str()) } }],
        "$db": "d" });
    }
    for round in 0..3 {
        feed(&mut client, round * 10, round * 10 + 10);
        client.works(doc! { "drop": "in", "$db": "d" });
    }
    feed(&mut client, 30, 40);
    for name in ["alone", "lanes"] {
        assert_eq!(number(&runs(&mut client, name, 40), "runs"), Some(40), "{name}");
        assert_eq!(find(&mut client, &format!("{name}Copies")).len(), 40);
    }
}

/// Of two commands that create a job, one succeeds; what a job has done is not done again because it is
/// changed meanwhile.
#[test]
fn commands_beside_a_running_job_do_not_set_it_back() {
    let (_disk, _clock, server, _jobs) = begin();
    let mut client = server.client(1);
    client.works(log_job(&by_key(2)));
    std::thread::scope(|scope| {
        let (mut second, mut third) = (server.client(2), server.client(3));
        let changing = scope.spawn(move || {
            for at in 0..40 {
                let limit = 60_000 + at;
                second.works(doc! { "updateJob": "log", "maxTimeMS": limit, "$db": "d" });
            }
        });
        let pausing = scope.spawn(move || {
            for _ in 0..20 {
                third.works(doc! { "pauseJob": "log", "$db": "d" });
                third.works(doc! { "resumeJob": "log", "$db": "d" });
            }
        });
        feed(&mut client, 0, 100);
        changing.join().unwrap();
        pausing.join().unwrap();
    });
    assert_eq!(number(&runs(&mut client, "log", 100), "runs"), Some(100));
    assert_eq!(logs(&mut client), expected(100));
    let created: Vec<i32> = std::thread::scope(|scope| {
        let server = &server;
        let mut job = log_job(&by_key(2));
        job = DocBuf::build(|twin| {
            twin.append("createJob", "twin");
            job.as_doc().fields().skip(1).for_each(|(name, value)| _ = twin.append(name, value));
        });
        let create = |id| {
            let (mut client, job) = (server.client(id), job.clone());
            scope.spawn(move || code(&client.run(job)))
        };
        let threads: Vec<_> = (10..14).map(create).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(created.iter().filter(|code| **code == 0).count(), 1, "{created:?}");
    assert!(created.iter().all(|code| [0, 48].contains(code)), "{created:?}");
}
