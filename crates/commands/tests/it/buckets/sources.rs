//! The first points of each source, and sorts by source and time: a collection with buckets answers as one with records, and
//! examines no more than it needs.

use super::{all, by_names, close, closing_server, create, insert};
use crate::{Client, at, number};
use quire_document::{ArrayBuf, DocBuf, Value, ValueBuf, array, compare, doc};
use quire_storage::rng::Rng;

/// Returns a meta value; `None` for a point without one.
fn source(random: &mut Rng) -> Option<ValueBuf> {
    Some(match random.below(9) {
        0 => return None,
        1 => ValueBuf::new(Value::Null),
        2 => ValueBuf::new(1_i32),
        3 => ValueBuf::new(1.0),
        4 => ValueBuf::new("a"),
        5 => ValueBuf::new("A"),
        6 => ValueBuf::from(doc! { "a": (random.below(3) as i32), "b": "x" }),
        7 => ValueBuf::from(doc! { "a": (random.below(3) as f64), "b": (random.below(2) as i32) }),
        _ => ValueBuf::new(random.below(3) as i64 + 5),
    })
}

/// Returns points with times of their own, in any order. Some have arrays as meta values if `arrays` is true.
fn points(
    random: &mut Rng,
    (times, late_by): (std::ops::Range<i64>, i64),
    arrays: bool,
) -> Vec<DocBuf> {
    let mut points: Vec<DocBuf> = times
        .map(|n| {
            let meta = match arrays && random.one_in(20) {
                true => Some(ValueBuf::new(Value::Array(array![1, 7].as_array()))),
                false => source(random),
            };
            DocBuf::build(|writer| {
                writer.append("t", Value::Date(n * 97 + late_by));
                writer.append_some("m", meta.as_ref().map(ValueBuf::as_value));
                // Late points have times and ids of their own.
                writer.append("_id", n * 10 + late_by).append("v", random.below(50) as i32);
            })
        })
        .collect();
    for at in (1..points.len()).rev() {
        points.swap(at, random.below(at as u64 + 1) as usize);
    }
    points
}

/// The collections of [`fill`].
const NAMES: [&str; 3] = ["closed", "rows", "plain"];

/// Fills the collection `closed`, most points of which are in buckets, and with the same points `rows`, a time series, and
/// `plain`, which is none and has no index that could serve.
pub(super) fn fill(client: &mut Client, random: &mut Rng, arrays: bool) {
    for name in ["closed", "rows"] {
        create(client, name);
    }
    for (times, late_by, closes) in
        [(0..600, 0, true), (300..360, 1, true), (600..640, 0, false), (500..510, 2, false)]
    {
        let points = points(random, (times, late_by), arrays);
        for name in NAMES {
            insert(client, name, &points);
        }
        if closes {
            assert!(close(client, "closed") > 20);
        }
    }
}

/// Deletes points of all collections: some of several sources, and all of one.
fn lose_some(client: &mut Client) {
    for name in NAMES {
        for wanted in [doc! { "v": { "$lt": 5 } }, doc! { "m": 6 }] {
            let deletes = doc! { "q": &wanted, "limit": 0 };
            client.works(doc! { "delete": name, "deletes": [&deletes], "$db": "test" });
        }
    }
    let lately = doc! { "q": { "v": 7 }, "limit": 0 };
    assert!(close(client, "closed") > 0);
    for name in NAMES {
        client.works(doc! { "delete": name, "deletes": [&lately], "$db": "test" });
    }
}

fn way(random: &mut Rng) -> i32 {
    if random.one_in(2) { 1 } else { -1 }
}

fn filter(random: &mut Rng) -> DocBuf {
    let time = Value::Date(random.below(60_000) as i64);
    match random.below(14) {
        0 => doc! { "m": 1 },
        9 => doc! { "m": Value::Null },
        10 => doc! { "m": { "$type": "double" } },
        11 => doc! { "m": { "$exists": (random.one_in(2)) }, "v": { "$gte": 10 } },
        12 => doc! { "$or": [{ "m": { "$type": "null" } }, { "m.a": 1 }] },
        1 => doc! { "m.a": { "$gte": 1 } },
        2 => doc! { "t": { "$lte": time } },
        3 => doc! { "t": { "$gt": time }, "m": { "$in": [5, 6, "a", Value::Null] } },
        4 => doc! { "v": { "$lt": 20 } },
        5 => doc! { "m.b": "x", "t": { "$lt": time } },
        6 => doc! { "m": { "$exists": true } },
        _ => doc! {},
    }
}

fn order(random: &mut Rng) -> DocBuf {
    match random.below(4) {
        0 => doc! { "m": (way(random)), "t": (way(random)) },
        1 => doc! { "t": (way(random)), "m": 1 },
        2 => doc! { "m.a": (way(random)), "t": (way(random)) },
        _ => doc! { "t": (way(random)) },
    }
}

