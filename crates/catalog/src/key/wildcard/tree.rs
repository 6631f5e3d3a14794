//! The paths of a document that a wildcard index includes: all paths, the paths below one field, or
//! those that `wildcardProjection` selects.

use std::collections::BTreeMap;

use quire_document::{Doc, Value};
use quire_error::{Error, Result};
use quire_mql::ParseContext;
use quire_mql::projection::{Kind, Policy, Projection, flag};

/// The indexed part of a field and of the fields below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Tree {
    /// Every path below is included.
    All,
    /// Nothing is included. Occurs only below `Except`.
    Nothing,
    /// Only these fields.
    Only(BTreeMap<String, Tree>),
    /// Everything is included, except what these fields exclude.
    Except(BTreeMap<String, Tree>),
}

impl Tree {
    /// Returns the tree of a wildcard term and its projection. `term` is `$**` or ends in `.$**`.
    pub(super) fn new(term: &str, projection: Option<Doc<'_>>) -> Self {
        match (term.strip_suffix(".$**"), projection) {
            (Some(root), _) => root
                .rsplit('.')
                .fold(Tree::All, |tree, name| Tree::Only(BTreeMap::from([(name.into(), tree)]))),
            (None, Some(projection)) => Tree::projected(projection),
            (None, None) => Tree::Except(BTreeMap::from([("_id".to_owned(), Tree::Nothing)])),
        }
    }

    /// Returns the tree of a projection that [`check`] accepts. Excludes `_id` unless the
    /// projection names it.
    fn projected(projection: Doc<'_>) -> Self {
        let inclusion = kind(projection).is_ok_and(|kind| kind == Kind::Inclusion);
        let mut fields = BTreeMap::new();
        if !inclusion {
            fields.insert("_id".to_owned(), Tree::Nothing);
        }
        for (path, value) in projection.fields() {
            if path == "_id" && flag(value).is_some_and(|kept| kept != inclusion) {
                fields.remove("_id");
                continue;
            }
            let names: Vec<&str> = path.split('.').collect();
            insert(&mut fields, &names, value, inclusion);
        }
        if inclusion { Tree::Only(fields) } else { Tree::Except(fields) }
    }

    /// Returns the tree of a field at this level; `None` if nothing of it is included.
    pub(super) fn below(&self, name: &str) -> Option<&Tree> {
        match self {
            Tree::All => Some(&Tree::All),
            Tree::Nothing => None,
            Tree::Only(fields) => fields.get(name),
            Tree::Except(fields) => match fields.get(name) {
                None => Some(&Tree::All),
                Some(Tree::Nothing) => None,
                Some(below) => Some(below),
            },
        }
    }

    /// Returns true if a value at this level has a key.
    pub(super) fn holds_values(&self) -> bool {
        matches!(self, Tree::All | Tree::Except(_))
    }

    /// Returns true if a value at this path has a key.
    pub(super) fn holds(&self, path: &str) -> bool {
        let mut tree = self;
        for name in path.split('.') {
            match tree.below(name) {
                Some(below) => tree = below,
                None => return false,
            }
        }
        tree.holds_values()
    }

    /// Returns true if this path, a path below it or a path above it has keys.
    pub(super) fn touches(&self, path: &str) -> bool {
        let mut tree = self;
        for name in path.split('.') {
            match tree.below(name) {
                Some(Tree::All) => return true,
                Some(below) => tree = below,
                None => return false,
            }
        }
        true
    }
}

fn insert(fields: &mut BTreeMap<String, Tree>, names: &[&str], value: Value<'_>, inclusion: bool) {
    let Some((name, rest)) = names.split_first() else { return };
    let part = || match inclusion {
        true => Tree::Only(BTreeMap::new()),
        false => Tree::Except(BTreeMap::new()),
    };
    let whole = if inclusion { Tree::All } else { Tree::Nothing };
    match (rest, value) {
        ([], Value::Document(doc)) => {
            let tree = fields.entry((*name).to_owned()).or_insert_with(part);
            let (Tree::Only(below) | Tree::Except(below)) = tree else { return };
            for (name, value) in doc.fields() {
                let names: Vec<&str> = name.split('.').collect();
                insert(below, &names, value, inclusion);
            }
        }
        ([], _) => {
            fields.insert((*name).to_owned(), whole);
        }
        _ => {
            let tree = fields.entry((*name).to_owned()).or_insert_with(part);
            let (Tree::Only(below) | Tree::Except(below)) = tree else { return };
            insert(below, rest, value, inclusion);
        }
    }
}

fn kind(projection: Doc<'_>) -> Result<Kind> {
    let context = ParseContext::default();
    Projection::parse_with(projection, None, Policy::WILDCARD, &context).map(|parsed| parsed.kind())
}

/// Checks a `wildcardProjection`.
pub(super) fn check(projection: Doc<'_>) -> Result<()> {
    kind(projection)
        .map(|_| ())
        .map_err(|error: Error| error.context("Failed to parse: wildcardProjection"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_document::doc;

    #[test]
    fn a_tree_includes_the_paths_of_its_term() {
        let all = Tree::new("$**", None);
        assert!(all.holds("a") && all.holds("a.b.0") && !all.holds("_id") && !all.holds("_id.x"));
        let below = Tree::new("a.b.$**", None);
        assert!(below.holds("a.b") && below.holds("a.b.c") && !below.holds("a"));
        assert!(!below.holds("a.c") && below.touches("a") && !below.touches("c"));
        let only = doc! { "a": 1, "b.c": true, "d": { "e": 1 } };
        let only = Tree::new("$**", Some(only.as_doc()));
        assert!(only.holds("a.x") && only.holds("b.c") && only.holds("d.e") && !only.holds("b"));
        assert!(!only.holds("_id") && !only.holds("d.f"));
        let except = doc! { "a": 0, "b.c": 0, "_id": 1 };
        let except = Tree::new("$**", Some(except.as_doc()));
        assert!(except.holds("b") && except.holds("b.d") && except.holds("_id.x"));
        assert!(!except.holds("a.x") && !except.holds("b.c.d"));
        let id = doc! { "_id": 1 };
        assert!(Tree::new("$**", Some(id.as_doc())).holds("_id"));
        let no_id = doc! { "_id": 0 };
        assert_eq!(Tree::new("$**", Some(no_id.as_doc())), Tree::new("$**", None));
    }

    #[test]
    fn projections_are_checked() {
        let code = |doc: quire_document::DocBuf| {
            check(doc.as_doc()).map_or_else(|error| error.code().number(), |()| 0)
        };
        assert_eq!(code(doc! { "a": 1, "b": 0 }), 31254);
        assert_eq!(code(doc! { "a": "text" }), 51271);
        assert_eq!(code(doc! { "a": 1, "a.b": 1 }), 31249);
        assert_eq!(code(doc! { "_id": 0, "a": 1 }), 0);
    }
}
