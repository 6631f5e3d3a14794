//! The recorder: what it counts for each kind of statement, what it keeps over a restart, and what
//! `$queryStats` shows of it.

use crate::{Client, Server, at, code, number, text};
use quire_advisor::Workload;
use quire_advisor::workload::{Cause, Kind, ShapeUse, Test};
use quire_commands::{Service, ServiceOptions};
use quire_document::testing::Generator;
use quire_document::{ArrayBuf, Binary, DocBuf, Value, doc};
use quire_storage::memory::open_memory;
use std::collections::BTreeMap;
use std::time::Duration;

const ADMIN: &str = "admin";

fn show(client: &mut Client) -> Workload {
    read(&client.works(doc! { "quireRecorder": "show", "ns": "test", "limit": 1000, "$db": ADMIN }))
}

fn read(reply: &DocBuf) -> Workload {
    let workload = reply.get("workload").unwrap().as_document().unwrap();
    Workload::from_document(workload).unwrap()
}

/// Returns the only shape of this kind.
fn only(workload: &Workload, kind: Kind) -> &ShapeUse {
    let mut found = workload.shapes.iter().filter(|used| used.kind == kind);
    let only = found.next().unwrap_or_else(|| panic!("no {kind:?} in {workload:?}"));
    assert!(found.next().is_none(), "several {kind:?} in {workload:?}");
    only
}

fn filled(server: &Server) -> Client {
    let mut client = server.client(1);
    let documents: ArrayBuf = (0..200)
        .map(|n| doc! { "_id": n, "a": n % 5, "text": "0123456789" })
        .collect::<Vec<DocBuf>>()
        .iter()
        .collect();
    client.works(doc! { "insert": "t", "documents": &documents, "$db": "test" });
    client
}

#[test]
fn a_find_counts_keys_documents_bytes_and_later_batches() {
    let server = Server::new();
    let mut client = filled(&server);
    for a in 0..3 {
        let find = doc! {
            "find": "t", "filter": { "a": a }, "sort": { "_id": -1 }, "skip": 2, "limit": 30,
            "batchSize": 10, "$db": "test",
        };
        let first = client.works(find);
        let id = at(&first, "cursor.id").unwrap();
        client.works(doc! { "getMore": id, "collection": "t", "$db": "test" });
    }
    client.works(doc! { "find": "t", "filter": { "_id": { "$in": [1, 2, 3] } }, "$db": "test" });
    let workload = show(&mut client);
    let sorted = workload.shapes.iter().find(|used| !used.parts().sorted.is_empty()).unwrap();
    assert_eq!((sorted.namespace.as_str(), sorted.cause), ("test.t", Cause::Client));
    let measures = &sorted.measures;
    assert_eq!((measures.count, measures.get_mores, measures.errors), (3, 3, 0));
    assert_eq!((measures.returned.sum, measures.returned.max), (90, 30));
    assert_eq!(measures.docs_examined.sum, measures.keys_examined.sum);
    let size = doc! { "_id": 1, "a": 1, "text": "0123456789" }.as_bytes().len() as u64;
    assert_eq!(measures.bytes_read.sum, measures.docs_examined.sum * size);
    assert_eq!(measures.skip.quantile(0.5), Some(2));
    assert_eq!(measures.limit.count(), 3);
    assert_eq!(measures.latency.count(), 3);
    assert_eq!(measures.plans[0].index, "_id_");
    assert_eq!((measures.collection_scans, measures.sorts), (0, 0));
    let parts = sorted.parts();
    assert_eq!((parts.filtered[0].path.as_str(), parts.filtered[0].test), ("a", Test::Equality));
    let listed = workload.shapes.iter().find(|used| used.measures.list.count() > 0).unwrap();
    assert_eq!(listed.measures.list.quantile(1.0), Some(3));
    assert_eq!(listed.measures.returned.sum, 3);
}

