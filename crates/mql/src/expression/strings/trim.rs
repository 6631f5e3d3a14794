//! `$trim`, `$ltrim`, `$rtrim`.

use super::super::operator::Call;
use super::coerce::text_of;
use crate::context::EvalContext;
use quire_document::Value;
use quire_error::Result;
use std::collections::HashSet;

/// Up to this number of characters a linear search is used; beyond it a hash table.
const LISTED_MAX: usize = 32;

/// The characters that are trimmed without `chars`: the white space in the manual's table, and NUL.
const WHITE_SPACE: &[char] = &[
    '\0', ' ', '\t', '\n', '\u{b}', '\u{c}', '\r', '\u{a0}', '\u{1680}', '\u{2000}', '\u{2001}',
    '\u{2002}', '\u{2003}', '\u{2004}', '\u{2005}', '\u{2006}', '\u{2007}', '\u{2008}', '\u{2009}',
    '\u{200a}',
];

pub(super) fn run<'a>(
    call: &'a Call,
    cx: &EvalContext<'a>,
    left: bool,
    right: bool,
) -> Result<Option<Value<'a>>> {
    let name = call.name();
    let input = call.eval(0, cx)?;
    if input.is_none_or(|value| value.is_nullish()) {
        return Ok(Some(Value::Null));
    }
    let text = text_of(input, 50699, &format!("{name} requires its input to be a string, got "))?;
    let given: Vec<char>;
    let chars = if call.has(1) {
        let chars = call.eval(1, cx)?;
        if chars.is_none_or(|value| value.is_nullish()) {
            return Ok(Some(Value::Null));
        }
        let message = format!("{name} requires 'chars' to be a string, got ");
        given = text_of(chars, 50700, &message)?.chars().collect();
        &given[..]
    } else {
        WHITE_SPACE
    };
    // Many characters are put into a hash table, because a linear search for each character of the
    // input would be slow.
    let set: HashSet<char> =
        if chars.len() > LISTED_MAX { chars.iter().copied().collect() } else { HashSet::new() };
    let trimmed = |c: char| match chars.len() > LISTED_MAX {
        true => set.contains(&c),
        false => chars.contains(&c),
    };
    let text = if left { text.trim_start_matches(trimmed) } else { text };
    let text = if right { text.trim_end_matches(trimmed) } else { text };
    Ok(Some(Value::String(text)))
}
