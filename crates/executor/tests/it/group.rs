//! `$group`: batches compared with single documents, memory compared with disk, and the memory
//! limits.

use super::*;
use quire_document::testing::Generator;
use quire_document::{Value, ValueBuf, compare, doc};
use quire_executor::open;
use quire_planner::AggregateRequest;

fn aggregate(
    store: &Arc<Store>,
    pipeline: Vec<DocBuf>,
    params: ExecParams,
    disk: bool,
) -> Result<Vec<DocBuf>> {
    let request = AggregateRequest {
        namespace: "db.c".into(),
        pipeline,
        allow_disk_use: Some(disk),
        ..AggregateRequest::default()
    };
    let views = FreshViews::new(store)?;
    try_drain(store, &mut open(&request, &views, params)?, 1000)
}

fn sorted(mut docs: Vec<DocBuf>) -> Vec<DocBuf> {
    docs.sort_by(|a, b| compare(a.as_doc().into(), b.as_doc().into(), None));
    docs
}

/// Returns every accumulator, over paths, constants and expressions.
fn all_accumulators() -> DocBuf {
    let by = doc! { "n": 1, "_id": 1 };
    doc! {
        "sum": { "$sum": "$n" }, "one": { "$sum": 1 }, "count": { "$count": {} },
        "product": { "$sum": { "$multiply": ["$n", 2] } },
        "large": { "$sum": { "$cond": [{ "$gt": ["$n", 3] }, 1, 0] } },
        "avg": { "$avg": "$n" }, "min": { "$min": "$v" }, "max": { "$max": "$v" },
        "first": { "$first": "$v" }, "last": { "$last": "$v" },
        "push": { "$push": "$v" }, "set": { "$addToSet": "$v" },
        "objects": { "$push": { "n": "$n", "root": "$$ROOT._id" } },
        "merged": { "$mergeObjects": "$d" }, "sd": { "$stdDevPop": "$one" },
        "sample": { "$stdDevSamp": "$one" },
        "firstN": { "$firstN": { "input": "$v", "n": 2 } },
        "lastN": { "$lastN": { "input": "$v", "n": 2 } },
        "minN": { "$minN": { "input": "$n", "n": 3 } },
        "maxN": { "$maxN": { "input": "$n", "n": 3 } },
        "top": { "$top": { "sortBy": &by, "output": "$v" } },
        "topN": { "$topN": { "sortBy": &by, "output": "$n", "n": 2 } },
        "bottom": { "$bottom": { "sortBy": &by, "output": "$_id" } },
        "bottomN": { "$bottomN": { "sortBy": &by, "output": "$_id", "n": 2 } },
        "median": { "$median": { "input": "$n", "method": "approximate" } },
        "percentile": { "$percentile": { "input": "$n", "p": [0.1, 0.9], "method": "approximate" } },
        "union": { "$setUnion": "$list" }, "concat": { "$concatArrays": "$list" },
    }
}

fn group(key: ValueBuf) -> DocBuf {
    let fields = all_accumulators();
    let stage = DocBuf::build(|writer| {
        writer.append("_id", &key).append_all(fields.as_doc());
    });
    doc! { "$group": &stage }
}

/// Returns documents whose numbers have the same sum in any order: some of one type, some of
/// several.
fn filled(random: &mut Generator, count: i32) -> Arc<Store> {
    let store = store();
    let mixed = random.one_in(2);
    let docs: Vec<DocBuf> = (0..count)
        .map(|id| {
            let number = random.below(40) as i32;
            let n = match random.below(4) {
                1 if mixed => ValueBuf::new(i64::from(number) << 20),
                2 if mixed => ValueBuf::new(f64::from(number) * 0.25),
                _ => ValueBuf::new(number),
            };
            let v = if mixed { random.value() } else { ValueBuf::new(number) };
            let key = if mixed && random.one_in(3) {
                random.value()
            } else {
                ValueBuf::new(random.below(30) as i32)
            };
            let mut doc = doc! {
                "_id": id, "k": &key, "one": 1, "d": { "a": number, "b": id },
                "list": [number, "x"], "t": "a text that takes some room",
            };
            if !random.one_in(10) {
                doc.append("n", &n).append("v", &v);
            }
            doc
        })
        .collect();
    insert_all(&store, "db.c", docs.iter().map(DocBuf::as_doc));
    store
}

