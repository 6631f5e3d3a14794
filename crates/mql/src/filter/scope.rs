//! A tree together with the top-level fields that it reads, and the single pass that finds them.

use super::node::{Node, Test};
use crate::names::NumberedNames;
use quire_document::{Doc, Element, Iter};
use smallvec::SmallVec;

/// A condition on a document (a whole document or an element of an array), with the names of the
/// fields that it reads. The fields of a document are read in one pass, which ends when no more are
/// needed.
#[derive(Clone, Debug)]
pub struct Scope {
    /// The condition on the document.
    pub node: Node,
    names: NumberedNames,
}

impl Scope {
    /// Prepares a tree for evaluation.
    pub fn new(mut node: Node) -> Scope {
        let mut names = NumberedNames::default();
        assign(&mut node, &mut |first| names.number(first));
        Scope { node, names }
    }

    pub(super) fn open<'a>(&self, doc: Doc<'a>) -> Fields<'a, '_> {
        let mut found = SmallVec::new();
        found.resize(self.names.len(), None);
        Fields { doc, rest: doc.iter(), names: &self.names, found }
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
        Node::Expr(_)
        | Node::JsonSchema(_)
        | Node::SampleRate(_)
        | Node::Search(_)
        | Node::Always(_) => {}
    }
}

/// The fields of one document, which are searched when they are needed, in a single pass.
pub(super) struct Fields<'a, 's> {
    pub(super) doc: Doc<'a>,
    rest: Iter<'a>,
    names: &'s NumberedNames,
    found: SmallVec<[Option<Element<'a>>; 4]>,
}

impl<'a> Fields<'a, '_> {
    /// Returns the field of a slot.
    #[inline]
    pub(super) fn get(&mut self, slot: usize) -> Option<Element<'a>> {
        if let Some(Some(element)) = self.found.get(slot) {
            return Some(*element);
        }
        if let (Some(only), 0) = (self.names.only(), slot) {
            let element = self.rest.find(|element| element.key_bytes() == only);
            self.found[0] = element;
            return element;
        }
        self.advance(slot)
    }

    fn advance(&mut self, wanted: usize) -> Option<Element<'a>> {
        for element in self.rest.by_ref() {
            let Some(slot) = self.names.find(element.key_bytes()) else { continue };
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
