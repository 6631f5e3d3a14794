//! The texts of a document that an index holds, each with its language and the weight of its field.

use super::language::Language;
use super::version::TextVersion;
use quire_document::{Doc, Value};
use quire_error::{Error, Result};

/// The fields of a text index.
#[derive(Clone, Debug, PartialEq)]
pub struct TextFields {
    /// The indexed paths with their weights, sorted by path.
    pub weights: Vec<(String, f64)>,
    /// True if every text of a document is indexed.
    pub wildcard: bool,
    /// The language of documents that do not name one.
    pub language: Language,
    /// The field in which a document or a part of it names its language.
    pub override_field: String,
    /// The version of the index.
    pub version: TextVersion,
}

/// The weight of a field without one of its own.
const WEIGHT_DEFAULT: f64 = 1.0;

/// A text of a document.
pub(super) struct Text<'d> {
    pub text: &'d str,
    pub language: Language,
    pub weight: f64,
}

/// Takes the texts of a document.
type Visit<'v, 'd> = dyn FnMut(Text<'d>) -> Result<()> + 'v;

impl TextFields {
    /// Calls `visit` for each indexed text of a document, in the order of the document.
    ///
    /// # Errors
    /// 17261 and 17262 for a language field that is no string or names no language, and the errors of
    /// `visit`.
    pub(super) fn visit<'d>(&self, doc: Doc<'d>, visit: &mut Visit<'_, 'd>) -> Result<()> {
        self.visit_part(doc, "", false, self.language, visit)
    }

    /// Visits a document, a part of one or an array. `path` leads to it.
    fn visit_part<'d>(
        &self,
        part: Doc<'d>,
        path: &str,
        is_array: bool,
        language: Language,
        visit: &mut Visit<'_, 'd>,
    ) -> Result<()> {
        let language = if is_array { language } else { self.language_of(part, path, language)? };
        for (name, value) in part.fields() {
            if self.wildcard && name == self.override_field {
                continue;
            }
            let dotted;
            let own = match (path, is_array) {
                ("", _) => name,
                (path, true) => path,
                (path, false) => {
                    dotted = format!("{path}.{name}");
                    &dotted
                }
            };
            let weight = self.weight(own);
            match value {
                Value::String(text) if weight.is_some() || self.wildcard => {
                    visit(Text { text, language, weight: weight.unwrap_or(WEIGHT_DEFAULT) })?;
                }
                Value::Document(inner) if self.leads_below(own) => {
                    self.visit_part(inner, own, false, language, visit)?;
                }
                Value::Array(inner)
                    if self.wildcard
                        || !is_array && (weight.is_some() || self.leads_below(own)) =>
                {
                    self.visit_part(inner.as_doc(), own, true, language, visit)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns the weight of a field; `None` if it has none of its own.
    fn weight(&self, path: &str) -> Option<f64> {
        let at = self.weights.binary_search_by(|(other, _)| other.as_str().cmp(path)).ok()?;
        self.weights.get(at).map(|(_, weight)| *weight)
    }

    /// Returns true if an indexed path leads through a field.
    fn leads_below(&self, path: &str) -> bool {
        self.wildcard
            || self.weights.iter().any(|(other, _)| {
                other.strip_prefix(path).is_some_and(|rest| rest.starts_with('.'))
            })
    }

    /// Returns the language that a part of a document names, or that of the part around it.
    fn language_of(&self, part: Doc<'_>, path: &str, around: Language) -> Result<Language> {
        // In an index of version 1 only the document itself names a language.
        if self.version == TextVersion::One && !path.is_empty() {
            return Ok(around);
        }
        match part.get(&self.override_field) {
            None => Ok(around),
            Some(Value::String(name)) => Language::named(name, self.version).ok_or_else(|| {
                Error::location(17262, format!("language override unsupported: {name}"))
            }),
            Some(_) => Err(Error::location(
                17261,
                "found language override field in document with non-string type",
            )),
        }
    }

    /// Returns the top-level fields that the texts and their languages depend on; `None` for all.
    pub fn top_fields(&self) -> Option<impl Iterator<Item = &str>> {
        let paths = self.weights.iter().map(|(path, _)| path.as_str());
        let tops = paths.map(|path| path.split_once('.').map_or(path, |(top, _)| top));
        (!self.wildcard).then(|| tops.chain(std::iter::once(self.override_field.as_str())))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use quire_document::doc;

    /// Returns the fields of an English index of version 3.
    pub fn fields(paths: &[&str]) -> TextFields {
        let mut weights: Vec<_> = paths.iter().map(|path| ((*path).to_owned(), 1.0)).collect();
        weights.sort_by(|a, b| a.0.cmp(&b.0));
        weights.retain(|(path, _)| path != "$**");
        TextFields {
            weights,
            wildcard: paths.contains(&"$**"),
            language: Language::named("english", TextVersion::Three).unwrap(),
            override_field: "language".into(),
            version: TextVersion::Three,
        }
    }

    fn texts(paths: &[&str], doc: &quire_document::DocBuf) -> Vec<String> {
        let mut found = Vec::new();
        let visited = fields(paths).visit(doc.as_doc(), &mut |text| {
            found.push(format!("{} {:?}", text.text, text.language));
            Ok(())
        });
        visited.unwrap();
        found
    }

    #[test]
    fn strings_on_the_paths_are_visited() {
        let doc = doc! {
            "a": ["x", 5, ["y"], { "b": "z" }], "b": { "c": "in", "d": "out" }, "c": "not"
        };
        assert_eq!(texts(&["a", "b.c"], &doc), ["x english", "in english"]);
        let all =
            ["x english", "y english", "z english", "in english", "out english", "not english"];
        assert_eq!(texts(&["$**"], &doc), all);
    }

    #[test]
    fn parts_name_their_language() {
        let doc = doc! {
            "language": "french", "a": "x",
            "p": [{ "language": "german", "a": "y" }, { "a": "z" }]
        };
        assert_eq!(texts(&["a", "p.a"], &doc), ["x french", "y german", "z french"]);
        let wrong = fields(&["a"]).visit(doc! { "language": 5 }.as_doc(), &mut |_| Ok(()));
        assert_eq!(wrong.unwrap_err().code().number(), 17261);
    }
}
