//! Random operations on a collection whose points are closed again and again, on one whose points stay records, and on a
//! list of points.

use super::{all, bucket_count, close, closing_server, create, insert, sorted};
use crate::{Client, at, number};
use quire_collections::check;
use quire_document::{DocBuf, ObjectId, Value, ValueBuf, array, compare, doc};
use quire_storage::rng::Rng;

/// The times of points are from 0 to this, in milliseconds: six buckets for each source.
const TIMES: u64 = 60_000;

/// A condition that the model can test.
enum Condition {
    Source(ValueBuf),
    Inside(i64),
    Between(i64, i64),
    Value(i64),
    Id(i64),
}

impl Condition {
    fn random(random: &mut Rng) -> Self {
        match random.below(5) {
            0 => Condition::Source(source(random).unwrap_or_else(|| ValueBuf::new("none"))),
            1 => Condition::Inside(random.below(3) as i64),
            2 => {
                let first = random.below(TIMES) as i64;
                Condition::Between(first, first + random.below(TIMES / 2) as i64)
            }
            3 => Condition::Value(random.below(100) as i64),
            _ => Condition::Id(random.below(12) as i64),
        }
    }

    fn write(&self, filter: &mut DocBuf) {
        match self {
            Condition::Source(meta) => filter.append("m", &doc! { "$eq": meta }),
            Condition::Inside(number) => filter.append("m.a", *number),
            Condition::Between(first, last) => {
                filter.append("t", &doc! { "$gte": Value::Date(*first), "$lt": Value::Date(*last) })
            }
            Condition::Value(most) => filter.append("v", &doc! { "$lt": *most }),
            Condition::Id(id) => filter.append("_id", *id),
        };
    }

    fn passes(&self, point: &DocBuf) -> bool {
        let equal = |a: Value<'_>, b: Value<'_>| compare(a, b, None).is_eq();
        match self {
            Condition::Source(wanted) => {
                let wanted = wanted.as_value();
                match point.get("m") {
                    None => wanted.is_nullish(),
                    Some(Value::Array(list)) => {
                        equal(Value::Array(list), wanted)
                            || list.iter().any(|element| equal(element, wanted))
                    }
                    Some(meta) => equal(meta, wanted),
                }
            }
            Condition::Inside(number) => match point.get("m") {
                Some(Value::Document(meta)) => {
                    meta.get("a").is_some_and(|found| equal(found, Value::Int64(*number)))
                }
                _ => false,
            },
            Condition::Between(first, last) => {
                let time = time(point);
                *first <= time && time < *last
            }
            Condition::Value(most) => match point.get("v") {
                Some(Value::Array(list)) => {
                    list.iter().any(|element| element.to_f64().is_some_and(|v| v < *most as f64))
                }
                value => value.and_then(|value| value.to_f64()).is_some_and(|v| v < *most as f64),
            },
            Condition::Id(id) => {
                point.get("_id").is_some_and(|found| equal(found, Value::Int64(*id)))
            }
        }
    }
}

fn time(point: &DocBuf) -> i64 {
    match point.get("t") {
        Some(Value::Date(time)) => time,
        other => panic!("{other:?}"),
    }
}

/// Returns a filter, and what tests it.
fn filter(random: &mut Rng, most: u64) -> (DocBuf, Vec<Condition>) {
    let mut filter = DocBuf::new();
    let mut conditions: Vec<Condition> = Vec::new();
    for _ in 0..random.below(most + 1) {
        let next = Condition::random(random);
        let same =
            |other: &Condition| std::mem::discriminant(other) == std::mem::discriminant(&next);
        if !conditions.iter().any(same) {
            next.write(&mut filter);
            conditions.push(next);
        }
    }
    (filter, conditions)
}

/// Returns a meta value; `None` for a point without one.
fn source(random: &mut Rng) -> Option<ValueBuf> {
    Some(match random.below(10) {
        0 => return None,
        1 => ValueBuf::new(Value::Null),
        2 => ValueBuf::new(1_i32),
        3 => ValueBuf::new(1_i64),
        4 => ValueBuf::new(1.0),
        5 => ValueBuf::new("a"),
        6 => ValueBuf::from(doc! { "a": (random.below(3) as i32), "b": "x" }),
        7 => ValueBuf::from(doc! { "a": (random.below(3) as f64) }),
        8 => ValueBuf::new(Value::Array(array![1, "a"].as_array())),
        _ => ValueBuf::new(random.below(3) as i64 + 5),
    })
}

