//! Tests of regular expressions: results, limits, and the interruption of a match.

use super::*;
use std::sync::atomic::{AtomicU32, Ordering};

fn number(error: Error) -> i32 {
    error.code().number()
}

fn matches(pattern: &str, options: &str, text: &str) -> bool {
    let regex = Regex::new(pattern, options).unwrap();
    regex.is_match(text, &Shared::default()).unwrap()
}

/// Returns the result code of a match that fails.
fn failure(pattern: &str, text: &str) -> i32 {
    let regex = Regex::new(pattern, "").unwrap();
    match regex.is_match(text, &Shared::default()) {
        Err(MatchError::Engine(code)) => code,
        other => panic!("/{pattern}/ gave {other:?}"),
    }
}

#[test]
fn options_and_errors() {
    assert!(matches("ÉTÉ", "i", "un été"));
    assert!(matches("a.b", "s", "a\nb"));
    assert!(matches("^b", "m", "a\nb"));
    assert!(matches("a b # c", "x", "ab"));
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
    assert!(matches("^a{,2}$", "", "a{,2}"));
    assert!(!matches("^a{,2}$", "", "aa"));
    assert!(matches("^\\Q{,\\E$", "", "{,"));
    assert!(matches("^a{1,2}$", "", "aa"));
}

/// Compiled code ran on a stack of 32 KiB, and a text that needed more "did not match".
#[test]
fn a_match_that_needs_much_stack_is_found() {
    assert!(matches("^(a|b)*$", "", &"ab".repeat(1000)));
    assert!(!matches("^(a|b)*$", "", &format!("{}c", "ab".repeat(1000))));
    assert!(matches("^(a|b|cd)*$", "", &"abcd".repeat(10_000)));
}

#[test]
fn a_match_past_its_limits_is_an_error() {
    assert_eq!(failure("(a+)+$", &format!("{}b", "a".repeat(64))), sys::PCRE2_ERROR_MATCHLIMIT);
    // A million groups exceed both a stack of 8 MiB and 4,000 nested points.
    let code = failure("^(a|b)*$", &"ab".repeat(500_000));
    assert!(matches!(code, sys::PCRE2_ERROR_MATCHLIMIT | sys::PCRE2_ERROR_DEPTHLIMIT), "{code}");
    let pattern = ".{0,200}.{0,200}.{0,150}[YZ]";
    assert_eq!(failure(pattern, &"x".repeat(4096)), sys::PCRE2_ERROR_MATCHLIMIT);
}

/// Counts the checks of the interrupt; the third check returns an error.
#[test]
fn a_match_is_interrupted() {
    for (pattern, text) in [
        (".{0,200}.{0,200}.{0,150}[YZ]", "x".repeat(4096)),
        ("a*?b|c", "a".repeat(400_000)),
        (".*[^y]*z", "x".repeat(1_000_000)),
    ] {
        let looks = Arc::new(AtomicU32::new(0));
        let seen = Arc::clone(&looks);
        let shared = Shared::default().with_interrupt(Arc::new(move || {
            match seen.fetch_add(1, Ordering::Relaxed) {
                2 => Err(Error::new(quire_error::ErrorCode::MaxTimeMSExpired, "over")),
                _ => Ok(()),
            }
        }));
        let found = Regex::new(pattern, "").unwrap().is_match(&text, &shared);
        assert!(matches!(found, Err(MatchError::Interrupted(_))), "/{pattern}/ gave {found:?}");
        assert_eq!(looks.load(Ordering::Relaxed), 3, "/{pattern}/");
    }
}

/// Searching a long text with many calls of the library gives the same result as one call.
#[test]
fn searching_in_windows_finds_the_same() {
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
    let shared = Shared::default();
    let mut windows = 0;
    for pattern in patterns {
        for options in ["", "i", "m", "s", "x", "im"] {
            let regex = Regex::new(pattern, options).unwrap();
            let text: String =
                (0..1500).map(|_| letters[random.below(letters.len() as u64) as usize]).collect();
            let starts = text.char_indices().map(|(at, _)| at).filter(|_| random.below(9) == 0);
            for start in starts {
                let found = regex.captures_at(&text, start, &shared).unwrap();
                let found = found.map(|found| found.0);
                let pairs = regex.group_count() + 1;
                let limits = Limits {
                    steps_max: STEPS_MAX,
                    depth_max: DEPTH_MAX,
                    last_start: None,
                    mode: Mode::Interpreter,
                    watch: None,
                };
                let whole = regex.0.code.search(&text, start, pairs, limits, |found| {
                    (0..pairs).map(|group| found.get(group)).collect::<Vec<_>>()
                });
                assert_eq!(Ok(found), whole, "/{pattern}/{options} from {start} of {text:?}");
            }
            windows += usize::from(regex.0.searching == Searching::Windows);
        }
    }
    assert!(windows > 100, "{windows}");
}

#[test]
fn captures_from_an_offset() {
    let regex = Regex::new("(a)(x)?", "").unwrap();
    let found = regex.captures_at("ba ba", 2, &Shared::default()).unwrap().unwrap();
    assert_eq!((found.get(0), found.get(1), found.get(2)), (Some((4, 5)), Some((4, 5)), None));
    assert_eq!((found.count(), regex.group_count()), (3, 2));
}
