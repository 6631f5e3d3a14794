//! Isolation: random transactions of eight clients, whose reads are checked. In memory, on disk,
//! and on a simulated disk with crashes.

mod history;
mod model;

use crate::transactions::{commit, within};
use crate::{Client, NoLog, Server, at, code, replica_set};
use history::{Key, Op, Registers, Status, Txn, Value, anomalies};
use quire_document::{Doc, DocBuf, Value as Bson, doc};
use quire_storage::rng::Rng;
use quire_storage::simulated::{Crash, Faults, SimulatedDisk};
use quire_storage::{Engine, open_memory};
use quire_storage_lsm::LsmOptions;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

const CLIENTS: u8 = 8;
const KEYS: u64 = 5;

/// The content of the documents.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Workload {
    /// Lists, to which values are appended.
    Lists,
    /// Registers, whose values are replaced.
    Registers,
}

/// What all clients share.
struct Shared {
    workload: Workload,
    history: Mutex<Vec<Txn>>,
    registers: Mutex<Registers>,
    next_value: AtomicI64,
    committed: AtomicUsize,
}

/// What one statement read, before registers are converted to lists.
enum Seen {
    Wrote(Key, Value),
    Read(Key, Vec<Value>),
}

impl Shared {
    fn new(workload: Workload) -> Self {
        Shared {
            workload,
            history: Mutex::default(),
            registers: Mutex::default(),
            next_value: AtomicI64::new(1),
            committed: AtomicUsize::new(0),
        }
    }

    /// Returns the values of a document: a list, or the register's value.
    fn values(&self, document: Doc<'_>) -> Vec<Value> {
        let number = |value: Bson<'_>| value.exact_i64().expect("a whole number");
        match document.get("v") {
            Some(Bson::Array(list)) => list.iter().map(number).collect(),
            Some(value) => vec![number(value)],
            None => Vec::new(),
        }
    }

    fn read(&self, filter: &DocBuf) -> DocBuf {
        doc! { "find": "t", "filter": filter, "$db": "test" }
    }

    fn write(&self, key: Key, value: Value) -> DocBuf {
        let change = match self.workload {
            Workload::Lists => doc! { "$push": { "v": value } },
            Workload::Registers => doc! { "$set": { "v": value } },
        };
        doc! { "findAndModify": "t", "query": { "_id": key }, "update": &change, "upsert": true, "$db": "test" }
    }

    /// Runs one statement. Returns what it read, or the code of its error.
    fn statement(
        &self,
        client: &mut Client,
        rng: &mut Rng,
        id: (u8, i64),
        first: bool,
    ) -> Result<Vec<Seen>, i32> {
        let key = rng.below(KEYS) as Key;
        let mut run = |command: DocBuf| {
            let reply = client.run(within(command, id, first));
            match code(&reply) {
                0 => Ok(reply),
                code => Err(code),
            }
        };
        match rng.below(10) {
            0..5 => {
                let value = self.next_value.fetch_add(1, Ordering::Relaxed);
                let reply = run(self.write(key, value))?;
                let before = reply.get("value").and_then(|value| value.as_document());
                let before = before.map(|before| self.values(before)).unwrap_or_default();
                if self.workload == Workload::Registers {
                    self.registers.lock().unwrap().wrote(key, value, before.first().copied());
                }
                // The write has read the value that it replaced.
                Ok(vec![Seen::Read(key, before), Seen::Wrote(key, value)])
            }
            5..8 => {
                let reply = run(self.read(&doc! { "_id": key }))?;
                Ok(vec![Seen::Read(
                    key,
                    self.documents(&reply).pop().map_or(vec![], |(_, list)| list),
                )])
            }
            _ => self.read_all(run),
        }
    }

    /// Reads every key with one scan.
    fn read_all(&self, run: impl FnOnce(DocBuf) -> Result<DocBuf, i32>) -> Result<Vec<Seen>, i32> {
        let reply = run(self.read(&doc! { "_id": { "$gte": 0 } }))?;
        let mut seen: Vec<Vec<Value>> = vec![Vec::new(); KEYS as usize];
        for (key, list) in self.documents(&reply) {
            seen[key as usize] = list;
        }
        Ok((0..).zip(seen).map(|(key, list)| Seen::Read(key, list)).collect())
    }

    fn documents(&self, reply: &DocBuf) -> Vec<(Key, Vec<Value>)> {
        let batch = at(reply, "cursor.firstBatch").unwrap().as_array().unwrap();
        let documents = batch.iter().filter_map(|document| document.as_document());
        let key = |document: Doc<'_>| document.get("_id").and_then(|id| id.exact_i64()).unwrap();
        documents.map(|document| (key(document) as Key, self.values(document))).collect()
    }

