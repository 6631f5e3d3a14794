//! Replies: an OP_MSG with the checksum and compression of its request, or an OP_REPLY to an
//! OP_QUERY.

use crate::compressed::{Compressor, pack};
use crate::limits::{CHECKSUM_BYTES, COMPRESSED_PREFIX_BYTES, HEADER_BYTES};
use crate::{Flags, Header, OpCode};
use quire_error::Error;

/// The flag `AwaitCapable`, set in every OP_REPLY.
const AWAIT_CAPABLE: i32 = 8;
/// Size of the longest head in bytes: the header and the 20 bytes of OP_REPLY before its document.
const HEAD_BYTES_MAX: usize = HEADER_BYTES + 20;

/// How a reply is encoded. Most fields follow from the request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// The server's number for this message.
    pub request_id: i32,
    /// The `request_id` of the request.
    pub response_to: i32,
    /// The request was an OP_QUERY, so the reply is an OP_REPLY.
    pub legacy: bool,
    /// The request had a checksum, so the reply has one.
    pub checksum: bool,
    /// The request's compressor, which the reply uses too.
    pub compressor: Option<Compressor>,
    /// Another reply follows without another request.
    pub more_to_come: bool,
}

/// An encoded reply: its parts in order. The document is borrowed, not copied.
#[derive(Debug)]
pub struct Frame<'a> {
    head: [u8; HEAD_BYTES_MAX],
    head_len: usize,
    content: &'a [u8],
    tail: [u8; CHECKSUM_BYTES],
    tail_len: usize,
    /// The bytes that were compressed.
    unpacked: Option<usize>,
}

impl Reply {
    /// Encodes the head and the checksum of the reply with this document. `scratch` keeps the bytes
    /// of a compressed reply.
    ///
    /// # Errors
    /// As [`Compressor::compress`].
    pub fn frame<'a>(
        &self,
        document: &'a [u8],
        scratch: &'a mut Vec<u8>,
    ) -> Result<Frame<'a>, Error> {
        let mut frame = Frame {
            head: [0; HEAD_BYTES_MAX],
            head_len: 0,
            content: document,
            tail: [0; CHECKSUM_BYTES],
            tail_len: 0,
            unpacked: None,
        };
        if self.legacy {
            self.legacy_head(&mut frame);
        } else {
            self.msg_head(&mut frame);
        }
        if let Some(compressor) = self.compressor {
            let header = self.header(&frame);
            let [head, content, tail] = frame.parts();
            let head = head.get(HEADER_BYTES..).unwrap_or_default();
            let unpacked = head.len() + content.len() + tail.len();
            pack(&header, &[head, content, tail], compressor, scratch)?;
            frame.unpacked = Some(unpacked);
            frame.head_len = 0;
            frame.tail_len = 0;
            frame.content = scratch;
        }
        Ok(frame)
    }

    fn msg_head(&self, frame: &mut Frame<'_>) {
        let flags = Flags::default()
            .with(Flags::CHECKSUM_PRESENT, self.checksum)
            .with(Flags::MORE_TO_COME, self.more_to_come);
        frame.tail_len = if self.checksum { CHECKSUM_BYTES } else { 0 };
        frame.head_len = HEADER_BYTES + 5;
        frame.set(0, &self.header(frame).to_bytes());
        frame.set(HEADER_BYTES, &flags.0.to_le_bytes());
        if self.checksum {
            let [head, content, _] = frame.parts();
            frame.tail = crc32c::crc32c_append(crc32c::crc32c(head), content).to_le_bytes();
        }
    }

    fn legacy_head(&self, frame: &mut Frame<'_>) {
        frame.head_len = HEAD_BYTES_MAX;
        frame.set(0, &self.header(frame).to_bytes());
        frame.set(HEADER_BYTES, &AWAIT_CAPABLE.to_le_bytes());
        frame.set(HEADER_BYTES + 16, &1i32.to_le_bytes());
    }

    fn header(&self, frame: &Frame<'_>) -> Header {
        Header {
            length: frame.len() as u32,
            request_id: self.request_id,
            response_to: self.response_to,
            opcode: if self.legacy { OpCode::Reply } else { OpCode::Msg },
        }
    }
}

impl Frame<'_> {
    /// Returns the parts in the order in which they are written; a part may be empty.
    pub fn parts(&self) -> [&[u8]; 3] {
        let head = self.head.get(..self.head_len).unwrap_or_default();
        let tail = self.tail.get(..self.tail_len).unwrap_or_default();
        [head, self.content, tail]
    }

    /// Returns the size of the whole message in bytes.
    pub fn len(&self) -> usize {
        self.head_len + self.content.len() + self.tail_len
    }

    /// Returns the bytes that were compressed and the bytes that they became, both without headers;
    /// `None` if the message is not compressed.
    pub fn compressed(&self) -> Option<(usize, usize)> {
        let became = self.content.len().saturating_sub(COMPRESSED_PREFIX_BYTES);
        self.unpacked.map(|bytes| (bytes, became))
    }

    /// Returns false: a message has at least its header.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn set(&mut self, at: usize, bytes: &[u8]) {
        if let Some(slot) = self.head.get_mut(at..at + bytes.len()) {
            slot.copy_from_slice(bytes);
        }
    }
}
