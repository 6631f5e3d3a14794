//! Accumulators: the functions that `$group` and window functions apply to the values of many
//! documents.
//!
//! Read in this order: this file (the interface of an accumulator), `registry` (all accumulators),
//! `spec` (one accumulator of a stage, parsed), `table` (its states for all groups), then one file
//! for each accumulator or family. A state belongs to one group. It can be saved and merged, so
//! that groups can be spilled and split.

mod add_to_set;
mod average;
mod count;
mod digest;
mod edge;
mod extreme;
mod fixed_state;
mod merge_objects;
mod n_values;
mod percentile;
mod push;
mod ranked;
mod registry;
mod spec;
mod std_dev;
mod sum;
mod table;

#[cfg(test)]
mod tests;

pub(crate) use n_values::evaluate_n;
pub(crate) use push::array_of;
pub use ranked::Ranking;
pub(crate) use registry::Parsed;
pub use registry::{ACCUMULATORS, Accumulator, find_accumulator};
pub use spec::{AccumulatorSpec, Argument, Picked};
pub(crate) use spec::{in_group, outside_group};
pub use table::{GroupRun, Table};

use crate::context::{Collator, EvalContext};
use quire_document::{Value, ValueBuf};
use quire_error::{Error, ErrorCode, Result};
use std::fmt;
use std::sync::Arc;

/// The most bytes that one accumulator may use for one group (146 ExceededMemoryLimit beyond it).
pub const MEMORY_BYTES_MAX: usize = 100 * 1024 * 1024;
/// The memory of all accumulators of one group, in bytes. If they have more, its document is mostly
/// larger than a document may be: a value that takes 8 bytes there takes 32 in an accumulator.
const GROUP_BYTES_MAX: usize = 2 * MEMORY_BYTES_MAX;

/// The state of one accumulator for one group: what it keeps of the values so far.
pub trait State: Send + fmt::Debug {
    /// Adds the value of one more document; `None` is a missing value.
    fn add(&mut self, value: Option<Value<'_>>) -> Result<()>;

    /// Adds the same value of several documents, like `add` for each of them.
    fn add_repeated(&mut self, value: Option<Value<'_>>, count: u32) -> Result<()> {
        (0..count).try_for_each(|_| self.add(value))
    }

    /// Adds doubles, like `add` for each of them.
    fn add_doubles(&mut self, numbers: &[f64]) -> Result<()> {
        numbers.iter().try_for_each(|number| self.add(Some(Value::Double(*number))))
    }

    /// Adds doubles to each of four states, like `add_doubles`. A sum waits for each addition before the next one, so
    /// that four sums take little longer than one.
    fn add_doubles_to_four(states: [&mut Self; 4], numbers: [&[f64]; 4]) -> Result<()>
    where
        Self: Sized,
    {
        states.into_iter().zip(numbers).try_for_each(|(state, numbers)| state.add_doubles(numbers))
    }

    /// Returns the result so far.
    fn result<'a>(&self, cx: &EvalContext<'a>) -> Result<Value<'a>>;

    /// Returns the approximate memory in bytes, for memory limits.
    fn size(&self) -> usize;

    /// Returns the state as a value that `merge` reads.
    fn save(&self) -> ValueBuf;

    /// Adds a saved state of the same accumulator. The values in it come after those of this state.
    fn merge(&mut self, saved: Value<'_>) -> Result<()>;

    /// Returns true if more values cannot change the result (for example `$first` after a value).
    fn is_complete(&self) -> bool {
        false
    }

    /// Returns true if the size never changes.
    fn is_fixed() -> bool
    where
        Self: Sized,
    {
        false
    }
}

/// The order of strings in an accumulator.
#[derive(Clone, Default)]
pub(crate) struct StringOrder(Option<Arc<dyn Collator>>);

impl StringOrder {
    /// Strings are compared by `collator`, or by their bytes without one.
    pub(crate) fn new(collator: Option<Arc<dyn Collator>>) -> Self {
        StringOrder(collator)
    }

    pub(crate) fn as_deref(&self) -> Option<&dyn Collator> {
        self.0.as_deref()
    }
}

impl fmt::Debug for StringOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "collation" } else { "bytes" })
    }
}

/// Fails with 146 ExceededMemoryLimit if an accumulator uses more bytes than it may for one group.
pub(crate) fn check_memory(name: &str, bytes: usize) -> Result<()> {
    if bytes > MEMORY_BYTES_MAX { Err(too_large(name, MEMORY_BYTES_MAX)) } else { Ok(()) }
}

/// Fails with 146 ExceededMemoryLimit if all accumulators of one group of the stage `name` together
/// use more bytes than they may.
pub fn check_states(name: &str, states: &[Box<dyn State>]) -> Result<()> {
    let bytes: usize = states.iter().map(|state| state.size()).sum();
    if bytes > GROUP_BYTES_MAX { Err(too_large(name, GROUP_BYTES_MAX)) } else { Ok(()) }
}

fn too_large(name: &str, max: usize) -> Error {
    let text = format!(
        "{name} used too much memory and spilling to disk cannot reduce memory consumption any further. Memory limit: {max} bytes"
    );
    Error::new(ErrorCode::ExceededMemoryLimit, text)
}

/// Returns an array of these values, built in the context's arena.
pub(crate) fn array_result<'a, 'v>(
    values: impl Iterator<Item = Value<'v>>,
    cx: &EvalContext<'a>,
) -> Result<Value<'a>> {
    let array = cx.array(|writer| {
        values.for_each(|value| {
            writer.push(value);
        });
        Ok(())
    })?;
    Ok(Value::Array(array))
}

/// Returns the elements of a saved array; none for any other value.
pub(crate) fn elements(saved: Value<'_>) -> impl Iterator<Item = Value<'_>> {
    saved.as_array().into_iter().flat_map(|array| array.iter())
}
