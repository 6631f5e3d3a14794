//! The order of commits: versions, which engines use, and MongoDB's cluster time, which clients
//! use.

/// The position of a commit in the history: opaque, ordered, 16 bytes. Increases with every commit,
/// also across restarts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Version(u128);

impl Version {
    /// Returns the version of a local engine's commit number.
    pub const fn from_u64(number: u64) -> Self {
        Self(number as u128)
    }

    /// Returns the commit number of a local engine. (The versions of a remote engine may not fit.)
    pub const fn as_u64(self) -> u64 {
        self.0 as u64
    }

    /// Returns the version in big-endian order, so that byte order is version order.
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }

    /// Decodes bytes that [`to_bytes`](Self::to_bytes) made.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(u128::from_be_bytes(bytes))
    }
}

/// MongoDB's logical time: seconds since 1970 in the upper half, a counter in the lower.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct ClusterTime(pub u64);

impl ClusterTime {
    /// Returns the cluster time with these seconds and this counter.
    pub const fn new(secs: u32, increment: u32) -> Self {
        Self(((secs as u64) << 32) | increment as u64)
    }

    /// Returns the seconds since 1970.
    pub const fn secs(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// Returns the counter within the second.
    pub const fn increment(self) -> u32 {
        self.0 as u32
    }

    /// Returns the next cluster time when the clock shows `now_ms`. It is always greater than
    /// `self`, and follows the clock unless the clock is behind.
    #[must_use]
    pub fn next(self, now_ms: u64) -> Self {
        let now_secs = u32::try_from(now_ms / 1000).unwrap_or(u32::MAX);
        if now_secs > self.secs() { Self::new(now_secs, 1) } else { Self(self.0 + 1) }
    }
}

/// The version and cluster time of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Committed {
    /// The version of the commit.
    pub version: Version,
    /// The cluster time of the commit.
    pub cluster_time: ClusterTime,
}
