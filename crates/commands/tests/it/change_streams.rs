//! Change streams: what a client that resumes at any event, also after the process was started again,
//! has seen in the end equals the data.

use super::*;
use quire_commands::{ChangeLogMode, ChangeLogOptions};
use quire_document::{Array, ArrayBuf, doc};
use quire_storage::rng::Rng;
use quire_storage::{Crash, Faults, SimulatedDisk};
use std::collections::BTreeMap;

pub(super) fn open(disk: &SimulatedDisk) -> Server {
    let change_log = ChangeLogOptions { mode: ChangeLogMode::On, ..ChangeLogOptions::default() };
    let options = ServiceOptions { change_log, ..ServiceOptions::in_process("simulated", None) };
    Server(Service::open(disk.open().unwrap(), options).unwrap())
}

pub(super) fn array<'a>(reply: &'a DocBuf, path: &str) -> Array<'a> {
    match at(reply, path) {
        Some(Value::Array(array)) => array,
        other => panic!("{path}: {other:?} in {reply:?}"),
    }
}

/// A client that mirrors a database from its events, and remembers a token.
struct Mirror {
    token: DocBuf,
    cursor: i64,
    /// Documents by collection and `_id`, as text without the `_id`.
    data: BTreeMap<(String, i64), String>,
    events: usize,
}

impl Mirror {
    fn new(client: &mut Client) -> Mirror {
        let opened = watch(client, &DocBuf::new());
        let token = document(at(&opened, "cursor.postBatchResumeToken"));
        let cursor = number(&opened, "cursor.id").unwrap();
        Mirror { token, cursor, data: BTreeMap::new(), events: 0 }
    }

    /// Opens the stream again after the last event that was applied.
    fn resume(&mut self, client: &mut Client) {
        let opened = watch(client, &doc! { "resumeAfter": &self.token });
        self.cursor = number(&opened, "cursor.id").unwrap();
        self.take(&opened, "cursor.firstBatch", usize::MAX);
    }

    /// Applies events until there are none, or the client dies after `most` of them.
    fn follow(&mut self, client: &mut Client, most: usize) {
        let until = self.events + most;
        while self.events < until {
            let more = doc! { "getMore": self.cursor, "collection": "$cmd.aggregate",
            "$db": "d", "maxTimeMS": 1, "batchSize": 5 };
            let reply = client.works(more);
            if self.take(&reply, "cursor.nextBatch", until - self.events) == 0 {
                return;
            }
        }
    }

    fn take(&mut self, reply: &DocBuf, batch: &str, most: usize) -> usize {
        let events = array(reply, batch);
        let count = events.count();
        for event in events.iter().take(most) {
            self.apply(event.as_document().unwrap());
        }
        if count <= most {
            self.token = document(at(reply, "cursor.postBatchResumeToken"));
        }
        count
    }

    fn apply(&mut self, event: Doc<'_>) {
        self.events += 1;
        self.token = document(event.get("_id"));
        let text = |name: &str| event.get(name).and_then(|value| value.as_str()).unwrap();
        let collection = event.get("ns").and_then(|ns| ns.as_document()?.get("coll")?.as_str());
        let collection = collection.unwrap_or_default().to_owned();
        let key = event.get("documentKey").and_then(|key| key.as_document()?.get("_id"));
        let key = key.and_then(|id| id.exact_i64());
        match text("operationType") {
            "insert" => {
                let old = self.data.insert((collection, key.unwrap()), full(event));
                assert_eq!(old, None, "the event comes twice: {event:?}");
            }
            "replace" => {
                let old = self.data.insert((collection, key.unwrap()), full(event));
                assert!(old.is_some(), "an event is missing before {event:?}");
            }
            "update" => {
                let updated = event.get("updateDescription").and_then(|all| {
                    all.as_document()?.get("updatedFields")?.as_document()?.get("v")
                });
                let now = format!("v {:?}", updated.unwrap().exact_i64());
                let old = self.data.insert((collection, key.unwrap()), now);
                assert!(old.is_some(), "an event is missing before {event:?}");
            }
            "delete" => {
                let old = self.data.remove(&(collection, key.unwrap()));
                assert!(old.is_some(), "an event is missing before {event:?}");
            }
            "drop" => self.data.retain(|(of, _), _| *of != collection),
            "rename" => {
                let to = event.get("to").and_then(|to| to.as_document()?.get("coll")?.as_str());
                let to = to.unwrap().to_owned();
                self.data.retain(|(of, _), _| *of != to);
                let all = std::mem::take(&mut self.data).into_iter();
                let name = |of: String| if of == collection { to.clone() } else { of };
                self.data = all.map(|((of, id), doc)| ((name(of), id), doc)).collect();
            }
            other => panic!("{other}"),
        }
    }
}

