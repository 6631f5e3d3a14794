//! The shape of a request: its operators and paths without its values. A plan's shape comes from
//! the normalised filter; a query's shape keeps the order in which it was written.

use crate::request::{AggregateRequest, FindRequest};
use quire_document::{Doc, Value};
use quire_mql::ParseContext;
use quire_mql::collation::{AskedCollation, Collation};
use quire_mql::filter::{Features, Filter, Node, Test};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Returns the shape of a plan. One index filter applies to all requests of a shape, whatever their
/// values are and whichever command they come from.
pub(crate) fn plan_shape(
    filter: Option<&Node>,
    sort: Doc<'_>,
    projection: Doc<'_>,
    collation: Option<&Collation>,
) -> u64 {
    let mut state = DefaultHasher::new();
    if let Some(filter) = filter {
        hash(filter, &mut state);
    }
    collation.map(Collation::spec).hash(&mut state);
    let written = |(name, value): (_, Value<'_>)| match value {
        Value::Bool(flag) => (name, if flag { "1" } else { "0" }.to_owned()),
        value if value.is_number() => {
            let number = value.as_number().map_or(0.0, |number| number.to_f64());
            (name, if number == 0.0 { 0 } else { number.signum() as i32 }.to_string())
        }
        value => (name, format!("{value:?}")),
    };
    sort.fields().map(written).collect::<Vec<_>>().hash(&mut state);
    let mut projected: Vec<_> = projection.fields().map(written).collect();
    projected.sort_unstable();
    projected.hash(&mut state);
    state.finish()
}

/// Returns the hash of a find's shape, as `queryShapeHash` shows it.
pub fn find_shape(request: &FindRequest, context: &ParseContext) -> String {
    hex(|state| {
        "find".hash(state);
        request.namespace.hash(state);
        hash_written(request.filter.as_doc(), context, state);
        hash_spec(Value::from(&request.projection), state);
        request.sort.as_bytes().hash(state);
        (request.skip > 0, request.limit > 0).hash(state);
        hash_collation(&request.collation, state);
    })
}

/// Returns the hash of a pipeline's shape.
pub fn aggregate_shape(request: &AggregateRequest, context: &ParseContext) -> String {
    hex(|state| {
        "aggregate".hash(state);
        request.namespace.hash(state);
        for stage in &request.pipeline {
            for (name, value) in stage.as_doc().fields() {
                name.hash(state);
                match (name, value) {
                    ("$match", Value::Document(filter)) => hash_written(filter, context, state),
                    (_, value) => hash_spec(value, state),
                }
            }
        }
        hash_collation(&request.collation, state);
    })
}

/// Hashes all fields of a collation.
fn hash_collation(asked: &AskedCollation, state: &mut impl Hasher) {
    match asked {
        AskedCollation::Default => 0.hash(state),
        AskedCollation::Own(None) => 1.hash(state),
        AskedCollation::Own(Some(own)) => own.to_document().as_bytes().hash(state),
    }
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

/// Hashes a filter in its own order, with conjunctions flattened.
fn hash_written(filter: Doc<'_>, context: &ParseContext, state: &mut impl Hasher) {
    fn flatten<'n>(node: &'n Node, out: &mut Vec<&'n Node>) {
        match node {
            Node::And(children) => children.iter().for_each(|child| flatten(child, out)),
            other => out.push(other),
        }
    }
    let Ok(filter) = Filter::parse_exact(filter, context, Features::ALL) else {
        return hash_spec(Value::Document(filter), state);
    };
    let mut parts = Vec::new();
    flatten(filter.root(), &mut parts);
    parts.len().hash(state);
    for part in parts {
        hash(part, state);
        match part {
            Node::Path(node) => {
                if let Test::Type(set) = &node.test {
                    (set.has_numbers(), set.types()).hash(state);
                }
            }
            Node::Expr(test) => hash_spec(test.expression().to_bson().as_value(), state),
            _ => {}
        }
    }
}

/// Hashes a stage's specification: names, paths and flags; other values by their type.
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

/// Hashes a condition, so that filters of one shape have the same hash.
fn hash(node: &Node, state: &mut impl Hasher) {
    std::mem::discriminant(node).hash(state);
    match node {
        Node::And(children) | Node::Or(children) | Node::Nor(children) => {
            children.len().hash(state);
            children.iter().for_each(|child| hash(child, state));
        }
        Node::Not(child) => hash(child, state),
        Node::Path(node) => {
            node.path.as_str().hash(state);
            hash_test(&node.test, state);
        }
        Node::JsonSchema(schema) => schema.source().as_bytes().hash(state),
        Node::Always(answer) => answer.hash(state),
        Node::Expr(_) | Node::SampleRate(_) => {}
    }
}

fn hash_test(test: &Test, state: &mut impl Hasher) {
    std::mem::discriminant(test).hash(state);
    match test {
        Test::Compare(comparison, _) | Test::Implied(comparison, _) => comparison.hash(state),
        Test::Bits(bits) => bits.kind.operator().hash(state),
        Test::Regex(regex) => regex.options().hash(state),
        Test::ElemMatchObject(scope) => hash(&scope.node, state),
        Test::ElemMatchValue(tests) | Test::All(tests) => {
            tests.len().hash(state);
            tests.iter().for_each(|test| hash_test(test, state));
        }
        Test::Not(test) => hash_test(test, state),
        Test::In(_)
        | Test::Exists
        | Test::Type(_)
        | Test::Mod(_)
        | Test::Size(_)
        | Test::Always(_) => {}
    }
}
