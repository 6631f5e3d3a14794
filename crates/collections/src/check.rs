//! `quire check` and the command `validate`: every document against every index entry, both
//! ways, and the counters.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use quire_catalog::{Collection, Index, IndexState, MultikeyPaths};
use quire_document::{limits::Limits, validate};
use quire_error::{Error, Result};
use quire_storage::{
    CommitOptions, Counts, Direction, Engine, Interrupt, Mode, Page, ScanRequest, Snapshot, Space,
    begin,
};

use crate::entry::{EntryKeys, index_range, split_entry};
use crate::failure::{from_interruption, from_storage};
use crate::findings::{CollectionCheck, Finding, Problem, Repair, Report};
use crate::layout::{collection_end, doc_key, record_id_of};
use crate::{KeyGenerator, RecordId, Store, StoredDoc};

/// Checks everything; with `repair` mends what can be mended: missing and surplus index entries,
/// type bits, counters, facts about indexes. A document that is no BSON is told, kept, and left
/// out of the indexes. Nobody else may use the store meanwhile.
pub fn check(store: &Arc<Store>, repair: bool) -> Result<Report> {
    let mut report = Report::default();
    let catalog = store.catalog();
    let mut collections: Vec<_> = catalog.collections().cloned().collect();
    collections.sort_by(|a, b| a.namespace.cmp(&b.namespace));
    check_numbers(&collections, &mut report);
    let mend = if repair { Repair::All } else { Repair::Nothing };
    let interrupt = Interrupt::new();
    for collection in &collections {
        let found = check_collection(store, collection, mend, &interrupt)?;
        report.collections += 1;
        report.documents += found.documents;
        report.entries += found.entries.iter().map(|(_, entries)| entries).sum::<u64>();
        report.findings.extend(found.findings);
    }
    check_strays(store.engine(), &collections, repair, &mut report)?;
    Ok(report)
}

/// Checks one collection on one snapshot, while others read and write. Nobody may write to it
/// during a repair.
///
/// # Errors
/// What reading meets: 239 SnapshotTooOld if it takes longer than a snapshot may be kept, and
/// what the interrupt says.
pub fn check_collection(
    store: &Arc<Store>,
    collection: &Collection,
    repair: Repair,
    interrupt: &Arc<Interrupt>,
) -> Result<CollectionCheck> {
    let found = CollectionCheck::default();
    let mut checker = Checker { store, collection, repair, interrupt, found, lost: Vec::new() };
    checker.run()?;
    Ok(checker.found)
}

/// Snapshots that are taken until one stands still long enough to compare the counters with it.
const STILL_ATTEMPTS: usize = 20;

/// Writes of a repair in one commit.
const REPAIR_CHUNK: usize = 1000;

struct Checker<'s> {
    store: &'s Arc<Store>,
    collection: &'s Collection,
    repair: Repair,
    interrupt: &'s Arc<Interrupt>,
    found: CollectionCheck,
    /// Of each index without any entry how many the documents ask for; `None` for the others.
    lost: Vec<Option<u64>>,
}

/// Index entries to take away and, after that (a unique key may change its owner), to write.
#[derive(Default)]
struct Mends {
    deletes: Vec<Bytes>,
    puts: Vec<(Bytes, Bytes)>,
    /// Entries whose place is free, so that they need not wait for the deletes.
    vacant: Vec<(Bytes, Bytes)>,
}

