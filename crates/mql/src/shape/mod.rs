//! The shape of a request's parts: their structure, in which each literal is replaced by its type.
//!
//! Requests of one shape differ only in their literals. Statistics, query settings, index filters
//! and the plan cache belong to a shape. The normal form is described in docs/format.md ("Shapes"),
//! because its hashes are stored. It is made of the written request, not of the parsed one, so that
//! it does not change when the parser or the optimiser does.
//!
//! Read in this order: `literal` (types in place of values), `filter`, `expression`, `projection`
//! (and sorts), `pipeline`, `update`.

mod expression;
mod filter;
mod literal;
mod pipeline;
mod projection;
#[cfg(test)]
mod tests;
mod update;

pub use filter::Detail;

use quire_document::{ArrayBuf, Doc, DocBuf, Value, ValueBuf};

/// Returns the shape of a filter.
pub fn of_filter(filter: Doc<'_>, detail: Detail) -> DocBuf {
    filter::of(filter, detail)
}

/// Returns the shape of an aggregation expression.
pub fn of_expression(expression: Value<'_>) -> ValueBuf {
    expression::of(expression)
}

/// Returns the shape of variables, `{name: expression}`.
pub fn of_variables(variables: Doc<'_>) -> DocBuf {
    expression::of_fields(variables, &[])
}

/// Returns the shape of a projection. It has `_id` if that is included without being named.
pub fn of_projection(projection: Doc<'_>) -> DocBuf {
    projection::of(projection)
}

/// Returns the shape of a sort: each direction as the integer 1 or -1.
pub fn of_sort(sort: Doc<'_>) -> DocBuf {
    projection::of_sort(sort)
}

/// Returns the shape of a document of literals, such as `min`.
pub fn of_literals(literals: Doc<'_>) -> DocBuf {
    literal::of_fields(literals)
}

/// Returns the shape of an update: its operators with their paths, its pipeline, or `?object` for a
/// replacement.
pub fn of_update(update: Value<'_>) -> ValueBuf {
    update::of(update)
}

/// Returns the shape of a pipeline.
pub fn of_pipeline<'s>(stages: impl IntoIterator<Item = Doc<'s>>) -> ArrayBuf {
    pipeline::of(stages.into_iter().map(Value::Document))
}
