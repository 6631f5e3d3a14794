//! Every limit of the protocol, with MongoDB's value.

/// Bytes of a message's header.
pub const HEADER_BYTES: usize = 16;

/// The largest message, header included (`maxMessageSizeBytes`); larger ones close the
/// connection, as in MongoDB.
pub const MESSAGE_BYTES_MAX: usize = 48_000_000;

/// Document sequences in one OP_MSG (`TooManyDocumentSequences`, 233): `bulkWrite` needs two.
pub const SEQUENCES_MAX: usize = 2;

/// Bytes of OP_COMPRESSED before the compressed data: header, opcode, size, compressor.
pub const COMPRESSED_PREFIX_BYTES: usize = HEADER_BYTES + 9;

/// Bytes of the checksum at the end of an OP_MSG that has one.
pub const CHECKSUM_BYTES: usize = 4;
