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
use super::parent::Computed;
use super::task::{Cause, PatternTask};
use super::{claim, named};
use crate::changes::Change;
use crate::failure::Attempt;
use crate::rules::{Rule, RuleWriter};

/// Returns the rule of a collection that roll-ups of the database read.
pub(in crate::rules) fn compile(collection: &Collection) -> Option<Arc<dyn Rule>> {
    let readers = collection.patterns.readers.iter().filter_map(Read::new);
    let readers: Vec<Read> = readers.collect();
    (!readers.is_empty()).then(|| Arc::new(Children(readers)) as Arc<dyn Rule>)
}

/// The roll-ups that read one collection.
struct Children(Vec<Read>);

/// A roll-up that reads the collection.
struct Read {
    reader: Reader,
    computed: Computed,
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
        tasks: &mut Vec<DocBuf>,
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

    fn run(&self, task: Doc<'_>, writer: &mut dyn RuleWriter) -> Attempt<Option<DocBuf>> {
        let mut task = PatternTask::decode(task)?;
        let Some((owner, pattern)) = task.find(writer) else { return Ok(None) };
        let Some(read) = self.0.iter().find(|read| read.does(&task)) else { return Ok(None) };
        let computed = &read.computed;
        let value = task.value.clone();
        let mut derived: Option<Vec<Option<ValueBuf>>> = None;
        let left = computed.visit_parents(&owner, &task, writer, |writer, record| {
            let values = match &derived {
                Some(values) => values,
                None => derived.insert(computed.values_of(&owner, value.as_value(), writer)?),
            };
            let doc = record.doc.as_doc();
            let Some(new) = computed.with_values(doc, values) else { return Ok(()) };
            PatternMeters::add(&pattern.meters.derived, 1);
            let written = writer.replace(&owner, record.id, doc, new.as_doc());
            written.map_err(|failure| named(failure, &owner, &pattern, doc))
        })?;
        Ok(left.map(|position| {
            task.position = position;
            task.encode()
        }))
    }
}

impl Read {
    fn new(reader: &Reader) -> Option<Self> {
        Some(Read { reader: reader.clone(), computed: Computed::new(&reader.pattern)? })
    }

    /// Returns true if a task is one of this roll-up.
    fn does(&self, task: &PatternTask) -> bool {
        let pattern = &self.reader.pattern;
        self.reader.owner == task.owner
            && pattern.name == task.pattern
            && pattern.generation == task.generation
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
        &self,
        from: CollectionId,
        (before, after): (Option<&Given>, Option<&Given>),
        writer: &mut dyn RuleWriter,
        tasks: &mut Vec<DocBuf>,
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
            self.change_group((from, owner), value.as_value(), (old, new), writer)?;
            tasks.push(task.encode());
        }
        Ok(())
    }

    fn change_group(
        &self,
        (from, owner): (CollectionId, CollectionId),
        value: Value<'_>,
        (old, new): (Option<&Contribution>, Option<&Contribution>),
        writer: &mut dyn RuleWriter,
    ) -> Attempt<()> {
        let pattern = &self.reader.pattern;
        claim(writer, owner, pattern, value);
        let rollup = self.computed.rollup();
        let groups = self.computed.groups(from, owner);
        // Without a row the task computes the group, if the value has a parent.
        let Some(mut group) = groups.read(&writer.view(), value)? else { return Ok(()) };
        group.change(rollup, old, new)?;
        groups.write(writer, value, &group)
    }
}

/// Returns what a child gives to the value with this key.
fn contributed<'g>(given: Option<&'g Given>, key: &[u8]) -> Option<&'g Contribution> {
    given.filter(|given| given.values.contains_key(key)).map(|given| &given.contribution)
}
