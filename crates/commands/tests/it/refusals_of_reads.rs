//! What reads answer as MongoDB 8.2 does: where a `$geoNear` or a `$text` may stand, searches inside of
//! joins, explanations that fail or are too large, and the ends of transactions with a write concern.

use crate::transactions::{commit, within};
use crate::{Client, Server, at, code, flag, number, text};
use quire_document::{ArrayBuf, DocBuf, Value, doc};

fn on_test(mut command: DocBuf) -> DocBuf {
    command.append("$db", "test");
    command
}

fn aggregate(name: &str, stages: &[DocBuf]) -> DocBuf {
    let stages: ArrayBuf = stages.iter().collect();
    on_test(doc! { "aggregate": name, "pipeline": &stages, "cursor": {} })
}

/// Returns the collections `c`, with one document, and `g`, with places on a line and texts.
fn with_places(server: &Server) -> Client {
    let mut client = server.client(1);
    client.works(on_test(doc! { "insert": "c", "documents": [{ "_id": 1, "kind": "A" }] }));
    client.works(on_test(doc! { "insert": "g", "documents": [
        { "_id": 1, "at": [3, 0], "kind": "A", "says": "cat" },
        { "_id": 2, "at": [1, 0], "kind": "A", "says": "cat dog" },
        { "_id": 3, "at": [2, 0], "kind": "B", "says": "cat" },
    ] }));
    client.works(on_test(doc! { "createIndexes": "g", "indexes": [
        { "key": { "at": "2d" }, "name": "at" },
        { "key": { "says": "text" }, "name": "says" },
    ] }));
    client.works(on_test(
        doc! { "create": "ofA", "viewOn": "g", "pipeline": [{ "$match": { "kind": "A" } }] },
    ));
    client
}

fn near() -> DocBuf {
    doc! { "$geoNear": { "near": [0, 0], "distanceField": "d", "key": "at" } }
}

/// Returns the documents of the first batch, written short.
fn rows(reply: &DocBuf) -> Vec<String> {
    let batch = at(reply, "cursor.firstBatch").and_then(|batch| batch.as_array());
    let batch = batch.unwrap_or_else(|| panic!("{reply:?}"));
    batch.iter().map(|row| quire_document::literal::print(row.as_document().unwrap())).collect()
}

#[test]
fn a_geo_near_comes_first_once_filters_without_conditions_are_removed() {
    let server = Server::new();
    let mut client = with_places(&server);
    let ids = [doc! { "$project": { "_id": 1 } }];
    let empty = doc! { "$match": {} };
    let found = client.works(aggregate("g", &[empty.clone(), empty, near(), ids[0].clone()]));
    assert_eq!(rows(&found), ["{_id: 2}", "{_id: 3}", "{_id: 1}"]);
    for before in [doc! { "$match": { "kind": "A" } }, doc! { "$limit": 2 }, near()] {
        assert_eq!(code(&client.run(aggregate("g", &[before, near()]))), 40603);
    }
    // A filter of a view comes before it, too, also where a join reads the view.
    assert_eq!(code(&client.run(aggregate("ofA", &[near()]))), 40603);
    let joined = |stage: DocBuf| {
        let stages: ArrayBuf = [stage].iter().collect();
        doc! { "$lookup": { "from": "ofA", "pipeline": &stages, "as": "j" } }
    };
    assert_eq!(code(&client.run(aggregate("c", &[joined(near())]))), 40603);
    let says = doc! { "$match": { "$text": { "$search": "cat" } } };
    assert_eq!(code(&client.run(aggregate("c", &[joined(says)]))), 17313);
}

/// The elements of the array got the distance.
#[test]
fn an_array_on_the_way_to_the_distance_is_replaced() {
    let server = Server::new();
    let mut client = with_places(&server);
    client.works(on_test(doc! { "insert": "p", "documents": [
        { "_id": 1, "at": [0, 0], "a": ["x"] }, { "_id": 2, "at": [0, 0], "a": { "b": [1], "c": 1 } },
        { "_id": 3, "at": [0, 0] },
    ] }));
    client.works(on_test(
        doc! { "createIndexes": "p", "indexes": [{ "key": { "at": "2d" }, "name": "at" }] },
    ));
    let found = |field: &str| {
        let near = doc! { "$geoNear": { "near": [0, 0], "distanceField": field } };
        [near, doc! { "$project": { "a": 1 } }, doc! { "$sort": { "_id": 1 } }]
    };
    let rows =
        |client: &mut Client, field: &str| rows(&client.works(aggregate("p", &found(field))));
    assert_eq!(rows(&mut client, "a.0")[0], "{_id: 1, a: {\"0\": 0.0}}");
    assert_eq!(
        rows(&mut client, "a.b.d"),
        [
            "{_id: 1, a: {b: {d: 0.0}}}",
            "{_id: 2, a: {b: {d: 0.0}, c: 1}}",
            "{_id: 3, a: {b: {d: 0.0}}}"
        ]
    );
}

