//! What an index can do for `$expr`: `{$eq: ["$a", 5]}` also gives the bound `a = 5`. The
//! expression itself stays in the filter, because its meaning on arrays and nulls differs.

use crate::predicate::{Comparison, Predicate, Test};
use quire_document::{Array, ArrayBuf, DocBuf, Value, ValueBuf};

/// The expression with its constants marked, as explain prints it.
pub(crate) fn print(expression: Value<'_>) -> ValueBuf {
    match expression {
        Value::String(text) if text.starts_with('$') => ValueBuf::new(expression),
        Value::Array(array) if array.iter().any(is_dynamic) => print_list(array),
        Value::Document(doc) if doc.contains("$const") || doc.contains("$literal") => {
            let value = doc.first().map_or(Value::Null, |first| first.value());
            constant(value)
        }
        Value::Document(doc) => ValueBuf::from(DocBuf::build(|writer| {
            for (name, value) in doc.fields() {
                let printed = match value {
                    Value::Array(array) => print_list(array),
                    value => print(value),
                };
                writer.append(name, &printed);
            }
        })),
        other => constant(other),
    }
}

fn print_list(array: Array<'_>) -> ValueBuf {
    let items: Vec<ValueBuf> = array.iter().map(print).collect();
    ValueBuf::from(items.iter().collect::<ArrayBuf>())
}

/// True if the value is more than a constant.
fn is_dynamic(value: Value<'_>) -> bool {
    match value {
        Value::String(text) => text.starts_with('$'),
        Value::Document(doc) => !doc.is_empty(),
        Value::Array(array) => array.iter().any(is_dynamic),
        _ => false,
    }
}

fn constant(value: Value<'_>) -> ValueBuf {
    ValueBuf::from(DocBuf::build(|writer| {
        writer.append("$const", value);
    }))
}

/// The comparisons that every match must satisfy and that an index can serve.
pub(crate) fn comparisons(expression: Value<'_>) -> Vec<Predicate> {
    let Value::Document(doc) = expression else { return Vec::new() };
    let Some((name, argument)) = doc.fields().next() else { return Vec::new() };
    if doc.count() != 1 {
        return Vec::new();
    }
    match name {
        "$and" => match argument {
            Value::Array(array) => array.iter().flat_map(comparisons).collect(),
            other => comparisons(other),
        },
        "$or" => {
            let Value::Array(array) = argument else { return Vec::new() };
            let branches: Vec<Vec<Predicate>> = array.iter().map(comparisons).collect();
            if branches.is_empty() || branches.iter().any(Vec::is_empty) {
                return Vec::new();
            }
            vec![Predicate::Or(branches.into_iter().map(Predicate::And).collect())]
        }
        "$eq" => compare(None, argument),
        "$gt" => compare(Some(Comparison::Gt), argument),
        "$gte" => compare(Some(Comparison::Gte), argument),
        "$lt" => compare(Some(Comparison::Lt), argument),
        "$lte" => compare(Some(Comparison::Lte), argument),
        _ => Vec::new(),
    }
}

fn compare(comparison: Option<Comparison>, argument: Value<'_>) -> Vec<Predicate> {
    let Value::Array(array) = argument else { return Vec::new() };
    let mut sides = array.iter();
    let (Some(left), Some(right), None) = (sides.next(), sides.next(), sides.next()) else {
        return Vec::new();
    };
    let found = match (field_path(left), literal(right), literal(left), field_path(right)) {
        (Some(path), Some(value), _, _) => Some((path, comparison, value)),
        (_, _, Some(value), Some(path)) => Some((path, comparison.map(Comparison::flipped), value)),
        _ => None,
    };
    found
        .filter(|(_, _, value)| {
            !matches!(value, Value::Array(_) | Value::Undefined | Value::Regex(_))
        })
        .map(|(path, comparison, value)| {
            Predicate::leaf(path, Test::InternalExpr(comparison, ValueBuf::new(value)))
        })
        .into_iter()
        .collect()
}

fn field_path(value: Value<'_>) -> Option<&str> {
    let path = value.as_str()?.strip_prefix('$')?;
    (!path.starts_with('$') && !path.is_empty()).then_some(path)
}

fn literal(value: Value<'_>) -> Option<Value<'_>> {
    match value {
        Value::String(text) => (!text.starts_with('$')).then_some(value),
        Value::Document(doc) => match doc.first() {
            Some(first) if matches!(first.key(), "$const" | "$literal") => Some(first.value()),
            None => Some(value),
            Some(_) => None,
        },
        Value::Array(_) => None,
        other => Some(other),
    }
}
