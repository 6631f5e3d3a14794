//! `$expr`: an aggregation expression as a condition.

use super::node::Node;
use super::parse::{Level, Parser};
use super::registry::{Parse, QueryOperator};
use crate::context::{Collator, EvalContext};
use crate::expression::{Expression, Extractor, is_true};
use quire_document::{Doc, Value, ValueBuf, equal};
use quire_error::{Error, ErrorCode, Result};
use std::fmt;
use std::sync::Arc;

/// The registry row of this operator.
pub(super) const OPERATORS: &[QueryOperator] = &[QueryOperator {
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
    /// For a `$in` on a path, to which a collation would apply: the path and the list.
    exact: Option<(Expression, Expression)>,
    /// Extracts the values of the expression's paths from a document in one pass.
    extractor: Extractor,
}

impl ExprTest {
    /// Returns the expression, which must be true.
    pub fn expression(&self) -> &Expression {
        &self.compiled.expression
    }

    /// Returns the collation for comparisons of its strings.
    pub(super) fn collator(&self) -> Option<&Arc<dyn Collator>> {
        self.collator.as_ref()
    }

    /// Returns true if the value of the expression is true for the document.
    pub(super) fn test(&self, doc: Doc<'_>, cx: &EvalContext<'_>) -> Result<bool> {
        let Compiled { expression, exact, extractor } = &*self.compiled;
        let cx = extractor.context(&narrow(cx).with_root(doc))?;
        cx.pass()?;
        Ok(is_true(expression.eval(&cx)?) && holds_exactly(exact.as_ref(), &cx)?)
    }

    /// Returns the value of the expression, which a validator's error shows.
    pub(super) fn result(&self, doc: Doc<'_>, cx: &EvalContext<'_>) -> Result<Option<ValueBuf>> {
        let Compiled { expression, extractor, .. } = &*self.compiled;
        let cx = extractor.context(&narrow(cx).with_root(doc))?;
        Ok(expression.eval(&cx)?.map(ValueBuf::new))
    }
}

impl fmt::Debug for ExprTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.compiled.expression.fmt(f)
    }
}

/// Returns true if the list contains the value of the path, compared without the collation.
fn holds_exactly(exact: Option<&(Expression, Expression)>, cx: &EvalContext<'_>) -> Result<bool> {
    let Some((path, list)) = exact else { return Ok(true) };
    let (Some(value), Some(Value::Array(list))) = (path.eval(cx)?, list.eval(cx)?) else {
        return Ok(false);
    };
    Ok(list.iter().any(|item| equal(item, value, None)))
}

/// Returns the operands of `{$in: ["$path", [...]]}`. MongoDB 8.2 rewrites such an `$expr` to the
/// filter's `$in` without the collation.
fn exact_list(value: Value<'_>, parser: &Parser<'_>) -> Result<Option<(Expression, Expression)>> {
    let Some(Value::Array(operands)) = value.as_document().and_then(only_in) else {
        return Ok(None);
    };
    match (operands.get(0), operands.get(1)) {
        (Some(path @ Value::String(text)), Some(list @ Value::Array(_)))
            if text.starts_with('$') && !text.starts_with("$$") && is_constant(list) =>
        {
            let parse = |value| Expression::parse(value, parser.context);
            Ok(Some((parse(path)?, parse(list)?)))
        }
        _ => Ok(None),
    }
}

/// Returns true for an array of constants.
fn is_constant(list: Value<'_>) -> bool {
    let simple = |item: Value<'_>| match item {
        Value::Document(_) | Value::Array(_) => false,
        Value::String(text) => !text.starts_with('$'),
        _ => true,
    };
    matches!(list, Value::Array(items) if items.iter().all(simple))
}

fn only_in(doc: Doc<'_>) -> Option<Value<'_>> {
    doc.get("$in").filter(|_| doc.count() == 1)
}

/// Returns the context with a shorter lifetime.
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
    let collator = parser.collator();
    let exact = match collator {
        Some(_) => exact_list(value, parser)?,
        None => None,
    };
    let compiled = Arc::new(Compiled { expression, exact, extractor });
    Ok(Some(Node::Expr(ExprTest { compiled, collator })))
}