impl Checker<'_> {
    fn run(&mut self) -> Result<()> {
        let (snapshot, counts) = self.still_snapshot()?;
        let mut bad: HashSet<RecordId> = HashSet::new();
        let mut mends = Mends::default();
        self.lost = self.empty_indexes(&*snapshot)?;
        let (mut documents, mut bytes) = (0u64, 0u64);
        let mut paths: Vec<(Vec<u64>, bool)> = self
            .collection
            .indexes
            .iter()
            .map(|index| (vec![0; index.fields.len()], false))
            .collect();
        let start = self.collection.id.to_bytes().to_vec();
        let end = collection_end(self.collection.id);
        walk(&*snapshot, Space::Doc, start, &end, self.interrupt, |key, value| {
            let id = record_id_of(key)?;
            let stored_len = value.len() as u64;
            documents += 1;
            bytes += stored_len.saturating_sub(1);
            let doc = StoredDoc::decode(value.clone());
            let valid =
                doc.as_ref().is_ok_and(|doc| validate(doc.as_bytes(), &Limits::WIRE).is_ok());
            match doc {
                Ok(doc) if valid => {
                    self.check_document(&*snapshot, id, &doc, &mut paths, &mut mends)
                }
                _ => {
                    bad.insert(id);
                    let problem = format!("record {id} is not a valid document");
                    self.find(problem, Problem::InvalidDocument(id), false);
                    Ok(())
                }
            }
        })?;
        self.found.documents = documents;
        for index in &self.collection.indexes {
            self.check_index(&*snapshot, index, &bad, &mut mends)?;
        }
        drop(snapshot);
        self.tell_lost();
        self.write(mends)?;
        self.check_facts(&paths)?;
        match counts {
            Some(counts) => self.check_counts(counts, documents, bytes),
            None => Ok(()),
        }
    }

    /// A snapshot with the counters that belong to it, if nobody wrote while it was taken.
    fn still_snapshot(&mut self) -> Result<(Box<dyn Snapshot>, Option<Counts>)> {
        let engine = self.store.engine();
        for _ in 0..STILL_ATTEMPTS {
            let before = engine.version();
            let snapshot = engine.snapshot().map_err(from_storage)?;
            let counts = self.store.counts(self.collection);
            if engine.version() == before {
                self.found.counted = true;
                return Ok((snapshot, Some(counts)));
            }
        }
        Ok((engine.snapshot().map_err(from_storage)?, None))
    }

    fn empty_indexes(&self, snapshot: &dyn Snapshot) -> Result<Vec<Option<u64>>> {
        let mut page = Page::default();
        let is_empty = |index: &Arc<Index>| {
            let (start, end) = index_range(index.id);
            let request = ScanRequest::new(Space::Idx, &start, &end).keys_only().rows_max(1);
            snapshot.scan(&request, &mut page).map_err(from_storage)?;
            Ok(page.rows.is_empty().then_some(0))
        };
        self.collection.indexes.iter().map(is_empty).collect()
    }

    /// An index that has lost everything is one finding, not one for each entry.
    fn tell_lost(&mut self) {
        let lost = std::mem::take(&mut self.lost);
        for (index, missing) in self.collection.indexes.iter().zip(lost) {
            if let Some(missing @ 1..) = missing {
                let problem = format!("{} has lost all its {missing} entries", index.name);
                let mended = self.repair == Repair::All;
                self.find(problem, Problem::Index(index.name.clone()), mended);
            }
        }
    }

    /// Every key of the document is in every index.
    fn check_document(
        &mut self,
        snapshot: &dyn Snapshot,
        id: RecordId,
        doc: &StoredDoc,
        paths: &mut [(Vec<u64>, bool)],
        mends: &mut Mends,
    ) -> Result<()> {
        let mut keys = EntryKeys::default();
        if doc.get("_id").is_none() {
            self.find(format!("record {id} has no _id"), Problem::Other, false);
        }
        for (number, (index, (bits, long))) in self.collection.indexes.iter().zip(paths).enumerate()
        {
            if index.state == IndexState::WriteOnly {
                continue;
            }
            let generated = match KeyGenerator::generate(index, doc.as_doc()) {
                Ok(generated) => generated,
                Err(error) => {
                    let name = &index.name;
                    let problem = format!("record {id} has no keys in {name}: {}", error.message());
                    self.find(problem, Problem::Index(name.clone()), false);
                    continue;
                }
            };
            keys.encode(index, &generated)?;
            bits.iter_mut().zip(&generated.multikey).for_each(|(all, more)| *all |= more);
            *long |= keys.has_long();
            for at in 0..keys.len() {
                let (key, value) = keys.stored(index, at, id);
                let found = match self.lost.get_mut(number) {
                    Some(Some(missing)) => {
                        *missing += 1;
                        mends.vacant.push((key, value));
                        continue;
                    }
                    _ => snapshot.get(Space::Idx, &key).map_err(from_storage)?,
                };
                match found {
                    Some(found) if found == value => {}
                    Some(other) if index.unique && other.get(..8) != value.get(..8) => {
                        let name = &index.name;
                        let problem = format!("record {id} shares a key of unique index {name}");
                        self.find(problem, Problem::Index(name.clone()), false);
                    }
                    _ => {
                        let name = &index.name;
                        let problem = format!("record {id} lacks an entry in {name}");
                        let what = Problem::MissingEntry { index: name.clone(), record: id };
                        self.find(problem, what, self.repair == Repair::All);
                        mends.puts.push((key, value));
                    }
                }
            }
        }
        if mends.vacant.len() >= REPAIR_CHUNK {
            let vacant = std::mem::take(&mut mends.vacant);
            self.write(Mends { vacant, ..Mends::default() })?;
        }
        Ok(())
    }

    /// Every entry belongs to a document that has it.
    fn check_index(
        &mut self,
        snapshot: &dyn Snapshot,
        index: &Arc<Index>,
        bad: &HashSet<RecordId>,
        mends: &mut Mends,
    ) -> Result<()> {
        let (start, end) = index_range(index.id);
        let mut keys = EntryKeys::default();
        let mut read = 0;
        walk(snapshot, Space::Idx, start, &end, self.interrupt, |key, value| {
            read += 1;
            let split = split_entry(index.unique, key, value);
            let record = split.as_ref().ok().map(|(_, id, _)| *id);
            let problem = match split {
                Err(_) => Some(format!("{} holds an entry that is none", index.name)),
                Ok((_, id, _)) if bad.contains(&id) => None,
                Ok((_, id, _)) => {
                    let doc_key = doc_key(self.collection.id, id);
                    let doc = snapshot.get(Space::Doc, &doc_key).map_err(from_storage)?;
                    match doc.map(StoredDoc::decode).transpose()? {
                        None => {
                            Some(format!("{} points to record {id}, which is gone", index.name))
                        }
                        Some(doc) => {
                            let has = match KeyGenerator::generate(index, doc.as_doc()) {
                                Ok(generated) => {
                                    keys.encode(index, &generated)?;
                                    (0..keys.len()).any(|at| keys.stored(index, at, id).0 == *key)
                                }
                                Err(_) => false,
                            };
                            (!has).then(|| {
                                format!("{} holds a key that record {id} does not have", index.name)
                            })
                        }
                    }
                }
            };
            if let Some(problem) = problem {
                let what = Problem::SurplusEntry { index: index.name.clone(), record };
                self.find(problem, what, self.repair == Repair::All);
                mends.deletes.push(key.clone());
            }
            Ok(())
        })?;
        self.found.entries.push((index.name.clone(), read));
        Ok(())
    }

    fn check_facts(&mut self, found: &[(Vec<u64>, bool)]) -> Result<()> {
        for (index, (bits, long)) in self.collection.indexes.iter().zip(found) {
            if index.state == IndexState::WriteOnly || index.multikey.stored_covers(bits, *long) {
                continue;
            }
            let known = index.multikey_paths();
            let missing = !known.covers(&MultikeyPaths(bits.clone()));
            let what = if missing { "multikey paths" } else { "long keys" };
            let problem = format!("{} does not know all its {what}", index.name);
            let mends = self.repair != Repair::Nothing;
            self.find(problem, Problem::Index(index.name.clone()), mends);
            if mends {
                let mut txn = begin(self.store.engine(), Mode::Write).map_err(from_storage)?;
                let grown = crate::multikey::grow(&mut txn, index, bits, *long)?;
                txn.commit(CommitOptions::synced()).map_err(from_storage)?;
                grown.iter().for_each(crate::multikey::GrownFacts::committed);
            }
        }
        Ok(())
    }

    fn check_counts(&mut self, counts: Counts, documents: u64, bytes: u64) -> Result<()> {
        if (counts.documents, counts.bytes) == (documents, bytes) {
            return Ok(());
        }
        let problem = format!(
            "counters say {} documents of {} bytes, there are {documents} of {bytes}",
            counts.documents, counts.bytes
        );
        self.find(problem, Problem::Other, self.repair == Repair::All);
        if self.repair == Repair::All {
            let mut txn = begin(self.store.engine(), Mode::Write).map_err(from_storage)?;
            txn.add_counts(
                self.collection.id.0,
                documents as i64 - counts.documents as i64,
                bytes as i64 - counts.bytes as i64,
            );
            txn.commit(CommitOptions::synced()).map_err(from_storage)?;
        }
        Ok(())
    }

    fn write(&mut self, mends: Mends) -> Result<()> {
        if self.repair != Repair::All {
            return Ok(());
        }
        let deletes = mends.deletes.into_iter().map(|key| (key, None));
        let puts = mends.puts.into_iter().chain(mends.vacant);
        let puts = puts.map(|(key, value)| (key, Some(value)));
        let mut writes = deletes.chain(puts).peekable();
        while writes.peek().is_some() {
            let mut txn = begin(self.store.engine(), Mode::Write).map_err(from_storage)?;
            for (key, value) in writes.by_ref().take(REPAIR_CHUNK) {
                match value {
                    Some(value) => txn.put(Space::Idx, key, value),
                    None => txn.delete(Space::Idx, key),
                }
                .map_err(from_storage)?;
            }
            txn.commit(CommitOptions::synced()).map_err(from_storage)?;
        }
        Ok(())
    }

    fn find(&mut self, problem: String, what: Problem, mended: bool) {
        let place = self.collection.namespace.to_string();
        self.found.findings.push(Finding { place, problem, what, mended });
    }
}

