//! The limits of constant folding while one request is parsed.
//!
//! The result of a constant operation replaces the operation before any document is read. Parsing
//! does not know the memory limit and the interrupt of the operation. So an operation that takes
//! much time or memory is not folded and is left to evaluation.

use crate::context::InterruptCheck;
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

/// The resources that folding the constants of one request has used. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Folding(Arc<Used>);

#[derive(Debug, Default)]
struct Used {
    bytes: AtomicUsize,
    looks: AtomicU32,
}

impl Folding {
    /// Returns the bytes that the evaluation of a constant may use.
    pub(super) fn bytes_left(&self) -> usize {
        let left = CONSTANTS_BYTES_MAX.saturating_sub(self.0.bytes.load(Ordering::Relaxed));
        left.min(CONSTANT_BYTES_MAX)
    }

    /// Returns an interrupt that ends an evaluation once all evaluations of the request together
    /// have taken too long.
    pub(super) fn interrupt(&self) -> Arc<dyn InterruptCheck> {
        let used = Arc::clone(&self.0);
        Arc::new(move || match used.looks.fetch_add(1, Ordering::Relaxed) {
            looks if looks < LOOKS_MAX => Ok(()),
            _ => Err(Error::new(ErrorCode::ExceededMemoryLimit, "constant is not folded")),
        })
    }

    /// Returns true for the error of an evaluation that exceeded the limits.
    pub(super) fn is_exhausted(error: &Error) -> bool {
        error.code() == ErrorCode::ExceededMemoryLimit
    }

    /// Reserves `bytes` for a constant. Returns false if it may not be kept.
    pub(super) fn keep(&self, bytes: usize) -> bool {
        if bytes <= SMALL_BYTES {
            return true;
        }
        let kept = self.0.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |kept| {
            kept.checked_add(bytes).filter(|sum| *sum <= CONSTANTS_BYTES_MAX)
        });
        kept.is_ok()
    }
}
