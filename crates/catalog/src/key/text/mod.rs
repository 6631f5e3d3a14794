//! The text index: one key for each term of a document, with the document's score for the term, between
//! the values of other fields.
//!
//! See "Text Indexes" in MongoDB's manual; words, terms and scores are in `quire_mql::fulltext`. A key is
//! `values of the fields before | term | score, descending | values of the fields after`
//! (docs/format.md), so that a scan of one term meets the best documents first. Read in this order: this
//! file, `options.rs` (the specification), `search.rs` (the plan of a `$text`) and `running.rs` (how it
//! runs).

mod options;
mod running;
mod search;

use std::sync::Arc;

use quire_document::path::{Lookup, Path};
use quire_document::{Doc, Value};
use quire_error::{Error, ErrorCode, Result};
use quire_mql::fulltext::{Scores, TextFields};

use self::options::{SCORE, TERM};
use super::kind::Differs;
use super::{Arena, GeneratedKeys, KeyField, KeySpec, Kind, Part, State};
use crate::index_pattern::{is_negative, plugin_of};
use crate::{IndexSpec, MultikeyPaths, debug_doc};

/// The name in a key pattern.
const NAME: &str = "text";

/// The longest term in bytes that is stored whole. A longer one is stored as [`TERM_PREFIX_BYTES`] bytes
/// and a hash.
const TERM_BYTES_MAX: usize = 256;
/// The most bytes of a long term that are stored.
const TERM_PREFIX_BYTES: usize = 224;

/// The registry row of this kind.
pub(super) const KIND: Kind = Kind {
    name: NAME,
    doc: "A key for each word of texts, with its score, for `$text`; one of a collection.",
    fits: |pattern| plugin_of(pattern) == Some(NAME),
    complete: options::complete,
    check: |_| Ok(()),
    fields,
    generate,
    is_touched,
    bounds: |_, _, _| None,
    tracks_arrays: false,
    needs_hash: false,
    shows_bounds: false,
    collates: false,
    is_alone: true,
    searches: Some(&search::SEARCHES),
    options: &[],
    same_keys: |_, _| true,
    state,
    views: None,
};

/// The text part of a key specification.
#[derive(Debug)]
pub(super) struct TextIndex {
    /// The position of the term in a key. The score follows it.
    at: usize,
    fields: TextFields,
}

impl TextIndex {
    fn in_keys(keys: &KeySpec) -> Option<&Self> {
        keys.state.as_ref()?.downcast_ref()
    }
}

fn state(spec: &IndexSpec) -> Option<State> {
    let at = spec.key.as_doc().fields().position(|(path, _)| path == TERM)?;
    Some(Arc::new(TextIndex { at, fields: options::text_fields(spec)? }))
}

fn fields(spec: &IndexSpec) -> Vec<KeyField> {
    let field = |(path, direction): (&str, Value<'_>)| KeyField {
        path: path.to_owned(),
        descending: path == SCORE || is_negative(direction),
        part: if matches!(path, TERM | SCORE) { Part::Computed } else { Part::Value },
    };
    spec.key.as_doc().fields().map(field).collect()
}

fn generate<'a>(
    spec: &KeySpec,
    doc: Doc<'a>,
    arena: &'a Arena,
    keys: &mut GeneratedKeys<'a>,
) -> Result<()> {
    let Some(index) = TextIndex::in_keys(spec) else { return Ok(()) };
    let scores = Scores::of(&index.fields, doc)?;
    let mut values = Vec::with_capacity(spec.fields.len());
    for (field, path) in spec.fields.iter().zip(&spec.paths) {
        values.push(if field.part == Part::Value { single(path, doc)? } else { None });
    }
    let mut count = 0;
    for (term, score) in scores.iter() {
        let stored = stored_term(term);
        values[index.at] = Some(Value::String(arena.alloc_str(&stored)));
        values[index.at + 1] = Some(Value::Double(score));
        keys.values.extend_from_slice(&values);
        count += 1;
    }
    if count > 1
        && let Some(bits) = keys.multikey.get_mut(index.at)
    {
        *bits |= MultikeyPaths::bit(0);
    }
    Ok(())
}

