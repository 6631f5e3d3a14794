//! A `$group` that reads the first documents of each group has the same result with an index as with a
//! scan, uses the index if possible, and then examines as many keys as there are groups.

use super::*;
use quire_document::literal::{parse_doc, print};
use quire_document::testing::Generator;
use quire_document::{Value, ValueBuf, doc};
use quire_executor::{explain, open};
use quire_mql::collation::AskedCollation;
use quire_planner::{AggregateRequest, Hint, ReadRequest, Verbosity};

const NAME: &str = "d.first";

/// Pipelines, and whether an index can provide one document of each group.
const PIPELINES: &[(&str, bool)] = &[
    ("[{$group: {_id: '$a'}}]", true),
    ("[{$group: {_id: '$c.d'}}]", true),
    ("[{$match: {a: {$gte: 1}}}, {$group: {_id: '$a'}}]", true),
    ("[{$match: {a: 2}}, {$group: {_id: '$b'}}]", true),
    ("[{$match: {a: 2}}, {$sort: {b: 1}}, {$group: {_id: '$b', f: {$first: '$_id'}}}]", true),
    (
        "[{$sort: {a: 1, b: 1}}, {$group: {_id: '$a', f: {$first: '$b'}, g: {$first: '$_id'}}}]",
        true,
    ),
    ("[{$sort: {a: -1, b: -1}}, {$group: {_id: '$a', f: {$first: '$b'}}}]", true),
    (
        "[{$match: {a: {$in: [1, 2]}}}, {$sort: {a: 1, b: 1}}, {$group: {_id: '$a', f: {$first: '$b'}}}]",
        true,
    ),
    ("[{$sort: {a: 1, b: -1}}, {$group: {_id: '$a', f: {$first: '$b'}}}]", true),
    ("[{$sort: {b: 1}}, {$group: {_id: '$a', f: {$first: '$b'}}}]", true),
    ("[{$sort: {a: 1, b: 1}}, {$group: {_id: '$a', f: {$last: '$b'}}}]", true),
    ("[{$sort: {b: 1}}, {$group: {_id: {x: '$a'}, f: {$last: '$b'}}}]", true),
    ("[{$group: {_id: '$a', f: {$top: {sortBy: {b: -1}, output: '$b'}}}}]", true),
    ("[{$group: {_id: '$a', f: {$bottomN: {n: 3, sortBy: {b: -1}, output: '$b'}}}}]", true),
    ("[{$sort: {b: -1}}, {$group: {_id: '$a', f: {$firstN: {n: 2, input: '$b'}}}}]", true),
    ("[{$match: {b: {$lt: 2}}}, {$sort: {b: -1}}, {$group: {_id: '$a', f: {$first: '$b'}}}]", true),
    ("[{$match: {b: /x/}}, {$sort: {b: -1}}, {$group: {_id: '$a', f: {$first: '$b'}}}]", true),
    ("[{$match: {s: 1}}, {$sort: {b: -1}}, {$group: {_id: '$a', f: {$first: '$b'}}}]", false),
    ("[{$sort: {b: -1}}, {$group: {_id: '$a', f: {$lastN: {n: 2, input: '$b'}}}}]", false),
    ("[{$sort: {b: 1}}, {$group: {_id: '$a', f: {$first: '$b'}, g: {$last: '$b'}}}]", false),
    ("[{$sort: {b: 1, s: 1}}, {$group: {_id: '$a', f: {$first: '$b'}}}]", false),
    ("[{$group: {_id: '$a', f: {$first: '$b'}}}]", false),
    ("[{$group: {_id: {a: '$a', b: '$b'}}}]", false),
    ("[{$group: {_id: '$a', n: {$sum: 1}}}]", false),
    ("[{$limit: 9}, {$group: {_id: '$a'}}]", false),
    ("[{$group: {_id: '$s'}}]", false),
    ("[{$group: {_id: '$list'}}]", false),
];

fn value(random: &mut Generator) -> Option<ValueBuf> {
    Some(match random.below(7) {
        0 => return None,
        1 => ValueBuf::new(Value::Null),
        2 => ValueBuf::new("x"),
        _ => ValueBuf::new(random.below(4) as i32),
    })
}

