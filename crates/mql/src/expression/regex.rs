//! `$regexMatch`, `$regexFind`, `$regexFindAll`.

use super::operator::{Arity, Call, Field, Fields, Operator};
use super::tree::Expression;
use crate::context::EvalContext;
use crate::regex::{Captures, PATTERN_BYTES_MAX, Regex};
use quire_document::Value;
use quire_error::{Error, Result};
use std::cell::RefCell;

const FIELDS: Fields = Fields {
    fields: &[
        Field::required("input", 31022),
        Field::required("regex", 31023),
        Field::optional("options"),
    ],
    not_object: 51103,
    unknown: 31024,
};

/// The registry rows of this family.
pub(super) const OPERATORS: &[Operator] = &[
    Operator::checked("$regexFind", Arity::Named(&FIELDS), check_pattern, find_first)
        .unfolded()
        .doc("The first match of a regular expression, with its position and groups.")
        .since("4.2"),
    Operator::checked("$regexFindAll", Arity::Named(&FIELDS), check_pattern, find_all)
        .unfolded()
        .doc("All matches of a regular expression, with their positions and groups.")
        .since("4.2"),
    Operator::checked("$regexMatch", Arity::Named(&FIELDS), check_pattern, is_match)
        .unfolded()
        .doc("True if a regular expression matches.")
        .since("4.2"),
];

/// The most compiled patterns that a thread caches, so that an expression compiles its pattern once
/// for many documents.
const KEPT_MAX: usize = 16;

/// The most bytes of patterns in a thread's cache, if it has more than one. The machine code is up
/// to a hundred times as long as its pattern.
const KEPT_BYTES_MAX: usize = 4096;

thread_local! {
    static KEPT: RefCell<Vec<(String, String, Regex)>> = const { RefCell::new(Vec::new()) };
}

/// Compiles a constant pattern during parsing, so that its errors occur then. The call is not
/// folded, because mongod evaluates even constant input for each document.
fn check_pattern(call: &Call) -> Result<()> {
    let known = |at| call.arg(at).is_none_or(Expression::is_constant);
    if known(1) && known(2) {
        pattern(call.name(), call.constant(1), call.constant(2))?;
    }
    Ok(())
}

/// Returns the checked arguments; `None` if input or regex is null.
fn arguments<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<Option<(&'a str, Regex)>> {
    let name = call.name();
    let input = call.eval(0, cx)?;
    let compiled = pattern(name, call.eval(1, cx)?, call.eval(2, cx)?)?;
    let input = match input {
        None | Some(Value::Null | Value::Undefined) => None,
        Some(Value::String(input)) => Some(input),
        Some(_) => {
            return Err(Error::location(
                51104,
                format!("{name} needs 'input' to be of type string"),
            ));
        }
    };
    Ok(input.zip(compiled))
}

/// Returns the compiled pattern of `regex` and `options`; `None` for null.
fn pattern(
    name: &str,
    regex: Option<Value<'_>>,
    options: Option<Value<'_>>,
) -> Result<Option<Regex>> {
    let options = match options {
        None | Some(Value::Null | Value::Undefined) => None,
        Some(Value::String(options)) => Some(options),
        Some(_) => {
            return Err(Error::location(
                51106,
                format!("{name} needs 'options' to be of type string"),
            ));
        }
    };
    let pattern = match regex {
        None | Some(Value::Null | Value::Undefined) => None,
        Some(Value::String(pattern)) => Some((pattern, options.unwrap_or_default())),
        Some(Value::Regex(regex)) => match options {
            Some(_) if !regex.options.is_empty() => {
                let text = format!(
                    "{name} found regex option(s) specified in both 'regex' and 'option' fields"
                );
                return Err(Error::location(51107, text));
            }
            given => Some((regex.pattern, given.unwrap_or(regex.options))),
        },
        Some(_) => {
            let text = format!("{name} needs 'regex' to be of type string or regex");
            return Err(Error::location(51105, text));
        }
    };
    pattern.map(|(pattern, options)| compile(name, pattern, options)).transpose()
}

