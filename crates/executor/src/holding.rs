//! What operators take of the memory that all requests of the server share. An operator charges its
//! rows, groups or keys as they grow, in coarse steps, so that a small request never touches the
//! shared counter (docs/adr/0030-one-pool-of-memory.md).

use quire_document::memory::{self, Charge};
use quire_error::{Error, ErrorCode, Result};

/// Documents of at most this size are built without a charge: each thread has as much for its
/// evaluations.
const UNRESERVED_BYTES: usize = 256 << 10;

/// The least memory that is worth writing to disk when there is none left.
const SPILLED_BYTES_MIN: usize = 1 << 20;

/// The charge of an operator's state. Dropping it returns the memory.
#[derive(Debug, Default)]
pub(crate) struct Holding(Charge);

impl Holding {
    /// Makes the charge cover `bytes`.
    ///
    /// # Errors
    /// 146 ExceededMemoryLimit if the requests of the server use too much memory together.
    #[inline]
    pub fn cover(&mut self, bytes: usize) -> Result<()> {
        self.0.cover(bytes).map_err(|_| refused())
    }

    /// Makes the charge cover `bytes`, or returns false for state that should go to disk because
    /// there is no memory for it.
    ///
    /// # Errors
    /// 146 ExceededMemoryLimit if the state is so small that writing it would return no memory.
    #[inline]
    pub fn cover_or_spill(&mut self, bytes: usize) -> Result<bool> {
        match self.0.cover(bytes) {
            Ok(()) => Ok(true),
            Err(_) if bytes >= SPILLED_BYTES_MIN => Ok(false),
            Err(_) => Err(refused()),
        }
    }

    /// Returns the bytes of the charge.
    pub fn bytes(&self) -> usize {
        self.0.bytes()
    }
}

/// Reserves memory for a document of `bytes` bytes that is built next and passed on, and for a copy
/// of it on the way. The thread keeps the largest reservation until the end of its request.
///
/// # Errors
/// 146 ExceededMemoryLimit if the requests of the server use too much memory together.
#[inline]
pub(crate) fn reserve_built(bytes: usize) -> Result<()> {
    match bytes <= UNRESERVED_BYTES {
        true => Ok(()),
        false => memory::reserve(bytes.saturating_mul(2)).map_err(|_| refused()),
    }
}

/// Returns the error of a request for which there is no memory.
#[cold]
pub(crate) fn refused() -> Error {
    Error::new(ErrorCode::ExceededMemoryLimit, memory::exhausted())
}
