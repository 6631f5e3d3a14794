//! The effects of server parameters.

use crate::{Lines, Server, at, code, number, text};
use quire_document::{DocBuf, Value, doc};

fn set(parameter: DocBuf) -> DocBuf {
    let mut command = doc! { "setParameter": 1 };
    command.extend(|writer| {
        writer.append_all(parameter.as_doc());
    });
    command.append("$db", "admin");
    command
}

#[test]
fn from_level_1_on_every_operation_is_logged() {
    let lines = Lines::default();
    let server = Server::logging(&lines);
    let mut client = server.client(1);
    let update = || doc! { "q": { "_id": 1 }, "u": { "$set": { "a": 1 } } };
    let run = |client: &mut crate::Client| {
        let before = lines.slow().len();
        client.works(doc! { "update": "c", "updates": [&update()], "$db": "test" });
        let new = lines.slow().split_off(before);
        new.into_iter().map(|(component, _)| component).collect::<Vec<_>>()
    };
    assert!(run(&mut client).is_empty());
    client.works(set(doc! { "logComponentVerbosity": { "write": 1 } }));
    assert_eq!(run(&mut client), ["WRITE"]);
    client.works(set(doc! { "logLevel": 1 }));
    assert_eq!(run(&mut client), ["WRITE", "COMMAND"]);
    client.works(set(doc! { "logComponentVerbosity": { "write": { "verbosity": 0 } } }));
    assert_eq!(run(&mut client), ["COMMAND"]);
    client.works(set(doc! { "logComponentVerbosity": { "verbosity": 0 } }));
    assert!(run(&mut client).is_empty());
    let levels = client.works(doc! {
        "getParameter": 1, "logLevel": 1, "logComponentVerbosity": 1, "$db": "admin",
    });
    assert_eq!(number(&levels, "logLevel"), Some(0));
    assert_eq!(number(&levels, "logComponentVerbosity.write.verbosity"), Some(0));
}

#[test]
fn operations_are_named_after_the_collections_they_work_on() {
    let lines = Lines::default();
    let server = Server::logging(&lines);
    let mut client = server.client(1);
    client.works(doc! { "insert": "c", "documents": [{ "_id": 1 }], "$db": "test" });
    client.works(set(doc! { "logLevel": 1 }));
    client.works(doc! { "count": "c", "$db": "test" });
    client.works(doc! { "validate": "c", "$db": "test" });
    client.works(doc! { "dataSize": "test.c", "$db": "test" });
    client.works(doc! { "dbStats": 1, "$db": "test" });
    let mut names: Vec<String> =
        lines.slow().iter().map(|(_, line)| text(line, "ns").unwrap().to_owned()).collect();
    assert_eq!(names.split_off(names.len() - 4), ["test.c", "test.c", "test.c", "test.$cmd"]);
}

#[test]
fn hello_shows_the_descriptor() {
    let mut client = Server::new().client(1);
    let hello = || doc! { "hello": 1, "$db": "admin" };
    assert!(at(&client.works(hello()), "automationServiceDescriptor").is_none());
    client.works(set(doc! { "automationServiceDescriptor": "a manager" }));
    assert_eq!(text(&client.works(hello()), "automationServiceDescriptor"), Some("a manager"));
    let long = "x".repeat(65);
    assert_eq!(code(&client.run(set(doc! { "automationServiceDescriptor": long.as_str() }))), 15);
    assert_eq!(code(&client.run(set(doc! { "automationServiceDescriptor": 1 }))), 14);
}

