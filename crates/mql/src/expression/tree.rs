//! The compiled expression and its evaluation.

use super::batch::Batch;
use super::boolean::is_true;
use super::checkpoints::Checkpoint;
use super::column::Column;
use super::field_path::FieldPath;
use super::folding::Folding;
use super::operator::Call;
use crate::context::{Binding, EvalContext, ParseContext, Shared};
use bumpalo::Bump;
use quire_document::{ArrayWriter, Doc, DocWriter, Value, ValueBuf};
use quire_error::Result;
use std::fmt;

/// A compiled expression. `Send + Sync`, evaluated any number of times, by any thread.
#[derive(Debug)]
pub struct Expression {
    node: ExpressionNode,
}

/// What an expression is made of.
#[derive(Debug)]
pub enum ExpressionNode {
    /// A value known at parse time.
    Constant(ValueBuf),
    /// A missing value known at parse time (`$$REMOVE`, a folded result).
    Missing,
    /// `"$a.b"` on the root document.
    Path(FieldPath),
    /// `"$$name"` or `"$$name.a.b"`.
    Variable(Variable),
    /// `{a: ..., b: ...}`: fields whose values are expressions.
    Object(Box<[(Box<str>, Expression)]>),
    /// `[..., ...]`: elements that are expressions; a missing one becomes null.
    Array(Box<[Expression]>),
    /// An operator that is a function of its arguments.
    Call(Call),
    /// An operator with a tree of its own.
    Form(Box<dyn Form>),
    /// A named argument that was not given; evaluates to missing.
    Absent,
    /// Another node with a look at the interrupt before it; [`Expression::node`] never shows it.
    Checkpoint(Box<Checkpoint>),
}

/// A variable and a path inside it.
#[derive(Debug)]
pub struct Variable {
    /// The name without dollar signs.
    pub name: Box<str>,
    /// What it stands for.
    pub binding: Binding,
    /// The path behind the name, if any.
    pub path: Option<FieldPath>,
}

impl Variable {
    /// The constant that it is, if that is known before anything runs.
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

/// An operator whose tree is not just a list of arguments (`$let`, `$switch`, `$map`, ...).
pub trait Form: Send + Sync + fmt::Debug {
    /// Evaluates it; `None` is missing.
    fn eval<'a>(&'a self, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>>;

