//! MongoDB's wire protocol: bytes to messages and back, without I/O.
//!
//! A message arrives in three steps, and each checks its limits before anything is allocated:
//! [`Header::parse`] looks at the first 16 bytes, [`expand`] unpacks OP_COMPRESSED, and
//! [`parse`] finds the documents. Nothing is copied: an [`Incoming`] borrows from the message's
//! bytes. The way back is [`Reply::frame`]. [`client`] is the client's side, for tests,
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

/// A message that is no OP_COMPRESSED any more.
#[derive(Debug)]
pub enum Incoming<'a> {
    /// OP_MSG: every command of every current driver.
    Msg(Msg<'a>),
    /// OP_QUERY with a handshake command.
    Query(Query<'a>),
}

/// Finds the documents of a whole message, its header included.
///
/// # Errors
/// [`Malformed`] says what is wrong and whether the client deserves an answer.
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
