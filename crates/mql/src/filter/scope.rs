//! A tree together with the top-level fields it reads, and the one walk that finds them.

use super::node::{Node, Test};
use quire_document::{Doc, Element, Iter};
use smallvec::SmallVec;
use std::collections::HashMap;

/// Above this many distinct fields a name is looked up in a table.
const LINEAR_NAMES_MAX: usize = 12;

/// A condition on a document (a whole one, or an array's element) with the names of the fields
/// that it reads. Each document's fields are walked once, and no further than needed.
#[derive(Clone, Debug)]
pub struct Scope {
    /// The condition.
    pub node: Node,
    names: Names,
}

#[derive(Clone, Debug, Default)]
struct Names {
    list: Vec<Box<str>>,
    table: Option<HashMap<Box<[u8]>, usize>>,
}

impl Scope {
    /// Prepares a tree to be run.
    pub fn new(mut node: Node) -> Scope {
        let mut names = Names::default();
        assign(&mut node, &mut |first| names.slot(first));
        Scope { node, names }
    }

    /// The names of the top-level fields that the paths start with.
    pub fn field_names(&self) -> impl Iterator<Item = &str> {
        self.names.list.iter().map(|name| &**name)
    }

    pub(super) fn open<'a>(&self, doc: Doc<'a>) -> Fields<'a, '_> {
        let mut found = SmallVec::new();
        found.resize(self.names.list.len(), None);
        Fields { doc, rest: doc.iter(), names: &self.names, found }
    }
}

impl Names {
    /// The slot of a name, a new one if it has none.
    fn slot(&mut self, name: &str) -> usize {
        let known = match &self.table {
            Some(table) => table.get(name.as_bytes()).copied(),
            None => self.list.iter().position(|known| **known == *name),
        };
        known.unwrap_or_else(|| self.push(name))
    }

    fn push(&mut self, name: &str) -> usize {
        let slot = self.list.len();
        self.list.push(name.into());
        if let Some(table) = &mut self.table {
            table.insert(name.as_bytes().into(), slot);
        } else if self.list.len() > LINEAR_NAMES_MAX {
            let slots = self.list.iter().enumerate();
            self.table = Some(slots.map(|(slot, name)| (name.as_bytes().into(), slot)).collect());
        }
        slot
    }
}

fn assign(node: &mut Node, slot: &mut dyn FnMut(&str) -> usize) {
    match node {
        Node::And(children) | Node::Or(children) | Node::Nor(children) => {
            children.iter_mut().for_each(|child| assign(child, slot));
        }
        Node::Not(child) => assign(child, slot),
        Node::Path(node) => {
            node.slot = slot(node.path.first());
            debug_assert!(!matches!(node.test, Test::All(_)));
        }
        Node::Expr(_) | Node::JsonSchema(_) | Node::SampleRate(_) | Node::Always(_) => {}
    }
}

/// The fields of one document, found as they are asked for in a single walk.
pub(super) struct Fields<'a, 's> {
    pub(super) doc: Doc<'a>,
    rest: Iter<'a>,
    names: &'s Names,
    found: SmallVec<[Option<Element<'a>>; 4]>,
}

impl<'a> Fields<'a, '_> {
    /// The field of that slot.
    #[inline]
    pub(super) fn get(&mut self, slot: usize) -> Option<Element<'a>> {
        if let Some(Some(element)) = self.found.get(slot) {
            return Some(*element);
        }
        if let ([only], true) = (self.names.list.as_slice(), slot == 0) {
            let element = self.rest.find(|element| element.key_bytes() == only.as_bytes());
            self.found[0] = element;
            return element;
        }
        self.advance(slot)
    }

    fn advance(&mut self, wanted: usize) -> Option<Element<'a>> {
        for element in self.rest.by_ref() {
            let Some(slot) = self.names.slot_of(element.key_bytes()) else { continue };
            let Some(place) = self.found.get_mut(slot) else { continue };
            if place.is_none() {
                *place = Some(element);
                if slot == wanted {
                    return Some(element);
                }
            }
        }
        None
    }
}

impl Names {
    #[inline]
    fn slot_of(&self, key: &[u8]) -> Option<usize> {
        match &self.table {
            Some(table) => table.get(key).copied(),
            None => self.list.iter().position(|name| name.as_bytes() == key),
        }
    }
}
