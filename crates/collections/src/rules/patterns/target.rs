//! The rule of the documents that are referred to: a change of one reaches the documents that refer
//! to it, in the same commit or, if there are many, by a durable job.

use std::sync::Arc;

use quire_catalog::Collection;
use quire_catalog::patterns::{
    CopyMode, OnDelete, Pattern, PatternKind, PatternMeters, Reader, Reference,
};
use quire_document::{Doc, DocBuf, Path, Value, equal};
use quire_error::Result;

use super::copies::{nulled, refers};
use super::declared::Declared;
use super::dependents::Dependents;
use super::reference::{Computed, Fresh, find_target};
use super::task::{Cause, PatternTask};
use super::values::same;
use super::{Upkeep, claim, named, refused};
use crate::Record;
use crate::changes::Change;
use crate::failure::Attempt;
use crate::rules::{Rule, RuleTask, RuleWriter};

/// Returns the rule of a collection that references of the database read.
pub(in crate::rules) fn compile(collection: &Collection) -> Option<Arc<dyn Rule>> {
    let readers = collection.patterns.readers.iter().filter_map(Referred::new);
    let readers: Vec<Referred> = readers.collect();
    (!readers.is_empty()).then(|| Arc::new(Targets(readers)) as Arc<dyn Rule>)
}

/// The references that read one collection.
struct Targets(Vec<Referred>);

/// A reference that reads the collection.
struct Referred {
    reader: Arc<Reader>,
    foreign: Path,
    /// The paths whose change reaches the copies.
    synced: Vec<Path>,
}

impl Referred {
    fn new(reader: &Reader) -> Option<Self> {
        let PatternKind::Reference(reference) = &reader.pattern.kind else { return None };
        let synced = reference.fields.iter().filter(|field| field.mode == CopyMode::Sync);
        Some(Referred {
            reader: Arc::new(reader.clone()),
            foreign: Path::new(&reference.foreign_field),
            synced: synced.map(|field| Path::new(&field.source)).collect(),
        })
    }

    /// Refuses the change of a document that others refer to, if they would refer to nothing then.
    fn restrict(
        &self,
        before: Doc<'_>,
        after: Option<Doc<'_>>,
        writer: &mut dyn RuleWriter,
    ) -> Attempt<()> {
        let PatternKind::Reference(reference) = &self.reader.pattern.kind else { return Ok(()) };
        if reference.on_delete != OnDelete::Restrict {
            return Ok(());
        }
        let Some(value) = self.foreign.get(before) else { return Ok(()) };
        let stays = after.and_then(|after| self.foreign.get(after));
        if stays.is_some_and(|stays| equal(stays, value, None)) {
            return Ok(());
        }
        let task = PatternTask::new(&self.reader, value, Cause::Gone);
        let Some((owner, pattern)) = task.find(writer) else { return Ok(()) };
        claim(writer, owner.id, &pattern, value);
        let work = Work { owner: &owner, pattern: &pattern, reference, value };
        work.restrict(writer)
    }

    /// Adds the tasks of a change of a referred document.
    fn derive(
        &self,
        before: Option<Doc<'_>>,
        after: Option<Doc<'_>>,
        tasks: &mut Vec<Box<dyn RuleTask>>,
    ) {
        let old = before.and_then(|before| self.foreign.get(before));
        let new = after.and_then(|after| self.foreign.get(after));
        let mut add = |value: Value<'_>, cause| {
            tasks.push(Box::new(PatternTask::new(&self.reader, value, cause)));
        };
        if !same(old, new) {
            old.into_iter().for_each(|value| add(value, Cause::Gone));
            new.into_iter().for_each(|value| add(value, Cause::Changed));
        } else if let (Some(value), Some(before), Some(after)) = (new, before, after)
            && self.synced.iter().any(|path| !same(path.get(before), path.get(after)))
        {
            add(value, Cause::Changed);
        }
    }
}

impl Rule for Targets {
    fn name(&self) -> &'static str {
        "referred"
    }

    /// Refuses to remove a document that others refer to. This is no task: it must not be left to a
    /// later commit.
    fn place(&self, change: &Change<'_>, writer: &mut dyn RuleWriter) -> Attempt<()> {
        let (Some(before), after) = (change.before(), change.after()) else { return Ok(()) };
        self.0.iter().try_for_each(|referred| referred.restrict(before, after, writer))
    }

    fn derive(
        &self,
        change: &Change<'_>,
        _: &mut dyn RuleWriter,
        tasks: &mut Vec<Box<dyn RuleTask>>,
    ) -> Attempt<()> {
        let (before, after) = (change.before(), change.after());
        self.0.iter().for_each(|referred| referred.derive(before, after, tasks));
        Ok(())
    }

    fn resume(&self, task: Doc<'_>) -> Result<Option<Box<dyn RuleTask>>> {
        let task = PatternTask::decode(task, self.0.iter().map(|referred| &referred.reader))?;
        Ok(task.map(|task| Box::new(task) as Box<dyn RuleTask>))
    }
}

