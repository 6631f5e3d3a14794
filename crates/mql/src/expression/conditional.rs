//! `$cond`, `$switch`, `$ifNull`: only the selected branch is evaluated.

use super::batch::Batch;
use super::boolean::is_true;
use super::operator::{Arity, Call, Operator};
use super::ranges::{Ranges, compared};
use super::tree::{Expression, ExpressionNode, Form};
use crate::column::Column;
use crate::context::{EvalContext, ParseContext};
use quire_document::{DocWriter, Value};
use quire_error::{Error, Result};

/// The registry rows of this family.
pub(super) const OPERATORS: &[Operator] = &[
    Operator::form("$cond", parse_cond)
        .doc("The second argument if the first is true, otherwise the third."),
    Operator::form("$switch", parse_switch)
        .doc("The `then` of the first branch whose `case` is true, otherwise `default`.")
        .since("3.4"),
    Operator::function("$ifNull", Arity::AtLeast(2, 1257300), if_null)
        .doc("The first argument that is neither missing nor null, otherwise the last."),
];

#[derive(Debug)]
struct Cond {
    condition: Expression,
    then: Expression,
    otherwise: Expression,
}

fn parse_cond(
    operator: &'static Operator,
    value: Value<'_>,
    context: &ParseContext,
) -> Result<Expression> {
    let (condition, then, otherwise) = match value {
        Value::Document(doc) => {
            let (mut condition, mut then, mut otherwise) = (None, None, None);
            for (name, value) in doc.fields() {
                let part = match name {
                    "if" => &mut condition,
                    "then" => &mut then,
                    "else" => &mut otherwise,
                    _ => {
                        let text = format!("Unrecognized parameter to $cond: {name}");
                        return Err(Error::location(17083, text));
                    }
                };
                *part = Some(Expression::parse(value, context)?);
            }
            let missing =
                |code, name| Error::location(code, format!("Missing '{name}' parameter to $cond"));
            (
                condition.ok_or_else(|| missing(17080, "if"))?,
                then.ok_or_else(|| missing(17081, "then"))?,
                otherwise.ok_or_else(|| missing(17082, "else"))?,
            )
        }
        list => {
            let args = operator.positional_exactly(3, list, context)?;
            let Ok([condition, then, otherwise]) = <[Expression; 3]>::try_from(args) else {
                return Err(Error::internal("$cond lost an argument"));
            };
            (condition, then, otherwise)
        }
    };
    Ok(Expression::form(Box::new(Cond { condition, then, otherwise })))
}

impl Form for Cond {
    fn eval<'a>(&'a self, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
        let branch = if is_true(self.condition.eval(cx)?) { &self.then } else { &self.otherwise };
        branch.eval(cx)
    }

    fn columns<'a>(
        &'a self,
        batch: &'a Batch<'a>,
        cx: &EvalContext<'a>,
    ) -> Result<Option<Column<'a>>> {
        let condition = self.condition.columns(batch, cx)?;
        let mut row = 0;
        let column = batch.each(cx, |cx| {
            let taken = is_true(condition.get(row));
            row += 1;
            if taken { self.then.eval(cx) } else { self.otherwise.eval(cx) }
        });
        column.map(Some)
    }

    fn children<'e>(&'e self, visit: &mut dyn FnMut(&'e Expression)) {
        visit(&self.condition);
        visit(&self.then);
        visit(&self.otherwise);
    }

    fn children_mut(&mut self, visit: &mut dyn FnMut(&mut Expression) -> Result<()>) -> Result<()> {
        visit(&mut self.condition)?;
        visit(&mut self.then)?;
        visit(&mut self.otherwise)
    }

    fn optimize(&mut self, context: &ParseContext) -> Result<Option<Expression>> {
        self.condition.optimize(context)?;
        if !self.condition.is_constant() {
            self.then.optimize(context)?;
            self.otherwise.optimize(context)?;
            return Ok(None);
        }
        let taken = if is_true(self.condition.as_constant()) {
            &mut self.then
        } else {
            &mut self.otherwise
        };
        let mut taken = std::mem::replace(taken, Expression::from_node(ExpressionNode::Missing));
        taken.optimize(context)?;
        Ok(Some(taken))
    }

    fn branches(&self) -> Option<[&Expression; 3]> {
        Some([&self.condition, &self.then, &self.otherwise])
    }

    fn serialize(&self, writer: &mut DocWriter<'_>) {
        let mut list = writer.array("$cond");
        self.children(&mut |child| {
            list.push(child.to_bson().as_value());
        });
    }
}

#[derive(Debug)]
struct Switch {
    branches: Vec<(Expression, Expression)>,
    default: Option<Expression>,
    /// The ranges of the cases, if all cases are ranges; set by `optimize`.
    ranges: Option<Ranges>,
}

