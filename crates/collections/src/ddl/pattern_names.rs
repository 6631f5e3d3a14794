//! What a drop, a rename or a replacement of a collection means for patterns. A pattern belongs to the
//! collection that declares it and follows the collection that it reads: a rename takes both along. If
//! the documents that it reads are others at once, it is built anew.

use std::sync::Arc;

use quire_catalog::patterns::{OnDelete, Pattern, PatternKind, PatternState, Reference};
use quire_catalog::{Catalog, Collection, Namespace};
use quire_document::{Path, Value, ValueBuf};
use quire_error::{Error, ErrorCode, Result};
use quire_storage::Direction;

use super::patterns::{Rebuild, add_build, check, declared_ids, replace};
use super::{drop_groups, next_epoch, put_collection};
use crate::rules::RuleWriter;
use crate::rules::patterns::{any_reference, find_target, references, usable_index};
use crate::{IndexCursor, IndexRange, Store, Writer};

/// The index entries that are read at once.
const PAGE: usize = 128;

/// What happens to the documents that a name stands for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// They are gone.
    Dropped,
    /// Others take their place.
    Replaced,
}

impl Fate {
    fn verb(self) -> &'static str {
        match self {
            Fate::Dropped => "drop",
            Fate::Replaced => "replace",
        }
    }
}

impl Store {
    /// Follows a drop or a replacement of `before` in `catalog`, the catalog after it: the patterns
    /// that read the name are built anew, and the documents of `quire.patterns` follow.
    ///
    /// # Errors
    /// 20 IllegalOperation if documents refer to `before` by a pattern with `onDelete: "restrict"`.
    pub(super) fn patterns_after(
        &self,
        writer: &mut Writer,
        catalog: Catalog,
        next_id: &mut u32,
        (before, fate): (&Collection, Fate),
    ) -> Result<Catalog> {
        if before.patterns.is_empty() {
            return Ok(catalog);
        }
        let mut next = catalog;
        for reader in &before.patterns.readers {
            // The collection that takes the place can be the one that declares the pattern.
            let Some(owner) = next.by_uuid(&reader.owner).cloned() else { continue };
            let Some(pattern) = owner.patterns.named(&reader.pattern.name).cloned() else {
                continue;
            };
            if let Some(reference) = restricting(&pattern) {
                let now = next.lookup(&before.namespace).filter(|_| fate == Fate::Replaced);
                let sides = (&*owner, &*pattern, now.map(|now| &**now));
                if let Some(value) = lost_reference(writer, sides, reference)? {
                    return Err(refused(before, fate, &owner, &pattern, value.as_value()));
                }
            }
            if fate == Fate::Replaced || acts_on_delete(&pattern) {
                next = rebuilt(writer, &next, &owner, &pattern)?;
            }
        }
        let gone = declared_ids(before);
        self.write_declared(writer, &next, next_id, (before.namespace.db(), &gone))
    }

    /// Follows a rename within a database in `catalog`, the catalog after it. `to` has what the name
    /// stood for before, if anything.
    ///
    /// # Errors
    /// 72 InvalidOptions if a pattern cannot read the collection that has the name now, or patterns
    /// depend on each other in a circle by it.
    pub(super) fn patterns_after_rename(
        &self,
        writer: &mut Writer,
        catalog: Catalog,
        next_id: &mut u32,
        (from, to): (&Collection, &Namespace),
    ) -> Result<Catalog> {
        let mut next = catalog;
        for reader in &from.patterns.readers {
            let own = reader.owner == from.uuid;
            let namespace = if own { to } else { &reader.namespace };
            let Some(owner) = next.lookup(namespace).cloned() else { continue };
            let Some(pattern) = owner.patterns.named(&reader.pattern.name).cloned() else {
                continue;
            };
            let mut after = next_epoch(&owner);
            replace(&mut after, pattern.reading(to.collection()));
            put_collection(writer, &after)?;
            next = next.with(Arc::new(after));
        }
        // Patterns that read the name `to` have other documents now.
        let readers = next.lookup(to).map(|now| now.patterns.readers.clone()).unwrap_or_default();
        for reader in &readers {
            let followed = from.patterns.readers.iter().any(|known| {
                known.owner == reader.owner && known.pattern.name == reader.pattern.name
            });
            let Some(owner) = next.lookup(&reader.namespace).cloned().filter(|_| !followed) else {
                continue;
            };
            if let Some(pattern) = owner.patterns.named(&reader.pattern.name).cloned() {
                next = rebuilt(writer, &next, &owner, &pattern)?;
            }
        }
        check(&next, to)?;
        for reader in readers.iter().filter(|reader| reader.owner != from.uuid) {
            check(&next, &reader.namespace)?;
        }
        let gone = declared_ids(from);
        self.write_declared(writer, &next, next_id, (to.db(), &gone))
    }
}

