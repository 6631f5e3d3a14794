//! The shape of a filter: its operators and paths without its values.

use crate::predicate::{Predicate, Test};
use std::hash::{Hash, Hasher};

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
        Predicate::Opaque { name, .. } => name.hash(state),
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