/// Returns a point with its fields in the order in which the server returns them.
fn point(random: &mut Rng) -> DocBuf {
    // Many points share a time.
    let time = random.below(TIMES) as i64 / 50 * 50;
    let id = random.below(12) as i32;
    let meta = source(random);
    let kind = random.below(8);
    let value = random.below(100) as i64;
    DocBuf::build(|writer| {
        writer.append("t", Value::Date(time));
        writer.append_some("m", meta.as_ref().map(ValueBuf::as_value));
        match kind {
            0 => writer.append("_id", ObjectId::from_parts(time as u32, [1; 5], value as u32)),
            _ => writer.append("_id", id),
        };
        match kind {
            1 => writer.append("v", value as f64 / 4.0),
            2 => writer.append("v", &array![value, "x"]),
            3 => writer.append("v", "a text"),
            4 => writer.append("w", &doc! { "deep": { "er": value } }),
            5 => writer.append("v", value as i32).append("w", Value::Null),
            _ => writer.append("v", value),
        };
    })
}

/// The two collections and the list.
struct Model {
    client: Client,
    random: Rng,
    points: Vec<DocBuf>,
}

impl Model {
    fn both(&mut self, command: impl Fn(&str) -> DocBuf) -> [DocBuf; 2] {
        ["closed", "rows"].map(|name| self.client.works(command(name)))
    }

    fn matching(&self, conditions: &[Condition]) -> Vec<DocBuf> {
        let passes = |point: &&DocBuf| conditions.iter().all(|condition| condition.passes(point));
        self.points.iter().filter(passes).cloned().collect()
    }

    fn insert(&mut self) {
        let count = 1 + self.random.below(30);
        let new: Vec<DocBuf> = (0..count).map(|_| point(&mut self.random)).collect();
        for name in ["closed", "rows"] {
            insert(&mut self.client, name, &new);
        }
        self.points.extend(new);
    }

    fn find(&mut self) {
        let (filter, conditions) = filter(&mut self.random, 3);
        let expected = self.matching(&conditions);
        let batch = 1 + self.random.below(40) as i64;
        let sort = match self.random.below(6) {
            0 => doc! { "t": 1 },
            1 => doc! { "t": -1 },
            2 => doc! { "$natural": -1 },
            3 => doc! { "m": 1, "t": 1 },
            4 => doc! { "v": 1 },
            _ => doc! {},
        };
        let command = |name: &str| doc! { "find": name, "filter": &filter, "sort": &sort };
        let found = all(&mut self.client, command("closed"), batch.max(2));
        let what = format!("{filter:?} {sort:?}");
        assert_eq!(sorted(found.clone()), sorted(expected.clone()), "{what}");
        let times: Vec<i64> = found.iter().map(time).collect();
        let is_natural = conditions.is_empty() && sort.as_doc().is_empty();
        if is_natural || sort == doc! { "t": 1 } {
            assert!(times.is_sorted(), "{what} {times:?}");
        } else if sort == doc! { "t": -1 } || sort == doc! { "$natural": -1 } {
            assert!(times.iter().rev().is_sorted(), "{what} {times:?}");
        }
        self.find_some(&filter, &sort, &expected);
    }

    /// Finds a part of the points in order: the sort keys are those of the whole.
    fn find_some(&mut self, filter: &DocBuf, sort: &DocBuf, expected: &[DocBuf]) {
        let (skip, limit) = (self.random.below(10) as i64, 1 + self.random.below(20) as i64);
        let command = |name: &str| {
            doc! { "find": name, "filter": filter, "sort": sort, "skip": skip, "limit": limit }
        };
        let some = all(&mut self.client, command("closed"), 7);
        let count = (expected.len() as i64 - skip).clamp(0, limit);
        assert_eq!(some.len() as i64, count, "{filter:?} {sort:?} {skip} {limit}");
        if sort.as_doc().first().is_some_and(|by| by.key() == "t") {
            let mut times: Vec<i64> = expected.iter().map(time).collect();
            times.sort_unstable();
            if sort.get("t").is_some_and(|way| way.to_f64() == Some(-1.0)) {
                times.reverse();
            }
            let wanted: Vec<i64> =
                times.into_iter().skip(skip as usize).take(limit as usize).collect();
            assert_eq!(some.iter().map(time).collect::<Vec<_>>(), wanted, "{filter:?} {sort:?}");
        }
    }

