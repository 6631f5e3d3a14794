//! Requests at the limits: fractions, empty options, endless paths, metadata without a source.

use crate::{Client, Server, at, code, number};
use quire_document::{ArrayBuf, DocBuf, Value, doc};

fn three(server: &Server) -> Client {
    let mut client = server.client(1);
    let documents: ArrayBuf =
        [doc! { "_id": 1 }, doc! { "_id": 2 }, doc! { "_id": 3 }].iter().collect();
    client.works(doc! { "insert": "t", "documents": &documents, "$db": "test" });
    client
}

fn count(client: &mut Client) -> Option<i64> {
    number(&client.works(doc! { "count": "t", "$db": "test" }), "n")
}

fn update(statement: DocBuf) -> DocBuf {
    doc! { "update": "t", "updates": [&statement], "$db": "test" }
}

#[test]
fn a_fraction_is_no_limit_of_a_delete() {
    let server = Server::new();
    let mut client = three(&server);
    for limit in [0.5, 1.5, -0.1, f64::NAN] {
        let statement = doc! { "q": {}, "limit": limit };
        let reply = client.run(doc! { "delete": "t", "deletes": [&statement], "$db": "test" });
        assert_eq!(code(&reply), 9, "{limit}");
    }
    assert_eq!(count(&mut client), Some(3));
}

#[test]
fn array_filters_do_not_go_with_remove_even_if_empty() {
    let server = Server::new();
    let mut client = three(&server);
    let remove = doc! { "findAndModify": "t", "remove": true, "arrayFilters": [], "$db": "test" };
    assert_eq!(code(&client.run(remove)), 9);
    assert_eq!(count(&mut client), Some(3));
}

#[test]
fn paths_of_very_many_parts_are_refused() {
    let server = Server::new();
    let mut client = three(&server);
    for parts in [201, 100_000] {
        let path = vec!["a"; parts].join(".");
        let path = path.as_str();
        for change in [doc! { "$set": { (path): 1 } }, doc! { "$unset": { (path): 1 } }] {
            let statement = doc! { "q": { "_id": 1 }, "u": &change };
            let reply = client.run(update(statement));
            assert_eq!(
                at(&reply, "writeErrors.0.code").and_then(|code| code.exact_i64()),
                Some(15)
            );
        }
        let upsert = doc! { "q": { (path): 1 }, "u": { "$set": { "b": 1 } }, "upsert": true };
        let reply = client.run(update(upsert));
        assert_eq!(at(&reply, "writeErrors.0.code").and_then(|code| code.exact_i64()), Some(15));
        let index = doc! { "key": { (path): 1 }, "name": "deep" };
        let reply = client.run(doc! { "createIndexes": "t", "indexes": [&index], "$db": "test" });
        assert_eq!(code(&reply), 67);
    }
}

#[test]
fn a_natural_order_is_one_or_minus_one() {
    let server = Server::new();
    let mut client = three(&server);
    for way in [0.0, 2.0, 1.1, f64::NAN] {
        let sort = doc! { "find": "t", "sort": { "$natural": way }, "$db": "test" };
        assert_eq!(code(&client.run(sort)), 2, "{way}");
        let hint = doc! { "find": "t", "hint": { "$natural": way }, "$db": "test" };
        assert_eq!(code(&client.run(hint)), 2, "{way}");
    }
    let back = client.works(doc! { "find": "t", "sort": { "$natural": (-1.0) }, "$db": "test" });
    assert_eq!(number(&back, "cursor.firstBatch.0._id"), Some(3));
}

#[test]
fn a_write_to_one_id_ignores_its_sort() {
    let server = Server::new();
    let mut client = three(&server);
    let remove = |query: DocBuf| {
        let sort = doc! { "key": "value" };
        doc! { "findAndModify": "t", "query": &query, "sort": &sort, "remove": true, "$db": "test" }
    };
    assert_eq!(code(&client.run(remove(doc! { "_id": { "$gt": 0 } }))), 15974);
    client.works(remove(doc! { "_id": 1 }));
    assert_eq!(count(&mut client), Some(2));
}

#[test]
fn sort_keys_are_returned_with_index_keys_and_need_a_sort() {
    let server = Server::new();
    let mut client = three(&server);
    let key = doc! { "k": { "$meta": "sortKey" } };
    let find = doc! { "find": "t", "projection": &key, "$db": "test" };
    assert_eq!(code(&client.run(find)), 2);
    for sort in [doc! { "_id": (-1) }, doc! { "missing": 1, "_id": (-1) }] {
        let find = doc! {
            "find": "t", "hint": "_id_", "sort": &sort, "projection": &key, "returnKey": true,
            "$db": "test",
        };
        let found = client.works(find);
        let first =
            at(&found, "cursor.firstBatch.0").and_then(|first| first.as_document()).unwrap();
        assert_eq!(first.fields().map(|(name, _)| name).collect::<Vec<_>>(), ["_id", "k"]);
        assert_eq!(number(&found, "cursor.firstBatch.0._id"), Some(3));
        let last = sort.as_doc().count() - 1;
        assert_eq!(number(&found, &format!("cursor.firstBatch.0.k.{last}")), Some(3));
    }
}

