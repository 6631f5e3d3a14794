//! The search string of a `$text`: terms, phrases in quotes, and both with a minus sign before them.

use super::language::Language;
use super::tokens::{Style, for_each_term};
use super::version::TextVersion;
use crate::filter::TextQuery;
use quire_error::Result;
use std::collections::BTreeSet;

/// A parsed search string.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParsedSearch {
    /// The terms that the index looks up: without letter case and, from version 3 on, without
    /// diacritics.
    pub bounds: BTreeSet<String>,
    /// The terms of which a document must have one, as the search compares them.
    pub terms: BTreeSet<String>,
    /// The terms that a document must not have.
    pub negated_terms: BTreeSet<String>,
    /// The phrases that one text of a document must have, each.
    pub phrases: Vec<String>,
    /// The phrases that no text of a document may have.
    pub negated_phrases: Vec<String>,
}

impl ParsedSearch {
    /// Parses the search string of a query for an index of a version.
    ///
    /// # Errors
    /// The interrupt's error.
    pub fn parse(query: &TextQuery, language: Language, version: TextVersion) -> Result<Self> {
        let mut parsed = ParsedSearch::default();
        let (mut wanted, mut unwanted) = (String::new(), String::new());
        let (mut negated, mut phrase) = (false, None);
        for piece in pieces(&query.search) {
            match piece.kind {
                Kind::Text if negated && phrase.is_some() => {}
                Kind::Text => {
                    negated &= !piece.after_space;
                    let words = if negated { &mut unwanted } else { &mut wanted };
                    words.push_str(piece.text);
                    words.push(' ');
                }
                Kind::Minus => negated |= phrase.is_none() && piece.after_space,
                Kind::Quote => match phrase.take() {
                    Some(start) => {
                        let text = query.search.get(start..piece.at).unwrap_or_default().to_owned();
                        match negated {
                            true => parsed.negated_phrases.push(text),
                            false => parsed.phrases.push(text),
                        }
                    }
                    None => {
                        negated &= !piece.after_space;
                        phrase = Some(piece.at + 1);
                    }
                },
            }
        }
        let index = Style::of_index(language, version);
        let compared = Style {
            keeps_case: query.case_sensitive,
            keeps_diacritics: query.diacritic_sensitive,
            ..index
        };
        add_terms(&wanted, index, &mut parsed.bounds)?;
        add_terms(&wanted, compared, &mut parsed.terms)?;
        add_terms(&unwanted, compared, &mut parsed.negated_terms)?;
        Ok(parsed)
    }
}

fn add_terms(text: &str, style: Style, terms: &mut BTreeSet<String>) -> Result<()> {
    for_each_term(text, style, &mut |term| {
        terms.insert(term.to_owned());
    })
}

/// A part of a search string.
struct Piece<'s> {
    kind: Kind,
    text: &'s str,
    /// The position of its first byte.
    at: usize,
    /// True at the start and after white space.
    after_space: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Minus,
    Quote,
}

/// Splits a search string at white space, minus signs and quotes.
fn pieces(search: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = search.get(at..)?;
        let trimmed = rest.trim_start_matches(is_space);
        let after_space = at == 0 || trimmed.len() < rest.len();
        at += rest.len() - trimmed.len();
        let first = trimmed.chars().next()?;
        let kind = kind_of(first);
        let length = match kind {
            Kind::Text => {
                let ends = |c| is_space(c) || kind_of(c) != Kind::Text;
                trimmed.find(ends).unwrap_or(trimmed.len())
            }
            Kind::Minus | Kind::Quote => first.len_utf8(),
        };
        let piece = Piece { kind, text: trimmed.get(..length)?, at, after_space };
        at += length;
        Some(piece)
    })
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\u{b}' | '\u{c}' | '\r')
}

fn kind_of(c: char) -> Kind {
    match c {
        '-' => Kind::Minus,
        '"' => Kind::Quote,
        _ => Kind::Text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(search: &str) -> String {
        let query = TextQuery {
            search: search.into(),
            language: String::new(),
            case_sensitive: false,
            diacritic_sensitive: false,
        };
        let version = TextVersion::Three;
        let english = Language::named("english", version).unwrap();
        let parsed = ParsedSearch::parse(&query, english, version).unwrap();
        assert_eq!(parsed.bounds, parsed.terms);
        let ParsedSearch { terms, negated_terms, phrases, negated_phrases, .. } = parsed;
        format!("{terms:?} {negated_terms:?} {phrases:?} {negated_phrases:?}")
    }

    #[test]
    fn terms_phrases_and_negations() {
        let cases = [
            ("coffee, tea; juice.", r#"{"coffe", "juic", "tea"} {} [] []"#),
            (r#""red apple" pear -green"#, r#"{"appl", "pear", "red"} {"green"} ["red apple"] []"#),
            (r#"-"green apple" running"#, r#"{"run"} {} [] ["green apple"]"#),
            ("co-op -a-b", r#"{"co", "op"} {"b"} [] []"#),
            ("apple - pie", r#"{"appl", "pie"} {} [] []"#),
            ("apple --pie", r#"{"appl"} {"pie"} [] []"#),
            ("apple -pie juice", r#"{"appl", "juic"} {"pie"} [] []"#),
            (r#""blue whale"#, r#"{"blue", "whale"} {} [] []"#),
            (r#""" the"#, r#"{} {} [""] []"#),
            ("", "{} {} [] []"),
        ];
        for (search, expected) in cases {
            assert_eq!(parse(search), expected, "{search}");
        }
    }
}
