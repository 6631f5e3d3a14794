//! A counter of work, with which an operation checks its interrupt even within one document.
//!
//! Reading a clock would cost more than most of the counted operations. A unit is about ten
//! nanoseconds: one element of an array, or 64 copied bytes.

use super::{ParseContext, Shared};
use crate::checked_sort;
pub(crate) use crate::checked_sort::search_units;
use quire_document::memory::{self, Refused};
use quire_document::{Value, limits};
use quire_error::{Error, ErrorCode, Result};
use std::cell::Cell;
use std::cmp::Ordering;

/// The units between two checks of the interrupt.
pub(crate) const LOOK_UNITS: u32 = 1 << 16;

/// The units for parsing, optimising and dropping one part of a request.
const PART_UNITS: u32 = 64;

/// The number of parts between two checks of their number and their memory.
const PARTS_AT_ONCE: u32 = 1000;

/// An estimate of the bytes of a compiled part, with the copies of it in a plan.
const PART_BYTES: usize = 1024;

/// The number of elements that a loop writes between two checks of its result's size and the
/// interrupt.
pub(crate) const ELEMENTS_AT_ONCE: usize = 4096;

/// The number of elements that are sorted between two checks.
pub(crate) const SORTED_AT_ONCE: usize = 1 << 14;

thread_local! {
    /// The units that this thread may still use before the next check.
    static LEFT: Cell<u32> = const { Cell::new(LOOK_UNITS) };
}

/// Subtracts `units` from those before the next check. Returns false and resets the counter if a
/// check is due.
#[inline]
pub(super) fn is_left(units: u32) -> bool {
    let left = LEFT.get().checked_sub(units);
    LEFT.set(left.unwrap_or(LOOK_UNITS));
    left.is_some()
}

impl Shared {
    /// Counts `units` of work. Every `LOOK_UNITS` it checks whether the operation may continue:
    /// fails if it was killed, if its deadline passed, or if memory was refused.
    #[inline]
    pub fn work(&self, units: u32) -> Result<()> {
        if is_left(units) { Ok(()) } else { self.look() }
    }

    #[cold]
    #[inline(never)]
    fn look(&self) -> Result<()> {
        if let Some(refused) = memory::refused() {
            return Err(self.refused(refused));
        }
        self.check_interrupt()
    }

    /// Returns the error of an evaluation whose memory was refused.
    #[cold]
    pub(crate) fn refused(&self, refused: Refused) -> Error {
        let text = match refused {
            Refused::Evaluation => format!(
                "Expression used too much memory. Memory limit: {} bytes",
                self.memory_bytes_max
            ),
            Refused::Server => memory::exhausted(),
        };
        Error::new(ErrorCode::ExceededMemoryLimit, text)
    }
}

impl ParseContext {
    /// Counts one part of a request: an operand, a condition, a field or a stage, which is compiled
    /// on its own. Fails with 2 BadValue beyond `limits::REQUEST_PARTS_MAX`, with 146 if there is
    /// no memory, and if the operation was killed or its deadline passed.
    #[inline]
    pub(crate) fn part(&self) -> Result<()> {
        let count = self.folding.count_part();
        if count % PARTS_AT_ONCE == PARTS_AT_ONCE - 1 || count >= limits::REQUEST_PARTS_MAX {
            charge_parts(count)?;
        }
        self.work()
    }

    /// Counts the parsing of a value that is kept as it is. Fails if the operation was killed or
    /// its deadline passed.
    #[inline]
    pub(crate) fn work(&self) -> Result<()> {
        self.work_units(PART_UNITS)
    }

    /// Counts the parsing of `count` values that are kept as they are.
    pub(crate) fn work_on(&self, count: usize) -> Result<()> {
        self.work_units(u32::try_from(count).unwrap_or(u32::MAX).saturating_mul(PART_UNITS))
    }

    /// Counts a step of `units`.
    #[inline]
    pub(crate) fn work_units(&self, units: u32) -> Result<()> {
        if is_left(units) { Ok(()) } else { self.look() }
    }

    #[cold]
    #[inline(never)]
    fn look(&self) -> Result<()> {
        self.interrupt.as_ref().map_or(Ok(()), |interrupt| interrupt.check())
    }
}

/// Checks the number of a request's parts and reserves memory for them.
#[cold]
fn charge_parts(count: u32) -> Result<()> {
    if count >= limits::REQUEST_PARTS_MAX {
        let max = limits::REQUEST_PARTS_MAX;
        let text = format!("a request may have at most {max} conditions, operands and fields");
        return Err(Error::bad_value(text));
    }
    memory::reserve(count as usize * PART_BYTES)
        .map_err(|_| Error::new(ErrorCode::ExceededMemoryLimit, memory::exhausted()))
}

/// Returns the units for reading `bytes` of BSON.
pub fn units(bytes: usize) -> u32 {
    u32::try_from(bytes / 64).unwrap_or(u32::MAX).saturating_add(1)
}

/// Returns the bytes of a value that an operator may read.
#[inline]
pub(crate) fn bytes_of(value: Value<'_>) -> usize {
    match value {
        Value::Document(doc) => doc.as_bytes().len(),
        Value::Array(array) => array.as_bytes().len(),
        Value::String(text) | Value::Code(text) | Value::Symbol(text) => text.len(),
        Value::Binary(binary) => binary.bytes.len(),
        _ => 0,
    }
}

/// Sorts like `sort_by` of a slice (stable), but with checks of the interrupt.
pub fn sort_by<T: Copy>(
    items: &mut Vec<T>,
    shared: &Shared,
    order: impl Fn(&T, &T) -> Ordering,
) -> Result<()> {
    checked_sort::sort(items, SORTED_AT_ONCE, &|units| shared.work(units), order)
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_document::testing::Generator;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering as AtomicOrdering};

    #[test]
    fn sorting_in_runs_is_stable_and_complete() {
        let mut random = Generator::new(1);
        for count in [0, 5, SORTED_AT_ONCE, SORTED_AT_ONCE + 1, 5 * SORTED_AT_ONCE + 77] {
            let mut items: Vec<(u64, usize)> =
                (0..count).map(|at| (random.below(99), at)).collect();
            let mut wanted = items.clone();
            wanted.sort_by_key(|(key, _)| *key);
            sort_by(&mut items, &Shared::default(), |a, b| a.0.cmp(&b.0)).unwrap();
            assert!(items == wanted, "{count}");
        }
    }

    /// 250 sorts of 5,000 values in one expression took an eighth of a second without a check.
    #[test]
    fn short_sorts_count_as_work() {
        let (looks, mut random) = (Arc::new(AtomicU32::new(0)), Generator::new(2));
        let seen = Arc::clone(&looks);
        let shared = Shared::default().with_interrupt(Arc::new(move || {
            seen.fetch_add(1, AtomicOrdering::Relaxed);
            Ok(())
        }));
        for _ in 0..100 {
            let mut items: Vec<u64> = (0..1000).map(|_| random.below(1 << 20)).collect();
            sort_by(&mut items, &shared, u64::cmp).unwrap();
        }
        // A thousand values take ten thousand comparisons, so six sorts fit between two checks.
        assert!(looks.load(AtomicOrdering::Relaxed) >= 12);
    }

    #[test]
    fn a_killed_sort_ends() {
        let killed = || Err(Error::new(ErrorCode::Interrupted, "killed"));
        let shared = Shared::default().with_interrupt(Arc::new(killed));
        let mut items: Vec<usize> = (0..3 * SORTED_AT_ONCE).rev().collect();
        assert!(sort_by(&mut items, &shared, Ord::cmp).is_err());
    }
}
