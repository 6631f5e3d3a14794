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
        "Whether blocking stages may go on on disk where a command does not say.",
    ),
    row(
        AUDIT_SUCCESS,
        Bool(false),
        Always,
        "The audit log tells of commands that were allowed too, not only of refused ones.",
    ),
    row(
        "authSchemaVersion",
        Int(AUTH_SCHEMA_VERSION, AUTH_SCHEMA_VERSION, AUTH_SCHEMA_VERSION),
        Never,
        "The version of the shape in which users and roles are stored.",
    ),
    row(
        AUTHENTICATION_MECHANISMS,
        Texts(&["SCRAM-SHA-1", "SCRAM-SHA-256", "MONGODB-X509"]),
        Startup,
        "Mechanisms that logins may use. The others are neither shown nor taken, and a new user gets no credential of them.",
    ),
    row(
        DESCRIPTOR,
        Text(""),
        Always,
        "A text of at most 64 bytes that hello shows, for who manages the server.",
    ),
    row(
        "clientCursorMonitorFrequencySecs",
        Int(4, i32::MIN, i32::MAX),
        Always,
        "Time between two looks for idle cursors.",
    ),
    row(
        "cursorTimeoutMillis",
        Long(600_000, i64::MIN, i64::MAX),
        Always,
        "Idle time after which a cursor is closed.",
    ),
    row("enableTestCommands", Bool(false), Startup, "Turns on commands for tests."),
    row(
        "featureCompatibilityVersion",
        Text("8.2"),
        Never,
        "The version whose behaviour is followed.",
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
        "Idle time after which a session ends.",
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
        "The level of the log's components that have none of their own.",
    ),
    row(
        BUILD_MEGABYTES,
        Int(200, 50, i32::MAX),
        Always,
        "Memory for the entries of an index build; what does not fit is sorted on disk.",
    ),
    row(
        "maxTransactionLockRequestTimeoutMillis",
        Int(5, i32::MIN, i32::MAX),
        Always,
        "How long a statement of a transaction waits behind a change of the catalog; below 0 without end.",
    ),
    row(
        HISTORY_SECS,
        Int(60, 0, i32::MAX),
        Always,
        "How long a snapshot read may ask for a time of the past, if not much is written.",
    ),
    row(NO_TABLE_SCAN, Bool(false), Always, "Refuses queries without an index."),
    row("quiet", Bool(false), Always, "Logs less."),
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
    row("ttlMonitorEnabled", Bool(true), Always, "Removes expired documents."),
    row("ttlMonitorSleepSecs", Int(60, 1, i32::MAX), Always, "Time between two removals."),
];
