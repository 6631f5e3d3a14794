//! Limits on the memory of one evaluation and of the whole process, checked before memory is
//! allocated.
//!
//! Documents under construction grow in buffers. [`limited`] bounds the growth of a thread's
//! buffers: writers ask before a buffer grows, which costs nothing while it has room. The memory of
//! a request beyond `FREE_BYTES`, and memory that outlives a request ([`Charge`]), is taken from a
//! pool of the process. A request that needs more than the pool has left fails, and the others
//! continue.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The bytes that the evaluations of a thread may use without the pool.
const FREE_BYTES: usize = 1 << 20;

/// The step in bytes in which a thread takes memory from the pool.
const STEP_BYTES: usize = 1 << 20;

/// The limit on bytes in use, and the bytes in use.
#[derive(Debug)]
struct Pool {
    max: AtomicUsize,
    used: AtomicUsize,
    /// How many times it had too little left.
    refused: AtomicUsize,
}

/// The pool of this process. Several servers in one process share it.
static POOL: Pool = Pool {
    max: AtomicUsize::new(usize::MAX),
    used: AtomicUsize::new(0),
    refused: AtomicUsize::new(0),
};

impl Pool {
    fn take(&self, bytes: usize) -> Result<(), Refused> {
        let max = self.max.load(Ordering::Relaxed);
        let taken = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            used.checked_add(bytes).filter(|sum| *sum <= max)
        });
        taken.map(|_| ()).map_err(|_| {
            self.refused.fetch_add(1, Ordering::Relaxed);
            Refused::Process
        })
    }

    fn give(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Sets how many bytes all requests of the process may use together. By default there is no limit.
pub fn set_pool_bytes(max: usize) {
    POOL.max.store(max, Ordering::Relaxed);
}

/// Returns the limit that `set_pool_bytes` set.
pub fn pool_bytes_max() -> usize {
    POOL.max.load(Ordering::Relaxed)
}

/// Returns the bytes that requests, cursors and messages of the process use now.
pub fn pool_bytes_used() -> usize {
    POOL.used.load(Ordering::Relaxed)
}

/// Returns how many times the pool had too little memory left.
pub fn pool_refusals() -> usize {
    POOL.refused.load(Ordering::Relaxed)
}

/// Returns the text of the error for [`Refused::Process`].
pub fn exhausted() -> String {
    let max = pool_bytes_max();
    format!("The requests of this server together use too much memory. Memory limit: {max} bytes")
}

/// The reason why memory was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The evaluation has reached its limit.
    Evaluation,
    /// The pool of the process is exhausted.
    Process,
}

/// A number of bytes taken from the pool, and returned when dropped.
#[derive(Debug, Default)]
pub struct Charge {
    bytes: usize,
}

impl Charge {
    /// Takes `bytes` from the pool. Fails with `Refused::Process` if it has less left.
    pub fn take(bytes: usize) -> Result<Charge, Refused> {
        POOL.take(bytes)?;
        Ok(Charge { bytes })
    }

    /// Changes the charge to `bytes`. On an error it keeps its size.
    pub fn resize(&mut self, bytes: usize) -> Result<(), Refused> {
        match bytes.checked_sub(self.bytes) {
            Some(more) => POOL.take(more)?,
            None => POOL.give(self.bytes - bytes),
        }
        self.bytes = bytes;
        Ok(())
    }

    /// Returns the bytes of the charge.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        POOL.give(self.bytes);
    }
}

thread_local! {
    /// The bytes by which buffers may still grow inside `limited`; `usize::MAX` outside.
    static LEFT: Cell<usize> = const { Cell::new(usize::MAX) };
    /// The reason why a buffer was not allowed to grow since the innermost `limited` began.
    static REFUSED: Cell<Option<Refused>> = const { Cell::new(None) };
    /// The bytes by which buffers have grown inside the active `limited` calls.
    static GROWN: Cell<usize> = const { Cell::new(0) };
    /// The bytes that this thread has taken from the pool since the last `release`.
    static TAKEN: Cell<Charge> = const { Cell::new(Charge { bytes: 0 }) };
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
    fn a_pool_refuses_what_it_does_not_have() {
        let pool = Pool {
            max: AtomicUsize::new(100),
            used: AtomicUsize::new(0),
            refused: AtomicUsize::new(0),
        };
        assert_eq!(pool.take(60), Ok(()));
        assert_eq!(pool.take(41), Err(Refused::Process));
        assert_eq!(pool.take(40), Ok(()));
        pool.give(60);
        assert_eq!(pool.take(usize::MAX), Err(Refused::Process));
        assert_eq!(pool.take(60), Ok(()));
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
