//! Look-ups by `_id` for a join: its keys are `_id`s, so each document is fetched by its key, without a
//! scan of the index on `_id`.

use std::sync::Arc;

use quire_mql::filter::{InList, Node as Condition};

use super::{IndexScan, Node};

/// The documents whose `_id`s are the keys of a join, in the order of the index on `_id`.
#[derive(Debug, Clone)]
pub struct IdLookups {
    /// The scan of the index on `_id` that would find the same documents.
    pub scan: Arc<IndexScan>,
    /// The `_id`s; `None` in a plan that is not bound to the keys yet.
    pub ids: Option<InList>,
}

impl Node {
    /// Replaces the scan of the index on `_id`, if only the keys of a join bound it, by look-ups. The
    /// condition that `without_keys` returns stays as a filter above them.
    #[must_use]
    pub(crate) fn with_id_lookups(
        self,
        without_keys: impl Fn(&Condition) -> Option<Condition>,
    ) -> Node {
        let (scan, filter) = match self {
            Node::ClusteredScan { scan, filter } if scan.finds_ids() => (scan, filter),
            Node::Fetch { filter, input } => match *input {
                Node::IndexScan(scan) if scan.finds_ids() => (scan, filter),
                input => return Node::Fetch { filter, input: Box::new(input) },
            },
            mut other => {
                if let Some(input) = other.input_mut() {
                    let below = std::mem::replace(input, Node::Eof);
                    *input = below.with_id_lookups(without_keys);
                }
                return other;
            }
        };
        let found = Node::IdLookups(IdLookups { scan: Arc::new(*scan), ids: None });
        match filter.as_ref().and_then(without_keys) {
            None => found,
            filter => Node::Fetch { filter, input: Box::new(found) },
        }
    }
}

impl IndexScan {
    /// Returns true if it finds the documents whose `_id`s are the keys of a join, and no others.
    fn finds_ids(&self) -> bool {
        self.keyed.is_some()
            && self.filter.is_none()
            && self.range.is_none()
            && self.bounds.iter().all(|bounds| bounds.is_all())
            && self.collection.id_index().is_some_and(|index| Arc::ptr_eq(index, &self.index))
    }
}
