//! Operators that read arrays: `$arrayElemAt`, `$first`, `$last`, `$in`, `$indexOfArray`,
//! `$isArray`, `$size`, `$slice`, `$reverseArray`.

use super::operator::{Arity, Call, Operator};
use crate::context::EvalContext;
use quire_document::{Array, Value, equal, message};
use quire_error::{Error, Result};

/// The registry rows of this family.
pub(super) const OPERATORS: &[Operator] = &[
    Operator::function("$arrayElemAt", Arity::Exactly(2), array_elem_at)
        .doc("The element at an index; a negative one counts from the end.")
        .since("3.2"),
    Operator::function("$first", Arity::Exactly(1), first)
        .doc("An array's first element.")
        .since("4.4"),
    Operator::function("$last", Arity::Exactly(1), last)
        .doc("An array's last element.")
        .since("4.4"),
    Operator::function("$in", Arity::Exactly(2), is_in)
        .doc("True if the first argument is an element of the second.")
        .since("3.4"),
    Operator::function("$indexOfArray", Arity::Between(2, 4), index_of)
        .doc("The index of the first element equal to a value, or -1.")
        .since("3.4"),
    Operator::function("$isArray", Arity::Exactly(1), is_array)
        .doc("True if the argument is an array.")
        .total()
        .since("3.2"),
    Operator::function("$size", Arity::Exactly(1), size).doc("The number of elements of an array."),
    Operator::function("$slice", Arity::Between(2, 3), slice)
        .doc("The first or last n elements, or n elements from a position.")
        .since("3.2"),
    Operator::function("$reverseArray", Arity::Exactly(1), reverse)
        .doc("The elements in reverse order.")
        .since("3.4"),
];

/// Returns the value as a 32-bit integer if it equals one, whatever its numeric type.
pub(super) fn integral(value: Value<'_>) -> Option<i32> {
    i32::try_from(value.as_number()?.exact_i64()?).ok()
}

/// Returns "missing" or the name of the type.
pub(super) fn type_name(value: Option<Value<'_>>) -> &'static str {
    value.map_or("missing", |value| value.type_name())
}

/// Returns true for null, undefined and missing values.
pub(super) fn is_nullish(value: Option<Value<'_>>) -> bool {
    value.is_none_or(|value| value.is_nullish())
}

/// Evaluates argument `index`, which must be an array. Returns `None` for null, undefined and
/// missing values.
pub(super) fn array_or_null<'a>(
    call: &'a Call,
    index: usize,
    cx: &EvalContext<'a>,
    code: i32,
) -> Result<Option<Array<'a>>> {
    match call.eval(index, cx)? {
        None | Some(Value::Null | Value::Undefined) => Ok(None),
        Some(Value::Array(array)) => Ok(Some(array)),
        Some(other) => {
            let text = format!(
                "{}'s argument must be an array, but is {}",
                call.name(),
                other.type_name()
            );
            Err(Error::location(code, text))
        }
    }
}

fn array_elem_at<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
    let (array, index) = (call.eval(0, cx)?, call.eval(1, cx)?);
    let (Some(array), Some(index)) = (array, index) else { return Ok(Some(Value::Null)) };
    if array.is_nullish() || index.is_nullish() {
        return Ok(Some(Value::Null));
    }
    let Value::Array(array) = array else {
        let text =
            format!("$arrayElemAt's first argument must be an array, but is {}", array.type_name());
        return Err(Error::location(28689, text));
    };
    if !index.is_number() {
        let text = format!(
            "$arrayElemAt's second argument must be a numeric value, but is {}",
            index.type_name()
        );
        return Err(Error::location(28690, text));
    }
    let Some(index) = integral(index) else {
        let text = format!(
            "$arrayElemAt's second argument must be representable as a 32-bit integer: {}",
            message(index)
        );
        return Err(Error::location(28691, text));
    };
    if index >= 0 {
        return Ok(cx.element(array, index as usize));
    }
    let from_end = index.unsigned_abs() as usize;
    Ok(cx.count(array)?.checked_sub(from_end).and_then(|at| cx.element(array, at)))
}

fn first<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
    match array_or_null(call, 0, cx, 28689)? {
        Some(array) => Ok(array.iter().next()),
        None => Ok(Some(Value::Null)),
    }
}

fn last<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
    match array_or_null(call, 0, cx, 28689)? {
        Some(array) => Ok(cx.last_element(array)),
        None => Ok(Some(Value::Null)),
    }
}

