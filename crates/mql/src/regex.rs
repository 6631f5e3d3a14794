//! Regular expressions with MongoDB's semantics: PCRE2 in UTF mode, with MongoDB's options, limits
//! and error codes. A match that exceeds its limits is an error, never "no match".
//!
//! Read in this order: this file, `engine` (the C library), `prefix` (for index bounds).

mod engine;
mod prefix;

pub use prefix::Prefix;

use crate::context::Shared;
use engine::{Code, Limits, Mode, Pairs};
use pcre2_sys as sys;
use prefix::prefix;
use quire_error::{Error, Result};
use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// The longest pattern in bytes (MongoDB's limit, error 51091 beyond it, 51111 in expressions).
pub const PATTERN_BYTES_MAX: usize = 16 * 1024;

/// The most backtracking points of a match at one starting position (MongoDB builds PCRE2 with this
/// limit).
const STEPS_MAX: u32 = 200_000;

/// The most nested backtracking points of an interpreted match (MongoDB builds PCRE2 with this
/// limit).
const DEPTH_MAX: u32 = 4_000;

/// The most characters that one call of code without callouts may read, because it cannot be
/// interrupted. Takes about 50 ms.
const UNWATCHED_CHARACTERS_MAX: usize = 1 << 26;

/// A text of at most this many bytes is searched with one call of the library.
const SHORT_BYTES: usize = 256;

/// The number of starting positions that one call tries in a longer text, if the pattern can
/// backtrack.
const STARTS: usize = 64;

/// The number of characters that a match with callouts reads between two checks of the interrupt.
const WATCHED_CHARACTERS: usize = 1 << 22;

/// A compiled regular expression. Cheap to clone and to share between threads.
#[derive(Clone)]
pub struct Regex(Arc<Compiled>);

struct Compiled {
    pattern: Box<str>,
    options: Box<str>,
    /// The pattern and the option bits in PCRE2's form.
    source: Box<str>,
    bits: u32,
    code: Code,
    /// The same code with callouts, at which a match can be interrupted. Compiled when it is first
    /// needed.
    watched: OnceLock<Code>,
    searching: Searching,
}

/// How the starting positions of a match are tried.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Searching {
    /// A match must begin at the first position.
    Anchored,
    /// No item of the pattern repeats, so the cost of each position is bounded by the pattern's
    /// length.
    Straight,
    /// Several calls may each try some positions.
    Windows,
    /// The result depends on where the search began (`\G`, verbs), so only one call is possible.
    Whole,
}

/// The byte offsets of a match and its groups in the text.
pub struct Captures(Vec<Option<(usize, usize)>>);

impl Captures {
    /// Returns start and end of group `index` (0 is the whole match); `None` if the group is not
    /// part of the match.
    pub fn get(&self, index: usize) -> Option<(usize, usize)> {
        self.0.get(index).copied().flatten()
    }

    /// Returns the number of groups, counting the whole match.
    pub fn count(&self) -> usize {
        self.0.len()
    }
}

/// The reason why a match was ended.
#[derive(Debug)]
pub enum MatchError {
    /// PCRE2's result code, for example -47 for the limit of backtracking points.
    Engine(i32),
    /// The operation was killed or its deadline passed.
    Interrupted(Error),
}

impl MatchError {
    /// Returns the error 51156, with the operator and the result code.
    pub fn in_operator(self, operator: &str) -> Error {
        match self {
            MatchError::Interrupted(error) => error,
            MatchError::Engine(code) => Error::location(
                51156,
                format!(
                    "Error occurred while executing the regular expression in {operator}. Result code: {code}"
                ),
            ),
        }
    }
}

impl Regex {
    /// Compiles a pattern. Fails with 51091 for an invalid or too long pattern, with 51108 for an
    /// unknown option, and with BadValue for a null byte.
    pub fn new(pattern: &str, options: &str) -> Result<Regex> {
        if pattern.contains('\0') {
            return Err(Error::bad_value(
                "Regular expression cannot contain an embedded null byte",
            ));
        }
        if pattern.len() > PATTERN_BYTES_MAX {
            return Err(Error::location(51091, "Regular expression is too long"));
        }
        let (source, bits) = (with_literal_braces(pattern), option_bits(options)?);
        let code = Code::compile(&source, bits).map_err(|error| {
            Error::location(51091, format!("Regular expression is invalid: {}", error.0))
        })?;
        let searching = searching(&source, &code);
        Ok(Regex(Arc::new(Compiled {
            pattern: pattern.into(),
            options: options.into(),
            source: source.into(),
            bits,
            code,
            watched: OnceLock::new(),
            searching,
        })))
    }

