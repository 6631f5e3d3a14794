//! `$let`: binds variables.

use super::operator::Operator;
use super::parse::check_variable_name;
use super::tree::{Expression, Form};
use crate::context::{EvalContext, ParseContext, Slot};
use quire_document::{DocWriter, Value};
use quire_error::{Error, ErrorCode, Result};

/// The registry rows of this family.
pub(super) const OPERATORS: &[Operator] =
    &[Operator::form("$let", parse).doc("Evaluates `in` with the variables of `vars` bound.")];

#[derive(Debug)]
struct Let {
    variables: Vec<(Box<str>, Expression)>,
    /// The slot of the first variable.
    first: Slot,
    body: Expression,
}

fn parse(_: &'static Operator, value: Value<'_>, context: &ParseContext) -> Result<Expression> {
    let Value::Document(doc) = value else {
        let text =
            format!("$let only supports an object as its argument, found {}", value.type_name());
        return Err(Error::location(16874, text));
    };
    let (mut vars, mut body) = (None, None);
    for (name, value) in doc.fields() {
        match name {
            "vars" => vars = Some(value),
            "in" => body = Some(value),
            _ => {
                let text = format!("Unrecognized parameter to $let: {name}");
                return Err(Error::location(16875, text));
            }
        }
    }
    let missing = |code, name| Error::location(code, format!("Missing '{name}' parameter to $let"));
    let vars = match vars.ok_or_else(|| missing(16876, "vars"))? {
        Value::Document(vars) => vars,
        Value::Array(vars) => vars.as_doc(),
        other => {
            let text = format!(
                "invalid parameter: expected an object (vars), found {}",
                other.type_name()
            );
            return Err(Error::location(10065, text));
        }
    };
    let body = body.ok_or_else(|| missing(16877, "in"))?;
    let mut variables: Vec<(Box<str>, Expression)> = Vec::new();
    for (name, value) in vars.fields() {
        check_variable_name(name, true)?;
        variables.push((name.into(), Expression::parse(value, context)?));
    }
    let (inner, first) = context.bind_all(variables.iter().map(|(name, _)| &**name));
    let body = Expression::parse(body, &inner)?;
    Ok(Expression::form(Box::new(Let { variables, first, body })))
}

/// Parses the `as` of `$map` and `$filter`: the name of the loop variable.
pub(super) fn loop_variable(operator: &str, name: Option<Value<'_>>) -> Result<Box<str>> {
    match name {
        None => Ok("this".into()),
        Some(Value::String(name)) => {
            check_variable_name(name, true)?;
            Ok(name.into())
        }
        Some(other) => {
            let text = format!("{operator}: 'as' must be a string, found {}", other.type_name());
            Err(Error::new(ErrorCode::FailedToParse, text))
        }
    }
}

impl Form for Let {
    fn eval<'a>(&'a self, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
        let values = cx.arena.alloc_slice_fill_copy(self.variables.len(), None);
        for (place, (_, value)) in values.iter_mut().zip(&self.variables) {
            *place = value.eval(cx)?;
        }
        self.body.eval(&cx.bind_all(self.first, values))
    }

    fn children<'e>(&'e self, visit: &mut dyn FnMut(&'e Expression)) {
        self.variables.iter().for_each(|(_, value)| visit(value));
        visit(&self.body);
    }

    fn children_mut(&mut self, visit: &mut dyn FnMut(&mut Expression) -> Result<()>) -> Result<()> {
        self.variables.iter_mut().try_for_each(|(_, value)| visit(value))?;
        visit(&mut self.body)
    }

    fn serialize(&self, writer: &mut DocWriter<'_>) {
        let mut body = writer.document("$let");
        let mut vars = body.document("vars");
        for (name, value) in &self.variables {
            value.serialize_to(name, &mut vars);
        }
        vars.finish();
        self.body.serialize_to("in", &mut body);
    }
}
