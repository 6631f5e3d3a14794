//! Limits that more than one module keeps to, with the error that exceeding each gives. A limit of
//! one module stands there; docs/limits.md has those of the server.

use quire_error::ErrorCode;

/// A document that a user stores: 16 MiB (BSONObjectTooLarge 10334, on the wire also InvalidBSON).
pub const USER_DOCUMENT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// A document inside the server (a command, a reply, a change event): 16 MiB + 16 KiB (10334).
pub const INTERNAL_DOCUMENT_BYTES_MAX: usize = USER_DOCUMENT_BYTES_MAX + 16 * 1024;
/// A message on the wire: the connection is closed (ProtocolError).
pub const MESSAGE_BYTES_MAX: usize = 48_000_000;
/// Write statements in one command (InvalidLength 16).
pub const WRITE_BATCH_MAX: usize = 100_000;
/// Documents and arrays nested in one that a client sends, that one not counted (Overflow 15).
pub const DEPTH_MAX: usize = 200;
/// Nested documents and arrays that an update or a pipeline may build (Overflow 15): what a client
/// may send back plus the levels that a reply wraps around it.
pub const STORED_DEPTH_MAX: usize = 180;
/// Bytes of "database.collection" (InvalidNamespace 73).
pub const NAMESPACE_BYTES_MAX: usize = 255;
/// Indexes of a collection, `_id` included (CannotCreateIndex 67).
pub const INDEXES_MAX: usize = 64;
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
/// Nested operators of a filter (BadValue 2).
pub const FILTER_DEPTH_MAX: usize = 100;
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
