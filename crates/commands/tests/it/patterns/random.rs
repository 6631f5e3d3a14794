//! Random writes of every command: after each, and at each snapshot beside concurrent writers, the copies
//! are those that `$lookup` finds.

use super::{abort, commit, declare, rows, with, within};
use crate::change_streams::open;
use crate::{Client, Server, at, code};
use quire_document::{DocBuf, doc};
use quire_storage::rng::Rng;
use quire_storage::{Crash, Faults, SimulatedDisk};

/// Returns the number of orders whose copies differ from what `$lookup` finds.
pub(super) fn wrong_copies(client: &mut Client) -> usize {
    wrong_copies_by(client, &DocBuf::new())
}

/// Returns the number of wrong copies in one snapshot: beside writers, an ordinary `$lookup` can read a
/// newer state than the collection that it joins.
fn wrong_copies_at_once(client: &mut Client) -> usize {
    wrong_copies_by(client, &doc! { "readConcern": { "level": "snapshot" } })
}

fn wrong_copies_by(client: &mut Client, more: &DocBuf) -> usize {
    let pipeline = doc! { "p": [
        { "$lookup": {
            "from": "customers", "localField": "customerId", "foreignField": "_id", "as": "t"
        } },
        { "$project": {
            "stored": "$customer.name", "wanted": { "$arrayElemAt": ["$t.name", 0] },
            "region": "$customer.region", "from": { "$arrayElemAt": ["$t.place.name", 0] },
        } },
        { "$match": { "$or": [
            { "$expr": { "$ne": ["$stored", "$wanted"] } },
            { "$expr": { "$ne": ["$region", "$from"] } },
        ] } },
    ] };
    let pipeline = pipeline.get("p").unwrap();
    let command = doc! { "aggregate": "orders", "pipeline": pipeline, "cursor": {}, "$db": "shop" };
    let found = rows(&client.works(with(&command, more.clone())));
    if let Some(first) = found.first() {
        eprintln!("{first:?}");
    }
    found.len()
}

/// The patterns of the random rounds: orders copy from customers what these copy from places.
fn chained(on_delete: &str, max_fanout: i32) -> (DocBuf, DocBuf) {
    let customers = doc! {
        "name": "place", "type": "reference", "from": "places", "localField": "placeId",
        "as": "place", "fields": { "name": "sync" }, "onDelete": on_delete, "onMissing": "null",
        "maxFanout": max_fanout
    };
    let orders = doc! {
        "name": "customer", "type": "reference", "from": "customers", "localField": "customerId",
        "as": "customer", "onDelete": on_delete, "onMissing": "null", "maxFanout": max_fanout,
        "fields": { "name": "sync", "place.name": { "mode": "sync", "as": "region" } }
    };
    (customers, orders)
}

fn random_name(rng: &mut Rng) -> String {
    format!("n{}", rng.below(1000))
}

