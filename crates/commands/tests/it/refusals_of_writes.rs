//! What writes, plans and statistics answer as MongoDB 8.2 does: sizes, supplied documents, constants of
//! update pipelines, references as `_id`, the use of views and absent names, idle cursors.

use super::{Client, Server, at, code, flag, number, text};
use quire_document::{ArrayBuf, DocBuf, Timestamp, Value, doc};

const MEGABYTE: usize = 1 << 20;

fn on_test(mut command: DocBuf) -> DocBuf {
    command.append("$db", "test");
    command
}

fn update(client: &mut Client, statement: DocBuf) -> DocBuf {
    client.run(on_test(doc! { "update": "t", "updates": [&statement] }))
}

/// Returns code and text of the first write error.
fn refusal(reply: &DocBuf) -> (i64, &str) {
    let code = number(reply, "writeErrors.0.code").unwrap_or(0);
    (code, text(reply, "writeErrors.0.errmsg").unwrap_or_default())
}

#[test]
fn an_update_names_the_size_that_is_too_large() {
    let server = Server::new();
    let mut client = server.client(1);
    let big = "x".repeat(15 * MEGABYTE);
    client.works(on_test(doc! { "insert": "t", "documents": [{ "_id": 7, "s": big.as_str() }] }));
    let set = |bytes: usize| {
        let value = "y".repeat(bytes);
        doc! { "q": { "_id": 7 }, "u": { "$set": { "t": value.as_str() } } }
    };
    let reply = update(&mut client, set(2 * MEGABYTE));
    let (found, shown) = refusal(&reply);
    assert_eq!(found, 10334, "{shown}");
    let begin = "Plan executor error during update :: caused by :: BSONObj size: 178";
    let end = " is invalid. Size must be between 0 and 16793600(16MB) First element: _id: 7";
    assert!(shown.starts_with(begin) && shown.ends_with(end), "{shown}");
    // Larger than a stored document, but not than a document of the server.
    assert_eq!(refusal(&update(&mut client, set(MEGABYTE + 100))).0, 17419);
    assert_eq!(refusal(&update(&mut client, set(MEGABYTE - 100))).0, 0);
    let twice = doc! { "$project": { "a": "$s", "b": "$s" } };
    let reply = client.run(on_test(doc! { "aggregate": "t", "pipeline": [&twice], "cursor": {} }));
    assert_eq!(code(&reply), 10334);
    assert!(text(&reply, "errmsg").unwrap().ends_with("16793600(16MB) First element: _id: 7"));
}

#[test]
fn an_upsert_inserts_the_supplied_document() {
    let server = Server::new();
    let mut client = server.client(1);
    let pipeline: ArrayBuf = [doc! { "$set": { "made": true } }].iter().collect();
    let statement = |more: DocBuf| {
        let mut statement = doc! { "q": { "_id": 1 }, "u": &pipeline, "upsertSupplied": true };
        more.as_doc().fields().for_each(|(name, value)| {
            statement.append(name, value);
        });
        statement
    };
    let new = doc! { "new": { "_id": 1, "from": "client" } };
    assert_eq!(refusal(&update(&mut client, statement(doc! { "c": &new }))).0, 9);
    assert_eq!(refusal(&update(&mut client, statement(doc! { "upsert": true }))).0, 9);
    let operators = doc! {
        "q": { "_id": 1 }, "u": { "$set": { "a": 1 } }, "upsert": true, "upsertSupplied": true,
    };
    assert_eq!(refusal(&update(&mut client, operators)).0, 9);
    let whole = statement(doc! { "upsert": true, "c": &new });
    assert_eq!(number(&update(&mut client, whole.clone()), "n"), Some(1));
    let found = client.works(on_test(doc! { "find": "t" }));
    let stored = at(&found, "cursor.firstBatch.0").unwrap().as_document().unwrap().to_owned();
    assert_eq!(stored, doc! { "_id": 1, "from": "client" });
    // A document that matches is updated.
    assert_eq!(number(&update(&mut client, whole), "nModified"), Some(1));
    let found = client.works(on_test(doc! { "find": "t" }));
    assert_eq!(flag(&found, "cursor.firstBatch.0.made"), Some(true));
}

#[test]
fn a_constant_of_an_update_pipeline_fails_when_it_runs() {
    let server = Server::new();
    let mut client = server.client(1);
    let statement = doc! { "q": {}, "u": [{ "$set": { "x": { "$divide": [1, 0] } } }] };
    assert_eq!(code(&update(&mut client, statement.clone())), 0);
    client.works(on_test(doc! { "insert": "t", "documents": [{ "_id": 1 }] }));
    let reply = update(&mut client, statement);
    let shown = "Plan executor error during update :: caused by :: can't $divide by zero";
    assert_eq!(refusal(&reply), (2, shown));
    let unknown = doc! { "q": {}, "u": [{ "$set": { "x": { "$nope": 1 } } }] };
    let reply = update(&mut client, unknown);
    assert_eq!(
        refusal(&reply),
        (168, "Invalid $set :: caused by :: Unrecognized expression '$nope'")
    );
}

