//! The two clocks of commits: versions, by which engines order them, and MongoDB's cluster time, by
//! which clients do.

/// A point in the history of commits: opaque, ordered, 16 bytes. Rises with every commit, also
/// across restarts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Version(u128);

impl Version {
    /// The version of a local engine's commit number.
    pub const fn from_u64(number: u64) -> Self {
        Self(number as u128)
    }

    /// The commit number of a local engine (a remote engine's versions may not fit).
    pub const fn as_u64(self) -> u64 {
        self.0 as u64
    }

    /// Big-endian, so that byte order is version order.
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }

    /// The inverse of [`to_bytes`](Self::to_bytes).
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(u128::from_be_bytes(bytes))
    }
}

/// MongoDB's logical time: seconds since 1970 in the upper half, a counter in the lower.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct ClusterTime(pub u64);

impl ClusterTime {
    /// From its two halves.
    pub const fn new(secs: u32, increment: u32) -> Self {
        Self(((secs as u64) << 32) | increment as u64)
    }

    /// Seconds since 1970.
    pub const fn secs(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// The counter within the second.
    pub const fn increment(self) -> u32 {
        self.0 as u32
    }

    /// The next time to give out when the clock shows `now_ms`: rises always, follows the clock
    /// where it can.
    #[must_use]
    pub fn next(self, now_ms: u64) -> Self {
        let now_secs = u32::try_from(now_ms / 1000).unwrap_or(u32::MAX);
        if now_secs > self.secs() { Self::new(now_secs, 1) } else { Self(self.0 + 1) }
    }
}

/// The place of a commit in history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Committed {
    /// The version of the commit.
    pub version: Version,
    /// Its cluster time.
    pub cluster_time: ClusterTime,
}
