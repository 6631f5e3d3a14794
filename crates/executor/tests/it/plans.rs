//! Every plan has the result of a scan with the filter.

use super::*;
use quire_document::literal::parse_doc;
use quire_document::{Value, compare, doc};
use quire_executor::{count, distinct, open};
use quire_planner::{AggregateRequest, CountRequest, DistinctRequest, FindRequest, Hint};
use quire_storage::rng::Rng;

struct Random(Rng);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0.below(bound as u64) as usize
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }
}

const VALUES: &[&str] = &[
    "1",
    "2",
    "3",
    "2.5",
    "NumberLong(\"4\")",
    "\"x\"",
    "\"xy\"",
    "\"z\"",
    "null",
    "true",
    "[1, 3]",
    "[]",
    "[2]",
    "[\"x\", 2]",
    "{b: 1}",
    "{b: [1, 2]}",
    "[{b: 1}, {b: 4}]",
    "{b: \"x\"}",
    "MinKey",
    "ISODate(\"2020-01-01T00:00:00.000Z\")",
    "[[1]]",
    "{}",
    "undefined",
    "NumberLong(\"1000000000001\")",
    "NumberLong(\"1000000000003\")",
    "0.1",
    "-0.3",
];

const FILTERS: &[&str] = &[
    "{}",
    "{a: 1}",
    "{a: {$gt: 1}}",
    "{a: {$in: [NumberLong(\"1000000000001\"), 0.1]}}",
    "{a: {$ne: NumberLong(\"1000000000001\")}}",
    "{a: {$elemMatch: {$elemMatch: {$gt: 0}}}}",
    "{a: {$gte: 1, $lt: 3}}",
    "{a: {$in: [1, 3, \"x\"]}}",
    "{a: {$in: [null, 2]}}",
    "{a: null}",
    "{a: {$ne: 1}}",
    "{a: {$ne: null}}",
    "{a: {$nin: [1, \"x\"]}}",
    "{a: {$exists: true}}",
    "{a: {$exists: false}}",
    "{a: {$type: \"number\"}}",
    "{a: {$type: [\"string\", \"array\"]}}",
    "{a: /^x/}",
    "{a: /y/}",
    "{a: {$not: {$gt: 2}}}",
    "{a: {$elemMatch: {$gt: 1, $lt: 3}}}",
    "{a: [1, 3]}",
    "{a: []}",
    "{a: {$gt: [1]}}",
    "{a: {$lt: [2]}}",
    "{a: {b: 1}}",
    "{\"a.b\": 1}",
    "{\"a.b\": {$gt: 1}}",
    "{\"a.b\": null}",
    "{a: {$elemMatch: {b: {$gte: 1, $lt: 4}}}}",
    "{a: {$all: [1, 3]}}",
    "{a: {$size: 2}}",
    "{a: {$mod: [2, 0]}}",
    "{$or: [{a: 1}, {c: 2}]}",
    "{$or: [{a: {$lt: 2}}, {a: {$gt: 2}}]}",
    "{$or: [{a: 1, c: 1}, {c: {$gt: 2}}]}",
    "{a: 1, c: {$gte: 2}}",
    "{a: {$gt: 0}, c: 2}",
    "{a: {$in: [1, 2]}, c: {$in: [1, 2, 3]}}",
    "{a: {$gt: 0}, $or: [{c: 1}, {c: {$gt: 2}}]}",
    "{c: {$lte: 2}}",
    "{$nor: [{a: 1}, {c: 2}]}",
    "{$expr: {$eq: [\"$a\", 1]}}",
    "{$expr: {$gt: [\"$c\", 1]}}",
    "{a: MinKey}",
    "{a: {$gte: MinKey}}",
    "{a: {$lt: MaxKey}}",
    "{_id: {$in: [1, 5, 9]}}",
    "{_id: {$gt: 3, $lte: 20}}",
    "{_id: 7}",
    "{$and: [{a: {$gt: 1}}, {a: {$lt: 3}}]}",
    "{\"a.b\": {$gte: 1, $lt: 3}}",
    "{a: {$gte: null}}",
    "{a: {$type: \"null\"}}",
    "{a: true}",
    "{a: {$lte: true}}",
    "{a: \"x\", c: null}",
];

