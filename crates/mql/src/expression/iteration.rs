//! `$map`, `$filter`, `$reduce`: expressions that are evaluated for each element of an array.
//!
//! The body of an iteration is evaluated in a scratch arena, so that a long input needs no more
//! memory than its result.

use super::appending::Appending;
use super::boolean::is_true;
use super::iterations::{Iterations, is_long};
use super::operator::Operator;
use super::records::Records;
use super::tree::{Expression, Form};
use super::variables::loop_variable;
use crate::context::{EvalContext, ParseContext, Slot};
use quire_document::{Array, Doc, DocWriter, Value, ValueBuf, message};
use quire_error::{Error, Result};

/// The registry rows of this family.
pub(super) const OPERATORS: &[Operator] = &[
    Operator::form("$map", parse_map)
        .doc("An array with the value of `in` for each element of `input`."),
    Operator::form("$filter", parse_filter)
        .doc("The elements of `input` for which `cond` is true, at most `limit` of them.")
        .since("3.2"),
    Operator::form("$reduce", parse_reduce)
        .doc("Reduces `input` to one value with `in`, starting with `initialValue`.")
        .since("3.4"),
];

/// Returns the array to loop over; `None` if the input is null or missing. Fails with `code` for
/// any other value.
fn elements<'a>(input: Option<Value<'a>>, code: i32, operator: &str) -> Result<Option<Array<'a>>> {
    match input {
        None | Some(Value::Null | Value::Undefined) => Ok(None),
        Some(Value::Array(array)) => Ok(Some(array)),
        Some(other) => {
            let text = format!("input to {operator} must be an array not {}", other.type_name());
            Err(Error::location(code, text))
        }
    }
}

/// Returns the operator's argument as a document. Fails with `code` if it is not one.
fn object_argument<'v>(value: Value<'v>, code: i32, operator: &str) -> Result<Doc<'v>> {
    value.as_document().ok_or_else(|| {
        let text = format!(
            "{operator} only supports an object as its argument, found {}",
            value.type_name()
        );
        Error::location(code, text)
    })
}

fn unknown(code: i32, operator: &str, name: &str) -> Error {
    Error::location(code, format!("Unrecognized parameter to {operator}: {name}"))
}

fn missing(code: i32, operator: &str, name: &str) -> Error {
    Error::location(code, format!("Missing '{name}' parameter to {operator}"))
}

#[derive(Debug)]
struct Map {
    input: Expression,
    name: Box<str>,
    slot: Slot,
    body: Expression,
}

fn parse_map(_: &'static Operator, value: Value<'_>, context: &ParseContext) -> Result<Expression> {
    let doc = object_argument(value, 16878, "$map")?;
    let (mut input, mut name, mut body) = (None, None, None);
    for (key, value) in doc.fields() {
        match key {
            "input" => input = Some(value),
            "as" => name = Some(value),
            "in" => body = Some(value),
            _ => return Err(unknown(16879, "$map", key)),
        }
    }
    let input = input.ok_or_else(|| missing(16880, "$map", "input"))?;
    let name = loop_variable("$map", name)?;
    let body = body.ok_or_else(|| missing(16882, "$map", "in"))?;
    let (inner, slot) = context.bind(&name);
    let input = Expression::parse(input, context)?;
    let body = Expression::parse(body, &inner)?;
    Ok(Expression::form(Box::new(Map { input, name, slot, body })))
}

