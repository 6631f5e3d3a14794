//! A filter on BSON bytes gives the result of a simple evaluator that collects the values first.

use super::*;
use crate::context::Shared;
use crate::expression::is_true;
use bumpalo::Bump;
use quire_document::testing::Generator;
use quire_document::{Array, ArrayBuf, Type, Value, ValueBuf, compare};
use std::cmp::Ordering;

/// Collects all values at a path, with `None` for missing ones, by the rules of the manual.
fn collect<'a>(value: Value<'a>, path: &[&str], expand: bool, found: &mut Vec<Option<Value<'a>>>) {
    let Some((first, rest)) = path.split_first() else {
        if let (Value::Array(array), true) = (value, expand) {
            found.extend(array.iter().map(Some));
        }
        return found.push(Some(value));
    };
    match value {
        Value::Document(doc) => match doc.get(first) {
            Some(inner) => collect(inner, rest, expand, found),
            None => found.push(None),
        },
        Value::Array(array) => collect_in_array(array, path, expand, found),
        _ => found.push(None),
    }
}

fn collect_in_array<'a>(
    array: Array<'a>,
    path: &[&str],
    expand: bool,
    found: &mut Vec<Option<Value<'a>>>,
) {
    for (index, element) in array.iter().enumerate() {
        if let Value::Document(_) = element {
            collect(element, path, expand, found);
        }
        if path[0] == index.to_string() {
            match (&path[1..], element) {
                ([], _) => found.push(Some(element)),
                (rest, Value::Document(_) | Value::Array(_)) => {
                    collect(element, rest, expand, found)
                }
                _ => {}
            }
        }
    }
}

fn is_nan(value: Value<'_>) -> bool {
    value.as_number().is_some_and(|number| number.is_nan())
}

fn compares(operator: &str, value: Option<Value<'_>>, operand: Value<'_>) -> bool {
    let equal_counts = matches!(operator, "$eq" | "$gte" | "$lte");
    let Some(value) = value else {
        return match operand {
            Value::Null => equal_counts,
            Value::MaxKey => operator.starts_with("$lt"),
            Value::MinKey => operator.starts_with("$gt"),
            _ => false,
        };
    };
    let same = value.kind().rank() == operand.kind().rank();
    let edge = match operand {
        Value::MaxKey => operator.starts_with("$lt"),
        Value::MinKey => operator.starts_with("$gt"),
        _ => false,
    };
    match (same, compare(value, operand, None)) {
        (false, _) => edge,
        (true, _) if is_nan(value) != is_nan(operand) => false,
        (true, Ordering::Equal) => equal_counts,
        (true, Ordering::Less) => operator.starts_with("$lt"),
        (true, Ordering::Greater) => operator.starts_with("$gt"),
    }
}

/// Returns true if the value passes one operator.
fn passes(operator: &str, operand: Value<'_>, value: Option<Value<'_>>) -> bool {
    match (operator, operand) {
        ("$eq" | "$gt" | "$gte" | "$lt" | "$lte", _) => compares(operator, value, operand),
        ("$ne", _) => !compares("$eq", value, operand),
        ("$in", Value::Array(list)) => list.iter().any(|item| compares("$eq", value, item)),
        ("$nin", Value::Array(list)) => !list.iter().any(|item| compares("$eq", value, item)),
        ("$exists", operand) => value.is_some() == is_true(Some(operand)),
        ("$type", Value::Int32(code)) => value.is_some_and(|value| value.kind().number() == code),
        ("$type", Value::String(_)) => value.is_some_and(|value| value.is_number()),
        ("$type", Value::Array(list)) => list.iter().any(|kind| passes("$type", kind, value)),
        ("$mod", Value::Array(pair)) => {
            let at = |index| pair.get(index).and_then(whole).unwrap_or(0);
            value.and_then(whole).is_some_and(|number| number % at(0) == at(1))
        }
        ("$bitsAllSet" | "$bitsAnySet" | "$bitsAllClear" | "$bitsAnyClear", Value::Array(list)) => {
            let bits: Option<Vec<bool>> = list
                .iter()
                .filter_map(|position| position.exact_i64())
                .map(|position| bit(value?, position as u32))
                .collect();
            bits.is_some_and(|bits| {
                let wanted = operator.ends_with("Set");
                match operator.contains("All") {
                    true => bits.iter().all(|bit| *bit == wanted),
                    false => bits.contains(&wanted),
                }
            })
        }
        ("$regex", Value::String(pattern)) => matches!(
            value,
            Some(Value::String(text) | Value::Symbol(text))
                if text.starts_with(pattern.trim_start_matches('^'))
        ),
        ("$size", Value::Int32(size)) => {
            matches!(value, Some(Value::Array(array)) if array.count() as i32 == size)
        }
        ("$not", Value::Document(doc)) => {
            !doc.fields().all(|(op, operand)| passes(op, operand, value))
        }
        ("$elemMatch", Value::Document(doc)) => match value {
            Some(Value::Array(array)) => array.iter().any(|element| elem_matches(doc, element)),
            _ => false,
        },
        _ => panic!("{operator}"),
    }
}

