//! Scalar types that Rust does not have.

use std::fmt;

/// A 12-byte object id.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectId(pub [u8; 12]);

impl ObjectId {
    /// Returns an id with seconds since the epoch, five process bytes and a 24-bit counter.
    pub fn from_parts(seconds: u32, process: [u8; 5], counter: u32) -> Self {
        let mut id = [0; 12];
        id[..4].copy_from_slice(&seconds.to_be_bytes());
        id[4..9].copy_from_slice(&process);
        id[9..].copy_from_slice(&counter.to_be_bytes()[1..]);
        ObjectId(id)
    }

    /// Parses 24 hexadecimal digits.
    pub fn parse(hex: &str) -> Option<Self> {
        let hex = hex.as_bytes();
        if hex.len() != 24 {
            return None;
        }
        let mut id = [0; 12];
        for (byte, pair) in id.iter_mut().zip(hex.chunks_exact(2)) {
            let high = (pair[0] as char).to_digit(16)?;
            let low = (pair[1] as char).to_digit(16)?;
            *byte = (high * 16 + low) as u8;
        }
        Some(ObjectId(id))
    }

    /// Returns the seconds since the Unix epoch at which the id was made.
    pub fn seconds(self) -> u32 {
        u32::from_be_bytes([self.0[0], self.0[1], self.0[2], self.0[3]])
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectId(\"{self}\")")
    }
}

/// MongoDB's internal timestamp. Ordered by seconds, then by increment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timestamp {
    /// Seconds since the Unix epoch.
    pub seconds: u32,
    /// Order within the second.
    pub increment: u32,
}

impl Timestamp {
    /// Returns the 64-bit form, with the seconds in the high half.
    pub const fn to_u64(self) -> u64 {
        (self.seconds as u64) << 32 | self.increment as u64
    }

    /// Decodes the result of [`Timestamp::to_u64`].
    pub const fn from_u64(bits: u64) -> Self {
        Timestamp { seconds: (bits >> 32) as u32, increment: bits as u32 }
    }
}

/// A decimal128 of IEEE 754-2008 in BSON's form: binary integer significand, little endian. `==`
/// compares the bits: `1.0` and `1.00` differ, although they are equal in MongoDB's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Decimal128(pub [u8; 16]);

impl Decimal128 {
    /// Returns the bytes as one little-endian integer.
    pub const fn bits(self) -> u128 {
        u128::from_le_bytes(self.0)
    }

    /// Decodes the result of [`Decimal128::bits`].
    pub const fn from_bits(bits: u128) -> Self {
        Decimal128(bits.to_le_bytes())
    }
}
