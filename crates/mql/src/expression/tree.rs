//! The compiled expression and its evaluation.

use super::batch::Batch;
use super::boolean::is_true;
use super::checkpoints::Checkpoint;
use super::field_path::FieldPath;
use super::operator::Call;
use crate::column::Column;
use crate::context::Folding;
use crate::context::{Binding, EvalContext, ParseContext, Shared};
use bumpalo::Bump;
use quire_document::{ArrayWriter, Doc, DocWriter, Value, ValueBuf};
use quire_error::{Error, Result};
use std::fmt;

/// A compiled expression. `Send + Sync`: any thread may evaluate it, any number of times.
#[derive(Debug)]
pub struct Expression {
    node: ExpressionNode,
}

/// A node of the tree of an expression.
#[derive(Debug)]
pub enum ExpressionNode {
    /// A value that is known during parsing.
    Constant(ValueBuf),
    /// The missing value, known during parsing (`$$REMOVE`, or a folded result).
    Missing,
    /// A path in the root document: `"$a.b"`.
    Path(FieldPath),
    /// A variable, with or without a path: `"$$name"`, `"$$name.a.b"`.
    Variable(Variable),
    /// An object with expressions as values: `{a: ..., b: ...}`.
    Object(Box<[(Box<str>, Expression)]>),
    /// An array with expressions as elements: `[..., ...]`. A missing element becomes null.
    Array(Box<[Expression]>),
    /// An operator that is a function of its arguments.
    Call(Call),
    /// An operator with its own kind of tree.
    Form(Box<dyn Form>),
    /// A named argument that was not given. It evaluates to missing.
    Absent,
    /// A node with a check of the interrupt before it. [`Expression::node`] returns the node
    /// inside.
    Checkpoint(Box<Checkpoint>),
}

/// A variable, and a path in its value.
#[derive(Debug)]
pub struct Variable {
    /// The name without dollar signs.
    pub name: Box<str>,
    /// The meaning of the name.
    pub binding: Binding,
    /// The path after the name, if there is one.
    pub path: Option<FieldPath>,
}

impl Variable {
    /// Returns the variable's value as a constant, if it is known before execution.
    fn known(&self, context: &ParseContext) -> Option<Expression> {
        let (Binding::User(index), None) = (self.binding, &self.path) else { return None };
        let variable = context.variables.get(index)?;
        variable.known.as_ref()?;
        Some(
            variable
                .value()
                .map_or(Expression::from_node(ExpressionNode::Missing), Expression::constant),
        )
    }
}

/// An operator whose tree is more than a list of arguments (`$let`, `$switch`, `$map`, ...).
pub trait Form: Send + Sync + fmt::Debug {
    /// Evaluates the operator; `None` is a missing value.
    fn eval<'a>(&'a self, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>>;