#[test]
fn stages_beyond_their_memory_spill_only_if_allowed() {
    let mut client = Server::new().client(1);
    let documents: Vec<_> =
        (0..200).map(|id| doc! { "_id": id, "s": "x".repeat(100).as_str() }).collect();
    let documents: quire_document::ArrayBuf = documents.iter().collect();
    client.works(doc! { "insert": "c", "documents": &documents, "$db": "test" });
    client.works(set(doc! { "internalQueryMaxBlockingSortMemoryUsageBytes": 4096 }));
    let find = || doc! { "find": "c", "sort": { "s": 1 }, "$db": "test" };
    let allowed = || doc! { "find": "c", "sort": { "s": 1 }, "allowDiskUse": true, "$db": "test" };
    client.works(find());
    client.works(set(doc! { "allowDiskUseByDefault": false }));
    assert_eq!(code(&client.run(find())), 292);
    client.works(allowed());
}

#[test]
fn groups_have_a_limit_of_their_own() {
    let mut client = Server::new().client(1);
    let documents: Vec<_> = (0..200).map(|id| doc! { "_id": id }).collect();
    let documents: quire_document::ArrayBuf = documents.iter().collect();
    client.works(doc! { "insert": "c", "documents": &documents, "$db": "test" });
    let group = |disk: bool| {
        doc! {
            "aggregate": "c", "pipeline": [{ "$group": { "_id": "$_id", "n": { "$sum": 1 } } }],
            "cursor": {}, "allowDiskUse": disk, "$db": "test",
        }
    };
    // The limit of a sort does not apply to a group.
    client.works(set(doc! { "internalQueryMaxBlockingSortMemoryUsageBytes": 4096 }));
    client.works(group(false));
    client.works(set(doc! { "internalDocumentSourceGroupMaxMemoryBytes": 4096 }));
    assert_eq!(code(&client.run(group(false))), 292);
    client.works(group(true));
    client.works(set(doc! { "internalDocumentSourceGroupMaxMemoryBytes": 104_857_600 }));
    client.works(group(false));
}

#[test]
fn time_limits_end_at_once_or_never_where_a_test_says_so() {
    let mut client = Server::new().client(1);
    let point =
        |name: &str, mode: &str| doc! { "configureFailPoint": name, "mode": mode, "$db": "admin" };
    let limited = || doc! { "count": "c", "maxTimeMS": 100_000, "$db": "test" };
    client.works(point("maxTimeAlwaysTimeOut", "alwaysOn"));
    assert_eq!(code(&client.run(limited())), 50);
    client.works(doc! { "count": "c", "$db": "test" });
    client.works(point("maxTimeAlwaysTimeOut", "off"));
    client.works(limited());
    let sleepy = || {
        doc! {
            "configureFailPoint": "failCommand", "mode": "alwaysOn",
            "data": { "failCommands": ["count"], "blockConnection": true, "blockTimeMS": 30 },
            "$db": "admin",
        }
    };
    client.works(sleepy());
    let short = || doc! { "count": "c", "maxTimeMS": 10, "$db": "test" };
    assert_eq!(code(&client.run(short())), 50);
}

#[test]
fn an_update_pipeline_of_no_stages_fails_its_command() {
    let mut client = Server::new().client(1);
    client.works(doc! { "insert": "c", "documents": [{ "_id": 1 }, { "_id": 2 }], "$db": "test" });
    let update = |pipeline: DocBuf| {
        doc! {
            "update": "c",
            "updates": [{ "q": { "_id": 1 }, "u": { "$set": { "a": 1 } } }, { "q": {}, "u": [&pipeline] }],
            "$db": "test",
        }
    };
    assert_eq!(code(&client.run(update(doc! { "$nothing": 1 }))), 40324);
    assert_eq!(code(&client.run(update(doc! { "$set": { "a": 1 }, "$unset": "b" }))), 40323);
    let untouched = client.works(doc! { "count": "c", "query": { "a": 1 }, "$db": "test" });
    assert_eq!(number(&untouched, "n"), Some(0), "the first statement was not run either");
    let known = client.works(update(doc! { "$match": {} }));
    let errors = at(&known, "writeErrors").and_then(|errors| errors.as_array()).unwrap();
    assert_eq!((number(&known, "n"), errors.count()), (Some(1), 1));
}

