//! Random expressions and random documents, for tests of properties that always hold.

use super::operator::{Arity, Operator, Run};
use super::registry::operators;
use quire_document::testing::Generator;
use quire_document::{ArrayBuf, DocBuf, Value, ValueBuf, doc};

/// Returns a random expression over the fields of random documents. Uses all operators, and more
/// often those that fit numbers and arrays.
pub(super) fn random_expression(random: &mut Generator, depth: u32) -> ValueBuf {
    if depth == 0 || random.one_in(4) {
        return match random.below(5) {
            0 => ValueBuf::new(*random.pick(&["$a", "$b", "$c.a", "$n", "$a.b", "$s"]).unwrap()),
            1 => ValueBuf::new(random.below(5) as i32),
            2 => doc! { "$literal": &random.value() }.into(),
            3 => ValueBuf::new(*random.pick(&["$$ROOT", "$$NOW", "$$REMOVE", "$t", "x"]).unwrap()),
            _ => random.number(),
        };
    }
    match random.below(8) {
        0..4 => common(random, depth),
        4..6 => any_call(random, depth),
        6 => on_fitting_values(random),
        _ => binding(random, depth),
    }
}

fn arguments(random: &mut Generator, count: usize, depth: u32) -> ArrayBuf {
    let args: Vec<ValueBuf> = (0..count).map(|_| random_expression(random, depth - 1)).collect();
    args.iter().collect()
}

fn common(random: &mut Generator, depth: u32) -> ValueBuf {
    const NAMES: &[(&str, usize)] = &[
        ("$add", 2),
        ("$subtract", 2),
        ("$multiply", 2),
        ("$divide", 2),
        ("$mod", 2),
        ("$eq", 2),
        ("$lt", 2),
        ("$gte", 2),
        ("$ne", 2),
        ("$cmp", 2),
        ("$and", 2),
        ("$or", 2),
        ("$not", 1),
        ("$cond", 3),
        ("$ifNull", 2),
        ("$abs", 1),
        ("$type", 1),
        ("$isNumber", 1),
        ("$concatArrays", 2),
        ("$setUnion", 2),
        ("$size", 1),
        ("$isArray", 1),
        ("$mergeObjects", 2),
        ("$in", 2),
        ("$arrayElemAt", 2),
        ("$floor", 1),
        ("$max", 2),
        ("$sum", 2),
        ("$toString", 1),
    ];
    let (name, count) = *random.pick(NAMES).unwrap();
    doc! { name: &arguments(random, count, depth) }.into()
}

/// Returns a call of an operator with a list of arguments, in a valid number.
fn any_call(random: &mut Generator, depth: u32) -> ValueBuf {
    let called = |operator: &&Operator| {
        !operator.volatile
            && !matches!(operator.run, Run::Form(_))
            && !matches!(operator.arity, Arity::Named(_) | Arity::Special)
    };
    let all: Vec<&Operator> = operators().filter(called).collect();
    let operator = *random.pick(&all).unwrap();
    let count = match operator.arity {
        Arity::Exactly(count) => count,
        Arity::Between(least, most) => least + random.below((most - least + 1) as u64) as usize,
        Arity::AtLeast(least, _) => least + random.below(2) as usize,
        Arity::Any | Arity::Named(_) | Arity::Special => random.below(4) as usize,
    };
    doc! { (operator.name): &arguments(random, count, depth) }.into()
}

/// Returns a call of an operator that needs values of a certain type, with constants or fields of
/// that type.
fn on_fitting_values(random: &mut Generator) -> ValueBuf {
    let constant = random.one_in(2);
    let text = if constant { ValueBuf::new("Ab cé ") } else { ValueBuf::new("$s") };
    let date = match constant {
        true => ValueBuf::new(Value::Date(1_709_210_096_789)),
        false => ValueBuf::new("$t"),
    };
    let list: ValueBuf = match constant {
        true => doc! { "$literal": [3, 1, 2, 1] }.into(),
        false => doc! { "$range": [0, "$i"] }.into(),
    };
    let zone = *random.pick(&["Europe/Paris", "UTC", "+05:30", "America/New_York"]).unwrap();
    match random.below(18) {
        0 => doc! { "$toUpper": &text },
        1 => doc! { "$substrCP": [&text, 1, 3] },
        2 => doc! { "$split": [&text, " "] },
        3 => doc! { "$trim": { "input": &text } },
        4 => doc! { "$regexFind": { "input": &text, "regex": "b +(c)" } },
        5 => doc! { "$replaceAll": { "input": &text, "find": "b", "replacement": "xx" } },
        6 => doc! { "$concat": [&text, "-", &text] },
        7 => doc! { "$dateToParts": { "date": &date, "timezone": zone } },
        8 => doc! { "$dateTrunc": { "date": &date, "unit": "week", "timezone": zone } },
        9 => doc! { "$dateAdd": { "startDate": &date, "unit": "month", "amount": "$i" } },
        10 => doc! { "$dateToString": { "date": &date, "timezone": zone } },
        11 => doc! { "$hour": { "date": &date, "timezone": zone } },
        12 => doc! { "$sortArray": { "input": &list, "sortBy": (-1) } },
        13 => doc! { "$slice": [&list, (-2)] },
        14 => doc! { "$setDifference": [&list, [1]] },
        15 => doc! { "$zip": { "inputs": [&list, &list] } },
        16 => doc! { "$bitXor": ["$i", 5] },
        _ => doc! { "$convert": { "input": &text, "to": "int", "onError": "$i" } },
    }
    .into()
}

/// Returns an expression that binds variables or selects between expressions.
fn binding(random: &mut Generator, depth: u32) -> ValueBuf {
    let inner = random_expression(random, depth - 1);
    let list = doc! { "$range": [0, { "$size": { "$ifNull": ["$none", [1, 2, 3]] } }] };
    match random.below(6) {
        0 => doc! { "$let": { "vars": { "v": &inner }, "in": ["$$v", "$$v", "$a"] } },
        1 => doc! { "$map": { "input": &list, "in": { "$cmp": ["$$this", &inner] } } },
        2 => doc! { "$filter": { "input": &list, "as": "x", "cond": { "$gt": ["$$x", &inner] } } },
        3 => doc! { "$reduce": { "input": &list, "initialValue": 0,
        "in": { "$max": ["$$value", &inner, "$$this"] } } },
        4 => doc! { "$switch": { "branches": [{ "case": &inner, "then": "$n" }], "default": 7 } },
        _ => doc! { "x": &inner, "y": { "z": "$b" } },
    }
    .into()
}

/// Returns a document: in half of the cases with fields of the expected types, otherwise of any
/// types.
pub(super) fn random_root(random: &mut Generator) -> DocBuf {
    let plain = random.one_in(2);
    let field = |random: &mut Generator| {
        if plain { ValueBuf::new(random.below(100) as i32) } else { random.value() }
    };
    let (a, b, c) = (field(random), field(random), field(random));
    let n = if plain { ValueBuf::new(random.below(9) as f64) } else { random.number() };
    let date = Value::Date(random.below(4_000_000_000_000) as i64);
    doc! { "a": &a, "b": &b, "c": { "a": &c }, "n": &n, "s": "ab c d", "t": date,
    "i": (random.below(5) as i32) }
}
