//! An accumulator of a stage: its argument for each document, and the constructor of its states.

use super::ranked::Ranking;
use super::registry::{Accumulator, Make, Parsed, find_accumulator, not_unary};
use super::table::States;
use super::{State, StringOrder, Table};
use crate::column::Column;
use crate::context::{Collator, EvalContext, ParseContext};
use crate::expression::{Batch, Dependencies, Expression, ExpressionNode, Extractor};
use crate::sort::SortPattern;
use quire_document::{Doc, DocBuf, DocWriter, Value};
use quire_error::{Error, ErrorCode, Result};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// Up to this number of accumulators, each of a few nodes, the interrupt is not checked between
/// them.
const FREE_EXPRESSIONS: usize = 8;

/// The argument of an accumulator, evaluated for each document.
#[derive(Debug)]
pub enum Argument {
    /// The value of one expression.
    One(Expression),
    /// Sort keys and an output expression (for `$top` and similar accumulators).
    Ranked(Ranking),
}

/// The documents of a group that an accumulator reads: the first ones in an order, or the last ones.
#[derive(Debug, Clone, Copy)]
pub struct Picked<'s> {
    /// The accumulator's own order; `None` for the order in which the documents come.
    pub sort: Option<&'s SortPattern>,
    /// True for the last documents of the order.
    pub is_last: bool,
    /// The number of documents.
    pub count: u64,
}

/// A parsed accumulator.
pub struct AccumulatorSpec {
    accumulator: &'static Accumulator,
    argument: Argument,
    n: Option<Expression>,
    make: Make,
    /// The accumulator as the user wrote it, for example `{$sum: ...}`.
    source: DocBuf,
}

impl AccumulatorSpec {
    /// Parses an accumulator such as `{$sum: "$x"}` for the output field `field`.
    pub fn parse(field: &str, spec: Value<'_>, cx: &ParseContext) -> Result<Self> {
        let Value::Document(spec) = spec else { return Err(not_an_object(field)) };
        let Some(first) = spec.first().filter(|first| first.key().starts_with('$')) else {
            return Err(not_an_object(field));
        };
        if spec.count() > 1 {
            let message = format!("The field '{field}' must specify one accumulator");
            return Err(Error::location(40238, message));
        }
        if first.value().as_array().is_some() {
            return Err(not_unary(first.key()));
        }
        if first.key() == "$accumulator" {
            return Err(Error::not_built("$accumulator (server-side JavaScript)"));
        }
        let Some(accumulator) = find_accumulator(first.key()) else {
            let message = format!("unknown group operator '{}'", first.key());
            return Err(Error::location(15952, message));
        };
        let Parsed { argument, n, make } = accumulator.parsed(first.value(), cx)?;
        Ok(AccumulatorSpec { accumulator, argument, n, make, source: spec.to_owned() })
    }

