//! Copies of documents one behind the other in larger pieces of memory.

use bytes::{Bytes, BytesMut};

/// Bytes of a piece of memory.
const CHUNK_BYTES: usize = 16 << 10;

/// Copies bytes into pieces of memory of 16 KiB. A piece is freed when none of its copies is left.
#[derive(Default)]
pub(crate) struct Chunks(BytesMut);

impl Chunks {
    /// Returns a copy of the bytes. It needs no allocation of its own while the piece at hand has room.
    pub fn copy(&mut self, bytes: &[u8]) -> Bytes {
        if self.0.capacity() < bytes.len() {
            self.0 = BytesMut::with_capacity(CHUNK_BYTES.max(bytes.len()));
        }
        self.0.extend_from_slice(bytes);
        self.0.split().freeze()
    }
}
