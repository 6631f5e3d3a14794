//! The foreign side of a join: finds documents by the keys of local documents.
//!
//! Without an index it reads the collection once and keeps documents in memory by the hashes of
//! their keys (a hash join: Knuth, TAOCP 3, 6.4; Graefe, "Query evaluation techniques", 1993): only
//! those with one of the local keys if the keys are known and few, else all. With an index it looks
//! up a batch of keys at a time and keeps the documents that it found. If reading the whole
//! collection costs less than looking up the keys, it reads the collection. If the documents do not
//! fit in memory, it reads the collection again for each batch of keys.

use std::ops::Range;
use std::sync::Arc;

use bumpalo::Bump;
use quire_catalog::Collection;
use quire_collections::View;
use quire_document::{Collator, Value, ValueBuf};
use quire_error::Result;
use quire_mql::EvalContext;
use quire_planner::explain::{JoinStats, NodeStats};
use quire_planner::{Foreign, ForeignKey, Inner, LookedUp, Node, Plan};
use smallvec::SmallVec;

use crate::build::build;
use crate::chunks::Chunks;
use crate::env::{Env, Run};
use crate::holding::Holding;
use crate::joins::keyed_rows::KeyedRows;
use crate::joins::keys::{encode_into, for_each_foreign};
use crate::joins::rows::drain;
use crate::operators::filtering::reset;
use crate::row::Row;
use crate::scans::index_scan::grown_multikey;
use crate::statistics::ViewStatistics;

/// The keys that are added between two checks of the interrupt.
const KEYS_AT_ONCE: usize = 4096;

/// The positions of rows.
pub(super) type Places = SmallVec<[u32; 8]>;

/// How much of the foreign side has been read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Held {
    Nothing,
    /// The documents of the requested keys.
    Asked,
    Everything,
}

/// What a request needs of the foreign side besides the keys.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    /// An estimate of the number of different keys.
    pub keys: usize,
    /// True if no other keys will be requested.
    pub all: bool,
    /// The bytes that the documents may take together.
    pub bytes_max: usize,
    /// True if documents without the requested keys may be kept, within `bytes_max`.
    pub keeps_others: bool,
}

/// Keys that are not in memory yet.
#[derive(Default)]
struct NewKeys {
    served: Vec<ValueBuf>,
    /// The keys for which the index does not have all documents, as a sparse index for null.
    unserved: Vec<ValueBuf>,
}

/// Finds foreign documents.
pub(super) struct ForeignSide {
    plan: Arc<Foreign>,
    rows: KeyedRows,
    /// The memory of `rows`.
    holding: Holding,
    held: Held,
    /// The numbers of the keys that no index serves. Their documents stay, because each time they are
    /// looked up all documents are read.
    unserved: Vec<u32>,
    /// How many times all documents were read for such keys.
    scans_for_keys: u32,
    /// True if all documents together are too large.
    too_large: bool,
    /// True if the rows are in the order of the collection.
    in_order: bool,
    looked_up: LookedUp,
    /// The generation of the catalog in which the plan was right; `None` before the first read.
    planned_for: Option<u64>,
    arena: Bump,
    stats: JoinStats,
    read: NodeStats,
}

impl ForeignSide {
    pub fn new(plan: &Arc<Foreign>) -> Self {
        ForeignSide {
            plan: Arc::clone(plan),
            rows: KeyedRows::default(),
            holding: Holding::default(),
            held: Held::Nothing,
            unserved: Vec::new(),
            scans_for_keys: 0,
            too_large: false,
            in_order: true,
            looked_up: LookedUp::default(),
            planned_for: None,
            arena: Bump::new(),
            stats: JoinStats::default(),
            read: NodeStats::default(),
        }
    }

    /// Returns the plan of the foreign side.
    pub fn plan(&self) -> &Arc<Foreign> {
        &self.plan
    }

    /// Returns true if knowing more keys could change the strategy: not if it holds all documents
    /// already, or would read them all for the keys known so far.
    pub fn gains_from_keys(&self, keys: usize, run: &Run<'_>) -> bool {
        self.held != Held::Everything
            && (self.too_large || !self.prefers_everything(keys, true, run))
    }

    /// Returns true if reading all documents costs less than looking up `keys` keys. `all` is true
    /// if no other keys will follow.
    fn prefers_everything(&self, keys: usize, all: bool, run: &Run<'_>) -> bool {
        let collection = self.plan.whole.cursor().collection();
        let documents = collection.map_or(0, |collection| run.view().counts(collection).documents);
        self.plan.prefers_everything(keys as u64, all, self.looked_up, documents)
    }

