//! Measures the server before it does any work: the time to its first reply, its memory idle and
//! with idle connections, the size of the binary; and the CPU time of the smallest round trips.
//! `cargo run --release -p quire-cli --example footprint`, after `cargo build --release -p
//! quire-cli`; Linux. The results are in docs/benchmarks.md.

#![allow(clippy::unwrap_used)]

mod server;

use quire_document::doc;
use server::{Server, command, program};
use std::error::Error;
use std::net::TcpStream;
use std::time::{Duration, Instant};

const STARTS: usize = 20;
const CONNECTIONS: usize = 1000;
const ROUND_TRIPS: i32 = 20_000;
/// The time after which the allocator has returned the caches of idle connections to the system.
const RESTED: Duration = Duration::from_secs(15);

fn main() -> Result<(), Box<dyn Error>> {
    let program = program()?;
    let size = std::fs::metadata(&program)?.len();
    println!("binary: {:.1} MB", size as f64 / 1e6);
    let directory = std::env::temp_dir().join(format!("quire-footprint-{}", std::process::id()));
    for (name, fresh) in [("an empty directory", true), ("the same directory again", false)] {
        let mut times = Vec::new();
        let mut stops = Vec::new();
        for _ in 0..STARTS {
            if fresh {
                let _ = std::fs::remove_dir_all(&directory);
            }
            let began = Instant::now();
            let server = Server::start(&program, &directory)?;
            ping(&mut server.connect()?)?;
            times.push(began.elapsed());
            stops.push(server.stop()?);
        }
        println!("start to first reply, {name}: {}; stop: {}", middle(times), middle(stops));
    }
    let server = Server::start(&program, &directory)?;
    ping(&mut server.connect()?)?;
    std::thread::sleep(Duration::from_secs(2));
    let idle = server.resident_kb()?;
    println!("idle: {:.1} MB resident", idle as f64 / 1e3);
    round_trips(&server)?;
    let idle = server.resident_kb()?;
    let mut clients = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut client = server.connect()?;
        ping(&mut client)?;
        clients.push(client);
    }
    std::thread::sleep(RESTED);
    let full = server.resident_kb()?;
    let each = (full - idle) as f64 / CONNECTIONS as f64;
    println!(
        "{CONNECTIONS} idle connections: {:.1} MB more, {each:.1} KB each",
        (full - idle) as f64 / 1e3
    );
    drop(clients);
    server.stop()?;
    std::fs::remove_dir_all(&directory)?;
    Ok(())
}

/// Measures the CPU time of the whole server process for an operation, which other work on the
/// machine changes least, and the wall-clock time on one connection.
fn round_trips(server: &Server) -> Result<(), Box<dyn Error>> {
    let mut client = server.connect()?;
    let text = "x".repeat(1000);
    for id in 0..1000 {
        let document = doc! { "_id": id, "text": text.as_str() };
        command(
            &mut client,
            doc! {
                "insert": "c", "documents": [&document], "writeConcern": { "w": 1 }, "$db": "test",
            },
        )?;
    }
    for name in ["ping", "find by _id", "insert of 1 KB, w: 1"] {
        let (began, cpu) = (Instant::now(), server.cpu()?);
        for at in 0..ROUND_TRIPS {
            let document = doc! { "_id": at + 1000, "text": text.as_str() };
            let body = match name {
                "ping" => doc! { "ping": 1, "$db": "admin" },
                "find by _id" => {
                    doc! { "find": "c", "filter": { "_id": at % 1000 }, "$db": "test" }
                }
                _ => doc! {
                    "insert": "c", "documents": [&document], "writeConcern": { "w": 1 }, "$db": "test",
                },
            };
            command(&mut client, body)?;
        }
        let each = |time: Duration| time.as_secs_f64() * 1e6 / f64::from(ROUND_TRIPS);
        let (wall, cpu) = (each(began.elapsed()), each(server.cpu()? - cpu));
        println!("{name}: {cpu:.1} us of CPU in the server, {wall:.1} us on the clock");
    }
    Ok(())
}

fn ping(stream: &mut TcpStream) -> Result<(), Box<dyn Error>> {
    command(stream, doc! { "hello": 1, "$db": "admin" }).map(|_| ())
}

fn middle(mut times: Vec<Duration>) -> String {
    times.sort();
    let ms = |at: usize| times.get(at).map_or(0.0, |time| time.as_secs_f64() * 1e3);
    format!("median {:.1} ms, worst {:.1} ms", ms(times.len() / 2), ms(times.len() - 1))
}