    fn aggregate(&mut self) {
        let (filter, conditions) = filter(&mut self.random, 2);
        let expected = self.matching(&conditions).len() as i64;
        let count = self.both(|name| doc! { "count": name, "query": &filter, "$db": "test" });
        assert_eq!(number(&count[0], "n"), Some(expected), "{filter:?}");
        // Which of several equal values stands for a group depends on the order of the points.
        let sums = doc! {
            "_id": { "type": { "$type": "$m" }, "m": "$m" },
            "n": { "$sum": 1 }, "v": { "$sum": "$v" }, "t": { "$min": "$t" },
        };
        let lookup = doc! {
            "from": "closed", "localField": "_id", "foreignField": "_id", "as": "same",
        };
        for stages in [
            array![{ "$match": &filter }, { "$group": &sums }],
            array![{ "$match": &filter }, { "$sort": { "t": -1 } }, { "$limit": 5 }, { "$project": { "t": 1, "_id": 0 } }],
            array![{ "$match": &filter }, { "$count": "n" }],
            array![{ "$match": &filter }, { "$sortByCount": { "$type": "$v" } }, { "$sort": { "count": 1, "_id": 1 } }],
            array![{ "$match": &filter }, { "$limit": 3 }, { "$count": "n" }],
            array![{ "$limit": 2 }, { "$lookup": &lookup }, { "$count": "n" }],
            array![{ "$match": { "_id": 3 } }, { "$limit": 1 }, { "$lookup": &lookup }, { "$project": { "n": { "$size": "$same" }, "_id": 0 } }],
            array![{ "$match": &filter }, { "$unionWith": "closed" }, { "$count": "n" }],
            array![{ "$sample": { "size": 4 } }, { "$count": "n" }],
        ] {
            let command = |name: &str| doc! { "aggregate": name, "pipeline": &stages };
            let [a, b] = ["closed", "rows"].map(|name| all(&mut self.client, command(name), 50));
            assert_eq!(sorted(a), sorted(b), "{stages:?}");
        }
        for key in ["m", "v", "_id", "m.a", "t"] {
            let distinct = |name: &str| {
                doc! { "distinct": name, "key": key, "query": &filter, "$db": "test" }
            };
            let [a, b] = self.both(distinct);
            assert!(are_equal(&a, &b), "{key} {filter:?} {a:?} {b:?}");
        }
    }

    fn delete(&mut self) {
        let (filter, conditions) = loop {
            let (filter, conditions) = filter(&mut self.random, 3);
            if conditions.len() >= 2 || self.random.below(8) == 0 {
                break (filter, conditions);
            }
        };
        let gone = self.matching(&conditions).len() as i64;
        let delete = |name: &str| {
            let one = doc! { "q": &filter, "limit": 0 };
            doc! { "delete": name, "deletes": [&one], "$db": "test" }
        };
        for reply in self.both(delete) {
            assert_eq!(number(&reply, "n"), Some(gone), "{filter:?}");
        }
        self.points.retain(|point| !conditions.iter().all(|condition| condition.passes(point)));
    }

    /// Removes the newest or the oldest point that matches, and the same one from the other collection and the list.
    fn remove_one(&mut self) {
        let (mut filter, conditions) = filter(&mut self.random, 2);
        if filter.get("t").is_some() {
            return;
        }
        let way = if self.random.below(2) == 0 { 1 } else { -1 };
        let removed = self.client.works(doc! {
            "findAndModify": "closed", "query": &filter, "sort": { "t": way }, "remove": true, "$db": "test",
        });
        let matching = self.matching(&conditions);
        let Some(Value::Document(removed)) = at(&removed, "value") else {
            assert!(matching.is_empty(), "{filter:?}");
            return;
        };
        let removed = removed.to_owned();
        let times = matching.iter().map(time);
        let expected = if way == 1 { times.min() } else { times.max() };
        assert_eq!(Some(time(&removed)), expected, "{filter:?}");
        let place = self.points.iter().position(|point| *point == removed);
        self.points.remove(place.unwrap_or_else(|| panic!("{removed:?} is no point")));
        // A point with the same bytes is as good.
        filter = DocBuf::new();
        let same_type = |field: &str| {
            let other = doc! { "$getField": { "field": field, "input": { "$literal": &removed } } };
            doc! { "$eq": [{ "$type": (format!("${field}").as_str()) }, { "$type": &other }] }
        };
        let is_same = doc! { "$and": [
            { "$eq": ["$$ROOT", { "$literal": &removed }] }, (&same_type("m")), (&same_type("v")),
        ] };
        filter.append("$expr", &is_same);
        let other =
            doc! { "delete": "rows", "deletes": [{ "q": &filter, "limit": 1 }], "$db": "test" };
        assert_eq!(number(&self.client.works(other), "n"), Some(1), "{removed:?}");
    }

