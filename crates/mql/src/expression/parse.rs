//! Parses BSON to a compiled expression.

use super::field_path::{FieldPath, check_field_name};
use super::operator::{Arity, Call, Fields, Operator, Run, RunFn};
use super::registry::find_operator;
use super::tree::{Expression, ExpressionNode, Variable, unoptimized};
use crate::context::{Binding, ParseContext};
use quire_document::{Array, Doc, Value, message};
use quire_error::{Error, ErrorCode, Result};
use std::collections::HashSet;

/// Parses an operand, which may be any expression.
pub(super) fn operand(value: Value<'_>, context: &ParseContext) -> Result<Expression> {
    context.part()?;
    check_string_size(value)?;
    match value {
        Value::String(text) if text.starts_with('$') => path_or_variable(text, context),
        Value::Document(doc) => object(doc, context),
        Value::Array(array) => array_literal(array, context),
        other => Ok(Expression::constant(other)),
    }
}

/// A constant string must be shorter than this number of bytes: 16 MB.
const STRING_BYTES_LIMIT: usize = 16 * 1024 * 1024;

/// Fails for a constant string that is too long for a value in mongod.
pub(super) fn check_string_size(value: Value<'_>) -> Result<()> {
    match value {
        Value::String(text) if text.len() >= STRING_BYTES_LIMIT => {
            let text = format!("Tried to create string longer than {}MB", STRING_BYTES_LIMIT >> 20);
            Err(Error::location(16493, text))
        }
        _ => Ok(()),
    }
}

/// Parses `{...}`: an operator if the first name begins with a dollar sign, otherwise an object.
pub(super) fn object(doc: Doc<'_>, context: &ParseContext) -> Result<Expression> {
    let context = &context.deeper()?;
    let Some(first) = doc.first() else { return Ok(Expression::constant(Doc::empty())) };
    if first.key().starts_with('$') {
        return operator_call(doc, context);
    }
    let (mut fields, mut seen) = (Vec::new(), HashSet::new());
    for (name, value) in doc.fields() {
        check_field_name(name)?;
        if name.contains('.') {
            let text = format!(
                "FieldPath field names may not contain '.'. Consider using $getField or $setField. Found: {name}"
            );
            return Err(Error::location(16412, text));
        }
        if !seen.insert(name) {
            let text = format!("duplicate field name specified in object literal: {name}");
            return Err(Error::location(16406, text));
        }
        fields.push((Box::from(name), operand(value, context)?));
    }
    Ok(Expression::from_node(ExpressionNode::Object(fields.into())))
}

fn array_literal(array: Array<'_>, context: &ParseContext) -> Result<Expression> {
    let context = &context.deeper()?;
    if !context.no_folding && array.iter().all(is_plain) {
        context.work_on(array.count())?;
        return Ok(Expression::constant(array));
    }
    let items: Result<Vec<_>> = array.iter().map(|item| operand(item, context)).collect();
    Ok(Expression::from_node(ExpressionNode::Array(items?.into())))
}

/// Returns true for a scalar that is its own value. A list of scalars becomes one constant.
fn is_plain(value: Value<'_>) -> bool {
    match value {
        Value::String(text) => !text.starts_with('$') && text.len() < STRING_BYTES_LIMIT,
        Value::Document(_) | Value::Array(_) => false,
        _ => true,
    }
}

/// Parses `{$operator: argument}`.
fn operator_call(doc: Doc<'_>, context: &ParseContext) -> Result<Expression> {
    let mut elements = doc.iter();
    let Some(element) = elements.next() else { return Ok(Expression::constant(doc)) };
    if elements.next().is_some() {
        let text = format!(
            "An object representing an expression must have exactly one field: {}",
            message(doc)
        );
        return Err(Error::location(15983, text));
    }
    let Some(operator) = find_operator(element.key()) else {
        let text = format!("Unrecognized expression '{}'", element.key());
        return Err(Error::new(ErrorCode::InvalidPipelineOperator, text));
    };
    if context.api_strict && !operator.stable {
        let text =
            format!("{} is not allowed with 'apiStrict: true' in API Version 1", operator.name);
        return Err(Error::new(ErrorCode::APIStrictError, text));
    }
    operator.parse(element.value(), context)
}

impl Operator {
    /// Parses a call of this operator with the argument `value`.
    pub fn parse(&'static self, value: Value<'_>, context: &ParseContext) -> Result<Expression> {
        let (check, run): (_, RunFn) = match self.run {
            Run::Form(parse) => return parse(self, value, context),
            Run::Function(run) => (None, run),
            Run::Checked(check, run) => (Some(check), run),
        };
        let args = match self.arity {
            Arity::Named(fields) => named_arguments(self, fields, value, context)?,
            _ => self.positional(value, context)?,
        };
        let call = Call { operator: self, args: args.into(), run };
        if let Some(check) = check {
            // MongoDB checks it while it optimises the pipeline.
            check(&call).map_err(|error| unoptimized(error, context))?;
        }
        Ok(Expression::from_node(ExpressionNode::Call(call)))
    }

