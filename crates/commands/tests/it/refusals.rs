//! Commands that MongoDB 8.2 refuses, with its codes, and some that it takes.

use super::transactions::{commit, within};
use super::{Server, at, code, number};
use quire_document::{ArrayBuf, Binary, DocBuf, Value, doc};

/// Runs each command, which must answer with its code; 0 for success.
fn answers(commands: Vec<(DocBuf, i32)>) {
    let server = Server::new();
    let mut client = server.client(1);
    client.works(
        doc! { "insert": "t", "documents": [{ "_id": 1, "a": 1 }, { "_id": 2 }], "$db": "d" },
    );
    client.works(doc! { "create": "v", "viewOn": "t", "pipeline": [], "$db": "d" });
    for (mut command, wanted) in commands {
        if !command.as_doc().contains("$db") {
            command.append("$db", "d");
        }
        let reply = client.run(command.clone());
        assert_eq!(code(&reply), wanted, "{command:?}: {reply:?}");
    }
}

#[test]
fn the_form_of_a_read_preference_is_checked_by_every_command() {
    let with = |preference: DocBuf| doc! { "ping": 1, "$readPreference": &preference };
    let mut commands = vec![
        (doc! { "ping": 1, "$readPreference": 5 }, 14),
        (with(doc! { "mode": "nowhere" }), 2),
        (with(doc! { "mode": 1 }), 14),
        (with(doc! { "mode": "primary", "tags": [{ "a": "b" }] }), 72),
        (with(doc! { "mode": "primary", "tags": [{}] }), 0),
        (with(doc! { "mode": "nearest", "tags": [1] }), 14),
        (with(doc! { "mode": "nearest", "maxStalenessSeconds": 20 }), 160),
        (with(doc! { "mode": "nearest", "maxStalenessSeconds": 90 }), 0),
    ];
    for mode in ["primary", "primaryPreferred", "secondary", "secondaryPreferred", "nearest"] {
        commands.push((with(doc! { "mode": mode }), 0));
        commands.push((doc! { "find": "t", "$readPreference": { "mode": mode } }, 0));
    }
    answers(commands);
}

#[test]
fn the_origin_of_a_write_concern_is_checked() {
    let with = |provenance: Value<'_>| {
        doc! { "insert": "t", "documents": [{}], "writeConcern": { "w": 1, "provenance": provenance } }
    };
    answers(vec![
        (with(Value::String("clientSupplied")), 0),
        (with(Value::String("somewhere")), 2),
        (with(Value::Int32(1)), 14),
    ]);
}

#[test]
fn names_and_indexes_of_the_server_are_refused() {
    let index = [doc! { "key": { "a": 1 }, "name": "a" }];
    let indexes: ArrayBuf = index.iter().collect();
    let create = |name: &str| doc! { "createIndexes": name, "indexes": &indexes };
    let mut of_config = create("transactions");
    of_config.append("$db", "config");
    let uuid = Value::Binary(Binary { subtype: 4, bytes: &[7; 16] });
    answers(vec![
        (doc! { "create": "a.system.b" }, 2),
        (doc! { "create": "a.systemic.b" }, 0),
        (doc! { "insert": "a.system.b", "documents": [{}] }, 2),
        (create("a.system.b"), 2),
        (create("system.views"), 73),
        (create("system.profile"), 73),
        (create("t"), 0),
        (of_config, 20),
        (doc! { "create": "w", "viewOn": "a$b", "pipeline": [] }, 73),
        (doc! { "find": uuid }, 26),
        (doc! { "count": uuid }, 26),
    ]);
}

