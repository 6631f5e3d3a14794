//! Applies a tree of operators to a document. Copies the bytes around the affected paths.
//!
//! Consecutive elements that no operator affects are copied together. An affected element is
//! written by its operator. New fields are appended to their document in the tree's order (by name,
//! numbers by value). The result equals that of mongod, which changes a tree of elements in place.

use super::array_filter::ArrayFilters;
use super::modifier::{Effect, Missing};
use super::rename::Source;
use super::tree::{Elements, Fields, Node};
use super::{limits, path};
use crate::context::EvalContext;
use crate::{text, too_large};
use quire_document::limits::INTERNAL_DOCUMENT_BYTES_MAX;
use quire_document::{Array, Doc, Element, Type, Value, write_element, write_index};
use quire_error::{Error, ErrorCode, Result};
use smallvec::{SmallVec, smallvec};

/// One application of an update to a document.
pub(super) struct Run<'r> {
    /// The document before the update.
    pub(super) root: Doc<'r>,
    /// The index of the array element that the filter matched, for `$`.
    pub(super) position: Option<&'r str>,
    /// True if an upsert is about to insert the document.
    pub(super) insert: bool,
    /// The context: clock, collation, arena.
    pub(super) cx: &'r EvalContext<'r>,
    /// The array filters, for `$[name]`.
    pub(super) filters: &'r ArrayFilters,
    /// The source value of each `$rename`.
    pub(super) renames: SmallVec<[Source<'r>; 2]>,
    /// True if an operator has changed the document.
    pub(super) changed: bool,
    /// The length of the output before the document.
    start: usize,
    path: SmallVec<[Part<'r>; 8]>,
}

#[derive(Clone, Copy)]
enum Part<'r> {
    Name(&'r str),
    Index(u32),
}

/// A child to apply, by its name in this document. It has several nodes if `$` or `$[]` meet
/// others.
struct Child<'r> {
    name: &'r str,
    nodes: Nodes<'r>,
    done: bool,
}

type Nodes<'r> = SmallVec<[&'r Node; 1]>;
type Children<'r> = SmallVec<[Child<'r>; 8]>;

/// The units of work for one child.
const CHILD_UNITS: u32 = 8;

/// Up to this number of children of a document a linear search is used; beyond it a hash table.
const SCANNED_CHILDREN_MAX: usize = 12;

impl<'r> Run<'r> {
    pub(super) fn new(
        root: Doc<'r>,
        position: Option<&'r str>,
        insert: bool,
        cx: &'r EvalContext<'r>,
        filters: &'r ArrayFilters,
    ) -> Self {
        let (renames, path) = (SmallVec::new(), SmallVec::new());
        let (changed, start) = (false, usize::MAX);
        Run { root, position, insert, cx, filters, renames, changed, start, path }
    }

    /// Writes the updated document to `out`.
    pub(super) fn document(&mut self, tree: &'r Fields, out: &mut Vec<u8>) -> Result<()> {
        self.start = out.len();
        let children = self.children_of(tree)?;
        self.fields(children, self.root, out)
    }

    /// Fails with 10334 as soon as the output is larger than any document. So an operand that is
    /// written many times uses no more memory than the largest document.
    fn check_length(&self, out: &[u8]) -> Result<()> {
        let bytes = out.len().saturating_sub(self.start);
        if bytes > INTERNAL_DOCUMENT_BYTES_MAX {
            return Err(too_large(bytes, self.root.first()));
        }
        Ok(())
    }

    /// Counts the collection of `children` children, which are also looked up by name.
    fn work_on(&self, children: usize) -> Result<()> {
        let children = u32::try_from(children).unwrap_or(u32::MAX);
        self.cx.shared.work(children.saturating_mul(CHILD_UNITS))
    }

