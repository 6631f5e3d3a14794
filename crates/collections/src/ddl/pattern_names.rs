//! What a drop, a rename or a replacement of a collection means for patterns. A pattern belongs to the
//! collection that declares it and follows the collection that it reads: a rename takes both along. If
//! the documents that it reads are others at once, it is built anew.

use std::sync::Arc;

use quire_catalog::patterns::{OnDelete, Pattern, PatternKind, PatternState};
use quire_catalog::{Catalog, Collection, Namespace};
use quire_document::Value;
use quire_error::{Error, ErrorCode, Result};
use quire_storage::Direction;

use super::patterns::{Rebuild, add_build, declared_ids, replace};
use super::{drop_groups, next_epoch, put_collection};
use crate::rules::patterns::usable_index;
use crate::{IndexCursor, IndexRange, Store, Writer};

/// What happens to the documents that a name stands for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// They are gone.
    Dropped,
    /// Others take their place.
    Replaced,
}

impl Store {
    /// Follows a drop or a replacement of `before` in `catalog`, the catalog after it: the patterns
    /// that read the name are built anew, and the documents of `quire.patterns` follow.
    ///
    /// # Errors
    /// 20 IllegalOperation if a pattern with `onDelete: "restrict"` forbids the drop.
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
            let Some(owner) = next.lookup(&reader.namespace).cloned() else { continue };
            let Some(pattern) = owner.patterns.named(&reader.pattern.name).cloned() else {
                continue;
            };
            if owner.uuid != reader.owner {
                continue;
            }
            if fate == Fate::Dropped
                && restricts(&pattern)
                && has_references(writer, &owner, &pattern)?
            {
                let text = format!(
                    "cannot drop {}: documents of {} refer to it (pattern '{pattern}', onDelete: 'restrict')",
                    before.namespace, owner.namespace
                );
                return Err(Error::new(ErrorCode::IllegalOperation, text));
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
    /// Those of the engine.
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
        for reader in readers {
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
        if pattern.from().is_some() {
            pattern.state = PatternState::Building;
        }
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

fn restricts(pattern: &Pattern) -> bool {
    matches!(&pattern.kind, PatternKind::Reference(reference)
        if reference.on_delete == OnDelete::Restrict)
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

/// Returns true if a document of the pattern's collection has a reference that is not null.
fn has_references(writer: &Writer, owner: &Collection, pattern: &Pattern) -> Result<bool> {
    let Some((path, true)) = pattern.needed_index() else { return Ok(false) };
    let Some(index) = usable_index(owner, path) else { return Ok(false) };
    let (range, direction) = match index.keys.is_descending(0) {
        true => (IndexRange::new(index, &[], true, &[Value::Null], false), Direction::Forward),
        false => (IndexRange::new(index, &[Value::Null], false, &[], true), Direction::Forward),
    };
    let mut found = Vec::new();
    IndexCursor::new(index, range, direction).next_page(&writer.view(), 1, &mut found)?;
    Ok(!found.is_empty())
}
