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

/// The most levels of `$and` and `$or` inside each other in the filter of a new index.
const LEVELS_MAX: usize = 4;

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
        let context = context(collation);
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

    /// Checks the filter of an index that is created.
    ///
    /// # Errors
    /// Those of [`parse`](Self::parse); 67 CannotCreateIndex for more than `LEVELS_MAX` levels of
    /// `$and` and `$or`. An index of an earlier version may have more.
    pub fn check_new(doc: Doc<'_>) -> Result<()> {
        PartialFilter::parse(doc, None)?;
        let exact = Filter::parse_exact(doc, &context(None), Features::PARTS)?;
        if levels(exact.root()) > LEVELS_MAX {
            let text = format!("partialFilterExpression depth may not exceed {LEVELS_MAX}");
            return Err(Error::new(ErrorCode::CannotCreateIndex, text));
        }
        Ok(())
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

    /// Returns bytes that are equal for filters that differ only in the order of their conditions,
    /// and in strings that are equal under `collation`.
    pub fn signature(&self, collation: Option<&Collation>) -> Vec<u8> {
        signature(self.filter.root(), collation)
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

fn context(collation: Option<&Arc<Collation>>) -> ParseContext {
    let mut context = ParseContext::default();
    context.collator = as_collator(collation);
    context.no_clock = true;
    context
}

/// Returns how many levels of `$and` and `$or` a condition has. `$all` is a conjunction.
fn levels(node: &Node) -> usize {
    match node {
        Node::And(parts) | Node::Or(parts) => {
            1 + parts.iter().map(levels).max().unwrap_or_default()
        }
        Node::Path(path) => usize::from(matches!(path.test, Test::All(_))),
        _ => 0,
    }
}

fn signature(node: &Node, collation: Option<&Collation>) -> Vec<u8> {
    let tag = match (node, collation) {
        (Node::And(_), _) => b'&',
        (Node::Or(_), _) => b'|',
        (other, None) => return other.to_bson().into_bytes(),
        (other, Some(collation)) => {
            let shown = collation.hex_value(Value::Document(other.to_bson().as_doc()));
            let shown = shown.as_value().as_document();
            return shown.map(|shown| shown.as_bytes().to_vec()).unwrap_or_default();
        }
    };
    let parts = node.children().iter().map(|part| signature(part, collation));
    let mut parts: Vec<Vec<u8>> = parts.collect();
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
            // `$geoWithin` and `$geoIntersects`.
            Test::Open(_) => Ok(()),
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
        assert_eq!(code(doc! { "x": { "$geoWithin": { "$center": [[0, 0], 5] } } }), 0);
        assert_eq!(code(doc! { "x": { "$near": [0, 0] } }), 5626500);
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

    #[test]
    fn the_filter_of_a_new_index_has_at_most_four_levels() {
        let nested = |levels: usize| {
            let mut filter = doc! { "x": 1 };
            for _ in 0..levels {
                filter = doc! { "$and": [&filter, { "y": 2 }] };
            }
            filter
        };
        assert!(PartialFilter::check_new(nested(4).as_doc()).is_ok());
        let refused = PartialFilter::check_new(nested(5).as_doc()).unwrap_err();
        assert_eq!(refused.code().number(), 67);
        // Such an index of an earlier version is still opened.
        assert!(PartialFilter::parse(nested(5).as_doc(), None).is_ok());
    }

    #[test]
    fn signatures_compare_strings_under_the_collation() {
        let collation = Collation::parse(doc! { "locale": "en", "strength": 2 }.as_doc());
        let collation = collation.unwrap();
        let signature = |text: &str, collation: Option<&Arc<Collation>>| {
            let filter = PartialFilter::parse(doc! { "x": text }.as_doc(), collation).unwrap();
            filter.signature(collation.map(|collation| &**collation))
        };
        assert_eq!(signature("a", collation.as_ref()), signature("A", collation.as_ref()));
        assert_ne!(signature("a", collation.as_ref()), signature("b", collation.as_ref()));
        assert_ne!(signature("a", None), signature("A", None));
    }
}
