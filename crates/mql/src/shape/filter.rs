//! The shape of a filter: conditions `{path: {$operator: type}}`, several of them below one `$and`.

use super::{expression, literal};
use crate::expression::is_true;
use crate::filter::{is_field_operator, is_operator_document};
use crate::type_set::TypeSet;
use quire_document::{Array, ArrayWriter, Doc, DocBuf, Value};
use std::borrow::Cow;

/// How much of a filter its shape contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Everything but literals, in the written order: the shape of a request.
    Request,
    /// What plans depend on: the order of conditions, the types of literals, expressions and names of
    /// types are left out.
    Plan,
}

/// Returns the shape of a filter.
pub(super) fn of(filter: Doc<'_>, detail: Detail) -> DocBuf {
    let mut conditions = Vec::new();
    collect(filter, detail, &mut conditions);
    together(conditions, detail)
}

/// Returns one document of conditions.
fn together(mut conditions: Vec<DocBuf>, detail: Detail) -> DocBuf {
    match conditions.len() {
        0 => DocBuf::new(),
        1 => conditions.remove(0),
        _ => list("$and", conditions, detail),
    }
}

/// Returns `{operator: [conditions]}`.
fn list(operator: &str, mut conditions: Vec<DocBuf>, detail: Detail) -> DocBuf {
    if detail == Detail::Plan {
        conditions.sort_by(|a, b| a.as_bytes().cmp(b.as_bytes()));
    }
    DocBuf::build(|out| {
        let mut items = out.array(operator);
        conditions.iter().for_each(|condition| {
            items.push(condition);
        });
    })
}

/// Collects the conditions of a filter; those of an `$and` belong to the filter itself.
fn collect(filter: Doc<'_>, detail: Detail, out: &mut Vec<DocBuf>) {
    for (name, value) in filter.fields() {
        match (name, value) {
            ("$comment", _) => {}
            ("$and", Value::Array(branches)) => {
                let branches = branches.iter().filter_map(|branch| branch.as_document());
                branches.for_each(|branch| collect(branch, detail, out));
            }
            ("$or" | "$nor", Value::Array(branches)) => {
                let branches = branches.iter().filter_map(|branch| branch.as_document());
                let branches = branches.map(|branch| of(branch, detail)).collect();
                out.push(list(name, branches, detail));
            }
            ("$expr", _) if detail == Detail::Plan => out.push(one("$expr", "?expression".into())),
            ("$expr", value) => out.push(one("$expr", (&expression::of(value)).into())),
            ("$jsonSchema", Value::Document(schema)) => {
                out.push(one("$jsonSchema", (&schema_shape(schema)).into()));
            }
            (name, Value::Document(operators)) if is_operator_document(operators) => {
                let tests = tests(operators, detail).into_iter();
                out.extend(tests.map(|test| one(name, (&test).into())));
            }
            (name, Value::Regex(_)) => out.push(one(name, (&regex_shape(false)).into())),
            (name, value) if name.starts_with('$') => {
                out.push(operator(name, value, detail));
            }
            (name, value) => out.push(one(name, (&operator("$eq", value, detail)).into())),
        }
    }
}

/// Returns the tests of a document of operators, one document each.
fn tests(operators: Doc<'_>, detail: Detail) -> Vec<DocBuf> {
    let test = |(name, value): (&str, Value<'_>)| {
        Some(match (name, value) {
            ("$options", _) => return None,
            ("$regex", _) => regex_shape(operators.contains("$options")),
            ("$ne", value) => one("$not", (&operator("$eq", value, detail)).into()),
            ("$nin", value) => one("$not", (&operator("$in", value, detail)).into()),
            ("$exists", value) => {
                let exists = one("$exists", "?bool".into());
                if is_true(Some(value)) { exists } else { one("$not", (&exists).into()) }
            }
            ("$not", Value::Regex(_)) => one("$not", (&regex_shape(false)).into()),
            ("$not", Value::Document(inner)) => one("$not", (&merged(inner, detail)).into()),
            ("$elemMatch", Value::Document(inner)) => {
                let of_value = inner.first().is_some_and(|first| is_field_operator(first.key()));
                let inner = if of_value { merged(inner, detail) } else { of(inner, detail) };
                one("$elemMatch", (&inner).into())
            }
            ("$all", Value::Array(values)) => all_shape(values, detail),
            ("$type", value) => type_shape(value, detail),
            (name, value) => operator(name, value, detail),
        })
    };
    operators.fields().filter_map(test).collect()
}

