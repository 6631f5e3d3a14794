//! Writes of collections with rules: the steps around the record, and the derived writes that
//! follow. The steps are described in `rules`.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use quire_catalog::patterns::Pattern;
use quire_catalog::{Collection, CollectionId, Namespace, Uuid, collection_key};
use quire_document::{Doc, DocBuf};
use quire_error::{Error, ErrorCode};
use quire_mql::update::Update;
use quire_storage::Space;

use super::Writer;
use crate::changes::{Change, UpdatedDoc};
use crate::failure::{Attempt, Failure};
use crate::job::{Job, JobId};
use crate::rules::{Budget, DERIVED, Deferred, Proposal, Rule, RuleTask, RuleWriter, Rules};
use crate::{RecordId, View, WritePolicy};

/// The longest chain of derived writes: a task at this depth may not cause another one. Only rules
/// that write each other's collections in a circle get there.
const DEPTH_MAX: u32 = 16;

/// The most tasks that wait while a statement gathers them, so that a commit exceeds its budget by this
/// number of documents at most.
const GATHERED_MAX: usize = 16;

/// The derived writes of one writer.
#[derive(Default)]
pub(super) struct Derived {
    /// The tasks that wait for the end of the client's write.
    queue: VecDeque<Queued>,
    /// How the tasks of a statement of many documents wait.
    gathering: Gathering,
    /// The pattern that has computed the document that a task writes now.
    by: Option<Arc<Pattern>>,
    /// What the commit may still write.
    budget: Budget,
    /// The depth of the task that runs now; `None` if none runs.
    running: Option<u32>,
    /// True if an earlier commit has deferred the task that this writer runs.
    is_deferred: bool,
    /// The documents that tasks have replaced: replacing one again costs no more of the budget.
    replaced: HashSet<(CollectionId, RecordId)>,
}

/// Whether the tasks of a write run at its end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Gathering {
    /// Tasks run at the end of their write.
    #[default]
    Off,
    /// Tasks wait for those of the statement's other writes.
    On,
    /// Tasks waited, and one was refused.
    Refused,
}

/// A task of a rule in the transaction that caused it.
struct Queued {
    rule: Arc<dyn Rule>,
    collection: Uuid,
    depth: u32,
    task: Box<dyn RuleTask>,
}

impl Derived {
    /// Adds a task, in the place of one with the same key if there is one among the last.
    fn push(&mut self, queued: Queued) {
        let waiting = match queued.task.key() {
            Some(key) => {
                let mut last = self.queue.iter_mut().rev().take(GATHERED_MAX);
                last.find(|waiting| waiting.task.key() == Some(key))
            }
            None => None,
        };
        match waiting {
            Some(waiting) => {
                waiting.depth = waiting.depth.max(queued.depth);
                waiting.task = queued.task;
            }
            None => self.queue.push_back(queued),
        }
    }

    /// Returns true if the tasks in the queue wait for more.
    fn waits(&self) -> bool {
        self.gathering == Gathering::On
            && self.queue.len() < GATHERED_MAX
            && self.queue.iter().all(|queued| queued.task.key().is_some())
    }

    /// Returns true if a task must be left to a later commit.
    fn defers(&self, task: &dyn RuleTask) -> bool {
        let has_waited = self.gathering == Gathering::On && task.key().is_some();
        self.budget.is_spent() && !has_waited
    }
}

impl Writer {
    /// Inserts a document by the rules of its collection.
    pub(super) fn insert_ruled(
        &mut self,
        rules: &Rules,
        collection: &Collection,
        doc: Doc<'_>,
    ) -> Attempt<RecordId> {
        let completed = self.admit(rules, collection, (None, doc), None)?;
        let doc = completed.as_ref().map_or(doc, DocBuf::as_doc);
        self.undone_on_error(|writer| {
            let id = writer.insert_record(collection, doc)?;
            writer.count(collection, 1, doc.len() as i64);
            writer.follow(rules, &Change::Insert { collection, id, doc })?;
            Ok(id)
        })
    }

    /// Replaces a document by the rules of its collection.
    pub(super) fn put_ruled(
        &mut self,
        rules: &Rules,
        collection: &Collection,
        id: RecordId,
        (old, new): (Doc<'_>, Doc<'_>),
        update: Option<&Update>,
    ) -> Attempt<bool> {
        let completed = self.admit(rules, collection, (Some(old), new), update)?;
        if completed.as_ref().is_some_and(|kept| kept.as_bytes() == old.as_bytes()) {
            return Ok(false);
        }
        let new = completed.as_ref().map_or(new, DocBuf::as_doc);
        // The client's operators do not name what the rules have changed.
        let difference = Update::difference();
        let update = match completed {
            Some(_) => update.filter(|update| !update.is_replacement()).map(|_| &difference),
            None => update,
        };
        self.undone_on_error(|writer| {
            writer.put_record(collection, id, (old, new))?;
            writer.count_growth(collection, (old, new));
            let change = UpdatedDoc::change(collection, id, (old, new), update);
            writer.follow(rules, &change)?;
            Ok(true)
        })
    }

