//! `quire check`: every document against every index entry, both ways, and the counters.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use quire_catalog::{Collection, Index, IndexState, MultikeyPaths};
use quire_document::{limits::Limits, validate};
use quire_error::{Error, Result};
use quire_storage::{
    CommitOptions, Direction, Engine, Mode, Page, ScanRequest, Snapshot, Space, begin,
};

use crate::entry::{EntryKeys, index_range, split_entry};
use crate::failure::from_storage;
use crate::layout::{collection_end, doc_key, record_id_of};
use crate::{KeyGenerator, RecordId, Store, StoredDoc};

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The namespace, or the part of the catalog.
    pub place: String,
    /// What is wrong there.
    pub problem: String,
    /// Whether the repair mended it; false without repair.
    pub mended: bool,
}

/// What a check found.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Collections that were read.
    pub collections: u64,
    /// Documents that were read.
    pub documents: u64,
    /// Index entries that were read.
    pub entries: u64,
    /// What is wrong, in the order in which it was found; empty is clean.
    pub findings: Vec<Finding>,
}

impl Report {
    /// True if nothing is wrong.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    /// True if everything that was wrong has been mended.
    pub fn is_mended(&self) -> bool {
        self.findings.iter().all(|finding| finding.mended)
    }
}

/// Checks everything; with `repair` mends what can be mended: missing and surplus index entries,
/// type bits, counters, facts about indexes. A document that is no BSON is told, kept, and left
/// out of the indexes. Nobody else may use the store meanwhile.
pub fn check(store: &Arc<Store>, repair: bool) -> Result<Report> {
    let mut report = Report::default();
    let catalog = store.catalog();
    let mut collections: Vec<_> = catalog.collections().cloned().collect();
    collections.sort_by(|a, b| a.namespace.cmp(&b.namespace));
    check_numbers(&collections, &mut report);
    for collection in &collections {
        let mut checker = Checker { store, collection, repair, report: &mut report };
        checker.run()?;
    }
    check_strays(store.engine(), &collections, repair, &mut report)?;
    Ok(report)
}

/// Writes of a repair in one commit.
const REPAIR_CHUNK: usize = 1000;

struct Checker<'s> {
    store: &'s Arc<Store>,
    collection: &'s Collection,
    repair: bool,
    report: &'s mut Report,
}

/// Index entries to take away and, after that (a unique key may change its owner), to write.
#[derive(Default)]
struct Mends {
    deletes: Vec<Bytes>,
    puts: Vec<(Bytes, Bytes)>,
}

