//! Random indexes, documents and queries: few paths and few values, so that they meet often; arrays
//! in arrays, documents in arrays, undefined, MinKey and MaxKey, numbers as names.

use quire_document::{ArrayBuf, DocBuf, Regex, Value, ValueBuf, doc};
use quire_storage::rng::Rng;

/// The paths of indexes, filters and sorts.
const PATHS: &[&str] =
    &["a", "a.x", "a.y", "a.x.y", "a.0", "a.0.x", "a.x.0", "b", "b.x", "b.y", "k", "_id"];

pub fn pick<'t, T>(random: &mut Rng, things: &'t [T]) -> &'t T {
    &things[random.below(things.len() as u64) as usize]
}

pub fn path(random: &mut Rng) -> &'static str {
    pick::<&str>(random, PATHS)
}

fn direction(random: &mut Rng) -> i32 {
    if random.one_in(2) { 1 } else { -1 }
}

/// Returns an index specification with this name.
pub fn index(random: &mut Rng, name: &str) -> DocBuf {
    let mut key = DocBuf::new();
    let mut options = DocBuf::new();
    match random.below(14) {
        0 => drop(key.append("$**", direction(random))),
        1 => drop(key.append("a.$**", 1)),
        2 => drop(key.append("k", 1).append("a.$**", 1)),
        3 => drop(key.append(path(random), "hashed")),
        _ => {
            for _ in 0..1 + random.below(3) {
                let path = path(random);
                if !key.as_doc().contains(path) {
                    key.append(path, direction(random));
                }
            }
            match random.below(10) {
                0 => drop(options.append("sparse", true)),
                1 => {
                    let path = path(random);
                    let filter = doc! { (path): { "$exists": true } };
                    options.append("partialFilterExpression", &filter);
                }
                2 => {
                    let filter = doc! { "k": { "$gte": 1 } };
                    options.append("partialFilterExpression", &filter);
                }
                _ => {}
            }
        }
    }
    if random.one_in(12) {
        options.append("collation", &doc! { "locale": "en", "strength": 2 });
    }
    let mut spec = doc! { "key": &key, "name": name };
    spec.extend(|writer| {
        writer.append_all(options.as_doc());
    });
    spec
}

/// Returns a value without elements or fields.
fn scalar(random: &mut Rng) -> ValueBuf {
    match random.below(16) {
        0 | 1 => ValueBuf::new(Value::Null),
        2 => ValueBuf::new("text"),
        3 => ValueBuf::new("Text"),
        4 => ValueBuf::new(true),
        5 => ValueBuf::new(random.below(6) as f64 / 2.0),
        6 => ValueBuf::new(Value::MinKey),
        7 => ValueBuf::new(Value::MaxKey),
        _ => ValueBuf::new(random.below(5) as i32),
    }
}

/// Returns a value of a document.
fn value(random: &mut Rng, depth: u32) -> ValueBuf {
    match random.below(9) {
        0 if depth < 3 => array(random, depth, &mut value),
        1 if depth < 2 => array(random, depth, &mut |random, depth| fields(random, depth).into()),
        2..=4 if depth < 3 => fields(random, depth).into(),
        5 if random.one_in(4) => ValueBuf::new(Value::Undefined),
        5 if random.one_in(6) => ValueBuf::new(Value::Regex(Regex { pattern: "^te", options: "" })),
        _ => scalar(random),
    }
}

fn array(
    random: &mut Rng,
    depth: u32,
    element: &mut dyn FnMut(&mut Rng, u32) -> ValueBuf,
) -> ValueBuf {
    let items: Vec<ValueBuf> = (0..random.below(4)).map(|_| element(random, depth + 1)).collect();
    ValueBuf::from(items.iter().map(ValueBuf::as_value).collect::<ArrayBuf>())
}

fn fields(random: &mut Rng, depth: u32) -> DocBuf {
    let mut fields = DocBuf::new();
    for name in ["x", "y", "0"] {
        if random.one_in(if name == "0" { 5 } else { 2 }) {
            fields.append(name, &value(random, depth + 1));
        }
    }
    fields
}

/// Returns a document.
pub fn document(random: &mut Rng, id: i32) -> DocBuf {
    let mut doc = DocBuf::new();
    match random.below(6) {
        0 => drop(doc.append("_id", &doc! { "x": id % 7, "n": id })),
        _ => drop(doc.append("_id", id)),
    }
    if !random.one_in(5) {
        doc.append("k", &scalar(random));
    }
    for name in ["a", "b"] {
        if !random.one_in(5) {
            doc.append(name, &value(random, 0));
        }
    }
    doc
}