#[test]
fn every_statement_of_batches_and_of_a_bulk_write_counts() {
    let server = Server::new();
    let mut client = filled(&server);
    client.works(doc! { "quireRecorder": "reset", "$db": ADMIN });
    let updates = doc! { "update": "t", "updates": [
        { "q": { "a": 1 }, "u": { "$set": { "b": 1 } }, "multi": true },
        { "q": { "a": 2 }, "u": { "$set": { "b": "x" } }, "multi": true },
        { "q": { "_id": 900 }, "u": { "a": 7 }, "upsert": true },
    ], "$db": "test" };
    client.works(updates);
    client
        .works(doc! { "delete": "t", "deletes": [{ "q": { "a": 3 }, "limit": 0 }], "$db": "test" });
    let bulk = doc! { "bulkWrite": 1, "nsInfo": [{ "ns": "test.t" }], "ops": [
        { "insert": 0, "document": { "_id": 1000 } },
        { "insert": 0, "document": { "_id": 1001 } },
        { "update": 0, "filter": { "a": 4 }, "updateMods": { "$set": { "b": 1 } }, "multi": true },
        { "delete": 0, "filter": { "_id": 1000 } },
    ], "$db": ADMIN };
    client.works(bulk);
    let modify =
        doc! { "findAndModify": "t", "query": { "_id": 5 }, "remove": true, "$db": "test" };
    client.works(modify);
    client.works(doc! { "count": "t", "query": { "a": 1 }, "$db": "test" });
    client.works(doc! { "distinct": "t", "key": "a", "$db": "test" });
    let group = doc! { "$group": { "_id": "$a" } };
    client.works(doc! { "aggregate": "t", "pipeline": [&group], "cursor": {}, "$db": "test" });
    let workload = show(&mut client);
    let of = |kind| only(&workload, kind);
    let update_of = |path: &str, shape: &str| {
        let mut found =
            workload.shapes.iter().filter(|used| text(&used.shape, path) == Some(shape));
        found.next().map(|used| used.measures.clone()).unwrap()
    };
    let numbers = update_of("update.$set.b", "?number");
    assert_eq!((numbers.count, numbers.matched.sum, numbers.modified.sum), (2, 80, 80));
    assert!(numbers.docs_examined.sum >= 80);
    let replaced = update_of("update", "?object");
    assert_eq!((replaced.upserted, replaced.replacements), (1, 1));
    assert_eq!(of(Kind::Insert).measures.inserted, 2);
    assert_eq!(of(Kind::FindAndModify).measures.deleted.sum, 1);
    assert_eq!(of(Kind::Count).measures.docs_examined.sum, 161);
    assert_eq!(of(Kind::Distinct).measures.count, 1);
    assert_eq!(of(Kind::Aggregate).measures.returned.sum, 6);
    let deletes = workload.shapes.iter().filter(|used| used.kind == Kind::Delete);
    let deleted: Vec<u64> = deletes.map(|used| used.measures.deleted.sum).collect();
    assert_eq!(deleted.iter().sum::<u64>(), 41);
    assert_eq!(deleted.len(), 2);
}

#[test]
fn counts_equal_those_of_a_client_that_counts_itself() {
    let server = Server::new();
    let mut clients = [filled(&server), server.client(2), server.client(3)];
    clients[0].works(doc! { "quireRecorder": "reset", "$db": ADMIN });
    let mut random = Generator::new(46);
    let mut own: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for _ in 0..600 {
        let field = format!("f{}", random.below(40));
        let client = &mut clients[random.below(3) as usize];
        let filter = DocBuf::build(|out| {
            out.append(&field, random.below(3) as i32);
        });
        let command = match random.below(3) {
            0 => doc! { "find": "t", "filter": &filter, "$db": "test" },
            1 => doc! { "count": "t", "query": &filter, "$db": "test" },
            _ => doc! { "delete": "t", "deletes": [{ "q": &filter, "limit": 0 }], "$db": "test" },
        };
        let name = command.as_doc().first().unwrap().key().to_owned();
        client.works(command);
        own.entry(format!("{name} {field}")).or_default().0 += 1;
    }
    let workload = show(&mut clients[0]);
    for used in &workload.shapes {
        let path = used.parts().filtered.first().map(|one| one.path.clone()).unwrap();
        let counted = own.get_mut(&format!("{} {path}", used.kind.name())).unwrap();
        counted.1 += used.measures.count;
    }
    assert!(own.values().all(|(sent, counted)| sent == counted), "{own:?}");
    assert_eq!(workload.statements(), 600);
}

