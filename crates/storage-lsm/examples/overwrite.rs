//! Measures the stalls of a sustained load: four writers overwrite documents of 1 KB at random,
//! with buffered commits. Every ten seconds it prints the throughput, the slowest write, the memory
//! and the disk space; at the end the percentiles, the number of slow writes, the CPU time, and the
//! bytes that were written to the device for each byte of the documents. With `stalls` it prints
//! each write of more than 100 ms with the second of its end and, while the write runs, what each
//! thread waits for (the kernel shows that to root only). `overwrite DIR SECONDS [WORKERS]
//! [stalls]`.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use quire_storage::{Bytes, CommitOptions, Engine, Mode, Space, begin, rng::Rng};
use quire_storage_lsm::{LsmOptions, open};

const DOCUMENTS: u64 = 500_000;
const WRITERS: u64 = 4;
/// The number of buckets of the histogram, of 1/8 ms each below 1 s.
const BUCKETS: usize = 8_000;
/// The longest acceptable time of a write.
const STALL: Duration = Duration::from_millis(100);
/// The bytes of a document.
const DOCUMENT: usize = 1024;
/// The time after which a running write is examined.
const SUSPECT: Duration = Duration::from_millis(70);

struct Latencies(Vec<AtomicU64>);

impl Latencies {
    fn new() -> Self {
        Latencies((0..=BUCKETS).map(|_| AtomicU64::new(0)).collect())
    }

    fn add(&self, took: Duration) {
        let at = usize::try_from(took.as_micros() / 125).unwrap_or(BUCKETS).min(BUCKETS);
        self.0[at].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how many writes took at least `limit`.
    fn over(&self, limit: Duration) -> u64 {
        let from = usize::try_from(limit.as_micros() / 125).unwrap_or(BUCKETS);
        self.0[from..].iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    /// Returns the upper bound of the bucket that contains this share of all writes, in
    /// milliseconds.
    fn percentile(&self, share: f64) -> f64 {
        let counts: Vec<u64> = self.0.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        let wanted = (counts.iter().sum::<u64>() as f64 * share) as u64;
        let mut seen = 0;
        let at = counts.iter().position(|count| {
            seen += count;
            seen >= wanted
        });
        (at.unwrap_or(BUCKETS) + 1) as f64 / 8.0
    }
}

fn key(prefix: u32, number: u64) -> Bytes {
    let mut key = prefix.to_be_bytes().to_vec();
    key.extend_from_slice(&number.to_be_bytes());
    Bytes::from(key)
}

fn document(rng: &mut Rng) -> Bytes {
    let mut bytes = Vec::with_capacity(DOCUMENT);
    while bytes.len() < 500 {
        bytes.extend_from_slice(&rng.next_u64().to_le_bytes());
    }
    bytes.resize(DOCUMENT, b'x');
    Bytes::from(bytes)
}

fn overwrite(engine: &Arc<dyn Engine>, number: u64, document: Bytes) {
    let mut txn = begin(engine, Mode::Write).unwrap();
    txn.put(Space::Doc, key(1, number), document).unwrap();
    txn.add_counts(1, 0, 1);
    // Two writers can write the same document; the write of the loser counts as done.
    let _ = txn.commit(CommitOptions::buffered());
}

fn load(engine: &Arc<dyn Engine>) {
    let mut rng = Rng::new(1);
    for chunk in 0..DOCUMENTS / 1000 {
        let mut txn = begin(engine, Mode::Write).unwrap();
        for number in chunk * 1000..(chunk + 1) * 1000 {
            txn.put_entry(Space::Doc, key(1, number), document(&mut rng)).unwrap();
        }
        txn.commit(CommitOptions::buffered()).unwrap();
    }
}

fn status(label: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(label));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Returns the bytes that this process has written to the device.
fn device_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("write_bytes: "));
    line.and_then(|bytes| bytes.parse().ok()).unwrap_or(0)
}

/// Returns the CPU seconds of each kind of thread: the writers, the background threads, the rest.
fn cpu() -> [f64; 3] {
    let mut sums = [0.0; 3];
    for task in std::fs::read_dir("/proc/self/task").unwrap().flatten() {
        let name = std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        let stat = std::fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
        let ns: f64 = stat.split_whitespace().next().and_then(|ns| ns.parse().ok()).unwrap_or(0.0);
        let kind = if name.starts_with("writer") {
            0
        } else if name.starts_with("quire-flush") || name.starts_with("quire-merge") {
            1
        } else {
            2
        };
        sums[kind] += ns / 1e9;
    }
    sums
}

/// Returns what a thread waits for: its system call with the file, and its position in the kernel.
fn wait_of(task: &Path) -> String {
    let read = |name| std::fs::read_to_string(task.join(name)).unwrap_or_default();
    let call = read("syscall");
    let mut words = call.split_whitespace();
    let number = words.next().unwrap_or_default();
    let handle = words.next().and_then(|word| u64::from_str_radix(word.get(2..)?, 16).ok());
    let file = handle.and_then(|handle| std::fs::read_link(format!("/proc/self/fd/{handle}")).ok());
    let file = file.map(|file| file.display().to_string()).unwrap_or_default();
    let stack = read("stack");
    let places = stack.lines().filter_map(|line| line.split_whitespace().nth(1)?.split('+').next());
    let places: Vec<&str> = places.take(8).collect();
    format!("{}: call {number} {file} {}", read("comm").trim(), places.join(" < "))
}