/// Returns the value of a field before or after the texts; `None` if it is missing.
fn single<'a>(path: &Path, doc: Doc<'a>) -> Result<Option<Value<'a>>> {
    match path.lookup(doc) {
        Lookup::Missing => Ok(None),
        Lookup::Value(Value::Array(_)) | Lookup::Array(..) => Err(Error::new(
            ErrorCode::CannotBuildIndexKeys,
            format!(
                "Field '{}' of text index contains an array in document: {}",
                path.as_str(),
                debug_doc(doc)
            ),
        )),
        Lookup::Value(value) => Ok(Some(value)),
    }
}

fn is_long(term: &str) -> bool {
    term.len() > TERM_BYTES_MAX
}

/// Returns a term as it is in a key.
fn stored_term(term: &str) -> std::borrow::Cow<'_, str> {
    if !is_long(term) {
        return term.into();
    }
    let mut end = TERM_PREFIX_BYTES;
    while !term.is_char_boundary(end) {
        end -= 1;
    }
    let hash = quire_mql::expression::hashed_key(Some(Value::String(term)));
    format!("{}{hash:016x}", &term[..end]).into()
}

/// Returns true if a change of a field can change the terms, or the values beside them.
fn is_touched(spec: &KeySpec, differs: &Differs<'_>) -> bool {
    let Some(index) = TextIndex::in_keys(spec) else { return true };
    let mut reads = index.fields.top_fields();
    let beside = spec.fields.iter().zip(&spec.paths).filter(|(field, _)| field.part == Part::Value);
    beside.into_iter().any(|(_, path)| differs(path.first()))
        || reads.as_mut().is_none_or(|names| names.any(differs))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::debug_value;
    use quire_document::{DocBuf, doc};

    fn keys(pattern: DocBuf, doc: &DocBuf) -> Result<Vec<String>> {
        let spec = doc! { "key": &pattern, "name": "x" };
        let keys = KeySpec::new(&IndexSpec::parse(spec.as_doc(), false)?);
        let arena = Arena::new();
        let generated = keys.generate(doc.as_doc(), &arena)?;
        let text = |key: &[Option<Value<'_>>]| {
            let shown = key.iter().map(|value| value.map_or("-".into(), debug_value));
            shown.collect::<Vec<_>>().join(",")
        };
        let mut shown: Vec<String> = generated.keys().map(text).collect();
        shown.sort();
        Ok(shown)
    }

    #[test]
    fn each_term_is_a_key_with_its_score() {
        let doc = doc! { "k": 5, "t": "the red foxes run", "n": 7 };
        let pattern = doc! { "k": 1, "t": "text", "n": -1, "m": 1 };
        let found = keys(pattern.clone(), &doc).unwrap();
        assert_eq!(
            found,
            [
                r#"5,"fox",0.6666666666666666,7,-"#,
                r#"5,"red",0.6666666666666666,7,-"#,
                r#"5,"run",0.6666666666666666,7,-"#
            ]
        );
        assert!(keys(pattern.clone(), &doc! { "k": 5, "t": 5 }).unwrap().is_empty());
        let array = doc! { "k": [5], "t": "x" };
        assert_eq!(keys(pattern, &array).unwrap_err().code().number(), 201);
    }

    #[test]
    fn long_terms_keep_a_prefix_and_a_hash() {
        let (a, b) = (format!("{}1", "é".repeat(200)), format!("{}2", "é".repeat(200)));
        assert!(stored_term(&a).len() <= TERM_BYTES_MAX && stored_term(&a) != stored_term(&b));
        assert_eq!(stored_term(&a), stored_term(&a.clone()));
        assert_eq!(stored_term("short"), "short");
    }
}
