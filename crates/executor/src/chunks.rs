//! Copies of documents that share larger allocations.

use bytes::{Bytes, BytesMut};

/// The size of an allocation in bytes.
const CHUNK_BYTES: usize = 16 << 10;

/// Copies bytes into allocations of 16 KiB. An allocation is freed when none of its copies is left.
#[derive(Default)]
pub(crate) struct Chunks(BytesMut);

impl Chunks {
    /// Returns a copy of the bytes. It needs a new allocation only if the current one has no room.
    pub fn copy(&mut self, bytes: &[u8]) -> Bytes {
        if self.0.capacity() < bytes.len() {
            self.0 = BytesMut::with_capacity(CHUNK_BYTES.max(bytes.len()));
        }
        self.0.extend_from_slice(bytes);
        self.0.split().freeze()
    }
}