#[test]
fn a_failed_statement_counts_as_an_error_only() {
    let server = Server::new();
    let mut client = filled(&server);
    client.works(doc! { "quireRecorder": "reset", "$db": ADMIN });
    let insert = doc! { "update": "t", "updates": [
        { "q": { "_id": 1 }, "u": { "$inc": { "text": 1 } } },
    ], "$db": "test" };
    client.run(insert);
    let workload = show(&mut client);
    let measures = &only(&workload, Kind::Update).measures;
    assert_eq!((measures.count, measures.errors, measures.matched.sum), (1, 1, 0));
}

#[test]
fn inserts_and_later_batches_that_fail_count_as_errors() {
    let server = Server::with(&[("enableTestCommands", "1")]);
    let mut client = filled(&server);
    client.works(doc! { "quireRecorder": "reset", "$db": ADMIN });
    let insert = doc! {
        "insert": "t", "documents": [{ "_id": 1 }, { "_id": 900 }], "ordered": false, "$db": "test",
    };
    client.run(insert);
    let workload = show(&mut client);
    let measures = &only(&workload, Kind::Insert).measures;
    assert_eq!((measures.count, measures.errors, measures.inserted), (1, 1, 1));
    // The second batch divides by zero.
    let quotient = doc! { "$divide": [1, { "$subtract": ["$_id", 20] }] };
    let find = doc! {
        "find": "t", "filter": { "_id": { "$gte": 0 } }, "sort": { "_id": 1 }, "batchSize": 10,
        "projection": { "q": &quotient }, "$db": "test",
    };
    let first = client.works(find);
    let id = at(&first, "cursor.id").unwrap();
    let more = client.run(doc! { "getMore": id, "collection": "t", "$db": "test" });
    assert_ne!(code(&more), 0);
    let workload = show(&mut client);
    let measures = &only(&workload, Kind::Find).measures;
    assert_eq!((measures.count, measures.errors, measures.get_mores), (1, 1, 1));
}

#[test]
fn pipelines_that_write_count_what_they_read() {
    let server = Server::new();
    let mut client = filled(&server);
    let merge = doc! { "$merge": { "into": "merged" } };
    for last in [doc! { "$out": "copy" }, merge] {
        client.works(doc! { "quireRecorder": "reset", "$db": ADMIN });
        let pipeline = quire_document::array![{ "$match": { "a": 3 } }, &last];
        let aggregate =
            doc! { "aggregate": "t", "pipeline": &pipeline, "cursor": {}, "$db": "test" };
        client.works(aggregate);
        let workload = show(&mut client);
        let measures = &only(&workload, Kind::Aggregate).measures;
        assert_eq!((measures.docs_examined.sum, measures.collection_scans), (200, 1), "{last:?}");
        // With a batch size of 0 the first getMore runs the pipeline.
        let cursor = doc! { "batchSize": 0 };
        let later =
            doc! { "aggregate": "t", "pipeline": &pipeline, "cursor": &cursor, "$db": "test" };
        let opened = client.works(later);
        let id = at(&opened, "cursor.id").unwrap();
        client.works(doc! { "getMore": id, "collection": "t", "$db": "test" });
        let workload = show(&mut client);
        let measures = &only(&workload, Kind::Aggregate).measures;
        assert_eq!((measures.docs_examined.sum, measures.count), (400, 2), "{last:?}");
    }
}

/// The asked range was stated as the time in which statements were counted, so that rates were too low.
#[test]
fn a_workload_of_windows_begins_and_ends_with_what_was_counted() {
    let server = Server::new();
    let mut client = filled(&server);
    client.works(doc! { "find": "t", "filter": { "a": 1 }, "$db": "test" });
    let (from, until) = (Value::Date(0), Value::Date(i64::from(u32::MAX) * 1000));
    let command = doc! { "quireRecorder": "show", "from": from, "until": until, "$db": ADMIN };
    let workload = read(&client.works(command));
    let first = workload.shapes.iter().map(|used| used.measures.first_ms).min();
    assert_eq!(Some(workload.begins_ms), first);
    assert!(workload.ends_ms >= workload.begins_ms, "{workload:?}");
    assert!(workload.ends_ms - workload.begins_ms < 3_600_000, "{workload:?}");
}

