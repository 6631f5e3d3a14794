//! One test for each defect that a message can have.

use crate::{answered, body, hung_up, message, raw, receive, request, sequence};
use quire_document::{DocBuf, doc};
use quire_wire::limits::{HEADER_BYTES, MESSAGE_BYTES_MAX};
use quire_wire::{Flags, Header, Malformed, OpCode, client, expand, parse};

fn ping() -> DocBuf {
    doc! { "ping": 1, "$db": "admin" }
}

fn header_of(length: i32, opcode: i32) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    bytes[12..].copy_from_slice(&opcode.to_le_bytes());
    bytes
}

#[test]
fn lengths_outside_the_limits_end_the_connection() {
    for length in [i32::MIN, -1, 0, 15, MESSAGE_BYTES_MAX as i32 + 1, i32::MAX] {
        let result = Header::parse(&header_of(length, 2013));
        assert!(matches!(result, Err(Malformed::HangUp(_))), "{length}");
    }
    assert!(Header::parse(&header_of(16, 2013)).is_ok());
    assert!(Header::parse(&header_of(MESSAGE_BYTES_MAX as i32, 2013)).is_ok());
}

#[test]
fn other_protocols_are_recognised_before_the_length_is_checked() {
    let result = Header::parse(b"GET / HTTP/1.1\r\n");
    assert!(result.unwrap_err().to_string().contains("HTTP"));
    assert!(Header::is_http(b"GET / HTTP/1.1\r\n"));
    let hello = [0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3, 1, 2, 3, 4, 5];
    assert!(Header::parse(&hello).unwrap_err().to_string().contains("TLS"));
}

#[test]
fn unknown_required_flags_end_the_connection_and_optional_ones_do_not() {
    for bit in 2..16 {
        assert_eq!(hung_up(receive(&raw(1 << bit, &body(&ping())))), 223, "{bit}");
    }
    for bit in 16..32 {
        assert!(receive(&raw(1 << bit, &body(&ping()))).is_ok(), "{bit}");
    }
}

#[test]
fn exactly_one_body_is_required() {
    assert_eq!(answered(receive(&raw(0, &[]))), 40587);
    let twice = [body(&ping()), body(&ping())].concat();
    assert_eq!(answered(receive(&raw(0, &twice))), 40430);
    assert_eq!(answered(receive(&raw(0, &sequence("documents", &[])))), 40587);
}

#[test]
fn unknown_sections_and_trailing_bytes_are_refused() {
    let two = [body(&ping()), vec![2]].concat();
    assert_eq!(answered(receive(&raw(0, &two))), 40432);
    let trailing = [body(&ping()), vec![0]].concat();
    assert_eq!(answered(receive(&raw(0, &trailing))), 40430);
    let trailing = [body(&ping()), vec![1, 9]].concat();
    assert_eq!(hung_up(receive(&raw(0, &trailing))), 17);
}

#[test]
fn sequence_names_are_unique_and_at_most_two() {
    let docs = [doc! { "a": 1 }];
    let of = |names: &[&str]| {
        let mut sections = body(&ping());
        names.iter().for_each(|name| sections.extend(sequence(name, &docs)));
        raw(0, &sections)
    };
    assert_eq!(receive(&of(&["ops", "nsInfo"])).unwrap().sequences.len(), 2);
    assert_eq!(answered(receive(&of(&["ops", "ops"]))), 40431);
    assert_eq!(answered(receive(&of(&["ping"]))), 40433);
    assert_eq!(answered(receive(&of(&["a", "b", "c"]))), 233);
    assert_eq!(answered(receive(&of(&[""]))), 22);
}

#[test]
fn sequence_lengths_must_fit() {
    let good = sequence("documents", &[doc! { "a": 1 }]);
    for length in [i32::MIN, -1, 0, 3, good.len() as i32, i32::MAX] {
        let mut bad = good.clone();
        bad[1..5].copy_from_slice(&length.to_le_bytes());
        let sent = raw(0, &[body(&ping()), bad].concat());
        assert_eq!(hung_up(receive(&sent)), 17, "{length}");
    }
    let mut cut = good.clone();
    let shorter = (good.len() - 3) as i32;
    cut[1..5].copy_from_slice(&shorter.to_le_bytes());
    assert_eq!(answered(receive(&raw(0, &[body(&ping()), cut].concat()))), 22);
    let endless = [&[1][..], &8i32.to_le_bytes(), b"name"].concat();
    assert_eq!(hung_up(receive(&raw(0, &[body(&ping()), endless].concat()))), 17);
    let latin = [&[1][..], &6i32.to_le_bytes(), &[0xE4, 0]].concat();
    assert_eq!(answered(receive(&raw(0, &[body(&ping()), latin].concat()))), 22);
}

