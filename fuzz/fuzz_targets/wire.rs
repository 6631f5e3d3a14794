//! Any bytes as a message: decoding never panics, a decoded message has valid documents, and
//! replies can be decoded.
#![no_main]

use libfuzzer_sys::fuzz_target;
use quire_document::{limits::Limits, validate};
use quire_wire::client::parse_response;
use quire_wire::limits::HEADER_BYTES;
use quire_wire::{Compressor, Header, Incoming, OpCode, Reply, expand, parse};

fuzz_target!(|bytes: &[u8]| {
    // The length in the header is corrected, so that the bytes after it are decoded.
    let mut message = bytes.to_vec();
    let length = message.len() as u32;
    let Some(first) = message.first_chunk_mut::<HEADER_BYTES>() else { return };
    first[..4].copy_from_slice(&length.to_le_bytes());
    let opcodes = [OpCode::Msg, OpCode::Query, OpCode::Compressed, OpCode::GetMore];
    let opcode = opcodes[usize::from(first[12]) % opcodes.len()];
    first[12..].copy_from_slice(&opcode.number().to_le_bytes());
    let first = *first;
    let Ok(header) = Header::parse(&first) else { return };
    assert_eq!(header.to_bytes(), first);
    receive(header, &message);
    let _ = parse_response(&message);
});

fn receive(header: Header, message: &[u8]) {
    let mut out = Vec::new();
    let (header, message) = match header.opcode {
        OpCode::Compressed => match expand(&header, message, &mut out) {
            Ok((inner, _)) => (inner, out.as_slice()),
            Err(_) => return,
        },
        _ => (header, message),
    };
    match parse(&header, message) {
        Ok(Incoming::Msg(msg)) => {
            let documents = msg.sequences.iter().flat_map(|sequence| &sequence.documents);
            for document in documents.chain([&msg.body]) {
                assert!(validate(document.as_bytes(), &Limits::WIRE).is_ok());
            }
            let compressor = Compressor::from_number(message.len() as u8 % 4);
            let reply = Reply { checksum: true, compressor, ..Reply::default() };
            let mut scratch = Vec::new();
            let frame = reply.frame(msg.body.as_bytes(), &mut scratch).expect("it packs");
            let back = parse_response(&frame.parts().concat()).expect("it reads back");
            assert_eq!(back.body.as_bytes(), msg.body.as_bytes());
        }
        Ok(Incoming::Query(query)) => {
            assert!(validate(query.body.as_bytes(), &Limits::WIRE).is_ok());
        }
        Err(malformed) => drop(malformed.to_string()),
    }
}