/// Returns a random command, without its database.
fn random_command(rng: &mut Rng) -> DocBuf {
    let (collection, reference, target) =
        [("places", "none", 1), ("customers", "placeId", 4), ("orders", "customerId", 8)]
            [rng.below(3) as usize];
    let id = |rng: &mut Rng| rng.below(10) as i32;
    let value = |rng: &mut Rng| rng.below(target) as i32;
    let name = random_name(rng);
    let set = match rng.below(6) {
        0 => doc! { "$set": { "name": name.as_str() } },
        1 => doc! { "$set": { reference: (value(rng)) } },
        2 => doc! { "$unset": { "name": 1 } },
        3 => doc! { "$set": { "customer.name": "client's", "place": 5 } },
        4 => doc! { "$unset": { "customer": 1, "place": 1 } },
        _ => doc! { "$set": { "name": name.as_str(), reference: (value(rng)) } },
    };
    let filter = match rng.below(3) {
        0 => doc! { reference: (value(rng)) },
        _ => doc! { "_id": (id(rng)) },
    };
    let multi = rng.one_in(2);
    match rng.below(8) {
        0 | 1 => {
            let docs: Vec<DocBuf> = (0..=rng.below(3))
                .map(|_| doc! { "_id": (id(rng)), "name": name.as_str(), reference: (value(rng)) })
                .collect();
            let docs = quire_document::ArrayBuf::build(|out| {
                docs.iter().for_each(|doc| {
                    out.push(doc);
                });
            });
            doc! { "insert": collection, "documents": &docs, "ordered": (rng.one_in(2)) }
        }
        2 => {
            let replacement = doc! { "name": name.as_str(), reference: (value(rng)) };
            let statement = doc! { "q": { "_id": (id(rng)) }, "u": &replacement, "upsert": true };
            doc! { "update": collection, "updates": [&statement] }
        }
        3 => {
            let stages = doc! { "u": [{ "$set": { "name": name.as_str(), "x": "$name" } }] };
            let statement = doc! { "q": &filter, "u": (stages.get("u").unwrap()), "multi": multi };
            doc! { "update": collection, "updates": [&statement] }
        }
        4 => {
            let statement = doc! { "q": &filter, "limit": (i32::from(!multi)) };
            doc! { "delete": collection, "deletes": [&statement] }
        }
        5 => {
            let query = doc! { "_id": (id(rng)) };
            match rng.one_in(3) {
                true => doc! { "findAndModify": collection, "query": &query, "remove": true },
                false => doc! { "findAndModify": collection, "query": &query, "update": &set },
            }
        }
        _ => {
            let statement = doc! { "q": &filter, "u": &set, "multi": multi };
            doc! { "update": collection, "updates": [&statement] }
        }
    }
}

/// Runs the jobs that are in the table.
pub(super) fn settle(server: &Server, client: &mut Client) {
    let jobs = server.0.start_jobs().unwrap();
    loop {
        let left = server.0.store().jobs(|_| {}).unwrap();
        if left.iter().all(|job| !matches!(job.id.kind.as_str(), "derived" | "patternBuild")) {
            break;
        }
        client.works(doc! { "ping": 1, "$db": "admin" });
        std::thread::park_timeout(std::time::Duration::from_millis(2));
    }
    drop(jobs);
}

fn round(seed: u64) {
    let mut rng = Rng::new(seed);
    let server = Server::new();
    let mut client = server.client(1);
    let on_delete = ["cascade", "setNull", "restrict"][rng.below(3) as usize];
    let max_fanout = [0, 1, 1000][rng.below(3) as usize];
    let (customers, orders) = chained(on_delete, max_fanout);
    let declare_first = rng.one_in(2);
    client.works(doc! { "create": "customers", "$db": "shop" });
    client.works(doc! { "create": "orders", "$db": "shop" });
    if declare_first {
        declare(&mut client, "customers", &customers);
        declare(&mut client, "orders", &orders);
    }
    let mut txn = 0_u8;
    for step in 0..60 {
        if !declare_first && step == 30 {
            declare(&mut client, "orders", &orders);
            declare(&mut client, "customers", &customers);
        }
        if rng.one_in(5) {
            txn += 1;
            let mut alive = true;
            for at in 0..=rng.below(3) {
                let command = with(&random_command(&mut rng), doc! { "$db": "shop" });
                let reply = client.run(within(txn, at == 0, command));
                alive &= code(&reply) == 0 && reply.get("writeErrors").is_none();
                if !alive {
                    break;
                }
            }
            match alive && rng.one_in(2) {
                true => drop(client.works(commit(txn))),
                false => drop(client.run(abort(txn))),
            }
        } else {
            let command = with(&random_command(&mut rng), doc! { "$db": "shop" });
            client.run(command);
        }
        let is_declared = declare_first || step >= 30;
        if is_declared && max_fanout == 0 {
            settle(&server, &mut client);
        }
        if is_declared && max_fanout != 1 {
            assert_eq!(wrong_copies(&mut client), 0, "seed {seed}, step {step}");
        }
    }
    settle(&server, &mut client);
    assert_eq!(wrong_copies(&mut client), 0, "seed {seed}, at the end");
    for collection in ["customers", "orders"] {
        let valid = client.works(doc! { "validate": collection, "patterns": true, "$db": "shop" });
        assert_eq!(at(&valid, "valid").unwrap().as_bool(), Some(true), "seed {seed}: {valid:?}");
    }
}

