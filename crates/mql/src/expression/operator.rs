//! The type of the registry's rows: an operator's name, arguments, function and documentation.

use super::batch::Batch;
use super::tree::{Expression, ExpressionNode};
use crate::column::Column;
use crate::context::{EvalContext, ParseContext};
use quire_document::Value;
use quire_error::Result;
use std::fmt;

/// An expression operator.
pub struct Operator {
    /// The name with the dollar sign.
    pub name: &'static str,
    /// The MongoDB version that introduced it.
    pub since: &'static str,
    /// One sentence for COMPATIBILITY.md.
    pub doc: &'static str,
    /// The number of arguments, or their names.
    pub arity: Arity,
    /// The functions that parse and evaluate it.
    pub run: Run,
    /// Evaluates a call for all rows of a batch, where that is faster than row by row.
    pub columns: Option<ColumnsFn>,
    /// True if the result differs from call to call, so that it is never folded.
    pub volatile: bool,
    /// True if constant arguments are evaluated only when a document is read, so that it is never
    /// folded.
    pub unfolded: bool,
    /// True if it is part of the stable API (allowed with `apiStrict`).
    pub stable: bool,
    /// The truth of a constant argument that alone determines the result (`$and`: false).
    pub decided_by: Option<bool>,
    /// True if it has a result for all values, so that it fails only if an argument does.
    pub total: bool,
    /// True if constant arguments are moved behind the others, as mongod does for an operator whose
    /// result does not depend on the order. Of equal numbers of different types, the first counts.
    pub constants_last: bool,
}

/// The arguments that an operator accepts.
#[derive(Clone, Copy)]
pub enum Arity {
    /// Any number of arguments.
    Any,
    /// Exactly this number (error 16020 otherwise).
    Exactly(usize),
    /// At least the first and at most the second number (error 28667 otherwise).
    Between(usize, usize),
    /// At least the first number; the second number is the error code otherwise.
    AtLeast(usize, i32),
    /// An object with named arguments.
    Named(&'static Fields),
    /// The operator's parser checks the arguments.
    Special,
}

/// The named arguments of an operator. Argument `i` of a call is field `i`. For a field that was
/// not given it is `ExpressionNode::Absent`.
pub struct Fields {
    /// The fields, in the order of the call's arguments.
    pub fields: &'static [Field],
    /// The error code if the argument is not an object.
    pub not_object: i32,
    /// The error code if the object has an unknown field.
    pub unknown: i32,
}

/// A named argument.
pub struct Field {
    /// The name of the argument.
    pub name: &'static str,
    /// The error code if it is missing; 0 if it is optional.
    pub missing: i32,
}

impl Field {
    /// Returns a required field; `code` is the error if it is missing.
    pub const fn required(name: &'static str, code: i32) -> Self {
        Field { name, missing: code }
    }

    /// Returns an optional field.
    pub const fn optional(name: &'static str) -> Self {
        Field { name, missing: 0 }
    }
}

/// Evaluates a call: `None` is a missing result.
pub type RunFn = for<'a> fn(&'a Call, &EvalContext<'a>) -> Result<Option<Value<'a>>>;

/// Evaluates a call for all rows of a batch; `None` if it must be evaluated row by row.
pub type ColumnsFn =
    for<'a> fn(&'a Call, &'a Batch<'a>, &EvalContext<'a>) -> Result<Option<Column<'a>>>;

/// Parses an operator's whole argument into a tree.
pub type ParseFn = fn(&'static Operator, Value<'_>, &ParseContext) -> Result<Expression>;

/// Checks the constant arguments of a call, after parsing and before folding.
pub type CheckFn = fn(&Call) -> Result<()>;

/// The functions that parse and evaluate an operator.
#[derive(Clone, Copy)]
pub enum Run {
    /// The arguments are expressions, and the function evaluates those that it needs.
    Function(RunFn),
    /// A function as above, with a check of the arguments during parsing.
    Checked(CheckFn, RunFn),
    /// The operator has a parser.
    Form(ParseFn),
}

/// An operator with its arguments.
pub struct Call {
    /// The operator that is called.
    pub operator: &'static Operator,
    /// The arguments. Named arguments are in the order of `Fields::fields`.
    pub args: Box<[Expression]>,
    pub(super) run: RunFn,
}

impl Operator {
    /// Returns a row for a function of the arguments.
    pub const fn function(name: &'static str, arity: Arity, run: RunFn) -> Self {
        Operator::new(name, arity, Run::Function(run))
    }