impl Form for Map {
    fn eval<'a>(&'a self, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
        let Some(input) = elements(self.input.eval(cx)?, 16883, "$map")? else {
            return Ok(Some(Value::Null));
        };
        let mapped = cx.array(|writer| {
            let mut iterations = Iterations::over(input, &self.body, cx);
            for item in input.iter() {
                let inner = iterations.next()?;
                let result = self.body.eval(&inner.bind(self.slot, Some(item)))?;
                writer.push(result.unwrap_or(Value::Null));
                cx.check_size(writer.len())?;
            }
            Ok(())
        });
        Ok(Some(Value::Array(mapped?)))
    }

    fn children<'e>(&'e self, visit: &mut dyn FnMut(&'e Expression)) {
        visit(&self.input);
        visit(&self.body);
    }

    fn children_mut(&mut self, visit: &mut dyn FnMut(&mut Expression) -> Result<()>) -> Result<()> {
        visit(&mut self.input)?;
        visit(&mut self.body)
    }

    fn serialize(&self, writer: &mut DocWriter<'_>) {
        let mut body = writer.document("$map");
        self.input.serialize_to("input", &mut body);
        body.append("as", &*self.name);
        self.body.serialize_to("in", &mut body);
    }
}

#[derive(Debug)]
struct Filter {
    input: Expression,
    name: Box<str>,
    slot: Slot,
    condition: Expression,
    limit: Option<Expression>,
}

fn parse_filter(
    _: &'static Operator,
    value: Value<'_>,
    context: &ParseContext,
) -> Result<Expression> {
    let doc = object_argument(value, 28646, "$filter")?;
    let (mut input, mut name, mut condition, mut limit) = (None, None, None, None);
    for (key, value) in doc.fields() {
        match key {
            "input" => input = Some(value),
            "as" => name = Some(value),
            "cond" => condition = Some(value),
            "limit" => limit = Some(value),
            _ => return Err(unknown(28647, "$filter", key)),
        }
    }
    let input = input.ok_or_else(|| missing(28648, "$filter", "input"))?;
    let condition = condition.ok_or_else(|| missing(28650, "$filter", "cond"))?;
    let name = loop_variable("$filter", name)?;
    let (inner, slot) = context.bind(&name);
    let input = Expression::parse(input, context)?;
    let condition = Expression::parse(condition, &inner)?;
    let limit = limit.map(|limit| Expression::parse(limit, context)).transpose()?;
    Ok(Expression::form(Box::new(Filter { input, name, slot, condition, limit })))
}

impl Filter {
    fn limit<'a>(&'a self, cx: &EvalContext<'a>) -> Result<u32> {
        let Some(limit) = &self.limit else { return Ok(u32::MAX) };
        let value = match limit.eval(cx)? {
            None | Some(Value::Null | Value::Undefined) => return Ok(u32::MAX),
            Some(value) => value,
        };
        let number = value.as_number().and_then(|number| number.exact_i64());
        let Some(number) = number.and_then(|number| i32::try_from(number).ok()) else {
            let text = format!(
                "$filter: limit must be represented as a 32-bit integral value: {}",
                message(value)
            );
            return Err(Error::location(327391, text));
        };
        if number <= 0 {
            let text = format!("$filter: limit must be greater than 0: {number}");
            return Err(Error::location(327392, text));
        }
        Ok(number as u32)
    }
}

impl Form for Filter {
    fn eval<'a>(&'a self, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
        let Some(input) = elements(self.input.eval(cx)?, 28651, "$filter")? else {
            return Ok(Some(Value::Null));
        };
        let limit = self.limit(cx)?;
        let kept = cx.array(|writer| {
            let mut iterations = Iterations::over(input, &self.condition, cx);
            for item in input.as_doc().iter() {
                let inner = iterations.next()?;
                let bound = inner.bind(self.slot, Some(item.value()));
                if is_true(self.condition.eval(&bound)?) {
                    writer.push_element(item);
                    if writer.count() >= limit {
                        break;
                    }
                }
            }
            Ok(())
        });
        Ok(Some(Value::Array(kept?)))
    }

    fn children<'e>(&'e self, visit: &mut dyn FnMut(&'e Expression)) {
        visit(&self.input);
        visit(&self.condition);
        self.limit.iter().for_each(visit);
    }

    fn children_mut(&mut self, visit: &mut dyn FnMut(&mut Expression) -> Result<()>) -> Result<()> {
        visit(&mut self.input)?;
        visit(&mut self.condition)?;
        self.limit.iter_mut().try_for_each(visit)
    }

    fn serialize(&self, writer: &mut DocWriter<'_>) {
        let mut body = writer.document("$filter");
        self.input.serialize_to("input", &mut body);
        body.append("as", &*self.name);
        self.condition.serialize_to("cond", &mut body);
        if let Some(limit) = &self.limit {
            limit.serialize_to("limit", &mut body);
        }
    }
}

