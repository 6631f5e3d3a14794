//! The shape of a request: its operators and paths without its values. A plan's shape is that of
//! the normalised filter; a query's keeps what was written in its order.

use crate::predicate::{Predicate, Test};
use crate::predicate_parse::conjunction;
use crate::request::{AggregateRequest, FindRequest};
use quire_document::{Doc, Value};
use std::hash::{DefaultHasher, Hash, Hasher};

/// The hash of a find's shape, as `queryShapeHash` shows it.
pub fn find_shape(request: &FindRequest) -> String {
    hex(|state| {
        "find".hash(state);
        request.namespace.hash(state);
        hash_written(request.filter.as_doc(), state);
        hash_spec(Value::from(&request.projection), state);
        request.sort.as_bytes().hash(state);
        (request.skip > 0, request.limit > 0).hash(state);
    })
}

/// The hash of a pipeline's shape.
pub fn aggregate_shape(request: &AggregateRequest) -> String {
    hex(|state| {
        "aggregate".hash(state);
        request.namespace.hash(state);
        for stage in &request.pipeline {
            for (name, value) in stage.as_doc().fields() {
                name.hash(state);
                match (name, value) {
                    ("$match", Value::Document(filter)) => hash_written(filter, state),
                    (_, value) => hash_spec(value, state),
                }
            }
        }
    })
}

fn hex(fill: impl Fn(&mut DefaultHasher)) -> String {
    (0u64..4)
        .map(|seed| {
            let mut state = DefaultHasher::new();
            seed.hash(&mut state);
            fill(&mut state);
            format!("{:016X}", state.finish())
        })
        .collect()
}

/// A filter in its own order, conjunctions flattened.
fn hash_written(filter: Doc<'_>, state: &mut impl Hasher) {
    fn flatten(predicate: Predicate, out: &mut Vec<Predicate>) {
        match predicate {
            Predicate::And(children) => children.into_iter().for_each(|child| flatten(child, out)),
            other => out.push(other),
        }
    }
    let mut parts = Vec::new();
    flatten(Predicate::And(conjunction(filter)), &mut parts);
    parts.len().hash(state);
    for part in &parts {
        match part {
            Predicate::Leaf(leaf) if matches!(leaf.test, Test::InternalExpr(..)) => {}
            Predicate::Leaf(leaf) => {
                hash(part, state);
                if let Test::Type { number, numbers } = &leaf.test {
                    (number, numbers).hash(state);
                }
            }
            Predicate::Expr(expr) => hash_spec(expr.source.as_value(), state),
            other => hash(other, state),
        }
    }
}

/// A stage's specification: names, paths and flags; other values by their type.
fn hash_spec(value: Value<'_>, state: &mut impl Hasher) {
    match value {
        Value::Document(doc) => {
            doc.count().hash(state);
            for (name, value) in doc.fields() {
                name.hash(state);
                hash_spec(value, state);
            }
        }
        Value::Array(array) => array.iter().for_each(|value| hash_spec(value, state)),
        Value::String(text) if text.starts_with('$') => text.hash(state),
        Value::Bool(flag) => flag.hash(state),
        number if number.is_number() => {
            let number = number.as_number().and_then(|number| number.exact_i64());
            ("number", number == Some(0)).hash(state);
        }
        other => other.type_name().hash(state),
    }
}

/// Feeds a hasher so that filters of one shape agree.
pub(crate) fn hash(predicate: &Predicate, state: &mut impl Hasher) {
    std::mem::discriminant(predicate).hash(state);
    match predicate {
        Predicate::And(children) | Predicate::Or(children) | Predicate::Nor(children) => {
            children.len().hash(state);
            children.iter().for_each(|child| hash(child, state));
        }
        Predicate::Not(child) => hash(child, state),
        Predicate::Leaf(leaf) => {
            leaf.path.hash(state);
            hash_test(&leaf.test, state);
        }
        Predicate::ElemMatchObject { path, inner } => {
            path.hash(state);
            hash(inner, state);
        }
        Predicate::ElemMatchValue { path, inner } => {
            path.hash(state);
            inner.iter().for_each(|child| hash(child, state));
        }
        Predicate::Opaque { name, argument } => {
            name.hash(state);
            if name == "$jsonSchema" {
                format!("{argument:?}").hash(state);
            }
        }
        Predicate::Expr(_) | Predicate::AlwaysTrue | Predicate::AlwaysFalse => {}
    }
}

fn hash_test(test: &Test, state: &mut impl Hasher) {
    std::mem::discriminant(test).hash(state);
    match test {
        Test::Compare(comparison, _) | Test::InternalExpr(Some(comparison), _) => {
            comparison.name().hash(state);
        }
        Test::Opaque { name, .. } => name.hash(state),
        Test::Regex { options, .. } => options.hash(state),
        _ => {}
    }
}
