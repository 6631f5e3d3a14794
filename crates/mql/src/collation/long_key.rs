//! The sort key of a long string, or the beginning of it. The interrupt is checked while it is made.

use crate::context::work_or_unwind;
use icu_collator::CollationKeySink;
use std::sync::atomic::{AtomicBool, Ordering};

/// The bytes of a key between two counts of work.
const PIECE_BYTES: usize = 1024;

/// The units of work of making `PIECE_BYTES` of a key, which takes 40 microseconds.
const PIECE_UNITS: u32 = 4000;

/// A destination of keys that ends the making of a key early: after a number of bytes, and with the
/// operation.
///
/// A character without a primary weight writes nothing to the key until its end. Megabytes of
/// control characters or of combining marks have no checks, so that the key of such a string is made
/// on a thread of its own ([`super::key_thread`]).
pub(super) struct LongKey<'k> {
    key: &'k mut Vec<u8>,
    /// True if the operation that waited for the key has ended.
    abandoned: Option<&'k AtomicBool>,
    /// The length of `key` at which the making ends.
    end: usize,
    /// The length of `key` at which work is counted, or at which the making ends.
    next: usize,
}

/// The key is long enough.
pub(super) struct Enough;

impl<'k> LongKey<'k> {
    /// Appends to `key` until `bytes` bytes or more are appended.
    pub fn new(key: &'k mut Vec<u8>, bytes: usize) -> Self {
        let (end, next) = (key.len().saturating_add(bytes), key.len() + PIECE_BYTES.min(bytes));
        LongKey { key, abandoned: None, end, next }
    }

    /// Ends the making of the key when `abandoned` becomes true.
    pub fn until(self, abandoned: &'k AtomicBool) -> Self {
        LongKey { abandoned: Some(abandoned), ..self }
    }

    #[cold]
    fn pause(&mut self) -> Result<(), Enough> {
        let abandoned = self.abandoned.is_some_and(|abandoned| abandoned.load(Ordering::Relaxed));
        if abandoned || self.key.len() >= self.end {
            return Err(Enough);
        }
        work_or_unwind(PIECE_UNITS);
        self.next = self.end.min(self.key.len() + PIECE_BYTES);
        Ok(())
    }
}

impl CollationKeySink for LongKey<'_> {
    type Error = Enough;
    type State = ();
    type Output = ();

    #[inline]
    fn write(&mut self, (): &mut (), bytes: &[u8]) -> Result<(), Enough> {
        self.key.extend_from_slice(bytes);
        if self.key.len() < self.next { Ok(()) } else { self.pause() }
    }

    fn finish(&mut self, (): ()) -> Result<(), Enough> {
        Ok(())
    }
}
