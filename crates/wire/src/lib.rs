//! MongoDB's wire protocol: decodes and encodes messages, without I/O.
//!
//! A message is decoded in three steps, and each step checks its limits before it allocates:
//! [`Header::parse`] reads the first 16 bytes, [`expand`] decompresses an OP_COMPRESSED, and
//! [`parse`] finds the documents. Documents are not copied: an [`Incoming`] borrows from the
//! message's bytes. [`Reply::frame`] encodes a reply. [`client`] is the client's side, for tests,
//! tools and benchmarks.

pub mod client;
mod compressed;
mod cursor;
mod header;
pub mod limits;
mod malformed;
mod msg;
mod query;
mod reply;

pub use compressed::{Compressor, expand, expanded_bytes};
pub use header::{Header, OpCode};
pub use malformed::Malformed;
pub use msg::{Flags, Msg, Sequence};
pub use query::Query;
pub use reply::{Frame, Reply};

/// A decompressed message.
#[derive(Debug)]
pub enum Incoming<'a> {
    /// OP_MSG, which carries every command of current drivers.
    Msg(Msg<'a>),
    /// OP_QUERY with a handshake command.
    Query(Query<'a>),
}

/// Finds the documents of a whole message, its header included.
///
/// # Errors
/// [`Malformed`] says what is wrong and whether the client gets a reply.
pub fn parse<'a>(header: &Header, message: &'a [u8]) -> Result<Incoming<'a>, Malformed> {
    match header.opcode {
        OpCode::Msg => msg::parse(message).map(Incoming::Msg),
        OpCode::Query => query::parse(message).map(Incoming::Query),
        OpCode::Compressed => Err(Malformed::hang_up("OP_COMPRESSED inside OP_COMPRESSED")),
        OpCode::GetMore
        | OpCode::Insert
        | OpCode::Update
        | OpCode::Delete
        | OpCode::KillCursors => Err(query::removed(header.opcode)),
        OpCode::Reply => Err(Malformed::hang_up("OP_REPLY is not a request")),
    }
}
