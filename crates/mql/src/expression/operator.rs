//! A row of the registry: an operator's name, shape, run function and documentation.

use super::tree::{Expression, ExpressionNode};
use crate::context::{EvalContext, ParseContext};
use quire_document::Value;
use quire_error::Result;
use std::fmt;

/// An expression operator.
pub struct Operator {
    /// Its name with the dollar sign.
    pub name: &'static str,
    /// The MongoDB version that introduced it.
    pub since: &'static str,
    /// One sentence for COMPATIBILITY.md.
    pub doc: &'static str,
    /// How many arguments, or which named ones.
    pub arity: Arity,
    /// How it is parsed and run.
    pub run: Run,
    /// The result differs from call to call: never folded.
    pub volatile: bool,
    /// Constant arguments are looked at only where there is a document: never folded.
    pub unfolded: bool,
    /// Part of the stable API (`apiStrict` allows it).
    pub stable: bool,
    /// A constant argument of this truth is the result, whatever the others are (`$and`: false).
    pub decided_by: Option<bool>,
    /// It has a result for any values: it fails only if an argument does.
    pub total: bool,
}

/// The shape of an operator's arguments.
#[derive(Clone, Copy)]
pub enum Arity {
    /// Any number of arguments.
    Any,
    /// Exactly this number; 16020 otherwise.
    Exactly(usize),
    /// At least the first number and at most the second; 28667 otherwise.
    Between(usize, usize),
    /// At least the first number; the second is the code of the error otherwise.
    AtLeast(usize, i32),
    /// An object with named arguments.
    Named(&'static Fields),
    /// The operator's own parser decides.
    Special,
}

/// The named arguments of an operator. Argument `i` of the call is field `i`; one that was not
/// given is `ExpressionNode::Absent`.
pub struct Fields {
    /// The fields, in the order of the call's arguments.
    pub fields: &'static [Field],
    /// The code when the argument is not an object.
    pub not_object: i32,
    /// The code when the object has another field.
    pub unknown: i32,
}

/// One named argument.
pub struct Field {
    /// The name of the operator.
    pub name: &'static str,
    /// The code when it is missing; 0 for an optional one.
    pub missing: i32,
}

impl Field {
    /// A field that must be given; `code` answers its absence.
    pub const fn required(name: &'static str, code: i32) -> Self {
        Field { name, missing: code }
    }

    /// A field that may be left out.
    pub const fn optional(name: &'static str) -> Self {
        Field { name, missing: 0 }
    }
}

/// Evaluates a call: `None` is a missing result.
pub type RunFn = for<'a> fn(&'a Call, &EvalContext<'a>) -> Result<Option<Value<'a>>>;

/// Parses an operator's whole argument into a tree.
pub type ParseFn = fn(&'static Operator, Value<'_>, &ParseContext) -> Result<Expression>;

/// Looks at a freshly parsed call, before folding: further checks of constants.
pub type CheckFn = fn(&Call) -> Result<()>;

/// How an operator is parsed and run.
#[derive(Clone, Copy)]
pub enum Run {
    /// Arguments are expressions; the function evaluates those it needs.
    Function(RunFn),
    /// The same, with a check of the arguments at parse time.
    Checked(CheckFn, RunFn),
    /// It has a parser of its own.
    Form(ParseFn),
}

/// An operator with its arguments.
pub struct Call {
    /// The operator that is called.
    pub operator: &'static Operator,
    /// Its arguments; for named ones in the order of `Fields::fields`.
    pub args: Box<[Expression]>,
    pub(super) run: RunFn,
}

impl Operator {
    /// A function of its arguments.
    pub const fn function(name: &'static str, arity: Arity, run: RunFn) -> Self {
        Operator::new(name, arity, Run::Function(run))
    }

    /// A function of its arguments with a check at parse time.
    pub const fn checked(name: &'static str, arity: Arity, check: CheckFn, run: RunFn) -> Self {
        Operator::new(name, arity, Run::Checked(check, run))
    }

    /// An operator with a parser of its own.
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
            volatile: false,
            unfolded: false,
            stable: true,
            decided_by: None,
            total: false,
        }
    }

    /// The same, introduced in `version`.
    pub const fn since(mut self, version: &'static str) -> Self {
        self.since = version;
        self
    }

    /// The same with its sentence of documentation.
    pub const fn doc(mut self, text: &'static str) -> Self {
        self.doc = text;
        self
    }

    /// The same, never folded.
    pub const fn volatile(mut self) -> Self {
        self.volatile = true;
        self
    }

    /// The same, run for every document whatever its arguments are.
    pub const fn unfolded(mut self) -> Self {
        self.unfolded = true;
        self
    }

    /// The same, with its result decided by a constant argument of that truth.
    pub const fn decided_by(mut self, truth: bool) -> Self {
        self.decided_by = Some(truth);
        self
    }

    /// The same, with a result for any values.
    pub const fn total(mut self) -> Self {
        self.total = true;
        self
    }

    /// The same, outside the stable API.
    pub const fn unstable(mut self) -> Self {
        self.stable = false;
        self
    }
}

impl Call {
    /// The operator's name.
    pub fn name(&self) -> &'static str {
        self.operator.name
    }

    /// Evaluates argument `index`; missing where it was not given.
    #[inline]
    pub fn eval<'a>(&'a self, index: usize, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
        match self.args.get(index) {
            Some(arg) => arg.eval(cx),
            None => Ok(None),
        }
    }

    /// Argument `index`, if it was given.
    pub fn arg(&self, index: usize) -> Option<&Expression> {
        self.args.get(index).filter(|arg| !matches!(arg.node(), ExpressionNode::Absent))
    }

    /// True if argument `index` was given.
    pub fn has(&self, index: usize) -> bool {
        self.arg(index).is_some()
    }

    /// The value of argument `index` if it is a constant.
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
