//! Ends work at places that cannot return an error: while two long strings are compared under a
//! collation, or while the sort key of one is made.
//!
//! Sorts, searches, hash tables and sorted maps call these places and need an answer of them. An
//! operation that must end within a string therefore unwinds its stack, up to the function that
//! called [`interruptible`] or [`stoppable`] and returns the error from there. No result of the
//! unwound work is used. The library `salsa` cancels the queries of rust-analyzer in the same way.

use super::InterruptCheck;
use super::work::is_left;
use quire_error::{Error, Result};
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

thread_local! {
    /// The interrupt of the innermost `interruptible` of this thread.
    static CURRENT: RefCell<Option<Arc<dyn InterruptCheck>>> = const { RefCell::new(None) };
}

/// The payload of the unwinding.
struct Stopped(Error);

/// Restores the interrupt of the outer `interruptible`.
struct Scope(Option<Arc<dyn InterruptCheck>>);

impl Drop for Scope {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}

/// Runs `work`, which ends within a long string under a collation if `interrupt` fails. Then
/// returns the error of `interrupt`. `work` should own what it changes, or its caller should drop
/// it after an error.
pub fn interruptible<T>(
    interrupt: &Arc<dyn InterruptCheck>,
    work: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let _scope = Scope(CURRENT.replace(Some(Arc::clone(interrupt))));
    stoppable(work)
}

/// Returns the interrupt of the innermost [`interruptible`] of this thread.
pub fn current_interrupt() -> Option<Arc<dyn InterruptCheck>> {
    CURRENT.with_borrow(Clone::clone)
}

/// Runs a part of the work of [`interruptible`]. If it ends within a long string, returns the error
/// here, so that the caller handles it like every other.
#[inline]
pub fn stoppable<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| {
        let stopped = payload.downcast::<Stopped>().unwrap_or_else(|panic| resume_unwind(panic));
        Err(stopped.0)
    })
}

/// Counts `units` of work, as `Shared::work` does, for the interrupt of [`interruptible`]. For work
/// that has no `Shared`.
#[inline]
pub fn count_work(units: u32) -> Result<()> {
    if is_left(units) { Ok(()) } else { look() }
}

/// Counts `units` of work, as [`count_work`] does. Unwinds to [`interruptible`] if the operation
/// must end. Does nothing outside of it, while the thread unwinds, and in a program that cannot
/// unwind.
#[inline]
pub(crate) fn work_or_unwind(units: u32) {
    if !is_left(units) && cfg!(panic = "unwind") && !std::thread::panicking() {
        look().unwrap_or_else(|error| resume_unwind(Box::new(Stopped(error))));
    }
}

#[cold]
#[inline(never)]
fn look() -> Result<()> {
    current_interrupt().map_or(Ok(()), |interrupt| interrupt.check())
}

#[cfg(test)]
mod tests {
    use super::super::work::LOOK_UNITS;
    use super::*;
    use quire_error::ErrorCode;

    fn killed() -> Arc<dyn InterruptCheck> {
        Arc::new(|| Err(Error::new(ErrorCode::Interrupted, "killed")))
    }

    #[test]
    fn work_ends_in_a_comparison_and_only_within_its_scope() {
        let mut items = [2, 1];
        let ended = interruptible(&killed(), || {
            items.sort_by(|a, b| {
                work_or_unwind(LOOK_UNITS + 1);
                a.cmp(b)
            });
            Ok(())
        });
        assert_eq!(ended.unwrap_err().code(), ErrorCode::Interrupted);
        work_or_unwind(LOOK_UNITS + 1);
        assert!(count_work(LOOK_UNITS + 1).is_ok());
    }

    #[test]
    fn an_inner_part_returns_the_error_itself() {
        let part = || {
            work_or_unwind(LOOK_UNITS + 1);
            Ok(())
        };
        let seen = interruptible(&killed(), || {
            Ok(stoppable(part).is_err() && count_work(u32::MAX).is_err())
        });
        assert!(seen.unwrap());
    }

    #[test]
    fn a_panic_stays_a_panic_and_restores_the_outer_scope() {
        let panics = || interruptible(&killed(), || -> Result<()> { resume_unwind(Box::new(7)) });
        assert!(catch_unwind(panics).unwrap_err().is::<i32>());
        assert!(count_work(LOOK_UNITS + 1).is_ok());
    }
}
