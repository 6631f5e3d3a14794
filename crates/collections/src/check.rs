//! `quire check` and the command `validate`: compares every document with every index entry, in
//! both directions, and the counters.

mod buckets;
mod conformance;
mod entries;
mod groups;
mod jobs;
mod low_water;
mod pattern_cost;
mod patterns;
mod strays;
mod tally;
mod walks;

use std::collections::HashSet;
use std::sync::Arc;

use quire_catalog::key::Arena;
use quire_catalog::{Collection, Facts, FactsBuf, Index, IndexState, ValidationLevel, Validator};
use quire_document::{limits::Limits, validate};
use quire_error::{Error, ErrorCode, Result};
use quire_mql::context::current_interrupt;
use quire_storage::{CommitOptions, Counts, Interrupt, Mode, Snapshot, Space, begin};

use crate::change_log::discard;
use crate::clashes::entry_range;
use crate::entry::EntryKeys;
use crate::failure::from_storage;
use crate::findings::{CollectionCheck, Finding, Problem, Repair, Report};
use crate::{RecordId, Store, StoredDoc};
pub use conformance::Conformance;
use entries::Doubt;
pub use pattern_cost::{PatternCost, Quantiles, pattern_cost};
pub use patterns::{PatternCheck, check_pattern};
use tally::Tally;
use walks::{Unreadable, walk, walk_documents};

/// Checks all collections. With `repair` it corrects missing and surplus index entries, type bits,
/// counters and facts about indexes. A document that is not valid BSON is reported, kept, and left
/// out of the indexes. Nothing else may use the store meanwhile.
pub fn check(store: &Arc<Store>, repair: bool) -> Result<Report> {
    let mut report = Report::default();
    if repair && store.logs_changes() {
        // Records may be missing, and what is repaired is not logged.
        store.set_logs_changes(false);
        discard(store.engine())?;
    }
    let catalog = store.catalog();
    let mut collections: Vec<_> = catalog.collections().cloned().collect();
    collections.sort_by(|a, b| a.namespace.cmp(&b.namespace));
    check_numbers(&collections, &mut report);
    let kind = if repair { Repair::All } else { Repair::Nothing };
    let interrupt = Interrupt::new();
    for collection in &collections {
        let options = CheckOptions { repair: kind, ..CheckOptions::default() };
        let found = check_collection(store, collection, options, &interrupt)?;
        report.collections += 1;
        report.documents += found.documents;
        report.entries += found.entries.iter().map(|(_, entries)| entries).sum::<u64>();
        report.findings.extend(found.findings);
    }
    strays::check(store, &collections, repair, &mut report)?;
    jobs::check(store, repair, &mut report)?;
    groups::check(store, repair, &mut report)?;
    Ok(report)
}

/// Options for the check of one collection.
#[derive(Debug, Clone, Copy, Default)]
pub struct CheckOptions {
    /// What the check repairs.
    pub repair: Repair,
    /// How strict the check of BSON is.
    pub conformance: Conformance,
    /// True to count the documents that do not comply with the collection's validator.
    pub validation: bool,
}

/// Checks one collection on one snapshot, while other clients read and write. During a repair no
/// other client may write to it.
///
/// # Errors
/// The errors of reading: 239 SnapshotTooOld if the check takes longer than a snapshot may be kept;
/// the error of an interrupt.
pub fn check_collection(
    store: &Arc<Store>,
    collection: &Collection,
    options: CheckOptions,
    interrupt: &Arc<Interrupt>,
) -> Result<CollectionCheck> {
    let found = CollectionCheck::default();
    let CheckOptions { repair, conformance, validation } = options;
    let validator = validator(collection).filter(|_| validation);
    let mut checker =
        Checker { store, collection, repair, conformance, validator, interrupt, found };
    checker.check_low_water()?;
    checker.run()?;
    Ok(checker.found)
}

/// Returns the validator of a collection, unless it applies to no document.
fn validator(collection: &Collection) -> Option<&Validator> {
    let validation = collection.options.validation();
    let applies = validation.level() != ValidationLevel::Off;
    validation.validator().map(|validator| &**validator).filter(|_| applies)
}

/// How many snapshots are taken to find one whose counters can be compared.
const STILL_ATTEMPTS: usize = 20;

struct Checker<'s> {
    store: &'s Arc<Store>,
    collection: &'s Collection,
    repair: Repair,
    conformance: Conformance,
    validator: Option<&'s Validator>,
    interrupt: &'s Arc<Interrupt>,
    found: CollectionCheck,
}

/// The sums over the documents of a collection.
#[derive(Default)]
struct Documents {
    count: u64,
    bytes: u64,
    /// Records that are not valid documents.
    bad: HashSet<RecordId>,
    unreadable: Unreadable,
    /// The expected entries of each index.
    demands: Vec<Demand>,
}

