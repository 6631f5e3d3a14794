//! The 16 bytes in front of every message.

use crate::Malformed;
use crate::limits::{HEADER_BYTES, MESSAGE_BYTES_MAX};

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum OpCode {
    /// A reply to OP_QUERY.
    Reply = 1,
    /// Removed in MongoDB 5.1; has no reply.
    Update = 2001,
    /// Removed in MongoDB 5.1; has no reply.
    Insert = 2002,
    /// Only the handshake of some drivers uses it today.
    Query = 2004,
    /// Removed in MongoDB 5.1; the reply is an error.
    GetMore = 2005,
    /// Removed in MongoDB 5.1; has no reply.
    Delete = 2006,
    /// Removed in MongoDB 5.1; has no reply.
    KillCursors = 2007,
    /// Another message, compressed.
    Compressed = 2012,
    /// OP_MSG, which carries every command.
    Msg = 2013,
}

impl OpCode {
    /// Returns the kind with this number.
    pub const fn from_number(number: i32) -> Option<OpCode> {
        Some(match number {
            1 => OpCode::Reply,
            2001 => OpCode::Update,
            2002 => OpCode::Insert,
            2004 => OpCode::Query,
            2005 => OpCode::GetMore,
            2006 => OpCode::Delete,
            2007 => OpCode::KillCursors,
            2012 => OpCode::Compressed,
            2013 => OpCode::Msg,
            _ => return None,
        })
    }

    /// Returns the number on the wire.
    pub const fn number(self) -> i32 {
        self as i32
    }
}

/// A message's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Size of the whole message in bytes, with the header.
    pub length: u32,
    /// The number that the sender gave the message.
    pub request_id: i32,
    /// The `request_id` of the message that this one answers.
    pub response_to: i32,
    /// The kind of the message.
    pub opcode: OpCode,
}

impl Header {
    /// Reads a header. Checks opcode and length, so that the caller neither reads nor allocates
    /// anything for a message that the server would refuse.
    ///
    /// # Errors
    /// Always [`Malformed::HangUp`], because the start of the next message is unknown.
    pub fn parse(bytes: &[u8; HEADER_BYTES]) -> Result<Header, Malformed> {
        let number = |at: usize| {
            let field = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>());
            field.map_or(0, |field| i32::from_le_bytes(*field))
        };
        let opcode = OpCode::from_number(number(12))
            .ok_or_else(|| Malformed::hang_up(foreign_protocol(bytes)))?;
        let length = u32::try_from(number(0)).unwrap_or(0);
        if (length as usize) < HEADER_BYTES || length as usize > MESSAGE_BYTES_MAX {
            let text = format!(
                "message length {} is not between {HEADER_BYTES} and {MESSAGE_BYTES_MAX}",
                number(0)
            );
            return Err(Malformed::hang_up(text));
        }
        Ok(Header { length, request_id: number(4), response_to: number(8), opcode })
    }

    /// Encodes the header.
    pub fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        let fields = [self.length as i32, self.request_id, self.response_to, self.opcode.number()];
        for (slot, field) in bytes.chunks_exact_mut(4).zip(fields) {
            slot.copy_from_slice(&field.to_le_bytes());
        }
        bytes
    }

    /// Returns true if the first bytes of a connection are those of an HTTP request.
    pub fn is_http(bytes: &[u8; HEADER_BYTES]) -> bool {
        [&b"GET "[..], b"HEAD", b"POST"].iter().any(|method| bytes.starts_with(method))
    }

    /// Returns true if the first bytes of a connection are those of a TLS handshake.
    pub fn is_tls(bytes: &[u8; HEADER_BYTES]) -> bool {
        bytes.starts_with(&[0x16, 3])
    }
}

fn foreign_protocol(bytes: &[u8; HEADER_BYTES]) -> String {
    if Header::is_tls(bytes) {
        "the client speaks TLS, which this server was not started with".to_owned()
    } else if Header::is_http(bytes) {
        "the client speaks HTTP".to_owned()
    } else {
        "the message has an unknown opcode".to_owned()
    }
}
