//! `$lookup` and `$graphLookup`: every strategy has the result of a comparison of all pairs.

use super::*;
use quire_document::testing::Generator;
use quire_document::{Value, ValueBuf, compare, doc};
use quire_executor::open;
use quire_planner::AggregateRequest;

const KEYS: usize = 12;

/// Returns a value for a join to compare; `None` for a missing field.
fn value(random: &mut Generator, nested: bool) -> Option<ValueBuf> {
    Some(match random.below(if nested { 10 } else { 8 }) {
        0 => return None,
        1 => ValueBuf::new(Value::Null),
        2 => ValueBuf::new(random.below(KEYS as u64) as f64),
        3 => ValueBuf::new(["a", "b"][random.below(2) as usize]),
        4 => ValueBuf::new(&doc! { "x": random.below(2) as i32 }),
        5..8 => ValueBuf::new(random.below(KEYS as u64) as i32),
        _ => {
            let mut elements = Vec::new();
            for _ in 0..random.below(4) {
                let nested = random.one_in(4);
                elements.push(value(random, nested).unwrap_or_else(|| ValueBuf::new(Value::Null)));
            }
            let elements = ArrayBuf::build(|writer| {
                elements.iter().for_each(|element| {
                    writer.push(element.as_value());
                });
            });
            ValueBuf::new(&elements)
        }
    })
}

fn documents_with(random: &mut Generator, count: usize) -> Vec<DocBuf> {
    let one = |id: usize, random: &mut Generator| {
        let mut doc = doc! { "_id": id as i32, "v": random.below(5) as i32 };
        if let Some(key) = value(random, true) {
            doc.append("k", &key);
        }
        doc
    };
    (0..count).map(|id| one(id, random)).collect()
}

/// Returns true if a filter by the value of the other side finds the document.
fn is_equal(local: Option<Value<'_>>, foreign: Option<Value<'_>>) -> bool {
    let same = |a: Value<'_>, b: Value<'_>| compare(a, b, None).is_eq();
    let elements: Vec<Value<'_>> = match local {
        Some(Value::Array(array)) if !array.is_empty() => array.iter().collect(),
        Some(Value::Array(_)) | None => vec![Value::Null],
        Some(value) => vec![value],
    };
    let found: Vec<Value<'_>> = match foreign {
        Some(Value::Array(array)) => array.iter().chain([Value::Array(array)]).collect(),
        other => vec![other.unwrap_or(Value::Null)],
    };
    elements.iter().any(|a| found.iter().any(|b| same(*a, *b)))
}

fn run(store: &Arc<Store>, pipeline: Vec<DocBuf>, bytes: usize, batch: usize) -> Vec<DocBuf> {
    run_with(store, pipeline, batch, |params| params.stage_bytes_max = bytes)
}

fn run_with(
    store: &Arc<Store>,
    pipeline: Vec<DocBuf>,
    batch: usize,
    change: impl FnOnce(&mut ExecParams),
) -> Vec<DocBuf> {
    let namespace = "db.local".into();
    let request = AggregateRequest { namespace, pipeline, ..AggregateRequest::default() };
    let mut params = params();
    change(&mut params);
    let mut execution = open(&request, &FreshViews::new(store).unwrap(), params).unwrap();
    drain(store, &mut execution, batch)
}

/// Returns the `_id`s of the documents that each document was joined with.
fn joined(docs: &[DocBuf]) -> Vec<(i32, Vec<i32>)> {
    let id = |doc: Doc<'_>| doc.get("_id").and_then(|id| id.as_number()).unwrap().to_f64() as i32;
    let of = |doc: &DocBuf| {
        let found = doc.get("j").and_then(|found| found.as_array()).unwrap();
        let mut ids: Vec<i32> = documents(found).map(id).collect();
        ids.sort_unstable();
        (id(doc.as_doc()), ids)
    };
    docs.iter().map(of).collect()
}

/// Calls `check` with stores that have the same documents and different indexes.
fn for_each_store(local: &[DocBuf], foreign: &[DocBuf], check: impl FnMut(&Arc<Store>, &str)) {
    let indexes = [
        None,
        Some(doc! { "key": { "k": 1 }, "name": "k_1" }),
        Some(doc! { "key": { "k": (-1), "v": 1 }, "name": "kv" }),
        Some(doc! { "key": { "k": 1 }, "name": "sparse", "sparse": true }),
        Some(doc! { "key": { "v": 1, "k": 1 }, "name": "behind" }),
    ];
    for_each_index(&indexes, local, foreign, check);
}

