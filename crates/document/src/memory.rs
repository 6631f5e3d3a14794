//! Limits on the memory of one evaluation and of a whole server, checked before memory is allocated.
//!
//! Documents under construction grow in buffers. [`limited`] bounds the growth of a thread's
//! buffers: writers ask before a buffer grows, which costs nothing while it has room. The memory of
//! a request beyond `FREE_BYTES`, and what operators, cursors and messages hold ([`Charge`]), is
//! taken from the [`Pool`] of the server. A request that needs more than the pool has left fails,
//! and the others continue (docs/adr/0030-one-pool-of-memory.md).

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// The bytes that the evaluations of a thread may use without the pool.
const FREE_BYTES: usize = 1 << 20;

/// The step in bytes in which a thread takes memory from the pool.
const STEP_BYTES: usize = 1 << 20;

/// The bytes that [`Charge::cover`] leaves uncharged, and the step in which it grows.
const COVER_BYTES: usize = 64 << 10;

/// The memory that the requests of one server may use together.
#[derive(Debug)]
pub struct Pool {
    max: usize,
    used: AtomicUsize,
    most: AtomicUsize,
    refused: AtomicU64,
    /// True after more than half was in use, until `look` finds less than a quarter in use.
    is_scarce: AtomicBool,
    /// Called with `is_scarce` when that changes.
    on_scarcity: OnceLock<fn(bool)>,
}

impl Pool {
    /// Returns a pool of `max` bytes.
    pub fn new(max: usize) -> Arc<Pool> {
        Arc::new(Pool {
            max,
            used: AtomicUsize::new(0),
            most: AtomicUsize::new(0),
            refused: AtomicU64::new(0),
            is_scarce: AtomicBool::new(false),
            on_scarcity: OnceLock::new(),
        })
    }

    /// Calls `tell` with true when more than half of the memory is in use, and with false when a
    /// later [`look`](Self::look) finds less than a quarter in use. The first call sets it.
    pub fn on_scarcity(&self, tell: fn(bool)) {
        let _ = self.on_scarcity.set(tell);
    }

    /// Ends the scarcity if less than a quarter of the memory is in use. The server calls it once a
    /// second.
    pub fn look(&self) {
        if self.used() < self.max / 4 && self.is_scarce.swap(false, Ordering::Relaxed) {
            self.tell_scarcity(false);
        }
    }

    #[cold]
    fn become_scarce(&self) {
        if !self.is_scarce.swap(true, Ordering::Relaxed) {
            self.tell_scarcity(true);
        }
    }

    fn tell_scarcity(&self, is_scarce: bool) {
        if let Some(tell) = self.on_scarcity.get() {
            tell(is_scarce);
        }
    }

    /// Returns the bytes that the requests may use together; `usize::MAX` without a limit.
    pub fn max(&self) -> usize {
        self.max
    }

    /// Returns the bytes that requests, cursors and messages use now.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Returns the most bytes that were in use at a time.
    pub fn most_used(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }

    /// Returns how often memory was refused.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Runs `work`, whose memory is taken from this pool on this thread. Inside another `within` of
    /// the same pool it costs next to nothing.
    pub fn within<T>(self: &Arc<Self>, work: impl FnOnce() -> T) -> T {
        let is_current = CURRENT
            .with_borrow(|current| current.as_ref().is_some_and(|pool| Arc::ptr_eq(pool, self)));
        let _outer = (!is_current).then(|| Outer(CURRENT.replace(Some(Arc::clone(self)))));
        work()
    }

    fn take(&self, bytes: usize) -> Result<(), Refused> {
        let fits = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= self.max);
        match self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits) {
            Ok(used) => {
                self.most.fetch_max(used + bytes, Ordering::Relaxed);
                if used + bytes > self.max / 2 {
                    self.become_scarce();
                }
                Ok(())
            }
            Err(_) => {
                self.refused.fetch_add(1, Ordering::Relaxed);
                self.become_scarce();
                Err(Refused::Server)
            }
        }
    }

    fn give(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Restores the thread's pool at the end of `within`, also after a panic.
struct Outer(Option<Arc<Pool>>);

impl Drop for Outer {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}

/// Returns the pool from which this thread takes memory, for the threads that help it; `None` if its
/// memory is not limited.
pub fn current_pool() -> Option<Arc<Pool>> {
    CURRENT.with_borrow(Clone::clone)
}

/// Returns the text of the error for [`Refused::Server`].
pub fn exhausted() -> String {
    let max = current_pool().map_or(usize::MAX, |pool| pool.max);
    format!("The requests of this server together use too much memory. Memory limit: {max} bytes")
}

/// The reason why memory was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The evaluation has reached its limit.
    Evaluation,
    /// The pool of the server is exhausted.
    Server,
}