#[test]
fn windows_are_kept_over_a_restart_and_purged() {
    let server = Server::new();
    let mut client = filled(&server);
    let find = || doc! { "find": "t", "filter": { "a": 1 }, "$db": "test" };
    client.works(find());
    let stored = |client: &mut Client| {
        let from = Value::Date(0);
        read(&client.works(doc! {
            "quireRecorder": "show", "ns": "test.t", "from": from, "$db": ADMIN,
        }))
    };
    assert_eq!(only(&stored(&mut client), Kind::Find).measures.count, 1);
    // The process ends without a word: what was stored stays, and the next one adds to it.
    let reopened = server.reopened();
    let mut client = reopened.client(1);
    client.works(find());
    assert_eq!(only(&show(&mut client), Kind::Find).measures.count, 1, "since the start");
    let both = stored(&mut client);
    assert_eq!(only(&both, Kind::Find).measures.count, 2);
    assert_eq!(only(&both, Kind::Insert).measures.inserted, 200);
    client.works(doc! { "quireRecorder": "reset", "$db": ADMIN });
    assert_eq!(show(&mut client).shapes, []);
    assert_eq!(only(&stored(&mut client), Kind::Find).measures.count, 2);
    client.works(doc! { "quireRecorder": "purge", "$db": ADMIN });
    assert_eq!(stored(&mut client).shapes, []);
    assert_eq!(server.reopened().0.recorder_rows(), 0);
}

trait RecorderRows {
    fn recorder_rows(&self) -> usize;
}

impl RecorderRows for Service {
    fn recorder_rows(&self) -> usize {
        let mut rows = 0;
        let mut count = |_, key: Option<u64>, _: quire_document::Doc<'_>| {
            rows += usize::from(key.is_some());
        };
        self.store().recorded(0..=u32::MAX, &mut count).unwrap();
        rows
    }
}

#[test]
fn a_closed_connection_leaves_its_counts() {
    let server = Server::new();
    let mut client = filled(&server);
    for id in 2..30 {
        let mut other = server.client(id);
        other.works(doc! { "find": "t", "filter": { "a": 1 }, "$db": "test" });
    }
    assert_eq!(only(&show(&mut client), Kind::Find).measures.count, 28);
}

