//! kill -9 of the server under eight clients that write (single documents, transactions, changes of the
//! catalog) and four that follow the database, each of which dies after some events and resumes at the
//! token that it has. In the end the data that each has built of its events are those of the server: no
//! event is missing, doubled or out of order, and transactions are whole. `QUIRE_CRASH_ROUNDS=100` for the
//! long run.

use crate::{Directory, Serving, try_exchange};
use quire_document::{Array, Doc, DocBuf, Value, doc};
use quire_storage::rng::Rng;
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::net::TcpStream;
use std::thread::JoinHandle;
use std::time::Duration;

const WRITERS: u64 = 8;
const READERS: u64 = 4;
/// The writes of a writer in a round.
const WRITES_MAX: usize = 60;
/// The collections of all writers. Others have only the documents 0 to 2, which transactions change.
const COLLECTIONS: [&str; 3] = ["a", "b", "c"];
const WHOLE: &str = "whole";

/// A connection. `None` if the server has died.
struct Link(TcpStream);

impl Link {
    fn open(port: u16) -> Option<Link> {
        let stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(600))).ok()?;
        Some(Link(stream))
    }

    fn run(&mut self, mut command: DocBuf) -> Option<DocBuf> {
        if !command.as_doc().contains("$db") {
            command.append("$db", "fire");
        }
        try_exchange(&mut self.0, command)
    }

    /// Runs a command that must succeed.
    fn works(&mut self, command: DocBuf) -> Option<DocBuf> {
        let reply = self.run(command.clone())?;
        assert_eq!(reply.get("ok").and_then(|ok| ok.to_f64()), Some(1.0), "{command:?}: {reply:?}");
        Some(reply)
    }
}

/// Does one random write. It may fail: a conflict, a duplicate, a rename of nothing.
fn write(link: &mut Link, rng: &mut Rng) -> Option<DocBuf> {
    let name = COLLECTIONS[rng.below(3) as usize];
    let (id, v) = (rng.below(200) as i64, rng.below(1_000_000_000) as i64);
    let set = doc! { "$set": { "v": v } };
    match rng.below(60) {
        0 => link.run(doc! { "drop": name }),
        1 => link
            .run(doc! { "renameCollection": (format!("fire.{name}").as_str()), "to": "fire.c",
            "dropTarget": true, "$db": "admin" }),
        2 => link
            .run(doc! { "createIndexes": name, "indexes": [{ "key": { "v": 1 }, "name": "v" }] }),
        3 => link.run(doc! { "dropIndexes": name, "index": "v" }),
        4..12 => link.run(doc! { "delete": name, "deletes": [{ "q": { "_id": id }, "limit": 1 }] }),
        12..20 => {
            let some = doc! { "_id": { "$gte": id, "$lt": (id + 20) } };
            link.run(doc! { "update": name, "updates": [{ "q": &some, "u": &set, "multi": true }] })
        }
        20..28 => {
            link.run(doc! { "update": name, "updates": [{ "q": { "_id": id }, "u": { "v": v } }] })
        }
        28..38 => transaction(link, rng, v),
        _ => {
            let docs: Vec<_> = (id..id + 4).map(|id| doc! { "_id": id, "v": v }).collect();
            link.run(doc! { "insert": name, "ordered": false,
            "documents": [&docs[0], &docs[1], &docs[2], &docs[3]] })
        }
    }
}

/// Sets the same value in three documents, and in one of other writers, in a transaction.
fn transaction(link: &mut Link, rng: &mut Rng, v: i64) -> Option<DocBuf> {
    let mut id = [0; 16];
    id[..8].copy_from_slice(&rng.next_u64().to_le_bytes());
    let id = quire_document::Binary { subtype: 4, bytes: &id };
    let within = |mut command: DocBuf, begins: bool| {
        command.append("lsid", &doc! { "id": Value::Binary(id) }).append("txnNumber", 1_i64);
        command.append("autocommit", false);
        if begins {
            command.append("startTransaction", true);
        }
        command
    };
    let set = |id: i64| doc! { "q": { "_id": id }, "u": { "$set": { "v": v } }, "upsert": true };
    let other = doc! { "update": "a", "updates": [&set(v % 200)] };
    let mut reply = link.run(within(other, true))?;
    for id in 0..3 {
        if reply.get("ok").and_then(|ok| ok.to_f64()) != Some(1.0)
            || reply.as_doc().contains("writeErrors")
        {
            return Some(reply);
        }
        reply = link.run(within(doc! { "update": WHOLE, "updates": [&set(id)] }, false))?;
    }
    let ending = if rng.below(10) < 3 { "abortTransaction" } else { "commitTransaction" };
    let mut ending = within(doc! { (ending): 1 }, false);
    ending.append("$db", "admin");
    link.run(ending)
}