const INDEXES: &[&str] = &[
    "{key: {a: 1}, name: \"a\"}",
    "{key: {a: -1}, name: \"ad\"}",
    "{key: {c: 1}, name: \"c\"}",
    "{key: {a: 1, c: 1}, name: \"ac\"}",
    "{key: {a: 1, c: -1}, name: \"acd\"}",
    "{key: {c: 1, a: 1}, name: \"ca\"}",
    "{key: {\"a.b\": 1}, name: \"ab\"}",
    "{key: {a: 1}, name: \"as\", sparse: true}",
    "{key: {\"a.b\": 1, c: 1}, name: \"abc\"}",
    "{key: {c: 1}, name: \"cp\", partialFilterExpression: {c: {$gt: 1}}}",
];

const SPARSE: &[&str] = &[
    "{key: {c: 1}, name: \"cs\", sparse: true}",
    "{key: {c: -1}, name: \"cds\", sparse: true}",
    "{key: {a: 1, c: 1}, name: \"acs\", sparse: true}",
    "{key: {c: 1, a: -1}, name: \"cas\", sparse: true}",
    "{key: {\"a.b\": 1}, name: \"abs\", sparse: true}",
    "{key: {\"a.0\": 1}, name: \"a0\"}",
    "{key: {\"a.0\": 1}, name: \"a0s\", sparse: true}",
    "{key: {a: 1}, name: \"ap\", partialFilterExpression: {a: {$exists: true}}}",
    "{key: {c: 1}, name: \"cl\", partialFilterExpression: {c: {$lte: 2}}}",
];

const SORTS: &[&str] =
    &["{}", "{a: 1}", "{a: -1}", "{c: 1, a: 1}", "{c: -1}", "{\"a.b\": 1}", "{_id: -1}"];

fn fill(store: &Arc<Store>, name: &str, seed: u64, scalars: bool) {
    let mut random = Random(Rng::new(seed));
    let docs: Vec<DocBuf> = (0..60)
        .map(|id| {
            let mut text = format!("{{_id: {id}");
            if random.below(6) > 0 {
                let values = if scalars { &VALUES[..10] } else { VALUES };
                text += &format!(", a: {}", random.pick(values));
            }
            if random.below(6) > 0 {
                let bound = if scalars { 4 } else { 10 };
                text += &format!(", c: {}", VALUES[random.below(bound)]);
            }
            parse_doc(&(text + "}")).unwrap()
        })
        .collect();
    insert_all(store, name, docs.iter().map(DocBuf::as_doc));
}

fn find(store: &Arc<Store>, request: &FindRequest, batch: usize) -> Vec<DocBuf> {
    let views = FreshViews::new(store).unwrap();
    let mut execution = open(request, &views, params())
        .unwrap_or_else(|error| panic!("{:?}: {error}", request.filter));
    drain(store, &mut execution, batch)
}

fn ids(docs: &[DocBuf]) -> Vec<i32> {
    let mut ids: Vec<i32> = docs
        .iter()
        .map(|doc| match doc.get("_id") {
            Some(Value::Int32(id)) => id,
            other => panic!("{other:?}"),
        })
        .collect();
    ids.sort_unstable();
    ids
}

