//! `$sortArray`: sorts an array by its elements or by fields of them.

use super::operator::Operator;
use super::tree::{Expression, Form};
use crate::context::work::sort_by;
use crate::context::{Collator, EvalContext, ParseContext};
use quire_document::limits::SORT_KEYS_MAX;
use quire_document::{Array, DocWriter, Value, ValueBuf, compare};
use quire_error::{Error, Result};
use std::cmp::Ordering;

/// The registry rows of this family.
pub(super) const OPERATORS: &[Operator] = &[Operator::form("$sortArray", parse)
    .doc("The elements of `input` in the order of `sortBy`: 1, -1 or a sort document.")
    .since("5.2")];

#[derive(Debug)]
struct SortArray {
    input: Expression,
    order: Order,
    sort_by: ValueBuf,
}

#[derive(Debug)]
enum Order {
    Whole { descending: bool },
    Fields(Vec<SortField>),
}

#[derive(Debug)]
struct SortField {
    path: Vec<Box<str>>,
    descending: bool,
}

fn parse(_: &'static Operator, value: Value<'_>, context: &ParseContext) -> Result<Expression> {
    let Value::Document(doc) = value else {
        let text =
            format!("$sortArray requires an object as an argument, found: {}", value.type_name());
        return Err(Error::location(2942500, text));
    };
    let (mut input, mut sort_by) = (None, None);
    for (name, value) in doc.fields() {
        match name {
            "input" => input = Some(Expression::parse(value, context)?),
            "sortBy" => sort_by = Some(value),
            _ => {
                let text = format!("$sortArray found an unknown argument: {name}");
                return Err(Error::location(2942501, text));
            }
        }
    }
    let missing =
        |code, name| Error::location(code, format!("$sortArray requires '{name}' to be specified"));
    let input = input.ok_or_else(|| missing(2942502, "input"))?;
    let sort_by = sort_by.ok_or_else(|| missing(2942503, "sortBy"))?;
    let order = parse_order(sort_by)?;
    Ok(Expression::form(Box::new(SortArray { input, order, sort_by: ValueBuf::new(sort_by) })))
}

/// Parses a direction: returns false for 1 (ascending) and true for -1 (descending), of any numeric
/// type.
fn direction(value: Value<'_>) -> Option<bool> {
    match value.as_number()?.exact_i64()? {
        1 => Some(false),
        -1 => Some(true),
        _ => None,
    }
}

fn parse_order(sort_by: Value<'_>) -> Result<Order> {
    if let Some(descending) = direction(sort_by) {
        return Ok(Order::Whole { descending });
    }
    let Value::Document(doc) = sort_by else {
        let (code, text) = match sort_by.is_number() {
            true => (2942506, "The $sort element value must be either 1 or -1"),
            false => (2942507, "The $sort must be an object, 1 or -1"),
        };
        return Err(Error::location(code, text));
    };
    if doc.is_empty() {
        return Err(Error::location(
            2942505,
            "The $sort pattern is empty when it should be a set of fields.",
        ));
    }
    let mut fields = Vec::new();
    for (name, value) in doc.fields() {
        if fields.len() == SORT_KEYS_MAX {
            return Err(Error::location(13103, "too many compound keys"));
        }
        let Some(descending) = direction(value) else {
            return Err(Error::location(2942505, "The $sort element value must be either 1 or -1"));
        };
        if name.is_empty() || name.split('.').any(str::is_empty) {
            let text = format!(
                "The $sort field '{name}' is a dotted field but it begins or ends with a '.'."
            );
            return Err(Error::location(2942505, text));
        }
        fields.push(SortField { path: name.split('.').map(Box::from).collect(), descending });
    }
    Ok(Order::Fields(fields))
}

/// Returns the value at a path, or null if it is missing. A numeric component is an index in an
/// array; otherwise arrays have no fields.
fn at_path<'a>(mut value: Value<'a>, path: &[Box<str>]) -> Value<'a> {
    let Value::Document(_) = value else { return Value::Null };
    for component in path {
        let next = match value {
            Value::Document(doc) => doc.get(component),
            Value::Array(array) => array.as_doc().get(component),
            _ => None,
        };
        match next {
            Some(next) => value = next,
            None => return Value::Null,
        }
    }
    value
}

fn directed(order: Ordering, descending: bool) -> Ordering {
    if descending { order.reverse() } else { order }
}

impl Order {
    fn sort<'a>(&self, array: Array<'a>, cx: &EvalContext<'a>) -> Result<Vec<Value<'a>>> {
        let (mut items, collator) = (cx.elements(array)?, cx.collator());
        match self {
            Order::Whole { descending } => {
                sort_by(&mut items, cx.shared, |a, b| {
                    directed(compare(*a, *b, collator), *descending)
                })?;
            }
            Order::Fields(fields) => {
                sort_by(&mut items, cx.shared, |a, b| compare_by(fields, *a, *b, collator))?;
            }
        }
        Ok(items)
    }
}

fn compare_by(
    fields: &[SortField],
    a: Value<'_>,
    b: Value<'_>,
    collator: Option<&dyn Collator>,
) -> Ordering {
    for field in fields {
        let order = compare(at_path(a, &field.path), at_path(b, &field.path), collator);
        if order.is_ne() {
            return directed(order, field.descending);
        }
    }
    Ordering::Equal
}

impl Form for SortArray {
    fn eval<'a>(&'a self, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
        match self.input.eval(cx)? {
            None | Some(Value::Null | Value::Undefined) => Ok(Some(Value::Null)),
            Some(Value::Array(array)) => cx.array_of(self.order.sort(array, cx)?).map(Some),
            Some(other) => {
                let text = format!(
                    "The input argument to $sortArray must be an array, but was of type: {}",
                    other.type_name()
                );
                Err(Error::location(2942504, text))
            }
        }
    }

    fn children<'e>(&'e self, visit: &mut dyn FnMut(&'e Expression)) {
        visit(&self.input);
    }

    fn children_mut(&mut self, visit: &mut dyn FnMut(&mut Expression) -> Result<()>) -> Result<()> {
        visit(&mut self.input)
    }

    fn serialize(&self, writer: &mut DocWriter<'_>) {
        let mut body = writer.document("$sortArray");
        self.input.serialize_to("input", &mut body);
        body.append("sortBy", &self.sort_by);
    }
}
