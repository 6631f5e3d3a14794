//! Storage: a key-value contract, its write buffer, group commit, and the engines that need no disk
//! (in memory, simulated). It knows neither BSON nor MongoDB.
//!
//! Read in this order: [`space`] and [`version`] (spaces of keys, versions of commits),
//! [`contract`] (the promises of an engine), [`batch`] (the content of a commit), [`txn`] (how a
//! caller uses an engine), [`backend`] and [`committer`] (how one committer makes an engine from
//! ordered bytes), [`memory`] and [`simulated`] (two such engines), [`conformance`] (the test suite
//! of every engine).

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
mod watch;

pub use bytes::Bytes;

pub use clock::{Clock, ManualClock, SystemClock};
pub use committer::{Committer, CommitterOptions, seek_log};
pub use contract::{
    Caps, Check, ClusterTime, CommitBatch, Committed, CountDelta, Counts, Direction, DropRange,
    Durability, Engine, EngineStats, KeyHash, LinePlace, LockOwner, Maintenance, Op, Page,
    ScanRequest, Size, Snapshot, Space, Traces, Version, VisitedRow, Visitor, key_hash, next_key,
    prefix_end,
};
pub use error::{Conflict, Result, StorageError};
#[cfg(feature = "testing")]
pub use interrupt::observe;
pub use interrupt::{Interrupt, Interruption, LockWait};
pub use memory::{open_memory, open_memory_with};
pub use publish::{OnPublish, PublishFn};
pub use simulated::{Crash, Faults, SimulatedDisk};
pub use turn::KeyTurn;
pub use txn::{CommitOptions, Mode, Savepoint, Txn, begin, begin_on};
pub use watch::{Reach, Watch, Watched};