fn keys() -> Vec<ValueBuf> {
    vec![
        ValueBuf::new("$k"),
        ValueBuf::new(Value::Null),
        doc! { "k": "$k", "odd": { "$mod": ["$one", 2] } }.into(),
        doc! { "$ifNull": ["$v", "none"] }.into(),
    ]
}

/// A batch is grouped like its documents one by one (after a stage that passes them singly), and
/// groups from disk are the same as groups from memory.
#[test]
fn batches_and_spills_change_nothing() {
    let mut random = Generator::new(5);
    for round in 0..6 {
        let store = filled(&mut random, 700);
        for key in keys() {
            let group = group(key);
            let whole = aggregate(&store, vec![group.clone()], params(), true).unwrap();
            let single = doc! { "$redact": "$$KEEP" };
            let one_by_one =
                aggregate(&store, vec![single, group.clone()], params(), true).unwrap();
            assert_eq!(whole, one_by_one, "{round} {group:?}");
            let mut small = params();
            small.group_bytes_max = 64 * 1024;
            let spilled = aggregate(&store, vec![group.clone()], small, true).unwrap();
            assert_eq!(sorted(whole), sorted(spilled), "{round} {group:?}");
        }
    }
}

/// The error is that of the first document that has one, whichever the batch found first.
#[test]
fn the_first_error_counts() {
    let store = store();
    let docs: Vec<DocBuf> = (0..2000)
        .map(|id| match id {
            700 => doc! { "_id": id, "a": 1, "b": "x", "c": 1 },
            900 => doc! { "_id": id, "a": 1, "b": 1, "c": 0 },
            _ => doc! { "_id": id, "a": 1, "b": 2, "c": 1 },
        })
        .collect();
    insert_all(&store, "db.c", docs.iter().map(DocBuf::as_doc));
    let code = |fields: DocBuf, skip: i32| {
        let stage = DocBuf::build(|writer| {
            writer.append("_id", Value::Null).append_all(fields.as_doc());
        });
        let filter = doc! { "$match": { "_id": { "$gte": skip } } };
        aggregate(&store, vec![filter, doc! { "$group": &stage }], params(), true)
            .unwrap_err()
            .code()
            .number()
    };
    let divided = doc! { "$sum": { "$divide": ["$a", "$c"] } };
    let added = doc! { "$push": { "$add": ["$a", "$b"] } };
    assert_eq!(code(doc! { "x": &divided, "y": &added }, 0), 14);
    assert_eq!(code(doc! { "x": &divided, "y": &added }, 800), 4848401);
    // The accumulator fails at document 700, the evaluation of another field at document 900.
    let merged = doc! { "$mergeObjects": { "$cond": [{ "$eq": ["$b", "x"] }, 1, {}] } };
    assert_eq!(code(doc! { "x": &divided, "y": &merged }, 0), 5911200);
}

#[test]
fn memory_ends_in_an_error_or_on_disk() {
    let store = store();
    let text = "x".repeat(1000);
    let docs: Vec<DocBuf> =
        (0..3000).map(|id| doc! { "_id": id, "t": text.as_str(), "k": (id % 100) }).collect();
    insert_all(&store, "db.c", docs.iter().map(DocBuf::as_doc));
    for accumulator in ["$push", "$addToSet"] {
        let run = |disk: bool, directory: bool| {
            let mut params = params();
            params.group_bytes_max = 1 << 20;
            if !directory {
                params.spill_directory = None;
            }
            let value = doc! { "$concat": ["$t", { "$toString": "$_id" }] };
            let pipeline = vec![
                doc! { "$group": { "_id": "$k", "all": { accumulator: &value } } },
                doc! { "$group": { "_id": Value::Null, "n": { "$sum": { "$size": "$all" } } } },
            ];
            aggregate(&store, pipeline, params, disk)
        };
        let spilled = run(true, true).unwrap();
        assert_eq!(spilled, [doc! { "_id": Value::Null, "n": 3000 }], "{accumulator}");
        for (disk, directory) in [(false, true), (true, false)] {
            let code = run(disk, directory).unwrap_err().code().number();
            assert_eq!(code, 292, "{accumulator} {disk} {directory}");
        }
    }
}

