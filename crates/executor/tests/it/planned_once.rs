//! A join is planned once, for all batches of its keys and for all rows of an outer join, and again
//! only if the catalog changes between two batches.

use super::*;
use quire_catalog::{CollectionOptions, ViewDefinition};
use quire_collections::DropIndexes;
use quire_document::{Value, doc};
use quire_executor::{explain, open};
use quire_planner::{AggregateRequest, Verbosity};
use std::time::Duration;

/// The documents of each side; each key occurs once on each side.
const KEYS: i32 = 10_000;

fn opened(store: &Arc<Store>, pipeline: Vec<DocBuf>, bytes: usize) -> Execution {
    let namespace = "db.local".into();
    let request = AggregateRequest { namespace, pipeline, ..AggregateRequest::default() };
    let params = ExecParams { stage_bytes_max: bytes, ..params() };
    open(&request, &FreshViews::new(store).unwrap(), params).unwrap()
}

fn joined(doc: &DocBuf, field: &str) -> Vec<DocBuf> {
    let found = doc.get(field).and_then(|found| found.as_array()).unwrap();
    documents(found).map(Doc::to_owned).collect()
}

fn int(doc: &DocBuf, field: &str) -> i32 {
    match doc.get(field) {
        Some(Value::Int32(value)) => value,
        other => panic!("{field} is {other:?}"),
    }
}

/// Inserts documents `{_id, k, v}` with `k` from 0 to `count`; `k` has an index.
fn keyed(store: &Arc<Store>, name: &str, count: i32) {
    let docs: Vec<DocBuf> = (0..count).map(|k| doc! { "_id": k, "k": k, "v": k % 7 }).collect();
    insert_all(store, name, docs.iter().map(DocBuf::as_doc));
    create_indexes(store, name, [doc! { "key": { "k": 1 }, "name": "k_1" }.as_doc()].into_iter())
        .unwrap();
}

fn by_field() -> DocBuf {
    doc! { "$lookup": { "from": "foreign", "localField": "k", "foreignField": "k", "as": "j" } }
}

#[test]
fn ten_thousand_keys_in_batches_are_planned_once() {
    let store = store();
    keyed(&store, "db.local", KEYS);
    keyed(&store, "db.foreign", KEYS);
    // The foreign documents do not fit in memory, so each batch of keys is looked up.
    let mut execution = opened(&store, vec![by_field()], 64 << 10);
    let planned = execution.queries_planned();
    let docs = drain(&store, &mut execution, 1000);
    assert_eq!(docs.len(), KEYS as usize);
    for doc in &docs {
        let found = joined(doc, "j");
        assert_eq!(found.iter().map(|doc| int(doc, "k")).collect::<Vec<_>>(), [int(doc, "k")]);
    }
    assert_eq!(execution.queries_planned(), planned, "planned again");
}

#[test]
fn a_join_for_each_row_of_a_join_is_planned_once() {
    let store = store();
    let count = 400;
    keyed(&store, "db.local", count);
    keyed(&store, "db.foreign", count);
    keyed(&store, "db.third", 7);
    let stage = doc! { "$lookup": {
        "from": "foreign", "localField": "k", "foreignField": "k", "as": "j",
        "let": { "x": "$k" },
        "pipeline": [
            { "$match": { "$expr": { "$lte": ["$v", "$$x"] } } },
            { "$lookup": {
                "from": "third", "localField": "v", "foreignField": "k", "as": "t",
                "let": { "y": "$k" },
                "pipeline": [{ "$set": { "sum": { "$add": ["$$x", "$$y", "$k"] } } }]
            } }
        ]
    } };
    let mut execution = opened(&store, vec![stage], 64 << 20);
    let planned = execution.queries_planned();
    let docs = drain(&store, &mut execution, 101);
    assert_eq!(docs.len(), count as usize);
    for doc in &docs {
        let k = int(doc, "k");
        let [found] = joined(doc, "j").try_into().unwrap();
        let [third] = joined(&found, "t").try_into().unwrap();
        assert_eq!((int(&third, "k"), int(&third, "sum")), (k % 7, 2 * k + k % 7));
    }
    assert_eq!(execution.queries_planned(), planned, "planned again");
}

