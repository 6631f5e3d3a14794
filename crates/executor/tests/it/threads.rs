//! Executions with several threads have the rows, the order, the errors and the counters of those
//! with one thread.

use super::*;
use quire_document::ArrayBuf;
use quire_document::doc;
use quire_document::literal::parse_doc;
use quire_executor::modify::{DeleteRequest, delete};
use quire_executor::{Counters, distinct, open};
use quire_mql::collation::AskedCollation;
use quire_planner::{AggregateRequest, DistinctRequest, FindRequest};

const NAME: &str = "db.c";
const DOCS: i32 = 12_000;

/// Returns documents with gaps between them, some so large that a piece ends early.
fn filled() -> Arc<Store> {
    let store = store();
    let large = "x".repeat(300_000);
    let docs: Vec<DocBuf> = (0..DOCS)
        .map(|id| {
            let text = if id % 1501 < 5 { large.as_str() } else { "x" };
            let z = if id == 9001 { 0 } else { 1 };
            doc! { "_id": id, "v": (id % 7), "k": (id * 7919 % 5000), "z": z, "t": text, "n": [{ "x": (id % 3) }, id] }
        })
        .collect();
    insert_all(&store, NAME, docs.iter().map(DocBuf::as_doc));
    let holes = doc! { "$or": [{ "_id": { "$gte": 2000, "$lt": 6500 } }, { "v": 5 }, { "_id": { "$gte": 11_500 } }] };
    let request = DeleteRequest {
        collation: Default::default(),
        namespace: ns(NAME),
        filter: holes.as_doc(),
        one: false,
        hint: None,
        let_vars: Doc::empty(),
    };
    delete(&mut Own::new(&store), &request, &params()).unwrap();
    store
}

/// Returns the result of an execution in batches of `batch`, or the code of its error.
fn outcome(
    store: &Arc<Store>,
    execution: &mut Execution,
    batch: usize,
) -> (Result<Vec<DocBuf>, i32>, Counters) {
    let docs = try_drain(store, execution, batch).map_err(|error| error.code().number());
    (docs, execution.examined().counters)
}

fn on(threads: usize) -> ExecParams {
    let mut params = params();
    (params.threads_max, params.long_scan_docs) = (threads, 200);
    params
}

#[test]
fn finds_are_those_of_one_thread() {
    let store = filled();
    for (filter, sort, limit) in [
        ("{}", "{}", 0),
        ("{v: 3}", "{}", 0),
        ("{v: 3}", "{}", 700),
        ("{v: {$in: [1, 2, 3, 4, 6]}}", "{}", 0),
        ("{v: 5}", "{}", 0),
        ("{_id: {$gt: 11000}, v: {$ne: 3}}", "{$natural: 1}", 0),
        ("{v: {$lt: 5}}", "{$natural: -1}", 0),
        ("{v: {$lt: 5}}", "{k: 1, _id: -1}", 0),
        ("{v: {$lt: 5}}", "{k: -1, _id: -1}", 20),
        ("{$expr: {$gt: [{$divide: [7, \"$z\"]}, 3]}}", "{}", 0),
    ] {
        let request = FindRequest {
            namespace: NAME.into(),
            filter: parse_doc(filter).unwrap(),
            sort: parse_doc(sort).unwrap(),
            limit,
            ..FindRequest::default()
        };
        let run = |threads, batch| {
            let views = FreshViews::new(&store).unwrap();
            let mut execution = open(&request, &views, on(threads)).unwrap();
            outcome(&store, &mut execution, batch)
        };
        for batch in [97, 3000, 1_000_000] {
            let (alone, helped) = (run(1, batch), run(4, batch));
            assert!(
                alone == helped,
                "{filter} {sort} {limit} {batch}: {:?}, not {:?}",
                helped.1,
                alone.1
            );
        }
    }
}

#[test]
fn distinct_values_are_those_of_one_thread() {
    let store = filled();
    let names: ArrayBuf = ["a", "A", "b", "a"].into_iter().collect();
    let docs: Vec<DocBuf> = (DOCS..DOCS + 900)
        .map(|id| doc! { "_id": id, "s": (["a", "A", "b", "B"][id as usize % 4]), "n": &names })
        .collect();
    insert_all(&store, NAME, docs.iter().map(DocBuf::as_doc));
    for (key, filter) in [
        ("_id", "{}"),
        ("k", "{v: {$lt: 5}}"),
        ("v", "{}"),
        ("s", "{}"),
        ("n", "{_id: {$gt: 9000}}"),
        ("n.x", "{}"),
        ("gone", "{}"),
        ("t", "{v: 3}"),
        ("v", "{$expr: {$gt: [{$divide: [7, \"$z\"]}, 3]}}"),
    ] {
        for collation in [doc! {}, doc! { "locale": "en", "strength": 2 }] {
            let request = DistinctRequest {
                namespace: NAME.into(),
                key: key.into(),
                filter: parse_doc(filter).unwrap(),
                collation: AskedCollation::parse(collation.as_doc()).unwrap(),
                ..DistinctRequest::default()
            };
            let run = |threads| {
                let mut views = FreshViews::new(&store).unwrap();
                let values = distinct(key, &request, &mut views, on(threads));
                values
                    .map(|(values, examined)| (values, examined.counters))
                    .map_err(|error| error.code().number())
            };
            let alone = run(1);
            assert!(alone == run(4), "{key} {filter}");
            assert_eq!(alone.is_err(), filter.contains("$divide"));
        }
    }
}