#[test]
fn long_names_variables_of_the_clock_and_metadata_sent_twice() {
    let named = |bytes: usize| doc! { "create": "n".repeat(bytes - 2).as_str() };
    let hello = doc! { "hello": 1, "client": { "driver": { "name": "x", "version": "1" }, "os": { "type": "y" } } };
    let aggregate = |stage: DocBuf| {
        let stages: ArrayBuf = [stage].iter().collect();
        doc! { "aggregate": "t", "pipeline": &stages, "cursor": {} }
    };
    let slope = doc! { "$derivative": { "input": "$a", "unit": "month" }, "window": { "documents": [-1, 0] } };
    answers(vec![
        (named(255), 0),
        (named(256), 73),
        (doc! { "find": "t", "let": { "n": "$$NOW" } }, 51144),
        (doc! { "aggregate": "t", "pipeline": [], "cursor": {}, "let": { "n": "$$NOW" } }, 51144),
        (hello.clone(), 0),
        (hello, 186),
        (doc! { "find": "t", "filter": { "a": 1 }, "projection": { ".$": 1 } }, 40352),
        (
            aggregate(doc! { "$graphLookup": {
                "startWith": "$a", "connectFromField": "a", "connectToField": "b", "as": "x",
            } }),
            40105,
        ),
        (
            aggregate(
                doc! { "$densify": { "field": "a", "range": { "step": 0, "bounds": "full" } } },
            ),
            5733401,
        ),
        (
            aggregate(
                doc! { "$setWindowFields": { "sortBy": { "a": 1 }, "output": { "s": &slope } } },
            ),
            5490704,
        ),
    ]);
}

#[test]
fn options_of_a_find_that_a_view_does_not_have() {
    answers(vec![
        (doc! { "find": "v", "allowPartialResults": true }, 168),
        (doc! { "find": "v", "allowPartialResults": false }, 0),
        (doc! { "find": "v", "singleBatch": true }, 168),
        (doc! { "find": "v", "singleBatch": true, "limit": 1 }, 0),
        (doc! { "find": "t", "allowPartialResults": true, "singleBatch": true }, 0),
    ]);
}

#[test]
fn roles_that_contain_themselves_and_built_in_roles() {
    let own = doc! { "role": "r", "db": "d" };
    answers(vec![
        (doc! { "createRole": "r", "roles": [&own], "privileges": [] }, 49),
        (doc! { "createRole": "r", "roles": [], "privileges": [] }, 0),
        (doc! { "updateRole": "r", "roles": [&own] }, 49),
        (doc! { "updateRole": "read", "roles": [] }, 31),
        (doc! { "dropRole": "read" }, 49),
    ]);
}

#[test]
fn an_explained_write_has_its_variables() {
    let query = doc! { "$expr": { "$eq": ["$a", "$$n"] } };
    let update = doc! { "q": &query, "u": { "$set": { "b": 1 } } };
    let explained = |command: &DocBuf| (doc! { "explain": command }, 0);
    answers(vec![
        explained(&doc! { "update": "t", "updates": [&update], "let": { "n": 1 } }),
        explained(
            &doc! { "delete": "t", "deletes": [{ "q": &query, "limit": 1 }], "let": { "n": 1 } },
        ),
        explained(
            &doc! { "findAndModify": "t", "query": &query, "remove": true, "let": { "n": 1 } },
        ),
        (doc! { "explain": { "delete": "t", "deletes": [{ "q": &query, "limit": 1 }] } }, 17276),
    ]);
}

#[test]
fn a_data_size_ends_at_its_limits() {
    let server = Server::new();
    let mut client = server.client(1);
    let docs: Vec<DocBuf> = (0..10).map(|id| doc! { "_id": id }).collect();
    let docs: ArrayBuf = docs.iter().collect();
    client.works(doc! { "insert": "t", "documents": &docs, "$db": "d" });
    let bytes = doc! { "_id": 1 }.as_bytes().len() as i64;
    for (mut command, documents, reached) in [
        (doc! { "dataSize": "d.t" }, 10, false),
        (doc! { "dataSize": "d.t", "maxObjects": 3 }, 4, true),
        (doc! { "dataSize": "d.t", "maxObjects": 10 }, 10, false),
        (doc! { "dataSize": "d.t", "maxSize": (2 * bytes) }, 3, true),
        (doc! { "dataSize": "d.t", "maxSize": (2 * bytes), "estimate": true }, 3, true),
        (
            doc! { "dataSize": "d.t", "keyPattern": { "_id": 1 }, "min": { "_id": 5 }, "max": { "_id": 9 }, "maxObjects": 1 },
            2,
            true,
        ),
    ] {
        command.append("$db", "d");
        let reply = client.works(command.clone());
        assert_eq!(number(&reply, "numObjects"), Some(documents), "{command:?}");
        assert_eq!(number(&reply, "size"), Some(documents * bytes), "{command:?}");
        assert_eq!(at(&reply, "maxReached").is_some(), reached, "{command:?}");
    }
}