#[test]
fn a_reference_can_be_an_id() {
    let server = Server::new();
    let mut client = server.client(1);
    let insert = |id: DocBuf| on_test(doc! { "insert": "t", "documents": [{ "_id": &id }] });
    for (id, wanted) in [
        (doc! { "$ref": "c", "$id": 1 }, 0),
        (doc! { "$ref": "c", "$id": 2, "$db": "d" }, 0),
        (doc! { "$id": 1, "$ref": "c" }, 52),
        (doc! { "$ref": "c", "$id": 1, "$x": 1 }, 52),
        (doc! { "$x": 1 }, 52),
    ] {
        assert_eq!(refusal(&client.run(insert(id.clone()))).0, wanted, "{id:?}");
    }
    let upsert = doc! {
        "q": { "_id": { "$ref": "c", "$id": 3 } }, "u": { "$set": { "a": 1 } }, "upsert": true,
    };
    assert_eq!(refusal(&update(&mut client, upsert)).0, 0);
}

#[test]
fn a_wildcard_index_finds_the_empty_document() {
    let server = Server::new();
    let mut client = server.client(1);
    let docs = [
        doc! { "_id": 1, "a": {} },
        doc! { "_id": 2, "a": { "b": 1 } },
        doc! { "_id": 3, "a": 5 },
        doc! { "_id": 4, "a": [{}] },
    ];
    let docs: ArrayBuf = docs.iter().collect();
    client.works(on_test(doc! { "insert": "t", "documents": &docs }));
    let index = doc! { "key": { "$**": 1 }, "name": "w" };
    client.works(on_test(doc! { "createIndexes": "t", "indexes": [&index] }));
    let find = |operator: &str, hint: DocBuf| {
        let filter = doc! { "a": { operator: {} } };
        on_test(doc! { "find": "t", "filter": &filter, "hint": &hint })
    };
    let found = client.works(find("$lte", doc! { "$**": 1 }));
    let scanned = client.works(find("$lte", doc! { "$natural": 1 }));
    let batch = |reply: &DocBuf| format!("{:?}", at(reply, "cursor.firstBatch"));
    assert_eq!(batch(&found), batch(&scanned));
    assert!(at(&found, "cursor.firstBatch.1").is_some());
    assert_eq!(code(&client.run(find("$gte", doc! { "$**": 1 }))), 291);
}

#[test]
fn the_use_of_views_and_absent_names_is_counted_and_not_that_of_statistics() {
    let server = Server::new();
    let mut client = server.client(1);
    client.works(on_test(doc! { "insert": "t", "documents": [{ "_id": 1 }] }));
    client.works(on_test(doc! { "create": "v", "viewOn": "t", "pipeline": [] }));
    let stage = doc! { "$collStats": { "latencyStats": {} } };
    let stats =
        |name: &str| on_test(doc! { "aggregate": name, "pipeline": [&stage], "cursor": {} });
    let reads = |client: &mut Client, name: &str| {
        number(&client.works(stats(name)), "cursor.firstBatch.0.latencyStats.reads.ops").unwrap()
    };
    assert_eq!((reads(&mut client, "v"), reads(&mut client, "t")), (0, 0));
    client.works(on_test(doc! { "find": "v" }));
    client.works(on_test(doc! { "find": "t" }));
    client.works(on_test(doc! { "find": "absent" }));
    assert_eq!((reads(&mut client, "v"), reads(&mut client, "t")), (1, 1));
    let top = client.works(doc! { "top": 1, "$db": "admin" });
    let totals = top.get("totals").and_then(|totals| totals.as_document()).unwrap();
    for name in ["test.absent", "test.t", "test.v"] {
        let used = totals.get(name).and_then(|used| used.as_document()).unwrap().to_owned();
        assert_eq!(number(&used, "queries.count"), Some(1), "{name}");
    }
    // Names that clients invent do not add up.
    for n in 0..3000 {
        client.works(on_test(doc! { "find": format!("absent{n}").as_str() }));
    }
    let top = client.works(doc! { "top": 1, "$db": "admin" });
    let totals = top.get("totals").and_then(|totals| totals.as_document()).unwrap();
    assert!(totals.count() <= 1003 && totals.get("test.v").is_some());
}

