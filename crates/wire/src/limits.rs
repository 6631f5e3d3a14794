//! All limits of the protocol, with MongoDB's values.

/// Size of a message's header in bytes.
pub const HEADER_BYTES: usize = 16;

/// Size of the largest message in bytes, with the header (`maxMessageSizeBytes`). The server closes
/// the connection on a larger one, as MongoDB does.
pub const MESSAGE_BYTES_MAX: usize = 48_000_000;

/// The most document sequences in one OP_MSG; `bulkWrite` needs two. More are an error 233
/// TooManyDocumentSequences.
pub const SEQUENCES_MAX: usize = 2;

/// Bytes before the compressed data of an OP_COMPRESSED: header, opcode, size, compressor.
pub const COMPRESSED_PREFIX_BYTES: usize = HEADER_BYTES + 9;

/// Size of the checksum that may end an OP_MSG, in bytes.
pub const CHECKSUM_BYTES: usize = 4;