    /// Parses a list of arguments, or a single argument without brackets, and checks their number.
    pub(super) fn positional(
        &self,
        value: Value<'_>,
        context: &ParseContext,
    ) -> Result<Vec<Expression>> {
        let args = match value {
            Value::Array(array) => {
                let context = &context.deeper()?;
                array.iter().map(|item| operand(item, context)).collect::<Result<Vec<_>>>()?
            }
            single => vec![operand(single, context)?],
        };
        self.check_count(args.len())?;
        Ok(args)
    }

    /// Parses a list like `positional`, for an operator with a parser and exactly `wanted`
    /// arguments.
    pub(super) fn positional_exactly(
        &self,
        wanted: usize,
        value: Value<'_>,
        context: &ParseContext,
    ) -> Result<Vec<Expression>> {
        let args = self.positional(value, context)?;
        if args.len() == wanted {
            return Ok(args);
        }
        let (name, given) = (self.name, args.len());
        let text =
            format!("Expression {name} takes exactly {wanted} arguments. {given} were passed in.");
        Err(Error::location(16020, text))
    }

    fn check_count(&self, given: usize) -> Result<()> {
        let name = self.name;
        match self.arity {
            Arity::Exactly(wanted) if given != wanted => Err(Error::location(
                16020,
                format!(
                    "Expression {name} takes exactly {wanted} arguments. {given} were passed in."
                ),
            )),
            Arity::Between(low, high) if given < low || given > high => Err(Error::location(
                28667,
                format!(
                    "Expression {name} takes at least {low} arguments, and at most {high}, but {given} were passed in."
                ),
            )),
            Arity::AtLeast(low, code) if given < low => Err(Error::location(
                code,
                format!("{name} needs at least {low} arguments, had: {given}"),
            )),
            _ => Ok(()),
        }
    }
}

/// Parses the named arguments of an operator, in the order of its `Fields`.
fn named_arguments(
    operator: &Operator,
    fields: &Fields,
    value: Value<'_>,
    context: &ParseContext,
) -> Result<Vec<Expression>> {
    let name = operator.name;
    let Value::Document(doc) = value else {
        let text =
            format!("{name} only supports an object as its argument, found {}", value.type_name());
        return Err(Error::location(fields.not_object, text));
    };
    let mut args: Vec<Option<Expression>> = fields.fields.iter().map(|_| None).collect();
    for (key, value) in doc.fields() {
        let Some(at) = fields.fields.iter().position(|field| field.name == key) else {
            let text = format!("{name} found an unknown argument: {key}");
            return Err(Error::location(fields.unknown, text));
        };
        args[at] = Some(operand(value, context)?);
    }
    let named = args.into_iter().zip(fields.fields).map(|(arg, field)| match arg {
        Some(arg) => Ok(arg),
        None if field.missing == 0 => Ok(Expression::from_node(ExpressionNode::Absent)),
        None => {
            let text = format!("{name} requires '{}' to be specified", field.name);
            Err(Error::location(field.missing, text))
        }
    });
    named.collect()
}

/// Parses `"$a.b"` or `"$$name.a.b"`.
fn path_or_variable(text: &str, context: &ParseContext) -> Result<Expression> {
    let Some(variable) = text.strip_prefix("$$") else {
        let dotted = text.strip_prefix('$').unwrap_or(text);
        if dotted.is_empty() {
            return Err(Error::location(16872, "'$' by itself is not a valid FieldPath"));
        }
        return variable_path("CURRENT", Some(FieldPath::parse(dotted)?), context);
    };
    let (name, path) = match variable.split_once('.') {
        Some((name, path)) => (name, Some(path)),
        None => (variable, None),
    };
    check_variable_name(name, false)?;
    let path = match path {
        Some("") => return Err(Error::location(40353, "FieldPath must not end with a '.'.")),
        Some(path) => Some(FieldPath::parse(path)?),
        None => None,
    };
    variable_path(name, path, context)
}

fn variable_path(
    name: &str,
    path: Option<FieldPath>,
    context: &ParseContext,
) -> Result<Expression> {
    let node = match (context.resolve(name)?, path) {
        (Binding::Root, Some(path)) => ExpressionNode::Path(path),
        (Binding::Remove, _) => ExpressionNode::Missing,
        (binding, path) => ExpressionNode::Variable(Variable { name: name.into(), binding, path }),
    };
    Ok(Expression::from_node(node))
}

/// Fails for an invalid variable name: of a variable that is read (`user_defined` false) or bound.
pub fn check_variable_name(name: &str, user_defined: bool) -> Result<()> {
    if user_defined && name == "CURRENT" {
        return Ok(());
    }
    let mut bytes = name.bytes();
    let Some(first) = bytes.next() else {
        return Err(Error::failed_to_parse("empty variable names are not allowed"));
    };
    let allowed_first = if user_defined {
        first.is_ascii_lowercase() || !first.is_ascii()
    } else {
        first.is_ascii_alphabetic() || !first.is_ascii()
    };
    if !allowed_first {
        let kind = if user_defined { "user variable" } else { "variable" };
        let text = format!("'{name}' starts with an invalid character for a {kind} name");
        return Err(Error::failed_to_parse(text));
    }
    if let Some(wrong) =
        bytes.find(|byte| !(byte.is_ascii_alphanumeric() || *byte == b'_' || !byte.is_ascii()))
    {
        let text = format!(
            "'{name}' contains an invalid character for a variable name: '{}'",
            wrong as char
        );
        return Err(Error::failed_to_parse(text));
    }
    Ok(())
}
