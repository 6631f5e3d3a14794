//! Extracts the values of all field paths of several expressions from a document, in one pass.
//!
//! `Extractor::attach` assigns a slot to each path of an expression. `extract` reads a document
//! once and fills the slots. With an `EvalContext` that has them (`with_extracted`), evaluation
//! does not search the document for the paths.

use super::field_path::{FieldPath, into};
use super::tree::{Expression, ExpressionNode};
use crate::column::Column;
use crate::context::EvalContext;
use crate::names::NumberedNames;
use quire_document::{Doc, Value};
use quire_error::Result;
use std::collections::HashMap;

/// Paths, and the slots of their values.
#[derive(Debug, Default)]
pub struct Extractor {
    root: Level,
    slots: HashMap<Box<[Box<str>]>, u32>,
}

/// The field names to extract at one level of a document.
#[derive(Debug, Default)]
struct Level {
    names: NumberedNames,
    /// The first name: one alone is found faster than several.
    first: Box<str>,
    branches: Vec<Branch>,
}

/// The slots to fill from the value of a field.
#[derive(Debug, Default)]
struct Branch {
    /// The slot of the value itself.
    slot: Option<u32>,
    /// Paths that continue inside the value: slot and remaining components. Used if the value is an
    /// array.
    deeper: Vec<(u32, Box<[Box<str>]>)>,
    /// The same paths as a tree. Used if the value is a document.
    children: Level,
}

impl Extractor {
    /// Assigns a slot to each path of the expression; equal paths share one. The expression can
    /// still be evaluated without extracted values, but not with those of another extractor.
    pub fn attach(&mut self, expression: &mut Expression) {
        if let ExpressionNode::Path(path) = expression.node_mut() {
            path.slot = Some(self.slot(path));
        }
        expression
            .children_mut(&mut |child| {
                self.attach(child);
                Ok(())
            })
            .unwrap_or(());
    }

    /// Returns the slot of a path, which is a new one if the path has none.
    pub fn slot(&mut self, path: &FieldPath) -> u32 {
        if let Some(known) = self.slots.get(&path.components) {
            return *known;
        }
        let slot = self.slots.len() as u32;
        self.slots.insert(path.components.clone(), slot);
        self.root.add(&path.components, slot);
        slot
    }

    /// Returns the number of slots.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns true if there are no slots.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Returns the values of all slots for a document, in the context's arena.
    pub fn extract<'a>(
        &self,
        doc: Doc<'a>,
        cx: &EvalContext<'a>,
    ) -> Result<&'a [Option<Value<'a>>]> {
        let values = cx.arena.alloc_slice_fill_copy(self.slots.len(), None);
        walk(&self.root, doc, cx, &mut |slot, value| {
            if let Some(place) = values.get_mut(slot as usize) {
                *place = Some(value);
            }
        })?;
        Ok(values)
    }

    /// Returns the top-level field names of all paths.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.root.names.iter()
    }

    /// Returns the names of the slots in their order; `None` if a path leads into a value.
    pub(crate) fn fields(&self) -> Option<Vec<&str>> {
        let mut fields = vec![""; self.slots.len()];
        for (path, slot) in &self.slots {
            let [name] = &**path else { return None };
            *fields.get_mut(*slot as usize)? = name;
        }
        Some(fields)
    }

    /// Returns the values of all slots; `fields` are the values of `names`, in the same order.
    pub(crate) fn extract_from<'a>(
        &self,
        fields: impl Iterator<Item = Option<Value<'a>>>,
        cx: &EvalContext<'a>,
    ) -> Result<&'a [Option<Value<'a>>]> {
        let values = cx.arena.alloc_slice_fill_copy(self.slots.len(), None);
        for (branch, value) in self.root.branches.iter().zip(fields) {
            let Some(value) = value else { continue };
            branch.take(value, cx, &mut |slot, value| {
                if let Some(place) = values.get_mut(slot as usize) {
                    *place = Some(value);
                }
            })?;
        }
        Ok(values)
    }

    /// Returns the context with the values of all slots for `cx.root`, if that is faster than
    /// searching each path.
    pub fn context<'a>(&self, cx: &EvalContext<'a>) -> Result<EvalContext<'a>> {
        if self.len() < 2 {
            return Ok(*cx);
        }
        Ok(cx.with_extracted(self.extract(cx.root, cx)?))
    }

    /// Returns the values of all slots for each document.
    pub(super) fn columns<'a>(
        &self,
        docs: &[Doc<'a>],
        cx: &EvalContext<'a>,
    ) -> Result<Vec<Column<'a>>> {
        let mut columns: Vec<Column<'a>> = (0..self.len()).map(|_| Column::new()).collect();
        for (row, doc) in docs.iter().enumerate() {
            walk(&self.root, *doc, cx, &mut |slot, value| {
                if let Some(column) = columns.get_mut(slot as usize) {
                    column.put(row, value, docs.len());
                }
            })?;
        }
        columns.iter_mut().for_each(|column| column.end(docs.len()));
        Ok(columns)
    }
}

impl Level {
    fn add(&mut self, path: &[Box<str>], slot: u32) {
        let Some((first, rest)) = path.split_first() else { return };
        let at = self.names.number(first);
        if self.branches.is_empty() {
            self.first = first.clone();
        }
        if at == self.branches.len() {
            self.branches.push(Branch::default());
        }
        let branch = &mut self.branches[at];
        if rest.is_empty() {
            branch.slot = Some(slot);
        } else {
            branch.deeper.push((slot, rest.into()));
            branch.children.add(rest, slot);
        }
    }
}

impl Branch {
    /// Fills the slots of a field from its value.
    fn take<'a>(
        &self,
        value: Value<'a>,
        cx: &EvalContext<'a>,
        put: &mut impl FnMut(u32, Value<'a>),
    ) -> Result<()> {
        if let Some(slot) = self.slot {
            put(slot, value);
        }
        match value {
            Value::Document(inner) => walk(&self.children, inner, cx, put)?,
            Value::Array(_) => {
                for (slot, rest) in &self.deeper {
                    if let Some(value) = into(rest, value, cx)? {
                        put(*slot, value);
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// The set of names at a level that were found. If a name is repeated, the first field counts.
struct Seen {
    few: u64,
    many: Vec<u64>,
}

impl Seen {
    fn none_of(names: usize) -> Self {
        let many = if names > 64 { vec![0; names.div_ceil(64) - 1] } else { Vec::new() };
        Seen { few: 0, many }
    }

    /// Adds a name. Returns false if it was added before.
    #[inline]
    fn insert(&mut self, at: usize) -> bool {
        let word = match at / 64 {
            0 => Some(&mut self.few),
            more => self.many.get_mut(more - 1),
        };
        let Some(word) = word else { return false };
        let bit = 1 << (at % 64);
        let new = *word & bit == 0;
        *word |= bit;
        new
    }
}

fn walk<'a>(
    level: &Level,
    doc: Doc<'a>,
    cx: &EvalContext<'a>,
    put: &mut impl FnMut(u32, Value<'a>),
) -> Result<()> {
    let mut left = level.names.len();
    if left == 0 {
        return Ok(());
    }
    if let [only] = &level.branches[..] {
        let Some(element) = doc.find(&level.first) else { return Ok(()) };
        return only.take(element.value(), cx, put);
    }
    let mut seen = Seen::none_of(left);
    for element in doc.iter() {
        let Some(at) = level.names.find(element.key_bytes()) else { continue };
        if !seen.insert(at) {
            continue;
        }
        level.branches[at].take(element.value(), cx, put)?;
        left -= 1;
        if left == 0 {
            break;
        }
    }
    Ok(())
}
