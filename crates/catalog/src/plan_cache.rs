//! The plan cache of a collection: which index served earlier requests of a shape best, and how
//! much work that was. The planner measures that index alone for the next request of the shape
//! (docs/adr/0029-plan-cache.md). It is kept in memory only, as in MongoDB.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use foldhash::fast::RandomState;
use parking_lot::RwLock;
use quire_document::{DocBuf, DocWriter, Value};

use crate::IndexId;

/// The most entries of one collection. Beyond it the entry that was not used for the longest time
/// is dropped.
pub const CACHED_PLANS_MAX: usize = 500;
/// The most bytes of a filter, sort and projection together that an entry keeps for
/// `$planCacheStats`. A request with larger ones is not cached.
pub const CACHED_QUERY_BYTES_MAX: usize = 4 << 10;
/// The most fingerprints of which a collection keeps the keys. Beyond it they are all dropped.
const FINGERPRINTS_MAX: usize = 2 * CACHED_PLANS_MAX;
/// How many times the work of an entry a request may take before it is planned anew. MongoDB:
/// `internalQueryCacheEvictionRatio`.
pub const EVICTION_RATIO: u64 = 10;
/// The number of keys up to which a request is never planned anew.
pub const WORK_MIN: u64 = 128;

/// A choice of an index for requests of one shape.
#[derive(Debug)]
pub struct CachedPlan {
    /// The hash of the plan's shape.
    pub shape: u64,
    /// The chosen index.
    pub index: IndexId,
    /// True if the plan sorts.
    pub sorts: bool,
    /// The number of keys that the plan visits for the request from which it was made, plus 1.
    pub works: u64,
    /// True once two requests have chosen a plan within this work. Only then is the choice used.
    pub is_active: bool,
    /// The time at which the shape was first cached, in milliseconds since 1970.
    pub created_ms: i64,
    /// True if an index filter restricted the choice.
    pub index_filter_set: bool,
    /// The request from which it was made: `query`, `sort`, `projection`, and `collation` if it has
    /// one.
    pub created_from: DocBuf,
    /// The chosen plan as explain shows it.
    pub plan: DocBuf,
    /// The number of keys that each considered plan visits, the chosen one first.
    pub candidates: Vec<u64>,
}

/// An entry with the time of its last use.
#[derive(Debug)]
struct Entry {
    plan: Arc<CachedPlan>,
    used: AtomicU64,
}

/// The plan cache of one version of a collection's record. A copy of a collection is made to be
/// changed, so its cache is empty.
#[derive(Debug, Default)]
pub struct PlanCache {
    kept: RwLock<Kept>,
    /// Counts the uses of all entries.
    uses: AtomicU64,
    /// The seed of fingerprints.
    seed: RandomState,
}

#[derive(Debug, Default)]
struct Kept {
    entries: HashMap<u64, Entry, RandomState>,
    /// The keys of the fingerprints that were computed before.
    keys: HashMap<u64, CacheKey, RandomState>,
}

/// The key of a request in the plan cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheKey {
    /// The hash of the plan's shape.
    pub shape: u64,
    /// The hash of the shape with the indexes that can serve the request.
    pub key: u64,
}

impl CachedPlan {
    /// Returns the most keys that a request may visit by this choice.
    pub fn works_max(&self) -> u64 {
        self.works.saturating_mul(EVICTION_RATIO).max(WORK_MIN)
    }

    /// Returns the entry that follows this one after a request has been planned anew as `fresh`:
    /// active if the work was enough, otherwise with more work. MongoDB:
    /// `internalQueryCacheWorksGrowthCoefficient`, 2.
    pub fn followed_by(&self, mut fresh: CachedPlan) -> CachedPlan {
        fresh.created_ms = self.created_ms;
        if self.is_active {
            return fresh;
        }
        fresh.is_active = fresh.works <= self.works;
        if !fresh.is_active {
            fresh.works = fresh.works.min(self.works.saturating_mul(2));
        }
        fresh
    }

    /// Returns the bytes that the entry occupies.
    pub fn bytes(&self) -> usize {
        let docs = self.created_from.as_bytes().len() + self.plan.as_bytes().len();
        size_of::<Self>() + size_of::<Entry>() + docs + self.candidates.len() * size_of::<u64>()
    }

    /// Writes the entry as `$planCacheStats` shows it, without its key.
    pub fn write(&self, out: &mut DocWriter<'_>) {
        let long = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        out.append("isActive", self.is_active);
        out.append("works", long(self.works));
        out.append("worksType", "works");
        out.append("timeOfCreation", Value::Date(self.created_ms));
        out.append("createdFromQuery", &self.created_from);
        out.append("cachedPlan", &self.plan);
        let best = self.candidates.iter().copied().min().unwrap_or(0).max(1);
        {
            let mut stats = out.array("creationExecStats");
            for keys in &self.candidates {
                stats.document().append("totalKeysExamined", long(*keys));
            }
        }
        {
            // As in MongoDB: 1 plus the share of the steps that found something.
            let mut scores = out.array("candidatePlanScores");
            for keys in &self.candidates {
                scores.push(1.0 + best as f64 / (*keys).max(1) as f64);
            }
        }
        out.append("indexFilterSet", self.index_filter_set);
        out.append("estimatedSizeBytes", long(self.bytes() as u64));
    }
}