/// It went on with the documents of the renamed collection.
#[test]
fn a_cursor_over_a_renamed_collection_ends() {
    let server = Server::new();
    let mut client = server.client(1);
    let docs: Vec<DocBuf> = (0..10).map(|id| doc! { "_id": id }).collect();
    let docs: ArrayBuf = docs.iter().collect();
    client.works(doc! { "insert": "t", "documents": &docs, "$db": "d" });
    let found = client.works(doc! { "find": "t", "batchSize": 1, "$db": "d" });
    let id = number(&found, "cursor.id").unwrap();
    client.works(doc! { "renameCollection": "d.t", "to": "d.u", "$db": "admin" });
    let more = client.run(doc! { "getMore": id, "collection": "t", "$db": "d" });
    assert_eq!(code(&more), 175, "{more:?}");
}

#[test]
fn the_stable_api_has_one_spelling_of_each_command() {
    let remove =
        |name: &str| doc! { name: "t", "remove": true, "apiVersion": "1", "apiStrict": true };
    answers(vec![(remove("findandmodify"), 323), (remove("findAndModify"), 0)]);
}

/// The transaction was aborted.
#[test]
fn a_stage_that_does_not_exist_or_joins_nothing_leaves_the_transaction_open() {
    let server = Server::new();
    let mut client = server.client(1);
    let insert = doc! { "insert": "t", "documents": [{ "_id": 1 }], "$db": "d" };
    client.works(within(insert, (1, 1), true));
    for (stage, wanted) in [
        (doc! { "$nosuch": 1 }, 40324),
        (doc! { "$lookup": { "localField": "a", "foreignField": "a", "as": "x" } }, 9),
        (
            doc! { "$graphLookup": {
                "startWith": "$a", "connectFromField": "a", "connectToField": "a", "as": "x",
            } },
            40105,
        ),
    ] {
        let pipeline = [stage];
        let pipeline: ArrayBuf = pipeline.iter().collect();
        let command = doc! { "aggregate": "t", "pipeline": &pipeline, "cursor": {}, "$db": "d" };
        assert_eq!(code(&client.run(within(command, (1, 1), false))), wanted, "{pipeline:?}");
    }
    client.works(within(commit(), (1, 1), false));
    let found = client.works(doc! { "find": "t", "$db": "d" });
    assert!(at(&found, "cursor.firstBatch.0").is_some());
}

#[test]
fn collections_of_the_server_stay_out_of_transactions() {
    let server = Server::new();
    let mut client = server.client(1);
    client.works(doc! { "create": "v", "viewOn": "t", "pipeline": [], "$db": "d" });
    let index = [doc! { "key": { "a": 1 }, "name": "a" }];
    let indexes: ArrayBuf = index.iter().collect();
    let snapshot = |mut command: DocBuf| {
        command.append("readConcern", &doc! { "level": "snapshot" });
        command
    };
    for (number, (command, wanted)) in [
        (doc! { "find": "system.views" }, 263),
        (doc! { "create": "system.js" }, 263),
        (doc! { "createIndexes": "system.js", "indexes": &indexes }, 263),
        (snapshot(doc! { "create": "t" }), 72),
        (snapshot(doc! { "createIndexes": "t", "indexes": &indexes }), 72),
        (doc! { "create": "t" }, 0),
    ]
    .into_iter()
    .enumerate()
    {
        let mut command = within(command, (1, number as i64 + 1), true);
        command.append("$db", "d");
        let reply = client.run(command.clone());
        assert_eq!(code(&reply), wanted, "{command:?}: {reply:?}");
    }
}

#[test]
fn every_command_takes_a_statement_id() {
    answers(vec![
        (doc! { "ping": 1, "stmtId": 3 }, 0),
        (doc! { "find": "t", "stmtId": 3 }, 0),
        (doc! { "find": "t", "stmtId": "3" }, 14),
        (doc! { "insert": "t", "documents": [{}], "stmtId": 3 }, 0),
        (doc! { "insert": "t", "documents": [{}], "stmtId": 3, "stmtIds": [3] }, 72),
    ]);
}

