//! Roll-ups (`quire_catalog::patterns::Rollup`): the documents that refer to a document, its
//! children, are aggregated into it. This file has the rule of the children: a change of a child
//! changes the stored accumulators of the values that it refers to at once (`groups`), and queues a
//! task for each of these values, which writes the parents. A task computes what a parent should
//! have from the state that it sees, so it does not matter how often and in which order tasks run.
//!
//! A commit that changes a child claims (pattern, value), and one that gives a parent its values
//! depends on it. So a parent that is inserted beside a child is never without it, and a task that
//! an earlier commit deferred writes nothing that a newer child has changed meanwhile.

use std::collections::BTreeMap;
use std::sync::Arc;

use quire_catalog::patterns::{PatternMeters, Reader};
use quire_catalog::{Collection, CollectionId};
use quire_document::{Doc, DocBuf, Value, ValueBuf};
use quire_error::Result;
use quire_mql::rollup::Contribution;

use super::copies::references;
use super::declared::Declared;
use super::parent::{Computed, Values};
use super::task::{Cause, PatternTask};
use super::{claim, named};
use crate::changes::Change;
use crate::failure::Attempt;
use crate::rules::{Rule, RuleTask, RuleWriter};

/// Returns the rule of a collection that roll-ups of the database read.
pub(in crate::rules) fn compile(collection: &Collection) -> Option<Arc<dyn Rule>> {
    let readers = collection.patterns.readers.iter().filter_map(Read::new);
    let readers: Vec<Arc<Read>> = readers.map(Arc::new).collect();
    (!readers.is_empty()).then(|| Arc::new(Children(readers)) as Arc<dyn Rule>)
}

/// The roll-ups that read one collection.
struct Children(Vec<Arc<Read>>);

/// A roll-up that reads the collection.
struct Read {
    reader: Arc<Reader>,
    computed: Computed,
}

/// The task of giving the parents of a value what its children give.
struct Parents {
    read: Arc<Read>,
    task: PatternTask,
    /// The key of the value's group; empty if an earlier commit has left the task.
    key: Vec<u8>,
    /// The derived values, if the change of the child has determined them.
    values: Option<Values>,
}

/// What a child gives, and to which values.
struct Given {
    /// The values by their keys, in which equal numbers of different types are the same.
    values: BTreeMap<Vec<u8>, ValueBuf>,
    contribution: Contribution,
}

impl Rule for Children {
    fn name(&self) -> &'static str {
        "children"
    }

    fn derive(
        &self,
        change: &Change<'_>,
        writer: &mut dyn RuleWriter,
        tasks: &mut Vec<Box<dyn RuleTask>>,
    ) -> Attempt<()> {
        for read in &self.0 {
            let before = change.before().map_or(Ok(None), |doc| read.given(doc))?;
            let after = change.after().map_or(Ok(None), |doc| read.given(doc))?;
            let Some(children) = change.collection() else { continue };
            let given = (before.as_ref(), after.as_ref());
            read.changed(children.id, given, writer, tasks)?;
        }
        Ok(())
    }

    fn resume(&self, task: Doc<'_>) -> Result<Option<Box<dyn RuleTask>>> {
        let task = PatternTask::decode(task, self.0.iter().map(|read| &read.reader))?;
        let Some(task) = task else { return Ok(None) };
        let read = self.0.iter().find(|read| Arc::ptr_eq(&read.reader, &task.reader));
        Ok(read.map(|read| {
            let read = Arc::clone(read);
            Box::new(Parents { read, task, key: Vec::new(), values: None }) as Box<dyn RuleTask>
        }))
    }
}

