//! Measures reads through each kind of index, and writes with an increasing number of indexes:
//! instructions of the whole server in user mode for one command, which do not depend on other work
//! of the machine. `cargo run --release -p quire-cli --example index_kinds`, after `cargo build
//! --release -p quire-cli`; needs valgrind; Linux. Takes the program as an argument. The results
//! are in docs/benchmarks.md.

mod server;

use quire_document::{ArrayBuf, DocBuf, doc};
use server::{Server, command, program};
use std::error::Error;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;

const DOCUMENTS: i32 = 20_000;
const WARM_UP: i32 = 50;
const OPERATIONS: i32 = 200;
/// A step that visits the numbers below `DOCUMENTS` in an irregular order.
const STRIDE: i32 = 7919;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// A kind of index: its name, its specification, and the filter of a query for `count` documents
/// from the number `from` on; for a kind without an order only for one document.
struct Kind {
    name: &'static str,
    index: fn() -> Option<DocBuf>,
    has_order: bool,
    filter: fn(from: i32, count: i32) -> DocBuf,
}

/// Returns the numbers from `from` on, or the number itself.
fn numbers(from: i32, count: i32) -> DocBuf {
    match count {
        1 => doc! { "$eq": from },
        _ => doc! { "$gte": from, "$lt": (from + count) },
    }
}

fn by_n(from: i32, count: i32) -> DocBuf {
    doc! { "n": &numbers(from, count) }
}

const KINDS: [Kind; 13] = [
    Kind { name: "_id", index: || None, has_order: true, filter: by_id },
    Kind { name: "_id, clustered", index: || None, has_order: true, filter: by_id },
    Kind { name: "one field", index: || Some(on_n(doc! {})), has_order: true, filter: by_n },
    Kind {
        name: "unique",
        index: || Some(on_n(doc! { "unique": true })),
        has_order: true,
        filter: by_n,
    },
    Kind {
        name: "sparse",
        index: || Some(on_n(doc! { "sparse": true })),
        has_order: true,
        filter: by_n,
    },
    Kind {
        name: "partial",
        index: || Some(on_n(doc! { "partialFilterExpression": { "n": { "$gte": 0 } } })),
        has_order: true,
        filter: by_n,
    },
    Kind {
        name: "with a time to live",
        index: || Some(on_n(doc! { "expireAfterSeconds": 3600 })),
        has_order: true,
        filter: by_n,
    },
    Kind {
        name: "with a collation",
        index: || Some(on_n(doc! { "collation": { "locale": "en", "strength": 2 } })),
        has_order: true,
        filter: by_n,
    },
    Kind {
        name: "compound, equality and range",
        index: || Some(doc! { "key": { "group": 1, "n": -1 }, "name": "i" }),
        has_order: true,
        filter: |from, count| doc! { "group": 1, "n": &numbers(from, count) },
    },
    Kind {
        name: "multikey",
        index: || Some(doc! { "key": { "list": 1 }, "name": "i" }),
        has_order: true,
        filter: |from, count| doc! { "list": { "$elemMatch": &numbers(from, count) } },
    },
    Kind {
        name: "hashed",
        index: || Some(doc! { "key": { "n": "hashed" }, "name": "i" }),
        has_order: false,
        filter: by_n,
    },
    Kind {
        name: "wildcard",
        index: || Some(doc! { "key": { "sub.$**": 1 }, "name": "i" }),
        has_order: true,
        filter: |from, count| doc! { "sub.n": &numbers(from, count) },
    },
    Kind {
        name: "compound wildcard",
        index: || Some(doc! { "key": { "group": 1, "sub.$**": 1 }, "name": "i" }),
        has_order: true,
        filter: |from, count| doc! { "group": 1, "sub.n": &numbers(from, count) },
    },
];

fn by_id(from: i32, count: i32) -> DocBuf {
    doc! { "_id": &numbers(from, count) }
}

/// Returns the index on `n` with these options.
fn on_n(options: DocBuf) -> DocBuf {
    let mut spec = doc! { "key": { "n": 1 }, "name": "i" };
    options.as_doc().fields().for_each(|(name, value)| {
        spec.append(name, value);
    });
    spec
}

fn document(n: i32) -> DocBuf {
    let text = "x".repeat(150);
    doc! {
        "_id": n, "n": n, "group": 1, "list": [n, (n + DOCUMENTS)], "sub": { "n": n, "s": "a" },
        "text": text.as_str(),
    }
}

/// A server that runs under callgrind.
struct Counting {
    server: Server,
    client: TcpStream,
    place: PathBuf,
    dumps: u32,
}

impl Counting {
    fn start(program: &Path) -> Outcome<Counting> {
        let place = std::env::temp_dir().join(format!("quire-kinds-{}", std::process::id()));
        std::fs::create_dir_all(&place)?;
        let mut valgrind = Command::new("valgrind");
        valgrind.args(["--tool=callgrind", "--instr-atstart=no"]);
        let counts = format!("--callgrind-out-file={}", place.join("counts").display());
        valgrind.arg(counts).arg(program);
        let server = Server::spawn(valgrind, &place.join("data"))?;
        let client = server.connect()?;
        Ok(Counting { server, client, place, dumps: 0 })
    }