/// No number is used twice.
fn check_numbers(collections: &[Arc<Collection>], report: &mut Report) {
    let mut seen = HashSet::new();
    for collection in collections {
        let indexes = collection.indexes.iter().map(|index| index.id.0);
        for number in indexes.chain([collection.id.0]) {
            if !seen.insert(number) {
                report.findings.push(Finding {
                    place: collection.namespace.to_string(),
                    problem: format!("number {number} is in use twice"),
                    what: Problem::Other,
                    mended: false,
                });
            }
        }
        if collection.id_index().is_none() {
            report.findings.push(Finding {
                place: collection.namespace.to_string(),
                problem: "there is no _id index".to_owned(),
                what: Problem::Other,
                mended: false,
            });
        }
    }
}

/// No documents or entries outside what the catalog knows, but for what the engine is still
/// dropping. A repair drops the others.
fn check_strays(
    engine: &Arc<dyn Engine>,
    collections: &[Arc<Collection>],
    repair: bool,
    report: &mut Report,
) -> Result<()> {
    engine.maintenance(quire_storage::Maintenance::Reclaim).map_err(from_storage)?;
    let leaving = engine.dropped_ranges();
    let docs: HashSet<u32> = collections.iter().map(|collection| collection.id.0).collect();
    let entries: HashSet<u32> =
        collections.iter().flat_map(|c| c.indexes.iter().map(|index| index.id.0)).collect();
    for (space, known) in [(Space::Doc, docs), (Space::Idx, entries)] {
        let mut from = Vec::new();
        let snapshot = engine.snapshot().map_err(from_storage)?;
        let mut page = Page::default();
        loop {
            let request = ScanRequest::new(space, &from, &[]).keys_only().rows_max(1);
            snapshot.scan(&request, &mut page).map_err(from_storage)?;
            let Some((key, _)) = page.rows.first() else { break };
            let Some(prefix) = key.first_chunk::<4>() else {
                return Err(Error::internal("a key shorter than a number"));
            };
            let number = u32::from_be_bytes(*prefix);
            let end = quire_storage::prefix_end(prefix);
            let is_leaving =
                || leaving.iter().any(|range| range.space == space && range.start[..] == *prefix);
            if !known.contains(&number) && !is_leaving() {
                report.findings.push(Finding {
                    place: space.name().to_owned(),
                    problem: format!("keys under number {number}, which nothing has"),
                    what: Problem::Other,
                    mended: repair,
                });
                if repair {
                    engine.drop_range(space, prefix, &end).map_err(from_storage)?;
                }
            }
            if end.is_empty() {
                break;
            }
            from = end;
        }
    }
    Ok(())
}

fn walk(
    snapshot: &dyn Snapshot,
    space: Space,
    mut start: Vec<u8>,
    end: &[u8],
    interrupt: &Arc<Interrupt>,
    mut each: impl FnMut(&Bytes, &Bytes) -> Result<()>,
) -> Result<()> {
    let mut page = Page::default();
    loop {
        interrupt.check().map_err(from_interruption)?;
        let request =
            ScanRequest { direction: Direction::Forward, ..ScanRequest::new(space, &start, end) };
        snapshot.scan(&request, &mut page).map_err(from_storage)?;
        for (key, value) in &page.rows {
            each(key, value)?;
        }
        match &page.resume {
            Some(resume) => start = resume.to_vec(),
            None => return Ok(()),
        }
    }
}
