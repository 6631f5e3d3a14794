//! The filter of a partial index: only matching documents have entries.

use std::sync::Arc;

use quire_document::{Doc, DocBuf, Value};
use quire_error::{Error, ErrorCode, Result};
use quire_mql::collation::{Collation, as_collator};
use quire_mql::filter::{Features, Filter, Node, Test};
use quire_mql::{EvalContext, ParseContext};

use crate::debug_doc;

/// The most conditions of a partial index. Planning compares them with the conditions of each
/// filter.
const CONDITIONS_MAX: usize = 10_000;

/// The most bytes of a partial index's filter, which is compiled several times during the creation.
const BYTES_MAX: usize = 256 << 10;

/// A compiled `partialFilterExpression`.
#[derive(Debug)]
pub struct PartialFilter {
    filter: Filter,
    /// The top-level fields that the filter reads; `None` if it may read any field.
    heads: Option<Vec<String>>,
}

impl PartialFilter {
    /// Compiles the filter, which compares strings under `collation`.
    ///
    /// # Errors
    /// 67 CannotCreateIndex for an operator that a partial index does not support (negations,
    /// regular expressions, tests of arrays), 224 or 2 for one that no index filter may have.
    pub fn parse(doc: Doc<'_>, collation: Option<&Arc<Collation>>) -> Result<Self> {
        if doc.len() > BYTES_MAX {
            return Err(too_large("256 KiB"));
        }
        let mut context = ParseContext::default();
        context.collator = as_collator(collation);
        context.no_clock = true;
        refuse_whole_document(doc)?;
        let exact = Filter::parse_exact(doc, &context, Features::PARTS)?;
        if exact.root().size() > CONDITIONS_MAX {
            return Err(too_large(&format!("{CONDITIONS_MAX} conditions")));
        }
        check(exact.root())?;
        let filter = Filter::parse_with(doc, &context, Features::PARTS)?;
        let heads = filter.paths().map(|paths| {
            paths.iter().map(|path| path.split('.').next().unwrap_or_default().to_owned()).collect()
        });
        Ok(PartialFilter { filter, heads })
    }

    /// Returns a filter that rejects every document. It replaces a stored filter that cannot be
    /// decoded.
    pub(crate) fn none() -> Self {
        PartialFilter { filter: Filter::from_node(Node::Always(false)), heads: Some(Vec::new()) }
    }

    /// Returns the condition, which the planner compares with a query's filter.
    pub fn condition(&self) -> &Node {
        self.filter.root()
    }

    /// Returns true if the document matches, so that it has entries.
    pub fn matches(&self, doc: Doc<'_>, context: &EvalContext<'_>) -> Result<bool> {
        self.filter.matches(doc, context)
    }

    /// Returns bytes that are equal for filters that differ only in the order of their conditions.
    pub fn signature(&self) -> Vec<u8> {
        signature(self.filter.root())
    }

    /// Returns the top-level fields that the filter depends on; `None` for all fields.
    pub fn heads(&self) -> Option<&[String]> {
        self.heads.as_deref()
    }
}

fn too_large(max: &str) -> Error {
    let text = format!("the filter of a partial index may have at most {max}");
    Error::new(ErrorCode::CannotCreateIndex, text)
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

/// Refuses `$text` and `$where`, with another code than `$expr`.
pub(crate) fn refuse_whole_document(doc: Doc<'_>) -> Result<()> {
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