    /// Returns the pattern as the user wrote it.
    pub fn pattern(&self) -> &str {
        &self.0.pattern
    }

    /// Returns the option letters as the user wrote them.
    pub fn options(&self) -> &str {
        &self.0.options
    }

    /// Returns true if the text contains a match.
    #[inline]
    pub fn is_match(&self, text: &str, shared: &Shared) -> Result<bool, MatchError> {
        Ok(self.search(text, 0, 1, shared, &|_| ())?.is_some())
    }

    /// Returns the first match at or after the byte `start`.
    pub fn captures_at(
        &self,
        text: &str,
        start: usize,
        shared: &Shared,
    ) -> Result<Option<Captures>, MatchError> {
        let pairs = self.group_count() + 1;
        self.search(text, start, pairs, shared, &|found| {
            Captures((0..pairs).map(|group| found.get(group)).collect())
        })
    }

    /// Tries the positions from `start`, some with each call, so that no call of the library takes
    /// long. If a call exceeds its limits, `search_watched` repeats it.
    fn search<T>(
        &self,
        text: &str,
        start: usize,
        pairs: usize,
        shared: &Shared,
        see: &dyn Fn(&Pairs<'_>) -> T,
    ) -> Result<Option<T>, MatchError> {
        let rest = text.len().saturating_sub(start);
        let (starts, steps_max) = self.0.window(rest);
        let mut at = start;
        loop {
            let last_start = starts.map(|starts| at.saturating_add(starts - 1));
            let last_start = last_start.filter(|last| *last < text.len());
            let mode = Mode::Fast;
            let limits = Limits { steps_max, depth_max: DEPTH_MAX, last_start, mode, watch: None };
            match self.0.code.search(text, at, pairs, limits, see) {
                Ok(Some(found)) => return Ok(Some(found)),
                Ok(None) => {}
                Err(sys::PCRE2_ERROR_MATCHLIMIT | sys::PCRE2_ERROR_JIT_STACKLIMIT) => {
                    return self.search_watched(text, at, pairs, shared, see);
                }
                Err(code) => return Err(MatchError::Engine(code)),
            }
            let Some(last) = last_start else { return Ok(None) };
            at = next_character(text, last);
            shared.check_interrupt().map_err(MatchError::Interrupted)?;
        }
    }

    /// Searches with MongoDB's limits, and with callouts that check the interrupt. Uses a large
    /// stack, and the interpreter if that is too small.
    fn search_watched<T>(
        &self,
        text: &str,
        start: usize,
        pairs: usize,
        shared: &Shared,
        see: &dyn Fn(&Pairs<'_>) -> T,
    ) -> Result<Option<T>, MatchError> {
        let code = self.0.watched().map_err(MatchError::Engine)?;
        let every = (WATCHED_CHARACTERS / (text.len() + 1)).clamp(1, 1000);
        let (mut calls, mut stopped) = (0, None);
        for mode in [Mode::LargeStack, Mode::Interpreter] {
            let mut watch = || {
                calls += 1;
                if calls % every == 0 {
                    stopped = shared.check_interrupt().err();
                }
                stopped.is_some()
            };
            let limits = Limits {
                steps_max: STEPS_MAX,
                depth_max: DEPTH_MAX,
                last_start: None,
                mode,
                watch: Some(&mut watch),
            };
            match code.search(text, start, pairs, limits, see) {
                Err(sys::PCRE2_ERROR_JIT_STACKLIMIT) => {}
                Err(code) => {
                    return Err(stopped.map_or(MatchError::Engine(code), MatchError::Interrupted));
                }
                Ok(found) => return Ok(found),
            }
        }
        Err(MatchError::Engine(sys::PCRE2_ERROR_JIT_STACKLIMIT))
    }

    /// Returns the number of groups, without the whole match.
    pub fn group_count(&self) -> usize {
        self.0.code.group_count()
    }

    /// Returns the prefix of every matching string, for index bounds.
    pub fn prefix(&self) -> Prefix {
        prefix(&self.0.pattern, &self.0.options)
    }
}

impl Compiled {
    /// Returns how many positions one call without callouts tries in a text of `rest` bytes (`None`
    /// for all), and the limit of backtracking points at each. Together they read at most
    /// `UNWATCHED_CHARACTERS_MAX` characters, even if every step reads the whole text.
    fn window(&self, rest: usize) -> (Option<usize>, u32) {
        let length = rest.max(SHORT_BYTES);
        let steps = |starts: usize| {
            let steps = UNWATCHED_CHARACTERS_MAX / length.saturating_mul(starts);
            u32::try_from(steps).unwrap_or(STEPS_MAX).clamp(1, STEPS_MAX)
        };
        match self.searching {
            Searching::Anchored => (None, steps(1)),
            Searching::Straight => {
                (Some(UNWATCHED_CHARACTERS_MAX / (self.source.len() + 1)), STEPS_MAX)
            }
            _ if rest <= SHORT_BYTES => (None, steps(SHORT_BYTES)),
            Searching::Windows => (Some(STARTS), steps(STARTS)),
            Searching::Whole => (None, steps(length)),
        }
    }

    /// Returns the code with callouts. The error is PCRE2's result code, if there was no memory.
    fn watched(&self) -> Result<&Code, i32> {
        if let Some(code) = self.watched.get() {
            return Ok(code);
        }
        let code = Code::watched(&self.source, self.bits).map_err(|_| sys::PCRE2_ERROR_NOMEMORY)?;
        Ok(self.watched.get_or_init(|| code))
    }
}

impl fmt::Debug for Regex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{}/{}", self.0.pattern, self.0.options)
    }
}

