//! Applies a projection in one pass over the document's bytes, and writes directly into the result.
//!
//! Fields have the document's order. Computed fields that the document does not have follow, in the
//! projection's order. In an exclusion or `$addFields` a computed field that the document has keeps
//! its position.

use super::positional::{Matched, Positional};
use super::tree::{Branch, Entry, Field, Kind, Projection};
use crate::context::EvalContext;
use quire_document::{Array, ArrayWriter, Doc, DocBuf, DocWriter, Element, Value};
use quire_error::{Error, Result};
use smallvec::SmallVec;
use std::ops::Range;

/// The state of one document's projection.
pub(super) struct Run<'r> {
    /// True if fields that are not named are kept.
    keep: bool,
    positional: Option<&'r Positional>,
    matched: Matched,
    cx: EvalContext<'r>,
}

impl Projection {
    /// Appends the projected fields of `doc` to `writer`. `doc` is the root of expressions;
    /// variables and metadata come from `cx`.
    pub fn apply(
        &self,
        doc: Doc<'_>,
        writer: &mut DocWriter<'_>,
        cx: &EvalContext<'_>,
    ) -> Result<()> {
        if self.is_identity() {
            writer.append_all(doc);
            return Ok(());
        }
        let cx = self.extractor.context(&narrow(cx).with_root(doc))?;
        self.run(cx).document(At { branch: &self.root, live: true, slices: true }, doc, writer)
    }

    /// Returns the state for one document, with the paths of its expressions extracted.
    pub(super) fn run<'r>(&'r self, cx: EvalContext<'r>) -> Run<'r> {
        Run {
            keep: self.kind != Kind::Inclusion,
            positional: self.positional.as_ref(),
            matched: Matched::default(),
            cx,
        }
    }

    /// Fails with 15 Overflow if computed fields nest too deep in the result.
    pub fn check(&self, result: Doc<'_>, cx: &EvalContext<'_>) -> Result<()> {
        if self.root.computes { cx.check_depth(result.into()) } else { Ok(()) }
    }

    /// Returns the projected document of `cx.root`, for a stage.
    pub(crate) fn transform<'a>(&self, cx: &EvalContext<'a>) -> Result<Doc<'a>> {
        if self.is_identity() {
            return Ok(cx.root);
        }
        let doc = cx.document(|writer| self.apply(cx.root, writer, cx))?;
        self.check(doc, cx).map(|()| doc)
    }

    /// Returns the projected document.
    pub fn apply_to(&self, doc: Doc<'_>, cx: &EvalContext<'_>) -> Result<DocBuf> {
        let mut bytes = Vec::with_capacity(doc.len());
        cx.limited(|| {
            let mut writer = DocWriter::new(&mut bytes);
            self.apply(doc, &mut writer, cx)?;
            writer.finish();
            Ok(())
        })?;
        let result = DocBuf::from_valid_bytes(bytes);
        self.check(result.as_doc(), cx)?;
        Ok(result)
    }
}

/// Returns the context with a shorter lifetime.
fn narrow<'s>(cx: &EvalContext<'s>) -> EvalContext<'s> {
    *cx
}

/// For each field of a branch, true if it is written.
type Done = SmallVec<[bool; 16]>;

/// A branch of the projection while it is applied.
#[derive(Clone, Copy)]
struct At<'b> {
    branch: &'b Branch,
    /// True on the path of the positional operator, before its array.
    live: bool,
    /// True if `$slice` applies: not to fields of documents in arrays inside of arrays.
    slices: bool,
}