    /// Returns the accumulator's name with the dollar sign.
    pub fn name(&self) -> &'static str {
        self.accumulator.name
    }

    /// Returns the argument.
    pub fn argument(&self) -> &Argument {
        &self.argument
    }

    /// Returns the expression if the argument is a single one.
    pub fn expression(&self) -> Option<&Expression> {
        match &self.argument {
            Argument::One(expression) => Some(expression),
            Argument::Ranked(_) => None,
        }
    }

    /// Returns which documents of a group suffice for the result; `None` if all of them count, or if their number
    /// depends on the group.
    pub fn picked(&self) -> Option<Picked<'_>> {
        let is_last = match self.name() {
            "$first" | "$firstN" | "$top" | "$topN" => false,
            "$last" | "$lastN" | "$bottom" | "$bottomN" => true,
            _ => return None,
        };
        let sort = match &self.argument {
            Argument::One(_) => None,
            Argument::Ranked(ranking) => Some(&**ranking.sort()),
        };
        let count = match &self.n {
            None => 1,
            Some(n) => match n.node() {
                ExpressionNode::Constant(n) => match n.as_value() {
                    Value::Int32(n) => u64::try_from(n).ok()?,
                    Value::Int64(n) => u64::try_from(n).ok()?,
                    _ => return None,
                },
                _ => return None,
            },
        };
        (count > 0).then_some(Picked { sort, is_last, count })
    }

    /// Assigns slots of an extractor to the paths of the expression.
    pub fn attach(&mut self, extractor: &mut Extractor) {
        if let Argument::One(expression) = &mut self.argument {
            extractor.attach(expression);
        }
    }

    /// Makes the expression a checkpoint if the stage has more than a few accumulators (`count`),
    /// because together they could take long on one large document.
    pub fn guard_one_of(&mut self, count: usize) {
        if let (Argument::One(expression), true) = (&mut self.argument, count > FREE_EXPRESSIONS) {
            expression.guard();
        }
    }

    /// Returns a new state for the group with this key. (`n` may depend on the key.)
    pub fn new_state(&self, key: Value<'_>, cx: &EvalContext<'_>) -> Result<Box<dyn State>> {
        let n = self.n(key, cx)?;
        Ok((self.make)(n, StringOrder(cx.shared.collator.clone())))
    }

    /// Returns the n of the group with this key; 0 for an accumulator without n.
    pub fn n(&self, key: Value<'_>, cx: &EvalContext<'_>) -> Result<usize> {
        let Some(n) = &self.n else { return Ok(0) };
        let root = cx.copy(key)?.as_document().unwrap_or(Doc::empty());
        super::n_values::evaluate_n(n, &cx.with_root(root))
    }

    /// Returns a table for the states of many groups.
    pub fn new_table(&self, collator: Option<Arc<dyn Collator>>) -> Box<dyn Table> {
        let collation = StringOrder(collator);
        match self.accumulator.table {
            Some(table) => table(collation),
            None => {
                let make = Arc::clone(&self.make);
                Box::new(States::new(move |n| make(n, collation.clone())))
            }
        }
    }

    /// Returns true if every value is accepted without an error.
    pub fn is_infallible(&self) -> bool {
        self.accumulator.table.is_some()
    }

    /// Evaluates the argument for the document `cx.root`.
    pub fn value<'a>(&'a self, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
        match &self.argument {
            Argument::One(expression) => {
                expression.eval(cx).map_err(|error| in_group(error, expression))
            }
            Argument::Ranked(ranking) => ranking.eval(cx).map(Some),
        }
    }

    /// Like `value`, but with the error codes of stages other than `$group`.
    pub fn plain_value<'a>(&'a self, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
        match &self.argument {
            Argument::One(expression) => expression.eval(cx),
            Argument::Ranked(ranking) => ranking.eval(cx).map(Some),
        }
    }

    /// Evaluates the argument for the documents of a batch.
    ///
    /// # Errors
    /// Fails if any document has an error, but not necessarily with the error of the first such
    /// document.
    pub fn column<'a>(
        &'a self,
        batch: &'a Batch<'a>,
        cx: &EvalContext<'a>,
    ) -> Result<Cow<'a, Column<'a>>> {
        match &self.argument {
            Argument::One(expression) => expression.columns(batch, cx),
            Argument::Ranked(_) => batch.each(cx, |cx| self.value(cx)).map(Cow::Owned),
        }
    }

    /// Adds the document `cx.root` to the state.
    #[inline]
    pub fn add(&self, state: &mut dyn State, cx: &EvalContext<'_>) -> Result<()> {
        state.add(self.value(cx)?)
    }

    /// Adds the fields that the argument and `n` read to `needed`.
    pub fn add_dependencies(&self, needed: &mut Dependencies) {
        match &self.argument {
            Argument::One(expression) => expression.add_dependencies(needed),
            Argument::Ranked(ranking) => ranking.add_dependencies(needed),
        }
        if let Some(n) = &self.n {
            needed.add_without_root(n);
        }
    }

    /// Appends the accumulator, for example `{$sum: ...}`, as the field `field`.
    pub fn serialize(&self, field: &str, writer: &mut DocWriter<'_>) {
        match (&self.argument, &self.n) {
            (Argument::One(expression), None) if self.name() != "$count" => {
                let mut inner = writer.document(field);
                inner.append(self.name(), &expression.to_bson());
            }
            _ => {
                writer.append(field, &self.source);
            }
        }
    }
}

/// Replaces the error code of a division by zero, because mongod runs `$group` in an engine with
/// different codes.
pub(crate) fn in_group(error: Error, expression: &Expression) -> Error {
    let number = match error.code() {
        ErrorCode::BadValue if calls(expression, "$divide") => 4848401,
        code if code.number() == 16610 => 4848403,
        _ => return error,
    };
    Error::location(number, error.message())
}

/// Replaces an error code by the one of stages other than `$group`.
pub(crate) fn outside_group(error: Error) -> Error {
    let number = match error.code().number() {
        5911200 => 40400,
        7548606 => 5787908,
        _ => return error,
    };
    Error::location(number, error.message())
}

fn calls(expression: &Expression, name: &str) -> bool {
    let mut found = matches!(expression.node(), ExpressionNode::Call(call) if call.name() == name);
    expression.children(&mut |child| found |= calls(child, name));
    found
}

fn not_an_object(field: &str) -> Error {
    Error::location(40234, format!("The field '{field}' must be an accumulator object"))
}

impl fmt::Debug for AccumulatorSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.fmt(f)
    }
}
