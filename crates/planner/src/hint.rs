//! Which indexes a request may use: the one it names, or all that hold what it looks for.

use crate::access::Candidate;
use crate::request::Hint;
use quire_catalog::{Collection, Index};
use quire_error::{Error, ErrorCode, Result};
use quire_mql::collation::Collation;
use quire_mql::filter::Node as Condition;
use std::sync::Arc;

/// What a hint leaves to choose from.
pub(crate) enum Choice {
    /// Any of these.
    Any(Vec<Candidate>),
    /// This one, whatever it takes.
    Only(Candidate),
    /// No index; backward or not.
    Natural { backward: bool },
}

/// The indexes that may answer a filter.
pub(crate) fn choice(
    collection: &Arc<Collection>,
    hint: Option<&Hint>,
    filter: &Condition,
    collation: Option<&Collation>,
) -> Result<Choice> {
    match hint {
        Some(Hint::Natural(forward)) => Ok(Choice::Natural { backward: !forward }),
        Some(Hint::Pattern(pattern)) if pattern.as_doc().is_empty() => {
            choice(collection, None, filter, collation)
        }
        Some(hint) => {
            hinted(collection, hint).map(|index| Choice::Only(Candidate::new(collection, index)))
        }
        None => Ok(Choice::Any(
            collection
                .ready_indexes()
                .filter(|index| !index.hidden)
                .map(|index| Candidate::new(collection, index))
                .filter(|candidate| candidate.holds_all(filter, collation))
                .collect(),
        )),
    }
}

/// The index that a hint names.
pub(crate) fn hinted<'c>(collection: &'c Collection, hint: &Hint) -> Result<&'c Arc<Index>> {
    let missing = || {
        Error::bad_value(format!(
            "error processing query: ns={} planner returned error :: caused by :: hint provided does not correspond to an existing index",
            collection.namespace
        ))
    };
    let visible = |index: &&Arc<Index>| !index.hidden;
    match hint {
        Hint::Name(name) => collection
            .ready_indexes()
            .filter(visible)
            .find(|index| index.name == *name)
            .ok_or_else(missing),
        Hint::Pattern(pattern) => {
            let mut found = collection
                .ready_indexes()
                .filter(visible)
                .filter(|index| index.has_key(pattern.as_doc()));
            let first = found.next().ok_or_else(missing)?;
            match found.next() {
                None => Ok(first),
                Some(second) => Err(Error::new(
                    ErrorCode::IndexNotFound,
                    format!(
                        "error processing query: ns={} planner returned error :: caused by :: Hint matched multiple indexes, must hint by index name. Matched: {} and {}",
                        collection.namespace, first.name, second.name
                    ),
                )),
            }
        }
        Hint::Natural(_) => Err(missing()),
    }
}
