//! The profiler, slow-query lines, and the size limit of `system.profile`.

use crate::{Client, Lines, Server, at, code, number, text};
use quire_document::{DocBuf, Value, doc};

/// Returns the entries of `test.system.profile`, oldest first.
fn entries(client: &mut Client) -> Vec<DocBuf> {
    let found = client.works(doc! { "find": "system.profile", "batchSize": 10_000, "$db": "test" });
    let batch = at(&found, "cursor.firstBatch").unwrap().as_array().unwrap();
    batch.iter().map(|entry| entry.as_document().unwrap().to_owned()).collect()
}

fn ops(entries: &[DocBuf]) -> Vec<&str> {
    entries.iter().map(|entry| text(entry, "op").unwrap()).collect()
}

#[test]
fn level_two_records_each_operation_with_its_figures() {
    let server = Server::new();
    let mut client = server.client(1);
    let insert = doc! { "insert": "c", "documents": [{ "_id": 1, "a": 1 }, { "_id": 2, "a": 2 }, { "_id": 3, "a": 2 }], "$db": "test" };
    client.works(doc! { "profile": 2, "$db": "test" });
    client.works(insert);
    client.works(doc! { "find": "c", "filter": { "a": 2 }, "$db": "test" });
    let updates = doc! {
        "update": "c",
        "updates": [
            { "q": { "a": 2 }, "u": { "$set": { "b": 1 } }, "multi": true },
            { "q": { "_id": 9 }, "u": { "$set": { "b": 1 } }, "upsert": true }
        ],
        "$db": "test"
    };
    client.works(updates);
    client.works(
        doc! { "delete": "c", "deletes": [{ "q": { "_id": 3 }, "limit": 1 }], "$db": "test" },
    );
    let first =
        client.works(doc! { "find": "c", "comment": "first", "batchSize": 1, "$db": "test" });
    let id = at(&first, "cursor.id").unwrap();
    client.works(doc! { "getMore": id, "collection": "c", "$db": "test" });
    client.works(doc! { "distinct": "c", "key": "a", "$db": "test" });
    client.run(doc! { "find": "c", "filter": { "$bogus": 1 }, "$db": "test" });
    client
        .run(doc! { "aggregate": "c", "pipeline": [{ "$bogus": 1 }], "cursor": {}, "$db": "test" });
    client.works(doc! { "explain": { "count": "c", "query": { "a": 1 } }, "$db": "test" });
    client.works(doc! { "aggregate": "c", "pipeline": [], "explain": true, "$db": "test" });
    client.works(doc! { "profile": 0, "$db": "test" });
    client.works(doc! { "find": "c", "$db": "test" });
    let entries = entries(&mut client);
    let expected = [
        "insert", "query", "update", "update", "remove", "query", "getmore", "command", "query",
        "command", "command",
    ];
    assert_eq!(ops(&entries), expected);
    assert_eq!(text(&entries[9], "command.explain.count"), Some("c"));
    assert_eq!(text(&entries[10], "command.aggregate"), Some("c"));
    assert!(entries.iter().all(|entry| text(entry, "ns") == Some("test.c")));
    assert_eq!(number(&entries[0], "ninserted"), Some(3));
    let figures = |at: usize, names: &[&str]| -> Vec<Option<i64>> {
        names.iter().map(|name| number(&entries[at], name)).collect()
    };
    let examined = ["keysExamined", "docsExamined", "nreturned"];
    assert_eq!(figures(1, &examined), [Some(0), Some(3), Some(2)]);
    assert_eq!(text(&entries[1], "planSummary"), Some("COLLSCAN"));
    assert_eq!(figures(2, &["nMatched", "nModified", "docsExamined"]), [Some(2), Some(2), Some(3)]);
    assert_eq!(number(&entries[2], "command.q.a"), Some(2));
    assert_eq!(figures(3, &["nMatched", "nUpserted"]), [Some(0), Some(1)]);
    assert_eq!(
        figures(4, &["ndeleted", "keysExamined", "docsExamined"]),
        [Some(1), Some(1), Some(1)]
    );
    assert_eq!(text(&entries[4], "planSummary"), Some("EXPRESS_IXSCAN { _id: 1 },EXPRESS_DELETE"));
    assert!(at(&entries[5], "cursorExhausted").is_none() && at(&entries[5], "cursorid").is_some());
    assert_eq!(number(&entries[6], "originatingCommand.batchSize"), Some(1));
    assert_eq!(text(&entries[6], "command.comment"), Some("first"));
    assert_eq!(number(&entries[6], "nreturned"), Some(2));
    assert!(matches!(at(&entries[6], "cursorExhausted"), Some(Value::Bool(true))));
    assert_eq!(
        (number(&entries[8], "errCode"), text(&entries[8], "errName")),
        (Some(2), Some("BadValue"))
    );
}