#[test]
fn documents_must_be_valid() {
    let good = body(&ping());
    for length in [i32::MIN, -1, 0, 4, good.len() as i32, i32::MAX] {
        let mut bad = good.clone();
        bad[1..5].copy_from_slice(&length.to_le_bytes());
        assert_eq!(answered(receive(&raw(0, &bad))), 22, "{length}");
    }
    let mut unknown_type = good.clone();
    unknown_type[5] = 0x55;
    assert_eq!(answered(receive(&raw(0, &unknown_type))), 22);
    let mut latin = body(&doc! { "ping": "ä" });
    let at = latin.iter().position(|byte| *byte == 0xC3).unwrap();
    latin[at] = 0xE4;
    assert_eq!(answered(receive(&raw(0, &latin))), 22);
    let mut deep = doc! { "a": 1 };
    for _ in 0..250 {
        deep = doc! { "a": &deep };
    }
    assert!(matches!(answered(receive(&raw(0, &body(&deep)))), 15 | 22));
}

#[test]
fn checksums_are_compared() {
    let mut sent = client::Request { flags: Flags::CHECKSUM_PRESENT, ..request(ping()) };
    let good = sent.to_bytes().unwrap();
    assert!(receive(&good).is_ok());
    for at in 4..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1;
        if (12..20).contains(&at) {
            continue;
        }
        assert_eq!(hung_up(receive(&bad)), 288, "{at}");
    }
    assert_eq!(hung_up(receive(&raw(1, &[1, 2, 3]))), 17);
    sent.sequences.push(("documents".into(), vec![doc! { "a": 1 }]));
    assert_eq!(receive(&sent.to_bytes().unwrap()).unwrap().sequences[0].documents.len(), 1);
}

#[test]
fn short_messages_end_the_connection() {
    for length in 0..4 {
        assert_eq!(hung_up(receive(&message(OpCode::Msg, &vec![0; length]))), 17);
    }
}

#[test]
fn removed_opcodes_are_answered_or_ignored() {
    let outcome = |opcode| {
        let sent = message(opcode, &[0; 40]);
        let header = Header::parse(sent.first_chunk().unwrap()).unwrap();
        parse(&header, &sent).unwrap_err()
    };
    assert!(matches!(outcome(OpCode::GetMore), Malformed::Answer(_)));
    for opcode in [OpCode::Insert, OpCode::Update, OpCode::Delete, OpCode::KillCursors] {
        assert!(matches!(outcome(opcode), Malformed::Ignore(_)));
    }
    for opcode in [OpCode::Reply, OpCode::Compressed] {
        assert!(matches!(outcome(opcode), Malformed::HangUp(_)));
    }
    assert!(matches!(Header::parse(&header_of(16, 2010)), Err(Malformed::HangUp(_))));
}

#[test]
fn op_query_is_for_the_handshake_only() {
    let query = |namespace: &str, doc: &DocBuf| {
        let sent = client::legacy_query(1, namespace, doc.as_doc());
        let header = Header::parse(sent.first_chunk().unwrap()).unwrap();
        parse(&header, &sent).map(|_| ()).map_err(|error| error.error().code().number())
    };
    for name in ["isMaster", "ismaster", "hello"] {
        assert_eq!(
            query(
                "admin.$cmd",
                &DocBuf::build(|doc| {
                    doc.append(name, 1);
                })
            ),
            Ok(())
        );
    }
    assert_eq!(query("admin.$cmd", &doc! { "$query": { "hello": 1 } }), Ok(()));
    assert_eq!(query("admin.$cmd", &doc! { "ping": 1 }), Err(352));
    assert_eq!(query("admin.$cmd", &doc! {}), Err(352));
    assert_eq!(query("test.c", &doc! { "a": 1 }), Err(5_739_101));
    let mut many = client::legacy_query(1, "admin.$cmd", doc! { "hello": 1 }.as_doc());
    many[35..39].copy_from_slice(&5i32.to_le_bytes());
    let header = Header::parse(many.first_chunk().unwrap()).unwrap();
    assert_eq!(parse(&header, &many).unwrap_err().error().code().number(), 16979);
}

#[test]
fn compressed_messages_are_bounded_before_memory_is_taken() {
    let bad = |opcode: i32, size: i32, compressor: u8, data: &[u8]| {
        let content =
            [&opcode.to_le_bytes()[..], &size.to_le_bytes(), &[compressor], data].concat();
        let sent = message(OpCode::Compressed, &content);
        let header = Header::parse(sent.first_chunk().unwrap()).unwrap();
        let mut out = Vec::new();
        let result = expand(&header, &sent, &mut out);
        assert!(matches!(result, Err(Malformed::HangUp(_))), "{result:?}");
        out.capacity()
    };
    for compressor in 0..4 {
        assert_eq!(bad(2013, MESSAGE_BYTES_MAX as i32, compressor, &[0; 8]), 0);
        assert_eq!(bad(2013, -1, compressor, &[0; 8]), 0);
        assert_eq!(bad(2012, 8, compressor, &[0; 8]), 0);
        assert_eq!(bad(1234, 8, compressor, &[0; 8]), 0);
        bad(2013, 100, compressor, &[0; 8]);
        bad(2013, 100, compressor, &[]);
    }
    assert_eq!(bad(2013, 8, 4, &[0; 8]), 0);
    assert_eq!(bad(2013, 40_000_000, 1, &[0; 8]), 0, "snappy tells its size");
}