fn write_until_broken(port: u16, seed: u64) {
    let mut rng = Rng::new(seed);
    let Some(mut link) = Link::open(port) else { return };
    for _ in 0..WRITES_MAX {
        if write(&mut link, &mut rng).is_none() {
            return;
        }
    }
    while link.run(doc! { "ping": 1 }).is_some() {}
}

/// A client that builds the data of the database from its events.
struct Reader {
    rng: Rng,
    token: DocBuf,
    /// Values by collection and `_id`.
    data: BTreeMap<(String, i64), i64>,
    /// The time of the last event.
    time: Option<u64>,
    events: u64,
}

impl Reader {
    fn new(link: &mut Link, seed: u64) -> Reader {
        let stage = doc! { "$changeStream": {} };
        let open = doc! { "aggregate": 1, "pipeline": [&stage], "cursor": { "batchSize": 0 } };
        let token = token(&link.works(open).unwrap()).unwrap();
        let (data, rng) = (BTreeMap::new(), Rng::new(seed));
        Reader { rng, token, data, time: None, events: 0 }
    }

    /// Follows the database, and resumes after each some events, until the connection breaks.
    fn follow_until_broken(mut self, port: u16) -> Reader {
        while let Some(mut link) = Link::open(port) {
            let most = 1 + self.rng.below(100);
            if self.follow(&mut link, most).is_none() {
                break;
            }
        }
        self
    }

    /// Resumes, and applies at most `most` events. Returns the number of applied ones, `None` if the
    /// connection broke.
    fn follow(&mut self, link: &mut Link, most: u64) -> Option<u64> {
        let stage = doc! { "$changeStream": { "resumeAfter": &self.token } };
        let open = doc! { "aggregate": 1, "pipeline": [&stage], "cursor": { "batchSize": 20 } };
        let (mut reply, mut batch, begun) = (link.works(open)?, "firstBatch", self.events);
        loop {
            let cursor = reply.get("cursor").and_then(|cursor| cursor.as_document()).unwrap();
            let events = cursor.get(batch).and_then(|batch| batch.as_array()).unwrap();
            for event in events.iter().filter_map(|event| event.as_document()) {
                if self.events - begun == most {
                    return Some(most);
                }
                self.apply(event);
            }
            self.token = token(&reply).unwrap();
            if batch == "nextBatch" && events.count() == 0 {
                return Some(self.events - begun);
            }
            let id = cursor.get("id").unwrap();
            let more = doc! { "getMore": id, "collection": "$cmd.aggregate", "maxTimeMS": 50,
            "batchSize": 20 };
            (reply, batch) = (link.works(more)?, "nextBatch");
        }
    }

