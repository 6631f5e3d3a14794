//! A random number generator with a seed (splitmix64), so that every random test and every
//! simulation can be repeated, and a source of seeds that cannot be predicted.

/// Returns a number that cannot be predicted, for seeds and ids. Not for secrets.
pub fn word() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::hash::RandomState::new().build_hasher().finish()
}

/// Returns a random UUID (RFC 9562, version 4).
pub fn uuid() -> [u8; 16] {
    uuid_of(word(), word())
}

fn uuid_of(high: u64, low: u64) -> [u8; 16] {
    let mut uuid = (u128::from(high) << 64 | u128::from(low)).to_be_bytes();
    uuid[6] = uuid[6] & 0x0f | 0x40;
    uuid[8] = uuid[8] & 0x3f | 0x80;
    uuid
}

/// Pseudo-random numbers from a seed. Not for secrets.
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// Returns the generator with this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next 64 bits (Steele, Lea, Flood: "Fast splittable pseudorandom number
    /// generators").
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Returns a number below `end`, which must not be 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next_u64() % end
    }

    /// The next UUID (RFC 9562, version 4).
    pub fn uuid(&mut self) -> [u8; 16] {
        uuid_of(self.next_u64(), self.next_u64())
    }

    /// Returns true with probability 1 / `times`.
    pub fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }
}