/// Returns comparisons of a path with a constant, in both orders, alone and in combination.
fn comparing_expressions() -> Vec<String> {
    let mut filters = Vec::new();
    for path in ["$a", "$c", "$a.b", "$a.0"] {
        for operator in ["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"] {
            for value in ["MinKey", "null", "2", "\"x\"", "{b: 1}", "true", "MaxKey", "[]"] {
                let constant = format!("{{$literal: {value}}}");
                filters.push(format!("{{$expr: {{{operator}: [\"{path}\", {constant}]}}}}"));
                filters.push(format!("{{$expr: {{{operator}: [{constant}, \"{path}\"]}}}}"));
            }
        }
    }
    let two = filters.clone();
    let of_two = |at: usize, join: &str| {
        let expression = |at: usize| two[at % two.len()].replacen("{$expr: ", "", 1);
        let (left, right) = (expression(at * 7), expression(at * 31 + 5));
        let inside = |text: &str| text[..text.len() - 1].to_owned();
        format!("{{$expr: {{{join}: [{}, {}]}}}}", inside(&left), inside(&right))
    };
    filters.extend((0..60).flat_map(|at| [of_two(at, "$and"), of_two(at, "$or")]));
    filters.extend((0..40).map(|at| format!("{{$nor: [{}]}}", two[at * 11 % two.len()])));
    filters
}

/// Documents that a sparse or a partial index lacks are found if a comparison holds for missing.
#[test]
fn expressions_find_the_same_with_any_index() {
    let filters = comparing_expressions();
    for (seed, scalars) in [(21, false), (22, true)] {
        let store = store();
        fill(&store, "db.plain", seed, scalars);
        let request = |namespace: &str, filter: &str| FindRequest {
            namespace: namespace.into(),
            filter: parse_doc(filter).unwrap(),
            ..FindRequest::default()
        };
        let all = filters.iter().map(|filter| find(&store, &request("db.plain", filter), 1000));
        let expected: Vec<Vec<i32>> = all.map(|found| ids(&found)).collect();
        for (at, index) in INDEXES.iter().chain(SPARSE).enumerate() {
            let name = format!("db.t{at}");
            fill(&store, &name, seed, scalars);
            let spec = parse_doc(index).unwrap();
            if create_indexes(&store, &name, [spec.as_doc()].into_iter()).is_err() {
                continue;
            }
            for (filter, expected) in filters.iter().zip(&expected) {
                let found = find(&store, &request(&name, filter), 1000);
                assert_eq!(&ids(&found), expected, "{filter} {index} seed {seed}");
            }
        }
    }
}

#[test]
fn plans_agree_with_a_scan() {
    for (seed, scalars) in [(11, false), (12, true), (13, false)] {
        let store = store();
        fill(&store, "db.plain", seed, scalars);
        for set in 0..INDEXES.len() {
            let name = format!("db.t{set}");
            fill(&store, &name, seed, scalars);
            let chosen = [INDEXES[set], INDEXES[(set * 3 + 1) % INDEXES.len()]];
            let specs: Vec<DocBuf> = chosen.iter().map(|text| parse_doc(text).unwrap()).collect();
            let distinct_specs = if chosen[0] == chosen[1] { &specs[..1] } else { &specs[..] };
            if create_indexes(&store, &name, distinct_specs.iter().map(DocBuf::as_doc)).is_err() {
                continue;
            }
            for (at, filter) in FILTERS.iter().enumerate() {
                let request = |namespace: &str, sort: &str| FindRequest {
                    namespace: namespace.into(),
                    filter: parse_doc(filter).unwrap(),
                    sort: parse_doc(sort).unwrap(),
                    ..FindRequest::default()
                };
                let sort = SORTS[at % SORTS.len()];
                let expected = find(
                    &store,
                    &FindRequest { hint: Some(Hint::Natural(true)), ..request("db.plain", "{}") },
                    1000,
                );
                for (sort, batch) in [("{}", 1000), ("{}", 1), (sort, 7)] {
                    let found = find(&store, &request(&name, sort), batch);
                    assert_eq!(
                        ids(&found),
                        ids(&expected),
                        "{filter} {sort} {chosen:?} seed {seed}"
                    );
                    check_order(&found, sort, filter);
                }
                let count_request = CountRequest {
                    namespace: name.clone(),
                    filter: parse_doc(filter).unwrap(),
                    ..CountRequest::default()
                };
                let mut views = FreshViews::new(&store).unwrap();
                let (counted, _) = count(&count_request, &mut views, params()).unwrap();
                assert_eq!(counted, expected.len() as u64, "count {filter} {chosen:?}");
            }
        }
    }
}