/// Calls `check` with stores whose indexes do not have every key.
fn for_each_partial_store(
    local: &[DocBuf],
    foreign: &[DocBuf],
    check: impl FnMut(&Arc<Store>, &str),
) {
    let exists = doc! { "k": { "$exists": true } };
    let indexes = [
        Some(doc! { "key": { "k": 1 }, "name": "partial", "partialFilterExpression": &exists }),
        Some(doc! { "key": { "$**": 1 }, "name": "wildcard" }),
    ];
    for_each_index(&indexes, local, foreign, check);
}

fn for_each_index(
    indexes: &[Option<DocBuf>],
    local: &[DocBuf],
    foreign: &[DocBuf],
    mut check: impl FnMut(&Arc<Store>, &str),
) {
    for index in indexes {
        let store = store();
        insert_all(&store, "db.local", local.iter().map(DocBuf::as_doc));
        insert_all(&store, "db.foreign", foreign.iter().map(DocBuf::as_doc));
        if let Some(index) = index {
            create_indexes(&store, "db.foreign", [index.as_doc()].into_iter()).unwrap();
        }
        check(&store, &format!("{index:?}"));
    }
}

#[test]
fn every_strategy_equals_a_comparison_of_all_pairs() {
    let random = &mut Generator::new(5);
    for round in 0..12 {
        let (locals, foreigns) = (1 + random.below(60), random.below(90));
        let local = documents_with(random, locals as usize);
        let foreign = documents_with(random, foreigns as usize);
        let key = |doc: &DocBuf| doc.get("k").map(ValueBuf::new);
        let pairs = |passes: &dyn Fn(&DocBuf, &DocBuf) -> bool| -> Vec<(i32, Vec<i32>)> {
            let of = |(at, one): (usize, &DocBuf)| {
                let found = foreign.iter().enumerate().filter(|(_, other)| passes(one, other));
                (at as i32, found.map(|(at, _)| at as i32).collect())
            };
            local.iter().enumerate().map(of).collect()
        };
        let by_field = pairs(&|one, other| is_equal(one.get("k"), other.get("k")));
        let by_value = pairs(&|one, other| match (key(one), key(other)) {
            (Some(a), Some(b)) => compare(a.as_value(), b.as_value(), None).is_eq(),
            (a, b) => a.is_none() && b.is_none(),
        });
        let field = doc! { "$lookup": {
            "from": "foreign", "localField": "k", "foreignField": "k", "as": "j"
        } };
        let value = doc! { "$lookup": {
            "from": "foreign", "let": { "x": "$k" }, "as": "j",
            "pipeline": [{ "$match": { "$expr": { "$eq": ["$k", "$$x"] } } }]
        } };
        // No equality can be used: all pairs are compared.
        let compared = doc! { "$lookup": {
            "from": "foreign", "let": { "x": "$k" }, "as": "j",
            "pipeline": [{ "$match": { "$expr": { "$not": { "$ne": ["$k", "$$x"] } } } }]
        } };
        let check = |store: &Arc<Store>, index: &str| {
            for (bytes, batch) in [(1 << 20, 1000), (4096, 7), (300, 1)] {
                let what = format!("round {round}, index {index}, {bytes} bytes");
                let run = |stage: &DocBuf| joined(&run(store, vec![stage.clone()], bytes, batch));
                assert_eq!(run(&field), by_field, "by field: {what}");
                assert_eq!(run(&value), by_value, "by value: {what}");
                assert_eq!(run(&compared), by_value, "compared: {what}");
            }
        };
        for_each_store(&local, &foreign, check);
        for_each_partial_store(&local, &foreign, check);
    }
}

