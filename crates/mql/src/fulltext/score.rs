//! The terms of a document with their scores.
//!
//! MongoDB's score of a term in a text: each repetition adds half as much as the one before, a factor
//! between 0.5 and 1 says which share of the text the term is, and a text that is nothing but the term
//! counts a tenth more. The score of a document is the sum over its texts, times their weights.

use super::fields::{Text, TextFields};
use super::tokens::{Style, for_each_term};
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use quire_document::Doc;
use quire_error::Result;

/// The scores of the terms of one document.
#[derive(Debug, Default)]
pub struct Scores {
    scores: HashMap<Box<str>, f64, RandomState>,
}

/// The terms of one text.
type Counts = HashMap<Box<str>, Count, RandomState>;

/// A term in one text.
#[derive(Debug, Default)]
struct Count {
    /// The number of times that it occurs.
    count: f64,
    /// 1 + 1/2 + 1/4 + ... for each time.
    frequency: f64,
}

impl Scores {
    /// Returns the terms of a document and their scores.
    ///
    /// # Errors
    /// Those of a document whose language is not valid; the interrupt's error.
    pub fn of(fields: &TextFields, doc: Doc<'_>) -> Result<Self> {
        let mut scores = Scores::default();
        let mut counts = HashMap::default();
        fields.visit(doc, &mut |text| scores.add(fields, &text, &mut counts))?;
        Ok(scores)
    }

    /// Adds the scores of one text. `counts` is empty before and after.
    fn add(&mut self, fields: &TextFields, text: &Text<'_>, counts: &mut Counts) -> Result<()> {
        let style = Style::of_index(text.language, fields.version);
        let mut words = 0.0;
        for_each_term(text.text, style, &mut |term| {
            words += 1.0;
            let known = counts.entry_ref(term).or_default();
            known.frequency += 0.5_f64.powf(known.count);
            known.count += 1.0;
        })?;
        for (term, Count { count, frequency }) in counts.drain() {
            let share = 0.5 * count / words + 0.5;
            let whole = if term.eq_ignore_ascii_case(text.text) { 1.1 } else { 1.0 };
            *self.scores.entry(term).or_default() += text.weight * frequency * share * whole;
        }
        Ok(())
    }

    /// Returns the terms with their scores, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, f64)> {
        self.scores.iter().map(|(term, score)| (&**term, *score))
    }

    /// Returns the score of a term; `None` if the document does not have it.
    pub fn get(&self, term: &str) -> Option<f64> {
        self.scores.get(term).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::super::fields::tests::fields;
    use super::*;
    use quire_document::{DocBuf, doc};

    fn score(doc: &DocBuf, term: &str) -> Option<f64> {
        Scores::of(&fields(&["a", "b"]), doc.as_doc()).unwrap().get(term)
    }

    #[test]
    fn scores_are_those_of_mongodb() {
        assert_eq!(score(&doc! { "a": "run" }, "run"), Some(1.1));
        assert_eq!(score(&doc! { "a": "RUN" }, "run"), Some(1.1));
        assert_eq!(score(&doc! { "a": "running" }, "run"), Some(1.0));
        assert_eq!(score(&doc! { "a": "run run run" }, "run"), Some(1.75));
        assert_eq!(score(&doc! { "a": "run walk run" }, "run"), Some(1.25));
        assert_eq!(score(&doc! { "a": "apple pie crust" }, "pie"), Some(0.6666666666666666));
        assert_eq!(score(&doc! { "a": "full moon", "b": "moon" }, "moon"), Some(1.85));
        assert_eq!(score(&doc! { "a": ["moon", "moon"] }, "moon"), Some(2.2));
        assert_eq!(score(&doc! { "a": "moon" }, "sun"), None);
    }
}
