//! What an execution is given from outside, its limits and what it counts.

use std::path::Path;
use std::sync::{Arc, LazyLock, Weak};

use quire_document::{DocBuf, Timestamp, ValueBuf};
use quire_error::{Error, Result};
use quire_mql::stage::Served;
use quire_storage::Interrupt;

/// Bytes a blocking stage may hold in memory. MongoDB: 100 MiB
/// (292 QueryExceededMemoryLimitNoDiskUseAllowed).
pub const STAGE_BYTES_MAX: usize = 100 * 1024 * 1024;

/// Documents after which a scan counts as long: it has taken milliseconds, beside which starting a
/// thread is nothing.
const LONG_SCAN_DOCS: u64 = 16_384;

static PROCESSORS: LazyLock<usize> =
    LazyLock::new(|| std::thread::available_parallelism().map_or(1, |count| count.get()));

static TEMPORARY: LazyLock<Arc<Path>> = LazyLock::new(|| std::env::temp_dir().into());

/// Makes the documents of stages that tell of the server, such as `$collStats`.
pub trait ServerRows: Send + Sync {
    /// Returns the documents of a stage; `api_strict` says that the request keeps to the stable API.
    ///
    /// # Errors
    /// What the stage says of its collection.
    fn rows(&self, stage: &Served, api_strict: bool) -> Result<Vec<DocBuf>>;
}

/// What an execution is given from outside.
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
    /// Bytes a blocking stage other than `$group` may hold in memory.
    pub stage_bytes_max: usize,
    /// Bytes a `$group` may hold in memory.
    pub group_bytes_max: usize,
    /// True if stages may go on on disk, and where; `None` answers 292 where memory ends.
    pub spill_directory: Option<Arc<Path>>,
    /// True if stages may go on on disk where the request does not say.
    pub disk_by_default: bool,
    /// A request that no index serves is refused (`notablescan`).
    pub no_table_scan: bool,
    /// Operators outside the stable API are refused.
    pub api_strict: bool,
    /// Makes the documents of stages that tell of the server, in pipelines inside of other stages.
    pub server_rows: Option<Weak<dyn ServerRows>>,
    /// Pipelines are not rewritten.
    pub as_written: bool,
    /// Runs the plan at this place of those that were considered and not chosen: tests compare what
    /// all of them answer.
    pub considered: Option<usize>,
    /// Threads that a long execution may use, its own among them, while they are free.
    pub threads_max: usize,
    /// Documents after which a scan counts as long.
    pub long_scan_docs: u64,
}

impl ExecParams {
    /// Nothing but an interrupt and the time.
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
            as_written: false,
            considered: None,
            threads_max: processors(),
            long_scan_docs: LONG_SCAN_DOCS,
        }
    }
}

impl ExecParams {
    /// Returns the documents of a stage that tells of the server.
    ///
    /// # Errors
    /// What the stage says of its collection.
    pub(crate) fn rows_of_server(&self, stage: &Served) -> Result<Vec<DocBuf>> {
        match self.server_rows.as_ref().and_then(Weak::upgrade) {
            Some(server) => server.rows(stage, self.api_strict),
            None => Err(Error::internal(format!("no server gives the rows of {}", stage.name))),
        }
    }
}

/// How much a batch may hold.
#[derive(Debug, Clone, Copy)]
pub struct BatchLimits {
    /// The largest number of documents.
    pub docs_max: usize,
    /// The batch ends before the document that would pass this sum of bytes, but holds at least
    /// one.
    pub bytes_max: usize,
}

impl BatchLimits {
    /// Returns the limits of a batch of at most `docs_max` documents and 16 MiB, the size of a reply.
    pub fn docs(docs_max: usize) -> Self {
        BatchLimits { docs_max, bytes_max: 16 * 1024 * 1024 }
    }
}

/// What a batch ended with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchEnd {
    /// Documents in the batch.
    pub docs: usize,
    /// Nothing follows: no cursor is needed.
    pub exhausted: bool,
}

/// Returns the number of processors of the machine.
pub(crate) fn processors() -> usize {
    *PROCESSORS
}
