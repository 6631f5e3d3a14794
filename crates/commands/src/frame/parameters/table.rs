//! The table of server parameters. A parameter is in it if the server reads it, or if tools read it
//! and its value is true for this server.

use crate::frame::parameters::log_verbosity;

/// The names of the parameters that every operation reads (`cached.rs`).
pub const SLOW_MS: &str = "slowMs";
pub const REQUIRE_API_VERSION: &str = "requireApiVersion";
pub const DISK_BY_DEFAULT: &str = "allowDiskUseByDefault";
pub const NO_TABLE_SCAN: &str = "notablescan";
pub const STAGE_BYTES: &str = "internalQueryMaxBlockingSortMemoryUsageBytes";
pub const GROUP_BYTES: &str = "internalDocumentSourceGroupMaxMemoryBytes";

/// The parameter that also writes allowed commands to the audit log.
pub const AUDIT_SUCCESS: &str = "auditAuthorizationSuccess";

/// The schema version of stored users and roles: MongoDB's, with SCRAM-SHA-256.
pub const AUTH_SCHEMA_VERSION: i32 = 5;

/// The parameter with the mechanisms that logins may use.
pub const AUTHENTICATION_MECHANISMS: &str = "authenticationMechanisms";

/// The parameter with the text that `hello` shows for management tools.
pub const DESCRIPTOR: &str = "automationServiceDescriptor";
pub const TEXT_BYTES_MAX: usize = 64;

/// The memory for the entries of an index build.
pub const BUILD_MEGABYTES: &str = "maxIndexBuildMemoryUsageMegabytes";

/// The memory and the share of a core of the laboratory (`laboratory`).
pub const LABORATORY_MEGABYTES: &str = "quireLaboratoryMemoryMegabytes";
pub const LABORATORY_PERCENT: &str = "quireLaboratoryCorePercent";

/// The history of `serverStatus`: whether it is kept, how often, and its size.
pub const HISTORY_ENABLED: &str = "diagnosticDataCollectionEnabled";
pub const HISTORY_PERIOD_MS: &str = "diagnosticDataCollectionPeriodMillis";
pub const HISTORY_MEGABYTES: &str = "diagnosticDataCollectionDirectorySizeMB";

/// Whether lines of the log are without the values of commands and documents (`cached.rs`).
pub const REDACT_LOG: &str = "redactClientLogData";

/// Whether points of time-series collections are packed.
pub const TIME_SERIES_CLOSING: &str = "quireTimeSeriesClosing";

/// How long past states are kept.
pub const HISTORY_SECS: &str = "minSnapshotHistoryWindowInSeconds";

/// When a parameter may be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settable {
    /// At the start and later.
    Always,
    /// At the start only.
    Startup,
    /// Never: it describes the server.
    Never,
}

/// The type, default and range of a parameter.
#[derive(Clone, Copy, Debug)]
pub enum ParameterKind {
    /// A boolean with this default.
    Bool(bool),
    /// A 32-bit number: default, minimum and maximum.
    Int(i32, i32, i32),
    /// A 64-bit number: default, minimum and maximum.
    Long(i64, i64, i64),
    /// A text with this default.
    Text(&'static str),
    /// A list of texts; the default has all that are allowed.
    Texts(&'static [&'static str]),
    /// The levels of the log's components.
    LogLevels,
}

/// One server parameter.
pub struct Parameter {
    /// The name that MongoDB gives it.
    pub name: &'static str,
    /// The type, the default and the range.
    pub default: ParameterKind,
    /// When it may be set.
    pub settable: Settable,
    /// One sentence that says what it sets.
    pub summary: &'static str,
}

const fn row(
    name: &'static str,
    default: ParameterKind,
    settable: Settable,
    summary: &'static str,
) -> Parameter {
    Parameter { name, default, settable, summary }
}

use ParameterKind::{Bool, Int, LogLevels, Long, Text, Texts};
use Settable::{Always, Never, Startup};

