//! `arrayFilters`: the conditions of `$[name]`.

use super::element_filter::{self, ElementFilter};
use crate::context::{EvalContext, ParseContext};
use quire_document::{Doc, Value};
use quire_error::{Error, Result};

/// The array filters of an update, by name.
#[derive(Debug, Default)]
pub(super) struct ArrayFilters {
    filters: Vec<(String, ElementFilter)>,
}

impl ArrayFilters {
    /// Parses the documents of `arrayFilters`.
    pub(super) fn parse(documents: &[Doc<'_>], cx: &ParseContext) -> Result<Self> {
        let mut filters: Vec<(String, ElementFilter)> = Vec::with_capacity(documents.len());
        for document in documents {
            element_filter::parse(*document, cx).map_err(in_array_filter)?;
            let mut name = None;
            top_level_name(*document, &mut name).map_err(in_array_filter)?;
            let Some(name) = name else {
                return Err(Error::failed_to_parse(
                    "Cannot use an expression without a top-level field name in arrayFilters",
                ));
            };
            check_name(&name).map_err(in_array_filter)?;
            if filters.iter().any(|(known, _)| *known == name) {
                return Err(Error::failed_to_parse(format!(
                    "Found multiple array filters with the same top-level field name {name}"
                )));
            }
            let filter = ElementFilter::parse(&name, *document, cx)?;
            filters.push((name, filter));
        }
        Ok(ArrayFilters { filters })
    }

    /// Returns the names in the written order.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.filters.iter().map(|(name, _)| name.as_str())
    }

    /// Returns true if there is a filter with this name.
    pub(super) fn contains(&self, name: &str) -> bool {
        self.names().any(|known| known == name)
    }

    /// Returns true if the element matches the filter with this name.
    pub(super) fn matches(
        &self,
        name: &str,
        element: Value<'_>,
        cx: &EvalContext<'_>,
    ) -> Result<bool> {
        match self.filters.iter().find(|(known, _)| known == name) {
            Some((_, filter)) => filter.matches(element, cx),
            None => Ok(false),
        }
    }
}

fn in_array_filter(error: Error) -> Error {
    error.context("Error parsing array filter")
}

/// Finds the name with which all paths of a filter begin.
fn top_level_name(filter: Doc<'_>, name: &mut Option<String>) -> Result<()> {
    for (key, value) in filter.fields() {
        if key.starts_with('$') {
            let Value::Array(filters) = value else { continue };
            for filter in filters.iter().filter_map(|value| value.as_document()) {
                top_level_name(filter, name)?;
            }
            continue;
        }
        let first = key.split('.').next().unwrap_or_default();
        match name {
            None => *name = Some(first.to_owned()),
            Some(known) if known == first => {}
            Some(known) => {
                return Err(Error::failed_to_parse(format!(
                    "Expected a single top-level field name, found '{known}' and '{first}'"
                )));
            }
        }
    }
    Ok(())
}

fn check_name(name: &str) -> Result<()> {
    let starts_well = name.starts_with(|first: char| first.is_ascii_lowercase());
    if starts_well && name.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Ok(());
    }
    Err(Error::bad_value(format!(
        "The top-level field name must be an alphanumeric string beginning with a lowercase letter, found '{name}'"
    )))
}
