//! Text search: the words of a text, the terms of a document with their scores, and the search string of
//! a `$text`.
//!
//! The rules are those of MongoDB's manual ("Text Indexes", "Text Search Languages", "$text"). Read in
//! this order: `version`, `language` (names, stemmers, stop words), `delimiters`, `folding` (letter case and
//! diacritics), `tokens` (from a text to its terms), `fields` (the texts of a document), `score`,
//! `query` (the search string) and `matching` (whether a document passes a search).

mod delimiters;
mod fields;
mod folding;
mod language;
mod matching;
mod query;
mod score;
mod stop_words;
mod tokens;
mod version;

pub use fields::TextFields;
pub use language::Language;
pub use matching::TextMatcher;
pub use query::ParsedSearch;
pub use score::Scores;
pub use version::TextVersion;