/// Gives a collection that takes the place of `before` its patterns, to be built anew.
pub(super) fn inherit(
    writer: &mut Writer,
    placed: &mut Collection,
    before: &Collection,
) -> Result<()> {
    for pattern in &before.patterns.declared {
        let mut pattern = Pattern::clone(pattern);
        pattern.generation = before.epoch.max(placed.epoch) + 1;
        pattern.state = PatternState::Building;
        placed.epoch = placed.epoch.max(pattern.generation);
        add_build(writer, placed, &pattern, Rebuild::Replaced)?;
        replace(placed, pattern);
    }
    Ok(())
}

/// Refuses what takes a collection with patterns to another database, or changes its kind.
///
/// # Errors
/// 20 IllegalOperation.
pub(super) fn refuse_patterns(collection: &Collection, what: &str) -> Result<()> {
    let patterns = &collection.patterns;
    let names =
        patterns.declared.iter().chain(patterns.readers.iter().map(|reader| &reader.pattern));
    match names.map(|pattern| pattern.name.as_str()).next() {
        None => Ok(()),
        Some(name) => {
            let namespace = &collection.namespace;
            let text = format!("{namespace} cannot be {what}: it belongs to the pattern '{name}'");
            Err(Error::new(ErrorCode::IllegalOperation, text))
        }
    }
}

/// Returns the catalog with a new build of a pattern.
fn rebuilt(
    writer: &mut Writer,
    catalog: &Catalog,
    owner: &Collection,
    pattern: &Pattern,
) -> Result<Catalog> {
    drop_groups(writer, owner, pattern);
    let mut after = next_epoch(owner);
    let mut pattern = pattern.with_state(PatternState::Building);
    pattern.generation = after.epoch;
    add_build(writer, &after, &pattern, Rebuild::Gone)?;
    replace(&mut after, pattern);
    put_collection(writer, &after)?;
    Ok(catalog.with(Arc::new(after)))
}

/// Returns the reference that forbids to remove documents, if the pattern is one.
fn restricting(pattern: &Pattern) -> Option<&Reference> {
    match &pattern.kind {
        PatternKind::Reference(reference) => {
            Some(reference).filter(|reference| reference.on_delete == OnDelete::Restrict)
        }
        PatternKind::Rollup(_) | PatternKind::Counter(_) => None,
    }
}

fn refused(
    before: &Collection,
    fate: Fate,
    owner: &Collection,
    pattern: &Pattern,
    value: Value<'_>,
) -> Error {
    let (verb, name, value) = (fate.verb(), &before.namespace, quire_catalog::debug_value(value));
    let text = format!(
        "cannot {verb} {name}: documents of {} refer to {value} in it (pattern '{pattern}', onDelete: 'restrict')",
        owner.namespace
    );
    Error::new(ErrorCode::IllegalOperation, text)
}

/// Returns true if the documents change when those that the pattern reads are deleted.
fn acts_on_delete(pattern: &Pattern) -> bool {
    match &pattern.kind {
        PatternKind::Reference(reference) => {
            matches!(reference.on_delete, OnDelete::SetNull | OnDelete::Cascade)
        }
        PatternKind::Rollup(_) => true,
        PatternKind::Counter(_) => false,
    }
}

/// Returns a value that documents of the pattern's collection refer to and that no document of `now`
/// has; all values are without `now`. Null is no reference. The commit conflicts with one that adds a
/// reference meanwhile.
fn lost_reference(
    writer: &mut Writer,
    (owner, pattern, now): (&Collection, &Pattern, Option<&Collection>),
    reference: &Reference,
) -> Result<Option<ValueBuf>> {
    let local = Path::new(&reference.local_field);
    let Some(index) = usable_index(owner, &reference.local_field) else { return Ok(None) };
    let range = match index.keys.is_descending(0) {
        true => IndexRange::new(index, &[], true, &[Value::Null], false),
        false => IndexRange::new(index, &[Value::Null], false, &[], true),
    };
    RuleWriter::guard_key(writer, &any_reference(owner.id, pattern));
    let mut cursor = IndexCursor::new(index, range, Direction::Forward);
    let (mut entries, mut known, mut more) = (Vec::new(), None, true);
    while more {
        entries.clear();
        more = cursor.next_page(&writer.view(), PAGE, &mut entries)?;
        for entry in &entries {
            if known.as_ref() == Some(&entry.values) {
                continue;
            }
            known = Some(entry.values.clone());
            let Some(doc) = writer.view().get(owner, entry.record)? else { continue };
            for value in references(doc.as_doc(), local.parts()) {
                let found = match now {
                    Some(now) => find_target(now, &reference.foreign_field, value, &*writer)?,
                    None => None,
                };
                if found.is_none() {
                    return Ok(Some(ValueBuf::new(value)));
                }
            }
        }
    }
    Ok(None)
}