fn test(random: &mut Rng) -> ValueBuf {
    let (low, high) = (&scalar(random), &scalar(random));
    let test = match random.below(24) {
        0 => doc! { "$gt": low },
        1 => doc! { "$gte": low, "$lt": high },
        2 => doc! { "$in": [low, high] },
        3 => doc! { "$exists": true },
        4 => doc! { "$exists": false },
        5 => doc! { "$ne": low },
        6 => doc! { "$type": "object" },
        7 => doc! { "$type": ["string", "array", "undefined"] },
        8 => doc! { "$elemMatch": { "$gte": low } },
        9 => doc! { "$elemMatch": { "x": low } },
        10 => doc! { "$regex": "^te" },
        11 => doc! { "$lte": low },
        12 => doc! { "$nin": [low, high] },
        13 => doc! { "$not": { "$gt": low } },
        14 => doc! { "$all": [low, high] },
        15 => doc! { "$mod": [2, 1] },
        16 => doc! { "$in": [low, Value::Null] },
        17 => doc! { "$nin": [low, Value::Null] },
        18 => doc! { "$size": random.below(3) as i32 },
        19 => doc! { "$elemMatch": { "x": low, "y": { "$lte": high } } },
        20 => doc! { "$elemMatch": { "$ne": Value::Null } },
        21 => doc! { "$not": { "$gte": Value::Null } },
        22 => {
            let value = value(random, 1);
            return match value.as_value() {
                Value::Undefined | Value::Regex(_) => scalar(random),
                _ => value,
            };
        }
        _ => return scalar(random),
    };
    test.into()
}

/// Returns a filter.
pub fn filter(random: &mut Rng) -> DocBuf {
    let one = |random: &mut Rng| {
        let path = path(random);
        doc! { (path): &test(random) }
    };
    let (first, second, third) = (&one(random), &one(random), &one(random));
    match random.below(12) {
        0 => doc! { "$or": [first, second] },
        1 => {
            let field = format!("${}", path(random));
            let operator = *pick(random, &["$gt", "$lte", "$eq", "$ne"]);
            doc! { "$expr": { (operator): [field.as_str(), &scalar(random)] } }
        }
        2 => first.clone(),
        3 => doc! { "$nor": [first, second] },
        4 => doc! { "$or": [first, { "$and": [second, third] }] },
        5 => doc! { "$and": [first, { "$or": [second, third] }] },
        6 => DocBuf::new(),
        _ => doc! { "$and": [first, second] },
    }
}

/// Returns the sort by the first fields of a key, in its order or in the reverse order, or by any
/// paths.
pub fn sort(random: &mut Rng, key: &DocBuf) -> DocBuf {
    let mut sort = DocBuf::new();
    if random.one_in(4) {
        for _ in 0..1 + random.below(2) {
            let path = path(random);
            if !sort.as_doc().contains(path) {
                sort.append(path, direction(random));
            }
        }
        return sort;
    }
    let (length, reversed) =
        (1 + random.below(key.as_doc().count() as u64) as usize, random.one_in(2));
    for (path, value) in key.as_doc().fields().take(length) {
        let ascending = !matches!(value, Value::Int32(-1));
        if !path.contains('$') {
            sort.append(path, if ascending != reversed { 1 } else { -1 });
        }
    }
    sort
}

/// Returns a projection, which keeps `_id` or not.
pub fn projection(random: &mut Rng, key: &DocBuf) -> DocBuf {
    let mut projection = DocBuf::new();
    if random.one_in(2) {
        projection.append("_id", 0);
    }
    let of_key: Vec<&str> =
        key.as_doc().fields().map(|(path, _)| path).filter(|path| !path.contains('$')).collect();
    let path = match of_key.is_empty() || random.one_in(4) {
        true => path(random),
        false => pick::<&str>(random, &of_key),
    };
    match random.below(4) {
        _ if path == "_id" || path.starts_with("_id.") => {}
        0 => drop(projection.append("c", &doc! { "$ifNull": [format!("${path}").as_str(), "no"] })),
        _ => drop(projection.append(path, 1)),
    }
    if random.one_in(3) && !projection.as_doc().contains("k") {
        projection.append("k", 1);
    }
    projection
}
