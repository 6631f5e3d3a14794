//! The rules of a collection: what a write does besides storing its document and its index entries.
//!
//! A rule is one file of this folder and one row of [`KINDS`]. The writer (`write.rs`) runs the
//! rules of a collection in the transaction of the write, step by step:
//!
//! 1. *complete*: the rule computes fields of the document itself from its other fields.
//! 2. *check*: the rule refuses the document.
//! 3. *place*: the record and its index entries are written; then the rule makes room for them, for
//!    example by deleting the oldest record.
//! 4. *log*: the store's listener gets the change (`changes.rs`).
//! 5. *derive*: the rule queues tasks, which write other documents. The writer runs the tasks before
//!    it returns. Their writes run these five steps too, so a rule of the other collection checks
//!    them. What exceeds the [`Budget`] of the commit becomes a [`Deferred`] task.
//!
//! If a step fails, nothing of the write remains.

mod budget;
mod capped;
mod deferred;
pub(crate) mod patterns;
mod time_series;
mod validation;

use std::sync::Arc;

use quire_catalog::patterns::Pattern;
use quire_catalog::{Collection, Namespace};
use quire_document::{Doc, DocBuf};
use quire_error::Result;
use quire_mql::update::Update;

use crate::changes::Change;
use crate::failure::Attempt;
use crate::{RecordId, Store, View, WritePolicy};

pub use budget::Budget;
pub(crate) use deferred::DERIVED;
pub use deferred::Deferred;

/// Returns the rule that a collection's options ask for, if they do.
type Compile = fn(&Collection) -> Option<Arc<dyn Rule>>;

/// The kinds of rules, in the order in which they run at each step.
const KINDS: &[Compile] = &[
    patterns::compile::<patterns::Reference>,
    patterns::compile::<patterns::Rollup>,
    patterns::compile_target,
    patterns::compile_children,
    patterns::compile::<patterns::Counter>,
    time_series::compile,
    validation::compile,
    capped::compile,
];

/// A rule of one collection, compiled from the collection's options.
pub trait Rule: Send + Sync {
    /// Returns the name of the kind of rule, by which a deferred task finds its rule again.
    fn name(&self) -> &'static str;

    /// Returns the document with the fields that the rule computes; `None` leaves it as it is. Must
    /// keep the `_id`, and must write nothing.
    ///
    /// # Errors
    /// An error refuses the write.
    fn complete(
        &self,
        proposal: &Proposal<'_>,
        writer: &mut dyn RuleWriter,
    ) -> Attempt<Option<DocBuf>> {
        let _ = (proposal, writer);
        Ok(None)
    }

    /// Checks the completed document. `proposal.policy` says for whom it is written.
    ///
    /// # Errors
    /// An error refuses the write.
    fn check(&self, proposal: &Proposal<'_>) -> Result<()> {
        let _ = proposal;
        Ok(())
    }

    /// Makes room after the writer has written the record of `change` and its index entries. May
    /// write other records of the collection.
    ///
    /// # Errors
    /// A failure undoes the write.
    fn place(&self, change: &Change<'_>, writer: &mut dyn RuleWriter) -> Attempt<()> {
        let _ = (change, writer);
        Ok(())
    }

    /// Adds tasks for other documents, which run later in the same transaction, or in a later one.
    /// Writes no documents, but may change its own rows.
    ///
    /// # Errors
    /// A failure undoes the write.
    fn derive(
        &self,
        change: &Change<'_>,
        writer: &mut dyn RuleWriter,
        tasks: &mut Vec<Box<dyn RuleTask>>,
    ) -> Attempt<()> {
        let _ = (change, writer, tasks);
        Ok(())
    }

    /// Returns a task of [`derive`](Self::derive) that an earlier commit has encoded; `None` if there
    /// is nothing to do for it any more.
    ///
    /// # Errors
    /// 301 DataCorruptionDetected for another document.
    fn resume(&self, task: Doc<'_>) -> Result<Option<Box<dyn RuleTask>>> {
        let _ = task;
        Ok(None)
    }
}

