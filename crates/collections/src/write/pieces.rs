//! Keys and values of a batch, cut out of shared buffers. With an allocation for each of them a
//! document costs seven, here and later in the engine's memtable. Keys that were written one after the
//! other lie side by side, which is where the memtable's searches compare them.

use bytes::{Bytes, BytesMut};

/// The smallest and the largest buffer. The unused end of the last one stays allocated as long as
/// something in it is in use. For each buffer that does not fit into freed memory glibc makes a system
/// call, in which no other thread can get memory.
const BUFFER_BYTES_MIN: usize = 64;
const BUFFER_BYTES_MAX: usize = 32 << 10;
/// Pieces up to this size lie in one buffer with others of that kind: keys and values of index
/// entries.
const SMALL_BYTES_MAX: usize = 256;
/// A buffer that begins with a piece has room for at least this number of its size.
const PIECES_MIN: usize = 4;

/// Cuts pieces out of buffers that grow with what has been cut.
pub(super) struct Pieces {
    /// False where values stay in memory for good: a piece that lives keeps its whole buffer.
    shares: bool,
    small: Buffers,
    large: Buffers,
}

#[derive(Default)]
struct Buffers {
    current: BytesMut,
    /// Bytes cut so far.
    cut: usize,
}

impl Pieces {
    pub fn new(shares: bool) -> Self {
        Pieces { shares, small: Buffers::default(), large: Buffers::default() }
    }

    /// Returns the parts, one after the other.
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
            return buffers.cut(parts);
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
    /// Returns true if the current buffer has room for a piece, or a new one that is worth it.
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

    fn cut(&mut self, parts: [&[u8]; 2]) -> Bytes {
        parts.iter().for_each(|part| self.current.extend_from_slice(part));
        self.current.split().freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_what_was_put_together() {
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
