//! Storage: a key-value contract, the write buffer over it, group commit, and the
//! engines that need no disk (in memory, simulated). It knows neither BSON nor MongoDB.
//!
//! Read in this order: [`space`] and [`version`] (the places of keys and of commits), [`contract`] (what
//! an engine promises), [`batch`] (what a commit contains), [`txn`] (how a caller uses it), [`backend`]
//! and [`committer`] (one committer makes an engine of raw ordered bytes), [`memory`] and [`simulated`]
//! (two such engines), [`conformance`] (the test suite of every engine).

pub mod backend;
pub mod batch;
pub mod clock;
pub mod committer;
pub mod conformance;
pub mod contract;
pub mod error;
pub mod interrupt;
pub mod memory;
mod overlay;
mod publish;
pub mod rng;
pub mod simulated;
pub mod space;
pub mod turn;
pub mod txn;
pub mod version;

pub use bytes::Bytes;

pub use clock::{Clock, ManualClock, SystemClock};
pub use committer::{Committer, CommitterOptions, seek_log};
pub use contract::{
    Caps, Check, ClusterTime, CommitBatch, Committed, CountDelta, Counts, Direction, DropRange,
    Durability, Engine, EngineStats, KeyHash, LockOwner, Maintenance, Op, Page, Place, ScanRequest,
    Size, Snapshot, Space, Traces, Version, key_hash, prefix_end,
};
pub use error::{Conflict, Result, StorageError};
pub use interrupt::{Interrupt, Interruption};
pub use memory::{open_memory, open_memory_with};
pub use publish::{OnPublish, PublishFn};
pub use simulated::{Crash, Faults, SimulatedDisk};
pub use turn::KeyTurn;
pub use txn::{CommitOptions, Mode, Savepoint, Txn, begin, begin_on};
