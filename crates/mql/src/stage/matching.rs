//! `$match`: passes on the documents that match a filter.

use super::facts::{BehindChanges, Facts, InFusion};
use super::registry::StageRow;
use super::{Modified, Needs, Stage, StageBody};
use crate::context::ParseContext;
use crate::expression::Dependencies;
use crate::filter::{Features, Filter, Node};
use quire_document::{Doc, DocWriter, Value};
use quire_error::{Error, Result};
use std::sync::Arc;

pub(super) const MATCH: StageRow = StageRow {
    name: "$match",
    since: "2.2",
    doc: "Passes on the documents that match a filter.",
    facts: Facts {
        in_fusion: InFusion::Selects,
        behind_changes: BehindChanges::Allowed,
        ..Facts::PLAIN
    },
    parse: |_, value, cx| {
        let Value::Document(filter) = value else {
            let message = "the match filter must be an expression in an object";
            return Err(Error::location(15959, message));
        };
        Ok(vec![Stage::Match(Arc::new(Match::new(filter, cx)?))])
    },
};

/// A parsed `$match`.
#[derive(Clone, Debug)]
pub struct Match {
    filter: Filter,
    is_held: bool,
}

impl Match {
    /// Parses a filter.
    pub fn new(filter: Doc<'_>, cx: &ParseContext) -> Result<Self> {
        check_near(filter)?;
        if names(filter, "$where") {
            return Err(Error::bad_value("$where is not allowed in this context"));
        }
        let features = Features { near: false, ..Features::ALL };
        Ok(Match { filter: Filter::parse_with(filter, cx, features)?, is_held: false })
    }

    /// Returns the stage that passes on documents for which all `conditions` are true.
    pub fn all_of(conditions: Vec<Node>) -> Self {
        Match { filter: Filter::all_of(conditions), is_held: false }
    }

    /// Returns the stage with a mark that it must not move before earlier stages.
    pub fn held(self) -> Self {
        Match { is_held: true, ..self }
    }

    /// Returns true if the stage must stay after the stages before it, because they hide documents
    /// from its conditions.
    pub fn is_held(&self) -> bool {
        self.is_held
    }

    /// Returns the filter and consumes the stage.
    pub fn into_filter(self) -> Filter {
        self.filter
    }

    /// Returns the filter.
    pub fn filter(&self) -> &Filter {
        &self.filter
    }
}

impl StageBody for Match {
    fn name(&self) -> &'static str {
        MATCH.name
    }

    fn needs(&self) -> Needs {
        let mut reads = Dependencies::default();
        add_reads(self.filter.root(), &mut reads);
        Needs::reading(reads)
    }

    fn modified(&self) -> Modified {
        Modified::Nothing
    }

    fn streams(&self) -> bool {
        true
    }

    /// Writes the filter in its normalized form.
    fn print(&self, writer: &mut DocWriter<'_>) {
        let condition = self.filter.root().clone().with_implied();
        writer.append("$match", &condition.to_bson());
    }
}

/// Adds the dependencies of a condition, and whether its result may differ from call to call.
fn add_reads(node: &Node, reads: &mut Dependencies) {
    match node {
        Node::Path(node) => {
            reads.paths.insert(node.path.as_str().to_owned());
        }
        Node::Expr(test) => test.expression().add_dependencies(reads),
        Node::JsonSchema(_) => reads.whole_document = true,
        Node::SampleRate(_) => reads.volatile = true,
        Node::Search(_) => reads.whole_document = true,
        Node::Not(inner) => add_reads(inner, reads),
        other => other.children().iter().for_each(|child| add_reads(child, reads)),
    }
}

/// Returns true if the filter names a path such as `a.$b`.
pub(super) fn has_dollar_path(filter: Doc<'_>) -> bool {
    filter.fields().any(|(name, value)| match value {
        Value::Array(parts) if name.starts_with('$') => {
            parts.iter().filter_map(|part| part.as_document()).any(has_dollar_path)
        }
        _ => name.contains(".$"),
    })
}

/// Returns true if a filter has an operator at its top or within `$and`, `$or` and `$nor`.
pub(super) fn names(filter: Doc<'_>, operator: &str) -> bool {
    filter.fields().any(|(name, value)| {
        let inner = value.as_array().filter(|_| name.starts_with('$'));
        name == operator
            || inner.is_some_and(|filters| {
                let mut filters = filters.iter().filter_map(|value| value.as_document());
                filters.any(|filter| names(filter, operator))
            })
    })
}

/// Fails with 5626500 for `$near`, `$nearSphere` and `$geoNear`, which sort documents.
fn check_near(filter: Doc<'_>) -> Result<()> {
    for (name, value) in filter.fields() {
        match value {
            Value::Array(filters) if name.starts_with('$') => {
                let inner = filters.iter().filter_map(|value| value.as_document());
                inner.into_iter().try_for_each(check_near)?;
            }
            Value::Document(operators) if !name.starts_with('$') => {
                let near = ["$near", "$nearSphere", "$geoNear"];
                if near.iter().any(|operator| operators.contains(operator)) {
                    let message = "$geoNear, $near, and $nearSphere are not allowed in this context, as these operators require sorting geospatial data. If you do not need sort, consider using $geoWithin instead.";
                    return Err(Error::location(5626500, message));
                }
            }
            _ => {}
        }
    }
    Ok(())
}