    /// Plans the foreign side again if the collections, the indexes or their array paths that the plan
    /// relies on have changed since it was made.
    fn renew(&mut self, run: &Run<'_>) -> Result<()> {
        let view = run.view();
        let generation = view.catalog().generation();
        let same_catalog = self.planned_for == Some(generation);
        if !is_current(&self.plan.whole, &view, same_catalog) {
            let statistics = ViewStatistics::new(view, run.env);
            self.plan = Arc::new(self.plan.renewed(&statistics)?);
        }
        self.planned_for = Some(generation);
        Ok(())
    }

    /// Reads all documents, if that was not done. Returns false if they do not fit in memory.
    pub fn hold_everything(&mut self, run: &mut Run<'_>) -> Result<bool> {
        if self.held != Held::Everything && !self.too_large {
            self.renew(run)?;
            let plan = Arc::clone(&self.plan);
            let bytes_max = run.env.params.stage_bytes_max;
            self.clear();
            let fits = self.fill(&plan.whole.root, bytes_max, None, run)?;
            self.held = if fits { Held::Everything } else { Held::Nothing };
            self.too_large = !fits;
            self.stats.read_all = true;
        }
        Ok(self.held == Held::Everything)
    }

    /// Makes sure that the documents with these keys are in memory. Returns false if they take too
    /// much memory together.
    pub fn hold(&mut self, keys: &[Value<'_>], asked: Asked, run: &mut Run<'_>) -> Result<bool> {
        if self.held == Held::Everything
            || self.prefers_everything(asked.keys, asked.all, run) && self.hold_everything(run)?
        {
            return Ok(true);
        }
        let keeps_others = asked.keeps_others && self.plan.keeps_records();
        if !keeps_others || self.rows.bytes() > asked.bytes_max / 2 {
            self.forget(asked.bytes_max / 2);
        }
        let mut new = self.add_new(keys, run.env)?;
        self.holding.cover(self.rows.bytes())?;
        self.held = Held::Asked;
        if new.served.is_empty() && new.unserved.is_empty() {
            return Ok(true);
        }
        self.renew(run)?;
        if !new.unserved.is_empty() && self.scans_for_keys > 0 && !self.too_large {
            // Keeping all documents costs no more than reading them again.
            if self.hold_everything(run)? {
                return Ok(true);
            }
            new = self.add_new(keys, run.env)?;
            self.held = Held::Asked;
        }
        self.look_up(new, asked.bytes_max, run)
    }

    /// Adds keys to those in memory. Returns those that are new, which have the next numbers: first the
    /// served ones, then the others.
    fn add_new(&mut self, keys: &[Value<'_>], env: &Env) -> Result<NewKeys> {
        let (mut new, mut key_bytes) = (NewKeys::default(), Vec::new());
        let collator = collator_of(env);
        // The same document may be found by two keys; its record tells.
        let served = self.plan.served_types().filter(|_| self.plan.keeps_records());
        for (at, key) in keys.iter().copied().enumerate() {
            if at % KEYS_AT_ONCE == KEYS_AT_ONCE - 1 {
                env.check_interrupt()?;
            }
            encode_into(Some(key), collator, &mut key_bytes);
            if served.is_some_and(|types| !types.contain(key) || !self.is_found_by_filter(key)) {
                if self.rows.find(&key_bytes).is_none() {
                    new.unserved.push(ValueBuf::new(key));
                }
            } else if self.rows.add_key(&key_bytes) {
                new.served.push(ValueBuf::new(key));
            }
        }
        new.unserved.retain(|key| {
            encode_into(Some(key.as_value()), collator, &mut key_bytes);
            self.rows.add_key(&key_bytes)
        });
        Ok(new)
    }

    /// Reads the documents of keys that were added: those of served keys by the index, those of others
    /// by reading all documents. Returns false if they take more than `bytes_max`.
    fn look_up(&mut self, new: NewKeys, bytes_max: usize, run: &mut Run<'_>) -> Result<bool> {
        let end = self.rows.keys() as u32;
        let middle = end - new.unserved.len() as u32;
        let first = middle - new.served.len() as u32;
        let plan = Arc::clone(&self.plan);
        let mut all_from = middle;
        if !new.served.is_empty() {
            let (count, rows) = (new.served.len() as u64, self.rows.rows().len());
            let bound = match new.served.iter().all(|key| self.is_found_by_filter(key.as_value())) {
                true => plan.with_keys(new.served)?,
                false => None,
            };
            match bound {
                Some(root) if !self.fill(&root, bytes_max, Some(first..middle), run)? => {
                    return Ok(false);
                }
                Some(_) => {
                    self.stats.by_keys = true;
                    self.looked_up.keys += count;
                    self.looked_up.found += (self.rows.rows().len() - rows) as u64;
                }
                None => all_from = first,
            }
        }
        if all_from == end {
            return Ok(true);
        }
        self.scans_for_keys += 1;
        self.stats.read_all = true;
        let fits = self.fill(&plan.whole.root, bytes_max, Some(all_from..end), run)?;
        if fits && plan.served_types().is_some() && plan.keeps_records() {
            self.unserved.extend(all_from..end);
        }
        Ok(fits)
    }

    /// Returns false for a key for which a filter does not find every document that an expression
    /// finds.
    fn is_found_by_filter(&self, key: Value<'_>) -> bool {
        matches!(self.plan.key, Some(ForeignKey::Field(_)))
            || !matches!(key, Value::Array(_) | Value::Undefined | Value::Regex(_))
    }

    /// Returns all documents in memory.
    pub fn everything(&self) -> &[Row] {
        self.rows.rows()
    }

    /// Adds the positions of the documents with a key to `found`.
    pub fn add_places(&self, key: &[u8], found: &mut Places) {
        let places = self.rows.find(key).map(|key| self.rows.places(key));
        found.extend(places.into_iter().flatten());
    }

    /// Sorts the positions of `keys` keys into the order of the collection, or of the stages
    /// between it and the join, and removes duplicates. The order of an index is not kept, because
    /// it depends on which keys are looked up together.
    pub fn arrange(&self, found: &mut Places, keys: usize) {
        if found.len() < 2 {
            return;
        }
        if self.plan.keeps_records() && !self.in_order {
            let record = |place: &u32| self.row(*place).map(|row| row.record);
            found.sort_unstable_by_key(record);
            found.dedup_by_key(|place| record(place));
        } else if keys > 1 {
            found.sort_unstable();
            found.dedup();
        }
    }

    /// Returns the document at a position.
    pub fn row(&self, place: u32) -> Option<&Row> {
        self.rows.rows().get(place as usize)
    }

    /// Drops documents that a later call reads again. A collection that does not exist may be created
    /// before it.
    pub fn rest(&mut self) {
        if self.plan.whole.missing {
            self.clear();
        } else if self.held == Held::Asked {
            self.forget(usize::MAX);
        }
    }

    /// Prepares for the rows of another document of an outer join.
    pub fn restart(&mut self) {
        if self.plan.varies {
            self.clear();
            (self.too_large, self.scans_for_keys) = (false, 0);
        }
    }

    /// Drops the documents of keys, except those of unserved keys if they take at most `bytes_max`.
    fn forget(&mut self, bytes_max: usize) {
        let unserved = std::mem::take(&mut self.unserved);
        self.rows.keep(&unserved);
        if unserved.is_empty() || self.rows.bytes() > bytes_max {
            return self.clear();
        }
        self.unserved = (0..unserved.len() as u32).collect();
        self.in_order = self.rows.rows().is_sorted_by_key(|row| row.record);
    }

    fn clear(&mut self) {
        self.rows = KeyedRows::default();
        self.holding = Holding::default();
        self.held = Held::Nothing;
        self.unserved = Vec::new();
        self.in_order = true;
    }

    /// Returns the statistics of the reads: for `explain`, and for the counters of the request.
    pub fn stats(&self) -> (JoinStats, NodeStats) {
        let read_all = self.stats.read_all && !self.stats.by_keys;
        let strategy = self.plan.strategy(self.too_large, read_all);
        (JoinStats { strategy, ..self.stats.clone() }, self.read.clone())
    }

    /// Returns the statistics with those of a foreign pipeline that may run again.
    pub fn stats_with(&self, running: Option<&NodeStats>) -> (JoinStats, NodeStats) {
        let (mut joined, mut read) = self.stats();
        if let Some(stats) = running {
            add(stats, &mut joined, &mut read);
        }
        (joined, read)
    }

    /// Adds the statistics of a foreign pipeline.
    pub fn note(&mut self, root: Option<&Node>, stats: &NodeStats) {
        add(stats, &mut self.stats, &mut self.read);
        if let Some(cursor) = root.map(Node::below_stages) {
            self.stats.collection_scans += u64::from(scans(cursor));
            let indexes = &mut self.stats.indexes_used;
            cursor.for_each_scan(&mut |scan| {
                if !indexes.contains(&scan.index.name) {
                    indexes.push(scan.index.name.clone());
                }
            });
        }
    }

    /// Adds the documents of the nodes of a plan: all, or those with a key whose number is in `asked`. If
    /// they are too large, drops all documents and returns false.
    fn fill(
        &mut self,
        root: &Node,
        bytes_max: usize,
        asked: Option<Range<u32>>,
        run: &mut Run<'_>,
    ) -> Result<bool> {
        let mut operator = build(root, None)?;
        let owned = root.owns_rows();
        let env = run.env;
        let mut filling = Filling {
            key: self.plan.key.as_ref(),
            rows: &mut self.rows,
            asked,
            arena: &mut self.arena,
            key_bytes: Vec::new(),
            keys: SmallVec::new(),
        };
        let (mut chunks, mut fits, mut in_order) = (Chunks::default(), true, self.in_order);
        let mut last = filling.rows.rows().last().map(|row| row.record);
        let holding = &mut self.holding;
        let mut take = |mut row: Row| {
            if !filling.find_keys(&row, env)? {
                return Ok(true);
            }
            if !owned {
                row.detach_into(&mut chunks);
            }
            in_order &= last.is_none_or(|last| last < row.record);
            last = Some(row.record);
            filling.add(row);
            holding.cover(filling.rows.bytes())?;
            fits = filling.rows.bytes() <= bytes_max && filling.rows.has_room();
            Ok(fits)
        };
        let mut variables = run.scope().variables.to_vec();
        variables.resize(variables.len().max(self.plan.variables), None);
        run.bound(&variables, |run| drain(&mut operator, run, &mut take))?;
        self.in_order = in_order;
        if !fits {
            self.clear();
        }
        let stats = operator.stats();
        self.note(Some(root), &stats);
        Ok(fits)
    }
}

/// Adds the documents and keys that a foreign pipeline examined.
fn add(stats: &NodeStats, joined: &mut JoinStats, read: &mut NodeStats) {
    read.keys_examined += stats.total_keys();
    read.docs_examined += stats.total_docs();
    read.bytes_read += stats.total_bytes();
    joined.keys_examined += stats.total_keys();
    joined.docs_examined += stats.total_docs();
}

/// Adds rows to the documents in memory.
struct Filling<'f> {
    key: Option<&'f ForeignKey>,
    rows: &'f mut KeyedRows,
    /// The numbers of the wanted keys; `None` for all documents.
    asked: Option<Range<u32>>,
    arena: &'f mut Bump,
    key_bytes: Vec<u8>,
    /// The numbers of the keys of the current row.
    keys: SmallVec<[u32; 4]>,
}

impl Filling<'_> {
    /// Finds the keys of a row. Returns false if none of them is wanted.
    fn find_keys(&mut self, row: &Row, env: &Env) -> Result<bool> {
        let Filling { key, rows, asked, arena, key_bytes, keys } = self;
        keys.clear();
        let collator = collator_of(env);
        let mut see = |value: Option<Value<'_>>| {
            encode_into(value, collator, key_bytes);
            match asked {
                None => keys.push(rows.find_or_add(key_bytes)),
                Some(asked) => keys.extend(rows.find(key_bytes).filter(|key| asked.contains(key))),
            }
        };
        match key {
            None => return Ok(true),
            Some(ForeignKey::Field(path)) => {
                for_each_foreign(path, row.doc(), |value| see(Some(value)));
            }
            Some(ForeignKey::Value(expression, _)) => {
                reset(arena);
                let context = EvalContext::new(arena, row.doc(), &env.shared);
                see(expression.eval(&context)?);
            }
        }
        Ok(!keys.is_empty())
    }

    /// Adds the row with the keys that were found.
    fn add(&mut self, row: Row) {
        let place = self.rows.push(row);
        self.keys.iter().for_each(|key| self.rows.link(*key, place));
    }
}

