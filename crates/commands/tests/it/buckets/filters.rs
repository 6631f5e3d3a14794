//! Filters on measurements: tested with the columns of buckets they have the answers of the same filters on documents.

use super::{all, by_names, close, closing_server, create, insert, sorted};
use crate::Client;
use quire_document::{ArrayBuf, DocBuf, Value, ValueBuf, array, doc};
use quire_storage::rng::Rng;

const PATHS: [&str; 13] = [
    "int", "double", "any", "doc", "text", "null", "same", "list", "doc.x", "any.0", "any.x",
    "list.0", "none",
];

fn list(values: &ArrayBuf) -> ValueBuf {
    ValueBuf::new(Value::Array(values.as_array()))
}

fn value(random: &mut Rng) -> ValueBuf {
    let number = random.below(6) as i32;
    match random.below(17) {
        0 => ValueBuf::new(Value::Null),
        1 => ValueBuf::new(f64::NAN),
        2 => ValueBuf::new(-0.0),
        3 => ValueBuf::new(f64::from(number)),
        4 => ValueBuf::new(i64::from(number)),
        5 => ValueBuf::new(["a", "A", "b", "a text", ""][number as usize % 5]),
        6 => ValueBuf::new(Value::Date(i64::from(number))),
        7 => ValueBuf::new(number % 2 == 0),
        8 => ValueBuf::from(doc! { "x": number }),
        9 => ValueBuf::from(doc! { "x": [number, Value::Null] }),
        10 => list(&array![number, "A", 2.0]),
        11 => list(&array![[number], { "x": number }]),
        12 => list(&ArrayBuf::new()),
        13 => list(&array![Value::Null, f64::NAN]),
        14 => ValueBuf::new(Value::MinKey),
        _ => ValueBuf::new(number),
    }
}

fn point(random: &mut Rng, n: i64) -> DocBuf {
    let number = random.below(6) as i32;
    DocBuf::build(|point| {
        point.append("t", Value::Date(n * 40)).append("m", random.below(3) as i32);
        point.append("_id", n).append("int", number);
        point.append("double", [0.5, f64::NAN, -0.0, 2.0][number as usize % 4]);
        if !random.one_in(4) {
            point.append("any", &value(random));
        }
        point.append("doc", &doc! { "x": number });
        point.append("text", ["a", "A", "b", "B"][number as usize % 4]);
        if random.one_in(2) {
            point.append("null", Value::Null);
        }
        point.append("same", 3).append("list", &array![1, "a", [2]]);
    })
}

fn test(random: &mut Rng) -> DocBuf {
    let number = random.below(6) as i32;
    let (a, b) = (value(random), value(random));
    match random.below(19) {
        0 | 1 => doc! { "$eq": &a },
        2 => doc! { "$ne": &a },
        3 => doc! { "$gt": &a },
        4 => doc! { "$gte": &a },
        5 => doc! { "$lt": &a },
        6 => doc! { "$lte": &a },
        7 => doc! { "$in": [&a, &b] },
        8 => doc! { "$nin": [&a, &b] },
        9 => doc! { "$exists": (random.one_in(2)) },
        10 => {
            doc! { "$type": (["int", "double", "array", "null", "object", "string"][number as usize]) }
        }
        11 => doc! { "$mod": [2, (number % 2)] },
        12 => doc! { "$size": (number % 4) },
        13 => doc! { "$all": [&a, &b] },
        14 => doc! { "$elemMatch": { "$gte": &a, "$lte": &b } },
        15 => doc! { "$elemMatch": { "x": number } },
        16 => doc! { "$regex": "^a", "$options": (if random.one_in(2) { "i" } else { "" }) },
        17 => doc! { "$not": { "$gte": &a, "$lt": &b } },
        _ => doc! { "$bitsAnySet": number },
    }
}

fn filter(random: &mut Rng, depth: u64) -> DocBuf {
    let path = PATHS[random.below(PATHS.len() as u64) as usize];
    let kind = if depth == 0 { 9 } else { random.below(10) };
    if kind > 4 {
        return doc! { path: (&test(random)) };
    }
    let parts: Vec<DocBuf> = (0..=random.below(3)).map(|_| filter(random, depth - 1)).collect();
    let parts: ArrayBuf = parts.iter().collect();
    match kind {
        0 => doc! { "$or": &parts },
        1 => doc! { "$nor": &parts },
        2 => doc! { "$and": &parts, "m": { "$lt": 2 } },
        _ => doc! { "$and": &parts },
    }
}

/// Returns what a command finds in a collection.
fn found(client: &mut Client, (name, kind): (&str, u64), options: &DocBuf) -> Vec<DocBuf> {
    let filter = options.get("filter").unwrap();
    let command = match kind {
        0 => {
            let group = doc! { "_id": "$m", "n": { "$sum": 1 }, "ids": { "$sum": "$_id" } };
            let stages = array![{ "$match": filter }, { "$group": &group }];
            let mut command = doc! { "aggregate": name, "pipeline": &stages };
            if let Some(collation) = options.get("collation") {
                command.append("collation", collation);
            }
            command
        }
        _ => {
            let mut command = doc! { "find": name };
            command.extend(|fields| {
                options.as_doc().fields().for_each(|(name, value)| {
                    fields.append(name, value);
                });
            });
            command
        }
    };
    let found = all(client, command, 50);
    found.iter().map(|doc| by_names(doc.as_doc())).collect()
}

#[test]
fn filters_on_columns_have_the_answers_of_filters_on_documents() {
    let server = closing_server();
    let mut client = server.client(1);
    let mut random = Rng::new(71);
    create(&mut client, "closed");
    let points: Vec<DocBuf> = (0..900).map(|n| point(&mut random, n)).collect();
    for name in ["closed", "plain"] {
        insert(&mut client, name, &points);
    }
    assert!(close(&mut client, "closed") >= 9);
    let mut partly = 0;
    for _ in 0..500 {
        let mut options = doc! { "filter": (&filter(&mut random, 2)) };
        if random.one_in(3) {
            options.append("collation", &doc! { "locale": "en", "strength": 2 });
        }
        if random.one_in(3) {
            options.append("projection", &doc! { "any": 1, "int": 1 });
        }
        match random.below(4) {
            0 => options.append("sort", &doc! { "m": 1, "t": -1 }),
            1 => options.append("sort", &doc! { "t": -1 }),
            _ => &mut options,
        };
        let kind = random.below(3);
        let [closed, plain] =
            ["closed", "plain"].map(|name| found(&mut client, (name, kind), &options));
        partly += usize::from((1..points.len()).contains(&plain.len()));
        if options.get("sort").is_some() && kind > 0 {
            assert_eq!(closed, plain, "{options:?}");
        } else {
            assert_eq!(sorted(closed), sorted(plain), "{options:?}");
        }
    }
    assert!(partly > 100, "{partly}");
}