fn full(event: Doc<'_>) -> String {
    let v = event.get("fullDocument").and_then(|doc| doc.as_document()?.get("v"));
    format!("v {:?}", v.unwrap().exact_i64())
}

pub(super) fn document(value: Option<Value<'_>>) -> DocBuf {
    value.and_then(|value| value.as_document()).unwrap().to_owned()
}

fn watch(client: &mut Client, options: &DocBuf) -> DocBuf {
    let stage = doc! { "$changeStream": options };
    client.works(doc! { "aggregate": 1, "$db": "d", "pipeline": [&stage],
    "cursor": { "batchSize": 3 } })
}

/// Does one random write, a transaction, or a change of the catalog.
pub(super) fn act(client: &mut Client, rng: &mut Rng, next_id: &mut i64) {
    let name = ["a", "b", "c"][rng.below(3) as usize];
    let (id, v) = (rng.below(*next_id as u64 + 1) as i64, rng.below(1000) as i64);
    let filter = doc! { "_id": id };
    match rng.below(30) {
        0 => drop(client.run(doc! { "drop": name, "$db": "d" })),
        1 => drop(client.run(doc! { "renameCollection": &*format!("d.{name}"), "to": "d.c",
        "dropTarget": true, "$db": "admin" })),
        2..6 => {
            let delete = doc! { "q": &filter, "limit": 1 };
            client.works(doc! { "delete": name, "deletes": [&delete], "$db": "d" });
        }
        6..12 => {
            let change = doc! { "$set": { "v": v + 1000 } };
            let update = doc! { "q": { "_id": { "$gte": id } }, "u": &change, "multi": true };
            client.works(doc! { "update": name, "updates": [&update], "$db": "d" });
        }
        12..15 => {
            let update = doc! { "q": &filter, "u": { "v": v } };
            client.works(doc! { "update": name, "updates": [&update], "$db": "d" });
        }
        15..20 => transact(client, name, rng, next_id),
        _ => {
            let docs = ArrayBuf::build(|docs| {
                for _ in 0..=rng.below(8) {
                    docs.push(&new(next_id, v));
                }
            });
            client.works(doc! { "insert": name, "documents": &docs, "$db": "d" });
        }
    }
}

fn new(next_id: &mut i64, v: i64) -> DocBuf {
    *next_id += 1;
    doc! { "_id": *next_id, "v": v }
}

/// Inserts and changes documents in a transaction, which is aborted sometimes.
fn transact(client: &mut Client, name: &str, rng: &mut Rng, next_id: &mut i64) {
    client.run(doc! { "create": name, "$db": "d" });
    let session =
        doc! { "id": Value::Binary(quire_document::Binary { subtype: 4, bytes: &rng.uuid() }) };
    let generic = |command: DocBuf, first: bool| {
        let mut command = command;
        command.append("lsid", &session).append("txnNumber", 1i64).append("autocommit", false);
        if first {
            command.append("startTransaction", true);
        }
        command
    };
    let docs = [new(next_id, 1), new(next_id, 2)];
    let insert = doc! { "insert": name, "documents": [&docs[0], &docs[1]], "$db": "d" };
    client.works(generic(insert, true));
    let update = doc! { "q": { "_id": *next_id }, "u": { "$set": { "v": 77 } } };
    client.works(generic(doc! { "update": name, "updates": [&update], "$db": "d" }, false));
    let ends = if rng.below(3) == 0 { "abortTransaction" } else { "commitTransaction" };
    client.works(generic(doc! { (ends): 1, "$db": "admin" }, false));
}