    /// Deletes a document by the rules of its collection.
    pub(super) fn delete_ruled(
        &mut self,
        rules: &Rules,
        collection: &Collection,
        id: RecordId,
        old: Doc<'_>,
    ) -> Attempt<()> {
        self.undone_on_error(|writer| {
            writer.delete_record(collection, id, old)?;
            writer.note_deleted(collection)?;
            writer.count(collection, -1, -(old.len() as i64));
            writer.follow(rules, &Change::Delete { collection, id, before: old })
        })
    }

    /// Returns a document that this writer has just written as it is stored: with what the patterns of
    /// its collection have added.
    ///
    /// # Errors
    /// Those of reading.
    pub fn as_stored(
        &self,
        collection: &Collection,
        id: RecordId,
        written: DocBuf,
    ) -> Attempt<DocBuf> {
        if collection.patterns.declared.is_empty() {
            return Ok(written);
        }
        let stored = self.view().get(collection, id)?;
        Ok(stored.map_or(written, |stored| stored.as_doc().to_owned()))
    }

    /// Completes and checks a document before it is stored.
    fn admit(
        &mut self,
        rules: &Rules,
        collection: &Collection,
        (before, after): (Option<Doc<'_>>, Doc<'_>),
        update: Option<&Update>,
    ) -> Attempt<Option<DocBuf>> {
        let store = Arc::clone(&self.store);
        let (policy, now_ms) = (self.policy, self.now_ms());
        let by = self.derived.as_mut().and_then(|derived| derived.by.take());
        let by = by.as_deref();
        let proposal =
            Proposal { store: &store, collection, before, after, update, by, policy, now_ms };
        rules.admit(&proposal, self)
    }

    fn undone_on_error<T>(&mut self, work: impl FnOnce(&mut Self) -> Attempt<T>) -> Attempt<T> {
        let before = self.savepoint();
        let ended = work(self);
        if ended.is_err() {
            self.rollback_to(before);
        }
        ended
    }

    /// Runs the steps after the record of a change is written.
    fn follow(&mut self, rules: &Rules, change: &Change<'_>) -> Attempt<()> {
        rules.place(change, self)?;
        self.tell(|| *change)?;
        self.charge_growth()?;
        let collection = change.collection().map_or(Uuid::default(), |collection| collection.uuid);
        let depth = self.derived.as_ref().and_then(|derived| derived.running);
        let next = depth.map_or(0, |depth| depth + 1);
        for (rule, task) in rules.derive(change, self)? {
            if next >= DEPTH_MAX {
                return Err(too_deep(rule.name()).into());
            }
            let queued = Queued { rule, collection, depth: next, task };
            self.derived.get_or_insert_default().push(queued);
        }
        match &self.derived {
            Some(derived) if derived.running.is_none() && !derived.waits() => self.run_tasks(),
            _ => Ok(()),
        }
    }

    /// Runs `work`, which writes many documents of a collection. A task that several of these writes
    /// cause, as that of a parent with many new children, runs once for all of them. If one is refused,
    /// undoes everything and runs `work` again with each task at the end of its write, so that the
    /// error is that of the document that has caused it.
    ///
    /// # Errors
    /// Those of `work`.
    pub fn gathered<T>(
        &mut self,
        collection: &Collection,
        mut work: impl FnMut(&mut Self) -> Attempt<T>,
    ) -> Attempt<T> {
        if collection.patterns.readers.is_empty() {
            return work(self);
        }
        let before = self.savepoint();
        self.derived.get_or_insert_default().gathering = Gathering::On;
        let ended = work(self).and_then(|done| self.run_tasks().map(|()| done));
        let derived = self.derived.get_or_insert_default();
        derived.queue.clear();
        let was = std::mem::take(&mut derived.gathering);
        if was == Gathering::Refused && !matches!(ended, Err(Failure::Conflict(_))) {
            self.rollback_to(before);
            return work(self);
        }
        ended
    }

    /// Counts a write of a rule against the budget if a task makes it.
    fn spend(&mut self, collection: &Collection, bytes: usize) {
        if let Some(derived) = &mut self.derived
            && derived.running.is_some()
        {
            derived.budget.spend(bytes);
            self.store.note_derived(collection.id);
        }
    }

    /// Runs the queued tasks, and those that they cause.
    fn run_tasks(&mut self) -> Attempt<()> {
        if self.derived.as_ref().is_none_or(|derived| derived.queue.is_empty()) {
            return Ok(());
        }
        let policy = std::mem::replace(&mut self.policy, WritePolicy::Derived);
        let ended = self.run_queue();
        self.policy = policy;
        if let Some(derived) = &mut self.derived {
            derived.running = None;
            derived.queue.clear();
            if ended.is_err() && derived.gathering == Gathering::On {
                derived.gathering = Gathering::Refused;
            }
        }
        ended
    }