/// A document that nests too deeply for a reply is refused where it is created.
#[test]
fn results_do_not_nest_without_end() {
    let server = Server::new();
    let mut client = three(&server);
    let deep = doc! { "$reduce": {
        "input": { "$range": [{ "$min": "$_id" }, 30_000] }, "initialValue": 1, "in": { "a": "$$value" },
    } };
    let stages = [
        doc! { "$group": { "_id": &deep } },
        doc! { "$group": { "_id": Value::Null, "all": { "$addToSet": &deep } } },
        doc! { "$project": { "r": &deep } },
        doc! { "$project": { "r": { "$eq": [&deep, { "a": &deep }] } } },
        doc! { "$project": { "r": { "$in": [&deep, [{ "a": &deep }]] } } },
        doc! { "$project": { "r": { "$toHashedIndexKey": &deep } } },
        doc! { "$replaceRoot": { "newRoot": [&deep] } },
        doc! { "$match": { "$expr": { "$gt": [&deep, { "a": 1 }] } } },
    ];
    for stage in &stages {
        let pipeline: ArrayBuf = [stage].into_iter().collect();
        let command = doc! { "aggregate": "t", "pipeline": &pipeline, "cursor": {}, "$db": "test" };
        assert_eq!(code(&client.run(command)), 15, "{stage:?}");
    }
    let find = doc! { "find": "t", "projection": { "r": &deep }, "$db": "test" };
    assert_eq!(code(&client.run(find)), 15);
    let pipeline: ArrayBuf = [doc! { "$set": { "r": &deep } }].iter().collect();
    let statement = doc! { "q": { "_id": 1 }, "u": &pipeline };
    let reply = client.run(update(statement));
    assert_eq!(number(&reply, "writeErrors.0.code"), Some(15), "{reply:?}");
    let step = doc! { "$set": { "a": { "b": { "b": { "b": { "b": "$a" } } } } } };
    for (stages, right) in [(45, 0), (60, 15), (1000, 15)] {
        let pipeline: ArrayBuf = (0..stages).map(|_| &step).collect();
        let command = doc! { "aggregate": "t", "pipeline": &pipeline, "cursor": {}, "$db": "test" };
        let reply = client.run(command);
        assert_eq!(code(&reply), right, "{stages}");
    }
}

#[test]
fn an_explained_update_by_id_is_an_express_plan_and_a_delete_is_none() {
    let server = Server::new();
    let mut client = three(&server);
    let mut stages = |command: DocBuf| {
        let explain = doc! { "explain": &command, "verbosity": "executionStats", "$db": "test" };
        let reply = client.works(explain);
        let stage = |path| at(&reply, path).and_then(|stage| stage.as_str().map(str::to_owned));
        (
            stage("queryPlanner.winningPlan.stage").unwrap_or_default(),
            stage("executionStats.executionStages.stage").unwrap_or_default(),
            number(&reply, "executionStats.executionStages.nWouldModify"),
            number(&reply, "executionStats.totalKeysExamined"),
        )
    };
    let express = |modified| {
        let stage = || "EXPRESS_UPDATE".to_owned();
        (stage(), stage(), Some(modified), Some(modified))
    };
    let set = doc! { "$set": { "a": 1 } };
    assert_eq!(stages(update(doc! { "q": { "_id": 1 }, "u": &set })), express(1));
    assert_eq!(stages(update(doc! { "q": { "_id": 9 }, "u": &set })), express(0));
    let find_and_modify = doc! { "findAndModify": "t", "query": { "_id": 1 }, "update": &set };
    assert_eq!(stages(find_and_modify), express(1));
    let upsert = update(doc! { "q": { "_id": 1 }, "u": &set, "upsert": true });
    assert_eq!(stages(upsert).0, "UPDATE");
    let delete = doc! { "q": { "_id": 1 }, "limit": 1 };
    assert_eq!(stages(doc! { "delete": "t", "deletes": [&delete] }).0, "DELETE");
    assert_eq!(count(&mut client), Some(3));
}

#[test]
fn a_command_with_more_fields_than_any_command_knows_is_refused() {
    let server = Server::new();
    let mut client = server.client(1);
    let ping = |fields: usize| {
        DocBuf::build(|writer| {
            writer.append("ping", 1);
            writer.append("$db", "test");
            for at in 2..fields {
                writer.append(&format!("x{at}"), 1);
            }
        })
    };
    assert_eq!(code(&client.run(ping(1_001))), 40415);
    assert_eq!(code(&client.run(ping(1_002))), 9);
}
