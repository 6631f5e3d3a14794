//! Measures updates and deletes of many documents: the server's memory while 10,000 or 1,000,000
//! documents change, and how long another connection's writes to the same collection take
//! meanwhile. `cargo run --release -p quire-cli --example multi_writes`, after `cargo build
//! --release -p quire-cli`; Linux. The results are in docs/benchmarks.md.

mod server;

use quire_document::{DocBuf, doc};
use server::{Server, command, program};
use std::error::Error;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const SMALL: i32 = 10_000;
const LARGE: i32 = 1_000_000;
const BATCH: i32 = 1000;

/// Returns the command that changes a collection.
type Statement = fn(&str) -> DocBuf;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Result<(), Box<dyn Error>> {
    let directory = std::env::temp_dir().join(format!("quire-multi-{}", std::process::id()));
    let server = Server::start(&program()?, &directory)?;
    let mut client = server.connect()?;
    for (name, count) in [("small", SMALL), ("large", LARGE)] {
        fill(&mut client, name, count)?;
    }
    println!(
        "{:34} {:>9} {:>9} {:>9} {:>9} {:>8}  other writer",
        "", "documents", "before", "peak", "engine", "s"
    );
    quiet(&server)?;
    // The first runs fill the engine's caches and write buffers, which have their own bounds.
    for (title, statement) in [("warm-up, scan", scan("large")), ("warm-up, index", index("large"))]
    {
        measure(&server, title, "large", LARGE, statement)?;
    }
    let statements: [(&str, Statement); 3] =
        [("update, scan", scan), ("update, index that it changes", index), ("delete", delete)];
    for (title, statement) in statements {
        for (name, count) in [("small", SMALL), ("large", LARGE)] {
            measure(&server, title, name, count, statement(name))?;
        }
    }
    server.stop()?;
    std::fs::remove_dir_all(&directory)?;
    Ok(())
}

fn fill(client: &mut TcpStream, name: &str, count: i32) -> Result<(), Box<dyn Error>> {
    let text = "x".repeat(200);
    let keys = doc! { "key": { "a": 1 }, "name": "a_1" };
    command(client, doc! { "createIndexes": name, "indexes": [&keys], "$db": "test" })?;
    for from in (0..count).step_by(BATCH as usize) {
        let documents: Vec<DocBuf> = (from..from + BATCH)
            .map(|at| doc! { "_id": at, "a": at, "b": 0, "text": text.as_str() })
            .collect();
        let documents: quire_document::ArrayBuf = documents.iter().collect();
        command(
            client,
            doc! { "insert": name, "documents": &documents, "writeConcern": { "w": 1 }, "$db": "test" },
        )?;
    }
    Ok(())
}

fn update(name: &str, statement: DocBuf) -> DocBuf {
    doc! { "update": name, "updates": [&statement], "writeConcern": { "w": 1 }, "$db": "test" }
}

fn scan(name: &str) -> DocBuf {
    update(name, doc! { "q": { "b": { "$gte": 0 } }, "u": { "$inc": { "b": 1 } }, "multi": true })
}

/// Returns a statement that moves every key forward in the index that it scans.
fn index(name: &str) -> DocBuf {
    update(
        name,
        doc! {
            "q": { "a": { "$gte": 0 } }, "u": { "$inc": { "a": 5000 } }, "multi": true, "hint": "a_1",
        },
    )
}

fn delete(name: &str) -> DocBuf {
    let statement = doc! { "q": { "b": { "$gte": 0 } }, "limit": 0 };
    doc! { "delete": name, "deletes": [&statement], "writeConcern": { "w": 1 }, "$db": "test" }
}