#[test]
fn a_sort_by_the_distance_puts_the_farthest_first() {
    let server = Server::new();
    let mut client = with_places(&server);
    let sort = doc! { "$sort": { "x": { "$meta": "geoNearDistance" } } };
    let ids = doc! { "$project": { "_id": 1 } };
    let found = client.works(aggregate("g", &[near(), sort, ids]));
    assert_eq!(rows(&found), ["{_id: 1}", "{_id: 3}", "{_id: 2}"]);
}

/// Such a `$geoNear` found all documents, without their distances, and such a `$text` failed.
#[test]
fn a_search_inside_of_a_join_may_stand_beside_conditions_on_variables() {
    let server = Server::new();
    let mut client = with_places(&server);
    let same_kind = doc! { "$expr": { "$eq": ["$kind", "$$kind"] } };
    let of_same_kind = doc! { "$geoNear": {
        "near": [0, 0], "distanceField": "d", "key": "at", "maxDistance": 2.5, "query": &same_kind,
    } };
    let later = doc! { "$match": &same_kind };
    let shown = doc! { "$project": { "d": 1 } };
    let meta = doc! { "$project": { "d": { "$meta": "geoNearDistance" } } };
    let cats = doc! { "$match": {
        "$text": { "$search": "dog" }, "$expr": { "$eq": ["$kind", "$$kind"] },
    } };
    let score = doc! { "$project": { "d": { "$gt": [{ "$meta": "textScore" }, 0] } } };
    let by_distance = [
        (vec![of_same_kind.clone(), shown.clone()], "[{_id: 2, d: 1.0}]"),
        (vec![near(), later.clone(), shown], "[{_id: 2, d: 1.0}, {_id: 1, d: 3.0}]"),
        (vec![near(), later, meta.clone()], "[{_id: 2, d: 1.0}, {_id: 1, d: 3.0}]"),
        (vec![of_same_kind, meta], "[{_id: 2, d: 1.0}]"),
        (vec![cats, score], "[{_id: 2, d: true}]"),
    ];
    for (pipeline, wanted) in by_distance {
        let stages: ArrayBuf = pipeline.iter().collect();
        let plain = doc! { "$lookup": {
            "from": "g", "let": { "kind": "$kind" }, "pipeline": &stages, "as": "j",
        } };
        let found = client.works(aggregate("c", &[plain]));
        let wanted = format!("{{_id: 1, kind: \"A\", j: {wanted}}}");
        assert_eq!(rows(&found), [wanted], "{pipeline:?}");
    }
    // Beside an equality of fields.
    let stages: ArrayBuf = [near(), doc! { "$project": { "d": 1 } }].iter().collect();
    let by_fields = doc! { "$lookup": {
        "from": "g", "localField": "kind", "foreignField": "kind", "pipeline": &stages, "as": "j",
    } };
    let found = client.works(aggregate("c", &[by_fields]));
    assert_eq!(rows(&found), ["{_id: 1, kind: \"A\", j: [{_id: 2, d: 1.0}, {_id: 1, d: 3.0}]}"]);
}

#[test]
fn an_explanation_larger_than_a_document_is_refused() {
    let server = Server::new();
    let mut client = server.client(1);
    let long = "x".repeat(3 << 20);
    let explained = |parts: usize| {
        let fields = DocBuf::build(|writer| {
            for part in 0..parts {
                writer.append(&format!("f{part}"), long.as_str());
            }
        });
        on_test(doc! { "explain": { "find": "t", "filter": &fields }, "verbosity": "queryPlanner" })
    };
    client.works(explained(1));
    let refused = client.run(explained(4));
    assert_eq!(code(&refused), 10334);
    assert!(text(&refused, "errmsg").unwrap().starts_with("BSONObj size: "));
}

