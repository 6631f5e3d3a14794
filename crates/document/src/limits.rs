//! Limits that several modules use, with the error for exceeding each. A limit of only one module
//! is in that module; docs/limits.md lists those of the server.

/// The largest document that a user stores, in bytes: 16 MiB (BSONObjectTooLarge 10334, on the wire
/// also InvalidBSON).
pub const USER_DOCUMENT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The longest password of a user, in bytes (BadValue 2). Normalising a password takes time, and its
/// user waits for it.
pub const PASSWORD_BYTES_MAX: usize = 64 * 1024;
/// The largest document inside the server (a command, a reply, a change event), in bytes: 16 MiB +
/// 16 KiB (10334).
pub const INTERNAL_DOCUMENT_BYTES_MAX: usize = USER_DOCUMENT_BYTES_MAX + 16 * 1024;
/// The largest message on the wire, in bytes; a larger one closes the connection (ProtocolError).
pub const MESSAGE_BYTES_MAX: usize = 48_000_000;
/// The most write statements in one command (InvalidLength 16).
pub const WRITE_BATCH_MAX: usize = 100_000;
/// The most levels of documents and arrays nested within a client's document, which itself is not
/// counted (Overflow 15).
pub const DEPTH_MAX: usize = 200;
/// The most levels of documents and arrays that an update or a pipeline may build (Overflow 15). A
/// client can send such a document back, with the levels that a reply adds around it.
pub const STORED_DEPTH_MAX: usize = 180;
/// The longest "database.collection" in bytes (InvalidNamespace 73).
pub const NAMESPACE_BYTES_MAX: usize = 255;
/// The most indexes of a collection, with `_id` (CannotCreateIndex 67).
pub const INDEXES_MAX: usize = 64;
/// The most fields of a compound index (Location13103).
pub const INDEX_FIELDS_MAX: usize = 32;
/// The most components of a dotted path (Overflow 15).
pub const PATH_COMPONENTS_MAX: usize = 200;
/// The most views on top of each other (ViewDepthLimitExceeded 165).
pub const VIEW_DEPTH_MAX: usize = 20;
/// The largest total size of the stages of a view and of all views below it, in bytes
/// (ViewPipelineMaxSizeExceeded 195).
pub const VIEW_PIPELINE_BYTES_MAX: usize = 16_000_000;
/// The most levels of pipelines nested in stages (MaxSubPipelineDepthExceeded 232).
pub const SUB_PIPELINE_DEPTH_MAX: usize = 20;
/// The most levels of nested operators in a filter (BadValue 2).
pub const FILTER_DEPTH_MAX: usize = 100;
/// The most conditions, operands, fields and stages of a request, without the values in lists of
/// constants, but with the regular expressions of `$in` (BadValue 2). MongoDB has no such limit. It
/// bounds the steps of compiling, planning and freeing a request that do not check the interrupt.
pub const REQUEST_PARTS_MAX: u32 = 250_000;
/// The most logical sessions (TooManyLogicalSessions 261).
pub const SESSIONS_MAX: usize = 1_000_000;
/// The most keys of one document in one index (CannotBuildIndexKeys 201).
pub const KEYS_PER_DOCUMENT_MAX: usize = 100_000;
/// The largest total size of the keys of one document in one index, in bytes, before long keys are
/// truncated (CannotBuildIndexKeys 201).
pub const KEY_BYTES_PER_DOCUMENT_MAX: usize = 512 * 1024 * 1024;
/// The largest total size of the paths of one document in one wildcard index, in bytes. Elements of
/// an array share one path (CannotBuildIndexKeys 201).
pub const WILDCARD_PATHS_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The most fields of a sort (MongoDB's limit, 13103 beyond it).
pub const SORT_KEYS_MAX: usize = 32;

/// The limits of a validation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most bytes of the whole document.
    pub bytes_max: usize,
    /// The most levels of documents and arrays, with the outermost.
    pub depth_max: usize,
}

impl Limits {
    /// The limits of a command, or of a document in a message.
    pub const WIRE: Limits =
        Limits { bytes_max: INTERNAL_DOCUMENT_BYTES_MAX, depth_max: DEPTH_MAX + 1 };
}

impl Default for Limits {
    fn default() -> Self {
        Limits::WIRE
    }
}
