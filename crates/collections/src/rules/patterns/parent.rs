//! The rule of the collection that declares roll-ups: a document gets its derived values before it
//! is stored. It also finds the parents and the children of a value, and computes what the parents
//! have.

use std::sync::Arc;

use quire_catalog::patterns::{Pattern, PatternKind, Rollup as Definition};
use quire_catalog::{Collection, CollectionId, Namespace};
use quire_document::path::Path;
use quire_document::{Doc, DocBuf, Value, ValueBuf, equal};
use quire_mql::rollup::{ChildGroup, Rollup};
use quire_storage::Direction;

use super::copies::refers;
use super::declared::Declared;
use super::dependents::Dependents;
use super::groups::Groups;
use super::task::PatternTask;
use super::values::same;
use super::{Upkeep, client_wrote, depend, observe, usable_index, values};
use crate::failure::Attempt;
use crate::rules::{Proposal, RuleWriter};
use crate::{CollectionCursor, IndexCursor, IndexRange, Record, WritePolicy};

/// The children that are read at once.
const PAGE: usize = 128;
/// The bytes of the children that are read at once without an index.
const PAGE_BYTES: usize = 1 << 20;

/// A roll-up with its paths.
pub(in crate::rules) struct Computed {
    pattern: Arc<Pattern>,
    rollup: Arc<Rollup>,
    local: Path,
    foreign: Path,
    from: String,
    derived: Vec<Path>,
    /// The stored form of the group without children.
    empty: DocBuf,
}

/// The value of each derived path; `None` for an absent one.
pub(super) type Values = Vec<Option<ValueBuf>>;

impl Declared for Computed {
    const RULE: &'static str = "rollup";

    fn new(pattern: &Arc<Pattern>) -> Option<Self> {
        let PatternKind::Rollup(definition) = &pattern.kind else { return None };
        let Definition { from, local_field, foreign_field, .. } = definition;
        let rollup = definition.compile().ok()?;
        Some(Computed {
            pattern: Arc::clone(pattern),
            local: Path::new(local_field),
            foreign: Path::new(foreign_field),
            from: from.clone(),
            derived: rollup.paths().map(Path::new).collect(),
            empty: ChildGroup::empty(&rollup).save(),
            rollup,
        })
    }

    fn complete(
        &self,
        proposal: &Proposal<'_>,
        writer: &mut dyn RuleWriter,
    ) -> Attempt<Option<DocBuf>> {
        let Proposal { collection, before, after, policy, .. } = *proposal;
        let local = values::at(after, &self.local);
        let is_same = before.is_some_and(|before| same(values::at(before, &self.local), local));
        let is_client = matches!(policy, WritePolicy::Client | WritePolicy::Bypassing);
        if is_same && !is_client || policy == WritePolicy::Internal {
            return Ok(None);
        }
        let values = match before.filter(|_| is_same) {
            Some(before) => self.stored(before),
            None => match local.filter(|local| refers_to(*local)) {
                Some(value) => self.depending_values(collection, value, writer)?,
                None => self.results(&ChildGroup::empty(&self.rollup)),
            },
        };
        let completed = self.with_values(after, &values);
        if is_client
            && completed.is_some()
            && let Some(path) = self.touched(proposal, &values)
        {
            client_wrote(&self.pattern, collection, path)?;
        }
        Ok(completed)
    }
}

impl Upkeep for Computed {
    fn recomputed(
        &self,
        collection: &Collection,
        doc: Doc<'_>,
        writer: &mut dyn RuleWriter,
    ) -> Attempt<Option<DocBuf>> {
        let values = match values::at(doc, &self.local) {
            Some(value) if refers_to(value) => {
                depend(writer, collection.id, &self.pattern, value);
                let from = self.from(collection, writer);
                let group = self.computed_group(from.as_deref(), value, writer)?;
                // What is stored may be damaged; the children are what counts.
                if let Some(from) = &from {
                    let groups = self.groups(from.id, collection.id);
                    groups.write(writer, &groups.key(value), &group)?;
                }
                self.results(&group)
            }
            _ => self.results(&ChildGroup::empty(&self.rollup)),
        };
        Ok(self.with_values(doc, &values))
    }
}