    /// Runs a transaction of up to five statements.
    fn transaction(&self, client: &mut Client, rng: &mut Rng, id: (u8, i64)) {
        let mut seen = Vec::new();
        let mut status = None;
        for statement in 0..1 + rng.below(5) {
            match self.statement(client, rng, id, statement == 0) {
                Ok(more) => seen.extend(more),
                Err(_) => {
                    status = Some(Status::Aborted);
                    break;
                }
            }
        }
        let status = status.unwrap_or_else(|| {
            let ends = if rng.below(10) == 0 { "abortTransaction" } else { "commitTransaction" };
            let mut end = doc! { ends: 1, "$db": "admin" };
            if ends == "commitTransaction" {
                end = commit();
            }
            end.append("writeConcern", &doc! { "w": "majority" });
            match (ends, code(&client.run(within(end, id, false)))) {
                ("abortTransaction", _) | (_, 112 | 246 | 251) => Status::Aborted,
                (_, 0) => Status::Committed,
                _ => Status::Unknown,
            }
        });
        if status == Status::Committed {
            self.committed.fetch_add(1, Ordering::Relaxed);
        }
        self.note(status, seen);
    }

    fn note(&self, status: Status, seen: Vec<Seen>) {
        let registers = self.registers.lock().unwrap();
        let list = |values: Vec<Value>| match self.workload {
            Workload::Lists => values,
            Workload::Registers => registers.list(values.first().copied()),
        };
        let op = |seen| match seen {
            Seen::Wrote(key, value) => Op::Append(key, value),
            Seen::Read(key, values) => Op::Read(key, list(values)),
        };
        let ops = seen.into_iter().map(op).collect();
        self.history.lock().unwrap().push(Txn { status, ops });
    }

    /// Runs eight clients at once until `commits` more transactions have committed, or a crash has
    /// made all of them fail.
    fn run(&self, server: &Server, round: u8, seed: u64, commits: usize, then: impl FnOnce()) {
        let until = self.committed.load(Ordering::Relaxed) + commits;
        std::thread::scope(|scope| {
            for number in 0..CLIENTS {
                scope.spawn(move || {
                    let mut client = server.client(u64::from(number) + 1);
                    let mut rng = Rng::new(seed * 1000 + u64::from(round * CLIENTS + number));
                    let mut txn = 0;
                    while self.committed.load(Ordering::Relaxed) < until {
                        txn += 1;
                        self.transaction(&mut client, &mut rng, (round * CLIENTS + number, txn));
                    }
                });
            }
            while self.committed.load(Ordering::Relaxed) < until.saturating_sub(commits / 2) {
                std::thread::yield_now();
            }
            then();
            // After a crash nothing commits any more.
            self.committed.fetch_add(commits, Ordering::Relaxed);
        });
    }

    /// Reads everything at the end and checks the history.
    fn judge(&self, server: &Server) {
        let mut client = server.client(100);
        let seen = self.read_all(|command| Ok(client.works(command))).unwrap();
        self.note(Status::Committed, seen);
        let history = self.history.lock().unwrap();
        let count = |status| history.iter().filter(|txn| txn.status == status).count();
        let told = [Status::Committed, Status::Aborted, Status::Unknown].map(count);
        println!("{told:?} transactions committed, aborted, unknown");
        let found = anomalies(&history);
        assert!(found.is_empty(), "{found:?} in {history:#?}");
        assert!(told[1] > 0, "nobody met anybody");
    }
}

fn serve(engine: Arc<dyn Engine>) -> Server {
    let server = Server::open(engine, replica_set(), &[], Arc::new(NoLog));
    server.client(1).run(doc! { "create": "t", "$db": "test" });
    server
}

fn on_engine(engine: &Arc<dyn Engine>, commits: usize) {
    for (seed, workload) in [(1, Workload::Lists), (2, Workload::Registers)] {
        let shared = Shared::new(workload);
        let server = serve(Arc::clone(engine));
        server
            .client(1)
            .works(doc! { "delete": "t", "deletes": [{ "q": {}, "limit": 0 }], "$db": "test" });
        shared.run(&server, seed as u8, seed, commits, || ());
        shared.judge(&server);
    }
}

#[test]
fn transactions_in_memory_are_isolated() {
    on_engine(&open_memory().unwrap(), 600);
}

#[test]
fn transactions_on_disk_are_isolated() {
    let directory = tempfile::tempdir().unwrap();
    let opened = quire_storage_lsm::open(directory.path(), LsmOptions::default()).unwrap();
    on_engine(&opened.engine, 300);
    opened.engine.close().unwrap();
}

#[test]
fn transactions_are_isolated_and_whole_across_crashes() {
    for (seed, workload) in [(3, Workload::Lists), (4, Workload::Registers)] {
        let faults = Faults { conflict_one_in: 40, ..Faults::none(seed) };
        let mut disk = SimulatedDisk::new(faults);
        let shared = Shared::new(workload);
        for (round, crash) in
            (0..).zip([Crash::Power, Crash::TornTail, Crash::Process, Crash::Power])
        {
            let server = serve(disk.open().unwrap());
            shared.run(&server, round, seed, 120, || {
                disk.crash(crash);
            });
        }
        let server = serve(disk.open().unwrap());
        shared.judge(&server);
    }
}
