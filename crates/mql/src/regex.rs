//! Regular expressions as MongoDB reads them: PCRE2 in UTF mode, MongoDB's options and error
//! codes, and a bound on the work of one match, so that a hostile pattern ends.

mod prefix;

pub use prefix::Prefix;

use pcre2::bytes::{CaptureLocations, Regex as Pcre, RegexBuilder};
use prefix::prefix;
use quire_error::{Error, ErrorCode, Result};
use std::borrow::Cow;
use std::fmt;
use std::sync::OnceLock;

/// Longest pattern in bytes (MongoDB's limit, code 51091 beyond it).
pub const PATTERN_BYTES_MAX: usize = 32764;

/// Steps that one match may take before it gives up (PCRE2's own default, made explicit so
/// that a pattern cannot raise it).
const MATCH_STEPS_MAX: u32 = 10_000_000;

/// A text with no more left is searched on with the code that checks it.
const CHECKED_BYTES: usize = 1024;

/// A compiled regular expression. Cheap to share between threads.
pub struct Regex {
    pattern: Box<str>,
    options: Box<str>,
    code: Pcre,
    /// The same without the check of the text, where there is such a thing; made when needed.
    unchecked: OnceLock<Option<Pcre>>,
}

/// Where a match and its groups lie, as byte offsets into the text.
pub struct Captures(CaptureLocations);

impl Captures {
    /// Start and end of group `index` (0 is the whole match), `None` if it took no part.
    pub fn get(&self, index: usize) -> Option<(usize, usize)> {
        self.0.get(index)
    }

    /// How many groups there are, the whole match included.
    pub fn count(&self) -> usize {
        self.0.len()
    }
}

/// What a match came to when it did not end by itself.
#[derive(Debug)]
pub struct MatchError {
    /// PCRE2's result code, such as -47 for the limit on steps.
    pub code: i32,
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
        let bounded = bounded(&with_literal_braces(pattern));
        let builder = builder(options)?;
        let code = builder.build(&bounded).map_err(|error| {
            let text = error.to_string();
            let reason = text.split_once(": ").map_or(text.as_str(), |(_, rest)| rest);
            let reason = reason.split_once(": ").map_or(reason, |(_, rest)| rest);
            Error::location(51091, format!("Regular expression is invalid: {reason}"))
        })?;
        let unchecked = OnceLock::new();
        Ok(Regex { pattern: pattern.into(), options: options.into(), code, unchecked })
    }

    /// The pattern as the user wrote it.
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// The option letters as the user wrote them.
    pub fn options(&self) -> &str {
        &self.options
    }

    /// True if the text holds a match. A match that runs into its bound counts as none.
    #[inline]
    pub fn is_match(&self, text: &str) -> bool {
        self.code.is_match(text.as_bytes()).unwrap_or(false)
    }

    /// The first match at or after byte `start`.
    pub fn captures_at(&self, text: &str, start: usize) -> Result<Option<Captures>, MatchError> {
        let rest = text.len().saturating_sub(start);
        let unchecked = if start > 0 && rest > CHECKED_BYTES { self.unchecked() } else { None };
        let code = unchecked.unwrap_or(&self.code);
        let mut locations = code.capture_locations();
        match code.captures_read_at(&mut locations, text.as_bytes(), start) {
            Ok(found) => Ok(found.map(|_| Captures(locations))),
            Err(error) => Err(MatchError { code: error.code() }),
        }
    }

    /// Code for searching on in a text: PCRE2 checks that all of the rest is UTF-8 each time, and
    /// many matches in one text would take the square of its length. It does not check where text
    /// that is none is allowed, which this binding only offers together with Unicode's classes
    /// of characters; `(?a)` gives those of ASCII back (since PCRE2 10.43).
    fn unchecked(&self) -> Option<&Pcre> {
        let make = || {
            if self.pattern.starts_with("(*") || unsets_flags(&self.pattern) {
                return None;
            }
            let pattern = bounded(&format!("(?a){}", with_literal_braces(&self.pattern)));
            builder(&self.options).ok()?.ucp(true).build(&pattern).ok()
        };
        self.unchecked.get_or_init(make).as_ref()
    }

    /// How many groups the pattern has, the whole match not counted.
    pub fn group_count(&self) -> usize {
        self.code.captures_len().saturating_sub(1)
    }

    /// What every matching string starts with, for index bounds.
    pub fn prefix(&self) -> Prefix {
        prefix(&self.pattern, &self.options)
    }
}

impl fmt::Debug for Regex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{}/{}", self.pattern, self.options)
    }
}

impl Clone for Regex {
    fn clone(&self) -> Self {
        Regex {
            pattern: self.pattern.clone(),
            options: self.options.clone(),
            code: self.code.clone(),
            unchecked: self.unchecked.clone(),
        }
    }
}

impl PartialEq for Regex {
    fn eq(&self, other: &Self) -> bool {
        self.pattern == other.pattern && self.options == other.options
    }
}

/// What MongoDB's option letters ask for.
fn builder(options: &str) -> Result<RegexBuilder> {
    let mut builder = RegexBuilder::new();
    builder.utf(true).ucp(false).jit_if_available(true);
    for letter in options.chars() {
        match letter {
            'i' => builder.caseless(true),
            'm' => builder.multi_line(true),
            's' => builder.dotall(true),
            'x' => builder.extended(true),
            'u' => &mut builder,
            other => {
                let text = format!("invalid flag in regex options: {other}");
                return Err(Error::location(51108, text));
            }
        };
    }
    Ok(builder)
}