/// Returns true for a value that children can refer to.
fn refers_to(value: Value<'_>) -> bool {
    !value.is_nullish() && value.as_array().is_none()
}

impl Computed {
    /// Returns the compiled accumulators.
    pub fn rollup(&self) -> &Arc<Rollup> {
        &self.rollup
    }

    /// Returns true if a value has at most one parent.
    pub fn has_one_parent(&self) -> bool {
        self.local.as_str() == "_id"
    }

    /// Returns the path of the children's reference.
    pub fn foreign(&self) -> &Path {
        &self.foreign
    }

    /// Returns the document with derived values; `None` if it has them.
    pub fn with_values(&self, doc: Doc<'_>, values: &Values) -> Option<DocBuf> {
        values::with_values(doc, &self.derived, values)
    }

    /// Returns the first derived path that a client removes, or at which its document has a value that
    /// is neither the stored nor the new one.
    fn touched(&self, proposal: &Proposal<'_>, values: &Values) -> Option<&str> {
        let Proposal { before, after, update, .. } = *proposal;
        let is_removed = |path: &Path| update.is_some_and(|update| update.removes(path.as_str()));
        let differs = |path: &Path, value: &Option<ValueBuf>| {
            let found = values::at(after, path);
            let is_new = same(found, value.as_ref().map(ValueBuf::as_value));
            let is_old = before.is_some_and(|before| same(found, values::at(before, path)));
            match found {
                Some(_) => !is_new && !is_old,
                // A number, say, is where a document with the path was.
                None => value.is_some() && (is_removed(path) || values::is_blocked(after, path)),
            }
        };
        let mut paths = self.derived.iter().zip(values);
        paths.find(|(path, value)| differs(path, value)).map(|(path, _)| path.as_str())
    }

    fn stored(&self, doc: Doc<'_>) -> Values {
        let stored = self.derived.iter().map(|path| values::at(doc, path).map(ValueBuf::new));
        stored.collect()
    }

    pub(super) fn results(&self, group: &ChildGroup) -> Values {
        group.results(&self.rollup).into_iter().map(|(_, value)| value).collect()
    }