    /// Returns the instructions of one operation, after some to warm up. `operation` gets the
    /// number of the call.
    fn measure(&mut self, operation: impl Fn(i32) -> DocBuf) -> Outcome<u64> {
        for at in 0..WARM_UP {
            command(&mut self.client, operation(at))?;
        }
        self.control(&["-i", "on"])?;
        for at in WARM_UP..WARM_UP + OPERATIONS {
            command(&mut self.client, operation(at))?;
        }
        self.control(&["-d"])?;
        self.control(&["-i", "off"])?;
        self.dumps += 1;
        let dump = std::fs::read_to_string(self.place.join(format!("counts.{}", self.dumps)))?;
        let sum = dump.lines().find_map(|line| line.strip_prefix("totals: "));
        Ok(sum.ok_or("no totals")?.trim().parse::<u64>()? / OPERATIONS as u64)
    }

    fn control(&self, words: &[&str]) -> Outcome<()> {
        let id = self.server.id().to_string();
        let status = Command::new("callgrind_control").args(words).arg(id).output()?.status;
        if status.success() { Ok(()) } else { Err("callgrind_control failed".into()) }
    }

    /// Creates a collection with all documents, in tables, and an index.
    fn fill(&mut self, collection: &str, index: Option<DocBuf>) -> Outcome<()> {
        if let Some(index) = index {
            let create = doc! { "createIndexes": collection, "indexes": [&index], "$db": "test" };
            command(&mut self.client, create)?;
        }
        for chunk in (0..DOCUMENTS).step_by(1000) {
            let documents: Vec<DocBuf> = (chunk..chunk + 1000).map(document).collect();
            let documents: ArrayBuf = documents.iter().collect();
            let insert = doc! { "insert": collection, "documents": &documents, "$db": "test" };
            command(&mut self.client, insert)?;
        }
        command(&mut self.client, doc! { "fsync": 1, "$db": "admin" }).map(drop)
    }
}

fn main() -> Outcome<()> {
    let mut counting = Counting::start(&program()?)?;
    println!("| kind | one document | range of 10 | range of 100 |\n| --- | --- | --- | --- |");
    for (at, kind) in KINDS.iter().enumerate() {
        let collection = format!("c{at}");
        if kind.name.ends_with("clustered") {
            let index = doc! { "key": { "_id": 1 }, "unique": true };
            let create =
                doc! { "create": collection.as_str(), "clusteredIndex": &index, "$db": "test" };
            command(&mut counting.client, create)?;
        }
        counting.fill(&collection, (kind.index)())?;
        let collation = match kind.name.ends_with("collation") {
            true => doc! { "locale": "en", "strength": 2 },
            false => doc! { "locale": "simple" },
        };
        let mut row = format!("| {} |", kind.name);
        for count in [1, 10, 100] {
            if count > 1 && !kind.has_order {
                row.push_str(" |");
                continue;
            }
            let instructions = counting.measure(|at| {
                let from = at.wrapping_mul(STRIDE).rem_euclid(DOCUMENTS - 100);
                let filter = (kind.filter)(from, count);
                doc! {
                    "find": collection.as_str(), "filter": &filter, "collation": &collation,
                    "$db": "test",
                }
            })?;
            row.push_str(&format!(" {instructions} |"));
        }
        println!("{row}");
    }
    writes(&mut counting)?;
    let place = counting.place;
    counting.server.stop()?;
    Ok(std::fs::remove_dir_all(place)?)
}

/// Measures single writes into a collection with an increasing number of indexes, each on an int of
/// its own.
fn writes(counting: &mut Counting) -> Outcome<()> {
    println!(
        "\n| indexes besides `_id` | insert | update of another field | update of the field of one index | delete |"
    );
    println!("| --- | --- | --- | --- | --- |");
    for indexes in [0, 1, 5, 10] {
        let collection = format!("w{indexes}");
        let name = collection.as_str();
        for at in 0..indexes {
            let field = format!("f{at}");
            let mut key = doc! {};
            key.append(&field, 1);
            let index = doc! { "key": &key, "name": field.as_str() };
            let create = doc! { "createIndexes": name, "indexes": [&index], "$db": "test" };
            command(&mut counting.client, create)?;
        }
        let concern = doc! { "w": 1 };
        let insert = counting.measure(|at| {
            let mut doc = doc! { "_id": at, "n": at };
            for field in 0..10 {
                doc.append(&format!("f{field}"), at.wrapping_mul(STRIDE + field));
            }
            doc! { "insert": name, "documents": [&doc], "writeConcern": &concern, "$db": "test" }
        })?;
        let update = |field: &'static str| {
            let concern = &concern;
            move |at: i32| {
                let change = doc! { "q": { "_id": at }, "u": { "$inc": { field: 1 } } };
                doc! { "update": name, "updates": [&change], "writeConcern": concern, "$db": "test" }
            }
        };
        let other = counting.measure(update("n"))?;
        let own = counting.measure(update("f0"))?;
        let delete = counting.measure(|at| {
            let delete = doc! { "q": { "_id": at }, "limit": 1 };
            doc! { "delete": name, "deletes": [&delete], "writeConcern": &concern, "$db": "test" }
        })?;
        println!("| {indexes} | {insert} | {other} | {own} | {delete} |");
    }
    Ok(())
}
