//! The content of a commit: changes, keys that must not have changed, counters, dropped ranges and
//! change records, and the durability that the caller requires.

use std::sync::Arc;

use bytes::Bytes;

use crate::interrupt::Interrupt;
use crate::publish::OnPublish;
use crate::space::{KeyHash, Space};
use crate::version::Version;

/// The durability that a commit must reach before it is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Survives a crash of the process. On stable storage within 100 ms (`w: 1`).
    Buffered,
    /// On stable storage (`j: true`, `w: "majority"`).
    #[default]
    Synced,
}

/// A change of one key; without a value it is a delete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Op {
    /// The space of the key.
    pub space: Space,
    /// The key that is written.
    pub key: Bytes,
    /// The new value, or `None` to delete the key.
    pub value: Option<Bytes>,
}

/// A key that makes the commit conflict if another commit changed it after this commit's base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// The key's hash, by [`key_hash`](crate::key_hash).
    pub hash: KeyHash,
    /// The space of the key.
    pub space: Space,
    /// The key, which identifies the conflict in the error.
    pub key: Bytes,
    /// True if the commit writes the key, false if it only depends on it (`guard`).
    pub write: bool,
}

/// A change of a collection's counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountDelta {
    /// The id of the collection.
    pub collection: u32,
    /// Documents added; negative if removed.
    pub documents: i64,
    /// Bytes of documents added; negative if removed.
    pub bytes: i64,
    /// True if the counters are removed, because the collection is dropped.
    pub forget: bool,
}

/// The exact number and size of a collection's documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// The number of documents.
    pub documents: u64,
    /// The sum of the documents' lengths in bytes.
    pub bytes: u64,
}

/// The keys `[start, end)` of a dropped collection or index. No read or write uses them after the
/// drop. An empty `end` means the end of the space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DropRange {
    /// The space of the keys.
    pub space: Space,
    /// The first key of the range.
    pub start: Bytes,
    /// The first key after the range.
    pub end: Bytes,
}

/// The id of an open transaction, which holds locks on the keys that it has pushed.
pub type LockOwner = u64;

/// A place in the line of writers that wait for a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinePlace {
    /// The key's hash.
    pub hash: KeyHash,
    /// A sequence number: a later place has a greater one.
    pub number: u64,
}

/// Changes that become visible and durable together. [`Txn`](crate::Txn) makes it.
#[derive(Debug, Default)]
pub struct CommitBatch {
    /// The version that the commit's decisions are based on. Its snapshot must stay open until the
    /// commit returns.
    pub base: Version,
    /// The writes and deletes.
    pub ops: Vec<Op>,
    /// The keys that must not have changed since `base`.
    pub checks: Vec<Check>,
    /// The keys that count as written by this commit, although it may follow on any other commit that
    /// wrote them.
    pub marks: Vec<KeyHash>,
    /// The changes of the counters of collections.
    pub counts: Vec<CountDelta>,
    /// Ranges that are dropped with this commit. Their space is reclaimed later, when no older
    /// snapshot is open. Until then a read may or may not show their keys.
    pub drops: Vec<DropRange>,
    /// Change records. The engine assigns each a key, in the order of versions.
    pub log: Vec<Bytes>,
    /// The durability that the commit must reach before it returns.
    pub durability: Durability,
    /// The transaction whose locks do not block this commit.
    pub owner: Option<LockOwner>,
    /// The place in a line whose reservation does not block this commit.
    pub turn: Option<LinePlace>,
    /// Ends the wait for backpressure. After the commit is queued, nothing interrupts it.
    pub interrupt: Option<Arc<Interrupt>>,
    /// True if the caller has already waited for backpressure
    /// ([`Engine::admit`](crate::Engine::admit)), before it took a lock.
    pub admitted: bool,
    /// The function to call when the commit becomes visible.
    pub on_publish: Option<OnPublish>,
}

impl CommitBatch {
    /// Returns true if the batch adds data: if it writes more than it deletes, drops and changes in
    /// `Meta`. What it writes to the change log does not count, because a delete does that too.
    pub fn adds_data(&self) -> bool {
        let adds = |op: &Op| op.value.is_some() && matches!(op.space, Space::Doc | Space::Idx);
        self.drops.is_empty() && self.ops.iter().any(adds)
    }

    /// Returns the size of keys and values in bytes.
    pub fn byte_len(&self) -> usize {
        let ops: usize =
            self.ops.iter().map(|op| op.key.len() + op.value.as_ref().map_or(0, Bytes::len)).sum();
        ops + self.log.iter().map(Bytes::len).sum::<usize>()
    }

    /// Returns true if there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
            && self.counts.is_empty()
            && self.drops.is_empty()
            && self.log.is_empty()
    }
}