impl RuleTask for Parents {
    fn run(&mut self, writer: &mut dyn RuleWriter) -> Attempt<bool> {
        let Some((owner, pattern)) = self.task.find(writer) else { return Ok(false) };
        let (computed, value) = (&self.read.computed, self.task.value.as_value());
        let mut derived = self.values.take();
        let left = computed.visit_parents(&owner, &self.task, writer, |writer, record| {
            let values = match &derived {
                Some(values) => values,
                None => derived.insert(computed.values_of(&owner, value, writer)?),
            };
            let doc = record.doc.as_doc();
            let Some(new) = computed.with_values(doc, values) else { return Ok(()) };
            PatternMeters::add(&pattern.meters.derived, 1);
            let written = writer.replace(&owner, record.id, (doc, new.as_doc()), Some(&pattern));
            written.map_err(|failure| named(failure, &owner, &pattern, doc))
        })?;
        let is_left = left.is_some();
        self.task.position = left.flatten();
        Ok(is_left)
    }

    fn encode(&self) -> DocBuf {
        self.task.encode()
    }

    fn key(&self) -> Option<&[u8]> {
        (!self.key.is_empty() && self.read.computed.has_one_parent()).then_some(&self.key)
    }
}

impl Read {
    fn new(reader: &Reader) -> Option<Self> {
        let computed = Computed::new(&reader.pattern)?;
        Some(Read { reader: Arc::new(reader.clone()), computed })
    }

    /// Returns what a child gives; `None` if it refers to nothing or does not match.
    fn given(&self, child: Doc<'_>) -> Result<Option<Given>> {
        let mut found = Vec::new();
        references(child, self.computed.foreign().parts(), &mut found);
        if found.is_empty() {
            return Ok(None);
        }
        let Some(contribution) = self.computed.rollup().contribution(child)? else {
            return Ok(None);
        };
        let by_key = |value: Value<'_>| (quire_document::key::encode(value), ValueBuf::new(value));
        Ok(Some(Given { values: found.into_iter().map(by_key).collect(), contribution }))
    }

    /// Changes the groups of a child's values, and adds their tasks.
    fn changed(
        self: &Arc<Self>,
        from: CollectionId,
        (before, after): (Option<&Given>, Option<&Given>),
        writer: &mut dyn RuleWriter,
        tasks: &mut Vec<Box<dyn RuleTask>>,
    ) -> Attempt<()> {
        let given = || before.into_iter().chain(after);
        let values: BTreeMap<_, _> = given().flat_map(|given| &given.values).collect();
        let mut owner = None;
        for (key, value) in values {
            let (old, new) = (contributed(before, key), contributed(after, key));
            if old == new {
                continue;
            }
            let task = PatternTask::new(&self.reader, value.as_value(), Cause::Changed);
            if owner.is_none() {
                owner = task.find(writer).map(|(owner, _)| owner.id);
            }
            let Some(owner) = owner else { return Ok(()) };
            let (key, values) =
                self.change_group((from, owner), value.as_value(), (old, new), writer)?;
            tasks.push(Box::new(Parents { read: Arc::clone(self), task, key, values }));
        }
        Ok(())
    }

    /// Changes the group of a value. Returns its key, and the derived values if they are known.
    fn change_group(
        &self,
        (from, owner): (CollectionId, CollectionId),
        value: Value<'_>,
        (old, new): (Option<&Contribution>, Option<&Contribution>),
        writer: &mut dyn RuleWriter,
    ) -> Attempt<(Vec<u8>, Option<Values>)> {
        let pattern = &self.reader.pattern;
        claim(writer, owner, pattern, value);
        let rollup = self.computed.rollup();
        let groups = self.computed.groups(from, owner);
        let key = groups.key(value);
        // Without a row the task computes the group, if the value has a parent.
        let Some(mut group) = groups.read(&writer.view(), &key)? else { return Ok((key, None)) };
        group.change(rollup, old, new)?;
        groups.write(writer, &key, &group)?;
        let values = (!group.is_stale()).then(|| self.computed.results(&group));
        Ok((key, values))
    }
}

/// Returns what a child gives to the value with this key.
fn contributed<'g>(given: Option<&'g Given>, key: &[u8]) -> Option<&'g Contribution> {
    given.filter(|given| given.values.contains_key(key)).map(|given| &given.contribution)
}