fn accumulator(random: &mut Rng) -> DocBuf {
    let n = 1 + random.below(3) as i32;
    let order = order(random);
    match random.below(8) {
        0 => doc! { "$first": "$_id" },
        1 => doc! { "$last": "$_id" },
        2 => doc! { "$firstN": { "n": n, "input": "$_id" } },
        3 => doc! { "$lastN": { "n": n, "input": "$_id" } },
        4 => doc! { "$top": { "sortBy": &order, "output": "$v" } },
        5 => doc! { "$topN": { "n": n, "sortBy": &order, "output": ["$_id", "$v"] } },
        6 => doc! { "$bottom": { "sortBy": &order, "output": "$$ROOT" } },
        _ => doc! { "$bottomN": { "n": n, "sortBy": &order, "output": "$_id" } },
    }
}

/// Returns the groups in the order of their keys. Keys that are equal may be of different types, as may the meta values in
/// them, so groups are compared as values.
fn groups(client: &mut Client, name: &str, stages: &ArrayBuf) -> Vec<DocBuf> {
    let mut found = all(client, doc! { "aggregate": name, "pipeline": stages }, 1000);
    found.sort_by(|a, b| compare(a.get("_id").unwrap(), b.get("_id").unwrap(), None));
    found
}

fn are_equal(a: &[DocBuf], b: &[DocBuf]) -> bool {
    let equal = |a: &DocBuf, b: &DocBuf| {
        let [a, b] = [a, b].map(|doc| by_names(doc.as_doc()));
        compare(a.as_doc().into(), b.as_doc().into(), None).is_eq()
    };
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
}

#[test]
fn the_first_points_of_each_source_are_those_of_all_points() {
    let mut random = Rng::new(49);
    for arrays in [false, true] {
        let server = closing_server();
        let mut client = server.client(1);
        fill(&mut client, &mut random, arrays);
        for round in 0..120 {
            if round == 60 {
                lose_some(&mut client);
            }
            let key = match random.below(6) {
                0 => doc! { "_id": "$m.a" },
                1 => doc! { "_id": { "a": "$m.a", "b": "$m.b" } },
                2 => doc! { "_id": { "m": "$m" } },
                3 => doc! { "_id": { "m": "$m", "b": "$m.b" } },
                _ => doc! { "_id": "$m" },
            };
            let mut group = key;
            for name in ["x", "y"].iter().take(random.below(3) as usize) {
                group.append(name, &accumulator(&mut random));
            }
            let stages = array![
                { "$match": (&filter(&mut random)) }, { "$sort": (&order(&mut random)) }, { "$group": &group }
            ];
            let [closed, rows, plain] = NAMES.map(|name| groups(&mut client, name, &stages));
            assert!(are_equal(&closed, &plain), "{stages:?} {closed:?} {plain:?}");
            assert!(are_equal(&rows, &plain), "{stages:?} {rows:?} {plain:?}");
        }
        for key in ["m", "m", "m.a", "m.b", "v"].iter().cycle().take(60) {
            let key = *key;
            let filter = filter(&mut random);
            let [closed, rows, plain] = NAMES.map(|name| {
                let distinct =
                    doc! { "distinct": name, "key": key, "query": &filter, "$db": "test" };
                ValueBuf::new(at(&client.works(distinct), "values").unwrap())
            });
            for found in [&closed, &rows] {
                let are_equal = compare(found.as_value(), plain.as_value(), None).is_eq();
                assert!(are_equal, "{key} {filter:?} {found:?} {plain:?}");
            }
        }
    }
}

#[test]
fn sorts_by_source_and_time_merge_records_and_buckets() {
    let mut random = Rng::new(53);
    for arrays in [false, true] {
        let server = closing_server();
        let mut client = server.client(1);
        fill(&mut client, &mut random, arrays);
        for _ in 0..80 {
            let mut sort = doc! { "m": (way(&mut random)) };
            if !random.one_in(4) {
                sort.append("t", way(&mut random));
            }
            let mut command = doc! { "filter": (&filter(&mut random)), "sort": &sort };
            if random.one_in(3) {
                command.append("limit", 1 + random.below(50) as i32);
            }
            if random.one_in(4) {
                command.append("projection", &doc! { "v": 1 });
            }
            let [closed, rows, plain] = NAMES.map(|name| {
                let mut find = doc! { "find": name };
                find.extend(|fields| {
                    command.as_doc().fields().for_each(|(name, value)| {
                        fields.append(name, value);
                    })
                });
                all(&mut client, find, 7)
            });
            if sort.get("t").is_some() {
                assert!(are_equal(&closed, &plain), "{command:?} {closed:?} {plain:?}");
                assert!(are_equal(&rows, &plain), "{command:?} {rows:?} {plain:?}");
            } else {
                assert_eq!(closed.len(), plain.len(), "{command:?}");
            }
        }
    }
}