fn check_order(found: &[DocBuf], sort: &str, filter: &str) {
    use quire_mql::{EvalContext, ParseContext, Shared};
    let sort_doc = parse_doc(sort).unwrap();
    if sort_doc.as_doc().is_empty() {
        return;
    }
    let pattern =
        quire_mql::sort::SortPattern::parse(sort_doc.as_doc(), &ParseContext::default()).unwrap();
    let (arena, shared) = (bumpalo::Bump::new(), Shared::new(0));
    for pair in found.windows(2) {
        let cx = EvalContext::new(&arena, pair[0].as_doc(), &shared);
        let left = pattern.key(pair[0].as_doc(), &cx).unwrap();
        let right = pattern.key(pair[1].as_doc(), &cx).unwrap();
        assert!(pattern.compare(&left, &right).is_le(), "{filter} {sort}: {pair:?}");
    }
}

#[test]
fn limits_skips_and_projections() {
    let store = store();
    fill(&store, "db.t", 5, true);
    let spec = doc! { "key": { "c": 1 }, "name": "c" };
    create_indexes(&store, "db.t", [spec.as_doc()].into_iter()).unwrap();
    let base = FindRequest { namespace: "db.t".into(), ..FindRequest::default() };
    let sorted = find(&store, &FindRequest { sort: doc! { "a": 1, "_id": 1 }, ..base.clone() }, 9);
    let part = FindRequest { sort: doc! { "a": 1, "_id": 1 }, skip: 5, limit: 10, ..base.clone() };
    assert_eq!(find(&store, &part, 3), sorted[5..15]);
    let covered = FindRequest {
        filter: doc! { "c": { "$gte": 2 } },
        projection: doc! { "_id": 0, "c": 1 },
        ..base.clone()
    };
    for doc in find(&store, &covered, 4) {
        assert!(
            doc.as_doc().count() == 1 && compare(doc.get("c").unwrap(), 2.into(), None).is_ge()
        );
    }
    let keys = FindRequest { filter: doc! { "c": 1 }, return_key: true, ..base };
    assert!(find(&store, &keys, 4).iter().all(|doc| *doc == doc! { "c": 1 }));
}

/// Rows that a skip or a count skips are not produced: their number must be right.
#[test]
fn skips_and_counts_are_those_of_all_rows() {
    const DOCUMENTS: i32 = 2600;
    for arrays in [false, true] {
        let store = store();
        let document = |id: i32| match arrays && id % 9 == 0 {
            true => doc! { "_id": id, "c": [id % 50, 7, -id], "u": id },
            false => doc! { "_id": id, "c": id % 50, "u": id },
        };
        let docs: Vec<DocBuf> = (0..DOCUMENTS).map(document).collect();
        insert_all(&store, "db.t", docs.iter().map(DocBuf::as_doc));
        let specs = [
            doc! { "key": { "c": 1 }, "name": "c" },
            doc! { "key": { "u": -1 }, "name": "u", "unique": true },
        ];
        create_indexes(&store, "db.t", specs.iter().map(DocBuf::as_doc)).unwrap();
        let requests = [
            ("{}", "{}"),
            ("{}", "{$natural: -1}"),
            ("{}", "{u: 1}"),
            ("{c: {$gte: 3, $lt: 30}}", "{c: 1}"),
            ("{c: {$gte: 3, $lt: 30}}", "{c: -1}"),
            ("{c: {$in: [3, 7, 20]}}", "{}"),
            ("{u: {$gt: 40}}", "{}"),
            ("{u: {$gt: 40}, c: 7}", "{u: 1}"),
        ];
        for (filter, sort) in requests {
            let request = FindRequest {
                namespace: "db.t".into(),
                filter: parse_doc(filter).unwrap(),
                sort: parse_doc(sort).unwrap(),
                ..FindRequest::default()
            };
            let all = find(&store, &request, 1000);
            for skip in [0, 1, 7, 255, 1024, 1100, DOCUMENTS as usize - 1, 5000] {
                let rest = &all[skip.min(all.len())..];
                let some = &rest[..rest.len().min(20)];
                let part = FindRequest { skip: skip as u64, limit: 20, ..request.clone() };
                assert_eq!(find(&store, &part, 6), some, "{filter} {sort} {skip}");
                for (limit, expected) in [(0, rest.len()), (20, some.len())] {
                    let request = CountRequest {
                        namespace: "db.t".into(),
                        filter: parse_doc(filter).unwrap(),
                        skip: skip as u64,
                        limit,
                        ..CountRequest::default()
                    };
                    let mut views = FreshViews::new(&store).unwrap();
                    let (counted, _) = count(&request, &mut views, params()).unwrap();
                    assert_eq!(counted, expected as u64, "{filter} {skip} {limit}");
                }
            }
        }
    }
}