/// A number of bytes taken from a pool, and returned when dropped. The pool is that of the thread on
/// which the charge first grew.
#[derive(Debug, Default)]
pub struct Charge {
    pool: Option<Arc<Pool>>,
    bytes: usize,
}

impl Charge {
    /// Takes `bytes` from the pool. Fails with `Refused::Server` if it has less left.
    pub fn take(bytes: usize) -> Result<Charge, Refused> {
        let mut charge = Charge::default();
        charge.resize(bytes)?;
        Ok(charge)
    }

    /// Changes the charge to `bytes`. On an error it keeps its size.
    pub fn resize(&mut self, bytes: usize) -> Result<(), Refused> {
        if self.pool.is_none() && bytes > 0 {
            self.pool = current_pool();
        }
        if let Some(pool) = &self.pool {
            match bytes.checked_sub(self.bytes) {
                Some(more) => pool.take(more)?,
                None => pool.give(self.bytes - bytes),
            }
        }
        self.bytes = bytes;
        Ok(())
    }

    /// Makes the charge cover `bytes`, in steps of 64 KiB, or of 1 MiB for more than that. The first
    /// 64 KiB are free, so that small requests never touch the pool. A charge that is more than
    /// twice too large shrinks, and one for no bytes is returned. On an error it keeps its size.
    #[inline]
    pub fn cover(&mut self, bytes: usize) -> Result<(), Refused> {
        let is_enough = bytes <= self.bytes.max(COVER_BYTES);
        let is_little = self.bytes / 2 <= bytes.max(STEP_BYTES) && (bytes > 0 || self.bytes == 0);
        if is_enough && is_little {
            return Ok(());
        }
        self.cover_by_steps(bytes)
    }

    #[cold]
    fn cover_by_steps(&mut self, bytes: usize) -> Result<(), Refused> {
        let step = if bytes < STEP_BYTES { COVER_BYTES } else { STEP_BYTES };
        match bytes <= COVER_BYTES {
            true => self.resize(0),
            false => self.resize(bytes.div_ceil(step).saturating_mul(step)),
        }
    }

    /// Returns the bytes of the charge.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        if let Some(pool) = &self.pool {
            pool.give(self.bytes);
        }
    }
}

thread_local! {
    /// The pool of the server whose request this thread runs.
    static CURRENT: RefCell<Option<Arc<Pool>>> = const { RefCell::new(None) };
    /// The bytes by which buffers may still grow inside `limited`; `usize::MAX` outside.
    static LEFT: Cell<usize> = const { Cell::new(usize::MAX) };
    /// The reason why a buffer was not allowed to grow since the innermost `limited` began.
    static REFUSED: Cell<Option<Refused>> = const { Cell::new(None) };
    /// The bytes by which buffers have grown inside the active `limited` calls.
    static GROWN: Cell<usize> = const { Cell::new(0) };
    /// The bytes that this thread has taken from the pool since the last `release`.
    static TAKEN: Cell<Charge> = const { Cell::new(Charge { pool: None, bytes: 0 }) };
}

/// Takes as much from the pool as this thread needs to use `bytes` in addition to its buffers. The
/// thread keeps it until `release`.
pub fn reserve(bytes: usize) -> Result<(), Refused> {
    hold(bytes.saturating_add(GROWN.get()))
}

fn hold(bytes: usize) -> Result<(), Refused> {
    if bytes <= FREE_BYTES {
        return Ok(());
    }
    let mut taken = TAKEN.take();
    let steps = bytes.div_ceil(STEP_BYTES).saturating_mul(STEP_BYTES);
    let result = if steps > taken.bytes() { taken.resize(steps) } else { Ok(()) };
    TAKEN.set(taken);
    result
}