/// Returns the integer part of a number.
fn whole(value: Value<'_>) -> Option<i128> {
    let number = value.to_f64().filter(|number| number.is_finite())?.trunc();
    match value {
        Value::Int32(number) => Some(number.into()),
        Value::Int64(number) => Some(number.into()),
        Value::Double(_) if number >= -(2f64.powi(63)) && number < 2f64.powi(63) => {
            Some(number as i128)
        }
        Value::Double(_) => None,
        other => other.as_number()?.to_i64_truncated().map(i128::from),
    }
}

/// Returns a bit of a number with its sign extended, or of bytes extended with zeros.
fn bit(value: Value<'_>, position: u32) -> Option<bool> {
    if let Value::Binary(binary) = value {
        let byte = binary.bytes.get(position as usize / 8).copied().unwrap_or(0);
        return Some(byte & (1 << (position % 8)) != 0);
    }
    let number = i128::from(value.exact_i64()?);
    Some((number >> position) & 1 == 1)
}

fn elem_matches(condition: Doc<'_>, element: Value<'_>) -> bool {
    let logical = condition.first().is_some_and(|f| matches!(f.key(), "$and" | "$or" | "$nor"));
    if parse::is_operator_document(condition) && !logical {
        return condition.fields().all(|(op, operand)| passes(op, operand, Some(element)));
    }
    match element {
        Value::Document(doc) => naive(condition, doc),
        Value::Array(array) => naive(condition, array.as_doc()),
        _ => false,
    }
}

fn operator_holds(path: &str, operator: &str, operand: Value<'_>, doc: Doc<'_>) -> bool {
    match (operator, operand) {
        ("$ne", _) => !operator_holds(path, "$eq", operand, doc),
        ("$nin", _) => !operator_holds(path, "$in", operand, doc),
        ("$exists", operand) if !is_true(Some(operand)) => {
            !operator_holds(path, "$exists", Value::Bool(true), doc)
        }
        ("$not", Value::Document(inner)) => {
            !inner.fields().all(|(op, operand)| operator_holds(path, op, operand, doc))
        }
        ("$all", Value::Array(list)) => {
            !list.is_empty() && list.iter().all(|item| operator_holds(path, "$eq", item, doc))
        }
        _ => {
            let path: Vec<&str> = path.split('.').collect();
            let mut found = Vec::new();
            let expand = !matches!(operator, "$size" | "$elemMatch");
            collect(Value::Document(doc), &path, expand, &mut found);
            found.into_iter().any(|value| passes(operator, operand, value))
        }
    }
}

fn naive(filter: Doc<'_>, doc: Doc<'_>) -> bool {
    let holds = |value: Value<'_>| value.as_document().is_some_and(|filter| naive(filter, doc));
    filter.fields().all(|(name, value)| match (name, value) {
        ("$and", Value::Array(list)) => list.iter().all(holds),
        ("$or", Value::Array(list)) => list.iter().any(holds),
        ("$nor", Value::Array(list)) => !list.iter().any(holds),
        (path, Value::Document(operators)) if parse::is_operator_document(operators) => operators
            .fields()
            .all(|(operator, operand)| operator_holds(path, operator, operand, doc)),
        (path, value) => operator_holds(path, "$eq", value, doc),
    })
}

/// Returns a value from the document, or a random one.
fn operand(generator: &mut Generator, doc: Doc<'_>) -> ValueBuf {
    let mut value = Value::Document(doc);
    while !generator.one_in(3) {
        let inner: Vec<Value<'_>> = match value {
            Value::Document(doc) => doc.fields().map(|(_, value)| value).collect(),
            Value::Array(array) => array.to_vec(),
            _ => break,
        };
        let Some(next) = generator.pick(&inner) else { break };
        value = *next;
    }
    let usable = !matches!(value, Value::Undefined | Value::Regex(_));
    match usable && !generator.one_in(4) {
        true => ValueBuf::new(value),
        false => ValueBuf::new(generator.below(4) as i32),
    }
}

fn path(generator: &mut Generator) -> String {
    let parts = 1 + generator.below(3);
    let names = ["a", "b", "c", "0", "1", "_id", ""];
    let parts: Vec<&str> = (0..parts).filter_map(|_| generator.pick(&names).copied()).collect();
    parts.join(".")
}