#[test]
fn pipelines_are_those_of_one_thread() {
    let store = filled();
    for stages in [
        "[{$group: {_id: \"$v\", n: {$sum: 1}, first: {$first: \"$_id\"}, all: {$push: \"$k\"}}}]",
        "[{$group: {_id: \"$n.x\", n: {$sum: 1}, k: {$last: \"$n\"}, gone: {$max: \"$gone.x\"}}}]",
        "[{$match: {k: {$lt: 2500}}}, {$group: {_id: \"$k\", n: {$avg: \"$_id\"}}}]",
        "[{$addFields: {w: {$mod: [\"$k\", 3]}}}, {$group: {_id: \"$w\", n: {$sum: \"$_id\"}}}]",
        "[{$group: {_id: {$divide: [1, \"$z\"]}}}]",
        "[{$group: {_id: \"$v\", n: {$sum: {$divide: [1, \"$z\"]}}}}]",
        "[{$group: {_id: \"$t\", n: {$sum: \"$k\"}, docs: {$push: \"$$ROOT\"}}}]",
        "[{$group: {_id: {v: \"$v\", k: {$mod: [\"$k\", 5]}}, n: {$count: {}}, some: {$firstN: {input: \"$n\", n: 2}}}}, {$unwind: \"$some\"}]",
        "[{$group: {_id: {$cond: [{$gt: [\"$k\", 100]}, \"$_id\", \"$gone\"]}, t: {$addToSet: \"$t\"}}}]",
        "[{$group: {_id: {$cond: [{$gt: [\"$k\", 100]}, 1, \"$z\"]}, n: {$sum: {$multiply: [\"$k\", 0.1]}}}}]",
        "[{$match: {v: 5}}, {$group: {_id: null, n: {$sum: 1}}}]",
        "[{$unwind: \"$n\"}, {$group: {_id: \"$n\", n: {$sum: \"$k\"}, last: {$last: \"$_id\"}}}]",
        "[{$unwind: {path: \"$n\", includeArrayIndex: \"i\"}}, {$match: {i: 1, k: {$gt: 50}}}, {$group: {_id: \"$i\", all: {$push: \"$n\"}}}]",
        "[{$set: {w: {$divide: [9, \"$z\"]}}}, {$group: {_id: \"$w\"}}]",
        "[{$set: {n: {$range: [0, {$cond: [{$eq: [\"$k\", 4]}, 300000, 3]}]}}}, {$unwind: \"$n\"}, {$group: {_id: {$mod: [\"$n\", 10]}, n: {$sum: 1}, k: {$avg: \"$k\"}}}]",
        "[{$redact: {$cond: [{$eq: [\"$v\", 1]}, \"$$PRUNE\", \"$$KEEP\"]}}, {$replaceWith: {a: \"$v\", b: \"$$ROOT.k\"}}, {$group: {_id: \"$a\", b: {$max: \"$b\"}}}]",
        "[{$sort: {k: 1, _id: 1}}, {$project: {t: 0}}]",
        "[{$group: {_id: \"$k\"}}, {$sort: {_id: 1}}, {$group: {_id: null, all: {$push: \"$_id\"}}}]",
        "[{$match: {v: {$ne: 2}}}, {$count: \"n\"}]",
        "[{$project: {k: 1, v: 1}}, {$skip: 5}]",
        "[{$project: {x: {$divide: [1, \"$z\"]}}}, {$match: {x: {$gt: 0}}}]",
        "[{$sort: {v: 1, k: -1}}, {$group: {_id: \"$v\", all: {$push: \"$k\"}}}]",
        "[{$setWindowFields: {partitionBy: \"$v\", sortBy: {_id: 1}, output: {s: {$sum: \"$k\", window: {documents: [-3, 0]}}}}}, {$group: {_id: \"$v\", s: {$max: \"$s\"}}}]",
        "[{$facet: {a: [{$group: {_id: \"$v\", n: {$sum: 1}}}, {$sort: {_id: 1}}], b: [{$sort: {k: -1, _id: 1}}, {$limit: 7}, {$project: {k: 1}}], c: [{$match: {v: 1}}, {$count: \"n\"}]}}]",
        "[{$facet: {a: [{$match: {v: 3}}, {$sort: {k: 1, _id: -1}}, {$skip: 3}, {$limit: 4}, {$project: {k: 1}}], b: [{$skip: 40}, {$limit: 6}, {$project: {_id: 1}}], c: [{$unwind: \"$n\"}, {$limit: 9}, {$project: {n: 1}}], d: [{$sortByCount: \"$v\"}]}}]",
        "[{$facet: {a: [{$group: {_id: \"$v\"}}, {$sort: {_id: 1}}], b: [{$match: {v: 4, k: {$lt: 100}}}, {$project: {k: 1}}], c: [{$limit: 2}, {$project: {k: 1}}]}}]",
        "[{$facet: {a: [{$match: {$expr: {$gt: [{$divide: [1, \"$z\"]}, 2]}}}, {$limit: 1}], b: [{$count: \"n\"}]}}]",
        "[{$sort: {t: 1, k: 1, _id: -1}}, {$limit: 30}, {$project: {k: 1}}]",
        "[{$sort: {k: 1}}, {$skip: 100}, {$limit: 2000}, {$project: {k: 1}}]",
        "[{$project: {k: 1, r: {$divide: [1, \"$z\"]}}}, {$sort: {r: 1}}, {$limit: 3}]",
        "[{$bucketAuto: {groupBy: \"$k\", buckets: 7, output: {n: {$sum: 1}, v: {$avg: \"$v\"}}}}]",
        "[{$bucketAuto: {groupBy: {$divide: [\"$k\", \"$z\"]}, buckets: 3}}]",
        "[{$setWindowFields: {partitionBy: \"$k\", sortBy: {_id: 1}, output: {s: {$sum: \"$v\", window: {documents: [\"unbounded\", \"current\"]}}, r: {$rank: {}}, n: {$avg: \"$_id\", window: {documents: [-1, 2]}}}}}, {$project: {t: 0, n: 0}}]",
        "[{$setWindowFields: {partitionBy: {$cond: [{$lt: [\"$k\", 2500]}, 0, \"$k\"]}, sortBy: {k: 1, _id: 1}, output: {s: {$push: \"$_id\", window: {documents: [-2, 1]}}, d: {$shift: {output: \"$k\", by: 1}}}}}, {$project: {s: 1, d: 1}}]",
        "[{$setWindowFields: {partitionBy: \"$v\", sortBy: {_id: 1}, output: {s: {$sum: {$divide: [1, \"$z\"]}, window: {documents: [-3, 0]}}}}}, {$project: {s: 1}}]",
        "[{$setWindowFields: {partitionBy: {$cond: [{$eq: [\"$_id\", 9001]}, \"$n\", \"$v\"]}, output: {s: {$sum: 1}}}}, {$project: {s: 1}}]",
        "[{$setWindowFields: {partitionBy: \"$gone\", sortBy: {k: 1}, output: {s: {$sum: \"$v\", window: {range: [-5, 5]}}}}}, {$group: {_id: \"$s\", n: {$sum: 1}}}, {$sort: {_id: 1}}]",
        "[{$facet: {a: [{$count: \"n\"}], b: [{$group: {_id: {$divide: [1, \"$z\"]}}}], c: [{$limit: 1}]}}]",
    ] {
        let pipeline = parse_doc(&format!("{{s: {stages}}}")).unwrap();
        let pipeline = pipeline.get("s").unwrap().as_array().unwrap();
        let request = AggregateRequest {
            namespace: NAME.into(),
            pipeline: documents(pipeline).map(Doc::to_owned).collect(),
            ..AggregateRequest::default()
        };
        let run = |threads, memory, batch| {
            let views = FreshViews::new(&store).unwrap();
            let mut params = on(threads);
            (params.group_bytes_max, params.stage_bytes_max) = (memory, memory);
            let mut execution = open(&request, &views, params).unwrap();
            outcome(&store, &mut execution, batch)
        };
        for memory in [1 << 30, 100_000] {
            let (alone, helped) = (run(1, memory, 1000), run(4, memory, 1000));
            assert!(alone == helped, "{stages} {memory}");
            // Where many rows are wanted, more is done ahead.
            let at_once = run(4, memory, 1_000_000).0;
            assert!(alone.0 == at_once, "{stages} {memory} at once");
        }
    }
}

/// Writers run meanwhile: a document that exists all the time is returned exactly once.
#[test]
fn documents_that_stay_come_once() {
    let store = filled();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for id in DOCS..DOCS + 3000 {
                insert_all(&store, NAME, [doc! { "_id": id, "v": 100 }.as_doc()]);
            }
        });
        let request = FindRequest {
            namespace: NAME.into(),
            filter: doc! { "v": { "$lt": 7 } },
            ..FindRequest::default()
        };
        for _ in 0..5 {
            let views = FreshViews::new(&store).unwrap();
            let mut execution = open(&request, &views, on(3)).unwrap();
            let ids: Vec<i64> = drain(&store, &mut execution, 500)
                .iter()
                .filter_map(|doc| doc.get("_id")?.as_number()?.exact_i64())
                .collect();
            assert!(ids.is_sorted());
            let there = (0..i64::from(DOCS))
                .filter(|id| !(2000..6500).contains(id) && id % 7 != 5 && *id < 11_500);
            assert!(ids.iter().copied().eq(there));
        }
    });
}
