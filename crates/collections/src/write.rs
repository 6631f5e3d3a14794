//! The only code that writes documents and, through `entries`, index entries. `attempts` retries a
//! write after a conflict. Writes of a collection with rules go through `ruled`.

mod attempts;
mod buckets;
mod entries;
mod head;
mod jobs;
mod line;
mod log;
mod pieces;
mod remember;
mod restored;
mod ruled;
mod taken;

use std::sync::Arc;

use quire_catalog::{Catalog, Collection, CollectionId, Namespace, collection_key};
use quire_document::Doc;
use quire_document::memory::{self, Charge};
use quire_error::{Error, ErrorCode, Result};
use quire_mql::update::Update;
use quire_storage::{
    ClusterTime, CommitOptions, Committed, KeyTurn, Mode, Savepoint, Space, Txn, begin_on,
};
use smallvec::SmallVec;

use crate::changes::{Change, ChangeLog, UpdatedDoc, changes};
use crate::failure::{Attempt, Failure};
use crate::layout::{doc_key, doc_value};
use crate::multikey::GrownFacts;
use crate::prepare::check_size;
use crate::retry::RetryRow;
use crate::rules::Rules;
use crate::view::Delta;
use crate::{RecordId, Store, View, WritePolicy};
pub(crate) use attempts::Attempts;
pub(crate) use buckets::ClosingPoints;
use entries::Scratch;
use log::{Run, WriterLog};
use pieces::Pieces;
pub use restored::duplicate_bucket_error;
use ruled::Derived;
use taken::Taken;

/// The kind of a writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriterMode {
    /// One statement or one chunk of it: conflicts are detected at the commit.
    Statement,
    /// A client's transaction: conflicts are detected at [`Writer::push`].
    Transaction,
    /// A client's transaction on the state of a time in the recent past.
    TransactionAt(ClusterTime),
}

/// The version and the time of a commit.
pub type CommitOutcome = Committed;

/// Writes of documents in one storage transaction. Dropping it undoes them.
pub struct Writer {
    store: Arc<Store>,
    catalog: Arc<Catalog>,
    txn: Txn,
    policy: WritePolicy,
    counts: SmallVec<[Delta; 2]>,
    taken: SmallVec<[Taken; 2]>,
    grown: Vec<GrownFacts>,
    /// The last collection that was found in the catalog.
    known: Option<CollectionId>,
    scratch: Scratch,
    pieces: Pieces,
    /// The collections that this writer has created; its commit publishes them.
    created: Vec<Arc<Collection>>,
    /// The row that this commit stores for its session.
    retry: Option<RetryRow>,
    /// True if the row is stored even without other writes.
    remembers_alone: bool,
    /// The time of the statement, once something has asked for it.
    now_ms: Option<u64>,
    /// The writes that rules derive; `None` until a rule derives one.
    derived: Option<Box<Derived>>,
    /// The changes for the change log.
    log: WriterLog,
    /// True if the commit adds a job.
    adds_job: bool,
    /// The share of the memory of all requests that the buffered writes hold.
    memory: Charge,
}

/// The bytes by which the writes of a statement may grow before they are charged.
const UNCHARGED_BYTES: usize = 1 << 20;

/// A state to which a writer can roll back.
pub struct WriterSavepoint {
    txn: Savepoint,
    catalog: Arc<Catalog>,
    created: Vec<Arc<Collection>>,
    counts: SmallVec<[Delta; 2]>,
    grown: usize,
    run: Option<Run>,
    /// The bytes and the statements of the session's row.
    retry: Option<(usize, usize)>,
}

/// A state within one write to which an error rolls back.
struct Mark {
    txn: Savepoint,
    grown: usize,
    run: Option<Run>,
}

impl Store {
    /// Begins to write on the latest committed state, or on the state of the time in `mode`.
    ///
    /// # Errors
    /// 239 SnapshotTooOld if the state at that time is no longer kept.
    pub fn writer(self: &Arc<Self>, mode: WriterMode) -> Result<Writer> {
        let (txn, catalog) = match mode {
            WriterMode::Statement => self.begin(Mode::Write)?,
            WriterMode::Transaction => self.begin(Mode::Transaction)?,
            WriterMode::TransactionAt(time) => {
                let (snapshot, catalog) = self.snapshot_at(time)?;
                (begin_on(self.engine(), snapshot, Mode::Transaction), catalog)
            }
        };
        Ok(Writer {
            store: Arc::clone(self),
            catalog,
            txn,
            policy: WritePolicy::Internal,
            counts: SmallVec::new(),
            taken: SmallVec::new(),
            grown: Vec::new(),
            known: None,
            scratch: Scratch::default(),
            pieces: Pieces::new(self.engine().caps().persistent),
            created: Vec::new(),
            retry: None,
            remembers_alone: false,
            now_ms: None,
            derived: None,
            log: WriterLog::new(self.logs_changes()),
            adds_job: false,
            memory: Charge::default(),
        })
    }
}