/// Between two batches of the cursor the foreign index or collection goes away, or comes.
#[test]
fn a_change_of_the_catalog_between_batches_is_seen() {
    let options = CommitOptions::buffered();
    let drop_index = |store: &Arc<Store>| {
        let which = DropIndexes::Name("k_1".into());
        store.drop_indexes(&ns("db.foreign"), &which, &options).unwrap();
    };
    let drop_all = |store: &Arc<Store>| {
        store.drop_collection(&ns("db.foreign"), &options).unwrap();
    };
    let create = |store: &Arc<Store>| keyed(store, "db.foreign", 300);
    let again = |store: &Arc<Store>| {
        drop_all(store);
        create(store);
    };
    // An array makes the index multikey: its document has two keys.
    let arrays = |store: &Arc<Store>| {
        let doc = doc! { "_id": "arrays", "k": [250, 251], "v": 1 };
        insert_all(store, "db.foreign", [doc.as_doc()]);
    };
    type Change<'c> = &'c dyn Fn(&Arc<Store>);
    let none: Change<'_> = &|_| ();
    // How many documents a row finds before and after the change.
    let cases: [(&str, Change<'_>, Change<'_>, [usize; 2]); 5] = [
        ("index dropped", &create, &drop_index, [1, 1]),
        ("collection dropped", &create, &drop_all, [1, 0]),
        ("collection created", none, &create, [0, 1]),
        ("collection replaced", &create, &again, [1, 1]),
        ("multikey", &create, &arrays, [1, 1]),
    ];
    for (name, before, change, [first, last]) in cases {
        // With little memory all foreign documents are never in memory.
        for bytes in [4 << 10, 64 << 20] {
            let store = store();
            // Each batch reads the newest state.
            store.engine().keep_history(Duration::ZERO);
            keyed(&store, "db.local", 300);
            before(&store);
            let mut execution = opened(&store, vec![by_field()], bytes);
            let planned = execution.queries_planned();
            let mut batch = 0;
            let docs = drain_between(&store, &mut execution, 50, || {
                batch += 1;
                if batch == 3 {
                    change(&store);
                }
            });
            let docs = docs.unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(docs.len(), 300, "{name}");
            let found = |at: usize| joined(&docs[at], "j").len();
            assert_eq!(found(0), first, "{name}");
            if bytes < 64 << 20 {
                assert_eq!(found(299), last, "{name}");
                assert!(execution.queries_planned() > planned, "{name}: not planned again");
                assert_eq!(found(250), last + usize::from(name == "multikey"), "{name}");
            }
        }
    }
}

/// A `$unionWith` opens its pipeline after the first documents, when an index may be gone.
#[test]
fn a_union_does_not_read_an_index_that_is_gone() {
    let store = store();
    store.engine().keep_history(Duration::ZERO);
    keyed(&store, "db.local", 100);
    keyed(&store, "db.foreign", 100);
    let union = doc! { "$unionWith": { "coll": "foreign", "pipeline": [{ "$match": { "k": { "$lt": 50 } } }] } };
    let mut execution = opened(&store, vec![union], 64 << 20);
    let mut batch = 0;
    let ended = drain_between(&store, &mut execution, 40, || {
        batch += 1;
        if batch == 2 {
            let which = DropIndexes::Name("k_1".into());
            store.drop_indexes(&ns("db.foreign"), &which, &CommitOptions::buffered()).unwrap();
        }
    });
    let code = ended.map(|docs| docs.len()).unwrap_err().code();
    assert_eq!(code, quire_error::ErrorCode::QueryPlanKilled);
}

/// Inserts documents with nulls, arrays and missing fields on all sides, with indexes that do not have all
/// of them.
fn insert_nulls_and_arrays(store: &Arc<Store>) {
    let local: Vec<DocBuf> = (0..40)
        .map(|at| match at % 4 {
            0 => doc! { "_id": at, "k": at / 4 },
            1 => doc! { "_id": at, "k": [at / 4, Value::Null] },
            2 => doc! { "_id": at, "k": Value::Null },
            _ => doc! { "_id": at },
        })
        .collect();
    let foreign: Vec<DocBuf> = (0..60)
        .map(|at| match at % 5 {
            0 => doc! { "_id": at, "v": at % 3 },
            1 => doc! { "_id": at, "k": Value::Null, "v": at % 3 },
            2 => doc! { "_id": at, "k": [at / 6, at % 6], "v": at % 3 },
            _ => doc! { "_id": at, "k": at / 6, "v": at % 3 },
        })
        .collect();
    insert_all(store, "db.local", local.iter().map(DocBuf::as_doc));
    insert_all(store, "db.foreign", foreign.iter().map(DocBuf::as_doc));
    insert_all(store, "db.other", foreign.iter().skip(7).map(DocBuf::as_doc));
    let indexes = [
        doc! { "key": { "k": 1 }, "name": "k", "sparse": true },
        doc! { "key": { "v": 1, "k": 1 }, "name": "vk" },
    ];
    create_indexes(store, "db.foreign", indexes.iter().map(DocBuf::as_doc)).unwrap();
    let partial = doc! {
        "key": { "k": 1 }, "name": "k", "partialFilterExpression": { "k": { "$exists": true } }
    };
    create_indexes(store, "db.other", [partial.as_doc()].into_iter()).unwrap();
}

