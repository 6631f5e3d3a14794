//! `$first`, `$last`, `$firstN`, `$lastN`, `$push`, `$concatArrays`, `$shift`: functions that read the
//! values of the window as they are.

use super::contents::{Contents, Seen};
use crate::accumulator::array_of;
use crate::context::EvalContext;
use quire_document::{Value, ValueBuf};
use quire_error::Result;

/// What is read of the values of a window.
#[derive(Debug)]
pub(super) enum Edge {
    /// The first; null for an empty window or a missing value.
    First,
    /// The last; null for an empty window or a missing value.
    Last,
    /// The first n, null for missing ones.
    FirstN(usize),
    /// The last n, null for missing ones.
    LastN(usize),
    /// All that are not missing.
    All,
    /// The elements of all, which are arrays.
    Elements,
    /// The only one, also if it is missing; this value for an empty window.
    Only(ValueBuf),
}

/// Null for a missing value and for no value at all.
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
