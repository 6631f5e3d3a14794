//! Measures commits: durable inserts a second and commits per fsync at 1, 16 and 64 threads, and
//! the CPU time of an insert without fsync, of a snapshot and of a point read. `commits DIR
//! [durable|buffered|memory]`.

#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use quire_storage::{
    Bytes, CommitOptions, Engine, Mode, Page, ScanRequest, Space, begin, open_memory,
};
use quire_storage_lsm::{LsmOptions, open};

/// Returns the user and system time of this process in microseconds (ticks of 10 ms).
fn cpu_us() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|t| t.parse::<u64>().ok()).unwrap_or(0);
    (ticks(11) + ticks(12)) * 10_000
}

/// Returns the CPU time of this thread in nanoseconds.
fn thread_ns() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    stat.split_whitespace().next().and_then(|ns| ns.parse().ok()).unwrap_or(0)
}

fn key(prefix: u32, number: u64) -> Bytes {
    let mut key = prefix.to_be_bytes().to_vec();
    key.extend_from_slice(&number.to_be_bytes());
    Bytes::from(key)
}

/// Inserts what the layer above inserts: a document, its `_id` entry, counters.
fn insert(engine: &Arc<dyn Engine>, number: u64, document: &Bytes, options: CommitOptions) {
    let mut txn = begin(engine, Mode::Write).expect("a transaction");
    txn.guard(Space::Meta, b"catalog epoch");
    txn.put_entry(Space::Doc, key(1, number), document.clone()).expect("a write");
    let scattered = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    txn.insert(Space::Idx, key(2, scattered), key(0, number), 0).expect("a new key");
    txn.add_counts(1, 1, 1000);
    txn.commit(options).expect("a commit");
}

fn fsync_us(directory: &Path) -> f64 {
    let mut file = std::fs::File::create(directory.join("fsync.probe")).expect("a file");
    file.set_len(4 << 20).expect("space");
    file.sync_all().expect("an fsync");
    let since = Instant::now();
    for _ in 0..500 {
        file.write_all(&[7; 1200]).expect("a write");
        file.sync_data().expect("an fsync");
    }
    since.elapsed().as_secs_f64() * 1e6 / 500.0
}

fn durable(directory: &Path, threads: u64, document: &Bytes) {
    let engine = open(directory, LsmOptions::default()).expect("the engine opens").engine;
    let before = engine.stats();
    let (next, cpu, since) = (AtomicU64::new(1), cpu_us(), Instant::now());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while since.elapsed() < Duration::from_secs(5) {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    insert(&engine, number, document, CommitOptions::synced());
                }
            });
        }
    });
    let stats = engine.stats();
    let commits = (stats.commits - before.commits) as f64;
    println!(
        "{threads:2} threads, synced: {:.0} commits/s, {:.1} commits per fsync, {:.1} us CPU each",
        commits / since.elapsed().as_secs_f64(),
        commits / (stats.fsyncs - before.fsyncs) as f64,
        (cpu_us() - cpu) as f64 / commits,
    );
    engine.close().expect("the engine closes");
}

fn buffered(name: &str, engine: &Arc<dyn Engine>, document: &Bytes) {
    let commits: u64 =
        std::env::var("COMMITS").ok().and_then(|n| n.parse().ok()).unwrap_or(300_000);
    for round in 0..3 {
        let (cpu, own, since) = (cpu_us(), thread_ns(), Instant::now());
        for number in 0..commits {
            insert(engine, round * commits + number, document, CommitOptions::buffered());
        }
        println!(
            "{name}, 1 thread, buffered: an insert {:.1} us wall, {:.1} us CPU of its thread, \
             {:.1} us with flush and compaction",
            since.elapsed().as_secs_f64() * 1e6 / commits as f64,
            (thread_ns() - own) as f64 / 1e3 / commits as f64,
            (cpu_us() - cpu) as f64 / commits as f64
        );
    }
    let own = thread_ns();
    for _ in 0..1_000_000 {
        let snapshot = engine.snapshot().expect("a snapshot");
        std::hint::black_box(snapshot.version());
    }
    println!("{name}, a snapshot opened and closed: {} ns", (thread_ns() - own) / 1_000_000);
    let own = thread_ns();
    for number in 0..300_000u64 {
        let snapshot = engine.snapshot().expect("a snapshot");
        let scattered = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) % commits;
        let found = snapshot.get(Space::Doc, &key(1, scattered)).expect("a read");
        assert!(found.is_some());
    }
    println!("{name}, a point read on a new snapshot: {} ns", (thread_ns() - own) / 300_000);
    let (own, mut rows) = (thread_ns(), 0);
    let (mut page, mut start) = (Page::default(), key(1, 0));
    loop {
        let snapshot = engine.snapshot().expect("a snapshot");
        snapshot.scan(&ScanRequest::new(Space::Doc, &start, b""), &mut page).expect("a scan");
        rows += page.rows.len() as u64;
        match page.resume.take() {
            Some(next) => start = next,
            None => break,
        }
    }
    println!("{name}, a scanned document: {} ns", (thread_ns() - own) / rows);
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let Some(directory) = arguments.next() else {
        return eprintln!("commits DIR [durable|buffered|memory]");
    };
    let only = arguments.next();
    let wanted = |part: &str| only.as_deref().is_none_or(|only| only == part);
    let directory = Path::new(&directory);
    std::fs::create_dir_all(directory).expect("a directory");
    let document: Vec<u8> = (0..1000u32).map(|at| (at * at % 251) as u8).collect();
    let document = Bytes::from(document);
    if wanted("durable") {
        println!("fdatasync of 1.2 KB here: {:.0} us", fsync_us(directory));
        for threads in [1, 16, 64] {
            durable(&directory.join(format!("durable{threads}")), threads, &document);
        }
    }
    if wanted("buffered") {
        let options = LsmOptions { cache_bytes: 2 << 30, ..LsmOptions::default() };
        let engine = open(&directory.join("buffered"), options).expect("the engine opens").engine;
        buffered("disk", &engine, &document);
        engine.close().expect("the engine closes");
        let since = Instant::now();
        let engine = open(&directory.join("buffered"), LsmOptions::default())
            .expect("the engine opens")
            .engine;
        println!("opened after a clean stop in {} ms", since.elapsed().as_millis());
        engine.close().expect("the engine closes");
    }
    if wanted("memory") {
        buffered("memory", &open_memory().expect("the engine opens"), &document);
    }
}