#[test]
fn the_work_of_ttl_is_charged_to_it() {
    let server = Server::with(&[("enableTestCommands", "1"), ("ttlMonitorSleepSecs", "1")]);
    let mut client = server.client(1);
    let documents: ArrayBuf = (0..20)
        .map(|n| doc! { "_id": n, "at": Value::Date(1000) })
        .collect::<Vec<DocBuf>>()
        .iter()
        .collect();
    client.works(doc! { "insert": "t", "documents": &documents, "$db": "test" });
    let index = doc! { "key": { "at": 1 }, "name": "at", "expireAfterSeconds": 10 };
    client.works(doc! { "createIndexes": "t", "indexes": [&index], "$db": "test" });
    let _jobs = server.0.start_jobs().unwrap();
    loop {
        let workload = show(&mut client);
        let ttl = workload.shapes.iter().find(|used| used.cause == Cause::Ttl);
        let deleted = ttl.map_or(0, |used| used.measures.deleted.sum);
        if deleted == 20 {
            assert_eq!((ttl.unwrap().kind, &*ttl.unwrap().namespace), (Kind::Delete, "test.t"));
            break;
        }
        assert!(deleted < 20);
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

#[test]
fn a_recorder_that_is_off_counts_nothing() {
    let options = ServiceOptions { recorder: false, ..ServiceOptions::in_process("memory", None) };
    let server = Server(Service::open(open_memory().unwrap(), options).unwrap());
    let mut client = filled(&server);
    let reply = client.works(doc! { "quireRecorder": "show", "$db": ADMIN });
    assert_eq!(at(&reply, "recording").and_then(|on| on.as_bool()), Some(false));
    assert_eq!(read(&reply).shapes, []);
    let stage = doc! { "$queryStats": {} };
    let rows = doc! { "aggregate": 1, "pipeline": [&stage], "cursor": {}, "$db": ADMIN };
    assert!(at(&client.works(rows), "cursor.firstBatch.0").is_none());
}

#[test]
fn arguments_are_checked() {
    let server = Server::new();
    let mut client = server.client(1);
    for (command, expected) in [
        (doc! { "quireRecorder": "hide", "$db": ADMIN }, 2),
        (doc! { "quireRecorder": 1, "$db": ADMIN }, 14),
        (doc! { "quireRecorder": "reset", "ns": "a", "$db": ADMIN }, 40415),
        (doc! { "quireRecorder": "show", "from": 5, "$db": ADMIN }, 14),
        (doc! { "quireRecorder": "show", "until": Value::Date(5), "$db": ADMIN }, 40414),
        (doc! { "quireRecorder": "show", "$db": "test" }, 13),
    ] {
        assert_eq!(code(&client.run(command.clone())), expected, "{command:?}");
    }
}

fn query_stats(options: &DocBuf) -> DocBuf {
    let stage = doc! { "$queryStats": options };
    let own = doc! { "$match": { "key.queryShape.command": { "$ne": "aggregate" } } };
    doc! { "aggregate": 1, "pipeline": [&stage, &own], "cursor": {}, "$db": ADMIN }
}

#[test]
fn query_stats_shows_shapes_with_their_metrics() {
    let server = Server::new();
    let mut client = filled(&server);
    for _ in 0..3 {
        client.works(doc! { "find": "t", "filter": { "a": 1 }, "$db": "test" });
    }
    let rows = client.works(query_stats(&DocBuf::new()));
    let first = |path: &str| format!("cursor.firstBatch.0.{path}");
    assert_eq!(text(&rows, &first("key.queryShape.cmdNs.coll")), Some("t"));
    assert_eq!(text(&rows, &first("key.queryShape.filter.a.$eq")), Some("?number"));
    assert_eq!(text(&rows, &first("key.collectionType")), Some("collection"));
    for (path, expected) in [
        ("metrics.execCount", 3),
        ("metrics.docsReturned.sum", 120),
        ("metrics.docsReturned.max", 40),
        ("metrics.docsExamined.sum", 600),
        ("metrics.hasSortStage.false", 3),
        ("metrics.hasSortStage.true", 0),
    ] {
        assert_eq!(number(&rows, &first(path)), Some(expected), "{path}");
    }
    let squares = at(&rows, &first("metrics.docsReturned.sumOfSquares")).unwrap();
    assert_eq!(squares.exact_i64(), Some(3 * 40 * 40));
    assert!(matches!(squares, Value::Decimal(_)));
    assert_eq!(text(&rows, &first("queryShapeHash")).unwrap().len(), 64);
    assert!(at(&rows, "cursor.firstBatch.1").is_none());
}

#[test]
fn identifiers_are_transformed_on_request() {
    let server = Server::new();
    let mut client = filled(&server);
    client.works(doc! { "find": "t", "filter": { "a": 1 }, "$db": "test" });
    let key = Value::Binary(Binary { subtype: 8, bytes: b"secret" });
    let transform = doc! { "algorithm": "hmac-sha-256", "hmacKey": key };
    let rows = client.works(query_stats(&doc! { "transformIdentifiers": &transform }));
    let coll = text(&rows, "cursor.firstBatch.0.key.queryShape.cmdNs.coll").unwrap();
    assert_eq!((coll.len(), coll.ends_with('=')), (44, true));
    for (options, expected) in [
        (doc! { "transformIdentifiers": {} }, 40414),
        (doc! { "transformIdentifiers": { "algorithm": "md5", "hmacKey": key } }, 2),
        (doc! { "transformIdentifiers": { "algorithm": "hmac-sha-256", "hmacKey": "k" } }, 14),
        (doc! { "transformIdentifiers": { "algorithm": "hmac-sha-256" } }, 40414),
        (doc! { "transformIdentifiers": 1 }, 14),
        (doc! { "other": 1 }, 40415),
    ] {
        assert_eq!(code(&client.run(query_stats(&options))), expected, "{options:?}");
    }
}

#[test]
fn whole_queries_are_sampled_where_that_was_configured() {
    let server = Server::new();
    let mut client = filled(&server);
    let configure = |mode: &str, rate: f64| {
        doc! {
            "configureQueryAnalyzer": "test.t", "mode": mode, "samplesPerSecond": rate,
            "$db": ADMIN,
        }
    };
    let find = || doc! { "find": "t", "filter": { "a": 1 }, "$db": "test" };
    let list = |client: &mut Client, ns: &str| {
        let stage = doc! { "$listSampledQueries": { "namespace": ns } };
        client.works(doc! { "aggregate": 1, "pipeline": [&stage], "cursor": {}, "$db": ADMIN })
    };
    client.works(find());
    let reply = client.works(configure("full", 2.0));
    assert_eq!(number(&reply, "newConfiguration.samplesPerSecond"), Some(2));
    assert!(at(&reply, "oldConfiguration").is_none());
    client.works(find());
    let update = doc! { "q": { "_id": 1 }, "u": { "$set": { "a": 1 } } };
    client.works(doc! { "update": "t", "updates": [&update], "$db": "test" });
    let rows = list(&mut client, "test.t");
    assert_eq!(text(&rows, "cursor.firstBatch.0.cmdName"), Some("find"));
    assert_eq!(number(&rows, "cursor.firstBatch.0.cmd.filter.a"), Some(1));
    assert_eq!(text(&rows, "cursor.firstBatch.1.cmdName"), Some("update"));
    assert_eq!(number(&rows, "cursor.firstBatch.1.cmd.updates.0.q._id"), Some(1));
    assert!(at(&list(&mut client, "test.other"), "cursor.firstBatch.0").is_none());
    let reply = client.works(configure("off", 1.0));
    assert_eq!(text(&reply, "oldConfiguration.mode"), Some("full"));
    // A dropped collection is not sampled any more, nor is one of the same name.
    client.works(configure("full", 50.0));
    client.works(doc! { "drop": "t", "$db": "test" });
    client.works(doc! { "create": "t", "$db": "test" });
    client.works(find());
    let rows = list(&mut client, "test.t");
    assert!(at(&rows, "cursor.firstBatch.2").is_none());
    for (command, expected) in [
        (configure("full", 51.0), 72),
        (configure("full", 0.0), 72),
        (configure("some", 1.0), 2),
        (doc! { "configureQueryAnalyzer": "test.t", "mode": "full", "$db": ADMIN }, 72),
        (doc! { "configureQueryAnalyzer": "test.t", "$db": ADMIN }, 40414),
        (doc! { "configureQueryAnalyzer": "test.none", "mode": "off", "$db": ADMIN }, 26),
        (doc! { "configureQueryAnalyzer": "config.x", "mode": "off", "$db": ADMIN }, 20),
        (doc! { "configureQueryAnalyzer": 1, "mode": "off", "$db": ADMIN }, 14),
    ] {
        assert_eq!(code(&client.run(command.clone())), expected, "{command:?}");
    }
}

/// `quire advise` looks values up and reads samples. Its advice about indexes counted that as what clients
/// ask.
#[test]
fn what_a_tool_asks_that_describes_the_data_is_not_counted() {
    let server = Server::new();
    let mut client = filled(&server);
    let configure = doc! {
        "configureQueryAnalyzer": "test.t", "mode": "full", "samplesPerSecond": 50.0, "$db": ADMIN,
    };
    client.works(configure);
    let trace = client.works(
        doc! { "quireRecorder": "beginTrace", "values": "none", "seconds": 60, "$db": ADMIN },
    );
    let mut tool = server.client(2);
    let metadata = doc! {
        "driver": { "name": quire_commands::ADVISOR_DRIVER, "version": "1" }, "os": { "type": "Linux" },
    };
    tool.works(doc! { "hello": 1, "client": &metadata, "$db": ADMIN });
    let pipeline = quire_document::array![{ "$sample": { "size": 3 } }];
    for command in [
        doc! { "count": "t", "query": { "_id": { "$in": [1, 2] } } },
        doc! { "find": "t", "batchSize": 2 },
        doc! { "aggregate": "t", "pipeline": &pipeline, "cursor": {} },
    ] {
        let mut command = command;
        command.append("$db", "test");
        tool.works(command);
    }
    drop(tool);
    let kinds: Vec<Kind> = show(&mut client).shapes.iter().map(|used| used.kind).collect();
    assert_eq!(kinds, [Kind::Insert], "only what the client did");
    let stage = doc! { "$listSampledQueries": { "namespace": "test.t" } };
    let listed =
        client.works(doc! { "aggregate": 1, "pipeline": [&stage], "cursor": {}, "$db": ADMIN });
    assert_eq!(at(&listed, "cursor.firstBatch").unwrap().as_array().unwrap().count(), 0);
    let id = at(&trace, "trace").unwrap();
    let read = client.works(doc! { "quireRecorder": "readTrace", "trace": id, "$db": ADMIN });
    let traced = at(&read, "entries").unwrap().as_array().unwrap();
    let names: Vec<&str> =
        traced.iter().filter_map(|one| one.as_document()?.get("name")?.as_str()).collect();
    assert!(!names.contains(&"count") && !names.contains(&"find"), "{names:?}");
}
