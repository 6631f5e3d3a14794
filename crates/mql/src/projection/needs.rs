//! The fields that a projection reads, so that no others are fetched.

use super::tree::{Branch, Entry, Kind, Projection};
use crate::expression::Dependencies;
use std::collections::BTreeSet;

/// The parts of a document that a projection reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProjectionNeeds {
    /// True for the whole document.
    pub whole_document: bool,
    /// Dotted paths, unless the whole document is read.
    pub paths: BTreeSet<String>,
    /// Kinds of metadata (`$meta`).
    pub metadata: BTreeSet<String>,
}

impl Projection {
    /// Returns what the projection reads.
    pub fn needs(&self) -> ProjectionNeeds {
        let mut read = Dependencies::default();
        let mut paths = BTreeSet::new();
        collect(&self.root, "", &mut paths, &mut read);
        let whole_document =
            self.kind != Kind::Inclusion || self.positional.is_some() || read.whole_document;
        paths.extend(read.paths);
        if whole_document {
            paths.clear();
        }
        ProjectionNeeds { whole_document, paths, metadata: read.metadata }
    }

    /// Returns the kinds of metadata that the projection reads. Each query asks this several times, so the paths are
    /// not listed.
    pub fn metadata(&self) -> BTreeSet<String> {
        let mut read = Dependencies::default();
        add_computed(&self.root, &mut read);
        read.metadata
    }

    /// Returns true if it has the positional operator, so that it needs the element that the filter
    /// matched.
    pub fn needs_position(&self) -> bool {
        self.positional.is_some()
    }

    /// Returns true if a top-level field is unchanged in every document.
    pub fn keeps_field(&self, name: &str) -> bool {
        match self.root.find(name.as_bytes()).and_then(|at| self.root.fields.get(at)) {
            None => self.kind != Kind::Inclusion,
            Some(field) => matches!(field.entry, Entry::Keep(true)) && !field.positional,
        }
    }

    /// Returns the computed fields, as dotted paths with their expressions.
    pub fn computed_fields(&self) -> Vec<(String, &crate::expression::Expression)> {
        let mut found = Vec::new();
        computed(&self.root, "", &mut found);
        found
    }
}

fn computed<'p>(
    branch: &'p Branch,
    parent: &str,
    found: &mut Vec<(String, &'p crate::expression::Expression)>,
) {
    for field in &branch.fields {
        let path = join(parent, &field.name);
        match &field.entry {
            Entry::Computed(expression) => found.push((path, expression)),
            Entry::Branch(inner) => computed(inner, &path, found),
            _ => {}
        }
    }
}

fn collect(branch: &Branch, parent: &str, paths: &mut BTreeSet<String>, read: &mut Dependencies) {
    for field in &branch.fields {
        let path = join(parent, &field.name);
        match &field.entry {
            Entry::Branch(inner) => {
                // If fields are computed inside a value, the value determines their position.
                if inner.computes {
                    paths.insert(path.clone());
                }
                collect(inner, &path, paths, read);
            }
            Entry::Computed(expression) => expression.add_dependencies(read),
            Entry::Keep(false) => {}
            Entry::Keep(true) | Entry::Slice(_) | Entry::ElemMatch(_) => {
                paths.insert(path);
            }
        }
    }
}

/// Adds what the computed fields read.
fn add_computed(branch: &Branch, read: &mut Dependencies) {
    for field in &branch.fields {
        match &field.entry {
            Entry::Branch(inner) => add_computed(inner, read),
            Entry::Computed(expression) => expression.add_dependencies(read),
            Entry::Keep(_) | Entry::Slice(_) | Entry::ElemMatch(_) => {}
        }
    }
}

fn join(parent: &str, name: &str) -> String {
    if parent.is_empty() { name.to_owned() } else { format!("{parent}.{name}") }
}
