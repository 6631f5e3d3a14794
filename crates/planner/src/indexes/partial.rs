//! Decides whether a filter matches only documents that a partial index holds.

use quire_catalog::key::{Field, Tightness, bounds, wants_null};
use quire_document::Collator;
use quire_mql::filter::{Comparison, Node, PathNode, Test};

/// Returns true if `partial` matches everything that `filter` matches. May return false although it
/// does. Both compare strings by `collator`.
pub(crate) fn implies(filter: &Node, partial: &Node, collator: Option<&dyn Collator>) -> bool {
    let implies = |filter: &Node, partial: &Node| implies(filter, partial, collator);
    if let Node::And(parts) = partial {
        return parts.iter().all(|part| implies(filter, part));
    }
    match filter {
        Node::Or(branches) => branches.iter().all(|branch| implies(branch, partial)),
        Node::And(conjuncts) => {
            conjuncts.iter().any(|conjunct| implies(conjunct, partial))
                || matches!(partial, Node::Or(parts) if parts.iter().any(|part| implies(filter, part)))
        }
        Node::Always(false) => true,
        single => match partial {
            Node::Or(parts) => parts.iter().any(|part| implies(single, part)),
            Node::Path(wanted) => implied(single, wanted, collator) || equal(single, partial),
            _ => equal(single, partial),
        },
    }
}

/// Returns true if a filter implies one test.
fn implied(filter: &Node, wanted: &PathNode, collator: Option<&dyn Collator>) -> bool {
    let given = match filter {
        Node::Path(given) => given,
        Node::Not(child) => return negation_implies(child, wanted),
        _ => return false,
    };
    if given.path != wanted.path {
        return false;
    }
    match (&given.test, &wanted.test) {
        (Test::Exists, Test::Exists) => true,
        (test, Test::Exists) => needs_value(test),
        (test, wanted) => {
            let of = |test| bounds(test, false, Field { collator, ..Field::default() });
            let (Some((inside, _)), Some((outside, Tightness::Exact))) = (of(test), of(wanted))
            else {
                return false;
            };
            is_of_values(test)
                && !wants_null(test)
                && inside.intersect(&outside.complement()).0.is_empty()
        }
    }
}

/// Returns true for a negation that implies the test: `{a: {$ne: null}}` implies `{a: {$exists:
/// true}}`. On a path of several names it does not: `{a: []}` and `{a: [5]}` pass `{"a.b": {$ne:
/// null}}` without having `a.b`.
fn negation_implies(child: &Node, wanted: &PathNode) -> bool {
    let Node::Path(given) = child else { return false };
    given.path == wanted.path
        && given.path.len() == 1
        && matches!(wanted.test, Test::Exists)
        && matches!(given.test, Test::Compare(Comparison::Eq, _) | Test::In(_))
        && wants_null(&given.test)
}

/// Returns true for a test that only documents with the field pass.
fn needs_value(test: &Test) -> bool {
    match test {
        Test::Size(_) | Test::ElemMatchValue(_) | Test::ElemMatchObject(_) | Test::Bits(_) => true,
        Test::All(tests) => tests.iter().any(needs_value),
        Test::Open(_) => true,
        test => is_of_values(test) && !wants_null(test),
    }
}

/// Returns true for a test of the single values that an index holds.
fn is_of_values(test: &Test) -> bool {
    matches!(
        test,
        Test::Compare(..)
            | Test::In(_)
            | Test::Regex(_)
            | Test::Mod(_)
            | Test::Exists
            | Test::Type(_)
    )
}

fn equal(a: &Node, b: &Node) -> bool {
    a.to_bson() == b.to_bson()
}