/// The expected entries of an index, according to the documents.
struct Demand {
    facts: FactsBuf,
    entries: Tally,
}

impl Checker<'_> {
    /// First compares the entries of an index as a whole, at the price of reading all once. Only if
    /// that differs from the expected entries, looks up the entries one by one.
    fn run(&mut self) -> Result<()> {
        let (snapshot, counts) = self.still_snapshot()?;
        let documents = self.read_documents(&*snapshot)?;
        let buckets = self.check_buckets(&*snapshot)?;
        let (count, bytes) = (documents.count + buckets.points, documents.bytes + buckets.bytes);
        self.found.documents = count;
        let mut doubts = self.compare(&*snapshot, &documents.demands)?;
        let repairs = self.look_up(&*snapshot, &mut doubts, &documents)?;
        drop(snapshot);
        self.tell_lost(&doubts);
        self.write(repairs)?;
        self.check_facts(&documents.demands)?;
        if self.repair != Repair::Nothing && documents.unreadable.is_empty() {
            self.narrow_facts(&documents.demands)?;
        }
        let is_readable = documents.unreadable.is_empty() && !buckets.is_unreadable;
        match counts.filter(|_| is_readable) {
            Some(counts) => self.check_counts(counts, count, bytes),
            None => Ok(()),
        }
    }

    /// Returns a snapshot with the counters that belong to it; no counters if a commit happened
    /// meanwhile.
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

    fn read_documents(&mut self, snapshot: &dyn Snapshot) -> Result<Documents> {
        let demand = |index: &Arc<Index>| Demand {
            facts: FactsBuf { paths: vec![0; index.keys.fields().len()], ..FactsBuf::default() },
            entries: Tally::default(),
        };
        let demands = self.collection.indexes.iter().map(demand).collect();
        let mut documents = Documents { demands, ..Documents::default() };
        let mut keys = EntryKeys::default();
        let (collection, interrupt) = (self.collection, self.interrupt);
        let unreadable = walk_documents(snapshot, collection, interrupt, |id, value| {
            documents.count += 1;
            documents.bytes += (value.len() as u64).saturating_sub(1);
            let doc = StoredDoc::decode(value.clone()).ok();
            match doc.filter(|doc| validate(doc.as_bytes(), &Limits::WIRE).is_ok()) {
                Some(doc) => self.read_document(id, &doc, &mut documents.demands, &mut keys),
                None => {
                    documents.bad.insert(id);
                    let problem = format!("record {id} is not a valid document");
                    self.find(problem, Problem::InvalidDocument(id), false);
                    Ok(())
                }
            }
        })?;
        for stretch in unreadable.stretches() {
            let to = match stretch.end() {
                &u64::MAX => "the last".to_owned(),
                id => id.to_string(),
            };
            let problem = format!("records {} to {to} cannot be read", stretch.start());
            self.find(problem, Problem::Other, false);
        }
        documents.unreadable = unreadable;
        Ok(documents)
    }

    fn read_document(
        &mut self,
        id: RecordId,
        doc: &StoredDoc,
        demands: &mut [Demand],
        keys: &mut EntryKeys,
    ) -> Result<()> {
        if doc.get("_id").is_none() {
            self.find(format!("record {id} has no _id"), Problem::Other, false);
        }
        if let Some(violation) = self.conformance.violation(doc.as_doc()) {
            let found = &mut self.found;
            found.violations += 1;
            found.first_violation.get_or_insert_with(|| format!("record {id}: {violation}"));
        }
        self.validate(id, doc)?;
        let collection = self.collection;
        for (index, demand) in collection.indexes.iter().zip(demands) {
            if index.state == IndexState::WriteOnly {
                continue;
            }
            let arena = Arena::new();
            match index.keys.generate(doc.as_doc(), &arena) {
                Ok(generated) => {
                    keys.encode(index, &generated)?;
                    demand.facts.merge(&Facts {
                        paths: &generated.multikey,
                        long_keys: keys.has_long(),
                        arrays: &generated.arrays,
                    });
                    demand.entries.add_document(keys, id);
                }
                Err(error) => {
                    let name = &index.name;
                    let problem = format!("record {id} has no keys in {name}: {}", error.message());
                    self.find(problem, Problem::Index(name.clone()), false);
                }
            }
        }
        Ok(())
    }

    /// Counts a document that does not comply with the validator.
    fn validate(&mut self, id: RecordId, doc: &StoredDoc) -> Result<()> {
        let Some(validator) = self.validator else { return Ok(()) };
        let now = self.store.write_time(self.store.clock().now_ms());
        if !validator.accepts(doc.as_doc(), now, current_interrupt().as_ref())? {
            self.found.noncompliant += 1;
            self.found.first_noncompliant.get_or_insert(id);
        }
        Ok(())
    }

    /// Returns the indexes whose entries differ from the expected ones.
    fn compare(&mut self, snapshot: &dyn Snapshot, demands: &[Demand]) -> Result<Vec<Doubt>> {
        let mut doubts = Vec::new();
        for (index, demand) in self.collection.indexes.iter().zip(demands) {
            let mut held = Tally::default();
            let (start, end) = entry_range(index);
            let read = walk(snapshot, Space::Idx, start, &end, self.interrupt, |key, value| {
                held.add_entry(index.unique, key, value);
                Ok(())
            });
            if let Err(error) = read {
                let name = index.name.clone();
                self.skip_damage(error, format!("{name} cannot be read"), Problem::Index(name))?;
                continue;
            }
            self.found.entries.push((index.name.clone(), held.count()));
            // An index that is being built is not yet complete.
            if index.state == IndexState::Ready && held != demand.entries {
                let lost = (held.count() == 0).then_some(0);
                doubts.push(Doubt { index: Arc::clone(index), lost });
            }
        }
        Ok(doubts)
    }

    /// Reports data that the engine cannot read; returns any other error.
    fn skip_damage(&mut self, error: Error, problem: String, what: Problem) -> Result<()> {
        if error.code() != ErrorCode::DataCorruptionDetected {
            return Err(error);
        }
        self.find(problem, what, false);
        Ok(())
    }

    /// Reports an index without any entries as one finding, not one for each missing entry.
    fn tell_lost(&mut self, doubts: &[Doubt]) {
        for Doubt { index, lost } in doubts {
            if let Some(missing @ 1..) = lost {
                let problem = format!("{} has lost all its {missing} entries", index.name);
                let repaired = self.repair == Repair::All;
                self.find(problem, Problem::Index(index.name.clone()), repaired);
            }
        }
    }

    fn check_facts(&mut self, demands: &[Demand]) -> Result<()> {
        let collection = self.collection;
        for (index, demand) in collection.indexes.iter().zip(demands) {
            let FactsBuf { paths, long_keys, arrays } = &demand.facts;
            let arrays = arrays.iter().map(String::as_str).collect();
            let facts = Facts { paths, long_keys: *long_keys, arrays: &arrays };
            if index.state == IndexState::WriteOnly || index.multikey.stored_covers(&facts) {
                continue;
            }
            let missing = !index.multikey.covers(&Facts { long_keys: false, ..facts });
            let what = if missing { "multikey paths" } else { "long keys" };
            let problem = format!("{} does not know all its {what}", index.name);
            let repairs = self.repair != Repair::Nothing;
            self.find(problem, Problem::Index(index.name.clone()), repairs);
            if repairs {
                let mut txn = begin(self.store.engine(), Mode::Write).map_err(from_storage)?;
                let grown = crate::multikey::grow(&mut txn, index, &facts)?;
                txn.commit(CommitOptions::synced()).map_err(from_storage)?;
                grown.iter().for_each(crate::multikey::GrownFacts::committed);
            }
        }
        Ok(())
    }

    /// Removes facts about index entries that no document needs any more, such as multikey paths.
    fn narrow_facts(&mut self, demands: &[Demand]) -> Result<()> {
        let collection = self.collection;
        let wide = collection.indexes.iter().zip(demands).filter(|(index, demand)| {
            index.state == IndexState::Ready && index.multikey.exceeds(&demand.facts)
        });
        let facts: Vec<_> =
            wide.clone().map(|(index, demand)| (index.id, demand.facts.clone())).collect();
        if facts.is_empty() {
            return Ok(());
        }
        self.store.narrow_facts(&collection.namespace, collection.id, &facts)?;
        self.found.narrowed.extend(wide.map(|(index, _)| index.name.clone()));
        Ok(())
    }

    fn check_counts(&mut self, counts: Counts, documents: u64, bytes: u64) -> Result<()> {
        if (counts.documents, counts.bytes) == (documents, bytes) {
            return Ok(());
        }
        let lost = match counts.documents.saturating_sub(documents) {
            0 => String::new(),
            lost => format!("{lost} documents are lost: "),
        };
        let problem = format!(
            "{lost}counters say {} documents of {} bytes, there are {documents} of {bytes}",
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

    fn find(&mut self, problem: String, what: Problem, repaired: bool) {
        let place = self.collection.namespace.to_string();
        self.found.findings.push(Finding { place, problem, what, repaired });
    }
}

/// Checks that no number is used twice.
fn check_numbers(collections: &[Arc<Collection>], report: &mut Report) {
    let mut seen = HashSet::new();
    for collection in collections {
        let indexes = collection.indexes.iter().map(|index| index.id.0);
        let buckets = collection.buckets.map(|buckets| buckets.0);
        for number in indexes.chain([collection.id.0]).chain(buckets) {
            if !seen.insert(number) {
                report.findings.push(Finding {
                    place: collection.namespace.to_string(),
                    problem: format!("number {number} is in use twice"),
                    what: Problem::Other,
                    repaired: false,
                });
            }
        }
        if collection.id_index().is_none() && !collection.is_time_series() {
            report.findings.push(Finding {
                place: collection.namespace.to_string(),
                problem: "there is no _id index".to_owned(),
                what: Problem::Other,
                repaired: false,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use quire_catalog::{IndexSpec, Namespace};
    use quire_document::{DocBuf, doc};
    use quire_storage::{Page, ScanRequest, Txn, open_memory};

    use super::*;
    use crate::entry::index_range;
    use crate::{CreateIndexes, StoreOptions, prepare_insert};

    fn store() -> Arc<Store> {
        let options = StoreOptions { random_seed: 7, ..StoreOptions::default() };
        Store::open(open_memory().unwrap(), options).unwrap()
    }

    /// Returns a collection with indexes of all kinds.
    fn collection(store: &Arc<Store>) -> Arc<Collection> {
        let namespace = Namespace::parse("d.t").unwrap();
        let specs: [DocBuf; 6] = [
            doc! { "key": { "a": 1 }, "name": "plain" },
            doc! { "key": { "u": -1 }, "name": "unique", "unique": true },
            doc! { "key": { "tags": 1, "b.c": -1 }, "name": "multikey" },
            doc! { "key": { "rare": 1 }, "name": "sparse", "sparse": true },
            doc! { "key": { "a": 1 }, "name": "partial",
            "partialFilterExpression": { "a": { "$gt": 1 } } },
            doc! { "key": { "text": 1 }, "name": "long" },
        ];
        let specs = specs.iter().map(|spec| IndexSpec::parse(spec.as_doc(), false).unwrap());
        let request = CreateIndexes { namespace: namespace.clone(), specs: specs.collect() };
        let interrupt = Interrupt::new();
        store.create_indexes(&request, &interrupt, &CommitOptions::buffered()).unwrap();
        let collection = store.catalog().lookup(&namespace).unwrap().clone();
        for n in 0..20 {
            let text = "Long".repeat(if n == 3 { 500 } else { 1 });
            let mut doc = doc! { "_id": n, "a": (f64::from(n)), "u": n, "b": { "c": n },
            "tags": [1, 2, n], "text": text.as_str() };
            if n == 7 {
                doc = doc! { "_id": n, "u": n, "rare": 1, "tags": [] };
            }
            let mut buffer = Vec::new();
            let doc = prepare_insert(store, doc.as_doc(), &mut buffer).unwrap();
            let insert = |writer: &mut crate::Writer| writer.insert(&collection, doc);
            store.write(&CommitOptions::buffered(), &interrupt, insert).unwrap();
        }
        store.catalog().lookup(&namespace).unwrap().clone()
    }

    fn doubtful(store: &Arc<Store>, collection: &Collection) -> Vec<String> {
        let found = CollectionCheck::default();
        let CheckOptions { repair, conformance, .. } = CheckOptions::default();
        let interrupt = &Interrupt::new();
        let validator = None;
        let mut checker =
            Checker { store, collection, repair, conformance, validator, interrupt, found };
        let snapshot = store.engine().snapshot().unwrap();
        let documents = checker.read_documents(&*snapshot).unwrap();
        let doubts = checker.compare(&*snapshot, &documents.demands).unwrap();
        doubts.iter().map(|doubt| doubt.index.name.clone()).collect()
    }

    /// Removes the last entry of an index, or replaces its value.
    fn damage(txn: &mut Txn, index: &Index, value: Option<&'static [u8]>) {
        let (start, end) = index_range(index.id);
        let mut page = Page::default();
        txn.scan(&ScanRequest::new(Space::Idx, &start, &end), &mut page).unwrap();
        let (key, _) = page.rows.pop().unwrap();
        match value {
            Some(value) => txn.put(Space::Idx, key, Bytes::from_static(value)).unwrap(),
            None => txn.delete(Space::Idx, key).unwrap(),
        }
    }

    /// Looking up every entry of an intact collection took twenty times as long as reading all
    /// entries.
    #[test]
    fn only_damaged_parts_are_looked_up() {
        let store = store();
        let collection = collection(&store);
        assert_eq!(doubtful(&store, &collection), [""; 0]);
        let mut expected = Vec::new();
        for (index, value) in
            collection.indexes.iter().zip([None, Some(&b"type"[..])].iter().cycle())
        {
            let mut txn = begin(store.engine(), Mode::Write).unwrap();
            damage(&mut txn, index, *value);
            txn.commit(CommitOptions::buffered()).unwrap();
            expected.push(index.name.clone());
            assert_eq!(doubtful(&store, &collection), expected);
        }
    }
}
