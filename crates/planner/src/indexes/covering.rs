//! Which fields a projection needs, and whether an index key has all of them.

use crate::plan::{IndexScan, Node, ProjectionKind, Reshape};
use quire_document::path::array_index;
use quire_document::{Doc, Value};
use quire_mql::projection::{Projection, flag};
use std::sync::Arc;

/// The facts about a projection that planning needs.
#[derive(Debug, Clone)]
pub(crate) struct ProjectionFacts {
    /// True if it names whole top-level fields only.
    pub simple: bool,
    /// The paths that it keeps or reads, if it is an inclusion.
    pub required: Option<Vec<Required>>,
    /// The top-level fields that it removes, if it is an exclusion.
    excluded: Vec<String>,
}

/// A path that a projection needs.
#[derive(Debug, Clone)]
pub(crate) struct Required {
    path: String,
    /// True if only the value at the path is read, false if the path is copied with the documents
    /// above the value.
    value_only: bool,
}

impl Required {
    /// Returns true if the keys of a scan have what is needed. A projection does not take a number
    /// for a position in an array, as an index does.
    fn is_given_by(&self, scan: &IndexScan) -> bool {
        !has_position(&self.path)
            && match self.value_only {
                true => scan.gives(&self.path),
                false => scan.gives_with_parents(&self.path),
            }
    }
}

/// Returns true if a component of the path after the first may be a position in an array.
pub(crate) fn has_position(path: &str) -> bool {
    path.split('.').skip(1).any(|component| array_index(component).is_some())
}

impl ProjectionFacts {
    /// Reads a projection that `mql` has accepted.
    pub fn new(spec: &Reshape) -> Self {
        let mut facts = ProjectionFacts::of_written(spec.shown.as_doc());
        if let Some(projection) = &spec.projection {
            facts.read_computed(projection);
        }
        if spec.values_only {
            let required = facts.required.iter_mut().flatten();
            required.for_each(|required| required.value_only = true);
        }
        facts
    }

    /// Adds what the computed fields of an inclusion read.
    fn read_computed(&mut self, projection: &Projection) {
        let Some(required) = &mut self.required else { return };
        for (path, expression) in projection.computed_fields() {
            let reads = expression.dependencies();
            if reads.whole_document {
                self.required = None;
                return;
            }
            let values = reads.paths.into_iter();
            required.extend(values.map(|path| Required { path, value_only: true }));
            if let Some((parent, _)) = path.rsplit_once('.') {
                required.push(Required { path: parent.to_owned(), value_only: false });
            }
        }
    }

    fn of_written(projection: Doc<'_>) -> Self {
        let mut facts =
            ProjectionFacts { simple: true, required: Some(Vec::new()), excluded: Vec::new() };
        let (mut keep_id, mut id_named, mut includes, mut excludes) = (true, false, false, false);
        for (path, value) in projection.fields() {
            match flag(value) {
                Some(kept) if path == "_id" => {
                    keep_id = kept;
                    id_named = kept;
                }
                Some(true) => {
                    includes = true;
                    facts.keep(path);
                }
                Some(false) => {
                    excludes = true;
                    facts.simple &= !path.contains('.');
                    facts.excluded.push(top(path).to_owned());
                }
                None => match value {
                    Value::Document(doc) if doc.first().is_some_and(|f| f.key() == "$meta") => {
                        facts.simple = false;
                    }
                    Value::Document(doc) if nested_flags(path, doc, &mut facts) => includes = true,
                    other => {
                        let operator = first_operator(other);
                        includes |= operator != Some("$slice");
                        facts.simple = false;
                        if !is_computed(other) {
                            facts.required = None;
                        }
                    }
                },
            }
        }
        if excludes || !(includes || id_named) {
            facts.required = None;
            if !keep_id {
                facts.excluded.push("_id".into());
            }
        } else if keep_id {
            facts.keep("_id");
        }
        facts
    }

    fn keep(&mut self, path: &str) {
        self.simple &= !path.contains('.') && !path.ends_with(".$");
        if path.ends_with(".$") {
            self.required = None;
        }
        if let Some(required) = &mut self.required {
            required.push(Required { path: path.to_owned(), value_only: false });
        }
    }

    /// Returns the top-level fields that the projection needs; `None` if it may need any.
    pub fn top_fields(&self) -> Option<impl Iterator<Item = &str>> {
        Some(self.required.as_ref()?.iter().map(|required| top(&required.path)))
    }