/// Nothing was planned with the index, so its name was not looked up.
#[test]
fn a_hint_that_names_no_index_fails_where_nothing_can_match() {
    answers(vec![
        (doc! { "find": "t", "filter": { "a": { "$in": [] } }, "hint": "nosuch" }, 2),
        (doc! { "find": "t", "filter": { "$alwaysFalse": 1 }, "hint": { "z": 1 } }, 2),
        (doc! { "find": "t", "filter": { "$alwaysFalse": 1 }, "hint": "_id_" }, 0),
    ]);
}

#[test]
fn writes_and_pipelines_are_checked_before_they_are_explained() {
    let update = |change: Value<'_>| {
        doc! { "explain": { "update": "t", "updates": [{ "q": {}, "u": change }] } }
    };
    let wrong = doc! { "$nosuch": { "a": 1 } };
    let right = doc! { "$set": { "a": 1 } };
    answers(vec![
        (update(Value::Document(wrong.as_doc())), 9),
        (update(Value::Document(right.as_doc())), 0),
        (doc! { "explain": { "findAndModify": "t", "update": &wrong } }, 9),
        (
            doc! { "explain": {
                "aggregate": "t", "pipeline": [{ "$out": "o" }], "cursor": {}, "writeConcern": { "w": 1 },
            } },
            9,
        ),
        (doc! { "explain": { "aggregate": "t", "pipeline": [{ "$out": "o" }], "cursor": {} } }, 0),
    ]);
}

#[test]
fn the_strict_stable_api_lacks_statistics_in_views_and_the_scaler_of_windows() {
    let view = |section: &str| {
        doc! {
            "create": "stats", "viewOn": "t", "pipeline": [{ "$collStats": { section: {} } }],
            "apiVersion": "1", "apiStrict": true,
        }
    };
    let window = |function: &str| {
        let output = doc! { function: { "input": "$a" } };
        let output = match function {
            "$sum" => doc! { "$sum": "$a" },
            _ => output,
        };
        doc! {
            "aggregate": "t", "cursor": {}, "apiVersion": "1", "apiStrict": true,
            "pipeline": [{ "$setWindowFields": { "sortBy": { "a": 1 }, "output": { "z": &output } } }],
        }
    };
    answers(vec![
        (view("latencyStats"), 323),
        (view("count"), 0),
        (window("$minMaxScaler"), 323),
        (window("$sum"), 0),
    ]);
}

#[test]
fn the_level_of_the_log_is_a_number() {
    let set = |level: f64| doc! { "setParameter": 1, "logLevel": level, "$db": "admin" };
    answers(vec![(set(f64::NAN), 2), (set(0.0), 0)]);
}

#[test]
fn a_partial_filter_has_four_levels_and_is_the_same_under_its_collation() {
    let create = |name: &str, filter: &DocBuf| {
        let index = [doc! {
            "key": { "a": 1 }, "name": name, "partialFilterExpression": filter,
            "collation": { "locale": "en", "strength": 2 },
        }];
        let indexes: ArrayBuf = index.iter().collect();
        doc! { "createIndexes": "p", "indexes": &indexes }
    };
    let nested = |levels: usize| {
        let mut filter = doc! { "b": "x" };
        for _ in 0..levels {
            filter = doc! { "$and": [&filter, { "c": 1 }] };
        }
        filter
    };
    answers(vec![
        (create("a", &nested(5)), 67),
        (create("a", &nested(4)), 0),
        (create("b", &doc! { "b": "X" }), 0),
        (create("b", &doc! { "b": "x" }), 0),
        (create("b", &doc! { "b": "y" }), 86),
    ]);
}

