//! Keys and values of a batch as slices of shared buffers. With an allocation for each of them a
//! document would cost seven, here and later in the engine's memtable. Keys that were written one
//! after the other are adjacent in memory, where the memtable's searches compare them.

use bytes::{Bytes, BytesMut};

/// The sizes of the smallest and the largest buffer. The unused end of the last buffer stays
/// allocated while any slice of it is in use.
const BUFFER_BYTES_MIN: usize = 64;
const BUFFER_BYTES_MAX: usize = 32 << 10;
/// Slices up to this size share buffers with each other: the keys and values of index entries.
const SMALL_BYTES_MAX: usize = 256;
/// A buffer that begins with a slice has room for at least this number of slices of its size.
const PIECES_MIN: usize = 4;

/// Allocates slices from buffers that grow with the number of allocated bytes.
pub(super) struct Pieces {
    /// False if values stay in memory for long: a slice in use keeps its whole buffer.
    shares: bool,
    small: Buffers,
    large: Buffers,
}

#[derive(Default)]
struct Buffers {
    current: BytesMut,
    /// The bytes allocated so far.
    cut: usize,
}

impl Pieces {
    pub fn new(shares: bool) -> Self {
        Pieces { shares, small: Buffers::default(), large: Buffers::default() }
    }

    /// Returns the concatenation of the parts.
    pub fn join(&mut self, parts: [&[u8]; 2]) -> Bytes {
        let len = parts.iter().map(|part| part.len()).sum();
        if len == 0 {
            return Bytes::new();
        }
        let buffers = match len <= SMALL_BYTES_MAX {
            true => &mut self.small,
            false => &mut self.large,
        };
        if self.shares && buffers.have_room(len) {
            return buffers.cut(len, parts);
        }
        let mut own = Vec::with_capacity(len);
        parts.iter().for_each(|part| own.extend_from_slice(part));
        Bytes::from(own)
    }

    /// Returns a copy of the bytes.
    pub fn copy(&mut self, bytes: &[u8]) -> Bytes {
        self.join([bytes, &[]])
    }
}

impl Buffers {
    /// Returns true if the current buffer has room for a slice, after a new one was begun if that
    /// pays.
    fn have_room(&mut self, len: usize) -> bool {
        let size = self.cut.clamp(BUFFER_BYTES_MIN, BUFFER_BYTES_MAX);
        self.cut += len;
        if self.current.capacity() >= len {
            return true;
        }
        if len * PIECES_MIN > size.max(SMALL_BYTES_MAX) {
            return false;
        }
        self.current = BytesMut::with_capacity(size.max(len));
        true
    }

    /// Cuts a slice of `len` bytes off the buffer and copies the parts to it. The slice is cut before
    /// it is filled: the count of a buffer's slices is changed atomically, for which the processor
    /// waits until all bytes that it copied before are in its cache.
    fn cut(&mut self, len: usize, parts: [&[u8]; 2]) -> Bytes {
        let rest = self.current.split_off(len);
        let mut slice = std::mem::replace(&mut self.current, rest);
        parts.iter().for_each(|part| slice.extend_from_slice(part));
        slice.freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_have_the_joined_content() {
        for shares in [true, false] {
            let mut pieces = Pieces::new(shares);
            let contents: Vec<Vec<u8>> =
                (0..300usize).map(|n| vec![n as u8; (n * n * 7) % 3000]).collect();
            let cut: Vec<Bytes> = contents
                .iter()
                .map(|content| {
                    let (a, b) = content.split_at(content.len() / 3);
                    pieces.join([a, b])
                })
                .collect();
            drop(pieces);
            for (content, piece) in contents.iter().zip(&cut) {
                assert_eq!(content, piece);
            }
        }
    }

    #[test]
    fn few_small_pieces_take_one_small_buffer() {
        let mut pieces = Pieces::new(true);
        let (a, b) = (pieces.copy(b"a key"), pieces.copy(b"another"));
        assert_eq!(a.as_ptr().wrapping_add(a.len()), b.as_ptr());
        assert!(pieces.small.current.capacity() < BUFFER_BYTES_MIN);
    }
}