#[test]
fn an_explained_pipeline_that_is_one_plan_tells_its_failure() {
    let server = Server::new();
    let mut client = server.client(1);
    client.works(on_test(doc! { "insert": "t", "documents": [{ "_id": 1, "a": 0 }] }));
    let divide = doc! { "$divide": [1, "$a"] };
    let explain = |stages: &[DocBuf]| {
        let command = aggregate("t", stages);
        on_test(doc! { "explain": &command, "verbosity": "executionStats" })
    };
    let failing = doc! { "$match": { "$expr": &divide } };
    let shown = client.works(explain(std::slice::from_ref(&failing)));
    assert_eq!(flag(&shown, "executionStats.executionSuccess"), Some(false));
    assert_eq!(number(&shown, "executionStats.errorCode"), Some(2));
    // A plan that is shown as stages fails as a whole.
    let unwind = doc! { "$unwind": "$a" };
    assert_eq!(code(&client.run(explain(&[failing, unwind]))), 2);
}

#[test]
fn hybrid_searches_do_not_read_a_time_series() {
    let server = Server::new();
    let mut client = server.client(1);
    client.works(on_test(doc! { "create": "s", "timeseries": { "timeField": "t" } }));
    client.works(on_test(doc! { "create": "c" }));
    let fused =
        doc! { "$rankFusion": { "input": { "pipelines": { "p": [{ "$sort": { "a": 1 } }] } } } };
    assert_eq!(code(&client.run(aggregate("s", std::slice::from_ref(&fused)))), 10557301);
    client.works(aggregate("c", &[fused]));
    let distinct = client.run(on_test(doc! { "distinct": "s", "key": "a" }));
    assert!(matches!(at(&distinct, "ok"), Some(Value::Int32(1))));
}

#[test]
fn a_profile_has_no_indexes_and_null_is_no_time_of_expiry() {
    let server = Server::new();
    let mut client = server.client(1);
    client.works(on_test(doc! { "profile": 2 }));
    let listed = client.works(on_test(doc! { "listIndexes": "system.profile" }));
    assert_eq!(rows(&listed), Vec::<String>::new());
    client.works(on_test(doc! { "create": "c", "timeseries": { "timeField": "t" } }));
    let null = on_test(doc! { "collMod": "c", "expireAfterSeconds": Value::Null });
    assert_eq!(code(&client.run(null)), 14);
}

#[test]
fn the_end_of_a_transaction_reports_a_write_concern_that_cannot_be_met() {
    let server = Server::new();
    let mut client = server.client(1);
    let three = |mut command: DocBuf| {
        command.append("writeConcern", &doc! { "w": 3 });
        command
    };
    let insert = |id: i32| on_test(doc! { "insert": "t", "documents": [{ "_id": id }] });
    let abort = || doc! { "abortTransaction": 1, "$db": "admin" };
    let concern = |reply: &DocBuf| number(reply, "writeConcernError.code");
    client.works(on_test(doc! { "create": "t" }));
    client.works(within(insert(1), (1, 1), true));
    for _ in 0..2 {
        let committed = client.works(within(three(commit()), (1, 1), false));
        assert_eq!(concern(&committed), Some(100));
    }
    let late = client.run(within(insert(2), (1, 1), false));
    assert_eq!(
        text(&late, "errmsg"),
        Some("Transaction with { txnNumber: 1 } has been committed.")
    );
    client.works(within(insert(2), (1, 2), true));
    let aborted = client.works(within(three(abort()), (1, 2), false));
    assert_eq!(concern(&aborted), Some(100));
    // The transaction may have been committed elsewhere, so it must not be tried again.
    for again in [abort(), commit()] {
        let ended = client.run(within(three(again.clone()), (1, 2), false));
        assert_eq!((code(&ended), concern(&ended)), (251, Some(100)));
        assert!(at(&ended, "errorLabels").is_none(), "{ended:?}");
        let ended = client.run(within(again, (1, 2), false));
        assert_eq!(text(&ended, "errorLabels.0"), Some("TransientTransactionError"));
        let wanted = "Transaction with { txnNumber: 2 } has been aborted.";
        assert_eq!(text(&ended, "errmsg"), Some(wanted));
    }
    let found = client.works(on_test(doc! { "count": "t" }));
    assert_eq!(number(&found, "n"), Some(1));
}
