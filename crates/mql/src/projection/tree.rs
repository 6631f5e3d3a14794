//! What a projection is made of.

use super::elem_match::ElemMatch;
use super::positional::Positional;
use super::slice::Slice;
use crate::expression::{Expression, Extractor};
use crate::names::Names;
use quire_document::DocBuf;
use quire_error::{Error, Result};

/// What happens to fields that a projection does not name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// They are dropped.
    Inclusion,
    /// They are kept; named ones are dropped, cut or computed.
    Exclusion,
    /// They are kept; named ones are computed (`$addFields`).
    AddFields,
}

/// A compiled projection: `Send + Sync`, applied any number of times.
#[derive(Debug)]
pub struct Projection {
    pub(super) kind: Kind,
    pub(super) root: Branch,
    pub(super) positional: Option<Positional>,
    pub(super) source: DocBuf,
    /// The paths of all expressions, to be taken from a document at once.
    pub(super) extractor: Extractor,
}

/// The fields that are named at one level, in the order in which they were named.
#[derive(Debug, Default)]
pub(super) struct Branch {
    pub(super) fields: Vec<Field>,
    names: Names,
    /// A field here or below is computed, so that documents may have to be made for it.
    pub(super) computes: bool,
}

#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: Box<str>,
    pub(super) entry: Entry,
    /// It lies on the path of the positional operator.
    pub(super) positional: bool,
}

/// What happens to a field.
#[derive(Debug)]
pub(super) enum Entry {
    /// Kept (true) or dropped (false).
    Keep(bool),
    /// Kept; an array is cut.
    Slice(Slice),
    /// Replaced by the first element that matches.
    ElemMatch(Box<ElemMatch>),
    /// Replaced by an expression's result.
    Computed(Expression),
    /// Fields below it are named.
    Branch(Branch),
}

impl Projection {
    /// What happens to fields that it does not name.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The projection as it was written.
    pub fn to_bson(&self) -> &DocBuf {
        &self.source
    }

    /// True if documents come out as they went in.
    pub fn is_identity(&self) -> bool {
        self.kind != Kind::Inclusion && self.root.fields.is_empty()
    }

    /// True if the positional operator is used.
    pub fn is_positional(&self) -> bool {
        self.positional.is_some()
    }
}

impl Branch {
    #[inline]
    pub(super) fn find(&self, name: &[u8]) -> Option<usize> {
        self.names.find(name)
    }

    /// Adds an entry at a path. Codes 31249 and 31250 if it collides with another.
    pub(super) fn insert(
        &mut self,
        path: &[&str],
        entry: Entry,
        positional: bool,
        whole: &str,
    ) -> Result<()> {
        let Some((first, rest)) = path.split_first() else { return Ok(()) };
        if !rest.is_empty() {
            let collided = || {
                let text =
                    format!("Path collision at {whole} remaining portion {}", rest.join("."));
                Err(Error::location(31249, text))
            };
            let at = match self.find(first.as_bytes()) {
                Some(at) => at,
                None => self.push(first, Entry::Branch(Branch::default())),
            };
            let Some(field) = self.fields.get_mut(at) else { return Ok(()) };
            field.positional |= positional;
            return match &mut field.entry {
                Entry::Branch(branch) => branch.insert(rest, entry, positional, whole),
                _ => collided(),
            };
        }
        if self.find(first.as_bytes()).is_some() {
            return Err(Error::location(31250, format!("Path collision at {whole}")));
        }
        let at = self.push(first, entry);
        if let Some(field) = self.fields.get_mut(at) {
            field.positional = positional;
        }
        Ok(())
    }

    fn push(&mut self, name: &str, entry: Entry) -> usize {
        self.fields.push(Field { name: name.into(), entry, positional: false });
        self.names.number(name)
    }

    /// Removes a field that stands here.
    pub(super) fn remove(&mut self, name: &str) {
        self.fields.retain(|field| &*field.name != name);
        self.names = Names::default();
        for field in &self.fields {
            self.names.number(&field.name);
        }
    }

    /// The extractor of all paths that computed fields read.
    pub(super) fn extractor(&mut self) -> Extractor {
        let mut extractor = Extractor::default();
        self.attach(&mut extractor);
        extractor
    }

    fn attach(&mut self, extractor: &mut Extractor) {
        for field in &mut self.fields {
            match &mut field.entry {
                Entry::Computed(expression) => extractor.attach(expression),
                Entry::Branch(branch) => branch.attach(extractor),
                Entry::Keep(_) | Entry::Slice(_) | Entry::ElemMatch(_) => {}
            }
        }
    }

    /// Notes which branches compute. `true` if this one does.
    pub(super) fn seal(&mut self) -> bool {
        let mut computes = false;
        for field in &mut self.fields {
            computes |= match &mut field.entry {
                Entry::Computed(_) | Entry::ElemMatch(_) => true,
                Entry::Branch(branch) => branch.seal(),
                Entry::Keep(_) | Entry::Slice(_) => false,
            };
        }
        self.computes = computes;
        computes
    }
}
