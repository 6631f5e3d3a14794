//! The shape of an expression: operators, paths and variables stay, constants become types.

use super::{literal, projection};
use quire_document::{Array, ArrayBuf, Doc, DocBuf, DocWriter, Value, ValueBuf};

/// Arguments that are names, not values: operator and argument. An empty argument stands for an operand
/// that is no document. A name is a string; anything else is an expression.
const NAMES: &[(&str, &str)] = &[
    ("$filter", "as"),
    ("$getField", "field"),
    ("$getField", ""),
    ("$map", "as"),
    ("$setField", "field"),
    ("$unsetField", "field"),
];

/// Arguments that are one of some words: operator, argument, words. Another word is a value.
const WORDS: &[(&str, &str, &[&str])] = &[
    ("$meta", "", METADATA),
    ("$derivative", "unit", TIME_UNITS),
    ("$integral", "unit", TIME_UNITS),
    ("$percentile", "method", PERCENTILES),
    ("$median", "method", PERCENTILES),
];

/// The units of time.
pub(super) const TIME_UNITS: &[&str] =
    &["year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond"];
const PERCENTILES: &[&str] = &["approximate", "discrete", "continuous"];
const METADATA: &[&str] = &[
    "textScore",
    "indexKey",
    "recordId",
    "randVal",
    "sortKey",
    "geoNearDistance",
    "geoNearPoint",
    "score",
    "scoreDetails",
    "searchScore",
    "searchScoreDetails",
    "searchHighlights",
    "searchSequenceToken",
    "vectorSearchScore",
];
/// The words in bounds of windows.
const BOUNDS: &[&str] = &["unbounded", "current"];

/// Arguments that are sorts.
const SORTS: &[(&str, &str)] = &[
    ("$sortArray", "sortBy"),
    ("$top", "sortBy"),
    ("$topN", "sortBy"),
    ("$bottom", "sortBy"),
    ("$bottomN", "sortBy"),
];

/// Returns the shape of an expression.
pub(super) fn of(expression: Value<'_>) -> ValueBuf {
    match expression {
        Value::String(text) if text.starts_with('$') => ValueBuf::new(text),
        Value::Document(doc) if is_call(doc) => call(doc).into(),
        Value::Document(doc) => of_fields(doc, &[]).into(),
        Value::Array(items) if !items.iter().all(is_constant) => list(items).into(),
        constant => ValueBuf::new(&*literal::of(constant)),
    }
}

/// Returns a document with the shapes of its expressions; the fields `kept` stay as they are.
pub(super) fn of_fields(doc: Doc<'_>, kept: &[&str]) -> DocBuf {
    DocBuf::build(|out| {
        for (name, value) in doc.fields() {
            match kept.contains(&name) {
                true => out.append(name, value),
                false => out.append(name, &of(value)),
            };
        }
    })
}

/// Returns true for `{$operator: operands}`.
fn is_call(doc: Doc<'_>) -> bool {
    doc.first().is_some_and(|first| first.key().starts_with('$'))
}

fn is_constant(value: Value<'_>) -> bool {
    match value {
        Value::String(text) => !text.starts_with('$'),
        Value::Document(_) | Value::Array(_) => false,
        _ => true,
    }
}

fn list(items: Array<'_>) -> ArrayBuf {
    ArrayBuf::build(|out| {
        items.iter().for_each(|item| {
            out.push(&of(item));
        });
    })
}

/// Returns the shape of an operator with its operands. A window function has its window beside it.
fn call(doc: Doc<'_>) -> DocBuf {
    DocBuf::build(|out| {
        for (name, value) in doc.fields() {
            match (name, value) {
                ("$literal" | "$const", constant) => {
                    out.append("$const", &*literal::of(constant));
                }
                ("window", Value::Document(window)) => {
                    out.append(name, &window_shape(window));
                }
                (name, Value::Array(operands)) => {
                    out.append(name, &list(operands));
                }
                (name, Value::Document(operands)) if !is_call(operands) => {
                    arguments(name, operands, &mut out.document(name));
                }
                (name, Value::String(text)) if is_kept(name, "", text) => {
                    out.append(name, text);
                }
                (name, value) => {
                    out.append(name, &of(value));
                }
            }
        }
    })
}

/// Returns true if a text is no value: a name, or a word that the operator knows.
fn is_kept(operator: &str, argument: &str, text: &str) -> bool {
    let knows = |(known, name, words): &(&str, &str, &[&str])| {
        *known == operator && *name == argument && words.contains(&text)
    };
    NAMES.contains(&(operator, argument)) || WORDS.iter().any(knows)
}

/// Writes the arguments that an operator takes by name.
fn arguments(operator: &str, arguments: Doc<'_>, out: &mut DocWriter<'_>) {
    for (name, value) in arguments.fields() {
        match value {
            Value::String(text) if is_kept(operator, name, text) => out.append(name, text),
            Value::Document(sort) if SORTS.contains(&(operator, name)) => {
                out.append(name, &projection::of_sort(sort))
            }
            value => out.append(name, &of(value)),
        };
    }
}

/// Returns the shape of a window: its bounds are numbers, or names such as `unbounded`.
fn window_shape(window: Doc<'_>) -> DocBuf {
    DocBuf::build(|out| {
        for (name, value) in window.fields() {
            let Value::Array(bounds) = value else {
                match value {
                    Value::String(unit) if name == "unit" && TIME_UNITS.contains(&unit) => {
                        out.append(name, unit)
                    }
                    other => out.append(name, &*literal::of(other)),
                };
                continue;
            };
            let mut items = out.array(name);
            for bound in bounds.iter() {
                match bound {
                    Value::String(word) if BOUNDS.contains(&word) => items.push(word),
                    number => items.push(&*literal::of(number)),
                };
            }
        }
    })
}
