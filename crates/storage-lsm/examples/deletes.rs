//! Measures how the space of deleted keys is freed in a keyspace above 1 GiB: writes documents of 1
//! KB, deletes six of ten, and prints the size of the tables until nothing changes any more or the
//! time is over. `deletes DIR DOCUMENTS SECONDS [random]`; without `random` the oldest are deleted.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quire_storage::{Bytes, CommitOptions, Engine, Mode, Space, begin, rng::Rng};
use quire_storage_lsm::{LsmOptions, open};

fn key(number: u64) -> Bytes {
    Bytes::from([&1_u32.to_be_bytes()[..], &number.to_be_bytes()].concat())
}

/// Writes the result of `value` for each number, in commits of a thousand: a document, or a delete
/// for `None`.
fn write(engine: &Arc<dyn Engine>, numbers: &[u64], mut value: impl FnMut() -> Option<Bytes>) {
    for chunk in numbers.chunks(1000) {
        let mut txn = begin(engine, Mode::Write).unwrap();
        for number in chunk {
            match value() {
                Some(value) => txn.put(Space::Doc, key(*number), value).unwrap(),
                None => txn.delete(Space::Doc, key(*number)).unwrap(),
            }
        }
        txn.commit(CommitOptions::buffered()).unwrap();
    }
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let [documents, seconds]: [u64; 2] = [2, 3].map(|at: usize| words[at].parse().unwrap());
    let engine = open(Path::new(&words[1]), LsmOptions::default()).unwrap().engine;
    let mut rng = Rng::new(1);
    let mut numbers: Vec<u64> = (0..documents).collect();
    write(&engine, &numbers, || {
        Some((0..128).flat_map(|_| rng.next_u64().to_be_bytes()).collect())
    });
    if words.get(4).is_some_and(|word| word == "random") {
        for at in (1..numbers.len()).rev() {
            let other = Rng::new(at as u64).below(at as u64 + 1);
            numbers.swap(at, usize::try_from(other).unwrap());
        }
    }
    let begun = Instant::now();
    write(&engine, &numbers[..numbers.len() * 6 / 10], || None);
    let mut last = 0;
    while begun.elapsed() < Duration::from_secs(seconds) {
        let stats = engine.stats();
        let tables = (stats.disk_bytes - stats.journal_bytes) >> 20;
        if tables != last {
            println!("{:6.1} s: {tables} MB of tables", begun.elapsed().as_secs_f64());
        }
        last = tables;
        std::thread::sleep(Duration::from_millis(500));
    }
}
