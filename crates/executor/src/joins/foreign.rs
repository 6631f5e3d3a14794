//! The foreign side of a join: finds documents by the keys of a batch of local ones.
//!
//! Without an index all foreign documents are read once, into a table by the hashes of their keys (a
//! hash join: Knuth, TAOCP 3, 6.4; Graefe, "Query evaluation techniques", 1993). With an index the
//! documents of one batch of keys at a time are read into such a table; once that has taken as many
//! lookups as there are documents, all of them are read after all. Where they do not fit in memory,
//! each batch of keys reads through the collection again.

use std::collections::HashMap;
use std::sync::Arc;

use bumpalo::Bump;
use quire_document::{Value, ValueBuf};
use quire_error::Result;
use quire_mql::EvalContext;
use quire_planner::explain::{JoinStats, JoinStrategy, NodeStats};
use quire_planner::{Foreign, ForeignKey, Node, Plan};
use smallvec::SmallVec;

use crate::env::Run;
use crate::joins::keys::{Key, encode, for_each_foreign};
use crate::joins::rows::drain;
use crate::opening::build::build;
use crate::opening::statistics::ViewStatistics;
use crate::operators::filtering::reset;
use crate::row::Row;

/// Bytes that a key takes in a table besides its own.
pub(super) const KEY_BYTES: usize = 64;

/// Foreign documents in memory, and the places of those that have a key.
#[derive(Default)]
struct Table {
    rows: Vec<Row>,
    places: HashMap<Key, SmallVec<[u32; 2]>>,
    bytes: usize,
}

/// How far the foreign side has been read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Held {
    Nothing,
    /// The documents of the last batch of keys.
    Batch,
    Everything,
}

/// Finds foreign documents.
pub(super) struct ForeignSide {
    plan: Arc<Foreign>,
    table: Table,
    held: Held,
    /// All documents together are too large.
    too_large: bool,
    /// Keys that were looked up in batches.
    looked_up: u64,
    arena: Bump,
    stats: JoinStats,
    read: NodeStats,
}

impl ForeignSide {
    pub fn new(plan: &Arc<Foreign>) -> Self {
        ForeignSide {
            plan: Arc::clone(plan),
            table: Table::default(),
            held: Held::Nothing,
            too_large: false,
            looked_up: 0,
            arena: Bump::new(),
            stats: JoinStats::default(),
            read: NodeStats::default(),
        }
    }

    /// Returns the plan that it reads by.
    pub fn plan(&self) -> &Arc<Foreign> {
        &self.plan
    }

    /// Reads everything, if it was not; false if that does not fit in memory.
    pub fn hold_everything(&mut self, run: &mut Run<'_>) -> Result<bool> {
        if self.held != Held::Everything && !self.too_large {
            let plan = Arc::clone(&self.plan);
            let bytes_max = run.env.params.stage_bytes_max;
            let fits = self.fill(&plan.whole, bytes_max, true, run)?;
            self.held = if fits { Held::Everything } else { Held::Nothing };
            self.too_large = !fits;
        }
        Ok(self.held == Held::Everything)
    }