/// Every parameter, by name.
pub static PARAMETERS: &[Parameter] = &[
    row(
        DISK_BY_DEFAULT,
        Bool(true),
        Always,
        "Whether blocking stages may use the disk if a command does not set allowDiskUse.",
    ),
    row(
        AUDIT_SUCCESS,
        Bool(false),
        Always,
        "Whether the audit log also records allowed commands, not only refused ones.",
    ),
    row(
        "authSchemaVersion",
        Int(AUTH_SCHEMA_VERSION, AUTH_SCHEMA_VERSION, AUTH_SCHEMA_VERSION),
        Never,
        "The schema version of stored users and roles.",
    ),
    row(
        AUTHENTICATION_MECHANISMS,
        Texts(&["SCRAM-SHA-1", "SCRAM-SHA-256", "MONGODB-X509"]),
        Startup,
        "The mechanisms that logins may use. Others are not shown and not accepted, and a new user gets no credential for them.",
    ),
    row(
        DESCRIPTOR,
        Text(""),
        Always,
        "A text of at most 64 bytes that hello shows, for management tools.",
    ),
    row(
        "clientCursorMonitorFrequencySecs",
        Int(4, i32::MIN, i32::MAX),
        Always,
        "The interval of the search for idle cursors.",
    ),
    row(
        "cursorTimeoutMillis",
        Long(600_000, i64::MIN, i64::MAX),
        Always,
        "The idle time after which a cursor is closed.",
    ),
    row(
        HISTORY_MEGABYTES,
        Int(32, 4, 1_000_000),
        Always,
        "The size of the history of serverStatus on disk; the oldest samples are removed.",
    ),
    row(
        HISTORY_ENABLED,
        Bool(true),
        Always,
        "Whether serverStatus is sampled into a history on disk.",
    ),
    row(
        HISTORY_PERIOD_MS,
        Int(10_000, 100, 3_600_000),
        Always,
        "The interval of the samples of that history.",
    ),
    row("enableTestCommands", Bool(false), Startup, "Enables test commands."),
    row(
        "featureCompatibilityVersion",
        Text("8.2"),
        Never,
        "The version of MongoDB that setFeatureCompatibilityVersion has set. Nothing depends on it.",
    ),
    row(
        "internalQueryExecYieldIterations",
        Int(1000, i32::MIN, i32::MAX),
        Always,
        "Documents between two checks for interruption.",
    ),
    row(
        "internalQueryFacetBufferSizeBytes",
        Int(104_857_600, 1, i32::MAX),
        Always,
        "Memory limit of $facet.",
    ),
    row(STAGE_BYTES, Int(104_857_600, 0, i32::MAX), Always, "Memory limit of a sort."),
    row(GROUP_BYTES, Long(104_857_600, 1, i64::MAX), Always, "Memory limit of $group."),
    row(
        "localLogicalSessionTimeoutMinutes",
        Int(30, 1, i32::MAX),
        Startup,
        "The idle time after which a session ends.",
    ),
    row(
        log_verbosity::NAME,
        LogLevels,
        Always,
        "The level of each component of the log; from 1 on, command and write log every operation.",
    ),
    row(
        log_verbosity::DEFAULT_LEVEL,
        Int(0, 0, 5),
        Always,
        "The level of log components without a level of their own.",
    ),
    row(
        BUILD_MEGABYTES,
        Int(200, 50, i32::MAX),
        Always,
        "The memory for the entries of an index build; more entries are sorted on disk.",
    ),
    row(
        "maxTransactionLockRequestTimeoutMillis",
        Int(5, i32::MIN, i32::MAX),
        Always,
        "How long a statement of a transaction waits for a change of the catalog; a negative value means no limit.",
    ),
    row(
        HISTORY_SECS,
        Int(60, 0, i32::MAX),
        Always,
        "How far in the past a snapshot read may be, if not much is written.",
    ),
    row(NO_TABLE_SCAN, Bool(false), Always, "Refuses queries without an index."),
    row("quiet", Bool(false), Always, "Logs less."),
    row(
        LABORATORY_PERCENT,
        Int(50, 1, 100),
        Always,
        "The share of one core that the laboratory of explain's whatIf and of adviseIndexes may use. Quire's own parameter.",
    ),
    row(
        LABORATORY_MEGABYTES,
        Int(256, 1, i32::MAX),
        Always,
        "The memory of the laboratory of explain's whatIf and of adviseIndexes, at most a quarter of the memory of all requests. Quire's own parameter.",
    ),
    row(
        TIME_SERIES_CLOSING,
        Bool(true),
        Always,
        "Packs points of time-series collections into buckets, in the background and by compact. Quire's own parameter.",
    ),
    row(
        REDACT_LOG,
        Bool(false),
        Always,
        "Whether the log shows ### in place of the values of commands and documents.",
    ),
    row(REQUIRE_API_VERSION, Bool(false), Always, "Refuses commands without apiVersion."),
    row("scramIterationCount", Int(10_000, 5000, i32::MAX), Always, "Iterations of SCRAM-SHA-1."),
    row(
        "scramSHA256IterationCount",
        Int(15_000, 5000, i32::MAX),
        Always,
        "Iterations of SCRAM-SHA-256.",
    ),
    row(SLOW_MS, Long(100, -1, i64::MAX), Always, "Operations that take longer are logged."),
    row(
        "transactionLifetimeLimitSeconds",
        Int(60, 1, i32::MAX),
        Always,
        "How long a transaction may be open.",
    ),
    row(
        "ttlIndexDeleteTargetDocs",
        Long(50_000, 0, i64::MAX),
        Always,
        "The documents of an index after which expiry turns to the next index; 0 for no limit.",
    ),
    row(
        "ttlIndexDeleteTargetTimeMS",
        Long(1000, 0, i64::MAX),
        Always,
        "The time after which expiry turns to the next index; 0 for no limit.",
    ),
    row(
        "ttlMonitorBatchDeletes",
        Bool(true),
        Always,
        "Whether expired documents are deleted many in a commit, or each in a commit of its own.",
    ),
    row("ttlMonitorEnabled", Bool(true), Always, "Removes expired documents."),
    row(
        "ttlMonitorSleepSecs",
        Int(60, 1, i32::MAX),
        Always,
        "The interval of the removal of expired documents.",
    ),
    row(
        "ttlMonitorSubPassTargetSecs",
        Int(60, 0, i32::MAX),
        Always,
        "The time after which a pass of expiry looks again for indexes with expired documents.",
    ),
];
