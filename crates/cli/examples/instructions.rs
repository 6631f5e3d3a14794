//! Counts the instructions of the whole server in user mode for one operation on one document,
//! which do not depend on other work of the machine. `cargo run --release -p quire-cli --example
//! instructions`, after `cargo build --release -p quire-cli`; needs valgrind; Linux. Takes the
//! program and the names of operations as arguments. The results are in docs/benchmarks.md.

mod server;

use quire_document::{Binary, DocBuf, Value, doc};
use server::{Server, command, log_in, make_root, program};
use std::error::Error;
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

/// The number of existing documents, of 1 KB each.
const DOCUMENTS: i32 = 1000;
const WARM_UP: i32 = 200;
const OPERATIONS: i32 = 1000;

/// The suffix of an operation of a client that has logged in, on a server with `--auth`.
const LOGGED_IN: &str = "-logged-in";

/// The number of open transactions in `insert-beside-transactions`.
const OPEN: u8 = 100;

/// The operations that find a document by fields of which this many have an index.
const COMPETING: [(&str, usize); 3] =
    [("find-by-1-index", 1), ("find-by-2-indexes", 2), ("find-by-5-indexes", 5)];

const NAMES: [&str; 17] = [
    "ping",
    "find",
    "find-one-in-session",
    "count",
    "aggregate",
    "insert",
    "update",
    "find-and-modify",
    "delete",
    "ping-logged-in",
    "find-logged-in",
    "find-one-in-session-logged-in",
    "transfer",
    "insert-beside-transactions",
    "find-by-1-index",
    "find-by-2-indexes",
    "find-by-5-indexes",
];

fn main() -> Result<(), Box<dyn Error>> {
    let program = program()?;
    let asked: Vec<String> = std::env::args().skip(2).collect();
    for name in NAMES {
        if asked.is_empty() || asked.iter().any(|word| word == name) {
            println!("{name}: {} instructions", measure(&program, name)?);
        }
    }
    Ok(())
}

/// Counts on a new server under callgrind, after some operations to warm up.
fn measure(program: &Path, name: &str) -> Result<u64, Box<dyn Error>> {
    let place = std::env::temp_dir().join(format!("quire-instructions-{}", std::process::id()));
    std::fs::create_dir_all(&place)?;
    let counts = place.join("counts");
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--instr-atstart=no"]);
    valgrind.arg(format!("--callgrind-out-file={}", counts.display())).arg(program);
    let (name, options) = match name.strip_suffix(LOGGED_IN) {
        Some(name) => (name, &["--auth"][..]),
        None => (name, &[][..]),
    };
    let server = Server::spawn_with(valgrind, &place.join("data"), options)?;
    let mut client = server.connect()?;
    if !options.is_empty() {
        make_root(&mut client)?;
        log_in(&mut client)?;
    }
    (0..DOCUMENTS).try_for_each(|at| run(&mut client, "insert", at))?;
    if name == "insert-beside-transactions" {
        (0..OPEN).try_for_each(|at| begin(&mut client, at))?;
    }
    if let Some((_, indexes)) = COMPETING.iter().find(|(competing, _)| *competing == name) {
        fill_indexed(&mut client, *indexes)?;
    }
    (0..WARM_UP).try_for_each(|at| run(&mut client, name, DOCUMENTS + at))?;
    control(&server, &["-i", "on"])?;
    (WARM_UP..WARM_UP + OPERATIONS).try_for_each(|at| run(&mut client, name, DOCUMENTS + at))?;
    control(&server, &["-d"])?;
    server.stop()?;
    let total = counted(&place.join("counts.1"))?;
    std::fs::remove_dir_all(&place)?;
    Ok(total / OPERATIONS as u64)
}

fn control(server: &Server, words: &[&str]) -> Result<(), Box<dyn Error>> {
    let id = server.id().to_string();
    let status = Command::new("callgrind_control").args(words).arg(id).output()?.status;
    if status.success() { Ok(()) } else { Err("callgrind_control failed".into()) }
}

/// Returns the sum of the dump without the instructions of the server's end.
fn counted(dump: &Path) -> Result<u64, Box<dyn Error>> {
    let text = std::fs::read_to_string(dump)?;
    let sum = text.lines().find_map(|line| line.strip_prefix("totals: "));
    Ok(sum.ok_or("no totals")?.trim().parse()?)
}