fn bounded(pattern: &str) -> String {
    format!("(*LIMIT_MATCH={MATCH_STEPS_MAX}){pattern}")
}

/// True if the pattern has something like `(?i-a)`.
fn unsets_flags(pattern: &str) -> bool {
    let mut groups = pattern.split("(?").skip(1);
    groups.any(|group| group.trim_start_matches(char::is_alphabetic).starts_with('-'))
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

/// The error of a match that hit its bound, for operators that report it.
pub fn match_error(operator: &str, error: &MatchError) -> Error {
    Error::new(
        ErrorCode::location(51156),
        format!(
            "Error occurred while executing the regular expression in {operator}. Result code: {}",
            error.code
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(error: Error) -> i32 {
        error.code().number()
    }

    #[test]
    fn options_and_errors() {
        assert!(Regex::new("ÉTÉ", "i").unwrap().is_match("un été"));
        assert!(Regex::new("a.b", "s").unwrap().is_match("a\nb"));
        assert!(Regex::new("^b", "m").unwrap().is_match("a\nb"));
        assert!(Regex::new("a b # c", "x").unwrap().is_match("ab"));
        assert_eq!(number(Regex::new("[a", "").unwrap_err()), 51091);
        assert_eq!(number(Regex::new("a", "g").unwrap_err()), 51108);
        assert_eq!(number(Regex::new("a\0", "").unwrap_err()), 2);
        assert_eq!(number(Regex::new(&"a".repeat(40_000), "").unwrap_err()), 51091);
        let error = Regex::new("[invalid", "").unwrap_err();
        assert_eq!(
            error.message(),
            "Regular expression is invalid: missing terminating ] for character class"
        );
    }

    #[test]
    fn an_open_brace_with_a_comma_is_text() {
        assert!(Regex::new("^a{,2}$", "").unwrap().is_match("a{,2}"));
        assert!(!Regex::new("^a{,2}$", "").unwrap().is_match("aa"));
        assert!(Regex::new("^\\Q{,\\E$", "").unwrap().is_match("{,"));
        assert!(Regex::new("^a{1,2}$", "").unwrap().is_match("aa"));
    }

    #[test]
    fn hostile_patterns_end() {
        let regex = Regex::new("(a+)+$", "").unwrap();
        assert!(!regex.is_match(&format!("{}b", "a".repeat(64))));
    }

    /// All matches in long texts, with and without the check of the text.
    #[test]
    fn searching_on_finds_the_same_without_the_check() {
        let patterns = [
            "\\w+",
            "\\W",
            "\\b.",
            "\\B\\d",
            "\\s",
            "\\S+?\\b",
            "[[:alpha:]]+",
            "[^[:punct:]]",
            "[[:digit:]]",
            "[\\w-]+é",
            "(?<=é)x",
            "(?<!\\w)a(?!\\d)",
            "(é|e)(x)?",
            "^.",
            ".$",
            "(?i)ÉX",
            "(?i)k",
            "(?^)\\d",
            "(?i-s).",
            "(?-a)\\w",
            "(*UCP)\\w+",
            "\\p{Lu}",
            "\\X",
            "\\R",
            "",
            "x*",
            "((a)|(é))+",
            "\\x{212a}",
            "(?<n>.)\\k<n>",
            "[à-ÿ]{2,}",
            "\\D\\d",
            "\\h",
            "[[:^space:]]",
            "\\Qé\\E",
            "(?:)|z",
            "\\C",
            "(?s).{3}\\C",
        ];
        let mut random = quire_document::testing::Generator::new(3);
        let letters: Vec<char> = "aAeExXkKéÉßſK ٣7_-\n\r\u{a0}\u{2003}😀zZ".chars().collect();
        let mut without = 0;
        for pattern in patterns {
            for options in ["", "i", "m", "s", "x", "im"] {
                let regex = Regex::new(pattern, options).unwrap();
                let checked = Regex { unchecked: OnceLock::from(None), ..regex.clone() };
                let text: String = (0..1500)
                    .map(|_| letters[random.below(letters.len() as u64) as usize])
                    .collect();
                let starts = text.char_indices().map(|(at, _)| at).filter(|_| random.below(9) == 0);
                for start in starts {
                    let found = [&regex, &checked].map(|regex| {
                        let found = regex.captures_at(&text, start).unwrap();
                        found.map(|found| {
                            (0..found.count()).map(|at| found.get(at)).collect::<Vec<_>>()
                        })
                    });
                    assert_eq!(found[0], found[1], "/{pattern}/{options} from {start} of {text:?}");
                }
                without += usize::from(regex.unchecked().is_some());
            }
        }
        // Only what unsets flags or begins with a verb is searched with the check.
        if Regex::new("(?a)", "").is_ok() {
            assert_eq!(without, (patterns.len() - 3) * 6);
        }
    }

    #[test]
    fn captures_from_an_offset() {
        let regex = Regex::new("(a)(x)?", "").unwrap();
        let found = regex.captures_at("ba ba", 2).unwrap().unwrap();
        assert_eq!((found.get(0), found.get(1), found.get(2)), (Some((4, 5)), Some((4, 5)), None));
        assert_eq!((found.count(), regex.group_count()), (3, 2));
    }
}