fn parse_switch(
    _: &'static Operator,
    value: Value<'_>,
    context: &ParseContext,
) -> Result<Expression> {
    let Value::Document(doc) = value else {
        let text =
            format!("$switch requires an object as an argument, found: {}", value.type_name());
        return Err(Error::location(40060, text));
    };
    let (mut branches, mut default) = (Vec::new(), None);
    for (name, value) in doc.fields() {
        match name {
            "branches" => {
                let Value::Array(list) = value else {
                    let text = format!(
                        "$switch expected an array for 'branches', found: {}",
                        value.type_name()
                    );
                    return Err(Error::location(40061, text));
                };
                for branch in list.iter() {
                    branches.push(parse_branch(branch, context)?);
                }
            }
            "default" => default = Some(Expression::parse(value, context)?),
            _ => {
                let text = format!("$switch found an unknown argument: {name}");
                return Err(Error::location(40067, text));
            }
        }
    }
    if branches.is_empty() {
        return Err(Error::location(40068, "$switch requires at least one branch."));
    }
    Ok(Expression::form(Box::new(Switch { branches, default, ranges: None })))
}

fn parse_branch(value: Value<'_>, context: &ParseContext) -> Result<(Expression, Expression)> {
    let Value::Document(doc) = value else {
        let text =
            format!("$switch expected each branch to be an object, found: {}", value.type_name());
        return Err(Error::location(40062, text));
    };
    let (mut case, mut then) = (None, None);
    for (name, value) in doc.fields() {
        let part = match name {
            "case" => &mut case,
            "then" => &mut then,
            _ => {
                let text = format!("$switch found an unknown argument to a branch: {name}");
                return Err(Error::location(40063, text));
            }
        };
        *part = Some(Expression::parse(value, context)?);
    }
    let missing = |code, name| {
        Error::location(code, format!("$switch requires each branch have a '{name}' expression"))
    };
    Ok((case.ok_or_else(|| missing(40064, "case"))?, then.ok_or_else(|| missing(40065, "then"))?))
}

fn no_branch() -> Error {
    let text =
        "$switch could not find a matching branch for an input, and no default was specified.";
    Error::location(40069, text)
}

impl Switch {
    /// Returns the expression of the first branch whose case is true.
    fn taken<'a>(&'a self, cx: &EvalContext<'a>) -> Result<Option<&'a Expression>> {
        if let Some(ranges) = self.ranges.as_ref().filter(|_| cx.collator().is_none())
            && let Some(compared) = self.branches.first().and_then(|(case, _)| compared(case))
        {
            let case = ranges.case_of(compared.eval(cx)?);
            return Ok(case.and_then(|case| self.branches.get(case)).map(|(_, then)| then));
        }
        for (case, then) in &self.branches {
            if is_true(case.eval(cx)?) {
                return Ok(Some(then));
            }
        }
        Ok(None)
    }
}

impl Form for Switch {
    fn eval<'a>(&'a self, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
        match self.taken(cx)?.or(self.default.as_ref()) {
            Some(taken) => taken.eval(cx),
            None => Err(no_branch()),
        }
    }

    fn children<'e>(&'e self, visit: &mut dyn FnMut(&'e Expression)) {
        for (case, then) in &self.branches {
            visit(case);
            visit(then);
        }
        self.default.iter().for_each(visit);
    }

    fn children_mut(&mut self, visit: &mut dyn FnMut(&mut Expression) -> Result<()>) -> Result<()> {
        for (case, then) in &mut self.branches {
            visit(case)?;
            visit(then)?;
        }
        self.default.iter_mut().try_for_each(visit)
    }

    /// Removes branches whose case is always false. A branch whose case is always true becomes the
    /// default, and later branches are removed. As in mongod, the original default is folded even
    /// then.
    fn optimize(&mut self, context: &ParseContext) -> Result<Option<Expression>> {
        if let Some(default) = &mut self.default {
            default.optimize(context)?;
        }
        let mut kept = Vec::new();
        for (mut case, mut then) in std::mem::take(&mut self.branches) {
            case.optimize(context)?;
            if !case.is_constant() {
                then.optimize(context)?;
                kept.push((case, then));
            } else if is_true(case.as_constant()) {
                then.optimize(context)?;
                self.default = Some(then);
                break;
            }
        }
        self.ranges = Ranges::of(kept.iter().map(|(case, _)| case));
        self.branches = kept;
        match (self.branches.is_empty(), self.default.take()) {
            (true, Some(default)) => Ok(Some(default)),
            (true, None) => Err(no_branch()),
            (false, default) => {
                self.default = default;
                Ok(None)
            }
        }
    }

    fn serialize(&self, writer: &mut DocWriter<'_>) {
        let mut body = writer.document("$switch");
        let mut list = body.array("branches");
        for (case, then) in &self.branches {
            let mut branch = list.document();
            case.serialize_to("case", &mut branch);
            then.serialize_to("then", &mut branch);
        }
        list.finish();
        if let Some(default) = &self.default {
            default.serialize_to("default", &mut body);
        }
    }
}

fn if_null<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
    let Some((last, others)) = call.args.split_last() else { return Ok(None) };
    for arg in others {
        if let Some(value) = arg.eval(cx)?
            && !value.is_nullish()
        {
            return Ok(Some(value));
        }
    }
    last.eval(cx)
}