/// Measures the other writer alone.
fn quiet(server: &Server) -> Result<(), Box<dyn Error>> {
    let (done, mut client) = (AtomicBool::new(false), server.connect()?);
    let latencies = std::thread::scope(|scope| {
        let writer = scope.spawn(|| write_meanwhile(&mut client, "large", &done));
        std::thread::sleep(Duration::from_secs(2));
        done.store(true, Ordering::Relaxed);
        writer.join().map_err(|_| "the writer failed")
    })?;
    println!(
        "{:83}  {}",
        "the other writer alone",
        shown(latencies.map_err(|error| error.to_string())?)
    );
    Ok(())
}

fn measure(
    server: &Server,
    title: &str,
    name: &str,
    count: i32,
    statement: DocBuf,
) -> Result<(), Box<dyn Error>> {
    let (mut client, mut other) = (server.connect()?, server.connect()?);
    let mut watching = server.connect()?;
    let done = AtomicBool::new(false);
    let before = server.resident_kb()?;
    server.forget_peak()?;
    let began = Instant::now();
    let (reply, latencies, buffers) = std::thread::scope(|scope| {
        let writer = scope.spawn(|| write_meanwhile(&mut other, name, &done));
        let watcher = scope.spawn(|| watch_buffers(&mut watching, &done));
        let reply = command(&mut client, statement).map_err(|error| error.to_string());
        done.store(true, Ordering::Relaxed);
        let latencies = writer.join().map_err(|_| "the writer failed");
        (reply, latencies, watcher.join().map_err(|_| "the watcher failed"))
    });
    let took = began.elapsed().as_secs_f64();
    let changed = reply?.get("n").and_then(|n| n.exact_i64()).unwrap_or(0);
    if changed < i64::from(count) {
        return Err(format!("{title}: {changed} of {count}").into());
    }
    let mb = |kb: i64| kb as f64 / 1e3;
    println!(
        "{title:34} {count:9} {:6.0} MB {:6.0} MB {:6.0} MB {took:8.2}  {}",
        mb(before),
        mb(server.peak_kb()?),
        buffers?.map_err(|error| error.to_string())? as f64 / 1e6,
        shown(latencies?.map_err(|error| error.to_string())?)
    );
    Ok(())
}

/// Inserts one document after the other, outside the range that the statement changes.
fn write_meanwhile(
    client: &mut TcpStream,
    name: &str,
    done: &AtomicBool,
) -> Outcome<Vec<Duration>> {
    let mut latencies = Vec::new();
    while !done.load(Ordering::Relaxed) {
        let document = doc! { "a": (-1), "b": (-1) };
        let insert = doc! { "insert": name, "documents": [&document], "writeConcern": { "w": 1 }, "$db": "test" };
        let began = Instant::now();
        command(client, insert).map_err(|error| error.to_string())?;
        latencies.push(began.elapsed());
    }
    Ok(latencies)
}

/// Returns the largest sum of the engine's write buffers and block cache, in bytes.
fn watch_buffers(client: &mut TcpStream, done: &AtomicBool) -> Outcome<i64> {
    let mut most = 0;
    while !done.load(Ordering::Relaxed) {
        let status = doc! { "serverStatus": 1, "$db": "admin" };
        let reply = command(client, status).map_err(|error| error.to_string())?;
        let held = |name: &str| {
            let cache = reply.get("wiredTiger")?.as_document()?.get("cache")?.as_document()?;
            cache.get(name)?.exact_i64()
        };
        let cached = held("bytes currently in the cache").ok_or("no cache in serverStatus")?;
        let unflushed = held("tracked dirty bytes in the cache").ok_or("no write buffers")?;
        most = most.max(cached + unflushed);
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(most)
}

fn shown(mut latencies: Vec<Duration>) -> String {
    latencies.sort();
    let at = |share: f64| {
        let place = (latencies.len() as f64 * share) as usize;
        latencies
            .get(place.min(latencies.len().saturating_sub(1)))
            .map_or(0.0, Duration::as_secs_f64)
            * 1e3
    };
    format!(
        "{} writes, p50 {:.2} ms, p99 {:.2} ms, worst {:.1} ms",
        latencies.len(),
        at(0.5),
        at(0.99),
        at(1.0)
    )
}