fn compile(name: &str, pattern: &str, options: &str) -> Result<Regex> {
    if pattern.len() > PATTERN_BYTES_MAX {
        let text = format!("Invalid Regex in {name}: pattern string is longer than the limit");
        return Err(Error::location(51111, text));
    }
    if pattern.contains('\0') {
        let text = format!("{name}: regular expression cannot contain an embedded null byte");
        return Err(Error::location(51109, text));
    }
    if options.contains('\0') {
        let text =
            format!("{name}: regular expression options cannot contain an embedded null byte");
        return Err(Error::location(51110, text));
    }
    KEPT.with_borrow_mut(|kept| {
        if let Some(at) = kept.iter().position(|(p, o, _)| p == pattern && o == options) {
            return Ok(kept[at].2.clone());
        }
        let regex = Regex::new(pattern, options).map_err(|error| match error.code().number() {
            51108 => error,
            _ => Error::location(51111, format!("Invalid Regex in {name}: {}", error.message())),
        })?;
        // The latest pattern is always kept, whatever its length, because an expression uses it for
        // many documents.
        let bytes = |kept: &[(String, String, Regex)]| -> usize {
            kept.iter().map(|(pattern, ..)| pattern.len()).sum()
        };
        while kept.len() == KEPT_MAX
            || (!kept.is_empty() && bytes(kept) + pattern.len() > KEPT_BYTES_MAX)
        {
            kept.remove(0);
        }
        kept.push((pattern.to_owned(), options.to_owned(), regex.clone()));
        Ok(regex)
    })
}

fn is_match<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
    let Some((input, regex)) = arguments(call, cx)? else { return Ok(Some(Value::Bool(false))) };
    let found = regex.is_match(input, cx.shared);
    Ok(Some(Value::Bool(found.map_err(|error| error.in_operator(call.name()))?)))
}

fn find_first<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
    let Some((input, regex)) = arguments(call, cx)? else { return Ok(Some(Value::Null)) };
    let found = regex.captures_at(input, 0, cx.shared);
    let found = found.map_err(|error| error.in_operator(call.name()))?;
    found.map_or(Ok(Some(Value::Null)), |captures| {
        let place = code_points(input, 0, captures.get(0).map_or(0, |whole| whole.0));
        describe(cx, input, &captures, place).map(Some)
    })
}

fn find_all<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
    let mut matches = Vec::new();
    let Some((input, regex)) = arguments(call, cx)? else { return cx.array_of(matches).map(Some) };
    let (mut start, mut place, mut counted, mut bytes) = (0, 0, 0, 0);
    // An empty match at the end counts only if the text is empty.
    while start < input.len() || (start == 0 && input.is_empty()) {
        let found = regex.captures_at(input, start, cx.shared);
        let found = found.map_err(|error| error.in_operator(call.name()))?;
        let Some(captures) = found else { break };
        let (from, to) = captures.get(0).unwrap_or((start, start));
        place += code_points(input, counted, from);
        counted = from;
        let shown = describe(cx, input, &captures, place)?;
        bytes += if let Value::Document(doc) = shown { doc.len() } else { 0 };
        cx.check_size(bytes)?;
        matches.push(shown);
        // After an empty match the search continues one code point later, so that it ends.
        let step = input.get(to..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8);
        start = if to > from { to } else { to + step };
    }
    cx.array_of(matches).map(Some)
}

/// Returns the number of code points between two byte offsets.
fn code_points(input: &str, from: usize, to: usize) -> i32 {
    input.get(from..to).map_or(0, |part| part.chars().count() as i32)
}

/// Returns the document `{match, idx, captures}`.
fn describe<'a>(
    cx: &EvalContext<'a>,
    input: &str,
    captures: &Captures,
    place: i32,
) -> Result<Value<'a>> {
    let group = |index: usize| captures.get(index).and_then(|(from, to)| input.get(from..to));
    let doc = cx.document(|writer| {
        writer.append("match", group(0).unwrap_or_default()).append("idx", place);
        let mut list = writer.array("captures");
        (1..captures.count()).for_each(|index| {
            list.push(group(index).map_or(Value::Null, Value::String));
        });
        Ok(())
    })?;
    Ok(Value::Document(doc))
}