/// The condition on the keys moves through the stages of a view, or stays behind them.
#[test]
fn joins_with_views_find_what_they_find_as_written() {
    let store = store();
    insert_nulls_and_arrays(&store);
    let count = doc! { "n": { "$sum": 1 } };
    let views: [Vec<DocBuf>; 7] = [
        vec![doc! { "$match": { "v": { "$in": [0, 1] } } }],
        vec![
            doc! { "$group": { "_id": "$k", "n": { "$sum": 1 } } },
            doc! { "$project": { "k": "$_id", "n": 1 } },
        ],
        vec![doc! { "$unionWith": "other" }, doc! { "$set": { "w": 1 } }],
        vec![doc! { "$sort": { "_id": 1 } }, doc! { "$limit": 30 }],
        vec![doc! { "$unwind": "$k" }],
        vec![doc! { "$setWindowFields": { "partitionBy": "$k", "output": &count } }],
        vec![
            doc! { "$lookup": { "from": "other", "localField": "v", "foreignField": "v", "as": "o" } },
            doc! { "$unwind": "$o" },
            doc! { "$match": { "o._id": { "$lt": 20 } } },
            doc! { "$project": { "k": "$o.k" } },
        ],
    ];
    let sorted = |docs: Vec<DocBuf>| {
        let text = |doc: &DocBuf| {
            let mut found: Vec<String> =
                joined(doc, "j").iter().map(|one| format!("{one:?}")).collect();
            found.sort();
            (int(doc, "_id"), found)
        };
        docs.iter().map(text).collect::<Vec<_>>()
    };
    for (at, pipeline) in views.into_iter().enumerate() {
        let namespace = ns(&format!("db.view{at}"));
        let name = format!("view{at}");
        let view = ViewDefinition { namespace, on: "foreign".into(), pipeline, collation: None };
        store.create_view(&Arc::new(view), &CommitOptions::buffered()).unwrap();
        let join = doc! { "$lookup": {
            "from": name.as_str(), "localField": "k", "foreignField": "k", "as": "j"
        } };
        let graph = doc! { "$graphLookup": {
            "from": name.as_str(), "startWith": "$k", "connectFromField": "v",
            "connectToField": "k", "as": "j", "maxDepth": 1
        } };
        // Of documents with one `_id` a search keeps one, which depends on the order of the view.
        let one_of_each = at < 4;
        for stage in std::iter::once(join).chain(one_of_each.then_some(graph)) {
            let request = AggregateRequest {
                namespace: "db.local".into(),
                pipeline: vec![stage.clone()],
                ..AggregateRequest::default()
            };
            let as_written = ExecParams { as_written: true, ..params() };
            let views = FreshViews::new(&store).unwrap();
            let Ok(mut execution) = open(&request, &views, as_written) else { continue };
            let Ok(wanted) = try_drain(&store, &mut execution, 1000) else { continue };
            let wanted = sorted(wanted);
            for (bytes, batch) in [(64 << 20, 1000), (64 << 10, 7), (3000, 1)] {
                let mut execution = opened(&store, vec![stage.clone()], bytes);
                let found = sorted(drain(&store, &mut execution, batch));
                assert!(found == wanted, "{stage:?}, {bytes} bytes");
            }
        }
    }
}

