//! `$text`: the document has words of a search. Only a text index answers it; the kind of that index
//! parses the words (`quire_catalog::key`).

use std::any::Any;
use std::sync::Arc;

use super::node::Node;
use super::not_built::check_whole_document;
use super::open::Search;
use super::parse::Parser;
use super::registry::{Parse, QueryOperator};
use quire_document::{Doc, DocBuf, DocWriter, Value};
use quire_error::{Error, ErrorCode, Result};

/// The name of the operator.
const NAME: &str = "$text";

/// The registry row of this operator.
pub(super) const OPERATORS: &[QueryOperator] = &[QueryOperator {
    name: NAME,
    parse: Parse::Top(parse),
    doc: "Matches documents that have words or phrases, by a text index.",
    since: "2.6",
}];

/// The operand of a `$text`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextQuery {
    /// The words and phrases, as they were written.
    pub search: String,
    /// The name of the language; empty for the default of the index.
    pub language: String,
    /// True if upper-case and lower-case letters differ.
    pub case_sensitive: bool,
    /// True if letters with different diacritics differ.
    pub diacritic_sensitive: bool,
}

/// The metadata of a text search.
pub const TEXT_METADATA: &[&str] = &["textScore"];

fn parse(parser: &Parser<'_>, value: Value<'_>) -> Result<Option<Node>> {
    check_whole_document(NAME, parser)?;
    let Value::Document(operand) = value else {
        return Err(Error::bad_value("$text expects an object"));
    };
    Ok(Some(Node::Search(Arc::new(TextQuery::parse(operand)?))))
}

impl TextQuery {
    /// Parses the operand.
    ///
    /// # Errors
    /// 4 NoSuchKey without `$search`, 14 TypeMismatch for a value of another type, 2 BadValue for an
    /// unknown field.
    fn parse(operand: Doc<'_>) -> Result<Self> {
        let Some(search) = operand.get("$search") else {
            return Err(Error::new(ErrorCode::NoSuchKey, "Missing expected field \"$search\""));
        };
        let language = operand.get("$language");
        let query = TextQuery {
            search: text("$search", search)?,
            language: language
                .map(|value| text("$language", value))
                .transpose()?
                .unwrap_or_default(),
            case_sensitive: flag("$caseSensitive", operand)?,
            diacritic_sensitive: flag("$diacriticSensitive", operand)?,
        };
        let known = ["$search", "$language", "$caseSensitive", "$diacriticSensitive"];
        if operand.fields().any(|(name, _)| !known.contains(&name)) {
            return Err(Error::bad_value("extra fields in $text"));
        }
        Ok(query)
    }

    /// Writes the condition with the name of its language as explain shows it.
    pub fn write_with(&self, language: &str, writer: &mut DocWriter<'_>) {
        writer
            .document(NAME)
            .append("$search", self.search.as_str())
            .append("$language", language)
            .append("$caseSensitive", self.case_sensitive)
            .append("$diacriticSensitive", self.diacritic_sensitive);
    }

    /// Returns a line about the search with the name of its language, as in MongoDB's messages.
    pub fn describe_with(&self, language: &str) -> String {
        format!(
            "TEXT : query={}, language={language}, caseSensitive={}, diacriticSensitive={}, tag=NULL",
            self.search,
            u8::from(self.case_sensitive),
            u8::from(self.diacritic_sensitive)
        )
    }
}

fn wrong_type(name: &str, expected: &str, value: Value<'_>) -> Error {
    Error::type_mismatch(format!(
        "\"{name}\" had the wrong type. Expected {expected}, found {}",
        value.kind().alias()
    ))
}

fn text(name: &str, value: Value<'_>) -> Result<String> {
    match value {
        Value::String(text) => Ok(text.to_owned()),
        other => Err(wrong_type(name, "string", other)),
    }
}

fn flag(name: &str, operand: Doc<'_>) -> Result<bool> {
    match operand.get(name) {
        None => Ok(false),
        Some(Value::Bool(flag)) => Ok(flag),
        Some(other) => Err(wrong_type(name, "bool", other)),
    }
}

/// Returns the error of a `$text` where no index has been looked for.
fn not_bound() -> Error {
    Error::new(ErrorCode::IndexNotFound, "text index required for $text query")
}

impl Search for TextQuery {
    fn operator(&self) -> &'static str {
        NAME
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn matches(&self, _: Doc<'_>) -> Result<bool> {
        Err(not_bound())
    }

    fn metadata_of(&self, _: Doc<'_>) -> Result<DocBuf> {
        Err(not_bound())
    }

    fn metadata(&self) -> &'static [&'static str] {
        TEXT_METADATA
    }

    fn write(&self, writer: &mut DocWriter<'_>) {
        self.write_with(&self.language, writer);
    }

    fn describe(&self) -> String {
        self.describe_with(&self.language)
    }
}
