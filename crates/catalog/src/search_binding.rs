//! Finds the index that answers a search, so that the search can test documents.

use std::sync::Arc;

use quire_error::{Error, Result};
use quire_mql::filter::{Node as Condition, Search};

use crate::Collection;
use crate::key::{KINDS, SearchedCollection};

/// Binds the searches of a condition to the indexes of a collection, so that they can test documents.
///
/// # Errors
/// The kind's error for the number of indexes that can answer a search, and its errors about the search.
pub fn bind_searches(condition: &mut Condition, collection: Option<&Collection>) -> Result<()> {
    condition.bind_search(&|search| bind(search, collection))
}

fn bind(search: &dyn Search, collection: Option<&Collection>) -> Result<Arc<dyn Search>> {
    let kinds = KINDS.iter().filter_map(|kind| kind.searches);
    let Some(searches) = kinds.into_iter().find(|kind| kind.operator == search.operator()) else {
        return Err(Error::not_built(search.operator()));
    };
    let searched = collection.map(|collection| SearchedCollection {
        name: collection.namespace.to_string(),
        is_time_series: collection.is_time_series(),
        indexes: collection.ready_indexes().map(|index| &*index.keys).collect(),
    });
    if let Some(bound) = (searches.choose)(search, searched.as_ref())? {
        return Ok(bound);
    }
    let ready = collection.into_iter().flat_map(Collection::ready_indexes);
    // A hidden index counts too: then the planner finds no plan.
    let mut found = ready.filter(|index| index.keys.searches(search).is_some());
    let (first, others) = (found.next(), found.count());
    let count = others + usize::from(first.is_some());
    if let Some(error) = (searches.wrong_number)(count) {
        return Err(error);
    }
    match first {
        Some(index) => (searches.bind)(&index.spec, search),
        None => Err(Error::internal("a search without an index")),
    }
}
