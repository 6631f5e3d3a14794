//! Whether a document passes a search, by its texts alone.

use super::fields::TextFields;
use super::folding::{lower, without_diacritics};
use super::language::Language;
use super::query::ParsedSearch;
use super::score::Scores;
use super::tokens::{Style, for_each_term};
use super::version::TextVersion;
use crate::filter::TextQuery;
use quire_document::Doc;
use quire_error::Result;

/// A search of the documents of a text index.
#[derive(Clone, Debug)]
pub struct TextMatcher {
    fields: TextFields,
    query: TextQuery,
    language: Language,
    parsed: ParsedSearch,
    /// The phrases in the form in which they are compared.
    phrases: Vec<String>,
    negated_phrases: Vec<String>,
}

impl TextMatcher {
    /// Returns a search of an index with these fields. `language` is that of the search string.
    ///
    /// # Errors
    /// The interrupt's error.
    pub fn new(fields: TextFields, query: TextQuery, language: Language) -> Result<Self> {
        let parsed = ParsedSearch::parse(&query, language, fields.version)?;
        let mut matcher = TextMatcher {
            fields,
            query,
            language,
            parsed,
            phrases: Vec::new(),
            negated_phrases: Vec::new(),
        };
        let folded = |phrases: &[String]| phrases.iter().map(|text| matcher.folded(text)).collect();
        let (phrases, negated) =
            (folded(&matcher.parsed.phrases), folded(&matcher.parsed.negated_phrases));
        (matcher.phrases, matcher.negated_phrases) = (phrases, negated);
        Ok(matcher)
    }

    /// Returns the operand of the query.
    pub fn query(&self) -> &TextQuery {
        &self.query
    }

    /// Returns the language of the search string.
    pub fn language(&self) -> Language {
        self.language
    }

    /// Returns the version of the index.
    pub fn version(&self) -> TextVersion {
        self.fields.version
    }

    /// Returns the parsed search string.
    pub fn parsed(&self) -> &ParsedSearch {
        &self.parsed
    }

    /// Returns true if a document passes that has one of the terms without regard to letter case and
    /// diacritics, as the index knows.
    ///
    /// # Errors
    /// Those of a document whose language is not valid; the interrupt's error.
    pub fn passes(&self, doc: Doc<'_>) -> Result<bool> {
        let sensitive = self.query.case_sensitive || self.query.diacritic_sensitive;
        let parsed = &self.parsed;
        let has_terms = sensitive || !parsed.negated_terms.is_empty();
        let (mut has_term, mut has_negated) = (!sensitive, false);
        let mut found = vec![false; self.phrases.len()];
        let mut has_negated_phrase = false;
        let has_phrases = !self.phrases.is_empty() || !self.negated_phrases.is_empty();
        if !has_terms && !has_phrases {
            return Ok(true);
        }
        self.fields.visit(doc, &mut |text| {
            if has_terms {
                let style = self.style(text.language);
                for_each_term(text.text, style, &mut |term| {
                    has_term |= parsed.terms.contains(term);
                    has_negated |= parsed.negated_terms.contains(term);
                })?;
            }
            if has_phrases {
                let folded = self.folded(text.text);
                for (phrase, found) in self.phrases.iter().zip(&mut found) {
                    *found |= folded.contains(phrase.as_str());
                }
                has_negated_phrase |=
                    self.negated_phrases.iter().any(|phrase| folded.contains(phrase.as_str()));
            }
            Ok(())
        })?;
        Ok(has_term && !has_negated && found.iter().all(|found| *found) && !has_negated_phrase)
    }

    /// Returns true if every document with one of the terms passes.
    pub fn is_only_terms(&self) -> bool {
        let parsed = &self.parsed;
        !self.query.case_sensitive
            && !self.query.diacritic_sensitive
            && parsed.negated_terms.is_empty()
            && parsed.phrases.is_empty()
            && parsed.negated_phrases.is_empty()
    }

    /// Returns true if a document passes, without an index.
    ///
    /// # Errors
    /// As [`passes`](Self::passes).
    pub fn matches(&self, doc: Doc<'_>) -> Result<bool> {
        Ok(self.score(doc)?.is_some() && self.passes(doc)?)
    }

    /// Returns the score of a document for each term that it has: the number of the term among those of
    /// the search, in order, and the score.
    ///
    /// # Errors
    /// Those of a document whose language is not valid; the interrupt's error.
    pub fn term_scores(&self, doc: Doc<'_>) -> Result<Vec<(usize, f64)>> {
        let scores = Scores::of(&self.fields, doc)?;
        let terms = self.parsed.bounds.iter().enumerate();
        Ok(terms.filter_map(|(at, term)| Some((at, scores.get(term)?))).collect())
    }

    /// Returns the score of a document, the sum for the terms that it has; `None` if it has none.
    ///
    /// # Errors
    /// As [`passes`](Self::passes).
    pub fn score(&self, doc: Doc<'_>) -> Result<Option<f64>> {
        if self.parsed.bounds.is_empty() {
            return Ok(None);
        }
        let found = self.term_scores(doc)?;
        Ok(found.into_iter().map(|(_, score)| score).reduce(|sum, score| sum + score))
    }

    fn style(&self, language: Language) -> Style {
        Style {
            keeps_case: self.query.case_sensitive,
            keeps_diacritics: self.query.diacritic_sensitive,
            ..Style::of_index(language, self.fields.version)
        }
    }

    /// Returns a text in the form in which phrases are compared.
    fn folded(&self, text: &str) -> String {
        if self.fields.version != TextVersion::Three {
            return if self.query.case_sensitive {
                text.to_owned()
            } else {
                text.to_ascii_lowercase()
            };
        }
        let cased = match self.query.case_sensitive {
            true => text.to_owned(),
            false => lower(text, self.language.is_turkish()),
        };
        match self.query.diacritic_sensitive {
            true => cased,
            false => without_diacritics(&cased).into_owned(),
        }
    }
}