    /// Returns the stored groups of the children in the collection `from`.
    pub(super) fn groups(&self, from: CollectionId, owner: CollectionId) -> Groups<'_> {
        Groups::new((from, owner), &self.pattern, (&*self.rollup, &self.empty))
    }

    /// Returns the collection of the children, if it exists.
    fn from(&self, owner: &Collection, writer: &mut dyn RuleWriter) -> Option<Arc<Collection>> {
        let namespace = Namespace::new(owner.namespace.db(), &self.from).ok()?;
        let from = writer.collection(&namespace)?;
        writer.guard_collection(&from);
        Some(from)
    }

    /// Returns the values for a document that gets them without a change of a child. The commit
    /// depends on the children.
    fn depending_values(
        &self,
        owner: &Collection,
        value: Value<'_>,
        writer: &mut dyn RuleWriter,
    ) -> Attempt<Values> {
        depend(writer, owner.id, &self.pattern, value);
        let from = self.from(owner, writer);
        let stored = match &from {
            Some(from) => {
                let groups = self.groups(from.id, owner.id);
                groups.read(&writer.view(), &groups.key(value))?
            }
            None => None,
        };
        let group = match stored.filter(|group| !group.is_stale()) {
            Some(group) => group,
            None => self.computed_group(from.as_deref(), value, writer)?,
        };
        Ok(self.results(&group))
    }

    /// Returns the values of a group. What was stale of it is computed from the children and stored.
    pub fn values_of(
        &self,
        owner: &Collection,
        value: Value<'_>,
        writer: &mut dyn RuleWriter,
    ) -> Attempt<Values> {
        let Some(from) = self.from(owner, writer) else {
            return Ok(self.results(&ChildGroup::empty(&self.rollup)));
        };
        let groups = self.groups(from.id, owner.id);
        let key = groups.key(value);
        let stored = groups.read(&writer.view(), &key)?;
        let mut group = stored.unwrap_or_else(|| ChildGroup::stale(&self.rollup));
        // The commit that changes a child has claimed the value. A later one must not commit what
        // it has read before another change: the task of that change may have run already.
        match (writer.is_deferred(), group.is_stale()) {
            (true, true) => depend(writer, owner.id, &self.pattern, value),
            // Children that change at the same time change the row, and have a task of their own.
            (true, false) => observe(writer, owner.id, &self.pattern, value),
            (false, _) => {}
        }
        if group.is_stale() {
            group.refill(self.computed_group(Some(&from), value, writer)?);
            groups.write(writer, &key, &group)?;
        }
        Ok(self.results(&group))
    }

    /// Computes a group from the children.
    fn computed_group(
        &self,
        from: Option<&Collection>,
        value: Value<'_>,
        writer: &dyn RuleWriter,
    ) -> Attempt<ChildGroup> {
        let mut group = ChildGroup::empty(&self.rollup);
        let Some(from) = from else { return Ok(group) };
        let Some(index) = usable_index(from, self.foreign.as_str()) else {
            // Only a dry run comes here: declaring the pattern makes the index.
            return self.scanned_group(from, value, writer);
        };
        let range = IndexRange::equal(index, &[value]);
        let mut cursor = IndexCursor::new(index, range, Direction::Forward);
        let view = writer.view();
        let (mut entries, mut ids, mut docs) = (Vec::new(), Vec::new(), Vec::new());
        loop {
            entries.clear();
            let more = cursor.next_page(&view, PAGE, &mut entries)?;
            ids.clear();
            ids.extend(entries.iter().map(|entry| entry.record));
            docs.clear();
            view.get_many(from, &ids, &mut docs)?;
            for child in docs.iter().flatten() {
                // A long key is cut in the index.
                self.add_child(&mut group, child.as_doc(), value)?;
            }
            if !more {
                return Ok(group);
            }
        }
    }

    /// Computes a group without an index.
    fn scanned_group(
        &self,
        from: &Collection,
        value: Value<'_>,
        writer: &dyn RuleWriter,
    ) -> Attempt<ChildGroup> {
        let mut group = ChildGroup::empty(&self.rollup);
        let mut cursor = CollectionCursor::new(from, Direction::Forward);
        let mut records = Vec::new();
        loop {
            records.clear();
            let more = cursor.next_page(&writer.view(), from, PAGE, PAGE_BYTES, &mut records)?;
            for record in &records {
                self.add_child(&mut group, record.doc.as_doc(), value)?;
            }
            if !more {
                return Ok(group);
            }
        }
    }

    /// Adds a child to a group, if it refers to the value and matches.
    fn add_child(
        &self,
        group: &mut ChildGroup,
        child: Doc<'_>,
        value: Value<'_>,
    ) -> quire_error::Result<()> {
        if refers(child, self.foreign.parts(), value)
            && let Some(child) = self.rollup.contribution(child)?
        {
            group.add(&self.rollup, &child)?;
        }
        Ok(())
    }

    /// Visits the parents of a task's value, as far as the commit may write. Returns the position at
    /// which to go on, if parents are left.
    pub(super) fn visit_parents(
        &self,
        owner: &Collection,
        task: &PatternTask,
        writer: &mut dyn RuleWriter,
        mut visit: impl FnMut(&mut dyn RuleWriter, &Record) -> Attempt<()>,
    ) -> Attempt<Option<Option<Vec<u8>>>> {
        let value = task.value.as_value();
        if self.has_one_parent() {
            if !writer.is_deferred() && self.max_fanout() == 0 {
                return Ok(Some(None));
            }
            if let Some(record) = writer.view().get_by_id(owner, value)? {
                visit(writer, &record)?;
            }
            return Ok(None);
        }
        let position = task.position.as_deref();
        let mut parents = Dependents::new(owner, self.local.as_str(), value, position)?;
        if !writer.is_deferred() && parents.exceed(writer, self.max_fanout())? {
            return Ok(Some(None));
        }
        let left = parents.visit(owner, writer, |writer, record| {
            let found = values::at(record.doc.as_doc(), &self.local);
            match found.is_some_and(|found| equal(found, value, None)) {
                true => visit(writer, record),
                false => Ok(()),
            }
        })?;
        Ok(left.map(Some))
    }

    fn max_fanout(&self) -> u32 {
        match &self.pattern.kind {
            PatternKind::Rollup(definition) => definition.max_fanout,
            PatternKind::Reference(_) | PatternKind::Counter(_) => u32::MAX,
        }
    }
}