    /// Returns a row for a function of the arguments with a check during parsing.
    pub const fn checked(name: &'static str, arity: Arity, check: CheckFn, run: RunFn) -> Self {
        Operator::new(name, arity, Run::Checked(check, run))
    }

    /// Returns a row for an operator with a parser.
    pub const fn form(name: &'static str, parse: ParseFn) -> Self {
        Operator::new(name, Arity::Special, Run::Form(parse))
    }

    const fn new(name: &'static str, arity: Arity, run: Run) -> Self {
        Operator {
            name,
            since: "2.2",
            doc: "",
            arity,
            run,
            columns: None,
            volatile: false,
            unfolded: false,
            stable: true,
            decided_by: None,
            total: false,
            constants_last: false,
        }
    }

    /// Sets the version that introduced the operator.
    pub const fn since(mut self, version: &'static str) -> Self {
        self.since = version;
        self
    }

    /// Sets the sentence of documentation.
    pub const fn doc(mut self, text: &'static str) -> Self {
        self.doc = text;
        self
    }

    /// Sets the function that evaluates a call for all rows of a batch.
    pub const fn columns(mut self, columns: ColumnsFn) -> Self {
        self.columns = Some(columns);
        self
    }

    /// Marks the operator as volatile, so that it is never folded.
    pub const fn volatile(mut self) -> Self {
        self.volatile = true;
        self
    }

    /// Marks the operator as evaluated for every document, whatever its arguments are.
    pub const fn unfolded(mut self) -> Self {
        self.unfolded = true;
        self
    }

    /// Marks the operator as decided by a constant argument with this truth.
    pub const fn decided_by(mut self, truth: bool) -> Self {
        self.decided_by = Some(truth);
        self
    }

    /// Marks the operator as one with a result for all values.
    pub const fn total(mut self) -> Self {
        self.total = true;
        self
    }

    /// Marks the operator as one that takes its constant arguments last.
    pub const fn constants_last(mut self) -> Self {
        self.constants_last = true;
        self
    }

    /// Marks the operator as not part of the stable API.
    pub const fn unstable(mut self) -> Self {
        self.stable = false;
        self
    }
}

impl Call {
    /// Returns the operator's name.
    pub fn name(&self) -> &'static str {
        self.operator.name
    }

    /// Evaluates argument `index`. Returns `None` if it is missing or was not given.
    #[inline]
    pub fn eval<'a>(&'a self, index: usize, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
        match self.args.get(index) {
            Some(arg) => arg.eval(cx),
            None => Ok(None),
        }
    }

    /// Returns argument `index`, if it was given.
    pub fn arg(&self, index: usize) -> Option<&Expression> {
        self.args.get(index).filter(|arg| !matches!(arg.node(), ExpressionNode::Absent))
    }

    /// Returns true if argument `index` was given.
    pub fn has(&self, index: usize) -> bool {
        self.arg(index).is_some()
    }

    /// Returns the value of argument `index`, if it is a constant.
    pub fn constant(&self, index: usize) -> Option<Value<'_>> {
        self.arg(index).and_then(Expression::as_constant)
    }

    pub(super) fn evaluate<'a>(&'a self, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
        (self.run)(self, cx)
    }
}

impl fmt::Debug for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.operator.name)?;
        f.debug_list().entries(self.args.iter()).finish()
    }
}
