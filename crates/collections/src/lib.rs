//! Documents and their index entries: read on a snapshot, written in one storage transaction.
//!
//! [`Store`] is the engine with the published catalog. [`Store::read_view`] returns a [`ReadView`],
//! a snapshot with the catalog of the same moment. Readers use the [`View`] of a `ReadView`, or of
//! a [`Writer`], which adds its own writes. Only `write.rs` and its folder write documents and
//! index entries; an index build loads the entries of its index (`ddl/index_load.rs`). The catalog is
//! read and the snapshot taken under the same lock, so a view never shows an index whose entries its
//! snapshot lacks.

mod change_log;
mod changes;
mod check;
mod chunk_size;
mod clashes;
mod closing;
mod ddl;
mod duplicate;
mod entry;
mod failure;
mod findings;
mod helper_threads;
mod id_cache;
mod index_builds;
mod index_scan;
mod job;
mod job_bell;
mod jobs;
mod key_order;
mod late;
mod layout;
mod lines;
mod log_catalog;
mod log_record;
mod low_water;
mod meta;
mod multikey;
mod numbers;
mod open;
mod past_catalogs;
mod policy;
mod prepare;
mod prepared;
mod publish;
mod recorded;
mod retry;
mod rules;
mod scan;
mod series;
mod series_gate;
mod settings;
mod side_writes;
mod sorted_runs;
mod spill;
mod store;
mod view;
mod write;

pub use change_log::{
    ChangeEntry, ChangePlace, ChangeWhat, EntryCollection, LogBeginning, LogReader, LogWindow,
    Origin, Trimmed, history_lost,
};
pub use changes::{
    CatalogChange, CatalogObserver, Change, ChangeListener, ChangeLog, UpdatedDoc, Violation,
    ViolationObserver,
};
pub use check::{CheckOptions, Conformance, check, check_collection};
pub use check::{PatternCheck, PatternCost, Quantiles, check_pattern, pattern_cost};
pub use chunk_size::ChunkSize;
pub use closing::{ClosePolicy, Closed, Closing, PointsMark, drop_buckets};
pub use ddl::PATTERNS;
pub use ddl::{
    BuiltIndexes, CreateIndexes, DropIndexes, DroppedIndexes, IndexBefore, IndexChoice,
    ModifyIndex, ModifyView, RebuiltIndexes, Rename, collection_sizes, reclaimable_bytes,
};
pub use ddl::{CollectionSizes, IndexSize};
pub use ddl::{Expiry, MakeUnique, ModifyCollection};
pub use duplicate::duplicate_key_error;
pub use entry::{DecodedKey, EntryKeys, KeyOfEntry, decode_entry};
pub use failure::{Attempt, Failure, from_interruption, from_storage, is_in_doubt};
pub use findings::{CollectionCheck, Finding, Problem, Repair, Report};
pub use helper_threads::{Helpers, processors};
pub use index_builds::{IndexBuild, IndexBuildCounts};
pub use index_scan::{IndexCursor, IndexEntry, IndexRange};
pub use job::{Job, JobId};
pub use job_bell::JobBell;
pub use jobs::{
    ExpireFailure, Expired, Expiring, IsAlive, PatternLag, Progress, Rest, STEP_ROWS_MAX, Stepped,
    build_pattern, build_pattern_step, derive_step, expire_documents, expire_step, reap_job,
    reap_step,
};
pub use key_order::{order_digits, shared_bytes};
pub use layout::{Record, RecordId, StoredDoc, VisitedDoc};
pub use lines::LineId;
pub use policy::WritePolicy;
pub use prepare::{EmptyTimestamps, prepare_insert, prepare_insert_with};
pub use recorded::RecordedRow;
pub use retry::{Effect, Image, Keep, Remembered, RetryLog, SessionKey, load_retry_log};
pub use rules::{Budget, Deferred, Proposal, Rule, RuleTask, RuleWriter, Rules};
pub use scan::CollectionCursor;
pub use series::{
    BucketCursor, BucketEntry, FieldColumn, MongoBucket, PackedBucket, RestoredBucket, Source,
    SourceCursor, Span, takes_buckets,
};
pub use series_gate::{SeriesReading, SeriesWrites};
pub use sorted_runs::{MergedRuns, RunWriter, SortedRecord, SortedRuns, Workspace};
pub use spill::{SpillPages, SpillReader, SpillWriter};
pub use store::{ChangeLogMode, Store, StoreOptions};
pub use view::{ReadView, View};
pub use write::{CommitOutcome, Writer, WriterMode, WriterSavepoint, duplicate_bucket_error};
