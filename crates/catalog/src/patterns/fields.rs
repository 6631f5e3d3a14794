//! Reads the fields of a definition: each is asked for by its name, and what nothing asked for is
//! refused.

use quire_document::{Doc, Value};
use quire_error::{Error, Result};
use quire_mql::whole;

use super::check_path;

/// The fields of one document of a definition.
pub(super) struct Fields<'a> {
    /// The path of the document in the command, for messages.
    path: String,
    doc: Doc<'a>,
    asked: Vec<&'static str>,
}

/// A field with its path in the command, for messages.
pub(super) struct Field<'a> {
    path: String,
    pub value: Value<'a>,
}

impl<'a> Fields<'a> {
    pub fn new(path: String, doc: Doc<'a>) -> Self {
        Fields { path, doc, asked: Vec::new() }
    }

    /// Returns the field; `None` if it is absent or null.
    pub fn optional(&mut self, name: &'static str) -> Option<Field<'a>> {
        self.asked.push(name);
        let value = self.doc.get(name).filter(|value| !value.is_nullish())?;
        Some(Field { path: format!("{}.{name}", self.path), value })
    }

    /// Returns the field.
    ///
    /// # Errors
    /// 40414 if it is absent.
    pub fn required(&mut self, name: &'static str) -> Result<Field<'a>> {
        let text = format!("BSON field '{}.{name}' is missing but a required field", self.path);
        self.optional(name).ok_or_else(|| Error::location(40414, text))
    }

    /// Refuses a field that nothing has asked for (40415).
    pub fn finish(&self) -> Result<()> {
        match self.doc.fields().find(|(name, _)| !self.asked.contains(name)) {
            None => Ok(()),
            Some((name, _)) => {
                let text = format!("BSON field '{}.{name}' is an unknown field.", self.path);
                Err(Error::location(40415, text))
            }
        }
    }
}

impl<'a> Field<'a> {
    pub fn new(path: String, value: Value<'a>) -> Self {
        Field { path, value }
    }

    pub fn text(&self) -> Result<&'a str> {
        match self.value {
            Value::String(text) => Ok(text),
            _ => Err(self.wrong_type("string")),
        }
    }

    pub fn flag(&self) -> Result<bool> {
        match self.value {
            Value::Bool(flag) => Ok(flag),
            _ => Err(self.wrong_type("bool")),
        }
    }

    pub fn document(&self) -> Result<Doc<'a>> {
        self.value.as_document().ok_or_else(|| self.wrong_type("object"))
    }

    /// Returns a whole number that is not negative.
    pub fn count(&self) -> Result<u32> {
        if !self.value.is_number() {
            return Err(self.wrong_type("[int, long, double, decimal]"));
        }
        let number = whole(self.value).and_then(|number| u32::try_from(number).ok());
        number.ok_or_else(|| self.bad_value("a whole number from 0 to 4294967295"))
    }

    /// Returns the path of a field of documents.
    pub fn path(&self) -> Result<String> {
        let text = self.text()?;
        check_path(&self.path, text)?;
        Ok(text.to_owned())
    }

    /// Returns the name of a collection of the same database.
    pub fn collection(&self) -> Result<String> {
        let name = self.text()?;
        let is_valid = !name.is_empty()
            && !name.starts_with('.')
            && !name.starts_with("system.")
            && !name.contains(['\0', '$']);
        match is_valid {
            true => Ok(name.to_owned()),
            false => Err(self.bad_value("the name of a collection of the same database")),
        }
    }

    pub fn bad_value(&self, expected: &str) -> Error {
        Error::bad_value(format!("BSON field '{}' must be {expected}", self.path))
    }

    pub fn wrong_type(&self, expected: &str) -> Error {
        let (path, found) = (&self.path, self.value.type_name());
        Error::type_mismatch(format!(
            "BSON field '{path}' is the wrong type '{found}', expected type '{expected}'"
        ))
    }

    /// Returns the path of the field in the command.
    pub fn place(&self) -> &str {
        &self.path
    }
}

/// Returns every path of a document's field that the strings in `value` name as expressions do
/// (`"$stars"`). An expression with a variable (`"$$ROOT"`) reads the whole document: the empty path.
pub(super) fn field_paths(value: Value<'_>, out: &mut Vec<String>) {
    match value {
        Value::String(text) => match text.strip_prefix('$') {
            Some(variable) if variable.starts_with('$') => out.push(String::new()),
            Some(path) => out.push(path.to_owned()),
            None => {}
        },
        Value::Document(doc) => doc.fields().for_each(|(_, value)| field_paths(value, out)),
        Value::Array(array) => array.iter().for_each(|value| field_paths(value, out)),
        _ => {}
    }
}