#[test]
fn idle_cursors_are_shown_on_request() {
    let server = Server::new();
    let mut client = server.client(1);
    client.works(on_test(doc! { "insert": "t", "documents": [{}, {}, {}] }));
    let find = doc! { "find": "t", "batchSize": 1, "noCursorTimeout": true };
    let id = number(&client.works(on_test(find)), "cursor.id").unwrap();
    let mut shown = |options: DocBuf| {
        let stages: ArrayBuf =
            [doc! { "$currentOp": &options }, doc! { "$match": { "type": "idleCursor" } }]
                .iter()
                .collect();
        client.works(doc! { "aggregate": 1, "pipeline": &stages, "cursor": {}, "$db": "admin" })
    };
    let none = shown(doc! { "idleCursors": false });
    assert!(at(&none, "cursor.firstBatch.0").is_none());
    let one = shown(doc! { "idleCursors": true });
    assert_eq!(text(&one, "cursor.firstBatch.0.ns"), Some("test.t"));
    assert_eq!(number(&one, "cursor.firstBatch.0.cursor.cursorId"), Some(id));
    assert_eq!(flag(&one, "cursor.firstBatch.0.cursor.noCursorTimeout"), Some(true));
    assert_eq!(text(&one, "cursor.firstBatch.0.cursor.originatingCommand.find"), Some("t"));
    assert!(
        at(&one, "cursor.firstBatch.0.op").is_none() && at(&one, "cursor.firstBatch.1").is_none()
    );
}

#[test]
fn the_feature_compatibility_version_is_a_document() {
    let server = Server::new();
    server.0.note_version();
    let mut client = server.client(1);
    let version = |client: &mut Client| {
        let found = client.works(doc! { "find": "system.version", "$db": "admin" });
        text(&found, "cursor.firstBatch.0.version").map(str::to_owned)
    };
    assert_eq!(version(&mut client).as_deref(), Some("8.2"));
    let set = doc! { "setFeatureCompatibilityVersion": "8.0", "confirm": true, "$db": "admin" };
    client.works(set);
    assert_eq!(version(&mut client).as_deref(), Some("8.0"));
    let again = server.reopened();
    again.0.note_version();
    assert_eq!(version(&mut again.client(1)).as_deref(), Some("8.0"));
}

#[test]
fn query_settings_are_read_on_a_database() {
    let server = Server::new();
    let mut client = server.client(1);
    client.works(on_test(doc! { "insert": "t", "documents": [{}] }));
    let stage = doc! { "$querySettings": {} };
    let inside = doc! { "$facet": { "a": [&stage] } };
    let run = |target: Value<'_>, stage: &DocBuf| {
        on_test(doc! { "aggregate": target, "pipeline": [stage], "cursor": {} })
    };
    assert_eq!(code(&client.run(run(Value::String("t"), &stage))), 73);
    let joined = doc! { "$lookup": { "from": "t", "pipeline": [&stage], "as": "r" } };
    let united = doc! { "$unionWith": { "coll": "t", "pipeline": [&stage] } };
    for inner in [&inside, &joined, &united] {
        assert_eq!(code(&client.run(run(Value::String("t"), inner))), 73, "{inner:?}");
    }
    assert_eq!(code(&client.run(run(Value::Int32(1), &inside))), 40600);
    assert_eq!(code(&client.run(run(Value::Int32(1), &stage))), 0);
    let sessions = doc! { "$facet": { "a": [{ "$listLocalSessions": {} }] } };
    assert_eq!(code(&client.run(run(Value::String("t"), &sessions))), 73);
}

/// A null is no value for a field that has to be there.
#[test]
fn a_required_field_that_is_null_is_missing() {
    let server = Server::new();
    let mut client = server.client(1);
    client.works(on_test(doc! { "create": "t" }));
    let images = doc! { "enabled": Value::Null };
    for command in [
        doc! { "create": "u", "changeStreamPreAndPostImages": &images },
        doc! { "collMod": "t", "changeStreamPreAndPostImages": &images },
    ] {
        assert_eq!(code(&client.run(on_test(command))), 40414);
    }
}

#[test]
fn a_facet_that_holds_too_much_without_a_disk_is_a_document_too_large() {
    let server = Server::new();
    let mut client = server.client(1);
    let bytes = "internalQueryMaxBlockingSortMemoryUsageBytes";
    client.works(doc! { "setParameter": 1, bytes: 100_000, "$db": "admin" });
    let row = doc! { "s": "x".repeat(1000).as_str() };
    let rows: ArrayBuf = (0..200).map(|_| Value::from(&row)).collect();
    client.works(on_test(doc! { "insert": "t", "documents": &rows }));
    // A branch that keeps all documents takes the documents themselves.
    let facet = doc! { "$facet": { "all": [{ "$match": {} }] } };
    let run = |disk: bool| {
        on_test(doc! { "aggregate": "t", "pipeline": [&facet], "cursor": {}, "allowDiskUse": disk })
    };
    assert_eq!(code(&client.run(run(true))), 0);
    assert_eq!(code(&client.run(run(false))), 4031700);
}

