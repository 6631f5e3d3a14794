//! Each side decodes what the other encoded, with every combination of flags and compressors.

use crate::{receive, request};
use quire_document::{DocBuf, doc};
use quire_wire::client::{Request, parse_response};
use quire_wire::{Compressor, Flags, Header, Incoming, OpCode, Reply, expand, parse};

const COMPRESSORS: [Option<Compressor>; 5] = [
    None,
    Some(Compressor::Noop),
    Some(Compressor::Snappy),
    Some(Compressor::Zlib),
    Some(Compressor::Zstd),
];

fn large() -> DocBuf {
    let text = "the quick brown fox ".repeat(5000);
    doc! { "insert": "c", "$db": "test", "text": text.as_str(), "end": true }
}

#[test]
fn replies_arrive() {
    for document in [doc! { "ok": 1.0 }, large()] {
        for compressor in COMPRESSORS {
            for (checksum, more_to_come) in
                [(false, false), (true, false), (false, true), (true, true)]
            {
                let (request_id, response_to) = (11, 12);
                let reply = Reply {
                    request_id,
                    response_to,
                    checksum,
                    more_to_come,
                    compressor,
                    legacy: false,
                };
                let mut scratch = Vec::new();
                let frame = reply.frame(document.as_bytes(), &mut scratch).unwrap();
                let bytes = frame.parts().concat();
                assert_eq!(bytes.len(), frame.len());
                let got = parse_response(&bytes).unwrap();
                assert_eq!(got.body, document);
                assert_eq!(got.compressor, compressor);
                assert_eq!((got.header.request_id, got.header.response_to), (11, 12));
                assert_eq!(got.flags.has(Flags::CHECKSUM_PRESENT), checksum);
                assert_eq!(got.flags.has(Flags::MORE_TO_COME), more_to_come);
            }
        }
    }
}

#[test]
fn legacy_replies_arrive() {
    for compressor in COMPRESSORS {
        let reply = Reply { legacy: true, response_to: 3, compressor, ..Reply::default() };
        let mut scratch = Vec::new();
        let document = doc! { "ismaster": true };
        let bytes = reply.frame(document.as_bytes(), &mut scratch).unwrap().parts().concat();
        let got = parse_response(&bytes).unwrap();
        assert_eq!(got.header.opcode, OpCode::Reply);
        assert_eq!(got.body, document);
        if compressor.is_none() {
            assert_eq!(bytes[16..20], 8i32.to_le_bytes(), "AwaitCapable");
            assert_eq!(bytes[32..36], 1i32.to_le_bytes(), "one document");
        }
    }
}

#[test]
fn requests_arrive() {
    for compressor in COMPRESSORS {
        for flags in
            [Flags(0), Flags::CHECKSUM_PRESENT, Flags::EXHAUST_ALLOWED, Flags::MORE_TO_COME]
        {
            let documents: Vec<DocBuf> = (0..100).map(|n| doc! { "_id": n }).collect();
            let sent = Request {
                flags,
                compressor,
                sequences: vec![("documents".into(), documents.clone()), ("more".into(), vec![])],
                ..request(large())
            };
            let bytes = sent.to_bytes().unwrap();
            let header = Header::parse(bytes.first_chunk().unwrap()).unwrap();
            let mut out = Vec::new();
            let (header, message) = match compressor {
                None => (header, bytes.as_slice()),
                Some(compressor) => {
                    let (header, used) = expand(&header, &bytes, &mut out).unwrap();
                    assert_eq!(used, compressor);
                    (header, out.as_slice())
                }
            };
            assert_eq!(header.request_id, 7);
            let Incoming::Msg(msg) = parse(&header, message).unwrap() else { panic!() };
            assert_eq!(msg.flags, flags);
            assert_eq!(msg.body.to_owned(), large());
            assert_eq!(msg.sequences[0].name, "documents");
            let got: Vec<DocBuf> = msg.sequences[0]
                .documents
                .iter()
                .copied()
                .map(quire_document::Doc::to_owned)
                .collect();
            assert_eq!(got, documents);
            assert!(msg.sequences[1].documents.is_empty());
        }
    }
}

#[test]
fn nothing_is_copied() {
    let bytes = request(large()).to_bytes().unwrap();
    let range = bytes.as_ptr_range();
    assert!(range.contains(&receive(&bytes).unwrap().body.as_bytes().as_ptr()));
}