fn filled(indexed: bool) -> Arc<Store> {
    let (store, mut random) = (store(), Generator::new(7));
    let docs: Vec<DocBuf> = (0..300)
        .map(|id| {
            DocBuf::build(|doc| {
                doc.append("_id", id);
                for name in ["a", "b", "s"] {
                    doc.append_some(name, value(&mut random).as_ref().map(ValueBuf::as_value));
                }
                if random.one_in(2) {
                    let inner = value(&mut random);
                    let mut c = doc.document("c");
                    c.append_some("d", inner.as_ref().map(ValueBuf::as_value));
                }
                doc.array("list").push(id % 3).push(id % 2);
            })
        })
        .collect();
    insert_all(&store, NAME, docs.iter().map(DocBuf::as_doc));
    if indexed {
        let indexes = [
            doc! { "key": { "a": 1, "b": 1 }, "name": "a_b" },
            doc! { "key": { "c.d": -1 }, "name": "c_d" },
            doc! { "key": { "s": 1 }, "name": "s", "sparse": true },
            doc! { "key": { "list": 1 }, "name": "list" },
        ];
        create_indexes(&store, NAME, indexes.iter().map(DocBuf::as_doc)).unwrap();
    }
    store
}

/// Returns a pipeline that is written as in the shell.
fn pipeline(stages: &str) -> AggregateRequest {
    let parsed = parse_doc(&format!("{{s: {}}}", stages.replace('\'', "\""))).unwrap();
    let stages = parsed.get("s").unwrap().as_array().unwrap();
    AggregateRequest {
        namespace: NAME.into(),
        pipeline: documents(stages).map(Doc::to_owned).collect(),
        ..AggregateRequest::default()
    }
}

fn run(store: &Arc<Store>, request: &AggregateRequest) -> Vec<String> {
    let views = FreshViews::new(store).unwrap();
    let mut execution = open(request, &views, params()).unwrap();
    let mut rows: Vec<String> = drain(store, &mut execution, 3)
        .iter()
        .map(|doc| print(Value::from(doc.as_doc())))
        .collect();
    rows.sort();
    rows
}

#[test]
fn an_index_gives_the_same_result_as_a_scan() {
    let (plain, indexed) = (filled(false), filled(true));
    for (stages, by_index) in PIPELINES {
        let request = pipeline(stages);
        assert_eq!(run(&plain, &request), run(&indexed, &request), "{stages}");
        let mut views = FreshViews::new(&indexed).unwrap();
        let read = ReadRequest::Aggregate(&request);
        let shown = explain(read, None, Verbosity::QueryPlanner, &mut views, params()).unwrap();
        let shown = print(Value::from(shown.as_doc()));
        assert_eq!(shown.contains("DISTINCT_SCAN"), *by_index, "{stages}: {shown}");
    }
}

const INDEXES: [&str; 8] = [
    "{key: {a: 1, b: 1}, name: 'x'}",
    "{key: {a: 1, b: -1, s: 1}, name: 'x'}",
    "{key: {a: -1, list: 1, b: 1}, name: 'x'}",
    "{key: {a: 1, b: 1, list: 1}, name: 'x'}",
    "{key: {list: 1, b: 1}, name: 'x'}",
    "{key: {a: 1, b: 1}, name: 'x', sparse: true}",
    "{key: {a: 1, b: 1}, name: 'x', partialFilterExpression: {b: {$gt: 0}}}",
    "{key: {a: 1, b: 1}, name: 'x', collation: {locale: 'en', strength: 1}}",
];

/// Returns a random pipeline whose result does not depend on the order of documents that a sort does not tell apart.
fn random_pipeline(random: &mut Generator) -> String {
    let way = |random: &mut Generator| if random.one_in(2) { "1" } else { "-1" };
    let filter = match random.below(6) {
        0 => "{a: {$gte: 1}}",
        1 => "{b: {$gt: 0}}",
        2 => "{b: {$in: [0, 2, 'x']}}",
        3 => "{a: {$in: [1, null]}, b: {$lte: 2}}",
        _ => "{}",
    };
    let order = match random.below(3) {
        0 => format!("{{b: {}}}", way(random)),
        1 => format!("{{a: {}, b: {}}}", way(random), way(random)),
        _ => format!("{{b: {}, a: {}}}", way(random), way(random)),
    };
    let key = *random.pick(&["'$a'", "'$a'", "'$list'", "{k: '$a'}"]).unwrap();
    let n = 1 + random.below(3);
    let accumulator = match random.below(8) {
        0 => "{$first: '$b'}".to_owned(),
        1 => "{$last: '$b'}".to_owned(),
        2 => format!("{{$firstN: {{n: {n}, input: '$b'}}}}"),
        3 => format!("{{$lastN: {{n: {n}, input: '$b'}}}}"),
        4 => format!("{{$topN: {{n: {n}, sortBy: {order}, output: '$b'}}}}"),
        5 => format!("{{$bottomN: {{n: {n}, sortBy: {order}, output: '$b'}}}}"),
        6 => format!("{{$top: {{sortBy: {order}, output: '$b'}}}}"),
        _ => format!("{{$bottom: {{sortBy: {order}, output: '$b'}}}}"),
    };
    format!(
        "[{{$match: {filter}}}, {{$sort: {order}}}, {{$group: {{_id: {key}, f: {accumulator}}}}}]"
    )
}