#[test]
fn settings_are_returned_and_kept() {
    let server = Server::new();
    let mut client = server.client(1);
    let mut profile = |command: DocBuf| {
        let reply = client.run(command);
        let settings = (number(&reply, "was"), number(&reply, "slowms"));
        (code(&reply), settings, at(&reply, "filter").is_some(), at(&reply, "note").is_some())
    };
    let set = doc! { "profile": 1, "slowms": -5, "sampleRate": 0.5, "filter": { "op": "query" }, "$db": "test" };
    assert_eq!(profile(set), (0, (Some(0), Some(100)), false, true));
    let read = || doc! { "profile": -1, "$db": "test" };
    assert_eq!(profile(read()), (0, (Some(1), Some(-5)), true, true));
    assert_eq!(
        profile(doc! { "profile": -1, "$db": "other" }),
        (0, (Some(0), Some(-5)), false, false)
    );
    let unset = doc! { "profile": 7, "filter": "unset", "$db": "test" };
    assert_eq!(profile(unset), (0, (Some(1), Some(-5)), true, true));
    assert_eq!(profile(read()), (0, (Some(1), Some(-5)), false, false));
    for (bad, expected) in [
        (doc! { "profile": "x", "$db": "test" }, 14),
        (doc! { "profile": Value::Null, "$db": "test" }, 40414),
        (doc! { "profile": 0, "sampleRate": 1.5, "$db": "test" }, 2),
        (doc! { "profile": 0, "filter": "none", "$db": "test" }, 2),
        (doc! { "profile": 0, "bogus": 1, "$db": "test" }, 40415),
    ] {
        assert_eq!(profile(bad).0, expected);
    }
}

#[test]
fn the_collection_of_entries_stays_small_and_is_not_for_others_to_write() {
    let server = Server::new();
    let mut client = server.client(1);
    client.works(doc! { "profile": 2, "$db": "test" });
    assert_eq!(code(&client.run(doc! { "drop": "system.profile", "$db": "test" })), 20);
    let write = doc! { "insert": "system.profile", "documents": [{ "a": 1 }], "$db": "test" };
    assert_eq!(code(&client.run(write)), 73);
    let comment = "x".repeat(900);
    for _ in 0..1500 {
        client.works(doc! { "find": "c", "comment": comment.as_str(), "$db": "test" });
    }
    client.works(doc! { "profile": 0, "$db": "test" });
    let stats = client.works(doc! { "collStats": "system.profile", "$db": "test" });
    let size = number(&stats, "size").unwrap();
    assert!((700_000..=1_050_000).contains(&size), "{size}");
    // The newest entries are kept.
    let newest = entries(&mut client).pop().unwrap();
    assert_eq!(text(&newest, "command.find"), Some("c"));
    client.works(doc! { "drop": "system.profile", "$db": "test" });
}

#[test]
fn slow_operations_are_logged_with_the_fields_of_mongod() {
    let lines = Lines::default();
    let server = Server::logging(&lines);
    let mut client = server.client(7);
    client.works(doc! { "insert": "c", "documents": [{ "_id": 1 }, { "_id": 2 }], "$db": "test" });
    assert!(lines.slow().is_empty());
    client.works(doc! { "profile": 0, "slowms": -1, "$db": "admin" });
    client.works(doc! { "find": "c", "filter": { "x": 1 }, "$db": "test" });
    client.works(doc! { "update": "c", "updates": [{ "q": { "_id": 1 }, "u": { "$set": { "x": 1 } } }], "$db": "test" });
    client.works(doc! { "hello": 1, "$db": "admin" });
    client.works(doc! { "profile": 0, "slowms": 100, "$db": "admin" });
    let slow = lines.slow();
    let kinds: Vec<_> = slow.iter().map(|line| (line.0, text(&line.1, "type").unwrap())).collect();
    // `profile` itself, the find, the statement and its command.
    let expected = [
        ("COMMAND", "command"),
        ("COMMAND", "command"),
        ("WRITE", "update"),
        ("COMMAND", "command"),
    ];
    assert_eq!(kinds, expected);
    let find = &slow[1].1;
    assert_eq!((text(find, "ns"), text(find, "planSummary")), (Some("test.c"), Some("COLLSCAN")));
    assert_eq!(text(find, "command.find"), Some("c"));
    let figures = ["keysExamined", "docsExamined", "nreturned"].map(|name| number(find, name));
    assert_eq!(figures, [Some(0), Some(2), Some(0)]);
    assert!(number(find, "durationMillis").is_some() && number(find, "reslen").unwrap() > 50);
    assert_eq!(number(&slow[2].1, "nModified"), Some(1));
}

