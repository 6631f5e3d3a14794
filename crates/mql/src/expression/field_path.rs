//! Dotted field paths in expressions.
//!
//! Unlike in filters, a numeric component is only a field name. At an array, the rest of the path
//! is applied to each element that is a document, and the result is an array.

use crate::context::EvalContext;
use quire_document::{Array, ArrayWriter, Doc, Value};
use quire_error::{Error, Result};
use std::fmt;

/// The most components of a path.
pub const PATH_COMPONENTS_MAX: usize = 200;

/// A parsed path with at least one component. No component is empty.
#[derive(Clone)]
pub struct FieldPath {
    pub(super) components: Box<[Box<str>]>,
    /// The slot in which an `Extractor` puts the path's value. It is ignored in comparisons of
    /// paths.
    pub(super) slot: Option<u32>,
}

impl PartialEq for FieldPath {
    fn eq(&self, other: &Self) -> bool {
        self.components == other.components
    }
}

impl Eq for FieldPath {}

impl FieldPath {
    /// Parses `a.b.c`. Fails with MongoDB's codes for invalid paths.
    pub fn parse(dotted: &str) -> Result<FieldPath> {
        if dotted.is_empty() {
            let text = "FieldPath cannot be constructed with empty string";
            return Err(Error::location(40352, text));
        }
        if dotted.ends_with('.') {
            return Err(Error::location(40353, "FieldPath must not end with a '.'."));
        }
        let mut components = Vec::new();
        for component in dotted.split('.') {
            check_field_name(component)?;
            if components.len() == PATH_COMPONENTS_MAX {
                return Err(Error::location(5984700, "FieldPath is too long"));
            }
            components.push(Box::from(component));
        }
        Ok(FieldPath { components: components.into(), slot: None })
    }

    /// Returns the components in order.
    pub fn components(&self) -> impl ExactSizeIterator<Item = &str> {
        self.components.iter().map(|component| &**component)
    }

    /// Returns the first component.
    pub fn first(&self) -> &str {
        self.components.first().map_or("", |component| component)
    }

    /// Returns the value at the path in a document.
    #[inline]
    pub fn eval<'a>(&self, doc: Doc<'a>, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
        walk(&self.components, doc, cx)
    }

    /// Returns the value at the path in a document, or in each element of an array.
    pub fn eval_in<'a>(&self, value: Value<'a>, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
        into(&self.components, value, cx)
    }
}

#[inline(always)] // Most paths are one field, for which a call would be a tenth of the work.
fn walk<'a>(path: &[Box<str>], doc: Doc<'a>, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
    let Some((first, rest)) = path.split_first() else { return Ok(None) };
    let Some(value) = cx.field(doc, first) else { return Ok(None) };
    if rest.is_empty() { Ok(Some(value)) } else { into(rest, value, cx) }
}

pub(super) fn into<'a>(
    path: &[Box<str>],
    value: Value<'a>,
    cx: &EvalContext<'a>,
) -> Result<Option<Value<'a>>> {
    match value {
        Value::Document(doc) => walk(path, doc, cx),
        Value::Array(array) => {
            let mapped = cx.array(|writer| {
                map(path, array, writer);
                Ok(())
            })?;
            Ok(Some(Value::Array(mapped)))
        }
        _ => Ok(None),
    }
}

/// Appends the path's value in each element that is a document.
fn map(path: &[Box<str>], array: Array<'_>, writer: &mut ArrayWriter<'_>) {
    for element in array.iter() {
        let Value::Document(mut doc) = element else { continue };
        let mut rest = path;
        while let Some((first, deeper)) = rest.split_first() {
            match doc.get(first) {
                Some(value) if deeper.is_empty() => {
                    writer.push(value);
                    break;
                }
                Some(Value::Document(inner)) => (doc, rest) = (inner, deeper),
                Some(Value::Array(inner)) => {
                    map(deeper, inner, &mut writer.array());
                    break;
                }
                _ => break,
            }
        }
    }
}

/// Fails for a name that a path or an object expression must not have.
pub fn check_field_name(name: &str) -> Result<()> {
    if name.is_empty() {
        let text = "FieldPath field names may not be empty strings.";
        return Err(Error::location(15998, text));
    }
    // The fields of a DBRef are the only names with a dollar sign that paths may have.
    if name.starts_with('$') && !matches!(name, "$id" | "$ref" | "$db") {
        let text =
            "FieldPath field names may not start with '$'. Consider using $getField or $setField.";
        return Err(Error::location(16410, text));
    }
    if name.contains('\0') {
        let text = "FieldPath field names may not contain '\\0'.";
        return Err(Error::location(16411, text));
    }
    Ok(())
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.components.join("."))
    }
}

impl fmt::Debug for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "${self}")
    }
}