fn operators(generator: &mut Generator, doc: Doc<'_>, depth: u32) -> DocBuf {
    let names = [
        "$eq",
        "$ne",
        "$gt",
        "$gte",
        "$lt",
        "$lte",
        "$in",
        "$nin",
        "$exists",
        "$type",
        "$size",
        "$not",
        "$elemMatch",
        "$mod",
        "$bitsAllSet",
        "$bitsAnySet",
        "$bitsAllClear",
        "$bitsAnyClear",
        "$regex",
    ];
    let name = generator.pick(&names).copied().unwrap_or("$eq");
    let mut written = DocBuf::new();
    match name {
        "$in" | "$nin" => {
            let count = generator.below(4);
            let list: Vec<ValueBuf> = (0..count).map(|_| operand(generator, doc)).collect();
            written.append(name, &list.iter().collect::<ArrayBuf>());
        }
        "$exists" => {
            written.append(name, generator.one_in(2));
        }
        "$type" => {
            let kinds = [Type::Double, Type::String, Type::Document, Type::Array, Type::Null];
            let kind = generator.pick(&kinds).map_or(16, |kind| kind.number());
            match generator.below(3) {
                0 => written.append(name, "number"),
                1 => written.append(name, &quire_document::array![kind, "number"]),
                _ => written.append(name, kind),
            };
        }
        "$size" => {
            written.append(name, generator.below(4) as i32);
        }
        "$mod" => {
            let divisor = 1 + generator.below(4) as i32;
            let remainder = generator.below(3) as i32 - 1;
            written.append(name, &quire_document::array![divisor, remainder]);
        }
        "$regex" => {
            let text = generator.name().replace('.', "");
            written.append(name, format!("^{text}").as_str());
        }
        _ if name.starts_with("$bits") => {
            let count = 1 + generator.below(3);
            let positions: ArrayBuf = (0..count).map(|_| generator.below(70) as i32).collect();
            written.append(name, &positions);
        }
        "$not" | "$elemMatch" if depth < 2 && (name == "$not" || generator.one_in(2)) => {
            written.append(name, &operators(generator, doc, depth + 1));
        }
        "$not" | "$elemMatch" => {
            let inner = if name == "$not" {
                quire_document::doc! { "$gt": 1 }
            } else {
                filter(generator, doc, depth + 2)
            };
            written.append(name, &inner);
        }
        name => {
            written.append(name, &operand(generator, doc));
        }
    }
    written
}

fn filter(generator: &mut Generator, doc: Doc<'_>, depth: u32) -> DocBuf {
    if depth < 3 && generator.one_in(3) {
        let name = generator.pick(&["$and", "$or", "$nor"]).copied().unwrap_or("$and");
        let count = 1 + generator.below(3);
        let list: Vec<DocBuf> = (0..count).map(|_| filter(generator, doc, depth + 1)).collect();
        let mut written = DocBuf::new();
        written.append(name, &list.iter().collect::<ArrayBuf>());
        return written;
    }
    let mut written = DocBuf::new();
    for _ in 0..=generator.below(2) {
        match generator.below(6) {
            0 => written.append(&path(generator), &operand(generator, doc)),
            1 => {
                let list: Vec<ValueBuf> =
                    (0..generator.below(3)).map(|_| operand(generator, doc)).collect();
                let list: ArrayBuf = list.iter().collect();
                let all = DocBuf::build(|writer| {
                    writer.append("$all", &list);
                });
                written.append(&path(generator), &all)
            }
            _ => {
                let inner = operators(generator, doc, depth);
                written.append(&path(generator), &inner)
            }
        };
    }
    written
}

#[test]
fn as_the_naive_evaluator() {
    let (arena, shared) = (Bump::new(), Shared::default());
    let cx = EvalContext::new(&arena, Doc::empty(), &shared);
    let (mut run, mut passed) = (0, 0);
    for seed in 0..8_000 {
        let mut generator = Generator::new(seed);
        let doc = generator.document();
        let doc = doc.as_doc();
        let query = filter(&mut generator, doc, 0);
        let Ok(simplified) = Filter::parse(query.as_doc(), &ParseContext::default()) else {
            continue;
        };
        let context = ParseContext::default();
        let exact = Filter::parse_exact(query.as_doc(), &context, Features::ALL).unwrap();
        let expected = naive(query.as_doc(), doc);
        assert_eq!(exact.matches(doc, &cx).unwrap(), expected, "{seed}: {query:?} on {doc:?}");
        let what = format!("{seed}: {query:?} as {:?} on {doc:?}", simplified.root());
        assert_eq!(simplified.matches(doc, &cx).unwrap(), expected, "{what}");
        let printed = simplified.to_bson();
        let again = Filter::parse(printed.as_doc(), &context);
        let again = again.unwrap_or_else(|error| panic!("{error}: {printed:?} of {what}"));
        assert_eq!(again.matches(doc, &cx).unwrap(), expected, "{printed:?} of {what}");
        run += 1;
        passed += expected as u32;
    }
    assert!(run > 5_000 && passed > run / 10 && passed < run * 9 / 10, "{passed} of {run}");
}
