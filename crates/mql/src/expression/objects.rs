//! `$mergeObjects`, `$getField`, `$setField`, `$unsetField`.

use super::array_access::{is_nullish, type_name};
use super::array_building::{charge_entries, last_of_each};
use super::operator::{Arity, Call, Operator};
use super::tree::{Expression, ExpressionNode, Form};
use crate::context::{EvalContext, ParseContext};
use quire_document::{Doc, DocWriter, Value};
use quire_error::{Error, Result};

/// The registry rows of this family.
pub(super) const OPERATORS: &[Operator] = &[
    Operator::function("$mergeObjects", Arity::Any, merge)
        .doc("All arguments merged into one document; a later field replaces an earlier one.")
        .since("3.6"),
    Operator::form("$getField", parse_get)
        .doc("A field by its name, which may contain dots and dollar signs.")
        .since("5.0"),
    Operator::form("$setField", parse_set)
        .doc("The document with one field set; its name may contain dots and dollar signs.")
        .since("5.0"),
    Operator::form("$unsetField", parse_set)
        .doc("The document without one field; its name may contain dots and dollar signs.")
        .since("5.0"),
];

/// A single argument that is an array is replaced by its elements, as for accumulators.
fn merge<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
    let mut docs = Vec::with_capacity(call.args.len());
    if let [only] = &call.args[..] {
        match only.eval(cx)? {
            Some(Value::Array(array)) => {
                array.iter().try_for_each(|item| add_document(&mut docs, Some(item)))?;
            }
            other => add_document(&mut docs, other)?,
        }
    } else {
        call.args.iter().try_for_each(|arg| add_document(&mut docs, arg.eval(cx)?))?;
    }
    if let [only] = docs[..] {
        return Ok(Some(Value::Document(only)));
    }
    let mut entries = Vec::new();
    for doc in &docs {
        charge_entries(entries.len(), *doc, cx)?;
        entries.extend(doc.fields());
    }
    Ok(Some(Value::Document(last_of_each(&entries, cx)?)))
}

fn add_document<'a>(docs: &mut Vec<Doc<'a>>, value: Option<Value<'a>>) -> Result<()> {
    match value {
        Some(Value::Document(doc)) => docs.push(doc),
        other if is_nullish(other) => {}
        other => return Err(not_an_object(type_name(other))),
    }
    Ok(())
}

/// Returns the error of `$mergeObjects` for an argument of the type `found`.
pub(super) fn not_an_object(found: &str) -> Error {
    let text = format!("$mergeObjects requires object inputs, but input is of type {found}");
    Error::location(40400, text)
}

#[derive(Debug)]
struct GetField {
    field: Expression,
    input: Expression,
}

fn parse_get(_: &'static Operator, value: Value<'_>, context: &ParseContext) -> Result<Expression> {
    let (mut field, mut input) = (None, None);
    match value {
        Value::Document(doc) if !doc.first().is_some_and(|first| first.key().starts_with('$')) => {
            for (name, value) in doc.fields() {
                match name {
                    "field" => field = Some(Expression::parse(value, context)?),
                    "input" => input = Some(Expression::parse(value, context)?),
                    _ => {
                        let text = format!("$getField found an unknown argument: {name}");
                        return Err(Error::location(3041701, text));
                    }
                }
            }
        }
        shorthand => {
            field = Some(Expression::parse(shorthand, context)?);
            input = Some(Expression::parse(Value::String("$$CURRENT"), context)?);
        }
    }
    let missing =
        |code, name| Error::location(code, format!("$getField requires '{name}' to be specified"));
    let field = field.ok_or_else(|| missing(3041702, "field"))?;
    let input = input.ok_or_else(|| missing(3041703, "input"))?;
    if let Some(value) = field.as_constant()
        && value.as_str().is_none()
    {
        return Err(wrong_field_type(Some(value)));
    }
    Ok(Expression::form(Box::new(GetField { field, input })))
}

fn wrong_field_type(value: Option<Value<'_>>) -> Error {
    let text = format!(
        "$getField requires 'field' to evaluate to type String, but got {}",
        type_name(value)
    );
    Error::location(3041704, text)
}

impl Form for GetField {
    fn eval<'a>(&'a self, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
        let field = self.field.eval(cx)?;
        let Some(Value::String(field)) = field else { return Err(wrong_field_type(field)) };
        match self.input.eval(cx)? {
            Some(Value::Document(doc)) => Ok(cx.field(doc, field)),
            Some(Value::Null | Value::Undefined) => Ok(Some(Value::Null)),
            _ => Ok(None),
        }
    }

    fn children<'e>(&'e self, visit: &mut dyn FnMut(&'e Expression)) {
        visit(&self.field);
        visit(&self.input);
    }

    fn children_mut(&mut self, visit: &mut dyn FnMut(&mut Expression) -> Result<()>) -> Result<()> {
        visit(&mut self.field)?;
        visit(&mut self.input)
    }

    fn serialize(&self, writer: &mut DocWriter<'_>) {
        let mut body = writer.document("$getField");
        self.field.serialize_to("field", &mut body);
        self.input.serialize_to("input", &mut body);
    }
}

