//! The measurements that chose the storage engine (docs/adr/0001-storage-engine-gate.md): the
//! bounds of memory and disk.
//!
//! `gate snapshot DIR [--no-caps|--no-snapshot]`: 100 MB of data, 2 GB of updates while one
//! snapshot stays open. `gate queue DIR`: 500,000 records, taken one by one from the head of an
//! index. `gate long DIR SECONDS SNAPSHOTS [--engine]`: four writers overwrite 100 MB while
//! `SNAPSHOTS` snapshots, opened one second apart, stay open; with `--engine` the engine keeps them
//! itself. `gate soak DIR MINUTES GIGABYTES`: load, then overwrite at random for `MINUTES`.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use quire_storage::rng::Rng;
use quire_storage::{
    Bytes, CommitOptions, CommitterOptions, Engine, Mode, Page, ScanRequest, Snapshot, Space,
    StorageError, begin, key_hash,
};
use quire_storage_lsm::{LsmOptions, open};

const WORDS: [&str; 16] = [
    "storage", "engine", "document", "value", "index", "commit", "snapshot", "journal", "table",
    "block", "record", "number", "cluster", "version", "reader", "writer",
];

/// Returns a kilobyte of words and numbers that compresses about as well as documents do.
fn document(rng: &mut Rng) -> Bytes {
    let mut text = String::with_capacity(1040);
    while text.len() < 1000 {
        let word = WORDS[usize::try_from(rng.below(16)).unwrap_or(0)];
        text.push_str(word);
        text.push_str(&rng.below(1_000_000).to_string());
    }
    text.truncate(1000);
    Bytes::from(text)
}

fn record(number: u64) -> Bytes {
    let mut key = vec![0, 0, 0, 1];
    key.extend_from_slice(&number.to_be_bytes());
    Bytes::from(key)
}

fn resident_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kb| kb.parse::<u64>().ok()).unwrap_or(0) / 1024
}

fn load(engine: &Arc<dyn Engine>, documents: u64, rng: &mut Rng) {
    let mut number = 0;
    while number < documents {
        let mut txn = begin(engine, Mode::Write).expect("a transaction");
        for _ in 0..1000.min(documents - number) {
            txn.put_entry(Space::Doc, record(number), document(rng)).expect("a write");
            number += 1;
        }
        txn.add_counts(1, 1000, 1_000_000);
        txn.commit(CommitOptions::buffered()).expect("a commit");
    }
}

fn update(engine: &Arc<dyn Engine>, documents: u64, rng: &mut Rng) {
    let (key, value) = (record(rng.below(documents)), document(rng));
    loop {
        let mut txn = begin(engine, Mode::Write).expect("a transaction");
        txn.put(Space::Doc, key.clone(), value.clone()).expect("a write");
        match txn.commit(CommitOptions::buffered()) {
            Err(StorageError::Conflict(_)) => {}
            other => {
                other.expect("a commit");
                return;
            }
        }
    }
}

/// Reads up to `rows_max` rows of a new snapshot. Returns the rows a second.
fn scan_speed(engine: &Arc<dyn Engine>, rows_max: usize, from: u64) -> f64 {
    let since = Instant::now();
    let (mut rows, mut start) = (0, record(from));
    let mut page = Page::default();
    while rows < rows_max {
        let snapshot = engine.snapshot().expect("a snapshot");
        snapshot.scan(&ScanRequest::new(Space::Doc, &start, b""), &mut page).expect("a scan");
        rows += page.rows.len();
        match page.resume.take() {
            Some(next) => start = next,
            None => break,
        }
    }
    rows as f64 / since.elapsed().as_secs_f64()
}

fn options(caps: bool) -> LsmOptions {
    let mut committer = CommitterOptions::default();
    if !caps {
        committer.snapshot_retained_bytes_max = u64::MAX;
        committer.snapshot_age_max = Duration::from_secs(1 << 30);
        committer.conflict_keys_max = usize::MAX;
    }
    LsmOptions { committer, ..LsmOptions::default() }
}