    /// Evaluates it for a batch; `None` where it has no way of its own to do so.
    fn columns<'a>(
        &'a self,
        batch: &'a Batch<'a>,
        cx: &EvalContext<'a>,
    ) -> Result<Option<Column<'a>>> {
        let _ = (batch, cx);
        Ok(None)
    }

    /// Visits all direct sub-expressions.
    fn children<'e>(&'e self, visit: &mut dyn FnMut(&'e Expression));

    /// Visits all direct sub-expressions to change them; must visit those of `children`.
    fn children_mut(&mut self, visit: &mut dyn FnMut(&mut Expression) -> Result<()>) -> Result<()>;

    /// Optimises the sub-expressions; may answer an expression that takes this one's place.
    /// An operator that prunes branches does so before it optimises them: what is folded may
    /// fail, what is pruned may not.
    fn optimize(&mut self, context: &ParseContext) -> Result<Option<Expression>> {
        self.children_mut(&mut |child| child.optimize(context))?;
        Ok(None)
    }

    /// Writes the operator's document's fields, `{$op: ...}`, to `writer`.
    fn serialize(&self, writer: &mut DocWriter<'_>);

    /// True if the result may differ from call to call.
    fn is_volatile(&self) -> bool {
        false
    }

    /// The kind of metadata it reads (`$meta`).
    fn metadata(&self) -> Option<&str> {
        None
    }
}

impl Expression {
    /// Parses a value that stands where an expression may stand. The outermost call also folds
    /// constants, so that an error of a constant operation surfaces here, as in mongod.
    pub fn parse(value: Value<'_>, context: &ParseContext) -> Result<Expression> {
        super::parse::operand(value, context)?.optimized(context)
    }

    /// Parses `{...}`: an operator or an object whose fields are expressions.
    pub fn parse_object(doc: Doc<'_>, context: &ParseContext) -> Result<Expression> {
        super::parse::object(doc, context)?.optimized(context)
    }

    pub(super) fn optimized(mut self, context: &ParseContext) -> Result<Expression> {
        if context.is_outermost() {
            self.optimize(context)?;
            self.divide();
        }
        Ok(self)
    }

    /// Returns the expression of a constant.
    pub fn constant<'v>(value: impl Into<Value<'v>>) -> Expression {
        Expression::from_node(ExpressionNode::Constant(ValueBuf::new(value)))
    }

    /// A path on the root document, written without the dollar sign.
    pub fn path(dotted: &str) -> Result<Expression> {
        Ok(Expression::from_node(ExpressionNode::Path(FieldPath::parse(dotted)?)))
    }

    /// An operator with a tree of its own.
    pub fn form(form: Box<dyn Form>) -> Expression {
        Expression::from_node(ExpressionNode::Form(form))
    }

    pub(super) const fn from_node(node: ExpressionNode) -> Expression {
        Expression { node }
    }

    /// The tree's top.
    pub fn node(&self) -> &ExpressionNode {
        match &self.node {
            ExpressionNode::Checkpoint(checkpoint) => checkpoint.first.node(),
            node => node,
        }
    }

    /// The value, if it is known at parse time. (A missing constant is `ExpressionNode::Missing`.)
    pub fn as_constant(&self) -> Option<Value<'_>> {
        if let ExpressionNode::Constant(value) = self.node() {
            Some(value.as_value())
        } else {
            None
        }
    }

    /// True if the result is known at parse time, be it a value or missing.
    pub fn is_constant(&self) -> bool {
        matches!(
            self.node(),
            ExpressionNode::Constant(_) | ExpressionNode::Missing | ExpressionNode::Absent
        )
    }

    /// True if it may fail for some values. Limits of memory and time don't count.
    pub fn can_fail(&self) -> bool {
        let mut fails = match self.node() {
            ExpressionNode::Call(call) => !call.operator.total,
            ExpressionNode::Form(_) | ExpressionNode::Object(_) | ExpressionNode::Array(_) => true,
            _ => false,
        };
        self.children(&mut |child| fails = fails || child.can_fail());
        fails
    }

    /// Evaluates it for `cx.root`. `None` is missing. The result borrows from the document, from
    /// this expression's constants, or from the arena.
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

    /// Evaluates it and appends the result, unless missing, as a field; nested objects and arrays
    /// are written in place.
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

    /// Visits all direct sub-expressions.
    pub fn children<'e>(&'e self, visit: &mut dyn FnMut(&'e Expression)) {
        match self.node() {
            ExpressionNode::Object(fields) => fields.iter().for_each(|(_, field)| visit(field)),
            ExpressionNode::Array(items) => items.iter().for_each(visit),
            ExpressionNode::Call(call) => call.args.iter().for_each(visit),
            ExpressionNode::Form(form) => form.children(visit),
            _ => {}
        }
    }

    /// Visits all direct sub-expressions to change them.
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

    /// Makes a checkpoint of the top.
    pub(super) fn put_checkpoint(&mut self, make: impl FnOnce(Expression) -> Checkpoint) {
        let absent = Expression::from_node(ExpressionNode::Absent);
        self.node = ExpressionNode::Checkpoint(Box::new(make(std::mem::replace(self, absent))));
    }

    /// The top's node for evaluating it in place.
    #[inline]
    fn passed(&self, cx: &EvalContext<'_>) -> Result<&ExpressionNode> {
        if let ExpressionNode::Checkpoint(checkpoint) = &self.node {
            checkpoint.pass(cx)?;
        }
        Ok(self.node())
    }

    /// Folds constants and prunes branches that constants decide. Fails where a constant
    /// operation fails.
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
                if let ExpressionNode::Call(call) = self.node() { decision(call) } else { None }
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

    /// Puts the result in the place of the operation, unless that takes more than parsing may.
    fn fold(&mut self, context: &ParseContext) -> Result<()> {
        let mut shared = Shared::default().with_collator(context.collator.clone());
        shared.memory_bytes_max = context.folding.bytes_left();
        let shared = shared.with_interrupt(context.folding.interrupt());
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

/// The result that a constant argument decides alone.
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
