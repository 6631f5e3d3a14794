//! Whether a filter only matches documents that a partial index holds.

use crate::bounds::{Field, Tightness, bounds};
use crate::predicate::{Predicate, Test};
use crate::predicate_parse::parse;
use quire_document::Doc;

/// True if everything that `filter` matches is matched by `partial`. May say no too often.
pub(crate) fn implies(filter: &Predicate, partial: Doc<'_>) -> bool {
    subset(filter, &parse(partial).root)
}

fn subset(filter: &Predicate, partial: &Predicate) -> bool {
    if let Predicate::And(parts) = partial {
        return parts.iter().all(|part| subset(filter, part));
    }
    match filter {
        Predicate::Or(branches) => branches.iter().all(|branch| subset(branch, partial)),
        Predicate::And(conjuncts) => {
            conjuncts.iter().any(|conjunct| subset(conjunct, partial))
                || matches!(partial, Predicate::Or(parts) if parts.iter().any(|part| subset(filter, part)))
        }
        Predicate::AlwaysFalse => true,
        single => match partial {
            Predicate::Or(parts) => parts.iter().any(|part| subset(single, part)),
            _ => implied(single, partial),
        },
    }
}

/// One test against one test.
fn implied(filter: &Predicate, partial: &Predicate) -> bool {
    let Predicate::Leaf(wanted) = partial else { return equal(filter, partial) };
    let Predicate::Leaf(given) = filter else {
        // {a: {$ne: null}} implies {a: {$exists: true}}.
        return matches!(filter, Predicate::Not(child) if matches!(&**child, Predicate::Leaf(leaf)
            if leaf.path == wanted.path
                && matches!(wanted.test, Test::Exists)
                && matches!(leaf.test, Test::Eq(_) | Test::In { .. })
                && leaf.test.wants_null()));
    };
    if given.path != wanted.path {
        return false;
    }
    match (&given.test, &wanted.test) {
        (Test::Exists, Test::Exists) => true,
        (Test::Size(_) | Test::Opaque { .. } | Test::InternalExpr(..), Test::Exists) => false,
        (test, Test::Exists) => !test.wants_null(),
        (test, _) => {
            let (Some((inside, _)), Some((outside, Tightness::Exact))) =
                (bounds(filter, Field::default()), bounds(partial, Field::default()))
            else {
                return equal(filter, partial);
            };
            !test.wants_null()
                && !matches!(test, Test::InternalExpr(..))
                && inside.intersect(&outside.complement()).0.is_empty()
        }
    }
}

fn equal(a: &Predicate, b: &Predicate) -> bool {
    use crate::predicate_print::{Style, print};
    print(a, Style::Executable).as_bytes() == print(b, Style::Executable).as_bytes()
}
