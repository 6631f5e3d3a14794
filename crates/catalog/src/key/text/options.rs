//! The specification of a text index: the key pattern in the form in which it is stored, and the weights
//! and languages with their defaults.

use quire_document::{Doc, DocBuf, Value};
use quire_error::Result;
use quire_mql::fulltext::{Language, TextFields, TextVersion};

use super::NAME;
use crate::IndexSpec;
use crate::index_pattern::{cannot, number};

/// The field of the term in a key pattern.
pub(super) const TERM: &str = "_fts";
/// The field of the score in a key pattern.
pub(super) const SCORE: &str = "_ftsx";
/// The path that stands for all texts of a document.
const ALL: &str = "$**";

const WEIGHTS: &str = "weights";
const DEFAULT_LANGUAGE: &str = "default_language";
const LANGUAGE_OVERRIDE: &str = "language_override";
const VERSION: &str = "textIndexVersion";
/// The options, in the order in which they are shown.
const OPTIONS: [&str; 4] = [WEIGHTS, DEFAULT_LANGUAGE, LANGUAGE_OVERRIDE, VERSION];

/// The weight of a field must be below this number.
const WEIGHT_MAX: f64 = 1_000_000_000.0;

/// Completes a specification: writes the key pattern with the fields of the term and the score in place
/// of the texts, and all options. `weights` is the option as it was written.
pub(super) fn complete(spec: &mut IndexSpec, written: Doc<'_>) -> Result<()> {
    let version = version_of(spec.extra.get(VERSION))?;
    let mut weights: Vec<(String, Value<'_>)> = Vec::new();
    let pattern = stored_pattern(spec.key.as_doc(), &mut weights)?;
    add_weights(written.get(WEIGHTS), &mut weights)?;
    if weights.is_empty() {
        return Err(cannot("text index option 'weights' must specify fields or the wildcard"));
    }
    weights.sort_by(|a, b| a.0.cmp(&b.0));
    let language = spec.extra.get(DEFAULT_LANGUAGE).and_then(|name| name.as_str());
    let language = language.unwrap_or("english").to_owned();
    if Language::named(&language, version).is_none() {
        return Err(cannot("default_language is not valid"));
    }
    let override_field = spec.extra.get(LANGUAGE_OVERRIDE).and_then(|name| name.as_str());
    let override_field = override_field.unwrap_or("language").to_owned();
    if override_field.is_empty() || override_field.starts_with('$') || override_field.contains('.')
    {
        return Err(cannot("language_override is not valid"));
    }
    let extra = DocBuf::build(|out| {
        for (name, value) in spec.extra.as_doc().fields() {
            if !OPTIONS.contains(&name) {
                out.append(name, value);
            }
        }
        {
            let mut shown = out.document(WEIGHTS);
            for (path, weight) in &weights {
                shown.append(path, *weight);
            }
        }
        out.append(DEFAULT_LANGUAGE, language.as_str());
        out.append(LANGUAGE_OVERRIDE, override_field.as_str());
        out.append(VERSION, version as i32 + 1);
    });
    spec.extra = extra;
    spec.key = pattern;
    Ok(())
}

/// Returns the key pattern as it is stored, and adds a weight for each of its texts.
fn stored_pattern(key: Doc<'_>, weights: &mut Vec<(String, Value<'_>)>) -> Result<DocBuf> {
    let is_text = |direction: Value<'_>| direction.as_str() == Some(NAME);
    let fields: Vec<(&str, Value<'_>)> = key.fields().collect();
    let first = fields.iter().position(|(_, direction)| is_text(*direction)).unwrap_or(0);
    let texts = fields[first..].iter().take_while(|(_, direction)| is_text(*direction)).count();
    let after = first + texts;
    if fields[after..].iter().any(|(_, direction)| is_text(*direction)) {
        return Err(cannot("'text' fields in index must all be adjacent"));
    }
    let is_stored = fields[first].0 == TERM;
    if is_stored && (texts > 1 || fields.get(after).is_none_or(|(path, _)| *path != SCORE)) {
        return Err(cannot("expecting _ftsx after _fts"));
    }
    let rest = if is_stored { after + 1 } else { after };
    for (path, direction) in fields[..first].iter().chain(&fields[rest..]) {
        if matches!(*path, TERM | SCORE) {
            return Err(cannot("text index with reserved fields _fts/_ftsx not allowed"));
        }
        if !number(*direction).is_some_and(|direction| direction.abs() == 1.0) {
            return Err(cannot("expected value 1 or -1 for non-text key in compound index"));
        }
    }
    if !is_stored {
        for (path, _) in &fields[first..after] {
            weights.push(((*path).to_owned(), Value::Int32(1)));
        }
    }
    Ok(DocBuf::build(|out| {
        for (path, direction) in &fields[..first] {
            out.append(path, *direction);
        }
        out.append(TERM, NAME).append(SCORE, 1);
        for (path, direction) in &fields[rest..] {
            out.append(path, *direction);
        }
    }))
}

/// Adds the weights of the option, which may also name fields that the key pattern does not have.
fn add_weights<'w>(
    option: Option<Value<'w>>,
    weights: &mut Vec<(String, Value<'w>)>,
) -> Result<()> {
    let mut set = |path: &str, weight: Value<'w>| match weights.iter_mut().find(|one| one.0 == path)
    {
        Some(known) => known.1 = weight,
        None => weights.push((path.to_owned(), weight)),
    };
    match option {
        None => {}
        Some(Value::Document(given)) => {
            for (path, weight) in given.fields() {
                let wrong = path.is_empty()
                    || path != ALL
                        && path.split('.').any(|part| part.is_empty() || part.starts_with('$'));
                if wrong {
                    return Err(cannot(
                        "weight cannot be on an empty field or one that begins with '$'",
                    ));
                }
                let Some(value) = number(weight) else {
                    return Err(cannot("weight for text index needs numeric type"));
                };
                if !(value > 0.0 && value < WEIGHT_MAX) {
                    return Err(cannot(format!(
                        "text index weight must be in the exclusive interval (0,{WEIGHT_MAX}) but found: {value}"
                    )));
                }
                set(path, weight);
            }
        }
        Some(Value::String(ALL)) => set(ALL, Value::Int32(1)),
        Some(_) => return Err(cannot("text index option 'weights' must be an object")),
    }
    Ok(())
}

fn version_of(value: Option<Value<'_>>) -> Result<TextVersion> {
    match value {
        None => Ok(TextVersion::Three),
        Some(value) => match number(value) {
            Some(1.0) => Ok(TextVersion::One),
            Some(2.0) => Ok(TextVersion::Two),
            Some(3.0) => Ok(TextVersion::Three),
            _ => Err(cannot("bad textIndexVersion: it must be 1, 2 or 3")),
        },
    }
}

/// Returns the fields of a complete specification.
pub(super) fn text_fields(spec: &IndexSpec) -> Option<TextFields> {
    let version = version_of(spec.extra.get(VERSION)).ok()?;
    let weights = spec.extra.get(WEIGHTS)?.as_document()?;
    let wildcard = weights.contains(ALL);
    let weights = weights.fields().filter(|(path, _)| *path != ALL);
    let mut weights: Vec<(String, f64)> =
        weights.filter_map(|(path, weight)| Some((path.to_owned(), number(weight)?))).collect();
    weights.sort_by(|a, b| a.0.cmp(&b.0));
    Some(TextFields {
        weights,
        wildcard,
        language: Language::named(spec.extra.get(DEFAULT_LANGUAGE)?.as_str()?, version)?,
        override_field: spec.extra.get(LANGUAGE_OVERRIDE)?.as_str()?.to_owned(),
        version,
    })
}

#[cfg(test)]
mod tests {
    use crate::IndexSpec;
    use quire_document::{DocBuf, doc};

    fn shown(spec: DocBuf) -> DocBuf {
        IndexSpec::parse(spec.as_doc(), false).unwrap().to_document()
    }

    fn refused(spec: DocBuf) -> i32 {
        IndexSpec::parse(spec.as_doc(), false).unwrap_err().code().number()
    }

    #[test]
    fn specifications_are_shown_as_mongodb_does() {
        let spec = doc! {
            "key": { "k": 1, "title": "text", "body": "text", "n": -1 }, "name": "x",
            "weights": { "title": 10, "more": 2.5 }, "default_language": "de"
        };
        let expected = doc! {
            "v": 2, "key": { "k": 1, "_fts": "text", "_ftsx": 1, "n": -1 }, "name": "x",
            "weights": { "body": 1, "more": 2.5, "title": 10 }, "default_language": "de",
            "language_override": "language", "textIndexVersion": 3
        };
        let complete = shown(spec);
        assert_eq!(complete, expected);
        assert_eq!(shown(complete), expected, "as a dump restores it");
    }

    #[test]
    fn wrong_specifications_are_refused() {
        assert_eq!(refused(doc! { "key": { "a": "text", "b": 1, "c": "text" }, "name": "x" }), 67);
        assert_eq!(refused(doc! { "key": { "a": "text", "b": 5 }, "name": "x" }), 67);
        for option in [
            doc! { "weights": { "a": 0 } },
            doc! { "weights": "a" },
            doc! { "weights": { "a": "x" } },
            doc! { "default_language": "elvish" },
            doc! { "language_override": "a.b" },
            doc! { "textIndexVersion": 4 },
        ] {
            let mut spec = doc! { "key": { "a": "text" }, "name": "x" };
            spec.extend(|out| {
                out.append_all(option.as_doc());
            });
            assert_eq!(refused(spec), 67, "{option:?}");
        }
    }
}