impl Checker<'_> {
    fn run(&mut self) -> Result<()> {
        self.report.collections += 1;
        let snapshot = self.store.engine().snapshot().map_err(from_storage)?;
        let mut bad: HashSet<RecordId> = HashSet::new();
        let mut mends = Mends::default();
        let (mut documents, mut bytes) = (0u64, 0u64);
        let mut paths: Vec<(Vec<u64>, bool)> = self
            .collection
            .indexes
            .iter()
            .map(|index| (vec![0; index.fields.len()], false))
            .collect();
        let start = self.collection.id.to_bytes().to_vec();
        let end = collection_end(self.collection.id);
        walk(&*snapshot, Space::Doc, start, &end, |key, value| {
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
                    self.find(format!("record {id} is not a valid document"), false);
                    Ok(())
                }
            }
        })?;
        self.report.documents += documents;
        for index in &self.collection.indexes {
            self.check_index(&*snapshot, index, &bad, &mut mends)?;
        }
        drop(snapshot);
        self.write(mends)?;
        self.check_facts(&paths)?;
        self.check_counts(documents, bytes)
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
            self.find(format!("record {id} has no _id"), false);
        }
        for (index, (bits, long)) in self.collection.indexes.iter().zip(paths) {
            if index.state == IndexState::WriteOnly {
                continue;
            }
            let generated = match KeyGenerator::generate(index, doc.as_doc()) {
                Ok(generated) => generated,
                Err(error) => {
                    let name = &index.name;
                    self.find(
                        format!("record {id} has no keys in {name}: {}", error.message()),
                        false,
                    );
                    continue;
                }
            };
            keys.encode(index, &generated)?;
            bits.iter_mut().zip(&generated.multikey).for_each(|(all, more)| *all |= more);
            *long |= keys.has_long();
            for at in 0..keys.len() {
                let (key, value) = keys.stored(index, at, id);
                let found = snapshot.get(Space::Idx, &key).map_err(from_storage)?;
                match found {
                    Some(found) if found == value => {}
                    Some(other) if index.unique && other.get(..8) != value.get(..8) => {
                        let name = &index.name;
                        self.find(
                            format!("record {id} shares a key of unique index {name}"),
                            false,
                        );
                    }
                    _ => {
                        let name = &index.name;
                        self.find(format!("record {id} lacks an entry in {name}"), self.repair);
                        mends.puts.push((key, value));
                    }
                }
            }
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
        walk(snapshot, Space::Idx, start, &end, |key, value| {
            self.report.entries += 1;
            let problem = match split_entry(index.unique, key, value) {
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
                self.find(problem, self.repair);
                mends.deletes.push(key.clone());
            }
            Ok(())
        })
    }

    fn check_facts(&mut self, found: &[(Vec<u64>, bool)]) -> Result<()> {
        for (index, (bits, long)) in self.collection.indexes.iter().zip(found) {
            if index.state == IndexState::WriteOnly || index.multikey.stored_covers(bits, *long) {
                continue;
            }
            let known = index.multikey_paths();
            let missing = !known.covers(&MultikeyPaths(bits.clone()));
            let what = if missing { "multikey paths" } else { "long keys" };
            self.find(format!("{} does not know all its {what}", index.name), self.repair);
            if self.repair {
                let mut txn = begin(self.store.engine(), Mode::Write).map_err(from_storage)?;
                let grown = crate::multikey::grow(&mut txn, index, bits, *long)?;
                txn.commit(CommitOptions::synced()).map_err(from_storage)?;
                grown.iter().for_each(crate::multikey::GrownFacts::committed);
            }
        }
        Ok(())
    }

    fn check_counts(&mut self, documents: u64, bytes: u64) -> Result<()> {
        let counts = self.store.counts(self.collection);
        if (counts.documents, counts.bytes) == (documents, bytes) {
            return Ok(());
        }
        let problem = format!(
            "counters say {} documents of {} bytes, there are {documents} of {bytes}",
            counts.documents, counts.bytes
        );
        self.find(problem, self.repair);
        if self.repair {
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
        if !self.repair {
            return Ok(());
        }
        let deletes = mends.deletes.into_iter().map(|key| (key, None));
        let puts = mends.puts.into_iter().map(|(key, value)| (key, Some(value)));
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

    fn find(&mut self, problem: String, mended: bool) {
        let place = self.collection.namespace.to_string();
        self.report.findings.push(Finding { place, problem, mended });
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
                    mended: false,
                });
            }
        }
        if collection.id_index().is_none() {
            report.findings.push(Finding {
                place: collection.namespace.to_string(),
                problem: "there is no _id index".to_owned(),
                mended: false,
            });
        }
    }
}

/// No documents or entries outside what the catalog knows. Dropped ranges are skipped by the
/// engine or on their way out, so strays are only told when repair finds them still there after
/// a reclaim.
fn check_strays(
    engine: &Arc<dyn Engine>,
    collections: &[Arc<Collection>],
    repair: bool,
    report: &mut Report,
) -> Result<()> {
    engine.maintenance(quire_storage::Maintenance::Reclaim).map_err(from_storage)?;
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
            if !known.contains(&number) {
                report.findings.push(Finding {
                    place: space.name().to_owned(),
                    problem: format!("keys under number {number}, which nothing has"),
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
    mut each: impl FnMut(&Bytes, &Bytes) -> Result<()>,
) -> Result<()> {
    let mut page = Page::default();
    loop {
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
