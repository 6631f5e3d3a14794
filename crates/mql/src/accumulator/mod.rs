//! Accumulators: what `$group` and window functions compute from the values of many documents.
//!
//! Reading order: this file (what an accumulator is), `registry` (all of them), `spec` (one
//! accumulator of a stage, parsed), `table` (its states for all groups), then one file an
//! accumulator or close family. A state lives for one group; it can be saved and merged, so that
//! groups may be spilled and split.

mod add_to_set;
mod average;
mod count;
mod digest;
mod edge;
mod extreme;
mod merge_objects;
mod n_values;
mod percentile;
mod push;
mod ranked;
mod registry;
mod running;
mod spec;
mod std_dev;
mod sum;
mod summation;
mod table;

#[cfg(test)]
mod tests;

pub use average::Average;
pub(crate) use extreme::replaces;
pub(crate) use n_values::evaluate_n;
pub(crate) use percentile::to_f64;
pub use percentile::{Quantiles, quantile};
pub(crate) use push::array_of;
pub use ranked::Ranking;
pub(crate) use registry::Parsed;
pub use registry::{ACCUMULATORS, Accumulator, find_accumulator};
pub use spec::{AccumulatorSpec, Argument};
pub(crate) use spec::{in_group, outside_group};
pub use std_dev::Deviation;
pub use sum::Sum;
pub use table::Table;

use crate::context::{Collator, EvalContext};
use quire_document::{Value, ValueBuf};
use quire_error::{Error, ErrorCode, Result};
use std::fmt;
use std::sync::Arc;

/// Bytes that one accumulator of one group may hold before it answers 146.
pub const MEMORY_BYTES_MAX: usize = 100 * 1024 * 1024;

/// The values that one accumulator has seen for one group.
pub trait State: Send + fmt::Debug {
    /// Takes the value of one more document; `None` is missing.
    fn add(&mut self, value: Option<Value<'_>>) -> Result<()>;

    /// The result so far.
    fn result<'a>(&self, cx: &EvalContext<'a>) -> Result<Value<'a>>;

    /// Bytes that it holds, roughly: what memory limits count.
    fn size(&self) -> usize;

    /// What it knows, for `merge`.
    fn save(&self) -> ValueBuf;

    /// Adds what a state of the same accumulator has saved; that state's values come after this one's.
    fn merge(&mut self, saved: Value<'_>) -> Result<()>;

    /// True if more values would change nothing (`$first` with its value).
    fn is_complete(&self) -> bool {
        false
    }

    /// True if its size never changes.
    fn is_fixed() -> bool
    where
        Self: Sized,
    {
        false
    }
}

/// How strings compare for an accumulator.
#[derive(Clone, Default)]
pub(crate) struct Collation(Option<Arc<dyn Collator>>);

impl Collation {
    /// Strings compare by `collator`; by their bytes if there is none.
    pub(crate) fn new(collator: Option<Arc<dyn Collator>>) -> Self {
        Collation(collator)
    }

    pub(crate) fn as_deref(&self) -> Option<&dyn Collator> {
        self.0.as_deref()
    }
}

impl fmt::Debug for Collation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "collation" } else { "bytes" })
    }
}

/// Refuses to hold more than a group's accumulator may.
pub(crate) fn check_memory(name: &str, bytes: usize) -> Result<()> {
    if bytes > MEMORY_BYTES_MAX {
        let message = format!(
            "{name} used too much memory and spilling to disk cannot reduce memory consumption any further. Memory limit: {MEMORY_BYTES_MAX} bytes"
        );
        return Err(Error::new(ErrorCode::ExceededMemoryLimit, message));
    }
    Ok(())
}

/// The array of these values, made in the context's arena.
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

/// The elements of a saved array; nothing for another value.
pub(crate) fn elements(saved: Value<'_>) -> impl Iterator<Item = Value<'_>> {
    saved.as_array().into_iter().flat_map(|array| array.iter())
}