/// Work on other documents that follows from a write. It becomes bytes only if it is left to a later
/// commit.
pub trait RuleTask: Send {
    /// Does the task until [`RuleWriter::is_spent`]. Returns true if something is left of it then.
    /// Only one document may be written after the budget is spent.
    ///
    /// # Errors
    /// A failure undoes the write that caused the task.
    fn run(&mut self, writer: &mut dyn RuleWriter) -> Attempt<bool>;

    /// Returns what is left of the task as a document, from which [`Rule::resume`] makes it again.
    fn encode(&self) -> DocBuf;

    /// Returns the key of the one document that the task writes; `None` if it may write several. Of two
    /// tasks with the same key only the later one need run.
    fn key(&self) -> Option<&[u8]> {
        None
    }
}

/// A document that is about to be written.
#[derive(Clone, Copy)]
pub struct Proposal<'p> {
    /// The store of the collection.
    pub store: &'p Store,
    /// The collection of the document.
    pub collection: &'p Collection,
    /// The stored document that the write changes; `None` for an insert.
    pub before: Option<Doc<'p>>,
    /// The document to be stored.
    pub after: Doc<'p>,
    /// The update that has made `after` of `before`; `None` for an insert, and for a write that no
    /// update of a client has caused.
    pub update: Option<&'p Update>,
    /// The pattern of the collection that writes the document, and has computed it; `None` for any
    /// other write.
    pub by: Option<&'p Pattern>,
    /// The origin of the write.
    pub policy: WritePolicy,
    /// The time of the statement in milliseconds since 1970, the value of `$$NOW`.
    pub now_ms: u64,
}

/// What a rule may do in the transaction of the write that it follows: read, and write documents. It
/// cannot commit, roll back or change the catalog.
pub trait RuleWriter {
    /// Returns a view of the transaction with its own writes.
    fn view(&self) -> View<'_>;

    /// Returns the collection with a name, as the transaction sees it.
    fn collection(&mut self, namespace: &Namespace) -> Option<Arc<Collection>>;