    /// Evaluates the operator for a batch; `None` if it has no implementation for batches.
    fn columns<'a>(
        &'a self,
        batch: &'a Batch<'a>,
        cx: &EvalContext<'a>,
    ) -> Result<Option<Column<'a>>> {
        let _ = (batch, cx);
        Ok(None)
    }

    /// Calls `visit` for all direct subexpressions.
    fn children<'e>(&'e self, visit: &mut dyn FnMut(&'e Expression));

    /// Calls `visit` for all direct subexpressions, to change them. It must visit the same ones as
    /// `children`.
    fn children_mut(&mut self, visit: &mut dyn FnMut(&mut Expression) -> Result<()>) -> Result<()>;

    /// Optimises the subexpressions. May return an expression that replaces this one. An operator
    /// that prunes branches must prune before it optimises them, because folding a pruned branch
    /// may fail.
    fn optimize(&mut self, context: &ParseContext) -> Result<Option<Expression>> {
        self.children_mut(&mut |child| child.optimize(context))?;
        Ok(None)
    }

    /// Writes the fields of the operator's document, `{$op: ...}`, to `writer`.
    fn serialize(&self, writer: &mut DocWriter<'_>);

    /// Returns true if the result may differ from call to call.
    fn is_volatile(&self) -> bool {
        false
    }

    /// Returns the condition and both branches of a `$cond`; `None` for other operators.
    fn branches(&self) -> Option<[&Expression; 3]> {
        None
    }

    /// Returns the kind of metadata that the operator reads (`$meta`).
    fn metadata(&self) -> Option<&str> {
        None
    }
}

impl Expression {
    /// Parses an expression. The outermost call also folds constants, so that errors of constant
    /// operations occur here, as in mongod.
    pub fn parse(value: Value<'_>, context: &ParseContext) -> Result<Expression> {
        super::parse::operand(value, context)?.optimized(context)
    }

    /// Parses `{...}`: an operator, or an object with expressions as values.
    pub fn parse_object(doc: Doc<'_>, context: &ParseContext) -> Result<Expression> {
        super::parse::object(doc, context)?.optimized(context)
    }

    pub(super) fn optimized(mut self, context: &ParseContext) -> Result<Expression> {
        if context.is_outermost() {
            self.optimize(context).map_err(|error| unoptimized(error, context))?;
            self.divide();
        }
        Ok(self)
    }

    /// Returns the expression of a constant.
    pub fn constant<'v>(value: impl Into<Value<'v>>) -> Expression {
        Expression::from_node(ExpressionNode::Constant(ValueBuf::new(value)))
    }

    /// Returns a path in the root document. `dotted` has no dollar sign.
    pub fn path(dotted: &str) -> Result<Expression> {
        Ok(Expression::from_node(ExpressionNode::Path(FieldPath::parse(dotted)?)))
    }

    /// Returns an operator with its own kind of tree.
    pub fn form(form: Box<dyn Form>) -> Expression {
        Expression::from_node(ExpressionNode::Form(form))
    }

    pub(super) const fn from_node(node: ExpressionNode) -> Expression {
        Expression { node }
    }

    /// Returns the top node of the tree.
    pub fn node(&self) -> &ExpressionNode {
        match &self.node {
            ExpressionNode::Checkpoint(checkpoint) => checkpoint.first.node(),
            node => node,
        }
    }

    /// Returns the value, if it is known during parsing. (A missing constant is
    /// `ExpressionNode::Missing`.)
    pub fn as_constant(&self) -> Option<Value<'_>> {
        if let ExpressionNode::Constant(value) = self.node() {
            Some(value.as_value())
        } else {
            None
        }
    }

    /// Returns true if the result, which may be missing, is known during parsing.
    pub fn is_constant(&self) -> bool {
        matches!(
            self.node(),
            ExpressionNode::Constant(_) | ExpressionNode::Missing | ExpressionNode::Absent
        )
    }

    /// Returns true if evaluation may fail for some values. Memory and time limits do not count.
    pub fn can_fail(&self) -> bool {
        let mut fails = match self.node() {
            ExpressionNode::Call(call) => !call.operator.total,
            ExpressionNode::Form(_) | ExpressionNode::Object(_) | ExpressionNode::Array(_) => true,
            _ => false,
        };
        self.children(&mut |child| fails = fails || child.can_fail());
        fails
    }

    /// Evaluates the expression for `cx.root`; `None` is a missing value. The result borrows from
    /// the document, from constants of this expression, or from the arena.
    pub fn eval<'a>(&'a self, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
        match &self.node {
            ExpressionNode::Constant(value) => Ok(Some(value.as_value())),
            ExpressionNode::Missing | ExpressionNode::Absent => Ok(None),
            ExpressionNode::Path(path) => match path.slot.and_then(|slot| cx.extracted(slot)) {
                Some(value) => Ok(value),
                None => path.eval(cx.root, cx),
            },
            ExpressionNode::Variable(variable) => variable.eval(cx),
            ExpressionNode::Call(call) => call.evaluate(cx),
            ExpressionNode::Form(form) => form.eval(cx),
            ExpressionNode::Object(fields) => cx
                .document(|writer| write_object(fields, writer, cx))
                .map(Value::Document)
                .map(Some),
            ExpressionNode::Array(items) => {
                cx.array(|writer| write_array(items, writer, cx)).map(Value::Array).map(Some)
            }
            ExpressionNode::Checkpoint(checkpoint) => checkpoint.eval(cx),
        }
    }

    /// Evaluates the expression and appends the result as a field, unless it is missing. Nested
    /// objects and arrays are written in place.
    pub fn append_to(
        &self,
        key: &str,
        writer: &mut DocWriter<'_>,
        cx: &EvalContext<'_>,
    ) -> Result<()> {
        match self.passed(cx)? {
            ExpressionNode::Object(fields) => write_object(fields, &mut writer.document(key), cx),
            ExpressionNode::Array(items) => write_array(items, &mut writer.array(key), cx),
            _ => {
                writer.append_some(key, self.eval(cx)?);
                Ok(())
            }
        }
    }

    /// Calls `visit` for all direct subexpressions.
    pub fn children<'e>(&'e self, visit: &mut dyn FnMut(&'e Expression)) {
        match self.node() {
            ExpressionNode::Object(fields) => fields.iter().for_each(|(_, field)| visit(field)),
            ExpressionNode::Array(items) => items.iter().for_each(visit),
            ExpressionNode::Call(call) => call.args.iter().for_each(visit),
            ExpressionNode::Form(form) => form.children(visit),
            _ => {}
        }
    }

    /// Calls `visit` for all direct subexpressions, to change them.
    pub fn children_mut(
        &mut self,
        visit: &mut dyn FnMut(&mut Expression) -> Result<()>,
    ) -> Result<()> {
        match self.node_mut() {
            ExpressionNode::Object(fields) => {
                fields.iter_mut().try_for_each(|(_, field)| visit(field))
            }
            ExpressionNode::Array(items) => items.iter_mut().try_for_each(visit),
            ExpressionNode::Call(call) => call.args.iter_mut().try_for_each(visit),
            ExpressionNode::Form(form) => form.children_mut(visit),
            _ => Ok(()),
        }
    }

    pub(super) fn node_mut(&mut self) -> &mut ExpressionNode {
        match &mut self.node {
            ExpressionNode::Checkpoint(checkpoint) => checkpoint.first.node_mut(),
            node => node,
        }
    }

    /// Makes the top node a checkpoint.
    pub(super) fn put_checkpoint(&mut self, make: impl FnOnce(Expression) -> Checkpoint) {
        let absent = Expression::from_node(ExpressionNode::Absent);
        self.node = ExpressionNode::Checkpoint(Box::new(make(std::mem::replace(self, absent))));
    }

    /// Counts the work of a checkpoint, and returns the top node for evaluation by the caller.
    #[inline]
    fn passed(&self, cx: &EvalContext<'_>) -> Result<&ExpressionNode> {
        if let ExpressionNode::Checkpoint(checkpoint) = &self.node {
            checkpoint.pass(cx)?;
        }
        Ok(self.node())
    }

    /// Folds constants, and prunes branches that constants decide. Fails if a constant operation
    /// fails.
    pub fn optimize(&mut self, context: &ParseContext) -> Result<()> {
        if context.no_folding {
            return Ok(());
        }
        context.work()?;
        let replacement = match self.node_mut() {
            ExpressionNode::Form(form) => form.optimize(context)?,
            ExpressionNode::Variable(variable) => variable.known(context),
            _ => {
                self.children_mut(&mut |child| child.optimize(context))?;
                match self.node_mut() {
                    ExpressionNode::Call(call) => {
                        if call.operator.constants_last {
                            call.args.sort_by_key(Expression::is_constant);
                        }
                        decision(call)
                    }
                    _ => None,
                }
            }
        };
        if let Some(replacement) = replacement {
            *self = replacement;
        }
        if !self.is_constant() && self.is_foldable() {
            self.fold(context)?;
        }
        Ok(())
    }

    /// Replaces the operation by its result, unless that exceeds the limits of folding.
    fn fold(&mut self, context: &ParseContext) -> Result<()> {
        if !context.folding.goes_on() {
            return Ok(());
        }
        let mut shared = Shared::default().with_collator(context.collator.clone());
        shared.memory_bytes_max = context.folding.bytes_left();
        let interrupt = context.folding.interrupt(context.interrupt.as_ref());
        let shared = shared.with_interrupt(interrupt);
        let arena = Bump::new();
        let value = match self.eval(&EvalContext::new(&arena, Doc::empty(), &shared)) {
            Ok(value) => value.map(ValueBuf::new),
            Err(error) if Folding::is_exhausted(&error) => return Ok(()),
            Err(error) => return Err(error),
        };
        let bytes = value.as_ref().map_or(0, ValueBuf::size);
        if context.folding.keep(bytes) {
            self.node = value.map_or(ExpressionNode::Missing, ExpressionNode::Constant);
        }
        Ok(())
    }

    fn is_foldable(&self) -> bool {
        match self.node() {
            ExpressionNode::Path(_) | ExpressionNode::Variable(_) => return false,
            ExpressionNode::Call(call) if call.operator.volatile || call.operator.unfolded => {
                return false;
            }
            ExpressionNode::Form(form) if form.is_volatile() || form.metadata().is_some() => {
                return false;
            }
            _ => {}
        }
        let mut constant = true;
        self.children(&mut |child| constant &= child.is_constant());
        constant
    }
}