/// Begins a transaction that stays open.
fn begin(client: &mut TcpStream, at: u8) -> Result<(), Box<dyn Error>> {
    let update = increment(i32::from(at), 1);
    command(client, within(update, [at; 16], 1, true)).map(|_| ())
}

/// Returns the fields of a document by which several indexes find it, each less selective than the
/// one before.
fn fields(at: i32) -> DocBuf {
    doc! { "a": at, "b": at % 50, "c": at % 20, "d": at % 10, "e": at % 5 }
}

/// Fills a collection of which the first fields have indexes.
fn fill_indexed(client: &mut TcpStream, indexes: usize) -> Result<(), Box<dyn Error>> {
    for at in 0..DOCUMENTS {
        command(client, doc! { "insert": "i", "documents": [&fields(at)], "$db": "test" })?;
    }
    for name in ["a", "b", "c", "d", "e"].into_iter().take(indexes) {
        let index = doc! { "key": { name: 1 }, "name": name };
        command(client, doc! { "createIndexes": "i", "indexes": [&index], "$db": "test" })?;
    }
    Ok(())
}

fn increment(id: i32, amount: i32) -> DocBuf {
    let change = doc! { "q": { "_id": id }, "u": { "$inc": { "n": amount } } };
    doc! { "update": "c", "updates": [&change], "$db": "test" }
}

fn within(mut body: DocBuf, session: [u8; 16], number: i64, starts: bool) -> DocBuf {
    body.append("lsid", &doc! { "id": Value::Binary(Binary { subtype: 4, bytes: &session }) });
    body.append("txnNumber", number).append("autocommit", false);
    if starts {
        body.append("startTransaction", true);
    }
    body
}

/// Runs two updates in a transaction, and its commit.
fn transfer(client: &mut TcpStream, at: i32) -> Result<(), Box<dyn Error>> {
    let (from, to, number) = (at % DOCUMENTS, (at + 1) % DOCUMENTS, i64::from(at));
    command(client, within(increment(from, -1), [7; 16], number, true))?;
    command(client, within(increment(to, 1), [7; 16], number, false))?;
    let commit = doc! { "commitTransaction": 1, "writeConcern": { "w": 1 }, "$db": "admin" };
    command(client, within(commit, [7; 16], number, false)).map(|_| ())
}

/// Runs one operation; `at` numbers them.
fn run(client: &mut TcpStream, name: &str, at: i32) -> Result<(), Box<dyn Error>> {
    if name == "transfer" {
        return transfer(client, at);
    }
    let id = at % DOCUMENTS;
    let filter = doc! { "_id": id };
    let concern = doc! { "w": 1 };
    let text = "x".repeat(1000);
    let session = doc! { "id": Value::Binary(Binary { subtype: 4, bytes: &[7; 16] }) };
    let body: DocBuf = match name {
        "ping" => doc! { "ping": 1, "$db": "test" },
        "find" => doc! { "find": "c", "filter": &filter, "$db": "test" },
        "find-one-in-session" => doc! {
            "find": "c", "filter": &filter, "limit": 1, "singleBatch": true, "lsid": &session,
            "$db": "test",
        },
        "count" => doc! { "count": "c", "query": &filter, "$db": "test" },
        "aggregate" => {
            let cursor = DocBuf::new();
            doc! {
                "aggregate": "c", "pipeline": [{ "$match": &filter }], "cursor": &cursor,
                "$db": "test",
            }
        }
        "insert" | "insert-beside-transactions" => doc! {
            "insert": "c", "documents": [{ "_id": at, "text": text.as_str() }],
            "writeConcern": &concern, "$db": "test",
        },
        "update" => doc! {
            "update": "c", "updates": [{ "q": &filter, "u": { "$set": { "n": at } } }],
            "writeConcern": &concern, "$db": "test",
        },
        "find-and-modify" => doc! {
            "findAndModify": "c", "query": &filter, "update": { "$inc": { "n": 1 } },
            "writeConcern": &concern, "$db": "test",
        },
        "delete" => doc! {
            "delete": "c", "deletes": [{ "q": &filter, "limit": 1 }],
            "writeConcern": &concern, "$db": "test",
        },
        _ if COMPETING.iter().any(|(competing, _)| *competing == name) => {
            doc! { "find": "i", "filter": &fields(id), "$db": "test" }
        }
        other => return Err(format!("no operation '{other}'").into()),
    };
    command(client, body).map(|_| ())
}
