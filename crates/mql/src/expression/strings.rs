//! String operators, by code points and by bytes. Case conversion affects ASCII letters only.

mod coerce;
mod search;
mod substring;
mod trim;

use super::operator::{Arity, Call, Field, Fields, Operator};
use super::tree::Expression;
use crate::context::EvalContext;
use coerce::text_of;
use quire_document::Value;
use quire_error::{Error, Result};

pub(super) use coerce::coerced_text;
pub(crate) use coerce::six_digits;

/// The largest string in bytes that an operator may return, with its terminator.
const STRING_BYTES_MAX: usize = 16 * 1024 * 1024;

const TRIM_FIELDS: Fields = Fields {
    fields: &[Field::required("input", 50695), Field::optional("chars")],
    not_object: 50696,
    unknown: 50694,
};
const REPLACE_FIELDS: Fields = Fields {
    fields: &[
        Field::required("input", 51749),
        Field::required("find", 51748),
        Field::required("replacement", 51747),
    ],
    not_object: 51751,
    unknown: 51750,
};

/// The registry rows of this family.
pub(super) const OPERATORS: &[Operator] = &[
    Operator::function("$concat", Arity::Any, concat).doc("The concatenation of strings."),
    Operator::function("$indexOfBytes", Arity::Between(2, 4), search::index_of_bytes)
        .doc("The byte at which a string begins in another one.")
        .since("3.4"),
    Operator::function("$indexOfCP", Arity::Between(2, 4), search::index_of_code_points)
        .doc("The code point at which a string begins in another one.")
        .since("3.4"),
    Operator::function("$ltrim", Arity::Named(&TRIM_FIELDS), |call, cx| {
        trim::run(call, cx, true, false)
    })
    .doc("A string without white space (or the given characters) at its start.")
    .since("4.0"),
    Operator::function("$replaceAll", Arity::Named(&REPLACE_FIELDS), |call, cx| {
        search::replace(call, cx, usize::MAX)
    })
    .doc("A string with every occurrence of another one replaced.")
    .since("4.4"),
    Operator::function("$replaceOne", Arity::Named(&REPLACE_FIELDS), |call, cx| {
        search::replace(call, cx, 1)
    })
    .doc("A string with the first occurrence of another one replaced.")
    .since("4.4"),
    Operator::function("$rtrim", Arity::Named(&TRIM_FIELDS), |call, cx| {
        trim::run(call, cx, false, true)
    })
    .doc("A string without white space (or the given characters) at its end.")
    .since("4.0"),
    Operator::function("$split", Arity::Exactly(2), search::split)
        .doc("The parts of a string between delimiters.")
        .since("3.4"),
    Operator::function("$strLenBytes", Arity::Exactly(1), length_in_bytes)
        .doc("The length of a string in UTF-8 bytes.")
        .since("3.4"),
    Operator::function("$strLenCP", Arity::Exactly(1), length_in_code_points)
        .doc("The length of a string in code points.")
        .since("3.4"),
    Operator::function("$strcasecmp", Arity::Exactly(2), compare_ignoring_case)
        .doc("The order of two strings without regard to ASCII case: -1, 0 or 1."),
    Operator::function("$substr", Arity::Exactly(3), substring::by_bytes)
        .doc("The older name of $substrBytes."),
    Operator::function("$substrBytes", Arity::Exactly(3), substring::by_bytes)
        .doc("A part of a string, counted in bytes.")
        .since("3.4"),
    Operator::function("$substrCP", Arity::Exactly(3), substring::by_code_points)
        .doc("A part of a string, counted in code points.")
        .since("3.4"),
    Operator::function("$toLower", Arity::Exactly(1), |call, cx| {
        change_case(call, cx, str::make_ascii_lowercase)
    })
    .doc("A string with its ASCII letters in lower case."),
    Operator::function("$toUpper", Arity::Exactly(1), |call, cx| {
        change_case(call, cx, str::make_ascii_uppercase)
    })
    .doc("A string with its ASCII letters in upper case."),
    Operator::function("$trim", Arity::Named(&TRIM_FIELDS), |call, cx| {
        trim::run(call, cx, true, true)
    })
    .doc("A string without white space (or the given characters) at both ends.")
    .since("4.0"),
];

/// Fails with 16493 if the result is too long for a document.
pub(super) fn check_length(bytes: usize) -> Result<()> {
    if bytes < STRING_BYTES_MAX {
        return Ok(());
    }
    let text = format!("string length {bytes} is over the limit of {STRING_BYTES_MAX} bytes");
    Err(Error::location(16493, text))
}

fn concat<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
    let mut whole = String::new();
    match append(&mut whole, &call.args, cx)? {
        Some(()) => cx.string(&whole).map(Some),
        None => Ok(Some(Value::Null)),
    }
}

/// Appends the strings of all arguments to `whole`. Returns `None` at the first that is null or
/// missing.
pub(super) fn append<'a>(
    whole: &mut String,
    args: &'a [Expression],
    cx: &EvalContext<'a>,
) -> Result<Option<()>> {
    for arg in args {
        match arg.eval(cx)? {
            None | Some(Value::Null | Value::Undefined) => return Ok(None),
            Some(Value::String(text)) => {
                check_length(whole.len() + text.len())?;
                whole.push_str(text);
            }
            Some(other) => {
                let text = format!("$concat only supports strings, not {}", other.type_name());
                return Err(Error::location(16702, text));
            }
        }
    }
    Ok(Some(()))
}

fn length_in_bytes<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
    let text =
        text_of(call.eval(0, cx)?, 34473, "$strLenBytes requires a string argument, found: ")?;
    Ok(Some(Value::Int32(text.len() as i32)))
}

fn length_in_code_points<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
    let text = text_of(call.eval(0, cx)?, 34471, "$strLenCP requires a string argument, found: ")?;
    Ok(Some(Value::Int32(text.chars().count() as i32)))
}

fn compare_ignoring_case<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
    let fold = |index: usize| -> Result<String> {
        Ok(coerced_text(call.eval(index, cx)?)?.to_ascii_uppercase())
    };
    let (left, right) = (fold(0)?, fold(1)?);
    Ok(Some(Value::Int32(left.cmp(&right) as i32)))
}

fn change_case<'a>(
    call: &'a Call,
    cx: &EvalContext<'a>,
    change: fn(&mut str),
) -> Result<Option<Value<'a>>> {
    let mut text = coerced_text(call.eval(0, cx)?)?.into_owned();
    check_length(text.len())?;
    change(&mut text);
    cx.string(&text).map(Some)
}
