//! All field paths of some expressions, taken from a document in one pass.
//!
//! `Extractor::attach` gives each path of an expression a slot; `extract` walks a document once and
//! fills the slots; an `EvalContext` that carries them (`with_extracted`) saves every path its walk.

use super::column::Column;
use super::field_path::{FieldPath, into};
use super::tree::{Expression, Node};
use crate::context::EvalContext;
use quire_document::{Doc, Value};
use quire_error::Result;

/// Paths and the slots of their values.
#[derive(Debug, Default)]
pub struct Extractor {
    branches: Vec<Branch>,
    paths: Vec<Box<[Box<str>]>>,
}

/// A name on some level, and what is wanted of its value.
#[derive(Debug)]
struct Branch {
    name: Box<[u8]>,
    /// The name's first and last byte: they tell most names apart.
    ends: (u8, u8),
    /// The value itself goes here.
    slot: Option<u32>,
    /// Paths that go on inside it: slot and remaining components.
    deeper: Vec<(u32, Box<[Box<str>]>)>,
    /// The same, for a value that is a document.
    children: Vec<Branch>,
}

impl Extractor {
    /// Gives each path of the expression a slot (paths that occur twice share one). Afterwards the
    /// expression still evaluates alike without extracted values, but must not be given those of
    /// another extractor.
    pub fn attach(&mut self, expression: &mut Expression) {
        if let Node::Path(path) = expression.node_mut() {
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
        if let Some(known) = self.paths.iter().position(|known| *known == path.components) {
            return known as u32;
        }
        let slot = self.paths.len() as u32;
        self.paths.push(path.components.clone());
        add(&mut self.branches, &path.components, slot);
        slot
    }

    /// How many slots there are.
    pub fn len(&self) -> usize {
        self.paths.len()
    }

    /// True if no path has been attached.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// The values of all slots in a document; they live in the context's arena.
    pub fn extract<'a>(
        &self,
        doc: Doc<'a>,
        cx: &EvalContext<'a>,
    ) -> Result<&'a [Option<Value<'a>>]> {
        let values = cx.arena.alloc_slice_fill_copy(self.paths.len(), None);
        walk(&self.branches, doc, cx, &mut |slot, value| {
            if let Some(place) = values.get_mut(slot as usize) {
                *place = Some(value);
            }
        })?;
        Ok(values)
    }

    /// The values of all slots in each document.
    pub(super) fn columns<'a>(
        &self,
        docs: &[Doc<'a>],
        cx: &EvalContext<'a>,
    ) -> Result<Vec<Column<'a>>> {
        let mut columns: Vec<Column<'a>> = self.paths.iter().map(|_| Column::new()).collect();
        for (row, doc) in docs.iter().enumerate() {
            walk(&self.branches, *doc, cx, &mut |slot, value| {
                if let Some(column) = columns.get_mut(slot as usize) {
                    column.put(row, value, docs.len());
                }
            })?;
        }
        columns.iter_mut().for_each(|column| column.end(docs.len()));
        Ok(columns)
    }
}

fn add(branches: &mut Vec<Branch>, path: &[Box<str>], slot: u32) {
    let Some((first, rest)) = path.split_first() else { return };
    let at = match branches.iter().position(|branch| *branch.name == *first.as_bytes()) {
        Some(at) => at,
        None => {
            let name: Box<[u8]> = first.as_bytes().into();
            let ends = ends(&name);
            let (deeper, children) = (Vec::new(), Vec::new());
            branches.push(Branch { name, ends, slot: None, deeper, children });
            branches.len() - 1
        }
    };
    let branch = &mut branches[at];
    if rest.is_empty() {
        branch.slot = Some(slot);
    } else {
        branch.deeper.push((slot, rest.into()));
        add(&mut branch.children, rest, slot);
    }
}

/// Which branches of a level have been met: the first field of a name counts.
#[derive(Default)]
struct Seen {
    few: u64,
    many: Vec<usize>,
}

impl Seen {
    fn contains(&self, at: usize) -> bool {
        if at < 64 { self.few >> at & 1 == 1 } else { self.many.contains(&at) }
    }

    fn insert(&mut self, at: usize) {
        if at < 64 { self.few |= 1 << at } else { self.many.push(at) }
    }
}

/// The first and the last byte.
#[inline]
fn ends(name: &[u8]) -> (u8, u8) {
    match name {
        [first, .., last] => (*first, *last),
        [only] => (*only, *only),
        [] => (0, 0),
    }
}

fn walk<'a>(
    branches: &[Branch],
    doc: Doc<'a>,
    cx: &EvalContext<'a>,
    put: &mut impl FnMut(u32, Value<'a>),
) -> Result<()> {
    let (mut seen, mut left) = (Seen::default(), branches.len());
    if left == 0 {
        return Ok(());
    }
    for element in doc.iter() {
        let key = element.key_bytes();
        let ends = ends(key);
        let named = |branch: &Branch| branch.ends == ends && *branch.name == *key;
        let Some(at) = branches.iter().position(named) else { continue };
        if seen.contains(at) {
            continue;
        }
        seen.insert(at);
        let (branch, value) = (&branches[at], element.value());
        if let Some(slot) = branch.slot {
            put(slot, value);
        }
        match value {
            Value::Document(inner) => walk(&branch.children, inner, cx, put)?,
            Value::Array(_) => {
                for (slot, rest) in &branch.deeper {
                    if let Some(value) = into(rest, value, cx)? {
                        put(*slot, value);
                    }
                }
            }
            _ => {}
        }
        left -= 1;
        if left == 0 {
            break;
        }
    }
    Ok(())
}
