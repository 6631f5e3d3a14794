//! The limits of one request while it is parsed: on the number of its parts, and on constant folding.
//!
//! The result of a constant operation replaces the operation before any document is read. An operation
//! that takes much time or memory is not folded and is left to evaluation.

use super::InterruptCheck;
use quire_error::{Error, ErrorCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// The most bytes of one folded constant.
const CONSTANT_BYTES_MAX: usize = 1 << 20;

/// The most bytes of all folded constants of a request, beyond 64 bytes for each.
const CONSTANTS_BYTES_MAX: usize = 16 << 20;

/// A constant of at most this many bytes is always kept, because its operation takes as much
/// memory.
const SMALL_BYTES: usize = 64;

/// How many times the evaluations of a request's constants may check the interrupt.
const LOOKS_MAX: u32 = 256;

/// The parts and the resources of one request that were counted so far. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Folding(Arc<Used>);

#[derive(Debug, Default)]
struct Used {
    bytes: AtomicUsize,
    looks: AtomicU32,
    parts: AtomicU32,
}

impl Folding {
    /// Counts a part of the request. Returns the number of parts before it.
    #[inline]
    pub(crate) fn count_part(&self) -> u32 {
        self.0.parts.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns the bytes that the evaluation of a constant may use.
    pub(crate) fn bytes_left(&self) -> usize {
        let left = CONSTANTS_BYTES_MAX.saturating_sub(self.0.bytes.load(Ordering::Relaxed));
        left.min(CONSTANT_BYTES_MAX)
    }

    /// Returns false once all evaluations of the request's constants together have taken too long.
    pub(crate) fn goes_on(&self) -> bool {
        self.0.looks.load(Ordering::Relaxed) < LOOKS_MAX
    }

    /// Returns an interrupt that ends an evaluation once all evaluations of the request together have
    /// taken too long, or once `operation` has to end.
    pub(crate) fn interrupt(
        &self,
        operation: Option<&Arc<dyn InterruptCheck>>,
    ) -> Arc<dyn InterruptCheck> {
        let (used, operation) = (Arc::clone(&self.0), operation.cloned());
        Arc::new(move || {
            operation.as_ref().map_or(Ok(()), |operation| operation.check())?;
            match used.looks.fetch_add(1, Ordering::Relaxed) {
                looks if looks < LOOKS_MAX => Ok(()),
                _ => Err(Error::new(ErrorCode::ExceededMemoryLimit, "constant is not folded")),
            }
        })
    }

    /// Returns true for the error of an evaluation that exceeded the limits.
    pub(crate) fn is_exhausted(error: &Error) -> bool {
        error.code() == ErrorCode::ExceededMemoryLimit
    }

    /// Reserves `bytes` for a constant. Returns false if it may not be kept.
    pub(crate) fn keep(&self, bytes: usize) -> bool {
        if bytes <= SMALL_BYTES {
            return true;
        }
        let kept = self.0.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |kept| {
            kept.checked_add(bytes).filter(|sum| *sum <= CONSTANTS_BYTES_MAX)
        });
        kept.is_ok()
    }
}