/// Returns what this thread has reserved beyond the `bytes` that it still uses.
pub fn settle(bytes: usize) {
    let used = GROWN.get().saturating_add(bytes);
    let kept = if used <= FREE_BYTES { 0 } else { used.div_ceil(STEP_BYTES) * STEP_BYTES };
    let mut taken = TAKEN.take();
    if taken.bytes() > kept {
        // A smaller charge is never refused.
        let _ = taken.resize(kept);
    }
    TAKEN.set(taken);
}

/// Returns this thread's memory to the pool. Called at the end of each request.
pub fn release() {
    drop(TAKEN.take());
}

/// Restores the thread's state at the end of `limited`, also after a panic.
struct Scope {
    left: usize,
    refused: Option<Refused>,
    grown: usize,
}

impl Drop for Scope {
    fn drop(&mut self) {
        LEFT.set(self.left);
        REFUSED.set(self.refused);
        GROWN.set(self.grown);
    }
}

/// Runs `work` with a limit on the growth of this thread's buffers: `bytes` for all of them
/// together, or the rest of an outer limit if that is less. A writer whose buffer may not grow
/// leaves out what it would write, so that the buffer contains valid BSON. `limited` then returns
/// the reason as its error.
#[inline]
pub fn limited<T>(bytes: usize, work: impl FnOnce() -> T) -> Result<T, Refused> {
    let scope = Scope {
        left: LEFT.replace(bytes.min(LEFT.get())),
        refused: REFUSED.take(),
        grown: GROWN.get(),
    };
    let result = work();
    let refused = REFUSED.get();
    drop(scope);
    refused.map_or(Ok(result), Err)
}

/// Returns why a buffer was not allowed to grow since the innermost `limited` began. A loop that
/// fills a buffer should then end, because everything that it writes is left out.
#[inline]
pub fn refused() -> Option<Refused> {
    REFUSED.get()
}

/// Runs `work` without the limits of `limited`, for buffers with another owner.
pub fn unlimited<T>(work: impl FnOnce() -> T) -> T {
    let scope =
        Scope { left: LEFT.replace(usize::MAX), refused: REFUSED.get(), grown: GROWN.get() };
    let result = work();
    drop(scope);
    result
}

/// Reserves room for `more` bytes in a buffer. Returns false if the memory limit does not allow it.
#[inline]
pub(crate) fn room(buffer: &mut Vec<u8>, more: usize) -> bool {
    buffer.capacity() - buffer.len() >= more || grow(buffer, more)
}

/// Reserves room for `more` bytes that begin or end a document. They are written even beyond the
/// memory limit. Then the buffer grows by exactly these bytes, so that the next value finds no
/// room.
#[inline]
pub(crate) fn force_room(buffer: &mut Vec<u8>, more: usize) {
    if !room(buffer, more) {
        buffer.reserve_exact(more);
    }
}

