//! The client's side: encodes requests and decodes replies, for tests, tools and benchmarks.

use crate::compressed::{Compressor, pack};
use crate::cursor::Cursor;
use crate::limits::HEADER_BYTES;
use crate::{Flags, Header, Malformed, OpCode, expand, msg};
use quire_document::{Doc, DocBuf};
use quire_error::Error;

/// A request before it is encoded.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The number that the reply repeats in its `responseTo`.
    pub request_id: i32,
    /// The flag bits. With [`Flags::CHECKSUM_PRESENT`] the message ends with its checksum.
    pub flags: Flags,
    /// The document of the command.
    pub body: DocBuf,
    /// The document sequences, each with the name of the argument that it is.
    pub sequences: Vec<(String, Vec<DocBuf>)>,
    /// The compressor, if the request is sent as OP_COMPRESSED.
    pub compressor: Option<Compressor>,
}

/// A decoded reply.
#[derive(Clone, Debug)]
pub struct Response {
    /// The header of the message, after decompression.
    pub header: Header,
    /// The flags of an OP_MSG; empty for an OP_REPLY.
    pub flags: Flags,
    /// The reply document.
    pub body: DocBuf,
    /// The compressor that the server used, if any.
    pub compressor: Option<Compressor>,
}

impl Request {
    /// Returns an OP_MSG with this body, without flags, sequences and compression.
    pub fn new(request_id: i32, body: DocBuf) -> Self {
        Request { request_id, body, ..Request::default() }
    }

    /// Encodes the message.
    ///
    /// # Errors
    /// As [`Compressor::compress`].
    pub fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        let mut content = self.flags.0.to_le_bytes().to_vec();
        content.push(0);
        content.extend_from_slice(self.body.as_bytes());
        for (name, documents) in &self.sequences {
            let size = documents.iter().map(|doc| doc.as_bytes().len()).sum::<usize>();
            content.push(1);
            content.extend_from_slice(&((4 + name.len() + 1 + size) as i32).to_le_bytes());
            content.extend_from_slice(name.as_bytes());
            content.push(0);
            documents.iter().for_each(|doc| content.extend_from_slice(doc.as_bytes()));
        }
        let checksum = self.flags.has(Flags::CHECKSUM_PRESENT);
        let length = HEADER_BYTES + content.len() + if checksum { 4 } else { 0 };
        let header = Header {
            length: length as u32,
            request_id: self.request_id,
            response_to: 0,
            opcode: OpCode::Msg,
        };
        if checksum {
            let sum = crc32c::crc32c_append(crc32c::crc32c(&header.to_bytes()), &content);
            content.extend_from_slice(&sum.to_le_bytes());
        }
        let mut out = Vec::new();
        match self.compressor {
            Some(compressor) => pack(&header, &[&content], compressor, &mut out)?,
            None => {
                out.extend_from_slice(&header.to_bytes());
                out.extend_from_slice(&content);
            }
        }
        Ok(out)
    }
}

/// Encodes a handshake as OP_QUERY, which drivers send before they know the server.
pub fn legacy_query(request_id: i32, namespace: &str, query: Doc<'_>) -> Vec<u8> {
    let length = HEADER_BYTES + 4 + namespace.len() + 1 + 8 + query.len();
    let header =
        Header { length: length as u32, request_id, response_to: 0, opcode: OpCode::Query };
    let mut out = header.to_bytes().to_vec();
    out.extend_from_slice(&0i32.to_le_bytes());
    out.extend_from_slice(namespace.as_bytes());
    out.push(0);
    out.extend_from_slice(&0i32.to_le_bytes());
    out.extend_from_slice(&(-1i32).to_le_bytes());
    out.extend_from_slice(query.as_bytes());
    out
}

/// Decodes a whole reply message.
///
/// # Errors
/// [`Malformed`] as for requests; a wrong checksum is an error too.
pub fn parse_response(message: &[u8]) -> Result<Response, Malformed> {
    let first = message.first_chunk::<HEADER_BYTES>();
    let mut header =
        Header::parse(first.ok_or_else(|| Malformed::hang_up("shorter than a header"))?)?;
    let mut expanded = Vec::new();
    let (mut message, mut compressor) = (message, None);
    if header.opcode == OpCode::Compressed {
        let (inner, used) = expand(&header, message, &mut expanded)?;
        (header, compressor, message) = (inner, Some(used), expanded.as_slice());
    }
    if header.opcode == OpCode::Reply {
        let mut cursor = Cursor::new(message);
        cursor.take(HEADER_BYTES + 20)?;
        let body = cursor.document()?.to_owned();
        return Ok(Response { header, flags: Flags::default(), body, compressor });
    }
    let parsed = msg::parse(message)?;
    Ok(Response { header, flags: parsed.flags, body: parsed.body.to_owned(), compressor })
}
