//! The external parameters of an execution: resources and limits.

use std::path::Path;
use std::sync::{Arc, LazyLock, Weak};

use quire_catalog::QuerySettings;
use quire_collections::processors;
use quire_document::{DocBuf, Timestamp, ValueBuf};
use quire_error::{Error, Result};
use quire_mql::stage::Served;
use quire_storage::{Interrupt, Reach, Version, Watched};

/// The bytes that a blocking stage may hold in memory. MongoDB: 100 MiB (292
/// QueryExceededMemoryLimitNoDiskUseAllowed).
pub const STAGE_BYTES_MAX: usize = 100 * 1024 * 1024;

/// The number of documents after which a scan counts as long: it has taken milliseconds, compared
/// with which the start of a thread is cheap.
const LONG_SCAN_DOCS: u64 = 16_384;

static TEMPORARY: LazyLock<Arc<Path>> = LazyLock::new(|| std::env::temp_dir().into());

/// Provides the documents of stages about the server, such as `$collStats`.
pub trait ServerRows: Send + Sync {
    /// Returns the documents of a stage. `api_strict` is true for a request in the stable API.
    ///
    /// # Errors
    /// The errors of the stage about its collection.
    fn rows(&self, stage: &Served, api_strict: bool) -> Result<Vec<DocBuf>>;
}

/// The external parameters of an execution.
#[derive(Clone)]
pub struct ExecParams {
    /// Ends the operation early. Each getMore brings its own: [`crate::Execution::next_batch`].
    pub interrupt: Arc<Interrupt>,
    /// `$$NOW`, in milliseconds since the epoch.
    pub now_ms: i64,
    /// `$$CLUSTER_TIME`; `None` on a standalone.
    pub cluster_time: Option<Timestamp>,
    /// `$$USER_ROLES`: an array of role documents.
    pub user_roles: Option<ValueBuf>,
    /// The bytes that a blocking stage other than `$group` may hold in memory.
    pub stage_bytes_max: usize,
    /// The bytes that a `$group` may hold in memory.
    pub group_bytes_max: usize,
    /// The directory in which stages may spill; `None` if they must not: beyond their memory they
    /// fail with 292.
    pub spill_directory: Option<Arc<Path>>,
    /// True if stages may spill when the request does not set `allowDiskUse`.
    pub disk_by_default: bool,
    /// True to refuse a request that no index serves (`notablescan`).
    pub no_table_scan: bool,
    /// True to refuse operators outside the stable API.
    pub api_strict: bool,
    /// Provides the documents of stages about the server, in pipelines inside of other stages.
    pub server_rows: Option<Weak<dyn ServerRows>>,
    /// True if a replacement keeps its empty timestamps (`bypassEmptyTsReplacement`).
    pub keeps_empty_timestamps: bool,
    /// True to run pipelines without rewriting them.
    pub as_written: bool,
    /// Runs the candidate plan with this number instead of the chosen one: tests compare the
    /// results of all candidates.
    pub considered: Option<usize>,
    /// True to use the plan cache.
    pub plan_cache: bool,
    /// The query settings of the request.
    pub query_settings: Option<Arc<QuerySettings>>,
    /// The number of threads that a long execution may use, including its own, if they are free.
    pub threads_max: usize,
    /// The number of documents after which a scan counts as long.
    pub long_scan_docs: u64,
    /// The number of documents for which each document that is read stands: more than 1 for a random
    /// sample of a collection. The planner then chooses as for the whole collection.
    pub documents_per_sampled: f64,
}

impl ExecParams {
    /// Returns parameters with only an interrupt and the time.
    pub fn new(interrupt: Arc<Interrupt>, now_ms: i64) -> Self {
        ExecParams {
            interrupt,
            now_ms,
            cluster_time: None,
            user_roles: None,
            stage_bytes_max: STAGE_BYTES_MAX,
            group_bytes_max: STAGE_BYTES_MAX,
            spill_directory: Some(Arc::clone(&TEMPORARY)),
            disk_by_default: true,
            no_table_scan: false,
            api_strict: false,
            server_rows: None,
            keeps_empty_timestamps: false,
            as_written: false,
            considered: None,
            plan_cache: true,
            query_settings: None,
            threads_max: processors(),
            long_scan_docs: LONG_SCAN_DOCS,
            documents_per_sampled: 1.0,
        }
    }
}

impl ExecParams {
    /// Returns the documents of a stage about the server.
    ///
    /// # Errors
    /// The errors of the stage about its collection.
    pub(crate) fn rows_of_server(&self, stage: &Served) -> Result<Vec<DocBuf>> {
        match self.server_rows.as_ref().and_then(Weak::upgrade) {
            Some(server) => server.rows(stage, self.api_strict),
            None => Err(Error::internal(format!("no server gives the rows of {}", stage.name))),
        }
    }
}

/// The limits of a batch.
#[derive(Debug, Clone, Copy)]
pub struct BatchLimits {
    /// The largest number of documents.
    pub docs_max: usize,
    /// The batch ends before the document that would exceed this number of bytes, but has at least
    /// one document.
    pub bytes_max: usize,
    /// True if the documents after the batch are never read. Otherwise the batch ends early if there
    /// is no memory for more.
    pub is_whole: bool,
}

impl BatchLimits {
    /// Returns the limits of a batch of at most `docs_max` documents and 16 MiB, the size of a reply.
    pub fn docs(docs_max: usize) -> Self {
        BatchLimits { docs_max, bytes_max: 16 * 1024 * 1024, is_whole: false }
    }
}

/// What follows a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Follows {
    /// More rows, probably.
    Rows,
    /// No rows in the state that was read. A commit after `past` may add some; [`Awaits`] says which
    /// commits.
    NothingYet {
        /// The last commit whose rows were returned.
        past: Version,
    },
    /// Nothing: no cursor is needed.
    End,
}

/// The commits that can add rows to an execution that has returned all rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Awaits {
    /// The collection that it follows.
    pub watched: Watched,
    /// How far a commit must have come before its rows are returned.
    pub reach: Reach,
}

/// The result of reading a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchEnd {
    /// The number of documents in the batch.
    pub docs: usize,
    /// What follows it.
    pub follows: Follows,
}

impl BatchEnd {
    /// Returns the end of a batch of a source that never waits.
    pub fn of_rows(docs: usize, more: bool) -> Self {
        BatchEnd { docs, follows: if more { Follows::Rows } else { Follows::End } }
    }

    /// Returns true if nothing follows.
    pub fn is_last(&self) -> bool {
        self.follows == Follows::End
    }
}