/// The task of a reference: the documents that refer to the value get their copies, or are let go.
impl RuleTask for PatternTask {
    fn run(&mut self, writer: &mut dyn RuleWriter) -> Attempt<bool> {
        let Some((owner, pattern)) = self.find(writer) else { return Ok(false) };
        let PatternKind::Reference(reference) = &pattern.kind else { return Ok(false) };
        let value = self.value.clone();
        claim(writer, owner.id, &pattern, value.as_value());
        let work = Work { owner: &owner, pattern: &pattern, reference, value: value.as_value() };
        work.run(self, writer)
    }

    fn encode(&self) -> DocBuf {
        PatternTask::encode(self)
    }
}

/// The work of a task.
struct Work<'w> {
    owner: &'w Collection,
    pattern: &'w Arc<Pattern>,
    reference: &'w Reference,
    value: Value<'w>,
}

impl Work<'_> {
    /// Does a task as far as the commit may. Returns true if something is left of it.
    fn run(&self, task: &mut PatternTask, writer: &mut dyn RuleWriter) -> Attempt<bool> {
        let Work { owner, reference, value, .. } = *self;
        let position = task.position.as_deref();
        let mut dependents = Dependents::new(owner, &reference.local_field, value, position)?;
        // Another document can have the value by now.
        let is_gone = task.cause == Cause::Gone && !self.target_exists(writer)?;
        if is_gone && matches!(reference.on_delete, OnDelete::Restrict | OnDelete::Keep) {
            return Ok(false);
        }
        if !writer.is_deferred() && dependents.exceed(writer, reference.max_fanout)? {
            return Ok(true);
        }
        let Some(computed) = Computed::new(self.pattern) else { return Ok(false) };
        let mut fresh = None;
        let local = Path::new(&reference.local_field);
        task.position = dependents.visit(owner, writer, |writer, record| {
            let doc = record.doc.as_doc();
            if !refers(doc, local.parts(), value) {
                return Ok(());
            }
            let changed = match is_gone {
                true => self.let_go(&computed, record, writer),
                false => self.refresh(&computed, &mut fresh, record, writer),
            };
            changed.map_err(|failure| named(failure, owner, self.pattern, doc))
        })?;
        Ok(task.position.is_some())
    }

    fn target_exists(&self, writer: &mut dyn RuleWriter) -> Attempt<bool> {
        let namespace = &self.owner.namespace;
        let from = quire_catalog::Namespace::new(namespace.db(), &self.reference.from)?;
        let Some(from) = writer.collection(&from) else { return Ok(false) };
        let field = &self.reference.foreign_field;
        Ok(find_target(&from, field, self.value, &*writer)?.is_some())
    }

    /// Fails if a document refers to the value.
    fn restrict(&self, writer: &dyn RuleWriter) -> Attempt<()> {
        let Reference { local_field, from, .. } = self.reference;
        let local = Path::new(local_field);
        let dependents = Dependents::new(self.owner, local_field, self.value, None)?;
        let refers_to = |record: &Record| refers(record.doc.as_doc(), local.parts(), self.value);
        let Some(record) = dependents.first(self.owner, writer, refers_to)? else { return Ok(()) };
        let id = record.doc.get("_id").map_or_else(String::new, quire_catalog::debug_value);
        let value = quire_catalog::debug_value(self.value);
        let why = format!(
            "the document {value} of '{from}' cannot be removed: the document with _id {id} refers to it"
        );
        Err(refused(self.owner, self.pattern, local_field, &why).into())
    }

    /// Computes the copies of a document anew: those of the value, or all of them if the collection
    /// refers to itself. `fresh` keeps what the value names from the first document on.
    fn refresh(
        &self,
        computed: &Computed,
        fresh: &mut Option<Option<Fresh>>,
        record: &Record,
        writer: &mut dyn RuleWriter,
    ) -> Attempt<()> {
        let doc = record.doc.as_doc();
        let fresh = match fresh {
            Some(fresh) => fresh,
            None => fresh.insert(computed.fresh(self.owner, self.value, writer)?),
        };
        let new = match fresh {
            Some(fresh) => computed.refreshed(doc, self.value, fresh)?,
            None => computed.recomputed(self.owner, doc, writer)?,
        };
        let Some(new) = new else { return Ok(()) };
        PatternMeters::add(&self.pattern.meters.derived, 1);
        writer.replace(self.owner, record.id, (doc, new.as_doc()), Some(self.pattern))
    }

    /// Does what the pattern says about a document that refers to a deleted one.
    fn let_go(
        &self,
        computed: &Computed,
        record: &Record,
        writer: &mut dyn RuleWriter,
    ) -> Attempt<()> {
        let doc = record.doc.as_doc();
        PatternMeters::add(&self.pattern.meters.derived, 1);
        if self.reference.on_delete == OnDelete::Cascade {
            return writer.delete(self.owner, record.id, doc);
        }
        let local = Path::new(&self.reference.local_field);
        let new = nulled(doc, local.parts(), self.value);
        let completed = computed.recomputed(self.owner, new.as_doc(), writer)?;
        let new = completed.unwrap_or(new);
        writer.replace(self.owner, record.id, (doc, new.as_doc()), Some(self.pattern))
    }
}
