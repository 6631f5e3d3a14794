//! Filters on one array element: `$pull`'s conditions and array filters.
//!
//! A condition on the element itself looks at it whole: `{e: 1}` does not match the element
//! `[1, 2]`, as a condition on a field would. So an element that is an array is looked at by its
//! position in an array around it, where paths end without going into it.

use crate::context::{EvalContext, ParseContext};
use crate::filter::{Features, Filter};
use quire_document::{Doc, DocBuf, DocWriter, Value, doc};
use quire_error::Result;

/// A condition on one element, which stands under a name.
#[derive(Debug)]
pub(super) struct ElementFilter {
    name: String,
    /// For elements that are no arrays: a filter on `{name: element}`.
    plain: Filter,
    /// For arrays: a filter on `{name: [element]}`.
    whole: Filter,
}

impl ElementFilter {
    /// Parses `{name: condition, "name.field": condition, $or: [..]}`.
    pub(super) fn parse(name: &str, filter: Doc<'_>, cx: &ParseContext) -> Result<Self> {
        let plain = parse(filter, cx)?;
        let whole = parse(by_position(filter).as_doc(), cx)?;
        Ok(ElementFilter { name: name.to_owned(), plain, whole })
    }

    /// Parses a condition on the element itself: operators or a regular expression.
    pub(super) fn parse_value(condition: Value<'_>, cx: &ParseContext) -> Result<Self> {
        ElementFilter::parse("element", doc! { "element": condition }.as_doc(), cx)
    }

    /// True if the element meets the condition.
    pub(super) fn matches(&self, element: Value<'_>, cx: &EvalContext<'_>) -> Result<bool> {
        let (filter, wrapped) = match element {
            Value::Array(_) => (&self.whole, doc! { (&self.name): [element] }),
            _ => (&self.plain, doc! { (&self.name): element }),
        };
        matches(filter, wrapped.as_doc(), cx)
    }
}

/// Parses a filter in which `$expr`, `$where`, `$text` and `$near` may not stand.
pub(super) fn parse(filter: Doc<'_>, cx: &ParseContext) -> Result<Filter> {
    Filter::parse_with(filter, cx, Features::PARTS)
}

/// True if the document meets the filter.
pub(super) fn matches(filter: &Filter, doc: Doc<'_>, cx: &EvalContext<'_>) -> Result<bool> {
    filter.matches(doc, cx)
}

/// True for `{$gt: 1}`: operators on the element itself, not fields or `$and`, `$or`, `$nor`.
pub(super) fn starts_with_operator(spec: Doc<'_>) -> bool {
    spec.first().is_some_and(|first| crate::filter::is_field_operator(first.key()))
}

/// The same filter with `.0` behind the first component of every path.
fn by_position(filter: Doc<'_>) -> DocBuf {
    DocBuf::build(|writer| write_by_position(filter, writer))
}

fn write_by_position(filter: Doc<'_>, writer: &mut DocWriter<'_>) {
    for element in filter.iter() {
        match (element.key(), element.value()) {
            (key, Value::Array(filters)) if key.starts_with('$') => {
                let mut inner = writer.array(key);
                for filter in filters.iter() {
                    match filter {
                        Value::Document(filter) => write_by_position(filter, &mut inner.document()),
                        other => {
                            inner.push(other);
                        }
                    }
                }
            }
            (key, value) if key.starts_with('$') => {
                writer.append(key, value);
            }
            (key, value) => {
                let (first, rest) = match key.split_once('.') {
                    Some((first, rest)) => (first, format!(".{rest}")),
                    None => (key, String::new()),
                };
                writer.append(&format!("{first}.0{rest}"), value);
            }
        }
    }
}
