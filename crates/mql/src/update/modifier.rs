//! What an update operator is: how it changes a value that exists, and what it does where none is.

use super::apply::Run;
use quire_document::{Element, Value};
use quire_error::Result;
use std::fmt;

/// What became of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// It stays as it is; nothing was written.
    Kept,
    /// Its successor (type, name and value) was written.
    Written,
    /// It goes away; nothing was written.
    Removed,
}

/// What an operator does at a path that leads nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    /// It creates the path; where that can't be, it fails.
    Create,
    /// Nothing, but it fails where the path could not be created.
    CheckPath,
    /// It does nothing.
    Ignore,
}

/// One update operator with its operand.
pub(super) trait Modifier: fmt::Debug + Send + Sync {
    /// Changes an element that exists. Writes its successor under the same name to `out`.
    fn update(
        &self,
        run: &Run<'_>,
        in_array: bool,
        element: Element<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Effect>;

    /// What it does at a path that leads nowhere.
    fn missing(&self, run: &Run<'_>) -> Missing;

    /// Writes a new element; called only where `missing` answers `Create`.
    fn create(&self, run: &Run<'_>, name: &[u8], out: &mut Vec<u8>) -> Result<()>;

    /// Returns true if it only adds elements to the end of an array that exists.
    fn appends(&self) -> bool {
        false
    }

    /// Levels of nesting that its value adds below its path.
    fn depth(&self) -> usize {
        0
    }
}

/// Levels of documents and arrays below a value: 0 for a scalar or something empty.
pub(super) fn depth(value: Value<'_>) -> usize {
    let fields = match value {
        Value::Document(doc) => doc,
        Value::Array(array) => array.as_doc(),
        _ => return 0,
    };
    fields.iter().map(|element| 1 + depth(element.value())).max().unwrap_or(0)
}