/// Returns the collator of a request; `None` compares bytes.
pub(super) fn collator_of(env: &Env) -> Option<&dyn Collator> {
    env.shared.collator.as_deref().map(|collator| collator as &dyn Collator)
}

/// Returns true if what a plan relies on is as it was: its collection and those of its `$unionWith`s,
/// their indexes, and the array paths of these. `same_catalog` says that the catalog has not changed.
fn is_current(plan: &Plan, view: &View<'_>, same_catalog: bool) -> bool {
    let planned = plan.cursor().collection();
    let found = match same_catalog {
        true => planned,
        false => view.catalog().find(&plan.namespace),
    };
    let same = match (planned, found) {
        (Some(planned), Some(found)) => Arc::ptr_eq(planned, found),
        (None, Some(_)) => !plan.missing,
        (Some(_), None) => false,
        (None, None) => true,
    };
    let mut roots = std::iter::once(&plan.root).chain(plan.by_keys.as_deref());
    let knows = |root: &Node, collection| knows_arrays(root.below_stages(), collection);
    same && planned.is_none_or(|collection| roots.all(|root| knows(root, collection)))
        && plan.root.stages().into_iter().all(|(_, inner)| match inner {
            Inner::Union(others) => {
                others.iter().all(|other| is_current(other, view, same_catalog))
            }
            _ => true,
        })
}

/// Returns true if the indexes of a plan have no array paths that it does not know of.
fn knows_arrays(root: &Node, collection: &Collection) -> bool {
    let mut knows = true;
    root.for_each_scan(&mut |scan| {
        knows &= scan.index.is_clustered()
            || matches!(grown_multikey(collection, scan, false), Ok(false));
    });
    knows
}

fn scans(node: &Node) -> bool {
    node.scans_collection() || node.inputs().iter().any(scans)
}
