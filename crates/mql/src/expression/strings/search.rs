//! Searches for strings in strings: `$indexOfBytes`, `$indexOfCP`, `$split`, `$replaceOne`,
//! `$replaceAll`.

use super::super::operator::Call;
use super::check_length;
use super::coerce::text_of;
use crate::context::EvalContext;
use memchr::memmem;
use quire_document::Value;
use quire_document::number::Number;
use quire_error::{Error, Result};

fn is_null(value: Option<Value<'_>>) -> bool {
    value.is_none_or(|value| value.is_nullish())
}

/// The arguments of an index search: the string, the string to find, start and end.
struct Search<'a> {
    text: &'a str,
    find: &'a str,
    start: usize,
    end: Option<usize>,
}

impl<'a> Search<'a> {
    /// Evaluates the arguments; `None` if the string is null.
    fn new(call: &'a Call, cx: &EvalContext<'a>, codes: (i32, i32)) -> Result<Option<Self>> {
        let text = call.eval(0, cx)?;
        if is_null(text) {
            return Ok(None);
        }
        let name = call.name();
        let text = text_of(
            text,
            codes.0,
            &format!("{name} requires a string as the first argument, found: "),
        )?;
        let find = call.eval(1, cx)?;
        let find = text_of(
            find,
            codes.1,
            &format!("{name} requires a string as the second argument, found: "),
        )?;
        let start = if call.has(2) { index(call, cx, 2, "starting")? } else { 0 };
        let end = if call.has(3) { Some(index(call, cx, 3, "ending")?) } else { None };
        Ok(Some(Search { text, find, start, end }))
    }
}

/// Evaluates an argument that must be an integer from 0 that fits in 32 bits.
fn index(call: &Call, cx: &EvalContext<'_>, at: usize, which: &str) -> Result<usize> {
    let value = call.args.get(at).map(|arg| arg.eval(cx)).transpose()?.flatten();
    let exact = value.and_then(|value| value.as_number()).and_then(Number::exact_i64);
    let Some(number) = exact.and_then(|number| i32::try_from(number).ok()) else {
        let found = value.map_or("missing", |value| value.type_name());
        let text = format!(
            "{} requires an integral {which} index, found a value of type: {found}",
            call.name()
        );
        return Err(Error::location(40096, text));
    };
    usize::try_from(number).map_err(|_| {
        let text = format!("{} requires a nonnegative {which} index, found: {number}", call.name());
        Error::location(40097, text)
    })
}

pub(super) fn index_of_bytes<'a>(
    call: &'a Call,
    cx: &EvalContext<'a>,
) -> Result<Option<Value<'a>>> {
    let Some(search) = Search::new(call, cx, (40091, 40092))? else { return Ok(Some(Value::Null)) };
    let (text, find) = (search.text.as_bytes(), search.find.as_bytes());
    let end = search.end.unwrap_or(text.len()).min(text.len());
    let found = match text.get(search.start..end) {
        Some(part) if find.is_empty() => Some(0).filter(|_| part.len() + search.start <= end),
        Some(part) => memmem::find(part, find),
        None => None,
    };
    let at = found.map_or(-1, |at| (at + search.start) as i32);
    Ok(Some(Value::Int32(at)))
}

pub(super) fn index_of_code_points<'a>(
    call: &'a Call,
    cx: &EvalContext<'a>,
) -> Result<Option<Value<'a>>> {
    let Some(search) = Search::new(call, cx, (40093, 40094))? else { return Ok(Some(Value::Null)) };
    let count = search.text.chars().count();
    let end = search.end.unwrap_or(count).min(count);
    let starts = search.text.char_indices().enumerate().take(end).skip(search.start);
    let found = first_at(search.text, search.find, starts.map(|(point, (byte, _))| (point, byte)));
    let both_empty = count == 0 && search.find.is_empty() && search.start == 0;
    let at = match found {
        Some(point) => point as i32,
        None if both_empty => 0,
        None => -1,
    };
    Ok(Some(Value::Int32(at)))
}

/// Returns the code point of the first of `starts` at which `find` begins. The match may extend
/// beyond the last of `starts`.
fn first_at(
    text: &str,
    find: &str,
    mut starts: impl Iterator<Item = (usize, usize)>,
) -> Option<usize> {
    let (point, byte) = starts.next()?;
    let found = byte + memmem::find(text.get(byte..)?.as_bytes(), find.as_bytes())?;
    match found == byte {
        true => Some(point),
        false => starts.find(|(_, byte)| *byte == found).map(|(point, _)| point),
    }
}

pub(super) fn split<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
    let (text, delimiter) = (call.eval(0, cx)?, call.eval(1, cx)?);
    if is_null(text) || is_null(delimiter) {
        return Ok(Some(Value::Null));
    }
    let text = text_of(
        text,
        40085,
        "$split requires an expression that evaluates to a string as a first argument, found: ",
    )?;
    let delimiter = text_of(
        delimiter,
        10503900,
        "$split requires an expression that evaluates to a string as a second argument, found: ",
    )?;
    if delimiter.is_empty() {
        return Err(Error::location(40087, "$split requires a non-empty separator"));
    }
    check_length(text.len())?;
    cx.array_of(text.split(delimiter).map(Value::String)).map(Some)
}

pub(super) fn replace<'a>(
    call: &'a Call,
    cx: &EvalContext<'a>,
    times: usize,
) -> Result<Option<Value<'a>>> {
    let (input, find, replacement) = (call.eval(0, cx)?, call.eval(1, cx)?, call.eval(2, cx)?);
    for (value, name, code) in [
        (input, "input", 10503904),
        (find, "find", 10503901),
        (replacement, "replacement", 10503902),
    ] {
        if !is_null(value) {
            text_of(
                value,
                code,
                &format!("{} requires that '{name}' be a string, found: ", call.name()),
            )?;
        }
    }
    let (Some(Value::String(input)), Some(Value::String(find)), Some(Value::String(replacement))) =
        (input, find, replacement)
    else {
        return Ok(Some(Value::Null));
    };
    let occurrences = input.matches(find).take(times).count();
    let size = input.len() + occurrences * replacement.len();
    check_length(size.saturating_sub(occurrences * find.len()))?;
    cx.string(&input.replacen(find, replacement, times)).map(Some)
}