#[test]
fn unwinding_and_filtering_inside_the_join_gives_the_same_result() {
    let random = &mut Generator::new(6);
    let local = documents_with(random, 80);
    let foreign = documents_with(random, 120);
    let lookup = doc! { "$lookup": {
        "from": "foreign", "localField": "k", "foreignField": "k", "as": "j"
    } };
    // A stage between them that changes nothing and that no stage moves across.
    let apart = doc! { "$replaceWith": "$$ROOT" };
    let sort = doc! { "$sort": { "_id": 1, "j._id": 1 } };
    let filters = [
        doc! { "$match": { "j.v": { "$gte": 3 } } },
        doc! { "$match": { "j.v": 2, "v": { "$lt": 3 } } },
        doc! { "$match": { "$or": [{ "j.v": 1 }, { "j.k": Value::Null }] } },
        doc! { "$match": { "$or": [{ "j.v": 1 }, { "v": 2 }] } },
    ];
    for_each_store(&local, &foreign, |store, index| {
        for preserve in [false, true] {
            for filter in &filters {
                let unwind = doc! { "$unwind": {
                    "path": "$j", "preserveNullAndEmptyArrays": preserve
                } };
                let one = [&lookup, &unwind, filter, &sort].map(DocBuf::clone).to_vec();
                let many = [&lookup, &apart, &unwind, &apart, filter, &sort].map(DocBuf::clone);
                let wanted = run(store, many.to_vec(), 1 << 20, 1000);
                for (bytes, batch) in [(1 << 20, 1000), (64 << 10, 3)] {
                    let found = run(store, one.clone(), bytes, batch);
                    assert_eq!(found, wanted, "{filter:?}, {preserve}, {index}");
                }
            }
        }
    });
}

/// The operators of a pipeline for each row start again. Each row finds what it finds alone.
#[test]
fn a_pipeline_for_each_row_starts_again() {
    let random = &mut Generator::new(11);
    let local = documents_with(random, 40);
    let foreign = documents_with(random, 150);
    let add = doc! { "$set": { "w": { "$add": ["$v", "$$x"] } } };
    let sort = doc! { "$sort": { "v": 1, "_id": (-1) } };
    let count = doc! { "$group": { "_id": "$v", "n": { "$sum": "$$x" } } };
    let tails: [Vec<DocBuf>; 6] = [
        vec![add.clone(), sort.clone()],
        vec![add.clone(), sort.clone(), doc! { "$skip": 1 }, doc! { "$limit": 3 }],
        vec![add.clone(), doc! { "$limit": 2 }, sort.clone()],
        vec![add.clone(), doc! { "$skip": 2 }, count.clone(), doc! { "$sort": { "_id": 1 } }],
        vec![sort.clone(), doc! { "$limit": 4 }, count, doc! { "$sort": { "_id": (-1) } }],
        vec![
            sort,
            doc! { "$setWindowFields": {
                "sortBy": { "_id": 1 }, "output": { "sum": { "$sum": "$v", "window": { "documents": [-1, 0] } } }
            } },
            add,
        ],
    ];
    for_each_store(&local, &foreign, |store, index| {
        for tail in &tails {
            let pipeline: ArrayBuf = tail.iter().map(DocBuf::as_doc).collect();
            let lookup = doc! { "$lookup": {
                "from": "foreign", "localField": "k", "foreignField": "k", "as": "j",
                "let": { "x": "$v" }, "pipeline": &pipeline
            } };
            let alone = (0..local.len() as i32).flat_map(|id| {
                let one = vec![doc! { "$match": { "_id": id } }, lookup.clone()];
                run(store, one, 1 << 20, 1000)
            });
            let alone: Vec<DocBuf> = alone.collect();
            assert_eq!(alone.len(), local.len());
            for (bytes, batch) in [(1 << 20, 1000), (4096, 7)] {
                let found = run(store, vec![lookup.clone()], bytes, batch);
                assert_eq!(found, alone, "{tail:?}, {index}, {bytes} bytes");
            }
        }
    });
}

