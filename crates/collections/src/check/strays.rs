//! Data under numbers that the catalog does not contain: documents of a collection whose record is
//! lost, index entries, counters. A repair creates a collection from the documents. It deletes the
//! entries and counters, because they can be built again from documents.

use std::collections::HashSet;
use std::sync::Arc;

use quire_catalog::{Collection, CollectionId};
use quire_error::{Error, Result};
use quire_storage::{
    CommitOptions, DropRange, Interrupt, Mode, Page, ScanRequest, Snapshot, Space, StorageError,
    begin, prefix_end,
};

use super::check_collection;
use crate::change_log::dropped_collections;
use crate::failure::from_storage;
use crate::findings::{Finding, Problem, Repair, Report};
use crate::layout::DOC_KEY_BYTES;
use crate::{CheckOptions, Store};

/// Finds documents, entries and counters under numbers that are not in the catalog. Ranges that the
/// engine is still dropping are ignored.
pub(super) fn check(
    store: &Arc<Store>,
    collections: &[Arc<Collection>],
    repair: bool,
    report: &mut Report,
) -> Result<()> {
    let engine = store.engine();
    engine.maintenance(quire_storage::Maintenance::Reclaim).map_err(from_storage)?;
    let leaving = engine.dropped_ranges();
    let mut known: HashSet<u32> = collections.iter().map(|collection| collection.id.0).collect();
    let indexes = collections.iter().flat_map(|collection| &collection.indexes);
    let mut entries: HashSet<u32> = indexes.map(|index| index.id.0).collect();
    entries.extend(collections.iter().filter_map(|found| found.buckets).map(|found| found.0));
    let snapshot = engine.snapshot().map_err(from_storage)?;
    known.extend(dropped_collections(&*snapshot)?.iter().map(|dropped| dropped.0));
    let documents = strays(&*snapshot, Space::Doc, &known, &leaving)?;
    let entries = strays(&*snapshot, Space::Idx, &entries, &leaving)?;
    drop(snapshot);
    for number in documents {
        known.insert(number);
        let stray = Stray { store, number, report };
        stray.documents(repair)?;
    }
    for number in entries {
        let stray = Stray { store, number, report };
        stray.entries(repair)?;
    }
    for number in engine.traces().counted {
        if !known.contains(&number) {
            let stray = Stray { store, number, report };
            stray.counters(repair)?;
        }
    }
    Ok(())
}

/// Returns the numbers of keys in a space that are neither in the catalog nor being dropped.
fn strays(
    snapshot: &dyn Snapshot,
    space: Space,
    known: &HashSet<u32>,
    leaving: &[DropRange],
) -> Result<Vec<u32>> {
    let (mut from, mut page, mut found) = (Vec::new(), Page::default(), Vec::new());
    loop {
        let request = ScanRequest::new(space, &from, &[]).keys_only().rows_max(1);
        let number = match snapshot.scan(&request, &mut page) {
            Ok(()) => page.rows.first().map(|(key, _)| number_of(key)).transpose()?,
            // Unreadable data were reported with the collection or index that has the number.
            Err(StorageError::Corruption { .. }) => {
                let later = |number: &u32| number.to_be_bytes()[..] >= from[..];
                known.iter().copied().filter(later).min()
            }
            Err(error) => return Err(from_storage(error)),
        };
        let Some(number) = number else { return Ok(found) };
        let prefix = number.to_be_bytes();
        let is_leaving =
            || leaving.iter().any(|range| range.space == space && range.start[..] == prefix);
        if !known.contains(&number) && !is_leaving() {
            found.push(number);
        }
        from = prefix_end(&prefix);
        if from.is_empty() {
            return Ok(found);
        }
    }
}

fn number_of(key: &[u8]) -> Result<u32> {
    let prefix = key.first_chunk::<4>();
    let prefix = prefix.ok_or_else(|| Error::internal("a key shorter than a number"))?;
    Ok(u32::from_be_bytes(*prefix))
}

/// A number that is not in the catalog.
struct Stray<'s> {
    store: &'s Arc<Store>,
    number: u32,
    report: &'s mut Report,
}

impl Stray<'_> {
    /// Puts documents into a new collection, named after their number, because nothing else is
    /// known of it. Records that cannot be documents stay where they are.
    fn documents(self, repair: bool) -> Result<()> {
        if !self.are_records()? {
            return self.find(Space::Doc.name(), "keys that are no documents", false);
        }
        if !repair {
            return self.find(Space::Doc.name(), "documents", false);
        }
        let collection = self.store.recover_collection(CollectionId(self.number))?;
        let interrupt = Interrupt::new();
        let options = CheckOptions { repair: Repair::All, ..CheckOptions::default() };
        let found = check_collection(self.store, &collection, options, &interrupt)?;
        let (name, documents) = (collection.namespace.to_string(), found.documents);
        let report = &mut *self.report;
        report.collections += 1;
        report.documents += documents;
        report.findings.extend(found.findings.into_iter().filter(|finding| !finding.repaired));
        let what = format!("{documents} documents, now in the collection {name},");
        self.find(Space::Doc.name(), &what, true)
    }

    fn are_records(&self) -> Result<bool> {
        let (start, end) = self.range();
        let request = ScanRequest::new(Space::Doc, &start, &end).keys_only().rows_max(1);
        let mut page = Page::default();
        let snapshot = self.store.engine().snapshot().map_err(from_storage)?;
        match snapshot.scan(&request, &mut page) {
            Ok(()) => Ok(page.rows.iter().all(|(key, _)| key.len() == DOC_KEY_BYTES)),
            Err(StorageError::Corruption { .. }) => Ok(true),
            Err(error) => Err(from_storage(error)),
        }
    }

    /// Deletes the entries of an unknown index: they can be built again from documents.
    fn entries(self, repair: bool) -> Result<()> {
        if repair {
            let (start, end) = self.range();
            self.store.engine().drop_range(Space::Idx, &start, &end).map_err(from_storage)?;
        }
        self.find(Space::Idx.name(), "index entries", repair)
    }

    fn counters(self, repair: bool) -> Result<()> {
        if repair {
            let mut txn = begin(self.store.engine(), Mode::Write).map_err(from_storage)?;
            txn.forget_counts(self.number);
            txn.commit(CommitOptions::synced()).map_err(from_storage)?;
        }
        self.find(Space::Meta.name(), "counters", repair)
    }

    fn range(&self) -> (Vec<u8>, Vec<u8>) {
        let prefix = self.number.to_be_bytes();
        (prefix.to_vec(), prefix_end(&prefix))
    }

    fn find(self, place: &str, what: &str, repaired: bool) -> Result<()> {
        self.report.findings.push(Finding {
            place: place.to_owned(),
            problem: format!("{what} under number {}, which nothing has", self.number),
            what: Problem::Other,
            repaired,
        });
        Ok(())
    }
}
