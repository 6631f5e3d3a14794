//! The interface of an update operator: how it changes an existing value, and what it does if there
//! is none.

use super::apply::Run;
use quire_document::{Element, Value};
use quire_error::Result;
use std::fmt;

/// The result of applying an operator to an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// The element is unchanged; nothing was written.
    Kept,
    /// The new element (type, name and value) was written.
    Written,
    /// The element is removed; nothing was written.
    Removed,
}

/// The effect of an operator on a missing path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    /// It creates the path, or fails if that is impossible.
    Create,
    /// It changes nothing, but fails if the path could not be created.
    CheckPath,
    /// It has no effect.
    Ignore,
}

/// An update operator with its operand.
pub(super) trait Modifier: fmt::Debug + Send + Sync {
    /// Changes an existing element. Writes the new element, with the same name, to `out`.
    fn update(
        &self,
        run: &Run<'_>,
        in_array: bool,
        element: Element<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Effect>;

    /// Returns the effect on a missing path.
    fn missing(&self, run: &Run<'_>) -> Missing;

    /// Writes a new element. Called only if `missing` returned `Create`.
    fn create(&self, run: &Run<'_>, name: &[u8], out: &mut Vec<u8>) -> Result<()>;

    /// Returns true if the operator only adds elements to the end of an existing array.
    fn appends(&self) -> bool {
        false
    }

    /// Returns the levels of nesting that its value adds below its path.
    fn depth(&self) -> usize {
        0
    }
}

/// Returns the levels of documents and arrays in a value: 0 for a scalar or an empty value.
pub(super) fn depth(value: Value<'_>) -> usize {
    let fields = match value {
        Value::Document(doc) => doc,
        Value::Array(array) => array.as_doc(),
        _ => return 0,
    };
    fields.iter().map(|element| 1 + depth(element.value())).max().unwrap_or(0)
}