/// A join by `_id` fetches by key: also keys that are no `_id`, with conditions and orders beside them.
#[test]
fn joins_by_id_find_what_they_find_by_another_field() {
    let store = store();
    let keys = [
        Value::Int32(1),
        Value::Double(2.0),
        Value::Null,
        Value::String("a"),
        Value::Undefined,
        Value::MinKey,
    ];
    let mut local: Vec<DocBuf> = Vec::new();
    for (at, key) in (0..).zip(keys) {
        local.push(doc! { "_id": at, "k": key });
        local.push(doc! { "_id": 100 + at, "k": [key, 3_i64, [4]] });
    }
    local.push(doc! { "_id": 200, "k": [5, 4, 2.0, 1, 99] });
    local.push(doc! { "_id": 201 });
    insert_all(&store, "db.local", local.iter().map(DocBuf::as_doc));
    let ids = [Value::Int32(1), Value::Int64(2), Value::Null, Value::String("a"), Value::MinKey];
    let more = (3..2000).map(|id| doc! { "_id": id, "f": id, "v": id % 3 });
    let foreign = ids.into_iter().map(|id| doc! { "_id": id, "f": id, "v": 1 }).chain(more);
    let foreign: Vec<DocBuf> = foreign.collect();
    let clustered = doc! { "clusteredIndex": { "key": { "_id": 1 }, "unique": true } };
    let clustered = CollectionOptions::parse(clustered.as_doc(), 0).unwrap();
    store.create_collection(&ns("db.clustered"), clustered, &CommitOptions::buffered()).unwrap();
    for name in ["db.foreign", "db.clustered"] {
        insert_all(&store, name, foreign.iter().map(DocBuf::as_doc));
    }
    let pipelines: [Vec<DocBuf>; 5] = [
        vec![],
        vec![doc! { "$match": { "v": 1 } }],
        vec![doc! { "$sort": { "_id": -1 } }],
        vec![doc! { "$match": { "_id": { "$gt": 2 } } }, doc! { "$project": { "v": 1 } }],
        vec![doc! { "$sort": { "_id": 1 } }, doc! { "$limit": 2 }],
    ];
    for (at, pipeline) in pipelines.iter().enumerate() {
        let found = |from: &str, field: &str, bytes: usize, batch: usize| {
            let mut lookup = doc! {
                "from": from, "localField": "k", "foreignField": field, "as": "j"
            };
            if at > 0 {
                lookup.extend(|writer| {
                    let stages: ArrayBuf = pipeline.iter().map(DocBuf::as_doc).collect();
                    writer.append("pipeline", &stages);
                });
            }
            let mut execution = opened(&store, vec![doc! { "$lookup": &lookup }], bytes);
            let docs = drain(&store, &mut execution, batch);
            docs.iter().map(|doc| format!("{doc:?}")).collect::<Vec<_>>()
        };
        let wanted = found("foreign", "f", 64 << 20, 1000);
        assert_eq!(wanted.len(), local.len());
        for from in ["foreign", "clustered"] {
            for (bytes, batch) in [(64 << 20, 1000), (64 << 20, 1), (3000, 3)] {
                assert_eq!(found(from, "_id", bytes, batch), wanted, "{from} {pipeline:?}");
            }
        }
    }
}

/// A sparse index does not have the documents without the field. They were read again for each batch of keys.
#[test]
fn the_documents_without_the_field_are_read_once() {
    let store = store();
    let local: Vec<DocBuf> = (0..300)
        .map(|id| {
            if id % 2 == 0 {
                doc! { "_id": id, "k": id }
            } else {
                doc! { "_id": id }
            }
        })
        .collect();
    insert_all(&store, "db.local", local.iter().map(DocBuf::as_doc));
    let with = (0..2000).map(|id| doc! { "_id": id, "k": id, "v": 1 });
    let without = (2000..2002).map(|id| doc! { "_id": id, "v": 2 });
    let foreign: Vec<DocBuf> = with.chain(without).collect();
    insert_all(&store, "db.foreign", foreign.iter().map(DocBuf::as_doc));
    let sparse = doc! { "key": { "k": 1 }, "name": "k", "sparse": true };
    create_indexes(&store, "db.foreign", [sparse.as_doc()].into_iter()).unwrap();
    for (bytes, batch) in [(64 << 20, 1000), (64 << 20, 7), (4 << 10, 1)] {
        let mut execution = opened(&store, vec![by_field()], bytes);
        let docs = drain(&store, &mut execution, batch);
        assert_eq!(docs.len(), local.len());
        for doc in &docs {
            let wanted = if int(doc, "_id") % 2 == 0 { (1, 1) } else { (2, 2) };
            let found = joined(doc, "j");
            assert_eq!((found.len(), int(&found[0], "v")), wanted, "{doc:?}");
        }
        let examined = execution.examined().counters.docs_examined;
        let once = (local.len() + foreign.len()) as u64;
        assert!(examined >= once && examined < once + 2000, "{bytes} {batch}: {examined}");
    }
}

