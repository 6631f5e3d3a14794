//! What a commit carries: the changes, the keys that must not have changed, counters, dropped ranges
//! and change records, and how far it must have got before it is acknowledged.

use std::sync::Arc;

use bytes::Bytes;

use crate::interrupt::Interrupt;
use crate::publish::OnPublish;
use crate::space::{KeyHash, Space};
use crate::version::Version;

/// How far a commit must have got before it is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Survives the death of the process; on stable storage within 100 ms (`w: 1`).
    Buffered,
    /// On stable storage (`j: true`, `w: "majority"`).
    #[default]
    Synced,
}

/// One change of one key; no value means delete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Op {
    /// The space of the key.
    pub space: Space,
    /// The key that is written.
    pub key: Bytes,
    /// The new value, or `None` to delete the key.
    pub value: Option<Bytes>,
}

/// A key that makes a commit conflict if another one changed it after the commit's base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// The key's hash, by [`key_hash`](crate::key_hash).
    pub hash: KeyHash,
    /// The space of the key.
    pub space: Space,
    /// The key that is compared with those of other commits.
    pub key: Bytes,
    /// True if the commit writes the key itself, false if it only relies on it (`guard`).
    pub write: bool,
}

/// How a commit changes the counters of a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountDelta {
    /// The collection's id.
    pub collection: u32,
    /// Documents added, or removed if negative.
    pub documents: i64,
    /// Bytes of documents added, or removed if negative.
    pub bytes: i64,
    /// Forget the counters altogether (the collection is dropped).
    pub forget: bool,
}

/// The exact size of a collection's documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// The number of documents.
    pub documents: u64,
    /// Sum of the documents' lengths.
    pub bytes: u64,
}

/// The keys `[start, end)` of a dropped collection or index: no read or write names them after the
/// drop. An empty `end` stands for the end of the space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DropRange {
    /// The space of the keys.
    pub space: Space,
    /// First key of the range.
    pub start: Bytes,
    /// First key after the range.
    pub end: Bytes,
}

/// The number of an open transaction that holds locks on the keys that it has pushed.
pub type LockOwner = u64;

/// A place in the queue of the writers that wait for a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The key's hash.
    pub hash: KeyHash,
    /// Rises with every place that is given out.
    pub number: u64,
}

/// Everything that becomes visible and durable together. Made by [`Txn`](crate::Txn).
#[derive(Debug, Default)]
pub struct CommitBatch {
    /// The version that the decisions in this batch were made on. The snapshot must stay open
    /// until the commit returns.
    pub base: Version,
    /// The keys that are written or deleted.
    pub ops: Vec<Op>,
    /// The keys that must not have changed since `base`.
    pub checks: Vec<Check>,
    /// The changes of the counters of collections.
    pub counts: Vec<CountDelta>,
    /// Ranges that die with this commit. Their space comes back later, once no snapshot is
    /// older; until then reads may or may not show their keys.
    pub drops: Vec<DropRange>,
    /// Change records; the engine gives each its place in the order of versions.
    pub log: Vec<Bytes>,
    /// How far to go before the answer.
    pub durability: Durability,
    /// The locks that this commit may pass.
    pub owner: Option<LockOwner>,
    /// The place in a line that this commit makes use of.
    pub turn: Option<Place>,
    /// Ends the wait for backpressure. Once queued, a commit is waited for.
    pub interrupt: Option<Arc<Interrupt>>,
    /// The caller has waited for backpressure ([`Engine::admit`](crate::Engine::admit)) before it took a lock.
    pub admitted: bool,
    /// Runs when the commit becomes visible.
    pub on_publish: Option<OnPublish>,
}

impl CommitBatch {
    /// Whether it adds data: more than it deletes, drops and changes in `Meta`.
    pub fn adds_data(&self) -> bool {
        self.drops.is_empty()
            && (!self.log.is_empty()
                || self.ops.iter().any(|op| op.value.is_some() && op.space != Space::Meta))
    }

    /// Bytes of keys and values.
    pub fn byte_len(&self) -> usize {
        let ops: usize =
            self.ops.iter().map(|op| op.key.len() + op.value.as_ref().map_or(0, Bytes::len)).sum();
        ops + self.log.iter().map(Bytes::len).sum::<usize>()
    }

    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
            && self.counts.is_empty()
            && self.drops.is_empty()
            && self.log.is_empty()
    }
}
