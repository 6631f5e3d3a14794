//! The tree of a projection.

use super::elem_match::ElemMatch;
use super::positional::Positional;
use super::slice::Slice;
use crate::expression::{Expression, Extractor};
use crate::names::NumberedNames;
use quire_document::DocBuf;
use quire_error::{Error, Result};

/// The treatment of fields that a projection does not name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// They are dropped.
    Inclusion,
    /// They are kept. Named fields are dropped, sliced or computed.
    Exclusion,
    /// They are kept. Named fields are computed (`$addFields`).
    AddFields,
}

/// A compiled projection. `Send + Sync`: it can be applied any number of times.
#[derive(Debug)]
pub struct Projection {
    pub(super) kind: Kind,
    pub(super) root: Branch,
    pub(super) positional: Option<Positional>,
    pub(super) source: DocBuf,
    /// Extracts the values of all expressions' paths from a document in one pass.
    pub(super) extractor: Extractor,
}

/// The named fields of one level, in the order of the projection.
#[derive(Debug, Default)]
pub(super) struct Branch {
    pub(super) fields: Vec<Field>,
    names: NumberedNames,
    /// True if a field at this level or below is computed, so that missing documents may have to be
    /// created.
    pub(super) computes: bool,
}

#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: Box<str>,
    pub(super) entry: Entry,
    /// True if the field is on the path of the positional operator.
    pub(super) positional: bool,
}

/// The treatment of a field.
#[derive(Debug)]
pub(super) enum Entry {
    /// Keeps the field (true) or drops it (false).
    Keep(bool),
    /// Keeps the field. An array is sliced.
    Slice(Slice),
    /// Replaces the field by its first matching element.
    ElemMatch(Box<ElemMatch>),
    /// Replaces the field by the result of an expression.
    Computed(Expression),
    /// Fields below this one are named.
    Branch(Branch),
}

impl Projection {
    /// Returns the treatment of fields that the projection does not name.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the projection as the user wrote it.
    pub fn to_bson(&self) -> &DocBuf {
        &self.source
    }

    /// Returns true if a field is computed, so that a result may be larger than its document.
    pub fn computes(&self) -> bool {
        self.root.computes
    }

    /// Returns true if the projection does not change documents.
    pub fn is_identity(&self) -> bool {
        self.kind != Kind::Inclusion && self.root.fields.is_empty()
    }
}

impl Branch {
    #[inline]
    pub(super) fn find(&self, name: &[u8]) -> Option<usize> {
        self.names.find(name)
    }

    /// Adds an entry at a path. Fails with 31249 or 31250 if it conflicts with another.
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

    /// Removes a field of this level.
    pub(super) fn remove(&mut self, name: &str) {
        self.fields.retain(|field| &*field.name != name);
        self.names = NumberedNames::default();
        for field in &self.fields {
            self.names.number(&field.name);
        }
    }

    /// Returns the extractor of all paths that computed fields read.
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

    /// Records which branches compute fields. Returns true if this one does.
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