fn explained(client: &mut Client, command: DocBuf) -> DocBuf {
    client.works(doc! { "explain": &command, "verbosity": "executionStats", "$db": "test" })
}

/// Returns true if a plan has a stage.
fn has_stage(shown: &DocBuf, stage: &str) -> bool {
    quire_document::literal::print(Value::from(shown.as_doc())).contains(&format!("\"{stage}\""))
}

/// Returns the sum of a number over all stages of an explain.
pub(super) fn sum(value: Value<'_>, field: &str) -> i64 {
    match value {
        Value::Document(doc) => {
            let own = number(&doc.to_owned(), field).unwrap_or(0);
            own + doc.fields().map(|(_, value)| sum(value, field)).sum::<i64>()
        }
        Value::Array(list) => list.iter().map(|value| sum(value, field)).sum(),
        _ => 0,
    }
}

/// Fills `s` with points of 10 sensors and closes them, but for the last of each.
fn fill_sensors(client: &mut Client, each: i64) {
    create(client, "s");
    let point = |n: i64| doc! { "t": Value::Date(n * 100), "m": (n % 10), "_id": n, "v": (n % 7) };
    let points: Vec<DocBuf> = (0..each * 10).map(point).collect();
    insert(client, "s", &points);
    assert!(close(client, "s") >= each / 10);
    let points: Vec<DocBuf> = (each * 10..each * 10 + 10).map(point).collect();
    insert(client, "s", &points);
}

#[test]
fn the_newest_points_examine_as_much_as_there_are_sources() {
    let examined = |each: i64, stages: &ArrayBuf| {
        let server = closing_server();
        let mut client = server.client(1);
        fill_sensors(&mut client, each);
        let found = groups(&mut client, "s", stages);
        assert_eq!(found.len(), 10, "{stages:?}");
        let aggregate = doc! { "aggregate": "s", "pipeline": stages, "cursor": {} };
        let shown = explained(&mut client, aggregate);
        assert!(has_stage(&shown, "DISTINCT_SCAN"), "{shown:?}");
        let stages = ValueBuf::new(shown.as_doc());
        let sums = ["docsExamined", "keysExamined", "bucketsUnpacked"]
            .map(|field| sum(stages.as_value(), field));
        (sums, shown)
    };
    for stages in [
        array![{ "$sort": { "m": 1, "t": -1 } }, { "$group": { "_id": "$m", "p": { "$first": "$v" } } }],
        array![{ "$sort": { "t": -1 } }, { "$group": { "_id": "$m", "p": { "$first": "$$ROOT" } } }],
        array![{ "$sort": { "t": 1 } }, { "$group": { "_id": "$m", "p": { "$last": "$v" } } }],
        array![{ "$group": { "_id": "$m", "p": { "$top": { "sortBy": { "t": -1 }, "output": "$v" } } } }],
        array![{ "$group": { "_id": "$m", "p": { "$topN": { "n": 2, "sortBy": { "t": -1 }, "output": "$v" } } } }],
    ] {
        let ((few, _), (many, shown)) = (examined(200, &stages), examined(1000, &stages));
        assert_eq!(few, many, "{shown:?}");
        assert!(many.iter().all(|examined| *examined <= 100), "{many:?} {shown:?}");
    }
}

#[test]
fn sorts_by_source_or_time_do_not_block_and_read_the_buckets_they_need() {
    let server = closing_server();
    let mut client = server.client(1);
    fill_sensors(&mut client, 1000);
    for sort in
        [doc! { "m": 1, "t": 1 }, doc! { "m": -1, "t": -1 }, doc! { "t": -1 }, doc! { "m": 1 }]
    {
        let find = doc! { "find": "s", "sort": &sort, "limit": 20 };
        let shown = explained(&mut client, find);
        assert!(!has_stage(&shown, "SORT") && has_stage(&shown, "SORT_MERGE"), "{shown:?}");
        let unpacked = sum(Value::from(shown.as_doc()), "bucketsUnpacked");
        assert!((1..=40).contains(&unpacked), "{sort:?} {unpacked}");
    }
    // Of one source.
    for sort in [doc! { "t": -1 }, doc! { "m": 1, "t": -1 }] {
        let find = doc! { "find": "s", "filter": { "m": 3 }, "sort": &sort, "limit": 1 };
        let shown = explained(&mut client, find.clone());
        assert!(!has_stage(&shown, "SORT"), "{shown:?}");
        assert!(sum(Value::from(shown.as_doc()), "bucketsUnpacked") <= 4, "{shown:?}");
        let found = all(&mut client, find, 10);
        assert_eq!(number(&found[0], "_id"), Some(10_003));
    }
}
