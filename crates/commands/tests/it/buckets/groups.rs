//! Groups over the columns of buckets have the results of groups over their points.

use super::{all, close, closing_server, create, insert, sorted};
use crate::{Client, number, text};
use quire_document::{ArrayBuf, DocBuf, Value, array, doc};
use quire_storage::rng::Rng;

const FIELDS: [&str; 7] = ["$v", "$w", "$x", "$m", "$t", "$none", "$n.a"];

/// Returns points whose field `v` has doubles only, `w` numbers of several types or none, `x` anything.
fn points(random: &mut Rng) -> Vec<DocBuf> {
    let point = |random: &mut Rng| {
        let time = random.below(60_000) as i64;
        let mut point = doc! { "t": Value::Date(time) };
        if !random.one_in(20) {
            point.append("m", random.below(4) as i32);
        }
        let number = random.below(10_000) as f64 / 100.0;
        point.append("v", number).append("n", &doc! { "a": number });
        match random.below(5) {
            0 => point.append("w", random.below(9) as i32),
            1 => point.append("w", random.below(9) as i64),
            2 => point.append("w", f64::NAN),
            3 => point.append("w", number),
            _ => &mut point,
        };
        match random.below(5) {
            0 => point.append("x", "text"),
            1 => point.append("x", Value::Null),
            2 => point.append("x", &doc! { "y": number }),
            3 => point.append("x", true),
            _ => point.append("x", random.below(3) as i32),
        };
        point
    };
    (0..800).map(|_| point(random)).collect()
}

fn key(random: &mut Rng) -> DocBuf {
    let unit = ["second", "minute", "hour", "day", "month"][random.below(5) as usize];
    let zone = ["UTC", "+05:30", "Europe/Berlin"][random.below(3) as usize];
    match random.below(8) {
        0 => doc! { "_id": Value::Null },
        1 => doc! { "_id": { "$dateTrunc": { "date": "$t", "unit": unit } } },
        2 => doc! { "_id": { "$dateTrunc": {
            "date": "$t", "unit": unit, "binSize": 1 + random.below(20) as i32, "timezone": zone,
        } } },
        3 => doc! { "_id": { "source": "$m", "x": "$x" } },
        4 => doc! { "_id": { "$add": ["$v", 1] } },
        5 => doc! { "_id": {
            "source": "$m",
            "at": { "$dateTrunc": { "date": "$t", "unit": unit, "binSize": 5, "timezone": zone } },
        } },
        _ => doc! { "_id": FIELDS[random.below(7) as usize] },
    }
}

fn group(random: &mut Rng) -> DocBuf {
    let mut group = key(random);
    for name in ["a", "b", "c"].iter().take(random.below(4) as usize) {
        let operators = ["$sum", "$avg", "$min", "$max", "$first", "$last", "$push", "$stdDevPop"];
        let operator = operators[random.below(8) as usize];
        let field = FIELDS[random.below(7) as usize];
        let accumulator = DocBuf::build(|writer| match random.below(5) {
            0 => {
                writer.append("$count", &doc! {});
            }
            1 => {
                writer.append(operator, &doc! { "$multiply": [field, 2] });
            }
            _ => {
                writer.append(operator, field);
            }
        });
        group.append(name, &accumulator);
    }
    group
}

fn condition(random: &mut Rng) -> DocBuf {
    let mut filter = doc! {};
    if random.one_in(2) {
        filter.append("m", random.below(4) as i32);
    }
    if random.one_in(2) {
        let first = random.below(60_000) as i64;
        let last = first + random.below(40_000) as i64;
        filter.append("t", &doc! { "$gte": Value::Date(first), "$lt": Value::Date(last) });
    }
    if random.one_in(2) {
        measured(random, &mut filter);
    }
    filter
}

/// Adds a condition on measurements, which columns decide unless it is on a nested field.
fn measured(random: &mut Rng, filter: &mut DocBuf) {
    let number = random.below(100) as f64;
    match random.below(10) {
        0 => filter.append("v", &doc! { "$gt": number }),
        1 => filter.append("v", &doc! { "$gte": 20, "$lt": number }),
        2 => filter.append("w", &doc! { "$in": [1, 2.0, Value::Null] }),
        3 => filter.append("w", &doc! { "$lte": (f64::NAN) }),
        4 => filter.append("x", &doc! { "$exists": (random.one_in(2)) }),
        5 => filter.append("x", &doc! { "$ne": "text" }),
        6 => filter
            .append("$or", &array![{ "x": { "$type": "object" } }, { "w": { "$mod": [3, 0] } }]),
        7 => filter.append("x", &doc! { "$regex": "^te" }),
        8 => filter.append("none", Value::Null),
        _ => filter.append("n.a", &doc! { "$lt": number }),
    };
}