/// The collection was created.
#[test]
fn an_insert_of_documents_that_cannot_be_stored_creates_nothing() {
    let server = Server::new();
    let mut client = server.client(1);
    let mut insert = |name: &str, ordered: bool| {
        client.works(doc! {
            "insert": name, "ordered": ordered, "$db": "d",
            "documents": [{ "_id": [1] }, { "_id": [2] }],
        })
    };
    for (name, ordered, errors) in [("one", true, 1), ("two", false, 2)] {
        let reply = insert(name, ordered);
        let found = at(&reply, "writeErrors").unwrap().as_array().unwrap();
        assert_eq!(found.count(), errors, "{reply:?}");
        assert_eq!(number(&reply, &format!("writeErrors.{}.code", errors - 1)), Some(53));
    }
    let mixed = doc! {
        "insert": "three", "documents": [{ "_id": [1] }, { "_id": 2 }], "ordered": false, "$db": "d",
    };
    assert_eq!(number(&client.works(mixed), "n"), Some(1));
    let listed = client.works(doc! { "listCollections": 1, "$db": "d" });
    let listed = at(&listed, "cursor.firstBatch").unwrap().as_array().unwrap();
    assert_eq!(listed.count(), 1, "{listed:?}");
}

#[test]
fn a_dropped_database_loses_its_profile_level() {
    let server = Server::new();
    let mut client = server.client(1);
    client.works(doc! { "profile": 2, "$db": "d" });
    client.works(doc! { "insert": "t", "documents": [{}], "$db": "d" });
    client.works(doc! { "dropDatabase": 1, "$db": "d" });
    let level = client.works(doc! { "profile": (-1), "$db": "d" });
    assert_eq!(number(&level, "was"), Some(0));
    let listed = client.works(doc! { "listCollections": 1, "$db": "d" });
    assert!(at(&listed, "cursor.firstBatch.0").is_none(), "{listed:?}");
}

#[test]
fn names_with_system_inside_are_no_target_of_a_rename() {
    answers(vec![
        (doc! { "renameCollection": "d.t", "to": "d.a.system.b", "$db": "admin" }, 2),
        (doc! { "renameCollection": "d.t", "to": "d.u", "$db": "admin" }, 0),
    ]);
}

/// The texts are those that MongoDB 8.2 is reported to have.
#[test]
fn errors_of_running_a_plan_name_the_command_and_the_namespace() {
    let server = Server::new();
    let mut client = server.client(1);
    let documents = doc! { "insert": "t", "documents": [{ "_id": 1, "a": "x" }], "$db": "d" };
    client.works(documents);
    let fails = doc! { "$divide": [1, { "$size": { "$ifNull": ["$none", []] } }] };
    let text = |reply: &DocBuf, path: &str| {
        let text = at(reply, path).and_then(|text| text.as_str());
        text.unwrap_or_default().to_owned()
    };
    let find = client.run(doc! { "find": "t", "filter": { "$expr": &fails }, "$db": "d" });
    assert_eq!(
        text(&find, "errmsg"),
        "Executor error during find command: d.t :: caused by :: can't $divide by zero"
    );
    let aggregate = doc! {
        "aggregate": "t", "pipeline": [{ "$project": { "x": &fails } }], "cursor": {}, "$db": "d",
    };
    assert_eq!(
        text(&client.run(aggregate), "errmsg"),
        "Executor error during aggregate command on namespace: d.t :: caused by :: can't $divide by zero"
    );
    let inc = doc! { "$inc": { "a": 1 } };
    let update = doc! { "update": "t", "updates": [{ "q": {}, "u": &inc }], "$db": "d" };
    let failed = text(&client.run(update), "writeErrors.0.errmsg");
    let prefix = "Plan executor error during update :: caused by :: Cannot apply $inc";
    assert!(failed.starts_with(prefix), "{failed}");
    // What is wrong with the statement itself, and not with a document, has no prefix.
    let unknown = doc! { "$nosuch": { "a": 1 } };
    let update = doc! { "update": "t", "updates": [{ "q": {}, "u": &unknown }], "$db": "d" };
    let failed = text(&client.run(update), "writeErrors.0.errmsg");
    assert!(failed.starts_with("Unknown modifier"), "{failed}");
    let hinted = doc! {
        "update": "t", "updates": [{ "q": { "a": 1 }, "u": &inc, "hint": "nosuch" }], "$db": "d",
    };
    let failed = text(&client.run(hinted), "writeErrors.0.errmsg");
    assert!(failed.starts_with("error processing query"), "{failed}");
}