    fn update(&mut self) {
        let meta = source(&mut self.random);
        let wanted = Condition::Inside(self.random.below(3) as i64);
        let mut filter = DocBuf::new();
        wanted.write(&mut filter);
        let change = match &meta {
            Some(meta) => doc! { "$set": { "m": meta } },
            None => doc! { "$unset": { "m": 1 } },
        };
        let matched = self.points.iter().filter(|point| wanted.passes(point)).count() as i64;
        let update = |name: &str| {
            let one = doc! { "q": &filter, "u": &change, "multi": true };
            doc! { "update": name, "updates": [&one], "$db": "test" }
        };
        for reply in self.both(update) {
            assert_eq!(number(&reply, "n"), Some(matched), "{filter:?} {change:?}");
        }
        for point in self.points.iter_mut().filter(|point| wanted.passes(point)) {
            *point = DocBuf::build(|writer| {
                writer.append("t", point.get("t").unwrap());
                writer.append_some("m", meta.as_ref().map(ValueBuf::as_value));
                for (name, value) in point.as_doc().fields() {
                    if !matches!(name, "t" | "m") {
                        writer.append(name, value);
                    }
                }
            });
        }
    }

    fn compare_whole(&mut self) {
        for name in ["closed", "rows"] {
            let found = all(&mut self.client, doc! { "find": name }, 100);
            assert_eq!(sorted(found), sorted(self.points.clone()), "{name}");
            let count = self.client.works(doc! { "count": name, "$db": "test" });
            assert_eq!(number(&count, "n"), Some(self.points.len() as i64));
        }
    }
}

/// Returns true if two replies of `distinct` have equal values: 1 and 1.0 are.
fn are_equal(a: &DocBuf, b: &DocBuf) -> bool {
    let list = |reply| at(reply, "values").unwrap();
    compare(list(a), list(b), None).is_eq()
}

fn run(seed: u64, operations: u64) {
    let server = closing_server();
    let mut client = server.client(1);
    create(&mut client, "closed");
    create(&mut client, "rows");
    let mut model = Model { client, random: Rng::new(seed), points: Vec::new() };
    let mut closings = 0;
    for step in 0..operations {
        match model.random.below(20) {
            0..=5 => model.insert(),
            6..=8 => {
                close(&mut model.client, "closed");
                closings += 1;
            }
            9..=13 => model.find(),
            14..=15 => model.aggregate(),
            16 => model.delete(),
            17 => model.remove_one(),
            18 => model.update(),
            _ => model.compare_whole(),
        }
        if step % 25 == 24 {
            let findings = check(server.0.store(), false).unwrap().findings;
            assert!(findings.is_empty(), "seed {seed} step {step}: {findings:?}");
        }
    }
    model.compare_whole();
    assert!(closings > 0);
    assert_eq!(bucket_count(&mut model.client, "rows"), 0);
    close(&mut model.client, "closed");
    assert!(bucket_count(&mut model.client, "closed") > 0 || model.points.is_empty());
    model.compare_whole();
}

#[test]
fn a_collection_with_buckets_answers_as_one_with_records_and_as_a_list() {
    for seed in 1..=4 {
        run(seed, 150);
    }
}

#[test]
#[ignore = "long"]
fn thousands_of_operations() {
    let first: u64 = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(100);
    for seed in first..first + 20 {
        eprintln!("seed {seed}");
        run(seed, 600);
    }
}