    /// Returns the current path, as messages print it.
    fn dotted(&self) -> String {
        let mut text = String::new();
        for (at, part) in self.path.iter().enumerate() {
            if at > 0 {
                text.push('.');
            }
            match part {
                Part::Name(name) => text.push_str(name),
                Part::Index(index) => text.push_str(&index.to_string()),
            }
        }
        text
    }

    fn children_of(&self, fields: &'r Fields) -> Result<Children<'r>> {
        self.work_on(fields.children.len())?;
        let mut children: Children<'r> = fields
            .children
            .iter()
            .map(|(name, node)| Child { name: name.as_str(), nodes: smallvec![node], done: false })
            .collect();
        if let Some(node) = fields.positional.as_deref() {
            let Some(position) = self.position else {
                return Err(Error::bad_value(
                    "The positional operator did not find the match needed from the query.",
                ));
            };
            add_child(&mut children, position, node);
        }
        Ok(children)
    }

    /// Returns the children of several nodes that meet at one path.
    fn merged_children(&self, nodes: &[&'r Node]) -> Result<Children<'r>> {
        let mut merged = Children::new();
        for node in nodes {
            let Node::Fields(fields) = node else { return Err(self.clash()) };
            for child in self.children_of(fields)? {
                for node in child.nodes {
                    add_child(&mut merged, child.name, node);
                }
            }
        }
        Ok(merged)
    }

    fn clash(&self) -> Error {
        let message = format!("Update created a conflict at '{}'", self.dotted());
        Error::new(ErrorCode::ConflictingUpdateOperators, message)
    }

    /// Writes `doc` with the operators of its children applied.
    fn fields(&mut self, children: Children<'r>, doc: Doc<'r>, out: &mut Vec<u8>) -> Result<()> {
        let start = begin(out);
        let mut children = children;
        let (bytes, mut left) = (doc.element_bytes(), children.len());
        let names = Names::new(&children);
        let (mut copied, mut at) = (0, 0);
        for element in doc.iter() {
            if left == 0 {
                break;
            }
            let end = at + 2 + element.key_bytes().len() + element.value_bytes().len();
            if let Some(found) = names.find(&children, element.key_bytes()) {
                left -= 1;
                children[found].done = true;
                let nodes = std::mem::take(&mut children[found].nodes);
                out.extend_from_slice(bytes.get(copied..at).unwrap_or_default());
                self.cx.shared.work(CHILD_UNITS)?;
                self.path.push(Part::Name(children[found].name));
                let effect = self.existing(&nodes, element, false, out)?;
                self.path.pop();
                copied = if effect == Effect::Kept { at } else { end };
            }
            at = end;
        }
        out.extend_from_slice(bytes.get(copied..).unwrap_or_default());
        for child in children.iter().filter(|child| !child.done) {
            self.cx.shared.work(CHILD_UNITS)?;
            self.path.push(Part::Name(child.name));
            self.create(&child.nodes, child.name.as_bytes(), out)?;
            self.path.pop();
        }
        end(out, start);
        Ok(())
    }

    /// Applies the operators of a path to the existing element.
    fn existing(
        &mut self,
        nodes: &[&'r Node],
        element: Element<'r>,
        in_array: bool,
        out: &mut Vec<u8>,
    ) -> Result<Effect> {
        match nodes {
            [Node::Leaf(modifier)] => {
                let effect = modifier.update(self, in_array, element, out)?;
                self.check_length(out)?;
                if effect != Effect::Kept {
                    self.changed = true;
                    self.check_changed(modifier.depth())?;
                    if let ([Part::Name(top)], Effect::Written) = (self.path.as_slice(), &effect)
                        && top.starts_with('$')
                    {
                        return Err(dollar_prefixed(top));
                    }
                }
                Ok(effect)
            }
            [] => Ok(Effect::Kept),
            [Node::Elements(_), ..] => self.elements(nodes, element, out),
            [Node::Fields(fields)] => {
                let children = self.children_of(fields)?;
                self.below(children, element, out)
            }
            [Node::Leaf(_) | Node::Fields(_), ..] => {
                let children = self.merged_children(nodes)?;
                self.below(children, element, out)
            }
        }
    }

    fn below(
        &mut self,
        children: Children<'r>,
        element: Element<'r>,
        out: &mut Vec<u8>,
    ) -> Result<Effect> {
        match element.value() {
            Value::Document(doc) => {
                header(out, Type::Document, element.key_bytes());
                self.fields(children, doc, out)?;
                Ok(Effect::Written)
            }
            Value::Array(array) => {
                header(out, Type::Array, element.key_bytes());
                self.positions(children, element, array, out)?;
                Ok(Effect::Written)
            }
            _ => {
                for child in &children {
                    self.path.push(Part::Name(child.name));
                    self.dead_end(&child.nodes, element, child.name)?;
                    self.path.pop();
                }
                Ok(Effect::Kept)
            }
        }
    }

    /// Writes an array whose children are positions.
    fn positions(
        &mut self,
        children: Children<'r>,
        element: Element<'r>,
        array: Array<'r>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let start = begin(out);
        let mut wanted: SmallVec<[(u32, &Child<'r>); 4]> = SmallVec::new();
        for child in &children {
            match path::index(child.name) {
                Some(index) => wanted.push((index, child)),
                None => {
                    self.path.push(Part::Name(child.name));
                    self.dead_end(&child.nodes, element, child.name)?;
                    self.path.pop();
                }
            }
        }
        wanted.sort_by_key(|(index, _)| *index);
        let (mut next, mut length) = (0, 0u32);
        for item in array.as_doc().iter() {
            let mut effect = Effect::Kept;
            if let Some((index, child)) = wanted.get(next).filter(|(index, _)| *index == length) {
                next += 1;
                self.path.push(Part::Index(*index));
                effect = self.existing(&child.nodes, item, true, out)?;
                self.path.pop();
            }
            if effect == Effect::Kept {
                copy(out, item);
            }
            length += 1;
        }
        for (index, child) in &wanted[next..] {
            self.path.push(Part::Index(*index));
            length = self.create_position(*index, length, &child.nodes, out)?;
            self.path.pop();
        }
        end(out, start);
        Ok(())
    }

    /// Writes a new array element at `index`, with nulls for the positions before it. Returns the
    /// new length of the array.
    fn create_position(
        &mut self,
        index: u32,
        length: u32,
        nodes: &[&'r Node],
        out: &mut Vec<u8>,
    ) -> Result<u32> {
        let mark = out.len();
        let mut name = Vec::new();
        write_index(&mut name, index);
        if index.saturating_sub(length) > limits::BACKFILL_MAX && self.creates(nodes) {
            let message = format!("can't backfill more than {} elements", limits::BACKFILL_MAX);
            return Err(Error::new(ErrorCode::CannotBackfillArray, message));
        }
        if index.saturating_sub(length) <= limits::BACKFILL_MAX {
            for padding in length..index {
                out.push(Type::Null.byte());
                write_index(out, padding);
                out.push(0);
            }
        }
        if self.create(nodes, &name, out)? {
            return Ok(index + 1);
        }
        out.truncate(mark);
        Ok(length)
    }

    /// Returns true if an operator below would create something.
    fn creates(&self, nodes: &[&'r Node]) -> bool {
        nodes.iter().any(|node| match node {
            Node::Leaf(modifier) => modifier.missing(self) == Missing::Create,
            Node::Elements(_) => true,
            Node::Fields(fields) => {
                fields.positional.is_some()
                    || fields.children.iter().any(|(_, child)| self.creates(&[child]))
            }
        })
    }

    /// Applies `$[]` and `$[name]` to the elements of an array.
    fn elements(
        &mut self,
        nodes: &[&'r Node],
        element: Element<'r>,
        out: &mut Vec<u8>,
    ) -> Result<Effect> {
        let mut selected: SmallVec<[&'r Elements; 1]> = SmallVec::new();
        for node in nodes {
            let Node::Elements(elements) = node else { return Err(self.clash()) };
            selected.push(elements);
        }
        let Value::Array(array) = element.value() else {
            return Err(Error::bad_value(format!(
                "Cannot apply array updates to non-array element {}",
                text::element(element)
            )));
        };
        header(out, Type::Array, element.key_bytes());
        let start = begin(out);
        for (index, item) in array.as_doc().iter().enumerate() {
            self.cx.shared.work(4)?;
            let mut matching = Nodes::new();
            for (name, node) in selected.iter().flat_map(|elements| elements.children.iter()) {
                if name.is_empty() || self.filters.matches(name, item.value(), self.cx)? {
                    matching.push(node);
                }
            }
            self.path.push(Part::Index(index as u32));
            let effect = self.existing(&matching, item, true, out)?;
            self.path.pop();
            if effect == Effect::Kept {
                copy(out, item);
            }
        }
        end(out, start);
        Ok(Effect::Written)
    }

    /// Writes the elements that operators create at a missing path. Returns false if there are
    /// none.
    fn create(&mut self, nodes: &[&'r Node], name: &[u8], out: &mut Vec<u8>) -> Result<bool> {
        let children = match nodes {
            [Node::Leaf(modifier)] => {
                if modifier.missing(self) != Missing::Create {
                    return Ok(false);
                }
                let mark = out.len();
                modifier.create(self, name, out)?;
                self.check_length(out)?;
                self.changed = true;
                self.check_created(modifier.depth(), out.get(mark..).unwrap_or_default())?;
                return Ok(true);
            }
            [] => return Ok(false),
            [Node::Elements(_), ..] => return Err(self.no_array()),
            [Node::Fields(fields)] => self.children_of(fields)?,
            [Node::Leaf(_) | Node::Fields(_), ..] => self.merged_children(nodes)?,
        };
        let mark = out.len();
        header(out, Type::Document, name);
        let start = begin(out);
        let mut created = false;
        for child in &children {
            self.cx.shared.work(CHILD_UNITS)?;
            self.path.push(Part::Name(child.name));
            created |= self.create(&child.nodes, child.name.as_bytes(), out)?;
            self.path.pop();
        }
        end(out, start);
        if !created {
            out.truncate(mark);
        }
        Ok(created)
    }

    fn no_array(&self) -> Error {
        let path = self.dotted();
        Error::bad_value(format!(
            "The path '{path}' must exist in the document in order to apply array updates."
        ))
    }

    /// Handles operators whose path continues in `element`, which is not a document and cannot have
    /// fields. Fails if one of them would create a field.
    fn dead_end(&mut self, nodes: &[&'r Node], element: Element<'r>, part: &str) -> Result<()> {
        for node in nodes {
            match node {
                Node::Leaf(modifier) => match modifier.missing(self) {
                    Missing::Ignore => {}
                    Missing::Create => {
                        let message = format!(
                            "Cannot create field '{part}' in element {{{}}}",
                            text::element(element)
                        );
                        return Err(Error::new(ErrorCode::PathNotViable, message));
                    }
                    Missing::CheckPath => {
                        let message = format!(
                            "Cannot use the part ({part}) of ({}) to traverse the element ({{{}}})",
                            self.dotted(),
                            text::element(element)
                        );
                        return Err(Error::new(ErrorCode::PathNotViable, message));
                    }
                },
                Node::Elements(_) => return Err(self.no_array()),
                Node::Fields(fields) => {
                    for child in self.children_of(fields)? {
                        self.path.push(Part::Name(child.name));
                        self.dead_end(&child.nodes, element, part)?;
                        self.path.pop();
                    }
                }
            }
        }
        Ok(())
    }

    fn check_changed(&self, depth: usize) -> Result<()> {
        self.check_depth(depth)?;
        match self.path.first() {
            Some(Part::Name("_id")) if self.root.contains("_id") => {
                let message = format!(
                    "Performing an update on the path '{}' would modify the immutable field '_id'",
                    self.dotted()
                );
                Err(Error::new(ErrorCode::ImmutableField, message))
            }
            _ => Ok(()),
        }
    }

    fn check_created(&self, depth: usize, element: &[u8]) -> Result<()> {
        self.check_depth(depth)?;
        let Some(Part::Name(top)) = self.path.first() else { return Ok(()) };
        if self.path.len() == 1 && top.starts_with('$') && !self.insert {
            return Err(dollar_prefixed(top));
        }
        if *top != "_id" || self.path.len() == 1 {
            return Ok(());
        }
        let Some(Value::Document(id)) = self.root.get("_id") else { return Ok(()) };
        let mut changed = Vec::new();
        let start = begin(&mut changed);
        changed.extend_from_slice(id.element_bytes());
        changed.extend_from_slice(element);
        end(&mut changed, start);
        let message = format!(
            "Updating the path '_id' to {} would modify the immutable field '_id'",
            text::field("_id", Value::Document(Doc::from_valid_bytes(&changed)))
        );
        Err(Error::new(ErrorCode::ImmutableField, message))
    }

    pub(super) fn check_depth(&self, depth: usize) -> Result<()> {
        if self.path.len() + depth > limits::DEPTH_MAX {
            return Err(limits::too_deep());
        }
        Ok(())
    }
}

/// Returns the error 52, for a top-level field name that begins with a dollar sign.
pub(super) fn dollar_prefixed(name: &str) -> Error {
    let message = format!(
        "The dollar ($) prefixed field '{name}' in '{name}' is not allowed in the context of an update's replacement document. Consider using an aggregation pipeline with $replaceWith."
    );
    Error::new(ErrorCode::DollarPrefixedFieldName, message)
}

fn add_child<'r>(children: &mut Children<'r>, name: &'r str, node: &'r Node) {
    match children.binary_search_by(|child| path::order(child.name, name)) {
        Ok(at) => children[at].nodes.push(node),
        Err(at) => children.insert(at, Child { name, nodes: smallvec![node], done: false }),
    }
}

/// Finds children by name; with a hash table if there are many.
struct Names<'r>(Option<std::collections::HashMap<&'r [u8], usize>>);

impl<'r> Names<'r> {
    fn new(children: &Children<'r>) -> Self {
        if children.len() <= SCANNED_CHILDREN_MAX {
            return Names(None);
        }
        let by_name = children.iter().enumerate().map(|(at, child)| (child.name.as_bytes(), at));
        Names(Some(by_name.collect()))
    }

    fn find(&self, children: &Children<'r>, name: &[u8]) -> Option<usize> {
        let found = match &self.0 {
            Some(by_name) => *by_name.get(name)?,
            None => children.iter().position(|child| child.name.as_bytes() == name)?,
        };
        (!children[found].done).then_some(found)
    }
}

/// Writes a placeholder for the length, and returns its position.
pub(super) fn begin(out: &mut Vec<u8>) -> usize {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    start
}

/// Writes the terminator, and sets the length.
pub(super) fn end(out: &mut Vec<u8>, start: usize) {
    out.push(0);
    let length = (out.len() - start) as u32;
    if let Some(place) = out.get_mut(start..start + 4) {
        place.copy_from_slice(&length.to_le_bytes());
    }
}

/// Writes the type and the name of an element.
pub(super) fn header(out: &mut Vec<u8>, kind: Type, name: &[u8]) {
    out.push(kind.byte());
    out.extend_from_slice(name);
    out.push(0);
}

/// Writes a copy of an element.
pub(super) fn copy(out: &mut Vec<u8>, element: Element<'_>) {
    header(out, element.kind(), element.key_bytes());
    out.extend_from_slice(element.value_bytes());
}

/// Writes an element with another value.
pub(super) fn put(out: &mut Vec<u8>, name: &[u8], value: Value<'_>) -> Effect {
    write_element(out, name, value);
    Effect::Written
}
