//! `$first`, `$last`, `$firstN`, `$lastN`, `$push`, `$concatArrays`, `$shift`: functions that
//! return values of the window unchanged.

use super::contents::{Contents, Seen};
use crate::accumulator::array_of;
use crate::context::EvalContext;
use quire_document::{Value, ValueBuf};
use quire_error::Result;

/// The values of a window that a function returns.
#[derive(Debug)]
pub(super) enum Edge {
    /// The first value; null if it is missing or the window is empty.
    First,
    /// The last value; null if it is missing or the window is empty.
    Last,
    /// The first n values, with null for missing ones.
    FirstN(usize),
    /// The last n values, with null for missing ones.
    LastN(usize),
    /// All values that are not missing.
    All,
    /// The elements of all values, which must be arrays.
    Elements,
    /// The only value, even if it is missing; this value if the window is empty.
    Only(ValueBuf),
}

/// Returns null for a missing value and for an empty window.
fn or_null(value: Option<Option<Value<'_>>>) -> Value<'_> {
    value.flatten().unwrap_or(Value::Null)
}

impl Contents for Edge {
    fn add(&mut self, value: Option<Value<'_>>) -> Result<()> {
        match (self, value) {
            (Edge::Elements, Some(value)) => array_of("$concatArrays", value).map(|_| ()),
            _ => Ok(()),
        }
    }

    fn remove(&mut self, _: Option<Value<'_>>) -> Result<()> {
        Ok(())
    }

    fn result<'a>(&self, seen: Seen<'_>, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
        let values = seen.window;
        let copied = |value| cx.copy(value).map(Some);
        match self {
            Edge::First => copied(or_null(values.first())),
            Edge::Last => copied(or_null(values.last())),
            Edge::Only(default) => match values.first() {
                Some(value) => value.map(|value| cx.copy(value)).transpose(),
                None => copied(default.as_value()),
            },
            Edge::FirstN(n) => {
                let first = values.iter().take(*n).map(|value| value.unwrap_or(Value::Null));
                crate::accumulator::array_result(first, cx).map(Some)
            }
            Edge::LastN(n) => {
                let rest = values.len().saturating_sub(*n);
                let last = values.iter().skip(rest).map(|value| value.unwrap_or(Value::Null));
                crate::accumulator::array_result(last, cx).map(Some)
            }
            Edge::All => crate::accumulator::array_result(values.iter().flatten(), cx).map(Some),
            Edge::Elements => {
                let arrays = values.iter().flatten().filter_map(|value| value.as_array());
                crate::accumulator::array_result(arrays.flat_map(|array| array.iter()), cx)
                    .map(Some)
            }
        }
    }

    fn size(&self) -> usize {
        size_of::<Self>()
    }
}
