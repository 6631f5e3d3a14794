//! The filter of a partial index: which documents are in it.

use std::sync::Arc;

use quire_document::{Doc, DocBuf, Value};
use quire_error::{Error, ErrorCode, Result};
use quire_mql::collation::{Collation, as_collator};
use quire_mql::filter::{Features, Filter, Node, Test};
use quire_mql::{EvalContext, ParseContext};

use crate::debug_doc;

/// A compiled `partialFilterExpression`.
#[derive(Debug)]
pub struct PartialFilter {
    filter: Filter,
    /// The top-level fields that it reads; `None` if it may read any.
    heads: Option<Vec<String>>,
}

impl PartialFilter {
    /// Compiles the filter, or answers 67 CannotCreateIndex for what a partial index cannot have
    /// (negations, regular expressions, tests of arrays), 224 and 2 for what does not belong
    /// into it at all.
    ///
    /// `collation` is how the filter compares strings.
    pub fn parse(doc: Doc<'_>, collation: Option<&Arc<Collation>>) -> Result<Self> {
        let mut context = ParseContext::default();
        context.collator = as_collator(collation);
        context.no_clock = true;
        refuse_whole_document(doc)?;
        check(Filter::parse_exact(doc, &context, Features::PARTS)?.root())?;
        let filter = Filter::parse_with(doc, &context, Features::PARTS)?;
        let heads = filter.paths().map(|paths| {
            paths.iter().map(|path| path.split('.').next().unwrap_or_default().to_owned()).collect()
        });
        Ok(PartialFilter { filter, heads })
    }

    /// The filter that no document passes: what a filter is that is stored and cannot be read.
    pub(crate) fn none() -> Self {
        PartialFilter { filter: Filter::from_node(Node::Always(false)), heads: Some(Vec::new()) }
    }

    /// Returns the condition, which the planner compares with a filter.
    pub fn condition(&self) -> &Node {
        self.filter.root()
    }

    /// Whether the document is in the index.
    pub fn matches(&self, doc: Doc<'_>, context: &EvalContext<'_>) -> Result<bool> {
        self.filter.matches(doc, context)
    }

    /// Bytes that are equal for filters that differ only in the order of their conditions.
    pub fn signature(&self) -> Vec<u8> {
        signature(self.filter.root())
    }

    /// The top-level fields whose change can change the answer; `None` for all.
    pub fn heads(&self) -> Option<&[String]> {
        self.heads.as_deref()
    }
}

fn signature(node: &Node) -> Vec<u8> {
    let tag = match node {
        Node::And(_) => b'&',
        Node::Or(_) => b'|',
        other => return other.to_bson().into_bytes(),
    };
    let mut parts: Vec<Vec<u8>> = node.children().iter().map(signature).collect();
    parts.sort();
    let mut all = vec![tag];
    for part in parts {
        all.extend_from_slice(&(part.len() as u32).to_be_bytes());
        all.extend_from_slice(&part);
    }
    all
}

/// `$text` and `$where` are refused with another code than `$expr`.
fn refuse_whole_document(doc: Doc<'_>) -> Result<()> {
    for (name, value) in doc.fields() {
        match (name, value) {
            ("$text" | "$where", _) => {
                return Err(Error::bad_value(format!("{name} is not allowed in this context")));
            }
            ("$and" | "$or" | "$nor", Value::Array(parts)) => {
                parts
                    .iter()
                    .filter_map(|part| part.as_document())
                    .try_for_each(refuse_whole_document)?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn check(node: &Node) -> Result<()> {
    match node {
        Node::And(children) | Node::Or(children) => children.iter().try_for_each(check),
        Node::Path(path) => match &path.test {
            Test::Compare(..) | Test::In(_) | Test::Exists | Test::Type(_) => Ok(()),
            Test::All(tests) if tests.iter().all(|test| matches!(test, Test::Compare(..))) => {
                Ok(())
            }
            _ => Err(unsupported(node.to_bson())),
        },
        _ => Err(unsupported(node.to_bson())),
    }
}

fn unsupported(expression: DocBuf) -> Error {
    Error::new(
        ErrorCode::CannotCreateIndex,
        format!("Expression not supported in partial index: {}", debug_doc(expression.as_doc())),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_document::doc;

    #[test]
    fn accepts_and_refuses_what_mongod_does() {
        let code = |doc: DocBuf| {
            PartialFilter::parse(doc.as_doc(), None).map_or_else(|e| e.code().number(), |_| 0)
        };
        assert_eq!(code(doc! { "x": { "$gt": 1, "$lte": 10 } }), 0);
        assert_eq!(code(doc! { "x": { "$exists": true }, "y": { "$type": [1, "string"] } }), 0);
        assert_eq!(
            code(
                doc! { "$or": [{ "x": 1 }, { "$and": [{ "y": 2 }, { "z": { "$in": [1, 2] } }] }] }
            ),
            0
        );
        assert_eq!(code(doc! { "x": { "$all": [1, 2] } }), 0);
        for refused in [
            doc! { "x": { "$ne": 1 } },
            doc! { "x": { "$nin": [1] } },
            doc! { "x": { "$not": { "$gt": 1 } } },
            doc! { "$nor": [{ "x": 1 }] },
            doc! { "x": { "$regex": "^a" } },
            doc! { "x": { "$size": 1 } },
            doc! { "x": { "$elemMatch": { "y": 1 } } },
            doc! { "x": { "$mod": [2, 0] } },
            doc! { "x": { "$exists": false } },
            doc! { "x": { "$exists": 0 } },
            doc! { "$alwaysTrue": 1 },
        ] {
            assert_eq!(code(refused.clone()), 67, "{refused:?}");
        }
        assert_eq!(code(doc! { "$expr": { "$eq": ["$x", 1] } }), 224);
        assert_eq!(code(doc! { "$text": { "$search": "x" } }), 2);
        assert_eq!(code(doc! { "$and": [] }), 2);
    }
}