impl<'r> Run<'r> {
    /// Returns the new value of a field with the value `old`, in a projection that keeps other
    /// fields.
    pub(super) fn edited(
        &self,
        field: &'r Field,
        old: Option<Value<'r>>,
    ) -> Result<Option<Value<'r>>> {
        let inner = match &field.entry {
            Entry::Keep(keep) => return Ok(old.filter(|_| *keep)),
            Entry::Computed(expression) => {
                self.cx.pass()?;
                return expression.eval(&self.cx);
            }
            Entry::Branch(inner) => inner,
            Entry::Slice(_) | Entry::ElemMatch(_) => {
                return Err(Error::internal("an operator of find in a stage"));
            }
        };
        let (at, cx) = (At { branch: inner, live: false, slices: true }, &self.cx);
        Ok(match old {
            Some(Value::Document(doc)) => {
                Some(cx.document(|writer| self.document(at, doc, writer))?.into())
            }
            Some(Value::Array(array)) => {
                Some(cx.array(|writer| self.array(at, array, writer))?.into())
            }
            _ if inner.computes => {
                Some(cx.document(|writer| self.computed(inner, &Done::new(), writer))?.into())
            }
            old => old,
        })
    }

    fn document(&self, at: At<'_>, doc: Doc<'_>, writer: &mut DocWriter<'_>) -> Result<()> {
        let branch = at.branch;
        if !branch.computes {
            return self.copied(at, doc, writer);
        }
        let mut done: Done = SmallVec::from_elem(false, branch.fields.len());
        self.walk(branch, doc, writer, |place, element, writer| {
            self.field(at, place, element, writer, &mut done).map(|()| true)
        })?;
        self.computed(branch, &done, writer)
    }

    /// Copies the fields of a branch without computed fields. An inclusion stops after the last
    /// named field.
    fn copied(&self, at: At<'_>, doc: Doc<'_>, writer: &mut DocWriter<'_>) -> Result<()> {
        let mut left = at.branch.fields.len();
        let mut done = Done::new();
        self.walk(at.branch, doc, writer, |place, element, writer| {
            self.field(at, place, element, writer, &mut done)?;
            left = left.saturating_sub(1);
            Ok(left > 0 || self.keep)
        })
    }

    /// Calls `named` for each field that the branch names, while it returns true. Kept fields
    /// between them are copied together.
    fn walk(
        &self,
        branch: &Branch,
        doc: Doc<'_>,
        writer: &mut DocWriter<'_>,
        mut named: impl FnMut(usize, Element<'_>, &mut DocWriter<'_>) -> Result<bool>,
    ) -> Result<()> {
        let copy = |writer: &mut DocWriter<'_>, run: Range<usize>| {
            let run = doc.element_bytes().get(run).filter(|_| self.keep);
            writer.append_elements(run.unwrap_or_default());
        };
        let (mut elements, mut begin, mut end) = (doc.iter(), 0, 0);
        while let Some(element) = elements.next() {
            let start = std::mem::replace(&mut end, elements.consumed(doc));
            let Some(place) = branch.find(element.key_bytes()) else { continue };
            copy(writer, begin..start);
            begin = end;
            if !named(place, element, writer)? {
                return Ok(());
            }
        }
        copy(writer, begin..end);
        Ok(())
    }

    fn field(
        &self,
        at: At<'_>,
        place: usize,
        element: Element<'_>,
        writer: &mut DocWriter<'_>,
        done: &mut Done,
    ) -> Result<()> {
        let Some(field) = at.branch.fields.get(place) else { return Ok(()) };
        if at.live && field.positional && self.picked(field, element, writer)? {
            return Ok(());
        }
        match &field.entry {
            Entry::Keep(false) => {}
            Entry::Keep(true) => {
                writer.append_element(element);
            }
            Entry::Slice(slice) => match element.value() {
                Value::Array(array) if at.slices => {
                    slice.write(array, &mut writer.array(&field.name))
                }
                _ => {
                    writer.append_element(element);
                }
            },
            Entry::Computed(_) | Entry::ElemMatch(_) => {
                // In an inclusion a computed field is written after the copied ones.
                let Some(done) = done.get_mut(place) else { return Ok(()) };
                if self.keep && !std::mem::replace(done, true) {
                    self.compute(field, writer)?;
                }
            }
            Entry::Branch(inner) => {
                if let Some(done) = done.get_mut(place) {
                    *done = true;
                }
                let at = At { branch: inner, live: at.live && field.positional, ..at };
                self.nested(at, element, writer)?;
            }
        }
        Ok(())
    }

    fn nested(&self, at: At<'_>, element: Element<'_>, writer: &mut DocWriter<'_>) -> Result<()> {
        let name = element.key();
        match element.value() {
            Value::Document(doc) => self.document(at, doc, &mut writer.document(name)),
            Value::Array(array) => self.array(at, array, &mut writer.array(name)),
            _ if at.branch.computes => {
                self.computed(at.branch, &Done::new(), &mut writer.document(name))
            }
            _ if self.keep => {
                writer.append_element(element);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn array(&self, at: At<'_>, array: Array<'_>, writer: &mut ArrayWriter<'_>) -> Result<()> {
        // Each element may get all fields that the branch computes.
        let units = u32::try_from(at.branch.fields.len()).unwrap_or(u32::MAX);
        array.iter().try_for_each(|value| {
            self.cx.shared.work(units)?;
            self.element(at, value, writer)
        })
    }

    fn element(&self, at: At<'_>, value: Value<'_>, writer: &mut ArrayWriter<'_>) -> Result<()> {
        match value {
            Value::Document(doc) => self.document(at, doc, &mut writer.document()),
            Value::Array(array) => {
                self.array(At { slices: false, ..at }, array, &mut writer.array())
            }
            _ if at.branch.computes => {
                self.computed(at.branch, &Done::new(), &mut writer.document())
            }
            value if self.keep => {
                writer.push(value);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Writes one element of the first array on the positional operator's path. Returns false if
    /// the value is not an array.
    fn picked(
        &self,
        field: &Field,
        element: Element<'_>,
        writer: &mut DocWriter<'_>,
    ) -> Result<bool> {
        let (Some(positional), Value::Array(array)) = (self.positional, element.value()) else {
            return Ok(false);
        };
        let picked = positional.element(array, self.cx.root, &self.matched, &self.cx)?;
        let mut writer = writer.array(&field.name);
        match &field.entry {
            Entry::Branch(inner) => {
                self.element(At { branch: inner, live: false, slices: true }, picked, &mut writer)?;
            }
            _ => {
                writer.push(picked);
            }
        }
        Ok(true)
    }

    /// Writes the computed fields that the document does not have, in the projection's order.
    fn computed(&self, branch: &Branch, done: &Done, writer: &mut DocWriter<'_>) -> Result<()> {
        for (at, field) in branch.fields.iter().enumerate() {
            if done.get(at).copied().unwrap_or(false) {
                continue;
            }
            match &field.entry {
                Entry::Branch(inner) if inner.computes => {
                    self.computed(inner, &Done::new(), &mut writer.document(&field.name))?;
                }
                _ => self.compute(field, writer)?,
            }
        }
        Ok(())
    }

    fn compute(&self, field: &Field, writer: &mut DocWriter<'_>) -> Result<()> {
        match &field.entry {
            Entry::Computed(expression) => {
                self.cx.pass()?;
                expression.append_to(&field.name, writer, &self.cx)
            }
            Entry::ElemMatch(elem_match) => {
                if let Some(value) = elem_match.find(self.cx.root, &self.cx)? {
                    writer.array(&field.name).push(value);
                }
                Ok(())
            }
            Entry::Keep(_) | Entry::Slice(_) | Entry::Branch(_) => Ok(()),
        }
    }
}