fn is_in<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
    let (wanted, array) = (call.eval(0, cx)?, call.eval(1, cx)?);
    let Some(Value::Array(array)) = array else {
        let text =
            format!("$in requires an array as a second argument, found: {}", type_name(array));
        return Err(Error::location(40081, text));
    };
    let collator = cx.collator();
    let found = wanted.is_some_and(|wanted| array.iter().any(|item| equal(item, wanted, collator)));
    Ok(Some(Value::Bool(found)))
}

fn position<'a>(call: &'a Call, index: usize, name: &str, cx: &EvalContext<'a>) -> Result<usize> {
    let value = call.eval(index, cx)?;
    let Some(number) = value.and_then(integral) else {
        let text = format!(
            "$indexOfArray requires an integral {name}, found a value of type: {}",
            type_name(value)
        );
        return Err(Error::location(9711600, text));
    };
    usize::try_from(number).map_err(|_| {
        let text = format!("$indexOfArray requires a nonnegative {name}, found: {number}");
        Error::location(9711601, text)
    })
}

fn index_of<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
    let array = match call.eval(0, cx)? {
        None | Some(Value::Null | Value::Undefined) => return Ok(Some(Value::Null)),
        Some(Value::Array(array)) => array,
        Some(other) => {
            let text = format!(
                "$indexOfArray requires an array as a first argument, found: {}",
                other.type_name()
            );
            return Err(Error::location(40090, text));
        }
    };
    let wanted = call.eval(1, cx)?;
    let start = if call.has(2) { position(call, 2, "starting index", cx)? } else { 0 };
    let end = if call.has(3) { position(call, 3, "ending index", cx)? } else { usize::MAX };
    let collator = cx.collator();
    let found = wanted.and_then(|wanted| {
        let mut candidates = cx.elements_from(array, start).take(end.saturating_sub(start));
        candidates.position(|item| equal(item.value(), wanted, collator))
    });
    Ok(Some(Value::Int32(found.map_or(-1, |at| (start + at) as i32))))
}

fn is_array<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
    Ok(Some(Value::Bool(matches!(call.eval(0, cx)?, Some(Value::Array(_))))))
}

fn size<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
    match call.eval(0, cx)? {
        Some(Value::Array(array)) => Ok(Some(Value::Int32(cx.count(array)? as i32))),
        other => {
            let text = format!(
                "The argument to $size must be an array, but was of type: {}",
                type_name(other)
            );
            Err(Error::location(17124, text))
        }
    }
}

fn slice_number(value: Value<'_>, which: &str, codes: (i32, i32)) -> Result<i64> {
    if !value.is_number() {
        let text = format!(
            "{which} argument to $slice must be numeric, but is of type: {}",
            value.type_name()
        );
        return Err(Error::location(codes.0, text));
    }
    integral(value).map(i64::from).ok_or_else(|| {
        let text = format!(
            "{which} argument to $slice can't be represented as a 32-bit integer: {}",
            message(value)
        );
        Error::location(codes.1, text)
    })
}

fn slice<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
    let (array, second) = (call.eval(0, cx)?, call.eval(1, cx)?);
    let (Some(array), Some(second)) = (array, second) else { return Ok(Some(Value::Null)) };
    if array.is_nullish() || second.is_nullish() {
        return Ok(Some(Value::Null));
    }
    let Value::Array(array) = array else {
        let text = format!(
            "First argument to $slice must be an array, but is of type: {}",
            array.type_name()
        );
        return Err(Error::location(28724, text));
    };
    let second = slice_number(second, "Second", (28725, 28726))?;
    let length = cx.count(array)? as i64;
    let third = if call.has(2) { Some(call.eval(2, cx)?) } else { None };
    let (start, count) = match third {
        None if second >= 0 => (0, second),
        None => ((length + second).max(0), -second),
        Some(None | Some(Value::Null | Value::Undefined)) => return Ok(Some(Value::Null)),
        Some(Some(third)) => {
            let count = slice_number(third, "Third", (28725, 28726))?;
            if count <= 0 {
                let text = format!("Third argument to $slice must be positive: {count}");
                return Err(Error::location(28729, text));
            }
            let start = if second < 0 { (length + second).max(0) } else { second };
            (start, count)
        }
    };
    if start == 0 && count >= length {
        return Ok(Some(Value::Array(array)));
    }
    let kept = cx.elements_from(array, start as usize).take(count as usize);
    cx.array_of_elements(kept).map(Some)
}

fn reverse<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
    let Some(array) = array_or_null(call, 0, cx, 34435)? else { return Ok(Some(Value::Null)) };
    cx.charge_elements([array])?;
    let elements: Vec<_> = array.as_doc().iter().collect();
    cx.array_of_elements(elements.into_iter().rev()).map(Some)
}