/// Prints what the threads wait for whenever a write takes long. `begun` has the start of each
/// writer's current write, in microseconds since `zero`, or 0 between two writes.
fn watch(begun: &[AtomicU64], zero: Instant, stop: &AtomicBool) {
    let limit = SUSPECT.as_micros() as u64;
    while !stop.load(Ordering::Relaxed) {
        let before = Instant::now();
        std::thread::sleep(Duration::from_millis(5));
        if before.elapsed() > SUSPECT {
            println!("a pause of 5 ms took {:.0?}: the machine stood still", before.elapsed());
        }
        let now = zero.elapsed().as_micros() as u64;
        let took = |since: u64| if since == 0 { 0 } else { now.saturating_sub(since) };
        let longest = begun.iter().map(|since| took(since.load(Ordering::Relaxed))).max();
        let Some(longest) = longest.filter(|longest| *longest > limit) else { continue };
        println!("a write has taken {} ms:", longest / 1000);
        for task in std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
            println!("    {}", wait_of(&task.path()));
        }
        std::thread::sleep(Duration::from_millis(40));
    }
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let seconds: u64 = words[2].parse().unwrap();
    let mut options = LsmOptions::default();
    if let Some(workers) = words.get(3).and_then(|word| word.parse().ok()) {
        options.merge_threads = workers;
    }
    let tells_stalls = words.last().is_some_and(|word| word == "stalls");
    println!("{} threads that merge", options.merge_threads);
    let engine = open(Path::new(&words[1]), options).unwrap().engine;
    load(&engine);
    let loaded = device_bytes();
    let (latencies, stop) = (Latencies::new(), AtomicBool::new(false));
    let (writes, slowest) = (AtomicU64::new(0), AtomicU64::new(0));
    let all_slowest = AtomicU64::new(0);
    let (begun, zero): ([AtomicU64; WRITERS as usize], _) = (Default::default(), Instant::now());
    let before = cpu();
    std::thread::scope(|scope| {
        if tells_stalls {
            scope.spawn(|| watch(&begun, zero, &stop));
        }
        for writer in 0..WRITERS {
            let (engine, latencies, stop) = (&engine, &latencies, &stop);
            let (writes, slowest) = (&writes, &slowest);
            let begun = &begun[writer as usize];
            let body = move || {
                let mut rng = Rng::new(writer + 7);
                while !stop.load(Ordering::Relaxed) {
                    let (number, document) = (rng.next_u64() % DOCUMENTS, document(&mut rng));
                    let since = Instant::now();
                    begun.store((since - zero).as_micros() as u64, Ordering::Relaxed);
                    overwrite(engine, number, document);
                    begun.store(0, Ordering::Relaxed);
                    let took = since.elapsed();
                    if tells_stalls && took > STALL {
                        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
                        println!("stall {:.3} {took:.0?}", now.as_secs_f64());
                    }
                    latencies.add(took);
                    writes.fetch_add(1, Ordering::Relaxed);
                    slowest.fetch_max(took.as_micros() as u64, Ordering::Relaxed);
                }
            };
            let thread = std::thread::Builder::new().name(format!("writer{writer}"));
            thread.spawn_scoped(scope, body).unwrap();
        }
        let mut last = 0;
        for second in (10..=seconds).step_by(10) {
            std::thread::sleep(Duration::from_secs(10));
            let now = writes.load(Ordering::Relaxed);
            let worst = slowest.swap(0, Ordering::Relaxed);
            all_slowest.fetch_max(worst, Ordering::Relaxed);
            let stats = engine.stats();
            println!(
                "{second:4} s  {:7} writes/s  slowest {:8.1} ms  resident {:5} MB  disk {:5} MB  waited {:6} ms",
                (now - last) / 10,
                worst as f64 / 1000.0,
                status("VmRSS:") >> 10,
                stats.disk_bytes >> 20,
                stats.pressure_us / 1000,
            );
            last = now;
        }
        let after = cpu();
        let spent = |at: usize| after[at] - before[at];
        println!(
            "{} writes; p99 {:.2} ms, p99.9 {:.2} ms, slowest {:.1} ms, over 100 ms: {}; CPU s: writers {:.1}, background {:.1}, other {:.1}",
            writes.load(Ordering::Relaxed),
            latencies.percentile(0.99),
            latencies.percentile(0.999),
            all_slowest.load(Ordering::Relaxed) as f64 / 1000.0,
            latencies.over(STALL),
            spent(0),
            spent(1),
            spent(2),
        );
        let for_each = |bytes: u64, documents| bytes as f64 / (documents * DOCUMENT as u64) as f64;
        println!(
            "bytes to the device for each byte of the documents: load {:.2}, writes {:.2}",
            for_each(loaded, DOCUMENTS),
            for_each(device_bytes() - loaded, writes.load(Ordering::Relaxed)),
        );
        stop.store(true, Ordering::Relaxed);
    });
}