/// Filters move to the foreign side, which keeps the fields that are read later.
#[test]
fn only_the_fields_of_later_stages_are_needed() {
    let random = &mut Generator::new(8);
    let local = documents_with(random, 60);
    let foreign = documents_with(random, 90);
    let joins = [
        doc! { "from": "foreign", "localField": "k", "foreignField": "k", "as": "j" },
        doc! { "from": "foreign", "localField": "k.x", "foreignField": "k.x", "as": "j" },
        doc! {
            "from": "foreign", "localField": "k", "foreignField": "k", "as": "j.in",
            "pipeline": [{ "$match": { "v": { "$gte": 1 } } }, { "$set": { "w": { "$add": ["$v", 1] } } }]
        },
        doc! {
            "from": "foreign", "let": { "x": "$k" }, "as": "j",
            "pipeline": [{ "$match": { "$expr": { "$eq": ["$k", "$$x"] } } }, { "$sort": { "v": 1, "_id": 1 } }]
        },
        doc! { "from": "foreign", "pipeline": [{ "$match": { "v": 3 } }], "as": "j" },
    ];
    let behind = [
        vec![doc! { "$group": { "_id": "$_id", "n": { "$sum": { "$sum": "$j.v" } } } }],
        vec![
            doc! { "$group": { "_id": "$_id", "n": { "$sum": { "$size": { "$ifNull": ["$j.k", []] } } } } },
        ],
        vec![doc! { "$match": { "j.0.v": 2 } }, doc! { "$project": { "j.v": 1 } }],
        vec![doc! { "$match": { "j.k.0": 2 } }, doc! { "$project": { "v": "$j.v" } }],
        vec![
            doc! { "$match": { "$or": [{ "j.k.x": 1 }, { "k.0": 2 }] } },
            doc! { "$group": { "_id": "$_id" } },
        ],
        vec![
            doc! { "$match": { "j": { "$elemMatch": { "v": 1 } } } },
            doc! { "$project": { "_id": 1 } },
        ],
        vec![
            doc! { "$unwind": "$j" },
            doc! { "$match": { "j.v": { "$lt": 3 } } },
            doc! { "$project": { "w": "$j.w", "x": "$j.k.x" } },
        ],
        vec![
            doc! { "$unwind": "$j" },
            doc! { "$match": { "j.k.0": { "$gte": 0 } } },
            doc! { "$group": { "_id": "$j.v", "n": { "$sum": 1 } } },
        ],
        vec![
            doc! { "$unwind": { "path": "$j", "preserveNullAndEmptyArrays": true } },
            doc! { "$sort": { "j.k.0": 1, "_id": 1, "j._id": 1 } },
            doc! { "$project": { "j.v": 1 } },
        ],
    ];
    let in_order = |mut docs: Vec<DocBuf>| {
        docs.sort_by_key(|doc| format!("{doc:?}"));
        docs
    };
    for_each_store(&local, &foreign, |store, index| {
        for join in &joins {
            for behind in &behind {
                let mut pipeline = vec![doc! { "$lookup": join }];
                pipeline.extend(behind.iter().cloned());
                let wanted =
                    run_with(store, pipeline.clone(), 1000, |params| params.as_written = true);
                let wanted = in_order(wanted);
                for (bytes, batch) in [(1 << 20, 1000), (8 << 10, 3)] {
                    let found = in_order(run(store, pipeline.clone(), bytes, batch));
                    assert_eq!(found, wanted, "{pipeline:?}, {index}, {bytes} bytes");
                }
            }
        }
    });
}

/// With few and with many keys, which are all known before the first document is joined.
#[test]
fn joins_of_many_documents_find_the_same_by_every_strategy() {
    let foreign: Vec<DocBuf> =
        (0..2400).map(|id| doc! { "_id": id, "k": id * 7 % 600, "v": id }).collect();
    let sum = |locals: i32| -> i64 {
        let of = |local: i32| (0..2400).filter(move |id| id * 7 % 600 == local % 800);
        (0..locals).flat_map(of).map(i64::from).sum()
    };
    for locals in [3, 300, 2000] {
        let local: Vec<DocBuf> = (0..locals).map(|id| doc! { "_id": id, "k": id % 800 }).collect();
        let join = doc! { "$lookup": {
            "from": "foreign", "localField": "k", "foreignField": "k", "as": "j"
        } };
        let total =
            doc! { "$group": { "_id": Value::Null, "n": { "$sum": { "$toLong": "$j.v" } } } };
        let pipeline = vec![join, doc! { "$unwind": "$j" }, total];
        let wanted = vec![doc! { "_id": Value::Null, "n": sum(locals) }];
        for_each_store(&local, &foreign, |store, index| {
            for bytes in [64 << 20, 100 << 10] {
                let found = run(store, pipeline.clone(), bytes, 1000);
                assert_eq!(found, wanted, "{locals} documents, {index}, {bytes} bytes");
            }
        });
    }
}