/// The errors of a write without acknowledgement were reported.
#[test]
fn a_write_without_acknowledgement_reports_nothing() {
    let server = Server::new();
    let mut client = server.client(1);
    client.works(doc! { "insert": "t", "documents": [{ "_id": 1 }], "$db": "d" });
    let all = doc! { "u": { "a": 2 }, "q": {}, "multi": true };
    for command in [
        doc! { "insert": "t", "documents": [{ "_id": 1 }, { "_id": 2 }], "ordered": false },
        doc! { "update": "t", "updates": [&all] },
        doc! { "delete": "t", "deletes": [{ "q": { "_id": 2 }, "limit": 1 }] },
    ] {
        for (journaled, reports) in [(false, false), (true, true)] {
            let mut command = command.clone();
            command.append("writeConcern", &doc! { "w": 0, "j": journaled });
            command.append("$db", "d");
            let reply = client.works(command.clone());
            let told = at(&reply, "writeErrors").is_some() || at(&reply, "nModified").is_some();
            let fails = !command.as_doc().contains("delete");
            assert_eq!(told, reports && fails, "{command:?}: {reply:?}");
            if !reports {
                assert_eq!(number(&reply, "n"), Some(0), "{command:?}: {reply:?}");
            }
        }
    }
    // The writes were done.
    assert_eq!(number(&client.works(doc! { "count": "t", "$db": "d" }), "n"), Some(1));
}

/// A constant is folded after its stage was parsed, so that the error does not name the stage.
#[test]
fn the_error_of_a_constant_is_one_of_optimizing() {
    let server = Server::new();
    let mut client = server.client(1);
    let mut text = |stage: DocBuf| {
        let stages = [stage];
        let pipeline: ArrayBuf = stages.iter().collect();
        let reply =
            client.run(doc! { "aggregate": "t", "pipeline": &pipeline, "cursor": {}, "$db": "d" });
        at(&reply, "errmsg").and_then(|text| text.as_str()).unwrap_or_default().to_owned()
    };
    let folded = "Failed to optimize pipeline :: caused by :: can't $divide by zero";
    assert_eq!(text(doc! { "$project": { "x": { "$divide": [1, 0] } } }), folded);
    assert_eq!(text(doc! { "$addFields": { "x": { "$divide": [1, 0] } } }), folded);
    assert_eq!(text(doc! { "$match": { "$expr": { "$divide": [1, 0] } } }), folded);
    assert_eq!(
        text(doc! { "$facet": { "f": [{ "$project": { "x": { "$divide": [1, 0] } } }] } }),
        folded
    );
    let matches = doc! { "$regexMatch": { "input": "$a", "regex": "(" } };
    let pattern = text(doc! { "$project": { "x": &matches } });
    let wanted = "Failed to optimize pipeline :: caused by :: Invalid Regex in $regexMatch: ";
    assert!(pattern.starts_with(wanted), "{pattern}");
    let parsed = text(doc! { "$project": { "x": { "$divide": [1] } } });
    assert!(parsed.starts_with("Invalid $project :: caused by :: "), "{parsed}");
}

#[test]
fn updates_with_pipelines_and_array_filters_are_counted() {
    let server = Server::new();
    let mut client = server.client(1);
    let pipeline = doc! { "q": {}, "u": [{ "$set": { "a": 1 } }] };
    let filtered = doc! {
        "q": {}, "u": { "$set": { "b.$[x]": 1 } }, "arrayFilters": [{ "x": 1 }],
    };
    client.works(doc! { "update": "t", "updates": [&pipeline, &filtered, &filtered], "$db": "d" });
    client.works(doc! { "findAndModify": "t", "update": [{ "$set": { "a": 1 } }], "$db": "d" });
    let status = client.works(doc! { "serverStatus": 1, "$db": "admin" });
    let counted = |name: &str| number(&status, &format!("metrics.commands.{name}"));
    assert_eq!(counted("update.pipeline"), Some(1));
    assert_eq!(counted("update.arrayFilters"), Some(2));
    assert_eq!(counted("findAndModify.pipeline"), Some(1));
    assert_eq!(counted("findAndModify.arrayFilters"), Some(0));
}