/// Each database name with a filter took memory that was never freed.
#[test]
fn settings_of_very_many_databases_are_refused() {
    let server = Server::new();
    let mut client = server.client(1);
    let set = |number: i32, filter: &DocBuf| {
        doc! { "profile": 0, "filter": filter, "$db": format!("db{number}").as_str() }
    };
    let filter = doc! { "millis": { "$gt": 5 } };
    (0..1000).for_each(|number| drop(client.works(set(number, &filter))));
    assert_eq!(code(&client.run(set(1000, &filter))), 146);
    // A database with settings may change them, and one that removes them makes room.
    client.works(set(7, &doc! { "millis": { "$gt": 6 } }));
    client.works(doc! { "profile": 0, "filter": "unset", "$db": "db7" });
    client.works(set(1000, &filter));
}

/// Lines and entries contained names and errors of megabytes completely.
#[test]
fn long_names_and_errors_are_shortened() {
    let lines = Lines::default();
    let server = Server::logging(&lines);
    let mut client = server.client(1);
    client.works(doc! { "profile": 2, "slowms": 0, "$db": "test" });
    let long = format!("${}", "x".repeat(100_000));
    client.run(doc! { "find": "c", "filter": { "v": { (&*long): 1 } }, "$db": "test" });
    client.run(doc! { "find": "c", (&*long): 1, "$db": "test" });
    let mut many = doc! { "find": "c" };
    many.extend(|writer| {
        for at in 0..10_000 {
            writer.append(&format!("field{at}"), at);
        }
    });
    many.append("$db", "test");
    client.run(many);
    client.run(doc! { "find": (&*long), "filter": {}, "$db": "test" });
    client.run(doc! { "find": "c", "comment": (&*long), "$db": "test" });
    let told = lines.slow();
    assert!(told.len() >= 5, "{}", told.len());
    let longest = told.iter().map(|(_, attributes)| attributes.as_bytes().len()).max();
    assert!(longest.unwrap() < 10_000, "{longest:?}");
    let longest = entries(&mut client).iter().map(|entry| entry.as_bytes().len()).max();
    assert!(longest.unwrap() < 10_000, "{longest:?}");
}

#[test]
fn a_long_command_is_recorded_by_its_beginning_and_its_comment() {
    let server = Server::new();
    let mut client = server.client(1);
    client.works(doc! { "profile": 2, "$db": "test" });
    for bytes in [10_000, 60_000] {
        let long = "x".repeat(bytes);
        let filter = doc! { "a": long.as_str() };
        client.works(doc! { "find": "c", "filter": &filter, "comment": "why", "$db": "test" });
    }
    let entries = entries(&mut client);
    assert_eq!(text(&entries[0], "command.filter.a").map(str::len), Some(10_000));
    let begin = text(&entries[1], "command.$truncated").unwrap();
    assert!(begin.starts_with("{ find: \"c\"") && begin.len() < 5000, "{begin}");
    assert_eq!(text(&entries[1], "command.comment"), Some("why"));
    assert!(at(&entries[1], "command.filter").is_none());
}

#[test]
fn a_list_of_collections_is_recorded_once_and_a_dropped_database_is_not_made_again() {
    let server = Server::new();
    server.0.set_profile_defaults(2, 1.0);
    let mut client = server.client(1);
    for name in ["a", "b", "c"] {
        client.works(doc! { "create": name, "$db": "test" });
    }
    let listed =
        client.works(doc! { "listCollections": 1, "cursor": { "batchSize": 1 }, "$db": "test" });
    let id = at(&listed, "cursor.id").unwrap();
    let more = doc! { "getMore": id, "collection": "$cmd.listCollections", "$db": "test" };
    client.works(more);
    let entries = entries(&mut client);
    assert!(!ops(&entries).contains(&"getmore"), "{entries:?}");
    client.works(doc! { "dropDatabase": 1, "$db": "test" });
    client.works(doc! { "find": "a", "$db": "test" });
    let found = client.works(doc! { "listCollections": 1, "$db": "test" });
    assert!(at(&found, "cursor.firstBatch.0").is_none(), "{found:?}");
}