fn snapshot_test(path: &Path, caps: bool, hold: bool) {
    const DOCUMENTS: u64 = 100_000;
    const UPDATES: u64 = 2_000_000;
    let engine = open(path, options(caps)).expect("the engine opens").engine;
    let mut rng = Rng::new(1);
    load(&engine, DOCUMENTS, &mut rng);
    engine.maintenance(quire_storage::Maintenance::Flush).expect("a flush");
    println!("caps {caps}: loaded 100 MB, resident {} MB", resident_mb());
    let held = hold.then(|| engine.snapshot().expect("a snapshot"));
    let key = record(7);
    let read = || held.as_ref().map(|held| held.get(Space::Doc, &key)).transpose();
    let before = read().expect("a read");
    for step in 1..=20 {
        let since = Instant::now();
        for _ in 0..UPDATES / 20 {
            update(&engine, DOCUMENTS, &mut rng);
        }
        let writes = (UPDATES / 20) as f64 / since.elapsed().as_secs_f64();
        let state = match read() {
            Ok(None) => "none",
            Ok(value) if value == before => "held",
            Ok(_) => "WRONG VALUE",
            Err(_) => "taken",
        };
        let stats = engine.stats();
        println!(
            "{:4} MB updated: resident {} MB, memtables {} MB, disk {} MB, {writes:.0} writes/s, \
             {:.0} rows scanned/s, snapshot {state}",
            step * 100,
            resident_mb(),
            stats.memtable_bytes >> 20,
            stats.disk_bytes >> 20,
            scan_speed(&engine, 100_000, 0),
        );
    }
    drop(held);
    engine.maintenance(quire_storage::Maintenance::Tick).expect("a tick");
    println!("snapshot closed: resident {} MB", resident_mb());
    engine.close().expect("the engine closes");
}

fn soak(path: &Path, minutes: u64, gigabytes: u64) {
    let documents = gigabytes * 1_000_000;
    let engine = open(path, options(true)).expect("the engine opens").engine;
    let mut rng = Rng::new(2);
    let since = Instant::now();
    load(&engine, documents, &mut rng);
    println!(
        "loaded {gigabytes} GB in {:.0} s, disk {} MB, resident {} MB",
        since.elapsed().as_secs_f64(),
        engine.stats().disk_bytes >> 20,
        resident_mb()
    );
    let since = Instant::now();
    for minute in 1..=minutes {
        let until = since + Duration::from_secs(minute * 60);
        let (mut writes, mut slowest) = (0u64, Duration::ZERO);
        let pressure_us = engine.stats().pressure_us;
        while Instant::now() < until {
            let one = Instant::now();
            update(&engine, documents, &mut rng);
            slowest = slowest.max(one.elapsed());
            writes += 1;
        }
        let stats = engine.stats();
        println!(
            "minute {minute}: {} writes/s, slowest {} ms, pressure {} ms, resident {} MB, \
             memtables {} MB, disk {} MB, {:.0} rows scanned/s",
            writes / 60,
            slowest.as_millis(),
            (stats.pressure_us - pressure_us) / 1000,
            resident_mb(),
            stats.memtable_bytes >> 20,
            stats.disk_bytes >> 20,
            scan_speed(&engine, 100_000, rng.below(documents / 2)),
        );
    }
    engine.close().expect("the engine closes");
}

/// Measures four writing threads while snapshots stay open.
fn long(path: &Path, seconds: u64, snapshots: u64, caps: bool) {
    const DOCUMENTS: u64 = 100_000;
    let engine = open(path, options(caps)).expect("the engine opens").engine;
    load(&engine, DOCUMENTS, &mut Rng::new(1));
    engine.maintenance(quire_storage::Maintenance::Flush).expect("a flush");
    println!("{snapshots} snapshots: resident {} MB after the load", resident_mb());
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let (engine, stop) = (&engine, &stop);
            scope.spawn(move || {
                let mut rng = Rng::new(10 + writer);
                while !stop.load(Ordering::Relaxed) {
                    update(engine, DOCUMENTS, &mut rng);
                }
            });
        }
        let mut held = Vec::new();
        let mut commits = engine.stats().commits;
        for second in 0..seconds {
            if second < snapshots {
                let snapshot = engine.snapshot().expect("a snapshot");
                match checksum(&*snapshot) {
                    Ok(sum) => held.push((snapshot, sum)),
                    Err(error) => println!("a snapshot was taken while it was read: {error:?}"),
                }
            }
            std::thread::sleep(Duration::from_secs(1));
            if second % 5 == 4 {
                report(&engine, &held, second + 1, &mut commits);
            }
        }
        stop.store(true, Ordering::Relaxed);
        let now = Instant::now();
        let mut wrong = 0;
        for (number, (held, sum)) in held.iter().enumerate() {
            let sum_now = checksum(&**held);
            if sum_now.as_ref() != Ok(sum) {
                println!("snapshot {number}: {sum} is now {sum_now:?}");
                wrong += 1;
            }
        }
        println!(
            "{wrong} of {} snapshots changed or taken, read in {:?}",
            held.len(),
            now.elapsed()
        );
    });
    engine.maintenance(quire_storage::Maintenance::Tick).expect("a tick");
    println!("closed: resident {} MB, disk {} MB", resident_mb(), engine.stats().disk_bytes >> 20);
    engine.close().expect("the engine closes");
}

type Held = (Box<dyn Snapshot>, u64);