/// Returns the results of a pipeline, or the code of its error.
fn results(client: &mut Client, pipeline: &ArrayBuf) -> Result<Vec<DocBuf>, DocBuf> {
    let command = doc! { "aggregate": "s", "pipeline": pipeline, "cursor": {}, "$db": "test" };
    let reply = client.run(command);
    match reply.get("code") {
        Some(code) => Err(doc! { "code": code }),
        None => Ok(sorted(all(client, doc! { "aggregate": "s", "pipeline": pipeline }, 100))),
    }
}

#[test]
fn groups_over_columns_equal_groups_over_points() {
    let server = closing_server();
    let mut client = server.client(1);
    let mut random = Rng::new(53);
    create(&mut client, "s");
    for points in points(&mut random).chunks(200) {
        insert(&mut client, "s", points);
    }
    assert!(close(&mut client, "s") > 10);
    insert(&mut client, "s", &points(&mut random)[..20]);
    let (mut failed, mut grouped) = (0, 0);
    for _ in 0..400 {
        let (filter, group) = (condition(&mut random), group(&mut random));
        let (matched, grouping) = (doc! { "$match": &filter }, doc! { "$group": &group });
        // The planner does not know that this is always true, so each point must be built.
        let of_points = doc! { "$match": { "$expr": { "$ne": ["$unknown", 1] } } };
        let columns: ArrayBuf = [&matched, &grouping].into_iter().collect();
        let points: ArrayBuf = [&matched, &of_points, &grouping].into_iter().collect();
        let found = results(&mut client, &columns);
        assert_eq!(found, results(&mut client, &points), "{filter:?} {group:?}");
        failed += usize::from(found.is_err());
        grouped += usize::from(found.is_ok_and(|found| !found.is_empty()));
    }
    assert!(failed > 5 && grouped > 150, "{failed} failed, {grouped} had groups");
}

/// Returns the part of an explain that shows a stage with its statistics.
fn stage(shown: Value<'_>, name: &str) -> Option<DocBuf> {
    match shown {
        Value::Document(doc) => {
            let own = doc.to_owned();
            let is_it = text(&own, "stage") == Some(name) && doc.contains("nReturned");
            is_it.then_some(own).or_else(|| doc.fields().find_map(|(_, value)| stage(value, name)))
        }
        Value::Array(list) => list.iter().find_map(|value| stage(value, name)),
        _ => None,
    }
}

#[test]
fn a_condition_on_a_measurement_examines_all_points_and_passes_on_those_that_match() {
    let server = closing_server();
    let mut client = server.client(1);
    create(&mut client, "s");
    let point =
        |n: i64| doc! { "t": Value::Date(n * 10), "m": (n % 2), "v": (n % 50), "w": "text" };
    insert(&mut client, "s", &(0..1000).map(point).collect::<Vec<DocBuf>>());
    assert!(close(&mut client, "s") >= 2);
    let sums = doc! { "_id": "$m", "n": { "$sum": "$v" } };
    for (stages, returned, found) in [
        (array![{ "$match": { "v": { "$lt": 5 } } }, { "$group": &sums }], 100, 2),
        (array![{ "$match": { "v": 3, "w": { "$ne": "x" } } }], 20, 20),
    ] {
        let command = doc! { "aggregate": "s", "pipeline": &stages, "cursor": {} };
        let verbosity = "executionStats";
        let shown =
            client.works(doc! { "explain": &command, "verbosity": verbosity, "$db": "test" });
        let scan = stage(Value::from(shown.as_doc()), "UNPACK_TS_BUCKET").unwrap();
        assert_eq!(number(&scan, "docsExamined"), Some(1000), "{shown:?}");
        assert_eq!(number(&scan, "nReturned"), Some(returned), "{shown:?}");
        let command = doc! { "aggregate": "s", "pipeline": &stages };
        assert_eq!(all(&mut client, command, 7).len(), found, "{stages:?}");
    }
}
