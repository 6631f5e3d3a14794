//! Filters on one array element: conditions of `$pull`, and array filters.
//!
//! The element is put into a document under a name, so that a condition on it becomes one on a
//! field. Therefore a condition also applies to the elements of an element that is an array.

use crate::context::{EvalContext, ParseContext};
use crate::filter::{Features, Filter};
use quire_document::{Doc, Value, doc};
use quire_error::{Error, Result};

/// A condition on an element, which has a name.
#[derive(Debug)]
pub(super) struct ElementFilter {
    name: String,
    /// A filter on `{name: element}`.
    filter: Filter,
}

impl ElementFilter {
    /// Parses `{name: condition, "name.field": condition, $or: [..]}`.
    pub(super) fn parse(name: &str, filter: Doc<'_>, cx: &ParseContext) -> Result<Self> {
        Ok(ElementFilter { name: name.to_owned(), filter: parse(filter, cx)? })
    }

    /// Parses a condition on the element itself: operators or a regular expression.
    pub(super) fn parse_value(condition: Value<'_>, cx: &ParseContext) -> Result<Self> {
        ElementFilter::parse("element", doc! { "element": condition }.as_doc(), cx)
    }

    /// Returns true if the element matches the condition.
    pub(super) fn matches(&self, element: Value<'_>, cx: &EvalContext<'_>) -> Result<bool> {
        let wrapped = doc! { (&self.name): element };
        matches(&self.filter, wrapped.as_doc(), cx)
    }
}

/// Parses a filter in which `$expr`, `$where`, `$text` and `$near` are not allowed.
pub(super) fn parse(filter: Doc<'_>, cx: &ParseContext) -> Result<Filter> {
    if let Some(banned) = ["$text", "$where"].into_iter().find(|name| filter.contains(name)) {
        return Err(Error::bad_value(format!("{banned} is not allowed in this context")));
    }
    Filter::parse_with(filter, cx, Features::PARTS)
}

/// Returns true if the document matches the filter.
pub(super) fn matches(filter: &Filter, doc: Doc<'_>, cx: &EvalContext<'_>) -> Result<bool> {
    filter.matches(doc, cx)
}

/// Returns true for `{$gt: 1}`: operators on the element itself, not fields or `$and`, `$or`, `$nor`.
/// `$not` is none of them, so that `$pull` refuses `{$not: ...}` as mongod does.
pub(super) fn starts_with_operator(spec: Doc<'_>) -> bool {
    let is_operator = |name: &str| name != "$not" && crate::filter::is_field_operator(name);
    spec.first().is_some_and(|first| is_operator(first.key()))
}
