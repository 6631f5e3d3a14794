//! The tree of a schema: one node for each nested schema, one field for each keyword.

use super::encrypt::Encrypted;
use crate::filter::TypeSet;
use crate::regex::Regex;
use quire_document::{DocBuf, ValueBuf};

/// One schema: keywords that a value must comply with, each if it applies to the value's type.
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
    /// The schema as it was written: what reports quote.
    pub(super) source: DocBuf,
}

/// `minimum` or `maximum`.
#[derive(Debug)]
pub(super) struct Bound {
    pub(super) value: ValueBuf,
    pub(super) exclusive: bool,
}

/// What `items` says of the elements of an array.
#[derive(Debug)]
pub(super) enum Items {
    /// One schema for all elements.
    All(Box<Rules>),
    /// A schema for each of the first elements.
    Each(Vec<Rules>),
}

/// What `additionalItems` or `additionalProperties` says of the rest.
#[derive(Debug)]
pub(super) enum Additional {
    /// `true` or `false`.
    Allowed(bool),
    /// A schema for each of them.
    Rules(Box<Rules>),
}

/// What the presence of a property demands.
#[derive(Debug)]
pub(super) enum Dependency {
    /// These properties must be there too.
    Properties(Vec<String>),
    /// A schema for the whole object.
    Rules(Box<Rules>),
}
