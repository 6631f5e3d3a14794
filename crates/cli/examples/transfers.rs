//! Measures transactions: transfers between two accounts by 1, 8 and 64 clients, with and without
//! conflicts, each commit with `w: "majority"`; and single inserts while 0, 1 and 100 transactions
//! are open and idle. `cargo run --release -p quire-cli --example transfers`, after `cargo build
//! --release -p quire-cli`; Linux. The results are in docs/benchmarks.md.

mod server;

use quire_document::{Binary, DocBuf, Value, doc};
use server::{Server, command, program};
use std::error::Error;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::{Duration, Instant};

const ACCOUNTS: i32 = 1000;
/// The number of accounts that all clients share in the runs with conflicts.
const CONTESTED: i32 = 10;
const TIME: Duration = Duration::from_secs(3);
/// How many times each row is measured, in turns with the others, because the machine may be
/// loaded.
const TURNS: usize = 3;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// The counts of one client.
#[derive(Default)]
struct Done {
    latencies: Vec<Duration>,
    conflicts: usize,
}

fn main() -> Result<(), Box<dyn Error>> {
    let directory = std::env::temp_dir().join(format!("quire-transfers-{}", std::process::id()));
    let server = Server::start(&program()?, &directory)?;
    let mut client = server.connect()?;
    let text = "x".repeat(200);
    for id in 0..ACCOUNTS * 64 {
        let account = doc! { "_id": id, "sum": 0, "text": text.as_str() };
        let insert = doc! { "insert": "a", "documents": [&account], "writeConcern": { "w": 1 }, "$db": "test" };
        command(&mut client, insert)?;
    }
    println!("clients, accounts | transfers/s | conflicts/transfer | CPU us | p50 ms | p99 ms");
    for _ in 0..TURNS {
        for clients in [1, 8, 64] {
            for is_contested in [false, true] {
                transfers(&server, clients, is_contested)?;
            }
        }
    }
    println!("open transactions | inserts/s | CPU us");
    for _ in 0..TURNS {
        for open in [0, 1, 100] {
            inserts(&server, open)?;
        }
    }
    server.stop()?;
    std::fs::remove_dir_all(&directory)?;
    Ok(())
}

fn transfers(server: &Server, clients: i32, is_contested: bool) -> Result<(), Box<dyn Error>> {
    let done = AtomicBool::new(false);
    let before = server.cpu()?;
    let began = Instant::now();
    let all: Vec<Done> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..clients)
            .map(|number| {
                let stream = server.connect().map_err(|error| error.to_string());
                let done = &done;
                scope.spawn(move || client(stream?, number, is_contested, done))
            })
            .collect();
        std::thread::sleep(TIME);
        done.store(true, Ordering::Relaxed);
        let joined =
            clients.into_iter().map(|client| client.join().map_err(|_| "a client failed")?);
        joined.collect::<Outcome<Vec<Done>>>()
    })
    .map_err(|error| error.to_string())?;
    let seconds = began.elapsed().as_secs_f64();
    let cpu = server.cpu()?.saturating_sub(before);
    let conflicts: usize = all.iter().map(|done| done.conflicts).sum();
    let mut latencies: Vec<Duration> = all.into_iter().flat_map(|done| done.latencies).collect();
    latencies.sort();
    let count = latencies.len().max(1);
    let at = |share: f64| {
        let place = (count as f64 * share) as usize;
        latencies.get(place.min(count - 1)).map_or(0.0, |time| time.as_secs_f64() * 1000.0)
    };
    println!(
        "{clients}, {} | {:.0} | {:.2} | {:.0} | {:.1} | {:.1}",
        if is_contested { "the same ten" } else { "its own" },
        count as f64 / seconds,
        conflicts as f64 / count as f64,
        cpu.as_secs_f64() * 1e6 / count as f64,
        at(0.5),
        at(0.99)
    );
    Ok(())
}

/// Numbers the sessions of all clients.
static SESSIONS: AtomicI32 = AtomicI32::new(0);

fn session() -> [u8; 16] {
    let mut bytes = [9; 16];
    bytes[..4].copy_from_slice(&SESSIONS.fetch_add(1, Ordering::Relaxed).to_be_bytes());
    bytes
}

fn within(mut body: DocBuf, session: &[u8; 16], number: i64, starts: bool) -> DocBuf {
    body.append("lsid", &doc! { "id": Value::Binary(Binary { subtype: 4, bytes: session }) });
    body.append("txnNumber", number).append("autocommit", false);
    if starts {
        body.append("startTransaction", true);
    }
    body
}

fn change(id: i32, amount: i32) -> DocBuf {
    let change = doc! { "q": { "_id": id }, "u": { "$inc": { "sum": amount } } };
    doc! { "update": "a", "updates": [&change], "$db": "test" }
}

/// Transfers until the time is over. A transfer that meets a conflict is repeated.
fn client(
    mut stream: TcpStream,
    number: i32,
    is_contested: bool,
    done: &AtomicBool,
) -> Outcome<Done> {
    stream.set_nodelay(true)?;
    let (session, mut told) = (session(), Done::default());
    let (first, accounts) =
        if is_contested { (0, CONTESTED) } else { (number * ACCOUNTS, ACCOUNTS) };
    let (mut attempt, mut at) = (0, number);
    while !done.load(Ordering::Relaxed) {
        let began = Instant::now();
        at += 1;
        let (from, to) = (first + at * 7 % accounts, first + (at * 7 + 3) % accounts);
        loop {
            attempt += 1;
            match transfer(&mut stream, &session, attempt, from, to) {
                Ok(()) => break,
                Err(error) if error.to_string().contains("WriteConflict") => told.conflicts += 1,
                Err(error) => return Err(error.to_string().into()),
            }
        }
        told.latencies.push(began.elapsed());
    }
    Ok(told)
}

fn transfer(
    stream: &mut TcpStream,
    session: &[u8; 16],
    number: i64,
    from: i32,
    to: i32,
) -> Result<(), Box<dyn Error>> {
    command(stream, within(change(from, -1), session, number, true))?;
    command(stream, within(change(to, 1), session, number, false))?;
    let commit =
        doc! { "commitTransaction": 1, "writeConcern": { "w": "majority" }, "$db": "admin" };
    command(stream, within(commit, session, number, false)).map(drop)
}

/// Inserts while `open` transactions have read and written something and are idle.
fn inserts(server: &Server, open: i32) -> Result<(), Box<dyn Error>> {
    let (mut stream, sessions) =
        (server.connect()?, (0..open).map(|_| session()).collect::<Vec<_>>());
    for (number, session) in (0..).zip(&sessions) {
        command(&mut stream, within(change(number * ACCOUNTS, 1), session, 1, true))?;
    }
    let text = "x".repeat(1000);
    let (before, began, mut count) = (server.cpu()?, Instant::now(), 0);
    while began.elapsed() < TIME {
        count += 1;
        let document = doc! { "text": text.as_str() };
        let insert = doc! { "insert": "b", "documents": [&document], "writeConcern": { "w": 1 }, "$db": "test" };
        command(&mut stream, insert)?;
    }
    let (seconds, cpu) = (began.elapsed().as_secs_f64(), server.cpu()?.saturating_sub(before));
    for session in &sessions {
        let abort = doc! { "abortTransaction": 1, "$db": "admin" };
        command(&mut stream, within(abort, session, 1, false))?;
    }
    let each = cpu.as_secs_f64() * 1e6 / f64::from(count);
    println!("{open} | {:.0} | {each:.0}", f64::from(count) / seconds);
    Ok(())
}
