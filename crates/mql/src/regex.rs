//! Regular expressions as MongoDB reads them: PCRE2 in UTF mode, MongoDB's options, limits and
//! error codes. A match that passes its limits is an error, never "no match".
//!
//! Reading order: this file, `engine` (the C library), `prefix` (what indexes use).

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

/// Longest pattern in bytes (MongoDB's limit, code 51091 beyond it).
pub const PATTERN_BYTES_MAX: usize = 32764;

/// Backtracking points of a match at one start (MongoDB builds PCRE2 with this limit).
const STEPS_MAX: u32 = 200_000;

/// Nested backtracking points of an interpreted match (MongoDB builds PCRE2 with this limit).
const DEPTH_MAX: u32 = 4_000;

/// Characters that one call of code without callouts may look at: it cannot be interrupted.
/// About 50 ms.
const UNWATCHED_CHARACTERS_MAX: usize = 1 << 26;

/// Texts up to this length are searched by one call of the library.
const SHORT_BYTES: usize = 256;

/// Starts that one call tries in a longer text, where the pattern can backtrack.
const STARTS: usize = 64;

/// Characters that a watched match may look at between two looks at the interrupt.
const WATCHED_CHARACTERS: usize = 1 << 22;

/// A compiled regular expression. Cheap to clone and to share between threads.
#[derive(Clone)]
pub struct Regex(Arc<Compiled>);

struct Compiled {
    pattern: Box<str>,
    options: Box<str>,
    /// The pattern and the option bits as PCRE2 reads them.
    source: Box<str>,
    bits: u32,
    code: Code,
    /// The same with callouts, which can be interrupted; made when a match needs it.
    watched: OnceLock<Code>,
    searching: Searching,
}

/// How the starts of a match are tried.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Searching {
    /// A match starts where the search starts.
    Anchored,
    /// No item of the pattern repeats: a start costs no more than the pattern is long.
    Straight,
    /// The starts can be tried by several calls.
    Windows,
    /// What is found depends on where the search began (`\G`, verbs): one call only.
    Whole,
}

/// Where a match and its groups lie, as byte offsets into the text.
pub struct Captures(Vec<Option<(usize, usize)>>);

impl Captures {
    /// Start and end of group `index` (0 is the whole match), `None` if it took no part.
    pub fn get(&self, index: usize) -> Option<(usize, usize)> {
        self.0.get(index).copied().flatten()
    }

    /// How many groups there are, the whole match included.
    pub fn count(&self) -> usize {
        self.0.len()
    }
}

/// Why a match did not end by itself.
#[derive(Debug)]
pub enum MatchError {
    /// PCRE2's result code, such as -47 for the limit of steps.
    Engine(i32),
    /// The operation was killed or its deadline passed.
    Interrupted(Error),
}

impl MatchError {
    /// The error of a command: 51156 names the operator and the result code.
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
    /// Compiles a pattern. Errors: 51091 bad pattern or too long, 51108 unknown option,
    /// BadValue for an embedded null byte.
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

    /// The pattern as the user wrote it.
    pub fn pattern(&self) -> &str {
        &self.0.pattern
    }

    /// The option letters as the user wrote them.
    pub fn options(&self) -> &str {
        &self.0.options
    }

    /// True if the text holds a match.
    #[inline]
    pub fn is_match(&self, text: &str, shared: &Shared) -> Result<bool, MatchError> {
        Ok(self.search(text, 0, 1, shared, &|_| ())?.is_some())
    }

    /// The first match at or after byte `start`.
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

    /// Tries the starts from `start` on, some at a time, so that no call of the library takes
    /// long. What passes the limits of such a call is done again by `search_watched`.
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

    /// Searches with callouts that look at the interrupt and with MongoDB's limits: on a large
    /// stack, and where that is too small by the interpreter.
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

    /// How many groups the pattern has, the whole match not counted.
    pub fn group_count(&self) -> usize {
        self.0.code.group_count()
    }

    /// What every matching string starts with, for index bounds.
    pub fn prefix(&self) -> Prefix {
        prefix(&self.0.pattern, &self.0.options)
    }
}

impl Compiled {
    /// How many starts one call of the code without callouts tries (`None`: all of them) in a text
    /// of `rest` bytes, and how many steps it may take at each: together no more than
    /// `UNWATCHED_CHARACTERS_MAX`, if each step looked at all of the text.
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

    /// The code with callouts. `Err` is PCRE2's result code: there was no memory for it.
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

/// PCRE2's option bits for MongoDB's option letters.
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

/// How the starts of this pattern are tried.
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

/// The beginning of the character behind the one that byte `at` belongs to.
fn next_character(text: &str, at: usize) -> usize {
    let mut next = at + 1;
    while !text.is_char_boundary(next) {
        next += 1;
    }
    next
}

/// `{,2}` is literal text in the PCRE2 that MongoDB bundles (10.40) and a quantifier since 10.43.
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