    /// Sees to it that the documents with these keys can be found. False if these take more than
    /// `bytes_max` together.
    pub fn hold<'k>(
        &mut self,
        keys: &mut dyn Iterator<Item = Value<'k>>,
        bytes_max: usize,
        run: &mut Run<'_>,
    ) -> Result<bool> {
        if self.held == Held::Everything {
            return Ok(true);
        }
        let many = self.plan.index.is_none() || self.looked_up > self.foreign_documents(run);
        if many && self.hold_everything(run)? {
            return Ok(true);
        }
        let by_field = matches!(self.plan.key, Some(ForeignKey::Field(_)));
        // A filter does not find every value that an expression makes of arrays.
        let by_filter = |key: &Value<'_>| {
            by_field || !matches!(key, Value::Array(_) | Value::Undefined | Value::Regex(_))
        };
        let mut all_by_filter = true;
        let keys: Vec<ValueBuf> =
            keys.inspect(|key| all_by_filter &= by_filter(key)).map(ValueBuf::new).collect();
        self.looked_up += keys.len() as u64;
        let plan = match all_by_filter {
            true => self.plan.with_keys(keys, &ViewStatistics::new(run.view(), run.env))?,
            false => self.plan.whole.clone(),
        };
        let fits = self.fill(&plan, bytes_max, false, run)?;
        self.held = if fits { Held::Batch } else { Held::Nothing };
        Ok(fits)
    }

    /// Returns all documents that are held.
    pub fn everything(&self) -> &[Row] {
        &self.table.rows
    }

    /// Returns the places of the documents with one of these keys, in the order of the collection,
    /// or in that of the stages between it and the join. An index gives another order, and is left
    /// for the whole collection at a time that depends on the size of batches.
    pub fn places(&self, keys: &[Key]) -> SmallVec<[u32; 8]> {
        let mut found: SmallVec<[u32; 8]> = SmallVec::new();
        for key in keys {
            found.extend(self.table.places.get(key).into_iter().flatten().copied());
        }
        if keys.len() > 1 {
            found.sort_unstable();
            found.dedup();
        }
        if self.held == Held::Batch && self.plan.reads_collection() {
            found.sort_unstable_by_key(|place| self.row(*place).map(|row| row.record));
        }
        found
    }

    /// Returns the document in a place.
    pub fn row(&self, place: u32) -> Option<&Row> {
        self.table.rows.get(place as usize)
    }

    /// Lets go of documents that a later call reads again.
    pub fn rest(&mut self) {
        if self.held == Held::Batch {
            self.table = Table::default();
            self.held = Held::Nothing;
        }
    }

    /// Returns what reading has counted: for `explain`, and for the counters of the request.
    pub fn stats(&self) -> (JoinStats, NodeStats) {
        let strategy = match (&self.plan.key, &self.plan.index) {
            (_, Some(_)) => JoinStrategy::Index,
            (Some(_), None) if !self.too_large => JoinStrategy::Hash,
            _ => JoinStrategy::NestedLoop,
        };
        (JoinStats { strategy, ..self.stats.clone() }, self.read.clone())
    }

    /// Counts what a pipeline of the foreign side did.
    pub fn note(&mut self, plan: Option<&Plan>, stats: &NodeStats) {
        self.read.keys_examined += stats.total_keys();
        self.read.docs_examined += stats.total_docs();
        self.stats.keys_examined += stats.total_keys();
        self.stats.docs_examined += stats.total_docs();
        if let Some(plan) = plan {
            self.stats.collection_scans += u64::from(scans(plan.cursor()));
            let indexes = &mut self.stats.indexes_used;
            plan.cursor().for_each_scan(&mut |scan| {
                if !indexes.contains(&scan.index.name) {
                    indexes.push(scan.index.name.clone());
                }
            });
        }
    }

    fn foreign_documents(&self, run: &Run<'_>) -> u64 {
        let collection = self.plan.whole.cursor().collection();
        collection.map_or(0, |collection| run.view().counts(collection).documents)
    }

    /// Fills the table with what a plan gives; false if that is too large.
    fn fill(
        &mut self,
        plan: &Plan,
        bytes_max: usize,
        for_long: bool,
        run: &mut Run<'_>,
    ) -> Result<bool> {
        self.table = Table::default();
        let mut operator = build(&plan.root, None)?;
        let env = run.env;
        let (table, arena, foreign) = (&mut self.table, &mut self.arena, &self.plan);
        let mut fits = true;
        let mut take = |mut row: Row| {
            if for_long {
                row.detach();
            }
            let place = table.rows.len() as u32;
            table.bytes += row.size();
            let mut add = |key: Key| {
                table.bytes += KEY_BYTES + key.len();
                let places = table.places.entry(key).or_default();
                if places.last() != Some(&place) {
                    places.push(place);
                }
            };
            let collator = env.shared.collator.as_deref();
            let collator = collator.map(|collator| collator as &dyn quire_document::Collator);
            match &foreign.key {
                None => {}
                Some(ForeignKey::Field(path)) => {
                    for_each_foreign(path, row.doc(), |value| add(encode(Some(value), collator)));
                }
                Some(ForeignKey::Value(expression, _)) => {
                    reset(arena);
                    let context = EvalContext::new(arena, row.doc(), &env.shared);
                    add(encode(expression.eval(&context)?, collator));
                }
            }
            table.rows.push(row);
            fits = table.bytes <= bytes_max && table.rows.len() < u32::MAX as usize;
            Ok(fits)
        };
        let mut variables = run.scope().variables.to_vec();
        variables.resize(variables.len().max(foreign.variables), None);
        run.bound(&variables, |run| drain(&mut operator, run, &mut take))?;
        if !fits {
            self.table = Table::default();
        }
        let stats = operator.stats();
        self.note(Some(plan), &stats);
        Ok(fits)
    }
}

fn scans(node: &Node) -> bool {
    node.scans_collection() || node.inputs().iter().any(scans)
}
