//! `$expr`: an aggregation expression as a condition.

use super::node::Node;
use super::parse::{Level, Parser};
use super::registry::{Operator, Parse};
use crate::context::{Collator, EvalContext};
use crate::expression::{Expression, Extractor, is_true};
use quire_document::{Doc, Value};
use quire_error::{Error, ErrorCode, Result};
use std::fmt;
use std::sync::Arc;

/// The row of this operator.
pub(super) const OPERATORS: &[Operator] = &[Operator {
    name: "$expr",
    parse: Parse::Top(parse),
    doc: "Matches documents for which an aggregation expression is true.",
    since: "3.6",
}];

/// A compiled `$expr`.
#[derive(Clone)]
pub struct ExprTest {
    compiled: Arc<Compiled>,
    collator: Option<Arc<dyn Collator>>,
}

struct Compiled {
    expression: Expression,
    /// Its paths, to be taken from a document at once.
    extractor: Extractor,
}

impl ExprTest {
    /// The expression.
    pub fn expression(&self) -> &Expression {
        &self.compiled.expression
    }

    /// The collation that its strings compare by.
    pub(super) fn collator(&self) -> Option<&Arc<dyn Collator>> {
        self.collator.as_ref()
    }

    /// True if the expression's value is true for the document.
    pub(super) fn test(&self, doc: Doc<'_>, cx: &EvalContext<'_>) -> Result<bool> {
        let Compiled { expression, extractor } = &*self.compiled;
        let cx = extractor.context(&narrow(cx).with_root(doc))?;
        Ok(is_true(expression.eval(&cx)?))
    }
}

impl fmt::Debug for ExprTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.compiled.expression.fmt(f)
    }
}

/// The same context for a shorter time.
fn narrow<'s>(cx: &EvalContext<'s>) -> EvalContext<'s> {
    *cx
}

fn parse(parser: &Parser<'_>, value: Value<'_>) -> Result<Option<Node>> {
    if parser.level == Level::Element {
        let text = "$expr can only be applied to the top-level document";
        return Err(Error::bad_value(text));
    }
    if !parser.features.expr {
        let text = "$expr is not allowed in this context";
        return Err(Error::new(ErrorCode::QueryFeatureNotAllowed, text));
    }
    let mut expression = Expression::parse(value, parser.context)?;
    let mut extractor = Extractor::default();
    extractor.attach(&mut expression);
    let (compiled, collator) = (Arc::new(Compiled { expression, extractor }), parser.collator());
    Ok(Some(Node::Expr(ExprTest { compiled, collator })))
}