    fn run_queue(&mut self) -> Attempt<()> {
        while let Some(derived) = &mut self.derived
            && let Some(Queued { rule, collection, depth, mut task }) = derived.queue.pop_front()
        {
            derived.running = Some(depth);
            let is_left = derived.defers(&*task) || task.run(self)?;
            if is_left {
                let (rule, task) = (rule.name().to_owned(), task.encode());
                self.defer(&Deferred { collection, rule, depth, task })?;
            }
        }
        Ok(())
    }

    /// Returns true if derived writes have used up most of the budget of this commit. Soon they would
    /// be left to a job, so a statement of many documents commits before it goes on.
    pub fn is_budget_low(&self) -> bool {
        self.derived.as_ref().is_some_and(|derived| derived.budget.is_low())
    }

    /// Does a task that an earlier commit deferred, as far as the budget of this commit allows, and
    /// defers the rest again. Does nothing if the collection or its rule is gone.
    ///
    /// # Errors
    /// Those of the rule.
    pub fn run_deferred(&mut self, deferred: &Deferred) -> Attempt<()> {
        let Some(collection) = self.catalog.by_uuid(&deferred.collection).cloned() else {
            return Ok(());
        };
        let rule = Rules::of(&collection).and_then(|rules| rules.named(&deferred.rule));
        let Some(rule) = rule.map(Arc::clone) else { return Ok(()) };
        let (collection, depth) = (collection.uuid, deferred.depth);
        let Some(task) = rule.resume(deferred.task.as_doc())? else { return Ok(()) };
        let queued = Queued { rule, collection, depth, task };
        self.undone_on_error(|writer| {
            let derived = writer.derived.get_or_insert_default();
            derived.is_deferred = true;
            derived.queue.push_back(queued);
            writer.run_tasks()
        })
    }

    /// Leaves a task to a later commit: this commit adds the job that does it.
    fn defer(&mut self, deferred: &Deferred) -> Attempt<()> {
        let name = self.store.new_object_id().to_string();
        let created_ms = i64::try_from(self.now_ms()).unwrap_or(0);
        self.add_job(&Job::new(JobId::new(DERIVED, name), deferred.encode(), created_ms))?;
        Ok(())
    }
}

fn too_deep(rule: &str) -> Error {
    let text = format!("more than {DEPTH_MAX} writes follow from each other by the rule '{rule}'");
    Error::new(ErrorCode::OperationFailed, text)
}

impl RuleWriter for Writer {
    fn view(&self) -> View<'_> {
        Writer::view(self)
    }

    fn collection(&mut self, namespace: &Namespace) -> Option<Arc<Collection>> {
        Writer::collection(self, namespace)
    }

    fn insert(&mut self, collection: &Collection, doc: Doc<'_>) -> Attempt<RecordId> {
        self.spend(collection, doc.len());
        Writer::insert(self, collection, doc)
    }

    fn replace(
        &mut self,
        collection: &Collection,
        id: RecordId,
        (old, new): (Doc<'_>, Doc<'_>),
        by: Option<&Arc<Pattern>>,
    ) -> Attempt<()> {
        let is_first = self.derived.as_mut().is_some_and(|derived| {
            derived.running.is_some() && derived.replaced.insert((collection.id, id))
        });
        if is_first {
            self.spend(collection, new.len());
        }
        self.derived.get_or_insert_default().by = by.cloned();
        let written = Writer::update(self, collection, id, old, new, &Update::difference());
        self.derived.get_or_insert_default().by = None;
        written.map(drop)
    }

    fn delete(&mut self, collection: &Collection, id: RecordId, old: Doc<'_>) -> Attempt<()> {
        self.spend(collection, 0);
        Writer::delete(self, collection, id, old)
    }

    fn move_head(&mut self, collection: &Collection, head: RecordId) -> Attempt<()> {
        self.store_head(collection, head)
    }

    fn put_row(&mut self, key: &[u8], row: Option<DocBuf>) -> Attempt<()> {
        let key = Bytes::copy_from_slice(key);
        match row {
            Some(row) => self.txn.put(Space::Meta, key, row.into_bytes().into())?,
            None => self.txn.delete(Space::Meta, key)?,
        }
        Ok(())
    }

    fn guard_key(&mut self, key: &[u8]) {
        self.txn.guard(Space::Meta, key);
    }

    fn mark_key(&mut self, key: &[u8]) {
        self.txn.mark(Space::Meta, key);
    }

    fn guard_collection(&mut self, collection: &Collection) {
        self.txn.guard(Space::Meta, &collection_key(collection.id));
    }

    fn now_ms(&mut self) -> u64 {
        Writer::now_ms(self)
    }

    fn is_deferred(&self) -> bool {
        self.derived.as_ref().is_some_and(|derived| derived.is_deferred)
    }

    fn is_spent(&self) -> bool {
        self.derived.as_ref().is_some_and(|derived| derived.budget.is_spent())
    }
}
