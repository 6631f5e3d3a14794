//! From a text to its terms: words in lower case, without stop words, stemmed and without diacritics.

use super::delimiters::{is_ascii_delimiter, is_delimiter};
use super::folding::{push_all_lower, without_diacritics};
use super::language::Language;
use super::version::TextVersion;
use crate::context::{count_work, units};
use quire_error::Result;

/// How a text becomes terms.
#[derive(Clone, Copy, Debug)]
pub(super) struct Style {
    pub language: Language,
    pub version: TextVersion,
    /// True to keep the letter case.
    pub keeps_case: bool,
    /// True to keep diacritics. Indexes before version 3 always do.
    pub keeps_diacritics: bool,
}

impl Style {
    /// Returns the style of the terms in an index.
    pub fn of_index(language: Language, version: TextVersion) -> Self {
        Style { language, version, keeps_case: false, keeps_diacritics: false }
    }
}

/// Calls `visit` for each term of a text, in order.
///
/// # Errors
/// The interrupt's error, because a text can have megabytes.
pub(super) fn for_each_term(text: &str, style: Style, visit: &mut dyn FnMut(&str)) -> Result<()> {
    let english = style.language.is_english();
    let ends_word = |c: char| match style.version {
        TextVersion::Three => is_delimiter(c, english),
        TextVersion::One | TextVersion::Two => is_ascii_delimiter(c, english),
    };
    let mut lowered = String::new();
    for word in text.split(ends_word).filter(|word| !word.is_empty()) {
        count_work(units(word.len()))?;
        lower_word(word, style, &mut lowered);
        if style.language.is_stop_word(&lowered) {
            continue;
        }
        let stem = style.language.stem(if style.keeps_case { word } else { &lowered });
        if style.keeps_diacritics || style.version != TextVersion::Three {
            visit(&stem);
        } else {
            visit(&without_diacritics(&stem));
        }
    }
    Ok(())
}

/// Writes a word in lower case in place of the last one.
fn lower_word(word: &str, style: Style, out: &mut String) {
    out.clear();
    match style.version {
        TextVersion::Three => push_all_lower(word, style.language.is_turkish(), out),
        TextVersion::One | TextVersion::Two => {
            out.push_str(word);
            out.make_ascii_lowercase();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(text: &str, language: &str, version: TextVersion) -> Vec<String> {
        let language = Language::named(language, version).unwrap();
        let mut found = Vec::new();
        let style = Style::of_index(language, version);
        for_each_term(text, style, &mut |term| found.push(term.to_owned())).unwrap();
        found
    }

    #[test]
    fn words_are_folded_stemmed_and_filtered() {
        let three = TextVersion::Three;
        assert_eq!(
            terms("The cats aren't RUNNING, café!", "english", three),
            ["cat", "run", "cafe"]
        );
        assert_eq!(terms("l'école des Häuser", "french", three), ["ecol", "haus"]);
        assert_eq!(terms("The cats", "none", three), ["the", "cats"]);
        assert_eq!(terms("数据库系统 数据库", "english", three), ["数据库系统", "数据库"]);
        assert_eq!(terms("Café co-op", "english", TextVersion::Two), ["café", "co", "op"]);
    }
}