fn report(engine: &Arc<dyn Engine>, held: &[Held], second: u64, commits: &mut u64) {
    let stats = engine.stats();
    let (mut point, mut rows, mut scanned) = (Duration::ZERO, 0, Duration::ZERO);
    if let Some((held, _)) = held.first() {
        let since = Instant::now();
        let found = (0..1000).filter(|n| held.get(Space::Doc, &record(n * 97)).is_ok()).count();
        point = since.elapsed() / 1000;
        let since = Instant::now();
        let mut page = Page::default();
        let range = ScanRequest::new(Space::Doc, b"", b"").rows_max(20_000);
        let _ = held.scan(&ScanRequest { bytes_max: usize::MAX, ..range }, &mut page);
        (rows, scanned) = (page.rows.len().min(found * 20), since.elapsed());
    }
    println!(
        "{second} s: {} writes/s, resident {} MB, memtables {} MB, disk {} MB, {} held with {} MB, \
         taken {}, conflict keys {}, held point read {point:?}, held scan {:.0} rows/s, new scan {:.0} rows/s",
        (stats.commits - *commits) / 5,
        resident_mb(),
        stats.memtable_bytes >> 20,
        stats.disk_bytes >> 20,
        stats.snapshots_held,
        stats.snapshots_held_bytes >> 20,
        stats.snapshots_revoked,
        stats.conflict_keys,
        rows as f64 / scanned.as_secs_f64().max(1e-9),
        scan_speed(engine, 20_000, 0),
    );
    *commits = engine.stats().commits;
}

/// Returns a number that differs between two states of the documents.
fn checksum(snapshot: &dyn Snapshot) -> Result<u64, StorageError> {
    let (mut sum, mut page, mut start) = (0u64, Page::default(), Bytes::new());
    loop {
        snapshot.scan(&ScanRequest::new(Space::Doc, &start, b""), &mut page)?;
        for (key, value) in &page.rows {
            let hash = key_hash(Space::Doc, key).wrapping_add(key_hash(Space::Idx, value));
            sum = sum.wrapping_mul(31).wrapping_add(hash);
        }
        match page.resume.take() {
            Some(next) => start = next,
            None => return Ok(sum),
        }
    }
}

/// Finds the head through the index, without a low-water mark: the worst case.
fn queue(path: &Path) {
    const RECORDS: u64 = 500_000;
    let engine = open(path, options(true)).expect("the engine opens").engine;
    let mut rng = Rng::new(3);
    for chunk in 0..RECORDS / 1000 {
        let mut txn = begin(&engine, Mode::Write).expect("a transaction");
        for number in chunk * 1000..(chunk + 1) * 1000 {
            txn.put_entry(Space::Doc, record(number), document(&mut rng)).expect("a write");
            txn.put_entry(Space::Idx, record(number), Bytes::new()).expect("a write");
        }
        txn.commit(CommitOptions::buffered()).expect("a commit");
    }
    let mut page = Page::default();
    for step in 1..=10 {
        let mut times = Vec::new();
        for _ in 0..RECORDS / 10 {
            let since = Instant::now();
            let mut txn = begin(&engine, Mode::Write).expect("a transaction");
            let head = ScanRequest::new(Space::Idx, b"", b"").rows_max(1);
            engine.snapshot().expect("a snapshot").scan(&head, &mut page).expect("a scan");
            let Some((key, _)) = page.rows.pop() else { break };
            txn.delete(Space::Doc, key.clone()).expect("a delete");
            txn.delete_entry(Space::Idx, key).expect("a delete");
            txn.commit(CommitOptions::buffered()).expect("a commit");
            times.push(since.elapsed());
        }
        times.sort();
        let at = |share: usize| times.get(times.len() * share / 100).copied().unwrap_or_default();
        println!(
            "{} taken: median {} us, p99 {} us, slowest {} ms, disk {} MB",
            step * RECORDS / 10,
            at(50).as_micros(),
            at(99).as_micros(),
            times.last().copied().unwrap_or_default().as_millis(),
            engine.stats().disk_bytes >> 20
        );
    }
    engine.close().expect("the engine closes");
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["snapshot", path] => snapshot_test(Path::new(path), true, true),
        ["snapshot", path, "--no-caps"] => snapshot_test(Path::new(path), false, true),
        ["snapshot", path, "--no-snapshot"] => snapshot_test(Path::new(path), true, false),
        ["queue", path] => queue(Path::new(path)),
        ["long", path, seconds, snapshots, ref rest @ ..] => {
            let number = |text: &str| text.parse().expect("a number");
            long(Path::new(path), number(seconds), number(snapshots), rest.is_empty());
        }
        ["soak", path, minutes, gigabytes] => {
            let number = |text: &str| text.parse().expect("a number");
            soak(Path::new(path), number(minutes), number(gigabytes));
        }
        _ => eprintln!(
            "gate snapshot DIR [--no-caps|--no-snapshot] | gate queue DIR \
             | gate long DIR SECONDS SNAPSHOTS [--engine] | gate soak DIR MINUTES GIGABYTES"
        ),
    }
}