#[test]
fn a_search_finds_all_reachable_documents() {
    let random = &mut Generator::new(9);
    for _ in 0..10 {
        let count = 1 + random.below(40);
        let nodes: Vec<DocBuf> = (0..count)
            .map(|id| {
                let to: ArrayBuf =
                    (0..random.below(3)).map(|_| random.below(count) as i32).collect();
                doc! { "_id": id as i32, "k": id as i32, "to": &to }
            })
            .collect();
        let targets = |id: usize| -> Vec<usize> {
            let to = nodes[id].get("to").and_then(|to| to.as_array()).unwrap();
            to.iter().map(|to| to.as_number().unwrap().to_f64() as usize).collect()
        };
        let reached = |start: usize, depth_max: usize| {
            let (mut seen, mut frontier) = (vec![start], vec![start]);
            for _ in 0..depth_max {
                let next: Vec<usize> = frontier.iter().flat_map(|id| targets(*id)).collect();
                frontier = next.into_iter().filter(|id| !seen.contains(id)).collect();
                frontier.sort_unstable();
                frontier.dedup();
                seen.extend(&frontier);
            }
            seen.sort_unstable();
            seen.into_iter().map(|id| id as i32).collect::<Vec<i32>>()
        };
        for depth_max in [0, 1, 3, 50] {
            let wanted: Vec<(i32, Vec<i32>)> =
                (0..nodes.len()).map(|id| (id as i32, reached(id, depth_max))).collect();
            let stage = doc! { "$graphLookup": {
                "from": "foreign", "startWith": "$k", "connectFromField": "to",
                "connectToField": "k", "as": "j", "maxDepth": depth_max as i32
            } };
            for_each_store(&nodes, &nodes, |store, index| {
                for bytes in [1 << 20, 512] {
                    let found = joined(&run(store, vec![stage.clone()], bytes, 5));
                    assert_eq!(found, wanted, "{index}, {bytes} bytes, depth {depth_max}");
                }
            });
        }
    }
}

#[test]
fn branches_read_the_same_from_memory_and_from_disk() {
    let random = &mut Generator::new(3);
    let docs = documents_with(random, 200);
    let stages = vec![doc! { "$facet": {
        "all": [{ "$sort": { "_id": (-1) } }],
        "groups": [{ "$group": { "_id": "$v", "n": { "$sum": 1 } } }, { "$sort": { "_id": 1 } }],
        "some": [{ "$match": { "v": 1 } }, { "$limit": 3 }],
        "both": [{ "$unionWith": { "coll": "foreign", "pipeline": [{ "$limit": 2 }] } }],
        "none": [{ "$match": { "v": 77 } }]
    } }];
    for_each_store(&docs, &docs, |store, index| {
        let wanted = run(store, stages.clone(), 1 << 20, 1);
        assert_eq!(run(store, stages.clone(), 2000, 1), wanted, "{index}");
        let count =
            |name: &str| wanted[0].get(name).and_then(|all| all.as_array()).unwrap().count();
        assert_eq!([count("all"), count("both"), count("none")], [200, 202, 0]);
    });
}

#[test]
fn stages_with_a_variable_are_computed_for_each_document() {
    let store = store();
    let local = [1, 2, 3].map(|n| doc! { "_id": n, "n": n });
    let foreign = [1, 2, 3, 4].map(|n| doc! { "_id": n, "x": n });
    insert_all(&store, "db.local", local.iter().map(DocBuf::as_doc));
    insert_all(&store, "db.foreign", foreign.iter().map(DocBuf::as_doc));
    let lengths = |stage: DocBuf| -> Vec<usize> {
        let lookup = doc! { "$lookup": {
            "from": "foreign", "let": { "k": "$n" }, "as": "j",
            "pipeline": [{ "$sort": { "_id": 1 } }, &stage]
        } };
        let docs = run(&store, vec![lookup], 1 << 20, 1000);
        let of = |doc: &DocBuf| {
            let joined = doc.get("j").and_then(|found| found.as_array()).unwrap();
            let last = documents(joined).last().unwrap();
            last.get("v").and_then(|v| v.as_array()).unwrap().iter().count()
        };
        docs.iter().map(of).collect()
    };
    let first = doc! { "$firstN": { "input": "$x", "n": "$$k" } };
    assert_eq!(lengths(doc! { "$group": { "_id": Value::Null, "v": &first } }), [1, 2, 3]);
    let windows = doc! { "$setWindowFields": { "sortBy": { "x": 1 }, "output": { "v": &first } } };
    assert_eq!(lengths(windows), [1, 2, 3]);
}

#[test]
fn a_variable_named_current_is_no_foreign_document() {
    let store = store();
    let local = doc! { "_id": 1, "n": { "k": 7 } };
    let foreign = [doc! { "_id": 1, "k": 7 }, doc! { "_id": 2, "k": 8 }];
    insert_all(&store, "db.local", [local.as_doc()]);
    insert_all(&store, "db.foreign", foreign.iter().map(DocBuf::as_doc));
    let lookup = doc! { "$lookup": {
        "from": "foreign", "let": { "CURRENT": "$n" }, "as": "j",
        "pipeline": [{ "$match": { "$expr": { "$eq": ["$k", 7] } } }]
    } };
    assert_eq!(joined(&run(&store, vec![lookup], 1 << 20, 1000)), [(1, vec![1, 2])]);
}