#[derive(Debug)]
struct Reduce {
    input: Expression,
    initial: Expression,
    this: Slot,
    value: Slot,
    body: Expression,
}

fn parse_reduce(
    _: &'static Operator,
    value: Value<'_>,
    context: &ParseContext,
) -> Result<Expression> {
    let doc = object_argument(value, 40075, "$reduce")?;
    let (this_context, this) = context.bind("this");
    let (inner, slot) = this_context.bind("value");
    let (mut input, mut initial, mut body) = (None, None, None);
    for (key, value) in doc.fields() {
        match key {
            "input" => input = Some(Expression::parse(value, context)?),
            "initialValue" => initial = Some(Expression::parse(value, context)?),
            "in" => body = Some(Expression::parse(value, &inner)?),
            _ => return Err(unknown(40076, "$reduce", key)),
        }
    }
    Ok(Expression::form(Box::new(Reduce {
        input: input.ok_or_else(|| missing(40077, "$reduce", "input"))?,
        initial: initial.ok_or_else(|| missing(40078, "$reduce", "initialValue"))?,
        this,
        value: slot,
        body: body.ok_or_else(|| missing(40079, "$reduce", "in"))?,
    })))
}

/// The number of iterations after which the depth of the result is checked. An iteration adds at
/// most as many levels as the expression has.
const DEPTH_ITERATIONS: u32 = 16;

impl Form for Reduce {
    fn eval<'a>(&'a self, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
        let Some(input) = elements(self.input.eval(cx)?, 40080, "$reduce")? else {
            return Ok(Some(Value::Null));
        };
        let mut iterations = Iterations::over(input, &self.body, cx);
        let mut value = self.initial.eval(cx)?.map(ValueBuf::new);
        let mut items = input.iter();
        if is_long(input) {
            let (body, this, slot) = (&self.body, self.this, self.value);
            if let Some(appending) = Appending::of(body, this, slot) {
                value = appending.run(value, &mut items, &mut iterations, cx)?;
            } else if let Some(records) = Records::of(body, this, slot) {
                value = records.run(value, &mut items, &mut iterations, cx)?;
            }
        }
        for (item, round) in items.zip(1_u32..) {
            let inner = iterations.next()?;
            let so_far = value.as_ref().map(ValueBuf::as_value);
            let inner = inner.holding(value.as_ref().map_or(0, ValueBuf::size));
            let bound = inner.bind(self.this, Some(item)).bind(self.value, so_far);
            let next = self.body.eval(&bound)?.map(ValueBuf::new);
            cx.check_size(next.as_ref().map_or(0, ValueBuf::size))?;
            if round.is_multiple_of(DEPTH_ITERATIONS) {
                next.iter().try_for_each(|next| cx.check_depth(next.as_value()))?;
            }
            value = next;
        }
        let result = value.map(|value| cx.copy(value.as_value())).transpose()?;
        result.iter().try_for_each(|result| cx.check_depth(*result))?;
        Ok(result)
    }

    fn children<'e>(&'e self, visit: &mut dyn FnMut(&'e Expression)) {
        visit(&self.input);
        visit(&self.initial);
        visit(&self.body);
    }

    fn children_mut(&mut self, visit: &mut dyn FnMut(&mut Expression) -> Result<()>) -> Result<()> {
        visit(&mut self.input)?;
        visit(&mut self.initial)?;
        visit(&mut self.body)
    }

    fn serialize(&self, writer: &mut DocWriter<'_>) {
        let mut body = writer.document("$reduce");
        self.input.serialize_to("input", &mut body);
        self.initial.serialize_to("initialValue", &mut body);
        self.body.serialize_to("in", &mut body);
    }
}