/// `$setField`; or `$unsetField`, if `value` is missing.
#[derive(Debug)]
struct SetField {
    operator: &'static str,
    field: Box<str>,
    input: Expression,
    value: Expression,
}

fn parse_set(
    operator: &'static Operator,
    value: Value<'_>,
    context: &ParseContext,
) -> Result<Expression> {
    let name = operator.name;
    let unset = name == "$unsetField";
    let Value::Document(doc) = value else {
        let text = format!("{name} only supports an object as its argument");
        return Err(Error::location(4161100, text));
    };
    let (mut field, mut input, mut new_value) = (None, None, None);
    for (key, value) in doc.fields() {
        match key {
            "field" => field = Some(value),
            "input" => input = Some(Expression::parse(value, context)?),
            "value" if !unset => new_value = Some(Expression::parse(value, context)?),
            _ => {
                let text = format!("{name} found an unknown argument: {key}");
                return Err(Error::location(4161101, text));
            }
        }
    }
    let missing =
        |code, part| Error::location(code, format!("{name} requires '{part}' to be specified"));
    let field = field.ok_or_else(|| missing(4161102, "field"))?;
    let value = match new_value {
        Some(value) => value,
        None if unset => Expression::from_node(ExpressionNode::Missing),
        None => return Err(missing(4161103, "value")),
    };
    let input = input.ok_or_else(|| missing(4161109, "input"))?;
    let field = constant_field(name, field, context)?;
    Ok(Expression::form(Box::new(SetField { operator: name, field, input, value })))
}

fn constant_field(name: &str, value: Value<'_>, context: &ParseContext) -> Result<Box<str>> {
    if let Value::String(text) = value
        && text.starts_with('$')
    {
        let text = format!(
            "'{text}' is a field path reference which is not allowed in this context. Did you mean {{$literal: '{text}'}}?"
        );
        return Err(Error::location(4161108, text));
    }
    let field = Expression::parse(value, context)?;
    // MongoDB looks before an array of constants becomes one.
    let constant = field.as_constant().filter(|_| !matches!(value, Value::Array(_)));
    let Some(constant) = constant else {
        let text = format!("{name} requires 'field' to evaluate to a constant");
        return Err(Error::location(4161106, text));
    };
    let Value::String(field) = constant else {
        let text = format!(
            "{name} requires 'field' to evaluate to type String, but got {}",
            constant.type_name()
        );
        return Err(Error::location(4161107, text));
    };
    if field.contains('\0') {
        let text = format!("{name} requires 'field' to not contain null characters");
        return Err(Error::location(9534700, text));
    }
    Ok(field.into())
}

impl Form for SetField {
    fn eval<'a>(&'a self, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
        let input = self.input.eval(cx)?;
        if is_nullish(input) {
            return Ok(Some(Value::Null));
        }
        let Some(Value::Document(input)) = input else {
            let text = format!(
                "{} requires 'input' to evaluate to type Object, but got {}",
                self.operator,
                type_name(input)
            );
            return Err(Error::location(4161105, text));
        };
        let value = self.value.eval(cx)?;
        set_field(input, &self.field, value, cx).map(Value::Document).map(Some)
    }

    fn children<'e>(&'e self, visit: &mut dyn FnMut(&'e Expression)) {
        visit(&self.input);
        visit(&self.value);
    }

    fn children_mut(&mut self, visit: &mut dyn FnMut(&mut Expression) -> Result<()>) -> Result<()> {
        visit(&mut self.input)?;
        visit(&mut self.value)
    }

    fn serialize(&self, writer: &mut DocWriter<'_>) {
        let mut body = writer.document(self.operator);
        let mut field = body.document("field");
        field.append("$const", &*self.field);
        field.finish();
        self.input.serialize_to("input", &mut body);
        if self.operator == "$setField" {
            self.value.serialize_to("value", &mut body);
        }
    }
}

/// Returns the document with `field` replaced in its position, appended, or removed.
fn set_field<'a>(
    input: Doc<'a>,
    field: &str,
    value: Option<Value<'a>>,
    cx: &EvalContext<'a>,
) -> Result<Doc<'a>> {
    cx.document(|writer| {
        let mut done = false;
        for element in input.iter() {
            if element.key_bytes() != field.as_bytes() {
                writer.append_element(element);
            } else if !done {
                writer.append_some(field, value);
                done = true;
            }
        }
        if !done {
            writer.append_some(field, value);
        }
        Ok(())
    })
}