#[cold]
#[inline(never)]
fn grow(buffer: &mut Vec<u8>, more: usize) -> bool {
    let left = LEFT.get();
    if left == usize::MAX {
        buffer.reserve(more);
        return true;
    }
    let (length, capacity) = (buffer.len(), buffer.capacity());
    let needed = length + more;
    let wanted = needed.max(capacity.saturating_mul(2)).max(64).min(capacity.saturating_add(left));
    if wanted < needed {
        REFUSED.set(Some(Refused::Evaluation));
        return false;
    }
    let by = wanted - capacity;
    if let Err(refused) = hold(GROWN.get().saturating_add(by)) {
        REFUSED.set(Some(refused));
        return false;
    }
    LEFT.set(left - by);
    GROWN.set(GROWN.get() + by);
    buffer.reserve_exact(wanted - length);
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ArrayWriter, Doc, DocWriter};

    #[test]
    fn a_pool_tells_when_memory_becomes_scarce_and_when_it_is_no_longer() {
        static TOLD: AtomicUsize = AtomicUsize::new(0);
        let told = || TOLD.load(Ordering::Relaxed);
        let pool = Pool::new(100);
        pool.on_scarcity(|is_scarce| {
            TOLD.fetch_add(if is_scarce { 1 } else { 100 }, Ordering::Relaxed);
        });
        assert_eq!((pool.take(50), told()), (Ok(()), 0));
        assert_eq!((pool.take(1), told()), (Ok(()), 1));
        assert_eq!((pool.take(60), told()), (Err(Refused::Server), 1));
        pool.give(26);
        pool.look();
        assert_eq!(told(), 1);
        pool.give(1);
        pool.look();
        pool.look();
        assert_eq!(told(), 101);
        assert_eq!((pool.take(80), told()), (Err(Refused::Server), 102));
    }

    #[test]
    fn a_pool_refuses_what_it_does_not_have() {
        let pool = Pool::new(100);
        assert_eq!(pool.take(60), Ok(()));
        assert_eq!(pool.take(41), Err(Refused::Server));
        assert_eq!(pool.take(40), Ok(()));
        pool.give(60);
        assert_eq!(pool.take(usize::MAX), Err(Refused::Server));
        assert_eq!(pool.take(60), Ok(()));
        assert_eq!((pool.used(), pool.most_used(), pool.refused()), (100, 100, 2));
    }

    #[test]
    fn the_charges_of_a_thread_are_on_the_pool_around_them() {
        let (outer, inner) = (Pool::new(10_000), Pool::new(1000));
        let kept = outer.within(|| {
            let kept = inner.within(|| Charge::take(600));
            assert_eq!(inner.within(|| Charge::take(600).err()), Some(Refused::Server));
            assert!(inner.within(exhausted).contains("1000 bytes"));
            let own = Charge::take(600);
            assert_eq!((outer.used(), inner.used()), (600, 600));
            drop(own);
            kept
        });
        // A charge returns to its pool, wherever it is dropped.
        drop(kept);
        assert_eq!((outer.used(), inner.used()), (0, 0));
        assert!(Charge::take(usize::MAX).is_ok() && current_pool().is_none());
    }

    #[test]
    fn a_cover_grows_by_steps_and_small_ones_are_free() {
        let pool = Pool::new(8 << 20);
        pool.within(|| {
            let mut charge = Charge::default();
            charge.cover(COVER_BYTES).unwrap();
            assert_eq!(pool.used(), 0);
            charge.cover(COVER_BYTES + 1).unwrap();
            assert_eq!(pool.used(), 2 * COVER_BYTES);
            charge.cover(2 * COVER_BYTES - 5).unwrap();
            assert_eq!(pool.used(), 2 * COVER_BYTES);
            charge.cover(5 << 20).unwrap();
            charge.cover(4 << 20).unwrap();
            assert_eq!(pool.used(), 5 << 20);
            assert_eq!(charge.cover(9 << 20), Err(Refused::Server));
            assert_eq!((charge.bytes(), pool.used()), (5 << 20, 5 << 20));
            charge.cover(0).unwrap();
            assert_eq!(pool.used(), 0);
        });
    }

    #[test]
    fn a_charge_gives_back_what_it_took() {
        let mut charge = Charge::take(5000).unwrap();
        charge.resize(8000).unwrap();
        charge.resize(100).unwrap();
        assert_eq!(charge.bytes(), 100);
    }

    #[test]
    fn a_buffer_grows_no_further_than_it_may_and_stays_valid() {
        let mut buffer = Vec::new();
        let big = "x".repeat(10_000);
        let refused = limited(64 * 1024, || {
            let mut writer = DocWriter::new(&mut buffer);
            for _ in 0..1000 {
                writer.append("text", big.as_str());
                let mut inner = writer.array("list");
                inner.push(big.as_str()).push(1);
            }
        });
        assert_eq!(refused, Err(Refused::Evaluation));
        assert!(buffer.capacity() < 160 * 1024, "{}", buffer.capacity());
        assert!(crate::validate(&buffer, &crate::limits::Limits::WIRE).is_ok());
        assert!(Doc::from_valid_bytes(&buffer).iter().count() > 6);
    }

    #[test]
    fn an_inner_limit_takes_from_the_outer_one() {
        let (mut first, mut second) = (Vec::new(), Vec::new());
        let outer = limited(8192, || {
            let mut writer = ArrayWriter::new(&mut first);
            writer.push("x".repeat(5000).as_str());
            let inner = limited(1 << 20, || {
                ArrayWriter::new(&mut second).push("x".repeat(5000).as_str());
            });
            assert_eq!(inner, Err(Refused::Evaluation));
            unlimited(|| {
                ArrayWriter::new(&mut second).push("x".repeat(50_000).as_str());
            });
        });
        assert_eq!(outer, Ok(()));
        assert!(second.len() > 50_000);
    }
}