/// `QUIRE_PATTERN_SEEDS` sets the number of seeds.
#[test]
fn random_writes_leave_every_copy_exact() {
    for seed in seeds(12) {
        round(seed);
    }
}

/// Four writers at once, and a reader that compares copies and base at each snapshot.
#[test]
fn concurrent_writers_leave_every_copy_exact() {
    let server = Server::new();
    let mut client = server.client(1);
    let (customers, orders) = chained("setNull", 1000);
    client.works(doc! { "create": "customers", "patterns": [&customers], "$db": "shop" });
    client.works(doc! { "create": "orders", "patterns": [&orders], "$db": "shop" });
    std::thread::scope(|scope| {
        for writer in 0..4_u64 {
            let server = &server;
            scope.spawn(move || {
                let mut client = server.client(10 + writer);
                let mut rng = Rng::new(1000 + writer);
                for _ in 0..60 {
                    client.run(with(&random_command(&mut rng), doc! { "$db": "shop" }));
                }
            });
        }
        for _ in 0..20 {
            assert_eq!(wrong_copies_at_once(&mut client), 0);
        }
    });
    assert_eq!(wrong_copies(&mut client), 0);
    for collection in ["customers", "orders"] {
        let valid = client.works(doc! { "validate": collection, "patterns": true, "$db": "shop" });
        assert_eq!(at(&valid, "valid").unwrap().as_bool(), Some(true), "{valid:?}");
    }
}

/// After a kill of the process or a power cut, and after the jobs that were left, nothing differs.
#[test]
fn power_cuts_leave_every_copy_exact() {
    for seed in seeds(8) {
        let mut rng = Rng::new(seed + 5000);
        let mut disk = SimulatedDisk::new(Faults::none(seed));
        let (customers, orders) = chained("cascade", [0, 1, 1000][rng.below(3) as usize]);
        {
            let server = open(&disk);
            let mut client = server.client(1);
            client.works(doc! { "create": "customers", "patterns": [&customers], "$db": "shop" });
            client.works(doc! { "create": "orders", "patterns": [&orders], "$db": "shop" });
        }
        for _ in 0..4 {
            let server = open(&disk);
            let mut client = server.client(1);
            for _ in 0..12 {
                let command = with(&random_command(&mut rng), doc! { "$db": "shop" });
                let concern = match rng.one_in(2) {
                    true => doc! { "writeConcern": { "w": 1 } },
                    false => doc! { "writeConcern": { "w": "majority" } },
                };
                client.run(with(&command, concern));
            }
            if rng.one_in(2) {
                step_job(&server);
            }
            drop((client, server));
            disk.crash([Crash::Process, Crash::Power, Crash::TornTail][rng.below(3) as usize]);
        }
        let server = open(&disk);
        let mut client = server.client(1);
        settle(&server, &mut client);
        for collection in ["customers", "orders"] {
            let valid =
                client.works(doc! { "validate": collection, "patterns": true, "$db": "shop" });
            assert_eq!(at(&valid, "valid").unwrap().as_bool(), Some(true), "{seed}: {valid:?}");
        }
    }
}

/// Runs one step of the first task that waits.
fn step_job(server: &Server) {
    let store = server.0.store();
    let waiting = store.jobs(|_| {}).unwrap().into_iter().find(|job| job.id.kind == "derived");
    if let Some(mut job) = waiting {
        let interrupt = quire_storage::Interrupt::new();
        store.step_job(&mut job, &mut true, &interrupt, quire_collections::derive_step).unwrap();
    }
}

/// Returns the seeds: those below `least`, or those that `QUIRE_PATTERN_SEEDS` sets, as `100` or
/// `100..200`.
pub fn seeds(least: u64) -> std::ops::Range<u64> {
    let set = std::env::var("QUIRE_PATTERN_SEEDS").ok().and_then(|text| {
        let (from, to) = text.split_once("..").unwrap_or(("0", &text));
        Some(from.parse().ok()?..to.parse().ok()?)
    });
    set.unwrap_or(0..least)
}