/// Returns the tests of one value in one document.
fn merged(operators: Doc<'_>, detail: Detail) -> DocBuf {
    let mut tests = tests(operators, detail);
    if detail == Detail::Plan {
        tests.sort_by(|a, b| a.as_bytes().cmp(b.as_bytes()));
    }
    DocBuf::build(|out| {
        tests.iter().for_each(|test| {
            out.append_all(test.as_doc());
        });
    })
}

/// Returns `{$all: [types]}`. Each value is a condition of its own.
fn all_shape(values: Array<'_>, detail: Detail) -> DocBuf {
    let push = |value: Value<'_>, items: &mut ArrayWriter<'_>| match value {
        Value::Document(inner) if is_operator_document(inner) => {
            items.push(&merged(inner, detail));
        }
        value => {
            items.push(&*literal_shape(value, detail));
        }
    };
    DocBuf::build(|out| {
        let mut items = out.array("$all");
        values.iter().for_each(|value| push(value, &mut items));
    })
}

/// Returns `{$type: [names]}`, however the types were written.
fn type_shape(value: Value<'_>, detail: Detail) -> DocBuf {
    let mut types = TypeSet::default();
    let known = match value {
        _ if detail == Detail::Plan => false,
        Value::Array(array) => array.iter().all(|kind| types.insert_named(kind)),
        kind => types.insert_named(kind),
    };
    if !known {
        return one("$type", "?type".into());
    }
    DocBuf::build(|out| types.write(&mut out.array("$type")))
}

fn regex_shape(has_options: bool) -> DocBuf {
    DocBuf::build(|out| {
        out.append("$regex", "?string");
        if has_options {
            out.append("$options", "?string");
        }
    })
}

/// Returns `{operator: type}`.
fn operator(name: &str, value: Value<'_>, detail: Detail) -> DocBuf {
    one(name, (&*literal_shape(value, detail)).into())
}

fn literal_shape(value: Value<'_>, detail: Detail) -> Cow<'static, str> {
    match detail {
        Detail::Request => literal::of(value),
        Detail::Plan => Cow::Borrowed("?"),
    }
}

fn one(name: &str, value: Value<'_>) -> DocBuf {
    DocBuf::build(|out| {
        out.append(name, value);
    })
}

/// Returns the shape of a JSON schema: its keywords, and the names of fields and types in it.
fn schema_shape(schema: Doc<'_>) -> DocBuf {
    DocBuf::build(|out| {
        for (keyword, value) in schema.fields() {
            match (keyword, value) {
                ("required" | "bsonType" | "type", value) => out.append(keyword, value),
                ("properties" | "patternProperties" | "dependencies", Value::Document(fields)) => {
                    let mut inner = out.document(keyword);
                    for (name, value) in fields.fields() {
                        match value {
                            Value::Document(schema) => inner.append(name, &schema_shape(schema)),
                            names => inner.append(name, names),
                        };
                    }
                    continue;
                }
                (_, Value::Document(schema)) => out.append(keyword, &schema_shape(schema)),
                ("allOf" | "anyOf" | "oneOf" | "items", Value::Array(schemas)) => {
                    let mut inner = out.array(keyword);
                    for schema in schemas.iter().filter_map(|schema| schema.as_document()) {
                        inner.push(&schema_shape(schema));
                    }
                    continue;
                }
                (_, value) => out.append(keyword, &*literal::of(value)),
            };
        }
    })
}
