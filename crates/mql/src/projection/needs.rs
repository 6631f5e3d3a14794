//! What of a document a projection reads, so that no more is fetched.

use super::tree::{Branch, Entry, Kind, Projection};
use crate::expression::Dependencies;
use std::collections::BTreeSet;

/// What a projection reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// The whole document.
    pub whole_document: bool,
    /// Dotted paths, if not the whole document.
    pub paths: BTreeSet<String>,
    /// Kinds of metadata (`$meta`).
    pub metadata: BTreeSet<String>,
}

impl Projection {
    /// What it reads.
    pub fn needs(&self) -> Needs {
        let mut read = Dependencies::default();
        let mut paths = BTreeSet::new();
        collect(&self.root, "", &mut paths, &mut read);
        let whole_document =
            self.kind != Kind::Inclusion || self.positional.is_some() || read.whole_document;
        paths.extend(read.paths);
        if whole_document {
            paths.clear();
        }
        Needs { whole_document, paths, metadata: read.metadata }
    }

    /// The paths of an inclusion that only copies fields: what an index on them can answer
    /// alone. `None` for any other projection.
    pub fn copied_paths(&self) -> Option<BTreeSet<String>> {
        if self.kind != Kind::Inclusion || self.positional.is_some() || self.root.computes {
            return None;
        }
        let (mut paths, mut read) = (BTreeSet::new(), Dependencies::default());
        collect(&self.root, "", &mut paths, &mut read);
        Some(paths)
    }

    /// True if a top-level field comes out unchanged, whatever the document.
    pub fn keeps_field(&self, name: &str) -> bool {
        match self.root.find(name.as_bytes()).and_then(|at| self.root.fields.get(at)) {
            None => self.kind != Kind::Inclusion,
            Some(field) => matches!(field.entry, Entry::Keep(true)) && !field.positional,
        }
    }

    /// The top-level fields that it drops or computes: what earlier stages need not deliver to
    /// those after it.
    pub fn replaced_fields(&self) -> impl Iterator<Item = &str> {
        self.root.fields.iter().filter_map(|field| match field.entry {
            Entry::Computed(_) | Entry::Keep(false) => Some(&*field.name),
            _ => None,
        })
    }

    /// The computed fields, as dotted paths with their expressions.
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
                // Where fields are computed inside a value, the value itself decides their place.
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

fn join(parent: &str, name: &str) -> String {
    if parent.is_empty() { name.to_owned() } else { format!("{parent}.{name}") }
}