/// Returns what the collections contain.
pub(super) fn stored(client: &mut Client) -> BTreeMap<(String, i64), String> {
    let mut data = BTreeMap::new();
    for name in ["a", "b", "c"] {
        let found = client.works(doc! { "find": name, "$db": "d", "batchSize": 100_000 });
        for document in array(&found, "cursor.firstBatch").iter() {
            let document = document.as_document().unwrap();
            let field = |name: &str| document.get(name).unwrap().exact_i64();
            data.insert((name.to_owned(), field("_id").unwrap()), format!("v {:?}", field("v")));
        }
    }
    data
}

#[test]
fn a_stream_misses_nothing_and_repeats_nothing() {
    for seed in 0..4 {
        let mut rng = Rng::new(seed);
        let mut disk = SimulatedDisk::new(Faults::none(seed));
        let mut server = open(&disk);
        let mut client = server.client(1);
        let mut mirrors: Vec<Mirror> = (0..3).map(|_| Mirror::new(&mut client)).collect();
        let mut next_id = 0;
        for round in 0..12 {
            for _ in 0..15 {
                act(&mut client, &mut rng, &mut next_id);
            }
            for mirror in &mut mirrors {
                mirror.follow(&mut client, rng.below(40) as usize);
            }
            if round % 4 == 3 {
                drop((client, server));
                disk.crash(Crash::Process);
                server = open(&disk);
                client = server.client(1);
            }
            mirrors.iter_mut().for_each(|mirror| mirror.resume(&mut client));
        }
        for mirror in &mut mirrors {
            mirror.follow(&mut client, usize::MAX / 2);
            assert_eq!(mirror.data, stored(&mut client), "seed {seed}");
        }
    }
}

#[test]
fn without_a_log_there_is_no_stream() {
    let server = Server::new();
    let stage = doc! { "$changeStream": {} };
    let watch = doc! { "aggregate": 1, "$db": "d", "pipeline": [&stage], "cursor": {} };
    assert_eq!(code(&server.client(1).run(watch)), 40573);
}

#[test]
fn images_are_shown_until_they_expire() {
    let clock = Arc::new(quire_storage::ManualClock::new(1));
    let change_log = ChangeLogOptions { mode: ChangeLogMode::On, ..ChangeLogOptions::default() };
    let in_process = ServiceOptions::in_process("memory", None);
    let options = ServiceOptions { change_log, clock: Arc::clone(&clock) as _, ..in_process };
    let server = Server(Service::open(open_memory().unwrap(), options).unwrap());
    let mut client = server.client(1);
    let images = doc! { "enabled": true };
    client.works(doc! { "create": "t", "changeStreamPreAndPostImages": &images, "$db": "d" });
    let begun =
        client.works(doc! { "insert": "t", "documents": [{ "_id": 1, "v": 1 }], "$db": "d" });
    let kept = doc! { "preAndPostImages": { "expireAfterSeconds": 10 } };
    client.works(doc! { "setClusterParameter": { "changeStreamOptions": &kept }, "$db": "admin" });
    let update = doc! { "q": { "_id": 1 }, "u": { "$set": { "v": 2 } } };
    client.works(doc! { "update": "t", "updates": [&update], "$db": "d" });
    let start = at(&begun, "operationTime").unwrap();
    let options =
        doc! { "startAtOperationTime": start, "fullDocumentBeforeChange": "whenAvailable" };
    let before = |client: &mut Client| {
        let opened = watch(client, &options);
        let event = array(&opened, "cursor.firstBatch").iter().last().unwrap();
        let event = event.as_document().unwrap();
        event.get("fullDocumentBeforeChange").unwrap().as_document().map(Doc::to_owned)
    };
    assert_eq!(before(&mut client), Some(doc! { "_id": 1, "v": 1 }));
    // The year 2096.
    clock.set_ms(4_000_000_000_000);
    assert_eq!(before(&mut client), None);
}