/// Explain applies an update without writing it, and tells its error.
#[test]
fn explain_tells_the_error_of_an_update() {
    let server = Server::new();
    let mut client = server.client(1);
    client.works(on_test(
        doc! { "insert": "t", "documents": [{ "_id": 1, "a": "x" }, { "_id": 2, "a": 2 }] },
    ));
    let inc = doc! { "$inc": { "a": 1 } };
    let many = |filter: DocBuf| {
        let statement = doc! { "q": &filter, "u": &inc, "multi": true };
        doc! { "update": "t", "updates": [&statement] }
    };
    let one = |id: i32| doc! { "findAndModify": "t", "query": { "_id": id }, "update": &inc };
    let wrong = [many(doc! {}), many(doc! { "_id": 1 }), one(1)];
    for command in wrong {
        let shown =
            client.works(on_test(doc! { "explain": &command, "verbosity": "executionStats" }));
        assert_eq!(flag(&shown, "executionStats.executionSuccess"), Some(false), "{command:?}");
        assert_eq!(number(&shown, "executionStats.errorCode"), Some(14));
        let message = text(&shown, "executionStats.errorMessage").unwrap();
        assert!(
            message.starts_with("Cannot apply $inc to a value of non-numeric type"),
            "{message}"
        );
        let planned =
            client.works(on_test(doc! { "explain": &command, "verbosity": "queryPlanner" }));
        assert!(at(&planned, "executionStats").is_none());
    }
    for command in [many(doc! { "_id": 2 }), one(2), many(doc! { "_id": 3 })] {
        let shown =
            client.works(on_test(doc! { "explain": &command, "verbosity": "executionStats" }));
        assert_eq!(flag(&shown, "executionStats.executionSuccess"), Some(true), "{command:?}");
    }
    let found = client.works(on_test(doc! { "find": "t", "filter": { "_id": 2 } }));
    assert_eq!(number(&found, "cursor.firstBatch.0.a"), Some(2));
}

/// A validator knows the cluster time of the write, and each operation of a `bulkWrite` has its own.
#[test]
fn the_cluster_time_is_that_of_the_write() {
    let server = Server::new();
    let mut client = server.client(1);
    let known = doc! { "$expr": { "$lte": ["$at", "$$CLUSTER_TIME"] } };
    client.works(on_test(doc! { "create": "t", "validator": &known }));
    let insert = |seconds: u32| {
        let at = Timestamp { seconds, increment: 1 };
        on_test(doc! { "insert": "t", "documents": [{ "at": at }] })
    };
    assert_eq!(refusal(&client.run(insert(1))).0, 0);
    assert_eq!(refusal(&client.run(insert(u32::MAX))).0, 121);
    client.works(on_test(doc! { "insert": "u", "documents": [{ "_id": 0 }, { "_id": 1 }] }));
    let set = |id: i32| {
        doc! {
            "update": 0, "filter": { "_id": id }, "updateMods": [{ "$set": { "at": "$$CLUSTER_TIME" } }],
        }
    };
    let ops: ArrayBuf = [set(0), set(1)].iter().collect();
    client.works(doc! {
        "bulkWrite": 1, "ops": &ops, "nsInfo": [{ "ns": "test.u" }], "$db": "admin",
    });
    let found = client.works(on_test(doc! { "find": "u", "sort": { "_id": 1 } }));
    let at = |n: usize| match at(&found, &format!("cursor.firstBatch.{n}.at")) {
        Some(Value::Timestamp(at)) => at,
        other => panic!("{other:?}"),
    };
    assert!(at(0) < at(1));
}

#[test]
fn nulls_in_lists_of_documents_are_left_out() {
    let server = Server::new();
    let mut client = server.client(1);
    let insert = doc! { "insert": "t", "documents": [Value::Null, { "_id": 1 }, Value::Null] };
    assert_eq!(number(&client.works(on_test(insert)), "n"), Some(1));
    let change = doc! { "q": {}, "u": { "$set": { "a": 1 } } };
    let update = doc! { "update": "t", "updates": [Value::Null, &change] };
    assert_eq!(number(&client.works(on_test(update)), "nModified"), Some(1));
    let removal = doc! { "q": {}, "limit": 0 };
    let delete = doc! { "delete": "t", "deletes": [&removal, Value::Null] };
    assert_eq!(number(&client.works(on_test(delete)), "n"), Some(1));
    let index = doc! { "key": { "a": 1 }, "name": "a" };
    client.works(on_test(doc! { "createIndexes": "t", "indexes": [Value::Null, &index] }));
    // An empty list is refused, and so is another value.
    let none = doc! { "insert": "t", "documents": [Value::Null] };
    assert_eq!(code(&client.run(on_test(none))), 16);
    assert_eq!(code(&client.run(on_test(doc! { "insert": "t", "documents": [1] }))), 14);
}
