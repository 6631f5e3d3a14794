//! Every limit that MongoDB has, with its value and the error that exceeding it gives.

use quire_error::ErrorCode;

/// A document that a user stores: 16 MiB (BSONObjectTooLarge 10334, on the wire also InvalidBSON).
pub const USER_DOCUMENT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// A document inside the server (a command, a reply, a change event): 16 MiB + 16 KiB (10334).
pub const INTERNAL_DOCUMENT_BYTES_MAX: usize = USER_DOCUMENT_BYTES_MAX + 16 * 1024;
/// A message on the wire: the connection is closed (ProtocolError).
pub const MESSAGE_BYTES_MAX: usize = 48_000_000;
/// Write statements in one command (InvalidLength 16).
pub const WRITE_BATCH_MAX: usize = 100_000;
/// Documents in a first batch unless `batchSize` says otherwise.
pub const FIRST_BATCH_DEFAULT: usize = 101;
/// Documents and arrays nested in one that a client sends, that one not counted (Overflow 15).
pub const DEPTH_MAX: usize = 200;
/// Nested documents and arrays that an update or a pipeline may build (Overflow 15): what a client
/// may send back plus the levels that a reply wraps around it.
pub const STORED_DEPTH_MAX: usize = 180;
/// Bytes of "database.collection" (InvalidNamespace 73).
pub const NAMESPACE_BYTES_MAX: usize = 255;
/// Bytes of a database's name; 64 with the terminator (InvalidNamespace 73).
pub const DATABASE_NAME_BYTES_MAX: usize = 63;
/// Indexes of a collection, `_id` included (CannotCreateIndex 67).
pub const INDEXES_MAX: usize = 64;
/// Text indexes of a collection (CannotCreateIndex 67).
pub const TEXT_INDEXES_MAX: usize = 1;
/// Fields of a compound index (Location13103).
pub const INDEX_FIELDS_MAX: usize = 32;
/// Components of a dotted path (Overflow 15).
pub const PATH_COMPONENTS_MAX: usize = 200;
/// Views that stand on views (ViewDepthLimitExceeded 165).
pub const VIEW_DEPTH_MAX: usize = 20;
/// Bytes of the stages of a view and of all views below it (ViewPipelineMaxSizeExceeded 195).
pub const VIEW_PIPELINE_BYTES_MAX: usize = 16_000_000;
/// Pipelines nested in stages (MaxSubPipelineDepthExceeded 232).
pub const SUB_PIPELINE_DEPTH_MAX: usize = 20;
/// Stages of a pipeline (FailedToParse 9; `internalPipelineLengthLimit`).
pub const PIPELINE_STAGES_MAX: usize = 1000;
/// Nested operators of a filter (BadValue 2).
pub const FILTER_DEPTH_MAX: usize = 100;
/// Memory of a blocking stage before it spills: 100 MiB
/// (QueryExceededMemoryLimitNoDiskUseAllowed 292).
pub const STAGE_MEMORY_BYTES_MAX: usize = 100 * 1024 * 1024;
/// Memory of `$push`, `$addToSet` and their like in `$group` (ExceededMemoryLimit 146).
pub const ACCUMULATOR_MEMORY_BYTES_MAX: usize = 100 * 1024 * 1024;
/// Memory of `$graphLookup` (Location40099).
pub const GRAPH_LOOKUP_MEMORY_BYTES_MAX: usize = 100 * 1024 * 1024;
/// Elements that `$range` may make: 100 MiB of memory (ExceededMemoryLimit 146).
pub const RANGE_MEMORY_BYTES_MAX: usize = 100 * 1024 * 1024;
/// Bytes of a regular expression's pattern (Location51091).
pub const REGEX_BYTES_MAX: usize = 32_764;
/// Bytes of the client's metadata in `hello` (ClientMetadataDocumentTooLarge 185).
pub const CLIENT_METADATA_BYTES_MAX: usize = 512;
/// Bytes of `application.name` in it (ClientMetadataAppNameTooLarge 184).
pub const APPLICATION_NAME_BYTES_MAX: usize = 128;
/// Documents of a capped collection: below 2^31 (BadValue 2).
pub const CAPPED_DOCUMENTS_MAX: u64 = 1 << 31;
/// Bytes of a capped collection: 1 PiB (BadValue 2).
pub const CAPPED_BYTES_MAX: u64 = 1 << 50;
/// Seconds after which a TTL index removes a document fit an int32 (CannotCreateIndex 67).
pub const TTL_SECONDS_MAX: i64 = i32::MAX as i64;
/// A transaction's lifetime (TransactionExceededLifetimeLimitSeconds 290).
pub const TRANSACTION_LIFETIME_SECONDS: u64 = 60;
/// How long a cursor lives idle (CursorNotFound 43).
pub const CURSOR_TIMEOUT_MS: u64 = 600_000;
/// How long a logical session lives idle (CursorNotFound 43, NoSuchTransaction 251).
pub const SESSION_TIMEOUT_MINUTES: u64 = 30;
/// Logical sessions (TooManyLogicalSessions 261).
pub const SESSIONS_MAX: usize = 1_000_000;
/// Keys that one document gives one index (CannotBuildIndexKeys 201).
pub const KEYS_PER_DOCUMENT_MAX: usize = 100_000;
/// Bytes of the keys that one document gives one index, before long keys are shortened
/// (CannotBuildIndexKeys 201).
pub const KEY_BYTES_PER_DOCUMENT_MAX: usize = 512 * 1024 * 1024;
/// Bytes of the paths that one document gives one wildcard index, those of array elements counted
/// once for each array (CannotBuildIndexKeys 201).
pub const WILDCARD_PATHS_BYTES_MAX: usize = 64 * 1024 * 1024;

/// What a validator of bytes allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the whole document.
    pub bytes_max: usize,
    /// Nested documents and arrays, the outermost counted.
    pub depth_max: usize,
}

impl Limits {
    /// A command or a document in a message.
    pub const WIRE: Limits =
        Limits { bytes_max: INTERNAL_DOCUMENT_BYTES_MAX, depth_max: DEPTH_MAX + 1 };
    /// A document that a user stores.
    pub const USER: Limits = Limits { bytes_max: USER_DOCUMENT_BYTES_MAX, depth_max: DEPTH_MAX };
}

impl Default for Limits {
    fn default() -> Self {
        Limits::WIRE
    }
}

/// The error that a document above its size gives.
pub const TOO_LARGE: ErrorCode = ErrorCode::BSONObjectTooLarge;