impl Writer {
    /// Returns a view of the writer's snapshot with its own writes.
    pub fn view(&self) -> View<'_> {
        View::new(&self.store, &self.catalog, &self.txn, &self.counts)
    }

    /// Returns the catalog of the writer's snapshot.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// Returns the store that the writer writes to.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Sets the policy of the writes that follow; the default is `Internal`.
    pub fn set_policy(&mut self, policy: WritePolicy) {
        self.policy = policy;
    }

    /// Returns the bytes that wait for the commit.
    pub fn buffered_bytes(&self) -> usize {
        self.txn.buffered_bytes()
    }

    /// Returns true if the commit would store nothing.
    pub fn is_empty(&self) -> bool {
        self.txn.is_empty() && self.counts.is_empty() && !self.remembers_alone
    }

    /// Returns the time of the statement in milliseconds since 1970: that of the first call, so that
    /// all documents of the statement get the same one.
    pub fn now_ms(&mut self) -> u64 {
        let clock = self.store.clock();
        *self.now_ms.get_or_insert_with(|| clock.now_ms())
    }

    /// Inserts a document, which must have passed `prepare_insert`. On an error nothing of it
    /// remains. Errors: 11000 DuplicateKey, 171 CannotIndexParallelArrays; those of the collection's
    /// rules.
    pub fn insert(&mut self, collection: &Collection, doc: Doc<'_>) -> Attempt<RecordId> {
        self.guard(collection)?;
        if let Some(rules) = Rules::of(collection) {
            return self.insert_ruled(rules, collection, doc);
        }
        let before = self.mark();
        let ended = self.insert_record(collection, doc).and_then(|id| {
            self.tell(|| Change::Insert { collection, id, doc })?;
            self.charge_growth()?;
            Ok(id)
        });
        let id = self.undo_on_error(before, ended)?;
        self.count(collection, 1, doc.len() as i64);
        Ok(id)
    }

    fn insert_record(&mut self, collection: &Collection, doc: Doc<'_>) -> Attempt<RecordId> {
        let id = self.take_record_id(collection)?;
        let key = self.pieces.copy(&doc_key(collection.id, id));
        self.insert_entries(collection, id, doc)?;
        let value = self.pieces.join(doc_value(doc));
        self.txn.put_entry(Space::Doc, key, value)?;
        Ok(id)
    }

    /// Replaces a document by the result of `update`. `old` is the current document. Returns false if
    /// the document stays as it is, because the patterns of the collection have kept all that the update
    /// would change.
    pub fn update(
        &mut self,
        collection: &Collection,
        id: RecordId,
        old: Doc<'_>,
        new: Doc<'_>,
        update: &Update,
    ) -> Attempt<bool> {
        self.put(collection, id, (old, new), Some(update))
    }

    /// Replaces a document by another one with the same `_id`. `old` is the current document.
    pub fn replace(
        &mut self,
        collection: &Collection,
        id: RecordId,
        old: Doc<'_>,
        new: Doc<'_>,
    ) -> Attempt<()> {
        self.put(collection, id, (old, new), None).map(drop)
    }

    fn put(
        &mut self,
        collection: &Collection,
        id: RecordId,
        (old, new): (Doc<'_>, Doc<'_>),
        update: Option<&Update>,
    ) -> Attempt<bool> {
        self.guard(collection)?;
        if let Some(rules) = Rules::of(collection) {
            return self.put_ruled(rules, collection, id, (old, new), update);
        }
        let before = self.mark();
        let ended = self.put_record(collection, id, (old, new)).and_then(|()| {
            self.tell(|| UpdatedDoc::change(collection, id, (old, new), update))?;
            self.charge_growth()
        });
        self.undo_on_error(before, ended)?;
        self.count_growth(collection, (old, new));
        Ok(true)
    }

    fn put_record(
        &mut self,
        collection: &Collection,
        id: RecordId,
        (old, new): (Doc<'_>, Doc<'_>),
    ) -> Attempt<()> {
        check_size(new, "Resulting document after update is larger than 16777216")?;
        let key = self.pieces.copy(&doc_key(collection.id, id));
        self.update_entries(collection, id, old, new)?;
        let value = self.pieces.join(doc_value(new));
        Ok(self.txn.put(Space::Doc, key, value)?)
    }

    fn count_growth(&mut self, collection: &Collection, (old, new): (Doc<'_>, Doc<'_>)) {
        if old.len() != new.len() {
            self.count(collection, 0, new.len() as i64 - old.len() as i64);
        }
    }

    /// Deletes a document. `old` is the current document.
    pub fn delete(&mut self, collection: &Collection, id: RecordId, old: Doc<'_>) -> Attempt<()> {
        self.guard(collection)?;
        if let Some(rules) = Rules::of(collection) {
            return self.delete_ruled(rules, collection, id, old);
        }
        let before = self.mark();
        let ended = self.delete_record(collection, id, old).and_then(|()| {
            self.tell(|| Change::Delete { collection, id, before: old })?;
            self.charge_growth()
        });
        self.undo_on_error(before, ended)?;
        self.note_deleted(collection)?;
        self.count(collection, -1, -(old.len() as i64));
        Ok(())
    }

    fn delete_record(
        &mut self,
        collection: &Collection,
        id: RecordId,
        old: Doc<'_>,
    ) -> Attempt<()> {
        let key = self.pieces.copy(&doc_key(collection.id, id));
        self.delete_entries(collection, id, old)?;
        Ok(self.txn.delete(Space::Doc, key)?)
    }

    fn charge_growth(&mut self) -> Attempt<()> {
        let is_small = self.buffered_bytes() < self.memory.bytes() + UNCHARGED_BYTES;
        if is_small { Ok(()) } else { self.charge() }
    }

    /// Takes the buffered writes from the memory of all requests; 146 ExceededMemoryLimit if it has
    /// less left.
    fn charge(&mut self) -> Attempt<()> {
        let refused = |_| Error::new(ErrorCode::ExceededMemoryLimit, memory::exhausted());
        Ok(self.memory.resize(self.buffered_bytes()).map_err(refused)?)
    }

    /// Returns a savepoint at the current state.
    pub fn savepoint(&self) -> WriterSavepoint {
        WriterSavepoint {
            txn: self.txn.savepoint(),
            catalog: Arc::clone(&self.catalog),
            created: self.created.clone(),
            counts: self.counts.clone(),
            grown: self.grown.len(),
            run: self.log.mark(),
            retry: self.retry.as_ref().map(RetryRow::mark),
        }
    }

    /// Undoes what was written since the savepoint.
    pub fn rollback_to(&mut self, to: WriterSavepoint) {
        self.txn.rollback_to(to.txn);
        self.catalog = to.catalog;
        self.created = to.created;
        self.known = None;
        self.counts = to.counts;
        self.grown.truncate(to.grown);
        self.log.roll_back(to.run);
        if let (Some(row), Some(mark)) = (&mut self.retry, to.retry) {
            row.roll_back(mark);
        }
    }

    /// Lets the commit use a place in the queue of a key that was waited for.
    pub fn set_turn(&mut self, turn: Option<&KeyTurn>) {
        if let Some(turn) = turn {
            self.txn.set_turn(turn);
        }
    }

    /// In a client's transaction: takes locks on everything written since the last push. Fails at
    /// once if another transaction was first.
    pub fn push(&mut self) -> Attempt<()> {
        self.txn.push().map_err(Failure::from)
    }

    /// Commits the writes and returns the version and the time of the commit. On a conflict nothing
    /// was written.
    pub fn commit(mut self, options: CommitOptions) -> Attempt<CommitOutcome> {
        self.end_run();
        for delta in std::mem::take(&mut self.counts) {
            if delta.documents != 0 || delta.bytes != 0 {
                self.txn.add_counts(delta.collection, delta.documents, delta.bytes);
            }
        }
        self.note_ids()?;
        let Writer { store, txn, taken, grown, created, adds_job, .. } = self;
        let ended = match created.is_empty() {
            true => txn.commit(options),
            false => store.commit_created(txn, &created, &options),
        };
        taken.into_iter().for_each(|taken| taken.finish(&ended));
        let committed = ended?;
        grown.iter().for_each(GrownFacts::committed);
        if adds_job {
            store.job_bell().ring();
        }
        Ok(committed)
    }

    /// Adds a change to the change log, and reports it to the store's listener, if there is one.
    fn tell<'c>(&mut self, change: impl FnOnce() -> Change<'c>) -> Attempt<()> {
        let listener = self.store.observers.listener().cloned();
        if listener.is_none() && !self.log.is_on() {
            return Ok(());
        }
        let change = change();
        if self.log.is_on() {
            self.log_change(&change)?;
        }
        if let Some(listener) = listener {
            listener.on_change(&change, &mut ChangeLog::new(&mut self.txn, self.policy))?;
        }
        Ok(())
    }

    fn mark(&self) -> Mark {
        Mark { txn: self.txn.savepoint(), grown: self.grown.len(), run: self.log.mark() }
    }

    fn undo_on_error<T>(&mut self, before: Mark, ended: Attempt<T>) -> Attempt<T> {
        if ended.is_err() {
            self.txn.rollback_to(before.txn);
            self.grown.truncate(before.grown);
            self.log.roll_back(before.run);
        }
        ended
    }

    pub(crate) fn txn_mut(&mut self) -> &mut Txn {
        &mut self.txn
    }

    /// The commit publishes a collection that this writer has made, or changed after making it.
    pub(crate) fn publish_created(&mut self, collection: Arc<Collection>) {
        self.created.retain(|created| created.id != collection.id);
        self.created.push(collection);
    }

    /// Returns true if this writer has made the collection.
    pub(crate) fn has_created(&self, id: CollectionId) -> bool {
        self.created.iter().any(|created| created.id == id)
    }

    /// Returns true if this writer has written documents of the collection.
    pub(crate) fn has_written(&self, id: CollectionId) -> bool {
        self.counts.iter().any(|delta| delta.collection == id.0)
    }

    /// Sets the catalog for the following writes; this writer's commit publishes it.
    pub(crate) fn set_catalog(&mut self, after: Arc<Catalog>) -> Attempt<()> {
        let before = std::mem::replace(&mut self.catalog, after);
        self.known = None;
        if self.log.is_on() {
            let after = Arc::clone(&self.catalog);
            self.log_catalog(&before, &after);
        }
        if self.store.observers.listener().is_none() {
            return Ok(());
        }
        let changes = changes(&before, &self.catalog);
        changes.iter().try_for_each(|change| self.tell(|| Change::Catalog(change)))
    }

    /// Makes the commit fail if the collection changes meanwhile.
    pub(crate) fn guard(&mut self, collection: &Collection) -> Attempt<()> {
        if collection.frozen {
            return Err(Error::new(
                ErrorCode::ConflictingOperationInProgress,
                format!("{} is being copied and takes no writes", collection.namespace),
            )
            .into());
        }
        if self.known != Some(collection.id) {
            self.check_known(collection)?;
            self.known = Some(collection.id);
        }
        self.txn.guard(Space::Meta, &collection_key(collection.id));
        Ok(())
    }

    /// Returns the collection with a name, as this writer sees it.
    pub fn collection(&mut self, namespace: &Namespace) -> Option<Arc<Collection>> {
        let found = self.catalog.lookup(namespace).cloned();
        self.known = found.as_ref().map(|found| found.id);
        found
    }

    /// Refuses a write to a collection that was dropped before the writer began. No conflict would
    /// detect it, and the documents would never be removed.
    fn check_known(&self, collection: &Collection) -> Result<()> {
        let namespace = &collection.namespace;
        if self.catalog.lookup(namespace).is_some_and(|known| known.id == collection.id) {
            return Ok(());
        }
        let what = match self.catalog.by_id(collection.id) {
            Some(renamed) => format!("renamed to {}", renamed.namespace),
            None => "dropped".to_owned(),
        };
        let text = format!("Collection {namespace} was {what} meanwhile");
        Err(Error::new(ErrorCode::NamespaceNotFound, text))
    }

    fn count(&mut self, collection: &Collection, documents: i64, bytes: i64) {
        let number = collection.id.0;
        match self.counts.iter_mut().find(|delta| delta.collection == number) {
            Some(delta) => {
                delta.documents += documents;
                delta.bytes += bytes;
            }
            None => self.counts.push(Delta { collection: number, documents, bytes }),
        }
    }
}