    /// Returns true if the keys of the scan have everything that the projection keeps.
    pub fn covered_by(&self, scan: &IndexScan) -> bool {
        let Some(required) = &self.required else { return false };
        required.iter().all(|required| required.is_given_by(scan))
    }

    /// Returns true if the projection does not change the first field of a sort path.
    pub fn retains(&self, sort_path: &str) -> bool {
        match &self.required {
            Some(required) => required.iter().any(|kept| kept.path == top(sort_path)),
            None => self.simple && !self.excluded.iter().any(|path| path == top(sort_path)),
        }
    }

    /// Puts the projection above a node; below a sort if the result is the same and the projection
    /// `sinks`.
    pub fn apply(&self, node: Node, spec: &Arc<Reshape>, sinks: bool) -> Node {
        // Scans of one index have bounds of their own.
        let mut covered = node.only_index().is_some();
        node.for_each_scan(&mut |scan| covered = covered && self.covered_by(scan));
        let inclusion = self.is_plain_inclusion();
        let one_scan = matches!(
            node,
            Node::IndexScan(_) | Node::DistinctScan { .. } | Node::Skip { .. } | Node::Sort { .. }
        );
        let kind = match (inclusion, covered) {
            (true, true) if one_scan => ProjectionKind::Covered,
            (true, false) => ProjectionKind::Simple,
            _ => ProjectionKind::Default,
        };
        let node = if covered { node } else { node.fetched() };
        if !sinks {
            return Node::Projection { kind, spec: Arc::clone(spec), input: Box::new(node) };
        }
        self.push_down(node, kind, spec)
    }

    /// Puts the projection above a node that returns documents.
    pub fn over_documents(&self, node: Node, spec: &Arc<Reshape>) -> Node {
        let kind = match self.is_plain_inclusion() {
            true => ProjectionKind::Simple,
            false => ProjectionKind::Default,
        };
        Node::Projection { kind, spec: Arc::clone(spec), input: Box::new(node) }
    }

    fn is_plain_inclusion(&self) -> bool {
        self.excluded.iter().all(|path| path == "_id") && self.simple
    }

    fn push_down(&self, node: Node, kind: ProjectionKind, spec: &Arc<Reshape>) -> Node {
        let project = |input: Box<Node>| Node::Projection { kind, spec: Arc::clone(spec), input };
        if kind != ProjectionKind::Simple {
            return project(Box::new(node));
        }
        let fits = |pattern: Doc<'_>| pattern.fields().all(|(path, _)| self.retains(path));
        match node {
            Node::Sort { pattern, presorted, limit, simple: true, input }
                if fits(pattern.to_bson().as_doc()) =>
            {
                let input = Box::new(project(input));
                Node::Sort { pattern, presorted, limit, simple: true, input }
            }
            Node::Skip { count, input } => match *input {
                Node::Sort { .. } => match self.push_down(*input, kind, spec) {
                    sorted @ Node::Sort { .. } => Node::Skip { count, input: Box::new(sorted) },
                    Node::Projection { input, .. } => {
                        project(Box::new(Node::Skip { count, input }))
                    }
                    other => Node::Skip { count, input: Box::new(other) },
                },
                other => project(Box::new(Node::Skip { count, input: Box::new(other) })),
            },
            other => project(Box::new(other)),
        }
    }
}

fn top(path: &str) -> &str {
    path.split('.').next().unwrap_or(path)
}

/// `{a: {b: 1}}` keeps `a.b`.
fn nested_flags(path: &str, doc: Doc<'_>, facts: &mut ProjectionFacts) -> bool {
    let plain = !doc.is_empty()
        && doc.fields().all(|(name, value)| !name.starts_with('$') && flag(value) == Some(true));
    if plain {
        doc.fields().for_each(|(name, _)| facts.keep(&format!("{path}.{name}")));
    }
    plain
}

/// Returns the operator of an operator document.
fn first_operator(value: Value<'_>) -> Option<&str> {
    let first = value.as_document().and_then(|doc| doc.first());
    first.map(|first| first.key()).filter(|name| name.starts_with('$'))
}

/// Returns true for an expression, whose inputs are known. The others are operators of `find` that
/// read the field itself, and documents with more fields of the projection.
fn is_computed(value: Value<'_>) -> bool {
    match (first_operator(value), value) {
        (Some("$slice" | "$elemMatch"), _) => false,
        (Some(_), _) => true,
        (None, value) => value.as_document().is_none(),
    }
}