    fn apply(&mut self, event: Doc<'_>) {
        let field = |path: [&str; 2]| event.get(path[0])?.as_document()?.get(path[1]);
        let Some(Value::Timestamp(time)) = event.get("clusterTime") else { panic!("{event:?}") };
        if self.time.replace(time.to_u64()) != Some(time.to_u64()) {
            self.check_whole();
        }
        let text =
            |value: Option<Value<'_>>| value.and_then(|value| value.as_str().map(str::to_owned));
        let collection = text(field(["ns", "coll"])).unwrap();
        let id = field(["documentKey", "_id"]).and_then(|id| id.exact_i64());
        let key = (collection.clone(), id.unwrap_or(-1));
        let full = field(["fullDocument", "v"]).and_then(|v| v.exact_i64());
        match event.get("operationType").and_then(|kind| kind.as_str()).unwrap() {
            "insert" => {
                let old = self.data.insert(key, full.unwrap());
                assert_eq!(old, None, "it comes twice, or after a gap: {event:?}");
            }
            "replace" => {
                let old = self.data.insert(key, full.unwrap());
                assert!(old.is_some(), "something is missing before {event:?}");
            }
            "update" => {
                let fields = field(["updateDescription", "updatedFields"]);
                let v = fields.and_then(|fields| fields.as_document()?.get("v")?.exact_i64());
                let old = self.data.insert(key, v.unwrap());
                assert!(old.is_some(), "something is missing before {event:?}");
            }
            "delete" => {
                let old = self.data.remove(&key);
                assert!(old.is_some(), "something is missing before {event:?}");
            }
            "drop" => self.data.retain(|(of, _), _| *of != collection),
            "rename" => {
                let to = text(field(["to", "coll"])).unwrap();
                self.data.retain(|(of, _), _| *of != to);
                let moved = std::mem::take(&mut self.data).into_iter();
                let name = |of: String| if of == collection { to.clone() } else { of };
                self.data = moved.map(|((of, id), v)| ((name(of), id), v)).collect();
            }
            other => panic!("{other}"),
        }
        self.token = event.get("_id").and_then(|id| id.as_document()).unwrap().to_owned();
        self.events += 1;
    }

    /// Fails if the events up to now have a part of a transaction.
    fn check_whole(&self) {
        let whole = self.data.iter().filter(|((of, _), _)| of == WHOLE);
        let values: Vec<i64> = whole.map(|(_, v)| *v).collect();
        let is_whole =
            values.is_empty() || values.len() == 3 && values.iter().all(|v| *v == values[0]);
        assert!(is_whole, "a part of a transaction: {values:?}");
    }
}

fn token(reply: &DocBuf) -> Option<DocBuf> {
    let cursor = reply.get("cursor")?.as_document()?;
    cursor.get("postBatchResumeToken")?.as_document().map(Doc::to_owned)
}

/// Returns the data of the server.
fn found(link: &mut Link) -> BTreeMap<(String, i64), i64> {
    let mut data = BTreeMap::new();
    for name in COLLECTIONS.into_iter().chain([WHOLE]) {
        let find = doc! { "find": name, "batchSize": 100_000, "singleBatch": true };
        let reply = link.works(find).unwrap();
        let cursor = reply.get("cursor").and_then(|cursor| cursor.as_document()).unwrap();
        let batch: Array<'_> = cursor.get("firstBatch").and_then(|batch| batch.as_array()).unwrap();
        for doc in batch.iter().filter_map(|doc| doc.as_document()) {
            let number = |field: &str| doc.get(field).and_then(|value| value.exact_i64()).unwrap();
            data.insert((name.to_owned(), number("_id")), number("v"));
        }
    }
    data
}

#[test]
fn what_readers_have_seen_is_what_is_there_when_the_server_is_killed() {
    let rounds: u64 =
        std::env::var("QUIRE_CRASH_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(2);
    let directory = Directory::new();
    let path = directory.join("db");
    let path = path.to_str().unwrap();
    let mut readers = Vec::new();
    for round in 0..rounds {
        let server = Serving::start(&["--dbpath", path]);
        let port = server.port();
        if readers.is_empty() {
            let mut link = Link::open(port).unwrap();
            readers = (0..READERS).map(|seed| Reader::new(&mut link, seed)).collect();
        }
        let write = |writer| {
            let seed = round * WRITERS + writer;
            std::thread::spawn(move || write_until_broken(port, seed))
        };
        let writers: Vec<_> = (0..WRITERS).map(write).collect();
        let follow = |reader: Reader| std::thread::spawn(move || reader.follow_until_broken(port));
        let following: Vec<JoinHandle<Reader>> = readers.into_iter().map(follow).collect();
        // A different moment in each round.
        std::thread::sleep(Duration::from_millis(500 + round * 7919 % 1500));
        server.signal(Signal::KILL);
        readers = following.into_iter().map(|reader| reader.join().unwrap()).collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
    }
    let server = Serving::start(&["--dbpath", path]);
    let mut link = Link::open(server.port()).unwrap();
    let expected = found(&mut link);
    for mut reader in readers {
        while reader.follow(&mut link, u64::MAX).unwrap() > 0 {}
        reader.check_whole();
        assert_eq!(reader.data, expected, "after {} events", reader.events);
    }
    assert_eq!(server.end().code(), Some(0));
}