/// Explain prints the plan that every look-up runs, with the keys as parameters, and after running the join the
/// plan that ran.
#[test]
fn explain_shows_the_plan_of_the_foreign_side() {
    let store = store();
    keyed(&store, "db.local", 3);
    keyed(&store, "db.foreign", 3);
    keyed(&store, "db.many", 400);
    let explained_of = |local: &str, verbosity: Verbosity, from: &str, field: &str| {
        let lookup = doc! { "$lookup": {
            "from": from, "localField": "k", "foreignField": field, "as": "j"
        } };
        let request = AggregateRequest {
            namespace: local.into(),
            pipeline: vec![lookup],
            ..AggregateRequest::default()
        };
        let mut views = FreshViews::new(&store).unwrap();
        let found = explain((&request).into(), None, verbosity, &mut views, params()).unwrap();
        let stages = found.get("stages").and_then(|stages| stages.as_array()).unwrap();
        documents(stages).last().unwrap().to_owned()
    };
    let executed = Verbosity::ExecutionStats;
    let explained = |from: &str, field: &str| explained_of("db.local", executed, from, field);
    let text = |doc: &DocBuf, field: &str| {
        doc.get(field).and_then(|value| value.as_str()).unwrap_or_default().to_owned()
    };
    let inner =
        |doc: &DocBuf, field: &str| doc.get(field).unwrap().as_document().unwrap().to_owned();

    let by_index = explained("foreign", "k");
    assert_eq!(text(&by_index, "strategy"), "IndexedLoopJoin");
    assert_eq!(text(&by_index, "indexName"), "k_1");
    assert_eq!(inner(&by_index, "indexKeyPattern"), doc! { "k": 1 });
    let fetch = inner(&by_index, "foreignPlan");
    assert_eq!(text(&fetch, "stage"), "FETCH");
    let scan = inner(&fetch, "inputStage");
    assert_eq!(text(&scan, "stage"), "IXSCAN");
    assert_eq!(inner(&scan, "indexBounds"), doc! { "k": ["<key>"] });
    assert!(matches!(by_index.get("totalKeysExamined"), Some(Value::Int64(3..=4))));

    let by_id = explained("foreign", "_id");
    assert_eq!(text(&by_id, "strategy"), "IndexedLoopJoin");
    assert_eq!(text(&by_id, "indexName"), "_id_");
    assert_eq!(inner(&by_id, "foreignPlan"), doc! { "stage": "IDHACK" });
    assert!(matches!(by_id.get("totalKeysExamined"), Some(Value::Int64(3))));
    assert!(matches!(by_id.get("totalDocsExamined"), Some(Value::Int64(3))));
    let used = by_id.get("indexesUsed").and_then(|used| used.as_array()).unwrap();
    assert_eq!(used.iter().filter_map(|name| name.as_str()).collect::<Vec<_>>(), ["_id_"]);

    let by_hash = explained("foreign", "v");
    assert_eq!(text(&by_hash, "strategy"), "HashJoin");
    let scan = inner(&by_hash, "foreignPlan");
    assert_eq!(text(&scan, "stage"), "COLLSCAN");
    // A scan without the keys costs less than comparing each document with them.
    assert!(scan.get("filter").is_none() && by_hash.get("indexName").is_none());
    let planned = explained_of("db.local", Verbosity::QueryPlanner, "foreign", "v");
    let scan = inner(&planned, "foreignPlan");
    assert_eq!(inner(&scan, "filter"), doc! { "v": { "$in": ["<key>"] } });

    // Looking up the other keys would cost more than reading the three documents.
    let many = explained_of("db.many", executed, "foreign", "k");
    assert_eq!(text(&many, "strategy"), "IndexedLoopJoin");
    assert_eq!(text(&inner(&many, "foreignPlan"), "stage"), "FETCH");
    assert_eq!(text(&inner(&many, "wholeForeignPlan"), "stage"), "COLLSCAN");
    assert!(matches!(many.get("collectionScans"), Some(Value::Int64(1))));
    let planned = explained_of("db.many", Verbosity::QueryPlanner, "foreign", "k");
    assert!(
        planned.get("wholeForeignPlan").is_none() && by_index.get("wholeForeignPlan").is_none()
    );

    let missing = explained("nothing", "k");
    assert_eq!(text(&missing, "strategy"), "NonExistentForeignCollection");
    assert!(missing.get("foreignPlan").is_none());
}
