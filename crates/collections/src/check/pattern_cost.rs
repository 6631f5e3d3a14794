//! What a pattern would cost, before it is declared: what its build would change, and how many
//! documents a later change of one document would.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use quire_catalog::patterns::{Pattern, PatternKind, Rollup};
use quire_catalog::{Collection, Namespace};
use quire_document::{Doc, Path, key};
use quire_error::Result;
use quire_storage::Interrupt;

use super::patterns::page;
use crate::failure::from_interruption;
use crate::rules::patterns::{references, upkeep};
use crate::{RecordId, Store, Writer, WriterMode};

/// The most different values that are counted.
const VALUES_MAX: usize = 1_000_000;

/// What a pattern would cost.
#[derive(Debug, Clone, Default)]
pub struct PatternCost {
    /// The documents that the build would change.
    pub documents: u64,
    /// The bytes by which they would grow; negative if they would shrink.
    pub bytes: i64,
    /// The documents that a change of one document would change. Of a reference: for each referred
    /// value, the documents that have it. Of a roll-up: for each child, its parents.
    pub fanout: Quantiles,
    /// Of a roll-up: for each parent that has some, the children from which its values are computed.
    pub children: Option<Quantiles>,
}

impl PatternCost {
    /// Returns the cost for a collection without documents.
    pub fn of_empty(pattern: &Pattern) -> Self {
        let is_rollup = matches!(pattern.kind, PatternKind::Rollup(_));
        PatternCost { children: is_rollup.then(Quantiles::default), ..PatternCost::default() }
    }
}

/// How often each number occurs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Quantiles(BTreeMap<u32, u64>);

impl Quantiles {
    fn add(&mut self, number: u32) {
        *self.0.entry(number).or_default() += 1;
    }

    /// Returns the smallest number that at least `percent` of all do not exceed; 0 without numbers.
    pub fn at(&self, percent: u64) -> u32 {
        let all: u64 = self.0.values().sum();
        let rank = (all * percent).div_ceil(100).max(1);
        let mut passed = 0;
        let mut reached = self.0.iter().skip_while(|(_, count)| {
            passed += **count;
            passed < rank
        });
        reached.next().map_or(0, |(number, _)| *number)
    }
}

/// How many documents have each value.
#[derive(Default)]
struct Counted(HashMap<Vec<u8>, u32>);

impl Counted {
    fn add(&mut self, key: Vec<u8>) {
        if self.0.len() < VALUES_MAX || self.0.contains_key(&key) {
            *self.0.entry(key).or_default() += 1;
        }
    }

    fn quantiles(&self) -> Quantiles {
        let mut quantiles = Quantiles::default();
        self.0.values().for_each(|count| quantiles.add(*count));
        quantiles
    }
}

/// Returns what the build of a pattern of `collection` would change, and what its upkeep would.
///
/// # Errors
/// Those of reading and of an interrupt.
pub fn pattern_cost(
    store: &Arc<Store>,
    (collection, pattern): (&Arc<Collection>, &Arc<Pattern>),
    interrupt: &Arc<Interrupt>,
) -> Result<PatternCost> {
    let mut cost = PatternCost::default();
    let Some(upkeep) = upkeep(pattern) else { return Ok(cost) };
    let local = match &pattern.kind {
        PatternKind::Reference(reference) => Some(&reference.local_field),
        PatternKind::Rollup(rollup) => Some(&rollup.local_field),
        PatternKind::Counter(_) => None,
    };
    let local = local.map(|path| Path::new(path));
    let mut counted = Counted::default();
    for_each(store, collection, interrupt, |doc, writer| {
        if let Some(new) = upkeep.recomputed(collection, doc, writer)? {
            cost.documents += 1;
            cost.bytes += new.as_bytes().len() as i64 - doc.len() as i64;
        }
        keys(doc, local.as_ref()).into_iter().for_each(|key| counted.add(key));
        Ok(())
    })?;
    match &pattern.kind {
        PatternKind::Rollup(rollup) => {
            let namespace = Namespace::new(collection.namespace.db(), &rollup.from)?;
            let children = store.catalog().lookup(&namespace).cloned();
            count_children(store, (children, rollup), &counted, &mut cost, interrupt)?;
        }
        PatternKind::Reference(_) | PatternKind::Counter(_) => cost.fanout = counted.quantiles(),
    }
    Ok(cost)
}

/// Counts the parents of each child, and the children of each parent. `parents` has the parents of
/// each value.
fn count_children(
    store: &Arc<Store>,
    (children, rollup): (Option<Arc<Collection>>, &Rollup),
    parents: &Counted,
    cost: &mut PatternCost,
    interrupt: &Arc<Interrupt>,
) -> Result<()> {
    let (foreign, compiled) = (Path::new(&rollup.foreign_field), rollup.compile()?);
    let mut of_values = Counted::default();
    if let Some(children) = children {
        for_each(store, &children, interrupt, |child, _| {
            if compiled.contribution(child)?.is_none() {
                return Ok(());
            }
            let mut reached = 0_u32;
            for key in keys(child, Some(&foreign)) {
                if let Some(count) = parents.0.get(&key) {
                    reached = reached.saturating_add(*count);
                    of_values.add(key);
                }
            }
            cost.fanout.add(reached);
            Ok(())
        })?;
    }
    cost.children = Some(of_values.quantiles());
    Ok(())
}

/// Returns the keys of the different values that a document has at a path.
fn keys(doc: Doc<'_>, path: Option<&Path>) -> Vec<Vec<u8>> {
    let values = path.map_or(Vec::new(), |path| references(doc, path.parts()));
    let mut keys: Vec<_> = values.into_iter().map(key::encode).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// Visits all documents of a collection, each page on a snapshot of its own.
fn for_each(
    store: &Arc<Store>,
    collection: &Arc<Collection>,
    interrupt: &Arc<Interrupt>,
    mut visit: impl FnMut(Doc<'_>, &mut Writer) -> Result<()>,
) -> Result<()> {
    let mut from = Some(RecordId(0));
    while let Some(start) = from {
        interrupt.check().map_err(from_interruption)?;
        let mut writer = store.writer(WriterMode::Statement)?;
        let (records, more) = page(collection, start, &writer)?;
        records.iter().try_for_each(|record| visit(record.doc.as_doc(), &mut writer))?;
        from = records.last().filter(|_| more).map(|last| RecordId(last.id.0 + 1));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_sorted_numbers() {
        let mut quantiles = Quantiles::default();
        assert_eq!(quantiles.at(50), 0);
        (1..=10).for_each(|number| quantiles.add(number));
        assert_eq!([50, 90, 91, 100].map(|percent| quantiles.at(percent)), [5, 9, 10, 10]);
    }
}
