//! What is counted for the statements of one shape.

use super::figures::{Figure, Histogram};

/// The number of plans of a shape that are told apart. What ran by another plan is not lost: it
/// counts in every other measure.
pub const PLANS_MAX: usize = 8;

/// What was counted for the statements of one shape.
#[derive(Clone, Debug, PartialEq)]
pub struct Measures {
    /// The number of statements.
    pub count: u64,
    /// Those that failed. They count in no measure but `count`, `errors` and the times.
    pub errors: u64,
    /// When the first ended, in milliseconds since 1970; `i64::MAX` before it.
    pub first_ms: i64,
    /// When the last ended.
    pub last_ms: i64,
    /// How long they took up to their first batch, in microseconds. For an aggregate or a find,
    /// `getMore` is not in it.
    pub latency: Histogram,
    /// The same as sum and extremes.
    pub micros: Figure,
    /// The microseconds of the last.
    pub last_micros: u64,
    /// The microseconds of all batches.
    pub total_micros: Figure,
    /// The later batches of their cursors.
    pub get_mores: u64,
    /// The index keys that each examined.
    pub keys_examined: Figure,
    /// The documents that each examined.
    pub docs_examined: Figure,
    /// The bytes of the documents that each examined.
    pub bytes_read: Figure,
    /// The documents that each returned.
    pub returned: Figure,
    /// Those that sorted in memory, as no index gave the order.
    pub sorts: u64,
    /// Those in which a stage wrote to disk.
    pub spills: u64,
    /// Those that read a whole collection.
    pub collection_scans: u64,
    /// Those whose plan came from the plan cache.
    pub cached_plans: u64,
    /// The documents that each skipped; only those with a skip.
    pub skip: Histogram,
    /// The documents to which each was limited; only those with a limit.
    pub limit: Histogram,
    /// The elements of the longest array of values of each, as of an `$in`; only those with one.
    pub list: Histogram,
    /// The plans that were used, most of them named by index: at most [`PLANS_MAX`].
    pub plans: Vec<PlanUse>,
    /// The documents that were inserted, without upserts.
    pub inserted: u64,
    /// The documents that updates matched.
    pub matched: Figure,
    /// The documents that were changed.
    pub modified: Figure,
    /// The documents that were deleted.
    pub deleted: Figure,
    /// The statements that inserted a document because none matched.
    pub upserted: u64,
    /// The updates that replaced a document.
    pub replacements: u64,
}

/// How often a plan was used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanUse {
    /// The plan's summary, such as `IXSCAN { a: 1 }` or `COLLSCAN`.
    pub summary: String,
    /// The name of the index that it reads first; empty without one.
    pub index: String,
    /// The number of statements that ran by it.
    pub count: u64,
}

impl Default for Measures {
    fn default() -> Self {
        Measures {
            count: 0,
            errors: 0,
            first_ms: i64::MAX,
            last_ms: 0,
            latency: Histogram::default(),
            micros: Figure::default(),
            last_micros: 0,
            total_micros: Figure::default(),
            get_mores: 0,
            keys_examined: Figure::default(),
            docs_examined: Figure::default(),
            bytes_read: Figure::default(),
            returned: Figure::default(),
            sorts: 0,
            spills: 0,
            collection_scans: 0,
            cached_plans: 0,
            skip: Histogram::default(),
            limit: Histogram::default(),
            list: Histogram::default(),
            plans: Vec::new(),
            inserted: 0,
            matched: Figure::default(),
            modified: Figure::default(),
            deleted: Figure::default(),
            upserted: 0,
            replacements: 0,
        }
    }
}

impl Measures {
    /// Adds what another has counted.
    pub fn merge(&mut self, other: &Measures) {
        self.count += other.count;
        self.errors += other.errors;
        if other.last_ms >= self.last_ms {
            self.last_micros = other.last_micros;
        }
        self.first_ms = self.first_ms.min(other.first_ms);
        self.last_ms = self.last_ms.max(other.last_ms);
        self.latency.merge(&other.latency);
        self.micros.merge(&other.micros);
        self.total_micros.merge(&other.total_micros);
        self.get_mores += other.get_mores;
        self.keys_examined.merge(&other.keys_examined);
        self.docs_examined.merge(&other.docs_examined);
        self.bytes_read.merge(&other.bytes_read);
        self.returned.merge(&other.returned);
        self.sorts += other.sorts;
        self.spills += other.spills;
        self.collection_scans += other.collection_scans;
        self.cached_plans += other.cached_plans;
        self.skip.merge(&other.skip);
        self.limit.merge(&other.limit);
        self.list.merge(&other.list);
        for used in &other.plans {
            self.note_plan(&used.summary, &used.index, used.count);
        }
        self.inserted += other.inserted;
        self.matched.merge(&other.matched);
        self.modified.merge(&other.modified);
        self.deleted.merge(&other.deleted);
        self.upserted += other.upserted;
        self.replacements += other.replacements;
    }

    /// Counts statements that ran by a plan, unless [`PLANS_MAX`] others are known.
    pub fn note_plan(&mut self, summary: &str, index: &str, count: u64) {
        let is_known = |known: &PlanUse| known.summary == summary && known.index == index;
        if let Some(known) = self.plans.iter_mut().find(|known| is_known(known)) {
            known.count += count;
        } else if self.plans.len() < PLANS_MAX {
            let (summary, index) = (summary.to_owned(), index.to_owned());
            self.plans.push(PlanUse { summary, index, count });
        }
    }

    /// Returns the bytes that it takes in memory beside itself.
    pub fn held_bytes(&self) -> usize {
        let plans = self.plans.iter().map(|plan| plan.summary.len() + plan.index.len() + 72);
        let histograms = [&self.latency, &self.skip, &self.limit, &self.list];
        histograms.into_iter().map(Histogram::held_bytes).sum::<usize>() + plans.sum::<usize>()
    }
}