#[test]
fn search_commands_say_that_there_is_no_search() {
    let mut client = Server::new().client(1);
    for command in
        ["createSearchIndexes", "dropSearchIndex", "listSearchIndexes", "updateSearchIndex"]
    {
        assert_eq!(code(&client.run(doc! { command: "c", "$db": "test" })), 31082, "{command}");
    }
    let listing = doc! {
        "aggregate": "c", "pipeline": [{ "$listSearchIndexes": {} }], "cursor": {}, "$db": "test",
    };
    let reply = client.run(listing);
    assert_eq!(code(&reply), 31082);
    assert!(matches!(at(&reply, "errmsg"), Some(Value::String(text)) if text.contains("Atlas")));
}

#[test]
fn idle_cursors_are_closed_when_it_is_time_to_look_for_them() {
    let server = Server::new();
    let mut client = server.client(1);
    client.works(doc! { "insert": "c", "documents": [{ "_id": 1 }, { "_id": 2 }], "$db": "test" });
    client.works(set(doc! { "clientCursorMonitorFrequencySecs": 3600 }));
    client.works(set(doc! { "cursorTimeoutMillis": 1 }));
    client.works(set(doc! { "ttlMonitorSleepSecs": 1 }));
    client.works(doc! { "find": "c", "batchSize": 1, "$db": "test" });
    let jobs = server.0.start_jobs().unwrap();
    let mut wait_until = |done: &dyn Fn(&DocBuf) -> bool| loop {
        let status = client.works(doc! { "serverStatus": 1, "$db": "admin" });
        if done(&status) {
            return number(&status, "metrics.cursor.timedOut");
        }
        std::thread::park_timeout(std::time::Duration::from_millis(5));
    };
    // Other jobs have run twice; meanwhile idle cursors could have been closed.
    let kept = wait_until(&|status| number(status, "metrics.ttl.passes") >= Some(2));
    assert_eq!(kept, Some(0));
    let mut other = server.client(2);
    other.works(set(doc! { "clientCursorMonitorFrequencySecs": 1 }));
    wait_until(&|status| number(status, "metrics.cursor.timedOut") == Some(1));
    drop(jobs);
}

#[test]
fn with_notablescan_no_command_tests_a_whole_collection() {
    let server = Server::new();
    let mut client = server.client(1);
    let document = doc! { "_id": 1, "a": 1, "b": 1 };
    client.works(doc! { "insert": "c", "documents": [&document], "$db": "test" });
    let index = doc! { "key": { "a": 1, "b": 1 }, "name": "a_b" };
    client.works(doc! { "createIndexes": "c", "indexes": [&index], "$db": "test" });
    client.works(set(doc! { "notablescan": true }));
    let commands = |filter: &DocBuf| {
        let update = doc! { "q": filter, "u": { "$set": { "c": 1 } } };
        let delete = doc! { "q": filter, "limit": 1 };
        let find = doc! { "find": "c", "filter": filter };
        [
            find.clone(),
            doc! { "count": "c", "query": filter },
            doc! { "distinct": "c", "key": "c", "query": filter },
            doc! { "aggregate": "c", "pipeline": [{ "$match": filter }], "cursor": {} },
            doc! { "explain": &find },
            doc! { "findAndModify": "c", "query": filter, "update": { "$set": { "c": 1 } } },
            doc! { "update": "c", "updates": [&update] },
            doc! { "delete": "c", "deletes": [&delete] },
        ]
    };
    for mut command in commands(&doc! { "b": 1 }) {
        command.append("$db", "test");
        let reply = client.run(command.clone());
        let refused = code(&reply) == 291 || number(&reply, "writeErrors.0.code") == Some(291);
        assert!(refused, "{command:?} {reply:?}");
    }
    for mut command in commands(&doc! { "a": 1 }) {
        command.append("$db", "test");
        client.works(command);
    }
    client.works(doc! { "find": "c", "$db": "test" });
}