/// A projection of the fields that later stages read treated the 0 of `t.0` as a field name and
/// lost the elements of the array.
#[test]
fn positions_in_arrays_are_read_behind_stages_that_copy_documents() {
    let store = store();
    let docs = [doc! { "_id": 1, "t": [5, 6] }, doc! { "_id": 2, "t": [4] }];
    insert_all(&store, "db.t", docs.iter().map(DocBuf::as_doc));
    let run = |stages: &[DocBuf]| {
        let pipeline = [&[doc! { "$set": { "x": 1 } }], stages].concat();
        let namespace = "db.t".into();
        let request = AggregateRequest { namespace, pipeline, ..AggregateRequest::default() };
        let mut execution = open(&request, &FreshViews::new(&store).unwrap(), params()).unwrap();
        drain(&store, &mut execution, 10)
    };
    let filter = doc! { "$match": { "$or": [{ "t.0": 5 }, { "x": 2 }] } };
    let count = doc! { "$group": { "_id": Value::Null, "n": { "$sum": 1 } } };
    assert_eq!(run(&[filter, count]), [doc! { "_id": Value::Null, "n": 1 }]);
    let sort = doc! { "$sort": { "t.0": 1 } };
    let first = doc! { "$group": { "_id": Value::Null, "n": { "$first": "$_id" } } };
    assert_eq!(run(&[sort, first]), [doc! { "_id": Value::Null, "n": 2 }]);
}

#[test]
fn pipelines() {
    let store = store();
    let docs: Vec<DocBuf> =
        (0..500).map(|id| doc! { "_id": id, "g": (id % 7), "v": id, "t": [1, 2] }).collect();
    insert_all(&store, "db.t", docs.iter().map(DocBuf::as_doc));
    let run = |stages: &str, params: ExecParams| {
        let stages = parse_doc(&format!("{{p: {stages}}}")).unwrap();
        let pipeline = documents(stages.get("p").unwrap().as_array().unwrap());
        let request = AggregateRequest {
            namespace: "db.t".into(),
            pipeline: pipeline.map(Doc::to_owned).collect(),
            ..AggregateRequest::default()
        };
        let views = FreshViews::new(&store).unwrap();
        let mut execution = open(&request, &views, params)?;
        try_drain(&store, &mut execution, 3)
    };
    let plain = |stages: &str| run(stages, params()).unwrap();
    let groups = "[{$group: {_id: \"$g\", n: {$sum: 1}, v: {$sum: \"$v\"}, all: {$push: \"$v\"}}}, {$sort: {_id: 1}}]";
    let expected = plain(groups);
    assert_eq!(expected.len(), 7);
    assert_eq!(expected[0].get("n").unwrap().as_number().unwrap().exact_i64(), Some(72));
    let mut small = params();
    (small.stage_bytes_max, small.group_bytes_max) = (2000, 2000);
    assert_eq!(run(groups, small.clone()).unwrap(), expected);
    let sorted = run("[{$sort: {g: -1, v: 1}}]", small.clone()).unwrap();
    assert_eq!(sorted, plain("[{$sort: {g: -1, v: 1}}]"));
    small.spill_directory = None;
    let error = run("[{$match: {v: {$gte: 0}}}, {$group: {_id: \"$v\"}}]", small).unwrap_err();
    assert_eq!(error.code().number(), 292);
    assert_eq!(plain("[{$unwind: \"$t\"}, {$count: \"n\"}]"), [doc! { "n": 1000 }]);
    assert_eq!(
        plain("[{$skip: 490}, {$project: {v: 1, _id: 0}}, {$limit: 1}]"),
        [doc! { "v": 490 }]
    );
    assert_eq!(plain("[{$addFields: {w: {$add: [\"$v\", 1]}}}, {$match: {w: 5}}]").len(), 1);
    assert_eq!(plain("[{$sample: {size: 20}}]").len(), 20);
}

