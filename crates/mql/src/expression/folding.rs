//! What folding constants may take while one request is parsed.
//!
//! The result of a constant operation takes its place before any document is read. Parsing knows
//! neither the memory limit nor the interrupt of the operation, so what would take much is left to
//! the evaluation, which does.

use crate::context::InterruptCheck;
use quire_error::{Error, ErrorCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// Bytes that one folded constant may hold.
const CONSTANT_BYTES_MAX: usize = 1 << 20;

/// Bytes that all folded constants of a request may hold beyond 64 each.
const CONSTANTS_BYTES_MAX: usize = 16 << 20;

/// Bytes of a constant that are always kept: the operation takes about as many.
const SMALL_BYTES: usize = 64;

/// How many times the evaluations of a request's constants may come to look at the interrupt.
const LOOKS_MAX: u32 = 256;

/// What the constants of one request have taken so far. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Folding(Arc<Taken>);

#[derive(Debug, Default)]
struct Taken {
    bytes: AtomicUsize,
    looks: AtomicU32,
}

impl Folding {
    /// Bytes that the evaluation of a constant may use.
    pub(super) fn bytes_left(&self) -> usize {
        let left = CONSTANTS_BYTES_MAX.saturating_sub(self.0.bytes.load(Ordering::Relaxed));
        left.min(CONSTANT_BYTES_MAX)
    }

    /// An interrupt that ends an evaluation once those of the request have taken long together.
    pub(super) fn interrupt(&self) -> Arc<dyn InterruptCheck> {
        let taken = Arc::clone(&self.0);
        Arc::new(move || match taken.looks.fetch_add(1, Ordering::Relaxed) {
            looks if looks < LOOKS_MAX => Ok(()),
            _ => Err(Error::new(ErrorCode::ExceededMemoryLimit, "constant is not folded")),
        })
    }

    /// True if the error says that an evaluation took more than it may.
    pub(super) fn is_exhausted(error: &Error) -> bool {
        error.code() == ErrorCode::ExceededMemoryLimit
    }

    /// True if a constant of `bytes` may be kept.
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
