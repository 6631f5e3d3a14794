//! Which indexes a request may use: those of its index filter, the one that its hint names, or all
//! that hold the documents that it searches for.

use crate::indexes::access::Candidate;
use crate::request::Hint;
use quire_catalog::{AllowedIndex, Collection, Index, IndexFilter, IndexId, is_allowed};
use quire_error::{Error, ErrorCode, Result};
use quire_mql::collation::Collation;
use quire_mql::filter::Node as Condition;
use std::sync::Arc;

/// The indexes that a hint allows.
pub(crate) enum Choice {
    /// Any of these.
    Any(Vec<Candidate>),
    /// This one, whatever it costs.
    Only(Candidate),
    /// No index. `backward` is the scan direction.
    Natural { backward: bool },
}

/// The restrictions on the choice of an index. Query settings overrule an index filter, and both the
/// hint.
#[derive(Clone, Copy)]
pub(crate) struct Restriction<'r> {
    hint: Option<&'r Hint>,
    /// The indexes that query settings or an index filter allow.
    allowed: Option<&'r [AllowedIndex]>,
    /// True if query settings allow them.
    of_settings: bool,
    /// The index of a cached plan.
    cached: Option<IndexId>,
}

impl<'r> Restriction<'r> {
    /// Returns the restriction by a hint, by the query settings of the request, and by the index
    /// filter of its shape.
    pub fn new(
        hint: Option<&'r Hint>,
        settings: Option<&'r [AllowedIndex]>,
        filter: Option<&'r IndexFilter>,
    ) -> Self {
        let allowed = settings.or(filter.map(|filter| filter.indexes.as_slice()));
        let hint = hint.filter(|_| allowed.is_none());
        Restriction { hint, allowed, of_settings: settings.is_some(), cached: None }
    }

    /// Returns the restriction to the index of a cached plan.
    pub fn to_cached(self, index: IndexId) -> Self {
        Restriction { cached: Some(index), ..self }
    }

    /// Returns true if the planner may choose the index.
    pub fn allows(&self, index: &Index) -> bool {
        self.allowed.is_none_or(|allowed| is_allowed(allowed, index))
            && self.cached.is_none_or(|cached| cached == index.id)
    }

    /// Returns true if nothing restricts the choice.
    pub fn is_free(&self) -> bool {
        self.hint.is_none() && self.allowed.is_none() && self.cached.is_none()
    }

    /// Returns true if an index filter restricts the choice.
    pub fn is_filtered(&self) -> bool {
        self.allowed.is_some() && !self.of_settings
    }

    /// Returns true if query settings or an index filter restrict the choice.
    pub fn is_set(&self) -> bool {
        self.allowed.is_some()
    }

    /// Returns true if query settings restrict the choice.
    pub fn is_of_settings(&self) -> bool {
        self.of_settings
    }

    /// Returns the direction of a scan of the collection that query settings allow: true for
    /// backward.
    pub fn natural(&self) -> Option<bool> {
        self.allowed?.iter().find_map(|allowed| match allowed {
            AllowedIndex::Natural { backward } => Some(*backward),
            AllowedIndex::Name(_) | AllowedIndex::Pattern(_) => None,
        })
    }

    /// Checks that the index of the hint exists, where the plan does not need it.
    ///
    /// # Errors
    /// Those of [`hinted`].
    pub fn check_hint(&self, collection: &Collection) -> Result<()> {
        match self.hint {
            Some(Hint::Pattern(pattern)) if pattern.as_doc().is_empty() => Ok(()),
            Some(hint @ (Hint::Name(_) | Hint::Pattern(_))) => hinted(collection, hint).map(|_| ()),
            Some(Hint::Natural(_)) | None => Ok(()),
        }
    }

    /// Returns true if an index was named.
    pub fn names_index(&self) -> bool {
        matches!(self.hint, Some(Hint::Name(_) | Hint::Pattern(_)))
    }
}

/// Returns the indexes that may serve a filter.
pub(crate) fn choice(
    collection: &Arc<Collection>,
    restriction: Restriction<'_>,
    filter: &Condition,
    collation: Option<&Collation>,
) -> Result<Choice> {
    match restriction.hint {
        Some(Hint::Natural(forward)) => Ok(Choice::Natural { backward: !forward }),
        Some(Hint::Pattern(pattern)) if pattern.as_doc().is_empty() => {
            let free = Restriction { hint: None, ..restriction };
            choice(collection, free, filter, collation)
        }
        Some(hint) => {
            hinted(collection, hint).map(|index| Choice::Only(Candidate::new(collection, index)))
        }
        None => Ok(Choice::Any(
            collection
                .ready_indexes()
                .filter(|index| !index.hidden)
                .filter(|index| restriction.allows(index))
                .filter(|index| index.keys.serves_paths() || filter.search().is_some())
                .map(|index| Candidate::new(collection, index))
                .filter(|candidate| candidate.holds_all(filter, collation))
                .collect(),
        )),
    }
}

/// Returns the partial indexes that hold what a branch of an `$or` matches, but not all that the
/// filter matches.
pub(crate) fn of_branches(
    collection: &Arc<Collection>,
    restriction: Restriction<'_>,
    filter: &Condition,
    collation: Option<&Collation>,
) -> Vec<Candidate> {
    let has_branches = filter.conjuncts().iter().any(|part| matches!(part, Condition::Or(_)));
    if !has_branches {
        return Vec::new();
    }
    collection
        .ready_indexes()
        .filter(|index| !index.hidden && index.partial_filter().is_some())
        .filter(|index| restriction.allows(index))
        .map(|index| Candidate { of_branches: true, ..Candidate::new(collection, index) })
        .filter(|candidate| !candidate.holds_all(filter, collation))
        .collect()
}

/// Returns the index that a hint names.
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
