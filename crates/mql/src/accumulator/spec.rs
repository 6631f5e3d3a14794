//! One accumulator of a stage: what it is given for each document, and how its states are made.

use super::ranked::Ranking;
use super::registry::{Accumulator, Make, Parsed, find_accumulator, not_unary};
use super::table::States;
use super::{Collation, State, Table};
use crate::context::{Collator, EvalContext, ParseContext};
use crate::expression::{Batch, Column, Dependencies, Expression, ExpressionNode, Extractor};
use quire_document::{Doc, DocBuf, DocWriter, Value};
use quire_error::{Error, ErrorCode, Result};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// So many accumulators, each of a few nodes, do without a look at the interrupt.
const FREE_EXPRESSIONS: usize = 8;

/// What an accumulator is given for each document.
#[derive(Debug)]
pub enum Argument {
    /// The value of one expression.
    One(Expression),
    /// The values of sort keys and of an output expression (`$top` and its like).
    Ranked(Ranking),
}

/// A parsed accumulator.
pub struct AccumulatorSpec {
    accumulator: &'static Accumulator,
    argument: Argument,
    n: Option<Expression>,
    make: Make,
    /// `{$sum: ...}` as it was written.
    source: DocBuf,
}

impl AccumulatorSpec {
    /// Parses `{$sum: "$x"}`, the accumulator of the output field `field`.
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

    /// The accumulator's name with the dollar sign.
    pub fn name(&self) -> &'static str {
        self.accumulator.name
    }

    /// What it is given for each document.
    pub fn argument(&self) -> &Argument {
        &self.argument
    }

    /// The one expression that it is given, if that is all.
    pub fn expression(&self) -> Option<&Expression> {
        match &self.argument {
            Argument::One(expression) => Some(expression),
            Argument::Ranked(_) => None,
        }
    }

    /// Gives the paths of its expression slots of an extractor.
    pub fn attach(&mut self, extractor: &mut Extractor) {
        if let Argument::One(expression) = &mut self.argument {
            extractor.attach(expression);
        }
    }

    /// Makes a checkpoint of its expression if the stage has more than a few accumulators (`count`):
    /// together they could work on one large document for long.
    pub fn guard_one_of(&mut self, count: usize) {
        if let (Argument::One(expression), true) = (&mut self.argument, count > FREE_EXPRESSIONS) {
            expression.guard();
        }
    }

    /// A state for the group with this key (`n` may depend on it).
    pub fn new_state(&self, key: Value<'_>, cx: &EvalContext<'_>) -> Result<Box<dyn State>> {
        let n = self.n(key, cx)?;
        Ok((self.make)(n, Collation(cx.shared.collator.clone())))
    }

    /// How many values the state of the group with this key keeps; 0 where it keeps no n.
    pub fn n(&self, key: Value<'_>, cx: &EvalContext<'_>) -> Result<usize> {
        let Some(n) = &self.n else { return Ok(0) };
        let root = cx.copy(key)?.as_document().unwrap_or(Doc::empty());
        super::n_values::evaluate_n(n, &cx.with_root(root))
    }

    /// A table for the states of many groups.
    pub fn new_table(&self, collator: Option<Arc<dyn Collator>>) -> Box<dyn Table> {
        let collation = Collation(collator);
        match self.accumulator.table {
            Some(table) => table(collation),
            None => {
                let make = Arc::clone(&self.make);
                Box::new(States::new(move |n| make(n, collation.clone())))
            }
        }
    }

    /// True if it takes any value without an error.
    pub fn is_infallible(&self) -> bool {
        self.accumulator.table.is_some()
    }

    /// What the document `cx.root` gives it.
    pub fn value<'a>(&'a self, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
        match &self.argument {
            Argument::One(expression) => {
                expression.eval(cx).map_err(|error| in_group(error, expression))
            }
            Argument::Ranked(ranking) => ranking.eval(cx).map(Some),
        }
    }

    /// As `value`, with the codes that errors have outside of a `$group`.
    pub fn plain_value<'a>(&'a self, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
        match &self.argument {
            Argument::One(expression) => expression.eval(cx),
            Argument::Ranked(ranking) => ranking.eval(cx).map(Some),
        }
    }

    /// What the documents of a batch give it.
    ///
    /// # Errors
    /// Some error if any document has one, not necessarily that of the first.
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

    /// Gives the state the document `cx.root`.
    #[inline]
    pub fn add(&self, state: &mut dyn State, cx: &EvalContext<'_>) -> Result<()> {
        state.add(self.value(cx)?)
    }

    /// Adds what it reads of a document, and what its `n` depends on, to `needed`.
    pub fn add_dependencies(&self, needed: &mut Dependencies) {
        match &self.argument {
            Argument::One(expression) => expression.add_dependencies(needed),
            Argument::Ranked(ranking) => ranking.add_dependencies(needed),
        }
        if let Some(n) = &self.n {
            needed.add_without_root(n);
        }
    }

    /// Appends `{$sum: ...}` as the field `field`.
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

/// mongod runs `$group` in an engine that has codes of its own for division by zero.
pub(crate) fn in_group(error: Error, expression: &Expression) -> Error {
    let number = match error.code() {
        ErrorCode::BadValue if calls(expression, "$divide") => 4848401,
        code if code.number() == 16610 => 4848403,
        _ => return error,
    };
    Error::location(number, error.message())
}

/// The error of an accumulator in another stage than `$group`, where mongod has other codes.
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
