//! Which fields a projection needs, and whether an index key has all of them.

use crate::plan::{IndexScan, Node, ProjectionKind, Reshape};
use quire_document::{Doc, Value};
use quire_mql::projection::flag;
use std::sync::Arc;

/// The facts about a projection that planning needs.
#[derive(Debug, Clone)]
pub(crate) struct ProjectionFacts {
    /// True if it names whole top-level fields only.
    pub simple: bool,
    /// The paths that it keeps, if it is an inclusion.
    pub required: Option<Vec<String>>,
    /// The top-level fields that it removes, if it is an exclusion.
    excluded: Vec<String>,
}

impl ProjectionFacts {
    /// Reads a projection that `mql` has accepted.
    pub fn new(projection: Doc<'_>) -> Self {
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
                    _ => {
                        includes |= !is_find_operator(value);
                        facts.simple = false;
                        facts.required = None;
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
            required.push(path.to_owned());
        }
    }

    /// Returns true if the keys of the scan have everything that the projection keeps.
    pub fn covered_by(&self, scan: &IndexScan) -> bool {
        let Some(required) = &self.required else { return false };
        required.iter().all(|path| scan.field(path).is_some_and(|field| scan.gives_value(field)))
    }

    /// Returns true if the projection does not change the first field of a sort path.
    pub fn retains(&self, sort_path: &str) -> bool {
        match &self.required {
            Some(required) => required.iter().any(|path| path == top(sort_path)),
            None => self.simple && !self.excluded.iter().any(|path| path == top(sort_path)),
        }
    }

    /// Puts the projection above a node; below a sort if the result is the same and the projection
    /// `sinks`.
    pub fn apply(&self, node: Node, spec: &Arc<Reshape>, sinks: bool) -> Node {
        let covered = node.only_index().is_some_and(|scan| self.covered_by(scan));
        let inclusion = self.excluded.iter().all(|path| path == "_id") && self.simple;
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

    fn push_down(&self, node: Node, kind: ProjectionKind, spec: &Arc<Reshape>) -> Node {
        let project = |input: Box<Node>| Node::Projection { kind, spec: Arc::clone(spec), input };
        if kind != ProjectionKind::Simple {
            return project(Box::new(node));
        }
        let fits = |pattern: Doc<'_>| pattern.fields().all(|(path, _)| self.retains(path));
        match node {
            Node::Sort { pattern, limit, simple: true, input }
                if fits(pattern.to_bson().as_doc()) =>
            {
                let input = Box::new(project(input));
                Node::Sort { pattern, limit, simple: true, input }
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

/// Returns true for `$slice` and `$elemMatch`: alone they do not make a projection an inclusion.
fn is_find_operator(value: Value<'_>) -> bool {
    matches!(value, Value::Document(doc)
        if doc.first().is_some_and(|first| first.key() == "$slice"))
}
