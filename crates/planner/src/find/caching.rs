//! Uses the plan cache of a collection: a request takes the index that served earlier requests of
//! its shape best, after one dive has shown that its work is not far more
//! (docs/adr/0029-plan-cache.md).

use crate::explain::print_stages;
use crate::find::FindQuery;
use crate::indexes::cached::KeyFacts;
use crate::indexes::choose::{Ranking, Statistics, visited};
use crate::indexes::fingerprint::hash_condition;
use crate::indexes::hint::Restriction;
use crate::indexes::keys::types_in;
use crate::plan::{IndexScan, Node};
use quire_catalog::{CACHED_QUERY_BYTES_MAX, CacheKey, CachedPlan, Collection, IndexId};
use quire_document::DocBuf;
use quire_error::Result;
use quire_mql::collation::Collation;
use quire_mql::filter::Node as Condition;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A request whose plan may come from the cache, or go into it.
pub(crate) struct Caching<'q> {
    query: &'q FindQuery<'q>,
    collection: &'q Arc<Collection>,
    collation: Option<&'q Collation>,
    key: CacheKey,
    known: Option<Arc<CachedPlan>>,
}

impl<'q> Caching<'q> {
    /// Looks a request up. `None` if its plan cannot be cached, or if fewer than two indexes compete
    /// for it: then it is planned faster than its shape is computed.
    pub fn begin(
        query: &'q FindQuery<'q>,
        filter: &Condition,
        collection: &'q Arc<Collection>,
        restriction: Restriction<'_>,
        collation: Option<&'q Collation>,
        stats: &dyn Statistics,
    ) -> Option<Self> {
        let request = query.request;
        let is_plain = request.hint.is_none()
            && request.sample.is_none()
            && query.natural.is_none()
            && filter.search().is_none()
            && types_in(filter).is_none()
            && request.min.as_doc().is_empty()
            && request.max.as_doc().is_empty();
        if !is_plain || !stats.uses_plan_cache() || !compete(query, filter, collection, restriction)
        {
            return None;
        }
        let cache = &collection.plan_cache;
        let fingerprint = fingerprint(query, filter, collation, restriction, collection);
        let recalled = fingerprint.and_then(|fingerprint| cache.recall(fingerprint));
        let (key, known) = recalled.unwrap_or_else(|| {
            let shape = query.shape(collation);
            let facts = KeyFacts { collection, filter, collation, hint: None };
            let key = facts.key(shape, |index| restriction.allows(index));
            let key = CacheKey { shape: shape.0, key };
            if let Some(fingerprint) = fingerprint {
                cache.name(fingerprint, key);
            }
            (key, cache.find(key.key))
        });
        Some(Caching { query, collection, collation, key, known })
    }

    /// Returns the index that served earlier requests, if two of them agreed.
    pub fn index(&self) -> Option<IndexId> {
        self.known.as_ref().filter(|known| known.is_active).map(|known| known.index)
    }

    /// Returns the cached plan among `nodes`, the plans with its index, unless it takes far more work
    /// than for the earlier requests.
    ///
    /// # Errors
    /// The interrupt's error.
    pub fn take(&self, nodes: Vec<Node>, stats: &dyn Statistics) -> Result<Option<Node>> {
        let Some(known) = &self.known else { return Ok(None) };
        let is_known = |node: &Node| {
            single_scan(node).is_some_and(|scan| {
                scan.index.id == known.index && !scan.is_whole() && node.blocks() == known.sorts
            })
        };
        let mut same = nodes.into_iter().filter(is_known);
        let (Some(node), None) = (same.next(), same.next()) else { return Ok(None) };
        let works_max = known.works_max();
        let keys = visited(&node, stats, works_max.saturating_add(1))?;
        Ok((keys <= works_max).then_some(node))
    }

