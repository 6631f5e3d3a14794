//! A sort as the threads know it that read for it: they make the keys, and leave out rows that are
//! beyond its limit.

use std::sync::Arc;

use parking_lot::RwLock;
use quire_error::{Error, Result};
use quire_mql::EvalContext;
use quire_mql::sort::SortPattern;

use super::batch::{BATCH_BYTES_MAX, KeyedBatch};
use super::order::in_order;
use super::sorter::Sorter;
use crate::env::Scope;
use crate::operators::chain::Chain;
use crate::operators::filtering::renew;
use crate::taking::{Documents, Given, Keyed, Scratch, Taken, Taker};

/// Makes the keys of a sort that reads nothing but documents.
pub(crate) struct SortTaker {
    /// What happens to documents before they are sorted.
    chain: Chain,
    pattern: Arc<SortPattern>,
    /// The number of rows to keep; 0 for all.
    limit: usize,
    /// The key at which rows are beyond the limit, going by the rows that the sorter has seen.
    worst: RwLock<Option<Arc<[u8]>>>,
}

impl SortTaker {
    /// Makes the keys of `sorter`. `None` if it sorts by more than documents.
    pub fn new(sorter: &Sorter) -> Option<Self> {
        let pattern = sorter.pattern()?;
        let taker = SortTaker {
            chain: Chain::default(),
            pattern: Arc::clone(pattern),
            limit: sorter.limit(),
            worst: RwLock::default(),
        };
        (!pattern.reads_metadata()).then_some(taker)
    }

    /// The same behind a chain.
    pub fn behind(self, chain: Chain) -> Self {
        SortTaker { chain, ..self }
    }

    /// What happens to documents before they are sorted.
    pub fn chain(&self) -> &Chain {
        &self.chain
    }

    /// An empty sorter for the rows.
    pub fn sorter(&self) -> Sorter {
        Sorter::new(Arc::clone(&self.pattern), self.limit as u64)
    }

    /// Gives the sorter what was read for it.
    pub fn give(&self, given: Given, sorter: &mut Sorter, scope: Scope<'_>) -> Result<()> {
        match given {
            Given::Rows(rows) => rows.into_iter().try_for_each(|row| sorter.push(row, scope))?,
            Given::Taken(Taken::Keyed(keyed)) => {
                sorter.push_batch(keyed.batch, keyed.bytes, scope.env)?;
            }
            Given::Taken(_) => return Err(Taken::mistaken("$sort")),
        }
        let worst = sorter.worst();
        if worst != self.worst.read().as_deref() {
            *self.worst.write() = worst.map(Arc::from);
        }
        Ok(())
    }

    fn keys(&self, docs: &Documents<'_>, scratch: &mut Scratch, scope: Scope<'_>) -> Result<Keyed> {
        let worst = self.worst.read().clone();
        let (mut batch, mut bytes) = (KeyedBatch::default(), 0);
        let mut passed = self.chain.none_passed();
        let Scratch { arena, key, .. } = scratch;
        for (at, doc) in docs.docs.iter().enumerate() {
            renew(arena, scope.env)?;
            let context = EvalContext::new(arena, *doc, &scope.env.shared);
            let mut take = |context: &EvalContext<'_>| {
                let doc = context.root;
                bytes += doc.len() as u64;
                if let Some(worst) = worst.as_deref()
                    && self.pattern.begins_beyond(doc, worst, key)
                {
                    return Ok(());
                }
                key.clear();
                self.pattern.append_bytes(&self.pattern.key(doc, context)?, key);
                if worst.as_deref().is_none_or(|worst| &key[..] < worst) {
                    batch.push(key, (docs.record)(at), doc.as_bytes(), None);
                }
                let fit = batch.size() <= BATCH_BYTES_MAX;
                fit.then_some(()).ok_or_else(|| Error::internal("too much for one batch"))
            };
            match self.chain.is_empty() {
                true => take(&context)?,
                false => {
                    let context = context.with_variables(scope.variables);
                    self.chain.run_on(&context, &mut passed, &mut take)?;
                }
            }
        }
        batch.end();
        if self.limit > 0 && batch.len() > self.limit.saturating_mul(2) {
            batch = best_of(batch, self.limit, scope)?;
        }
        Ok(Keyed { batch, bytes, passed })
    }
}

impl Taker for SortTaker {
    fn take(&self, docs: &Documents<'_>, scratch: &mut Scratch, scope: Scope<'_>) -> Option<Taken> {
        self.keys(docs, scratch, scope).ok().map(Taken::Keyed)
    }
}

/// The first rows of a batch in their order.
fn best_of(batch: KeyedBatch, limit: usize, scope: Scope<'_>) -> Result<KeyedBatch> {
    let batches = [batch];
    let (order, [batch], mut best) =
        (in_order(&batches, scope.env)?, &batches, KeyedBatch::default());
    for row in order.iter().take(limit) {
        let (_, row) = row.place();
        best.push(batch.key(row), batch.record(row), batch.doc(row), None);
    }
    best.end();
    Ok(best)
}
