//! All field paths of some expressions, taken from a document in one pass.
//!
//! `Extractor::attach` gives each path of an expression a slot; `extract` walks a document once and
//! fills the slots; an `EvalContext` that carries them (`with_extracted`) saves every path its walk.

use super::column::Column;
use super::field_path::{FieldPath, into};
use super::tree::{Expression, ExpressionNode};
use crate::context::EvalContext;
use crate::names::Names;
use quire_document::{Doc, Value};
use quire_error::Result;
use std::collections::HashMap;

/// Paths and the slots of their values.
#[derive(Debug, Default)]
pub struct Extractor {
    root: Level,
    slots: HashMap<Box<[Box<str>]>, u32>,
}

/// The names that are wanted on some level.
#[derive(Debug, Default)]
struct Level {
    names: Names,
    branches: Vec<Branch>,
}

/// What is wanted of a name's value.
#[derive(Debug, Default)]
struct Branch {
    /// The value itself goes here.
    slot: Option<u32>,
    /// Paths that go on inside it: slot and remaining components.
    deeper: Vec<(u32, Box<[Box<str>]>)>,
    /// The same, for a value that is a document.
    children: Level,
}

impl Extractor {
    /// Gives each path of the expression a slot (paths that occur twice share one). Afterwards the
    /// expression still evaluates alike without extracted values, but must not be given those of
    /// another extractor.
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

    /// The slot of a path.
    pub fn slot(&mut self, path: &FieldPath) -> u32 {
        if let Some(known) = self.slots.get(&path.components) {
            return *known;
        }
        let slot = self.slots.len() as u32;
        self.slots.insert(path.components.clone(), slot);
        self.root.add(&path.components, slot);
        slot
    }

    /// How many slots there are.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// True if no path has been attached.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The values of all slots in a document; they live in the context's arena.
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

    /// The top-level fields in which its paths begin.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.root.names.iter()
    }

    /// The values of all slots where `fields` are the values of `names`, in their order.
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

    /// The same context with the values of all slots in `cx.root`, where that saves a walk.
    pub fn context<'a>(&self, cx: &EvalContext<'a>) -> Result<EvalContext<'a>> {
        if self.len() < 2 {
            return Ok(*cx);
        }
        Ok(cx.with_extracted(self.extract(cx.root, cx)?))
    }

    /// The values of all slots in each document.
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
    /// Takes what is wanted of the name's value.
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

/// Which names of a level have been met: the first field of a name counts.
struct Seen {
    few: u64,
    many: Vec<u64>,
}

impl Seen {
    fn none_of(names: usize) -> Self {
        let many = if names > 64 { vec![0; names.div_ceil(64) - 1] } else { Vec::new() };
        Seen { few: 0, many }
    }

    /// False if it had been noted before.
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
