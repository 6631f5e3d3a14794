//! Consecutive projections that keep the fields that they do not name (`$addFields`, `$set`,
//! `$unset`, an excluding `$project`), applied together. A document is read once for all of them,
//! and fields that none changes are copied together.
//!
//! Each projection applies to the fields that the previous ones left. So results, their order and
//! errors are the same as with one projection after the other.

use super::tree::{Kind, Projection};
use crate::context::EvalContext;
use crate::expression::Dependencies;
use crate::names::NumberedNames;
use quire_document::{Doc, DocWriter, Value};
use quire_error::Result;
use smallvec::SmallVec;
use std::sync::Arc;

/// Consecutive projections, applied together.
#[derive(Debug, Default)]
pub(crate) struct Edits {
    list: Vec<Edit>,
    /// The top-level fields that any projection reads or changes.
    names: NumberedNames,
    /// The facts about each of these fields.
    named: Vec<Named>,
}

/// A projection, with the numbers of the fields that it changes and reads.
#[derive(Debug)]
struct Edit {
    projection: Arc<Projection>,
    changes: Box<[usize]>,
    reads: Box<[usize]>,
}

#[derive(Debug)]
struct Named {
    name: Box<str>,
    /// True if a projection changes the field.
    changed: bool,
}

/// A document between two projections.
#[derive(Default)]
struct Fields<'a> {
    /// The named fields, by their numbers.
    slots: SmallVec<[Slot<'a>; 16]>,
    /// The parts of the document, in order.
    pieces: SmallVec<[Piece<'a>; 16]>,
}

#[derive(Clone, Copy, Default)]
struct Slot<'a> {
    value: Option<Value<'a>>,
    /// The position among the parts, if a projection changes the field.
    place: Option<usize>,
}

enum Piece<'a> {
    /// Elements that are copied.
    Copied(&'a [u8]),
    /// The field with this number, if it is in this position.
    Field(usize),
}

impl Edits {
    /// Adds the next projection. Returns it if it must be applied separately.
    pub(crate) fn push(&mut self, projection: Arc<Projection>) -> Option<Arc<Projection>> {
        if projection.is_identity() {
            return None;
        }
        if !self.accepts(&projection) {
            return Some(projection);
        }
        let changes = projection.root.fields.iter().map(|field| self.number(&field.name, true));
        let changes = changes.collect();
        let reads = projection.extractor.names().map(|name| self.number(name, false)).collect();
        self.list.push(Edit { projection, changes, reads });
        None
    }

    /// Returns true if the projection can be added. Only the first one can read the document as a
    /// whole.
    fn accepts(&self, projection: &Projection) -> bool {
        let mut reads = Dependencies::default();
        for (_, expression) in projection.computed_fields() {
            expression.add_dependencies(&mut reads);
        }
        projection.kind != Kind::Inclusion && (self.list.is_empty() || !reads.whole_document)
    }

    fn number(&mut self, name: &str, changed: bool) -> usize {
        let at = self.names.number(name);
        match self.named.get_mut(at) {
            Some(named) => named.changed |= changed,
            None => self.named.push(Named { name: name.into(), changed }),
        }
        at
    }

    /// Returns the document that the projections make of `cx.root`.
    pub(crate) fn apply<'a>(&'a self, cx: &EvalContext<'a>) -> Result<Doc<'a>> {
        let split = if self.list.len() > 1 { self.split(cx.root) } else { None };
        let Some(mut fields) = split else { return self.one_by_one(cx) };
        for edit in &self.list {
            edit.apply(&mut fields, cx)?;
        }
        cx.document(|writer| {
            self.write(&fields, writer);
            Ok(())
        })
    }

    /// Splits the document into parts. Returns `None` if a field that is changed occurs twice.
    fn split<'a>(&self, doc: Doc<'a>) -> Option<Fields<'a>> {
        let mut fields = Fields::default();
        fields.slots.resize(self.named.len(), Slot::default());
        let run = |from: usize, to: usize| doc.element_bytes().get(from..to).unwrap_or_default();
        let (mut elements, mut begin, mut end) = (doc.iter(), 0, 0);
        while let Some(element) = elements.next() {
            let start = std::mem::replace(&mut end, elements.consumed(doc));
            let Some(at) = self.names.find(element.key_bytes()) else { continue };
            let (Some(slot), Some(named)) = (fields.slots.get_mut(at), self.named.get(at)) else {
                continue;
            };
            match (slot.value, named.changed) {
                (Some(_), true) => return None,
                (Some(_), false) => continue,
                (None, _) => slot.value = Some(element.value()),
            }
            if named.changed {
                fields.pieces.push(Piece::Copied(run(begin, start)));
                slot.place = Some(fields.pieces.len());
                fields.pieces.push(Piece::Field(at));
                begin = end;
            }
        }
        fields.pieces.push(Piece::Copied(run(begin, end)));
        Some(fields)
    }

    fn write(&self, fields: &Fields<'_>, writer: &mut DocWriter<'_>) {
        for (place, piece) in fields.pieces.iter().enumerate() {
            match piece {
                Piece::Copied(elements) => {
                    writer.append_elements(elements);
                }
                Piece::Field(at) => {
                    let here = fields.slots.get(*at).filter(|slot| slot.place == Some(place));
                    if let (Some(slot), Some(named)) = (here, self.named.get(*at)) {
                        writer.append_some(&named.name, slot.value);
                    }
                }
            }
        }
    }

    fn one_by_one<'a>(&'a self, cx: &EvalContext<'a>) -> Result<Doc<'a>> {
        self.list
            .iter()
            .try_fold(cx.root, |doc, edit| edit.projection.transform(&cx.with_root(doc)))
    }
}

impl Edit {
    fn apply<'a>(&'a self, fields: &mut Fields<'a>, cx: &EvalContext<'a>) -> Result<()> {
        let (root, extractor) = (&self.projection.root, &self.projection.extractor);
        let read = self.reads.iter().map(|at| fields.value(*at));
        let run = self.projection.run(cx.with_extracted(extractor.extract_from(read, cx)?));
        // The order of evaluation, and so of errors: the document's fields first, then the
        // projection's order.
        let mut order: SmallVec<[_; 4]> = root.fields.iter().zip(&self.changes).collect();
        order.sort_by_key(|(_, at)| fields.place(**at).unwrap_or(usize::MAX));
        for (field, at) in order {
            fields.set(*at, run.edited(field, fields.value(*at))?);
        }
        if root.computes {
            let changed = self.changes.iter().filter_map(|at| fields.value(*at));
            changed.into_iter().try_for_each(|value| cx.check_field_depth(value))?;
        }
        Ok(())
    }
}

impl<'a> Fields<'a> {
    fn value(&self, at: usize) -> Option<Value<'a>> {
        self.slots.get(at).and_then(|slot| slot.value)
    }

    fn place(&self, at: usize) -> Option<usize> {
        self.slots.get(at).and_then(|slot| slot.place)
    }

    /// Changes a field in its position. A new field is appended.
    fn set(&mut self, at: usize, value: Option<Value<'a>>) {
        let Some(slot) = self.slots.get_mut(at) else { return };
        slot.value = value;
        if value.is_none() {
            slot.place = None;
        } else if slot.place.is_none() {
            slot.place = Some(self.pieces.len());
            self.pieces.push(Piece::Field(at));
        }
    }
}
