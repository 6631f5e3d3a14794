//! Every malformed form of a message, round trips, and random damage.

#![allow(clippy::unwrap_used)]

mod damage;
mod malformed;
mod round_trip;

use quire_document::DocBuf;
use quire_wire::client::Request;
use quire_wire::limits::HEADER_BYTES;
use quire_wire::{Header, Incoming, Malformed, Msg, OpCode};

/// Decodes a whole message as the server does.
fn receive(message: &[u8]) -> Result<Msg<'_>, Malformed> {
    let header = Header::parse(message.first_chunk::<HEADER_BYTES>().expect("a header"))?;
    assert_eq!(header.length as usize, message.len(), "tests send whole messages");
    match quire_wire::parse(&header, message)? {
        Incoming::Msg(msg) => Ok(msg),
        Incoming::Query(_) => panic!("an OP_QUERY"),
    }
}

/// Returns an OP_MSG with these flags and these bytes as its sections.
fn raw(flags: u32, sections: &[u8]) -> Vec<u8> {
    message(OpCode::Msg, &[&flags.to_le_bytes()[..], sections].concat())
}

/// Returns a message of any kind.
fn message(opcode: OpCode, content: &[u8]) -> Vec<u8> {
    let length = (HEADER_BYTES + content.len()) as u32;
    let header = Header { length, request_id: 7, response_to: 0, opcode };
    [&header.to_bytes()[..], content].concat()
}

/// Returns a section of kind 0.
fn body(doc: &DocBuf) -> Vec<u8> {
    [&[0][..], doc.as_bytes()].concat()
}

/// Returns a section of kind 1.
fn sequence(name: &str, docs: &[DocBuf]) -> Vec<u8> {
    let mut inner = name.as_bytes().to_vec();
    inner.push(0);
    docs.iter().for_each(|doc| inner.extend_from_slice(doc.as_bytes()));
    [&[1][..], &((inner.len() + 4) as i32).to_le_bytes(), &inner].concat()
}

/// Returns the code of an error that is sent as the reply.
fn answered(result: Result<Msg<'_>, Malformed>) -> i32 {
    match result {
        Err(Malformed::Answer(error)) => error.code().number(),
        other => panic!("expected an answer, got {other:?}"),
    }
}

/// Returns the code of an error that closes the connection.
fn hung_up(result: Result<Msg<'_>, Malformed>) -> i32 {
    match result {
        Err(Malformed::HangUp(error)) => error.code().number(),
        other => panic!("expected the end of the connection, got {other:?}"),
    }
}

fn request(doc: DocBuf) -> Request {
    Request::new(7, doc)
}
