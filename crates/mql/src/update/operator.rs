//! The registry of update operators, and the type of its rows.

use super::modifier::Modifier;
use super::{
    add_to_set, arithmetic, bit, current_date, extreme, pop, pull, push, rename, set, unset,
};
use crate::context::ParseContext;
use quire_document::Value;
use quire_error::Result;

/// An operator's operand: one field of the operator's document.
pub struct FieldOperand<'v> {
    /// The path to change, as the user wrote it.
    pub path: &'v str,
    /// The value of the operand.
    pub value: Value<'v>,
}

/// Parses an operand.
pub(super) type ParseOperand = fn(&FieldOperand<'_>, &ParseContext) -> Result<Box<dyn Modifier>>;

/// An update operator.
pub struct UpdateOperator {
    /// The name with the dollar sign.
    pub name: &'static str,
    /// The MongoDB version that introduced it.
    pub since: &'static str,
    /// One sentence for COMPATIBILITY.md.
    pub doc: &'static str,
    pub(super) parse: ParseOperand,
}

/// All update operators.
pub const OPERATORS: &[UpdateOperator] = &[
    add_to_set::ADD_TO_SET,
    bit::BIT,
    current_date::CURRENT_DATE,
    arithmetic::INC,
    extreme::MAX,
    extreme::MIN,
    arithmetic::MUL,
    pop::POP,
    pull::PULL,
    pull::PULL_ALL,
    push::PUSH,
    rename::RENAME,
    set::SET,
    set::SET_ON_INSERT,
    unset::UNSET,
];

/// Returns the operator with this name.
pub fn find_operator(name: &str) -> Option<&'static UpdateOperator> {
    OPERATORS.iter().find(|operator| operator.name == name)
}
