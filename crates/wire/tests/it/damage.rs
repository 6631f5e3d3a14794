//! Randomly damaged messages: decoding never panics, and its memory stays bounded.

use crate::request;
use quire_document::doc;
use quire_document::testing::Generator;
use quire_wire::client::Request;
use quire_wire::limits::HEADER_BYTES;
use quire_wire::{Compressor, Flags, Header, OpCode, expand, parse};

fn receive(bytes: &[u8]) {
    let Some(first) = bytes.first_chunk::<HEADER_BYTES>() else { return };
    let Ok(mut header) = Header::parse(first) else { return };
    let mut out = Vec::new();
    let mut message = bytes;
    if header.opcode == OpCode::Compressed {
        match expand(&header, bytes, &mut out) {
            Ok((inner, _)) => (header, message) = (inner, out.as_slice()),
            Err(_) => return,
        }
    }
    if let Ok(incoming) = parse(&header, message) {
        drop(format!("{incoming:?}"));
    }
}

#[test]
fn damaged_messages_never_panic() {
    let mut random = Generator::new(1);
    let mut below = |end: usize| random.below(end as u64) as usize;
    let compressors =
        [None, Some(Compressor::Snappy), Some(Compressor::Zlib), Some(Compressor::Zstd)];
    for round in 0..5_000 {
        let sent = Request {
            flags: Flags([0, 0, 1, 2, 1 << 16][round % 5]),
            compressor: compressors[round % 4],
            sequences: vec![("documents".into(), vec![doc! { "a": 1, "b": [1, "x"] }; round % 3])],
            ..request(doc! { "insert": "c", "$db": "test", "n": { "deep": { "er": true } } })
        };
        let mut bytes = sent.to_bytes().unwrap();
        for _ in 0..=below(4) {
            let at = below(bytes.len());
            match below(4) {
                0 => bytes[at] = below(256) as u8,
                1 => bytes[at] ^= 1 << below(8),
                2 => bytes.truncate(at.max(1)),
                _ => bytes.insert(at, below(256) as u8),
            }
        }
        receive(&bytes);
    }
}

#[test]
fn every_prefix_of_a_message_is_refused() {
    let bytes = request(doc! { "ping": 1, "$db": "admin" }).to_bytes().unwrap();
    for end in HEADER_BYTES..bytes.len() {
        let header = Header::parse(bytes.first_chunk().unwrap()).unwrap();
        assert!(parse(&header, &bytes[..end]).is_err(), "{end}");
    }
}