/// A group that exceeds the memory of an accumulator: spilling does not help.
#[test]
fn one_group_has_a_limit() {
    let store = store();
    let docs: Vec<DocBuf> = (0..64).map(|id| doc! { "_id": id }).collect();
    insert_all(&store, "db.c", docs.iter().map(DocBuf::as_doc));
    let long = "x".repeat(2 << 20);
    for accumulator in ["$push", "$addToSet"] {
        let value = doc! { "$concat": [long.as_str(), { "$toString": "$_id" }] };
        let stage = doc! { "$group": { "_id": Value::Null, "all": { accumulator: &value } } };
        for disk in [true, false] {
            let error = aggregate(&store, vec![stage.clone()], params(), disk).unwrap_err();
            let number = error.code().number();
            assert!(number == 146 || (!disk && number == 292), "{accumulator} {disk}: {error}");
        }
    }
}

/// Returns a condition on a group key: of any kind, mostly with a value that some document has.
fn test_of_key(random: &mut Generator) -> DocBuf {
    let value = match random.one_in(2) {
        true => random.value(),
        false => ValueBuf::new(random.below(4) as i32),
    };
    let (value, other) = (&value, random.below(4) as i32);
    match random.below(10) {
        0 => doc! { "$eq": value },
        1 => doc! { "$ne": value },
        2 => doc! { "$gt": other },
        3 => doc! { "$lte": value },
        4 => doc! { "$in": [value, other] },
        5 => doc! { "$nin": [value, other] },
        6 => doc! { "$exists": random.one_in(2) },
        7 => doc! { "$not": { "$gte": other } },
        8 => doc! { "$elemMatch": { "$gte": other } },
        _ => doc! { "$type": "int" },
    }
}

/// A filter on a group's key finds the same groups whether the planner moves it before the stage or
/// not, with and without an index.
#[test]
fn a_filter_on_the_key_means_the_same_before_the_stage() {
    let mut random = Generator::new(11);
    for round in 0..30 {
        let store = store();
        let docs: Vec<DocBuf> = (0..60)
            .map(|id| {
                let mut doc = doc! { "_id": id };
                for name in ["a", "b"] {
                    match random.below(6) {
                        0 => {}
                        1 => drop(doc.append(name, &random.value())),
                        2 => drop(doc.append(name, Value::Null)),
                        3 => {
                            let items = doc! { "items": [random.below(4) as i32, 9] };
                            doc.append(name, items.get("items").unwrap());
                        }
                        _ => drop(doc.append(name, random.below(4) as i32)),
                    }
                }
                doc
            })
            .collect();
        insert_all(&store, "db.c", docs.iter().map(DocBuf::as_doc));
        if round % 2 == 0 {
            let index = doc! { "key": { "a": 1 }, "name": "a" };
            create_indexes(&store, "db.c", std::iter::once(index.as_doc())).unwrap();
        }
        for _ in 0..40 {
            let (key, path) = match random.below(4) {
                0 => (ValueBuf::from(doc! { "x": "$a", "y": "$b" }), "_id.y"),
                1 => (ValueBuf::from(doc! { "x": "$a" }), "_id.x"),
                2 => (ValueBuf::new("$a.b"), "_id"),
                _ => (ValueBuf::new("$a"), "_id"),
            };
            let (one, two) = (&test_of_key(&mut random), &test_of_key(&mut random));
            let filter = match random.one_in(3) {
                true => doc! { "$or": [{ (path): one }, { (path): two }] },
                false => doc! { (path): one },
            };
            let group = doc! { "_id": &key, "n": { "$sum": 1 }, "ids": { "$sum": "$_id" } };
            let pipeline = vec![doc! { "$group": &group }, doc! { "$match": &filter }];
            let written = ExecParams { as_written: true, ..params() };
            let wanted = aggregate(&store, pipeline.clone(), written, true);
            let found = aggregate(&store, pipeline.clone(), params(), true);
            match (found, wanted) {
                (Ok(found), Ok(wanted)) => {
                    assert_eq!(sorted(found), sorted(wanted), "{round} {pipeline:?}");
                }
                (found, wanted) => assert_eq!(found.is_err(), wanted.is_err(), "{pipeline:?}"),
            }
        }
    }
}
