//! A `$group` that reads one document of each group has the same result with an index as with a
//! scan, and uses the index if possible.

use super::*;
use quire_document::literal::{parse_doc, print};
use quire_document::testing::Generator;
use quire_document::{Value, ValueBuf, doc};
use quire_executor::{explain, open};
use quire_planner::{AggregateRequest, ReadRequest, Verbosity};

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
    ("[{$sort: {a: 1, b: -1}}, {$group: {_id: '$a', f: {$first: '$b'}}}]", false),
    ("[{$sort: {b: 1}}, {$group: {_id: '$a', f: {$first: '$b'}}}]", false),
    ("[{$sort: {a: 1, b: 1}}, {$group: {_id: '$a', f: {$last: '$b'}}}]", false),
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
        let text = format!("{{s: {}}}", stages.replace('\'', "\""));
        let parsed = parse_doc(&text).unwrap();
        let pipeline = parsed.get("s").unwrap().as_array().unwrap();
        let request = AggregateRequest {
            namespace: NAME.into(),
            pipeline: documents(pipeline).map(Doc::to_owned).collect(),
            ..AggregateRequest::default()
        };
        assert_eq!(run(&plain, &request), run(&indexed, &request), "{stages}");
        let mut views = FreshViews::new(&indexed).unwrap();
        let read = ReadRequest::Aggregate(&request);
        let shown = explain(read, None, Verbosity::QueryPlanner, &mut views, params()).unwrap();
        let shown = print(Value::from(shown.as_doc()));
        assert_eq!(shown.contains("DISTINCT_SCAN"), *by_index, "{stages}: {shown}");
    }
}
