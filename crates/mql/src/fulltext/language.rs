//! The languages of text search: their names, stemmers and lists of stop words.

use super::stop_words;
use super::version::TextVersion;
use rust_stemmers::{Algorithm, Stemmer};
use std::borrow::Cow;
use std::fmt;

/// The most bytes of a word that is stemmed. The time of some stemmers grows with the square of the
/// length.
const STEM_BYTES_MAX: usize = 256;

/// A language of text search.
#[derive(Clone, Copy)]
pub struct Language(&'static Row);

/// A row of the table of languages.
struct Row {
    name: &'static str,
    /// The code of ISO 639-1.
    code: &'static str,
    /// The stemmer; `None` leaves words as they are.
    algorithm: Option<Algorithm>,
}

/// The language without a stemmer and without stop words.
const NONE: Row = Row { name: "none", code: "none", algorithm: None };

/// The languages with a stemmer and stop words.
const ROWS: &[Row] = &[
    row("danish", "da", Algorithm::Danish),
    row("dutch", "nl", Algorithm::Dutch),
    row("english", "en", Algorithm::English),
    row("finnish", "fi", Algorithm::Finnish),
    row("french", "fr", Algorithm::French),
    row("german", "de", Algorithm::German),
    row("hungarian", "hu", Algorithm::Hungarian),
    row("italian", "it", Algorithm::Italian),
    row("norwegian", "nb", Algorithm::Norwegian),
    row("portuguese", "pt", Algorithm::Portuguese),
    row("romanian", "ro", Algorithm::Romanian),
    row("russian", "ru", Algorithm::Russian),
    row("spanish", "es", Algorithm::Spanish),
    row("swedish", "sv", Algorithm::Swedish),
    row("turkish", "tr", Algorithm::Turkish),
];

const fn row(name: &'static str, code: &'static str, algorithm: Algorithm) -> Row {
    Row { name, code, algorithm: Some(algorithm) }
}

impl Language {
    /// Returns the language without a stemmer and without stop words.
    pub const fn none() -> Self {
        Language(&NONE)
    }

    /// Returns the language with a name or a code, in any letter case. An index of version 1 treats an
    /// unknown language as `none`; for the others it is `None`.
    pub fn named(name: &str, version: TextVersion) -> Option<Self> {
        let is_named =
            |row: &&Row| row.name.eq_ignore_ascii_case(name) || row.code.eq_ignore_ascii_case(name);
        match std::iter::once(&NONE).chain(ROWS).find(is_named) {
            Some(row) => Some(Language(row)),
            None if version == TextVersion::One => Some(Language::none()),
            None => None,
        }
    }

    /// Returns the full name.
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// Returns true for English, where an apostrophe is part of a word.
    pub(super) fn is_english(self) -> bool {
        self.0.code == "en"
    }

    /// Returns true for Turkish, where the letter i without a dot is a letter of its own.
    pub(super) fn is_turkish(self) -> bool {
        self.0.code == "tr"
    }

    /// Returns true for a word in lower case that is neither indexed nor searched.
    pub(super) fn is_stop_word(self, word: &str) -> bool {
        self.0.algorithm.is_some() && stop_words::contains(self.0.code, word)
    }

    /// Returns the stem of a word. Words in upper case, and words of more than `STEM_BYTES_MAX` bytes,
    /// are their own stems.
    pub(super) fn stem(self, word: &str) -> Cow<'_, str> {
        match self.0.algorithm.filter(|_| word.len() <= STEM_BYTES_MAX) {
            Some(algorithm) => Stemmer::create(algorithm).stem(word),
            None => Cow::Borrowed(word),
        }
    }
}

impl PartialEq for Language {
    fn eq(&self, other: &Self) -> bool {
        self.0.code == other.0.code
    }
}

impl Eq for Language {}

impl fmt::Debug for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_have_names_and_codes_in_any_case() {
        let three = |name| Language::named(name, TextVersion::Three).map(Language::name);
        assert_eq!(three("German"), Some("german"));
        assert_eq!(three("DE"), Some("german"));
        assert_eq!((three("none"), three("deu"), three("")), (Some("none"), None, None));
        let one = Language::named("elvish", TextVersion::One);
        assert_eq!(one, Some(Language::none()));
    }

    /// The stemmer took minutes for a word of five million letters `y`: its time grows with the square of
    /// the length.
    #[test]
    fn a_very_long_word_is_its_own_stem() {
        let english = Language::named("english", TextVersion::Three).unwrap();
        assert_eq!(english.stem("running"), "run");
        let long = "y".repeat(5_000_000);
        assert!(english.stem(&long) == long);
    }

    #[test]
    fn every_language_has_stop_words() {
        for row in ROWS {
            assert!(stop_words::list(row.code).next().is_some(), "{}", row.name);
        }
    }
}