/// Adjacent filters were joined pair by pair, each pair one level deeper, until the filter was too
/// deep.
#[test]
fn a_thousand_filters_in_a_row_are_one_flat_filter() {
    let store = store();
    let docs: Vec<DocBuf> = (0..10).map(|id| doc! { "_id": id, "v": (id * 3) }).collect();
    insert_all(&store, "db.m", docs.iter().map(DocBuf::as_doc));
    let run = |pipeline: Vec<DocBuf>| {
        let request =
            AggregateRequest { namespace: "db.m".into(), pipeline, ..AggregateRequest::default() };
        let views = FreshViews::new(&store).unwrap();
        let mut execution = open(&request, &views, params()).unwrap();
        ids(&drain(&store, &mut execution, 100))
    };
    let filter = |at: i32| match at % 3 {
        0 => doc! { "$match": { "v": { "$gte": (at / 100) } } },
        1 => doc! { "$match": { "$and": [{ "v": { "$lt": 25 } }, { "_id": { "$ne": 6 } }] } },
        _ => doc! { "$match": {} },
    };
    let filters: Vec<DocBuf> = (0..1000).map(filter).collect();
    assert_eq!(run(filters.clone()), [3, 4, 5, 7, 8]);
    let mut pipeline = vec![doc! { "$addFields": { "v": "$_id" } }];
    pipeline.extend(filters.into_iter().take(999));
    assert_eq!(run(pipeline), [9]);
}

#[test]
fn distinct_values() {
    let store = store();
    fill(&store, "db.t", 3, false);
    let request = DistinctRequest {
        namespace: "db.t".into(),
        key: "a.b".into(),
        ..DistinctRequest::default()
    };
    let mut views = FreshViews::new(&store).unwrap();
    let (before, _) = distinct(&request.key, &request, &mut views, params()).unwrap();
    let spec = doc! { "key": { "a.b": 1 }, "name": "ab" };
    create_indexes(&store, "db.t", [spec.as_doc()].into_iter()).unwrap();
    let mut views = FreshViews::new(&store).unwrap();
    let (after, _) = distinct(&request.key, &request, &mut views, params()).unwrap();
    let sorted = |values: &ArrayBuf| {
        let mut keys: Vec<Vec<u8>> =
            values.as_array().iter().map(quire_document::key::encode).collect();
        keys.sort();
        keys
    };
    assert_eq!(sorted(&before), sorted(&after));
    assert!(!sorted(&before).is_empty());
}

#[test]
fn distinct_by_an_index_finds_null_behind_missing_fields() {
    let store = store();
    let docs = [doc! { "_id": 1 }, doc! { "_id": 2, "b": Value::Null }, doc! { "_id": 3, "b": 5 }];
    insert_all(&store, "db.t", docs.iter().map(DocBuf::as_doc));
    let spec = doc! { "key": { "b": 1 }, "name": "b_1" };
    create_indexes(&store, "db.t", [spec.as_doc()].into_iter()).unwrap();
    let request =
        DistinctRequest { namespace: "db.t".into(), key: "b".into(), ..DistinctRequest::default() };
    let mut views = FreshViews::new(&store).unwrap();
    let (values, _) = distinct(&request.key, &request, &mut views, params()).unwrap();
    let expected: ArrayBuf = [Value::Null, Value::Int32(5)].into_iter().collect();
    assert_eq!(values, expected);
}