#[test]
fn any_index_gives_the_same_result_as_the_natural_order() {
    let mut random = Generator::new(49);
    let (mut skipped, mut names) = (0, Vec::new());
    for index in INDEXES {
        let store = filled(false);
        let spec = parse_doc(&index.replace('\'', "\"")).unwrap();
        create_indexes(&store, NAME, [spec.as_doc()].into_iter()).unwrap();
        for _ in 0..60 {
            let stages = random_pipeline(&mut random);
            let mut request = pipeline(&stages);
            if index.contains("collation") && random.one_in(2) {
                let collation = doc! { "locale": "en", "strength": 1 };
                request.collation = AskedCollation::parse(collation.as_doc()).unwrap();
            }
            let by_index = run(&store, &request);
            let mut views = FreshViews::new(&store).unwrap();
            let read = ReadRequest::Aggregate(&request);
            let shown = explain(read, None, Verbosity::QueryPlanner, &mut views, params()).unwrap();
            let skips = print(Value::from(shown.as_doc())).contains("DISTINCT_SCAN");
            request.hint = Some(Hint::Natural(true));
            assert_eq!(by_index, run(&store, &request), "{index} {stages}");
            skipped += usize::from(skips);
            names.extend(skips.then_some(index));
        }
    }
    names.dedup();
    assert!(skipped > 60 && names.len() >= 4, "{skipped} {names:?}");
}

#[test]
fn the_keys_that_are_examined_grow_with_the_groups() {
    let examined = |groups: i32, each: i32, stages: &str| {
        let store = store();
        let reading = |n: i32| doc! { "_id": n, "sensor": (n % groups), "t": n };
        let docs: Vec<DocBuf> = (0..groups * each).map(reading).collect();
        insert_all(&store, NAME, docs.iter().map(DocBuf::as_doc));
        let index = doc! { "key": { "sensor": 1, "t": -1 }, "name": "x" };
        create_indexes(&store, NAME, [index.as_doc()].into_iter()).unwrap();
        let request = pipeline(stages);
        let views = FreshViews::new(&store).unwrap();
        let mut execution = open(&request, &views, params()).unwrap();
        assert_eq!(drain(&store, &mut execution, 3).len(), groups as usize, "{stages}");
        execution.examined().counters
    };
    for (stages, keys, docs) in [
        ("[{$group: {_id: '$sensor'}}]", 1, 0),
        ("[{$sort: {sensor: 1, t: -1}}, {$group: {_id: '$sensor', d: {$first: '$$ROOT'}}}]", 1, 1),
        ("[{$sort: {t: -1}}, {$group: {_id: '$sensor', d: {$first: '$t'}}}]", 1, 0),
        ("[{$sort: {t: 1}}, {$group: {_id: '$sensor', d: {$last: '$$ROOT'}}}]", 1, 1),
        ("[{$group: {_id: '$sensor', d: {$topN: {n: 2, sortBy: {t: -1}, output: '$_id'}}}}]", 2, 2),
        (
            "[{$match: {t: {$lt: 60}}}, {$sort: {t: -1}}, {$group: {_id: '$sensor', d: {$first: '$t'}}}]",
            2,
            0,
        ),
    ] {
        for each in [20, 100] {
            let found = examined(20, each, stages);
            assert!(found.keys_examined <= 20 * keys + 1, "{stages} {each}: {found:?}");
            assert_eq!(found.docs_examined, 20 * docs, "{stages} {each}");
        }
    }
}
