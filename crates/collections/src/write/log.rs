//! The change log of a writer: each change of a document or of the catalog becomes a record that its
//! commit stores. Inserts of consecutive record ids are one record, which refers to the documents;
//! the first change of a document saves it as it was inserted (`log_record`).

use bytes::Bytes;
use quire_catalog::{Catalog, Collection, CollectionId};
use quire_document::{Doc, DocBuf, memory};
use quire_storage::{Snapshot, Space};

use super::Writer;
use crate::RecordId;
use crate::changes::{Change, UpdatedDoc};
use crate::failure::Attempt;
use crate::log_catalog::{self, CatalogLog};
use crate::log_record::{self, Images, Place, describe, is_logged, name_of, saved_key};

/// What a writer keeps for the log between two changes.
#[derive(Default)]
pub(super) struct WriterLog {
    /// True if the changes of this writer are logged.
    is_on: bool,
    /// The last inserts, which have no record yet.
    run: Option<Run>,
    /// The number and the session of the client's transaction.
    transaction: Option<(i64, DocBuf)>,
    /// The database that the statement drops.
    dropped_database: Option<String>,
}

/// Inserts with consecutive record ids.
#[derive(Clone)]
pub(super) struct Run {
    collection: CollectionId,
    /// The encoded name of the collection.
    name: Bytes,
    first: RecordId,
    count: u32,
}

impl WriterLog {
    pub fn new(is_on: bool) -> Self {
        WriterLog { is_on, ..WriterLog::default() }
    }

    /// Returns the inserts without a record, to return to with [`roll_back`](Self::roll_back).
    pub fn mark(&self) -> Option<Run> {
        self.run.clone()
    }

    pub fn roll_back(&mut self, run: Option<Run>) {
        self.run = run;
    }

    pub fn is_on(&self) -> bool {
        self.is_on
    }
}

impl Writer {
    /// Names the client's transaction to which all writes belong. The log shows it with each of
    /// them.
    pub fn set_transaction(&mut self, number: i64, session: DocBuf) {
        self.log.transaction = Some((number, session));
    }

    /// Tells the log that the statement drops a whole database.
    pub(crate) fn note_database_dropped(&mut self, db: &str) {
        self.log.dropped_database = Some(db.to_owned());
    }

    /// Returns true if the documents of a dropped collection stay until the log needs them no more.
    pub(crate) fn keeps_dropped(&self, collection: &Collection) -> bool {
        self.log.is_on && is_logged(collection.namespace.db())
    }

    /// Adds a change of a document to the log.
    pub(super) fn log_change(&mut self, change: &Change<'_>) -> Attempt<()> {
        let collection = match change {
            Change::Insert { collection, .. }
            | Change::Replace { collection, .. }
            | Change::Delete { collection, .. }
            | Change::Update(UpdatedDoc { collection, .. }) => *collection,
            Change::Catalog(_) => return Ok(()),
        };
        // No change stream shows the points of a time-series collection.
        if !is_logged(collection.namespace.db()) || collection.is_time_series() {
            return Ok(());
        }
        let (id, before) = match change {
            Change::Insert { id, .. } => {
                self.log_insert(collection, *id);
                return Ok(());
            }
            Change::Update(updated) => (updated.id, updated.before),
            Change::Replace { id, before, .. } | Change::Delete { id, before, .. } => {
                (*id, *before)
            }
            Change::Catalog(_) => return Ok(()),
        };
        self.end_run();
        let place = Place { id, saved: self.save(collection, id, before)? };
        let name = name_of(collection);
        let at = (self.now_ms(), &name[..]);
        let record = match change {
            Change::Update(updated) => {
                let images = Images::of(collection, before, Some(updated.after));
                // No limit of the request's memory may cut the record.
                let description = memory::unlimited(|| describe(&updated.description()));
                log_record::update(at, place, (&key_of(before), &description), &images)
            }
            Change::Replace { after, .. } => {
                let images = Images::of(collection, before, None);
                log_record::replace(at, place, *after, &images)
            }
            _ => {
                let images = Images::of(collection, before, None);
                log_record::delete(at, place, &key_of(before), &images)
            }
        };
        self.append_record(record);
        Ok(())
    }

    fn log_insert(&mut self, collection: &Collection, id: RecordId) {
        if let Some(run) = &mut self.log.run
            && run.collection == collection.id
            && run.count < u32::MAX
            && run.first.0 + u64::from(run.count) == id.0
        {
            run.count += 1;
            return;
        }
        self.end_run();
        let name = name_of(collection);
        self.log.run = Some(Run { collection: collection.id, name, first: id, count: 1 });
    }

    /// Appends the record of the last inserts. Called before another record and before the commit.
    pub(super) fn end_run(&mut self) {
        if let Some(Run { name, first, count, .. }) = self.log.run.take() {
            let now_ms = self.now_ms();
            self.append_record(log_record::inserts(now_ms, &name, first, count));
        }
    }

    /// Saves a document as it was inserted, unless an earlier change did. Returns true if it was
    /// saved now.
    fn save(&mut self, collection: &Collection, id: RecordId, before: Doc<'_>) -> Attempt<bool> {
        let key = saved_key(collection.id, id);
        if self.txn.get(Space::Log, &key)?.is_some() {
            return Ok(false);
        }
        let value = self.pieces.copy(before.as_bytes());
        self.txn.put_entry(Space::Log, key, value)?;
        Ok(true)
    }

    /// Adds the changes between two catalogs to the log.
    pub(super) fn log_catalog(&mut self, before: &Catalog, after: &Catalog) {
        let dropped_database = self.log.dropped_database.take();
        let changes = CatalogLog { before, after, dropped_database: dropped_database.as_deref() };
        for change in log_catalog::entries(&changes) {
            self.end_run();
            let now_ms = self.now_ms();
            self.append_record(log_record::catalog(now_ms, &change));
        }
    }

    /// Appends a record. The first one of a client's transaction follows that of the transaction.
    fn append_record(&mut self, record: Bytes) {
        let now_ms = self.now_ms();
        if let Some((number, session)) = &self.log.transaction
            && self.txn.log_is_empty()
        {
            let header = log_record::transaction(now_ms, *number, session.as_doc());
            self.txn.append_log(header);
        }
        self.txn.append_log(record);
    }
}

/// Returns `{_id}` of a document.
fn key_of(doc: Doc<'_>) -> DocBuf {
    DocBuf::build(|writer| {
        writer.append_some("_id", doc.get("_id"));
    })
}
