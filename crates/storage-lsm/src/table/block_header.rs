//! The header of a block in a table's file: `"LSM" 03`, kind, xxh3-128 of the stored bytes, their
//! length, the length before compression (u32 each), and the lower half of a 64-bit word of the
//! xxh3-128 of the header so far. Numbers are little endian.

use twox_hash::XxHash3_128;

use crate::directory::bytes_at::Reader;

const MAGIC_BYTES: usize = 4;
pub(crate) const MAGIC: &[u8; MAGIC_BYTES] = b"LSM\x03";
pub(crate) const HEADER_BYTES: usize = 33;
/// The bytes of the header's own checksum.
const CHECK_BYTES: usize = 4;

/// The kinds of blocks.
pub(crate) const ROWS: u8 = 0;
pub(crate) const INDEX: u8 = 1;
pub(crate) const FILTER: u8 = 2;
pub(crate) const PROPERTIES: u8 = 3;

/// What the header of a block says.
pub(crate) struct BlockHeader {
    pub kind: u8,
    /// xxh3-128 of the stored bytes.
    pub checksum: u128,
    pub stored_length: u32,
    /// The length before compression.
    pub plain_length: u32,
}

fn check_of(header: &[u8]) -> [u8; CHECK_BYTES] {
    // The lowest 32 bits.
    XxHash3_128::oneshot(header).to_le_bytes().first_chunk().copied().unwrap_or_default()
}

impl BlockHeader {
    /// Returns the header of a block that stores these bytes.
    pub fn of(kind: u8, stored: &[u8], plain_length: u32) -> Self {
        // A value has at most 64 MB, and it ends its block.
        let stored_length = stored.len() as u32;
        Self { kind, checksum: XxHash3_128::oneshot(stored), stored_length, plain_length }
    }

    /// Reads an intact header; `None` if the bytes are none.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let checked = reader.take(HEADER_BYTES - CHECK_BYTES)?;
        if reader.array()? != check_of(checked) {
            return None;
        }
        let mut reader = Reader::new(checked);
        if reader.array()? != *MAGIC {
            return None;
        }
        let [kind] = reader.array()?;
        let checksum = u128::from_le_bytes(reader.array()?);
        let stored_length = u32::from_le_bytes(reader.array()?);
        let plain_length = u32::from_le_bytes(reader.array()?);
        Some(Self { kind, checksum, stored_length, plain_length })
    }

    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = Vec::with_capacity(HEADER_BYTES);
        bytes.extend(MAGIC);
        bytes.push(self.kind);
        bytes.extend(self.checksum.to_le_bytes());
        bytes.extend(self.stored_length.to_le_bytes());
        bytes.extend(self.plain_length.to_le_bytes());
        bytes.extend(check_of(&bytes));
        bytes.first_chunk().copied().unwrap_or([0; HEADER_BYTES])
    }
}