impl PartialEq for Regex {
    fn eq(&self, other: &Self) -> bool {
        self.pattern() == other.pattern() && self.options() == other.options()
    }
}

/// Returns PCRE2's option bits for MongoDB's option letters.
fn option_bits(options: &str) -> Result<u32> {
    options.chars().try_fold(0, |bits, letter| {
        Ok(bits
            | match letter {
                'i' => sys::PCRE2_CASELESS,
                'm' => sys::PCRE2_MULTILINE,
                's' => sys::PCRE2_DOTALL,
                'x' => sys::PCRE2_EXTENDED,
                'u' => 0,
                other => {
                    let text = format!("invalid flag in regex options: {other}");
                    return Err(Error::location(51108, text));
                }
            })
    })
}

/// Returns how the starting positions of this pattern are tried.
fn searching(pattern: &str, code: &Code) -> Searching {
    if pattern.contains("\\G") || pattern.contains("(*") {
        return Searching::Whole;
    }
    if code.is_anchored() {
        return Searching::Anchored;
    }
    match pattern.contains(['*', '+', '?', '{', '(', '|', '\\']) {
        true => Searching::Windows,
        false => Searching::Straight,
    }
}

/// Returns the start of the character after the one that contains byte `at`.
fn next_character(text: &str, at: usize) -> usize {
    let mut next = at + 1;
    while !text.is_char_boundary(next) {
        next += 1;
    }
    next
}

/// Escapes `{,2}`, which is literal text in MongoDB's PCRE2 (10.40) but a quantifier since 10.43.
fn with_literal_braces(pattern: &str) -> Cow<'_, str> {
    if !pattern.contains("{,") {
        return Cow::Borrowed(pattern);
    }
    let mut text = String::with_capacity(pattern.len() + 8);
    let mut chars = pattern.chars().peekable();
    let mut quoted = false;
    while let Some(next) = chars.next() {
        match next {
            '\\' => {
                text.push(next);
                let Some(escaped) = chars.next() else { break };
                text.push(escaped);
                quoted = if quoted { escaped != 'E' } else { escaped == 'Q' };
            }
            '{' if !quoted && chars.peek() == Some(&',') => text.push_str("\\{"),
            other => text.push(other),
        }
    }
    Cow::Owned(text)
}

#[cfg(test)]
mod tests;