    /// Keeps the plan that was chosen among `nodes`, if it reads a part of one index and its keys were
    /// counted to their end.
    pub fn remember(
        &self,
        nodes: &[Node],
        ranking: &Ranking,
        stats: &dyn Statistics,
        filtered: bool,
    ) {
        let Some((best, keys)) = ranking
            .order
            .first()
            .and_then(|at| Some((nodes.get(*at)?, ranking.keys.get(*at).copied()?)))
        else {
            return;
        };
        let (Some(scan), true) = (single_scan(best), keys < ranking.depth) else { return };
        let created_from = self.created_from();
        if scan.is_whole()
            || scan.keys.is_seen_in_views()
            || created_from.as_bytes().len() > CACHED_QUERY_BYTES_MAX
        {
            return;
        }
        let fresh = CachedPlan {
            shape: self.key.shape,
            index: scan.index.id,
            sorts: best.blocks(),
            works: keys + 1,
            is_active: false,
            created_ms: stats.now_ms(),
            index_filter_set: filtered,
            created_from,
            plan: DocBuf::build(|out| print_stages(best, out)),
            candidates: ranking
                .order
                .iter()
                .filter_map(|at| ranking.keys.get(*at).copied())
                .collect(),
        };
        let entry = match &self.known {
            Some(known) => known.followed_by(fresh),
            None => fresh,
        };
        self.collection.plan_cache.set(self.key.key, entry);
    }

    /// Returns the request as `createdFromQuery` shows it.
    fn created_from(&self) -> DocBuf {
        let request = self.query.request;
        DocBuf::build(|out| {
            let is_compiled_alone = request.filter.as_doc().is_empty();
            match (&self.query.filter, is_compiled_alone) {
                (Some(filter), true) => out.append("query", &filter.without_implied().to_bson()),
                _ => out.append("query", &request.filter),
            };
            out.append("sort", self.query.written_sort());
            out.append("projection", &request.projection);
            if let Some(collation) = self.collation {
                out.append("collation", &collation.to_document());
            }
        })
    }
}

/// Returns a hash of everything that the key of a request depends on. `None` if that are the literals:
/// of a partial index, an index filter or query settings.
fn fingerprint(
    query: &FindQuery<'_>,
    filter: &Condition,
    collation: Option<&Collation>,
    restriction: Restriction<'_>,
    collection: &Collection,
) -> Option<u64> {
    if restriction.is_set() || collection.indexes.iter().any(|index| index.keys.partial().is_some())
    {
        return None;
    }
    let mut state = collection.plan_cache.fingerprint();
    hash_condition(filter, &mut state);
    query.written_sort().as_bytes().hash(&mut state);
    query.request.projection.as_bytes().hash(&mut state);
    collation.map(Collation::spec).hash(&mut state);
    Some(state.finish())
}

/// The number of indexes below which a collection has none that compete, with the one of `_id`.
const COMPETING_MIN: usize = 3;

/// Returns true if the first fields of two indexes are tested or sorted by.
fn compete(
    query: &FindQuery<'_>,
    filter: &Condition,
    collection: &Collection,
    restriction: Restriction<'_>,
) -> bool {
    if collection.indexes.len() < COMPETING_MIN {
        return false;
    }
    let indexes = collection.ready_indexes().filter(|index| !index.hidden);
    let competing = indexes.filter(|index| {
        let Some(first) = index.keys.fields().first() else { return false };
        let mut is_used =
            query.request.sort.as_doc().first().is_some_and(|by| by.key() == first.path);
        filter.visit_paths(&mut |node| is_used |= node.path.as_str() == first.path);
        is_used && restriction.allows(index)
    });
    competing.take(2).count() == 2
}

/// Returns the scan of a plan that reads one index once.
fn single_scan(node: &Node) -> Option<&IndexScan> {
    let (mut found, mut count) = (None, 0);
    node.for_each_scan(&mut |scan| {
        found = Some(scan);
        count += 1;
    });
    found.filter(|_| count == 1)
}
