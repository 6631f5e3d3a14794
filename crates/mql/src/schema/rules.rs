//! The tree of a schema: one node for each nested schema, one field for each keyword.

use super::encrypt::Encrypted;
use crate::regex::Regex;
use crate::type_set::TypeSet;
use quire_document::{DocBuf, ValueBuf};

/// A schema: the keywords that a value must satisfy. A keyword applies only to certain types.
#[derive(Debug, Default)]
pub(super) struct Rules {
    pub(super) types: Option<TypeSet>,
    pub(super) multiple_of: Option<ValueBuf>,
    pub(super) maximum: Option<Bound>,
    pub(super) minimum: Option<Bound>,
    pub(super) max_length: Option<i64>,
    pub(super) min_length: Option<i64>,
    pub(super) pattern: Option<Regex>,
    pub(super) min_items: Option<i64>,
    pub(super) max_items: Option<i64>,
    pub(super) unique_items: bool,
    pub(super) items: Option<Items>,
    pub(super) additional_items: Option<Additional>,
    pub(super) encrypted: Option<Encrypted>,
    pub(super) properties: Vec<(String, Rules)>,
    pub(super) pattern_properties: Vec<(Regex, Rules)>,
    pub(super) additional_properties: Option<Additional>,
    pub(super) required: Vec<String>,
    pub(super) min_properties: Option<i64>,
    pub(super) max_properties: Option<i64>,
    pub(super) dependencies: Vec<(String, Dependency)>,
    pub(super) all_of: Vec<Rules>,
    pub(super) any_of: Vec<Rules>,
    pub(super) one_of: Vec<Rules>,
    pub(super) not: Option<Box<Rules>>,
    pub(super) one_of_values: Option<Vec<ValueBuf>>,
    /// The schema as the user wrote it, for reports.
    pub(super) source: DocBuf,
}

/// The value of `minimum` or `maximum`.
#[derive(Debug)]
pub(super) struct Bound {
    pub(super) value: ValueBuf,
    pub(super) exclusive: bool,
}

/// The value of `items`, for the elements of an array.
#[derive(Debug)]
pub(super) enum Items {
    /// One schema for all elements.
    All(Box<Rules>),
    /// A schema for each element at the beginning.
    Each(Vec<Rules>),
}

/// The value of `additionalItems` or `additionalProperties`, for the remaining elements or
/// properties.
#[derive(Debug)]
pub(super) enum Additional {
    /// `true` or `false`.
    Allowed(bool),
    /// A schema for each of them.
    Rules(Box<Rules>),
}

/// The requirement of a property, if it exists.
#[derive(Debug)]
pub(super) enum Dependency {
    /// Properties that must exist too.
    Properties(Vec<String>),
    /// A schema for the whole object.
    Rules(Box<Rules>),
}