/// Every event was made with its documents, and the pipeline removed it then: the stream failed.
#[test]
fn no_document_is_looked_up_for_an_event_that_the_first_match_removes() {
    let server = open(&SimulatedDisk::new(Faults::none(3)));
    let mut client = server.client(1);
    let begun =
        client.works(doc! { "insert": "t", "documents": [{ "_id": 1, "v": 1 }], "$db": "d" });
    let update = doc! { "q": { "_id": 1 }, "u": { "$set": { "v": 2 } } };
    client.works(doc! { "update": "t", "updates": [&update], "$db": "d" });
    client.works(doc! { "insert": "t", "documents": [{ "_id": 2, "v": 7 }], "$db": "d" });
    let stage = doc! { "$changeStream": {
        "startAtOperationTime": (at(&begun, "operationTime").unwrap()), "fullDocument": "required",
    } };
    let mut seen = |filter: DocBuf| {
        let filter = doc! { "$match": &filter };
        let reply = client.run(doc! {
            "aggregate": "t", "pipeline": [&stage, &filter], "cursor": {}, "$db": "d",
        });
        match code(&reply) {
            0 => Ok(array(&reply, "cursor.firstBatch").count()),
            code => Err(code),
        }
    };
    assert_eq!(seen(doc! { "operationType": "insert" }), Ok(2));
    assert_eq!(seen(doc! { "operationType": "insert", "fullDocument.v": 7 }), Ok(1));
    assert_eq!(seen(doc! { "documentKey._id": 2 }), Ok(1));
    // The log has no image of the update.
    assert_eq!(seen(doc! {}), Err(47));
    assert_eq!(seen(doc! { "fullDocument.v": 7 }), Err(47));
    assert_eq!(seen(doc! { "operationType": { "$in": ["insert", "update"] } }), Err(47));
}

#[test]
fn a_stream_is_explained_without_being_opened() {
    let server = open(&SimulatedDisk::new(Faults::none(4)));
    let mut client = server.client(1);
    let stage = doc! { "$changeStream": { "fullDocument": "updateLookup" } };
    let filter = doc! { "$match": { "operationType": "insert" } };
    let explain = |pipeline: &[&DocBuf]| {
        let pipeline: ArrayBuf = pipeline.iter().copied().collect();
        doc! {
            "explain": { "aggregate": "t", "pipeline": &pipeline, "cursor": {} },
            "verbosity": "executionStats", "$db": "d",
        }
    };
    let shown = client.works(explain(&[&stage, &filter]));
    assert!(at(&shown, "stages.0.$changeStream").is_some(), "{shown:?}");
    assert!(at(&shown, "stages.1.$match").is_some(), "{shown:?}");
    let wrong = doc! { "$changeStream": { "fullDocument": "never" } };
    assert_eq!(code(&client.run(explain(&[&wrong]))), 2);
    let written = doc! { "$out": "o" };
    assert_ne!(code(&client.run(explain(&[&stage, &written]))), 0);
}

/// The time in the reply of a write was that of the last commit of the server, which could be another
/// one: a stream that began at it missed the write.
#[test]
fn the_time_of_a_write_is_that_of_its_event() {
    let server = open(&SimulatedDisk::new(Faults::none(44)));
    let mut client = server.client(1);
    let opened = watch(&mut client, &DocBuf::new());
    let timestamp = |value: Option<Value<'_>>| match value {
        Some(Value::Timestamp(time)) => time,
        other => panic!("{other:?}"),
    };
    let insert = |server: &Server, thread: u64| {
        let mut client = server.client(10 + thread);
        let write = move |at: i64| {
            let id = thread as i64 * 100 + at;
            let reply = client
                .works(doc! { "insert": "a", "documents": [{ "_id": id, "v": 1 }], "$db": "d" });
            (id, timestamp(reply.get("operationTime")))
        };
        (0..30).map(write).collect::<Vec<_>>()
    };
    let told: BTreeMap<i64, _> = std::thread::scope(|scope| {
        let (server, insert) = (&server, &insert);
        let threads: Vec<_> =
            (0..4).map(|thread| scope.spawn(move || insert(server, thread))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let (mut cursor, mut shown) = (number(&opened, "cursor.id").unwrap(), BTreeMap::new());
    while shown.len() < told.len() {
        let more = doc! { "getMore": cursor, "collection": "$cmd.aggregate", "$db": "d" };
        let reply = client.works(more);
        cursor = number(&reply, "cursor.id").unwrap();
        for event in array(&reply, "cursor.nextBatch").iter() {
            let event = document(Some(event));
            shown.insert(
                number(&event, "documentKey._id").unwrap(),
                timestamp(event.get("clusterTime")),
            );
        }
    }
    assert_eq!(shown, told);
}