    /// Inserts a document, which must have passed `prepare_insert`.
    ///
    /// # Errors
    /// Those of [`Writer::insert`](crate::Writer::insert).
    fn insert(&mut self, collection: &Collection, doc: Doc<'_>) -> Attempt<RecordId>;

    /// Replaces a document by another one with the same `_id`. `change` is the current document
    /// and the new one. `by` is the pattern of the collection that has computed the new one.
    ///
    /// # Errors
    /// Those of [`Writer::replace`](crate::Writer::replace).
    fn replace(
        &mut self,
        collection: &Collection,
        id: RecordId,
        change: (Doc<'_>, Doc<'_>),
        by: Option<&Arc<Pattern>>,
    ) -> Attempt<()>;

    /// Deletes a document. `old` is the current document.
    ///
    /// # Errors
    /// Those of [`Writer::delete`](crate::Writer::delete).
    fn delete(&mut self, collection: &Collection, id: RecordId, old: Doc<'_>) -> Attempt<()>;

    /// Stores the record before which the collection has no documents. Two commits that store it for
    /// one collection conflict.
    ///
    /// # Errors
    /// Those of the engine.
    fn move_head(&mut self, collection: &Collection, head: RecordId) -> Attempt<()>;

    /// Stores a row of the rule's own in the engine's `meta` space, or deletes it. Two commits that
    /// write the same row conflict.
    ///
    /// # Errors
    /// Those of the engine.
    fn put_row(&mut self, key: &[u8], row: Option<DocBuf>) -> Attempt<()>;

    /// Makes the commit fail if a commit that writes or marks the key comes first. The key is one of
    /// the engine's `meta` space and need not have a row.
    fn guard_key(&mut self, key: &[u8]);

    /// Makes commits that guard the key conflict with this one, as if it had written the key.
    fn mark_key(&mut self, key: &[u8]);

    /// Makes the commit fail if the collection is changed, renamed or dropped meanwhile.
    fn guard_collection(&mut self, collection: &Collection);

    /// Returns the time of the statement in milliseconds since 1970.
    fn now_ms(&mut self) -> u64;

    /// Returns true while a task runs that an earlier commit deferred.
    fn is_deferred(&self) -> bool;

    /// Returns true if the commit's budget for derived writes is used up.
    fn is_spent(&self) -> bool;
}

/// A task, and the rule that has queued it.
pub(crate) type RuleWithTask = (Arc<dyn Rule>, Box<dyn RuleTask>);

/// The compiled rules of one collection; at least one.
pub struct Rules {
    rules: Vec<Arc<dyn Rule>>,
    /// How often the step *complete* runs at most: more than once if a pattern reads what another
    /// pattern of the collection writes.
    passes: usize,
}

impl Rules {
    /// Returns these rules, which run in this order at each step; `None` if there is none.
    pub fn new(rules: Vec<Arc<dyn Rule>>) -> Option<Self> {
        (!rules.is_empty()).then_some(Rules { rules, passes: 1 })
    }

    /// Returns the rules of a collection. The first call for a published collection compiles them;
    /// after that a collection without rules costs one comparison.
    #[inline]
    pub fn of(collection: &Collection) -> Option<&Rules> {
        collection.rules.get_or_compile(|| Rules::compile(collection))
    }

    fn compile(collection: &Collection) -> Option<Self> {
        let mut rules =
            Rules::new(KINDS.iter().filter_map(|compile| compile(collection)).collect())?;
        let declared = &collection.patterns.declared;
        if declared.iter().any(|pattern| pattern.is_fed_by(declared)) {
            // Circles are refused, so the longest chain has all patterns.
            rules.passes = declared.len();
        }
        Some(rules)
    }

    /// Returns the rule with a name.
    pub(crate) fn named(&self, name: &str) -> Option<&Arc<dyn Rule>> {
        self.rules.iter().find(|rule| rule.name() == name)
    }

    /// Completes a document and checks the result. Returns the completed document; `None` if it is
    /// the proposed one.
    pub(crate) fn admit(
        &self,
        proposal: &Proposal<'_>,
        writer: &mut dyn RuleWriter,
    ) -> Attempt<Option<DocBuf>> {
        let completed = self.complete(proposal, writer)?;
        let after = completed.as_ref().map_or(proposal.after, DocBuf::as_doc);
        let proposal = Proposal { after, ..*proposal };
        self.rules.iter().try_for_each(|rule| rule.check(&proposal))?;
        Ok(completed)
    }

    fn complete(
        &self,
        proposal: &Proposal<'_>,
        writer: &mut dyn RuleWriter,
    ) -> Attempt<Option<DocBuf>> {
        let mut completed: Option<DocBuf> = None;
        for _ in 0..self.passes {
            let mut is_changed = false;
            for rule in &self.rules {
                let after = completed.as_ref().map_or(proposal.after, DocBuf::as_doc);
                if let Some(next) = rule.complete(&Proposal { after, ..*proposal }, writer)? {
                    (completed, is_changed) = (Some(next), true);
                }
            }
            if !is_changed {
                break;
            }
        }
        Ok(completed)
    }

    /// Runs the step *place* of every rule.
    pub(crate) fn place(&self, change: &Change<'_>, writer: &mut dyn RuleWriter) -> Attempt<()> {
        self.rules.iter().try_for_each(|rule| rule.place(change, writer))
    }

    /// Runs the step *derive* of every rule. Returns the tasks, each with its rule.
    pub(crate) fn derive(
        &self,
        change: &Change<'_>,
        writer: &mut dyn RuleWriter,
    ) -> Attempt<Vec<RuleWithTask>> {
        let (mut all, mut tasks) = (Vec::new(), Vec::new());
        for rule in &self.rules {
            rule.derive(change, writer, &mut tasks)?;
            all.extend(tasks.drain(..).map(|task| (Arc::clone(rule), task)));
        }
        Ok(all)
    }
}