impl Clone for PlanCache {
    fn clone(&self) -> Self {
        PlanCache::default()
    }
}

impl PlanCache {
    /// Returns a hasher for the fingerprint of a request: a hash of everything that its key depends on,
    /// which is faster to compute than the key. Requests of one key may have several.
    pub fn fingerprint(&self) -> impl Hasher {
        self.seed.build_hasher()
    }

    /// Returns the key of a fingerprint that [`PlanCache::name`] has seen, with its entry.
    pub fn recall(&self, fingerprint: u64) -> Option<(CacheKey, Option<Arc<CachedPlan>>)> {
        let kept = self.kept.read();
        let key = *kept.keys.get(&fingerprint)?;
        Some((key, self.used(&kept, key.key)))
    }

    /// Keeps the key of a fingerprint.
    pub fn name(&self, fingerprint: u64, key: CacheKey) {
        let mut kept = self.kept.write();
        if kept.keys.len() >= FINGERPRINTS_MAX {
            kept.keys.clear();
        }
        kept.keys.insert(fingerprint, key);
    }

    /// Returns the entry of a key.
    pub fn find(&self, key: u64) -> Option<Arc<CachedPlan>> {
        self.used(&self.kept.read(), key)
    }

    fn used(&self, kept: &Kept, key: u64) -> Option<Arc<CachedPlan>> {
        let entry = kept.entries.get(&key)?;
        entry.used.store(self.uses.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        Some(Arc::clone(&entry.plan))
    }

    /// Sets the entry of a key.
    pub fn set(&self, key: u64, plan: CachedPlan) {
        let used = AtomicU64::new(self.uses.fetch_add(1, Ordering::Relaxed));
        let entries = &mut self.kept.write().entries;
        if entries.len() >= CACHED_PLANS_MAX && !entries.contains_key(&key) {
            let oldest = entries.iter().min_by_key(|(_, entry)| entry.used.load(Ordering::Relaxed));
            if let Some(oldest) = oldest.map(|(key, _)| *key) {
                entries.remove(&oldest);
            }
        }
        entries.insert(key, Entry { plan: Arc::new(plan), used });
    }

    /// Removes the entries of a shape; with `None`, all of them.
    pub fn clear(&self, shape: Option<u64>) {
        let is_kept = |entry: &Entry| shape.is_some_and(|shape| entry.plan.shape != shape);
        self.kept.write().entries.retain(|_, entry| is_kept(entry));
    }

    /// Returns all entries with their keys, in the order of the keys.
    pub fn all(&self) -> Vec<(u64, Arc<CachedPlan>)> {
        let entries = &self.kept.read().entries;
        let mut all: Vec<_> =
            entries.iter().map(|(key, entry)| (*key, Arc::clone(&entry.plan))).collect();
        all.sort_by_key(|(key, _)| *key);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(shape: u64, works: u64) -> CachedPlan {
        CachedPlan {
            shape,
            index: IndexId(2),
            sorts: false,
            works,
            is_active: false,
            created_ms: 0,
            index_filter_set: false,
            created_from: DocBuf::new(),
            plan: DocBuf::new(),
            candidates: vec![works, 100],
        }
    }

    #[test]
    fn an_entry_is_used_once_two_requests_took_its_work() {
        let first = plan(1, 10);
        let dearer = first.followed_by(plan(1, 100));
        assert_eq!((dearer.is_active, dearer.works), (false, 20));
        let cheap = dearer.followed_by(plan(1, 5));
        assert_eq!((cheap.is_active, cheap.works, cheap.works_max()), (true, 5, WORK_MIN));
        let gone_bad = cheap.followed_by(plan(1, 5000));
        assert_eq!((gone_bad.is_active, gone_bad.works), (false, 5000));
        assert_eq!(gone_bad.works_max(), 50_000);
    }

    #[test]
    fn the_entry_that_was_not_used_for_longest_makes_room() {
        let cache = PlanCache::default();
        for key in 0..CACHED_PLANS_MAX as u64 {
            cache.set(key, plan(key, 1));
        }
        assert!(cache.find(0).is_some());
        cache.set(9_999, plan(9_999, 1));
        assert_eq!(cache.all().len(), CACHED_PLANS_MAX);
        assert!(cache.find(0).is_some() && cache.find(1).is_none());
    }

    #[test]
    fn entries_of_one_shape_are_removed_together() {
        let cache = PlanCache::default();
        for (key, shape) in [(1, 7), (2, 7), (3, 8)] {
            cache.set(key, plan(shape, 1));
        }
        cache.clear(Some(7));
        assert_eq!(cache.all().iter().map(|(key, _)| *key).collect::<Vec<_>>(), [3]);
        cache.clear(None);
        assert!(cache.all().is_empty());
    }
}