/// What precedes the error of a constant operation in a pipeline.
const UNOPTIMIZED: &str = "Failed to optimize pipeline";

/// Returns the error of folding a constant.
pub(super) fn unoptimized(error: Error, context: &ParseContext) -> Error {
    let is_told = context.place.is_none() || error.message().starts_with(UNOPTIMIZED);
    if is_told { error } else { error.context(UNOPTIMIZED) }
}

/// Returns the error of parsing the operand of the stage `name`. MongoDB parses a stage before it
/// folds constants, so that the error of a fold does not name the stage.
pub fn of_stage(name: &str, error: Error) -> Error {
    match error.message().starts_with(UNOPTIMIZED) {
        true => error,
        false => error.context(&format!("Invalid {name}")),
    }
}

/// Returns the result, if a constant argument alone determines it.
fn decision(call: &Call) -> Option<Expression> {
    let truth = call.operator.decided_by?;
    let mut constants = call.args.iter().filter(|arg| arg.is_constant());
    let decided = constants.any(|arg| is_true(arg.as_constant()) == truth);
    decided.then(|| Expression::constant(truth))
}

impl Variable {
    fn eval<'a>(&'a self, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
        match (cx.variable(self.binding), &self.path) {
            (Some(value), Some(path)) => path.eval_in(value, cx),
            (value, None) => Ok(value),
            (None, _) => Ok(None),
        }
    }
}

fn write_object(
    fields: &[(Box<str>, Expression)],
    writer: &mut DocWriter<'_>,
    cx: &EvalContext<'_>,
) -> Result<()> {
    fields.iter().try_for_each(|(name, field)| field.append_to(name, writer, cx))
}

fn write_array(
    items: &[Expression],
    writer: &mut ArrayWriter<'_>,
    cx: &EvalContext<'_>,
) -> Result<()> {
    for item in items {
        match item.passed(cx)? {
            ExpressionNode::Object(fields) => write_object(fields, &mut writer.document(), cx)?,
            ExpressionNode::Array(items) => write_array(items, &mut writer.array(), cx)?,
            _ => {
                writer.push(item.eval(cx)?.unwrap_or(Value::Null));
            }
        }
    }
    Ok(())
}
