//! Clients that send invalid data or stop in the middle. None of them affects other clients.

use crate::{Client, code, eventually, ok, ping, server};
use quire_document::doc;
use quire_server::ServerOptions;
use quire_wire::client::Request;
use quire_wire::limits::MESSAGE_BYTES_MAX;
use std::io::{Read, Write};

#[test]
fn half_a_message_and_then_nothing() {
    let (server, address) = server(ServerOptions::default());
    let mut witness = Client::new(address);
    let message = Request::new(1, ping()).to_bytes().unwrap();
    for end in 0..message.len() {
        let mut client = Client::new(address);
        client.stream.write_all(&message[..end]).unwrap();
        assert!(ok(&witness.run(ping())));
    }
    eventually("only the witness is left", || server.connections() == 1);
}

#[test]
fn a_message_byte_by_byte() {
    let (_server, address) = server(ServerOptions::default());
    let mut client = Client::new(address);
    let request = client.request(ping());
    for byte in request.to_bytes().unwrap() {
        client.stream.write_all(&[byte]).unwrap();
    }
    assert!(ok(&client.receive().unwrap().body));
}

#[test]
fn wrong_lengths_close_the_connection() {
    let (server, address) = server(ServerOptions::default());
    for length in [i32::MIN, -1, 0, 15, MESSAGE_BYTES_MAX as i32 + 1, i32::MAX] {
        let mut client = Client::new(address);
        let mut message = Request::new(1, ping()).to_bytes().unwrap();
        message[..4].copy_from_slice(&length.to_le_bytes());
        client.stream.write_all(&message).unwrap();
        assert!(client.is_closed(), "{length}");
    }
    eventually("nobody is left", || server.connections() == 0);
}

#[test]
fn announced_and_not_sent() {
    let (server, address) = server(ServerOptions::default());
    let mut clients = Vec::new();
    for _ in 0..50 {
        let mut client = Client::new(address);
        let mut message = Request::new(1, ping()).to_bytes().unwrap();
        message[..4].copy_from_slice(&(MESSAGE_BYTES_MAX as i32).to_le_bytes());
        client.stream.write_all(&message).unwrap();
        clients.push(client);
    }
    assert!(ok(&Client::new(address).run(ping())));
    drop(clients);
    eventually("nobody is left", || server.connections() == 0);
}

#[test]
fn other_protocols() {
    let (_server, address) = server(ServerOptions::default());
    let mut client = Client::new(address);
    client.stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut text = String::new();
    // The server closes with the rest of the request unread, so the client may see a reset.
    let _ = client.stream.read_to_string(&mut text);
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    assert!(body.starts_with("It looks like you are trying to access MongoDB over HTTP"));
    assert!(head.contains(&format!("Content-Length: {}", body.len())), "{} {head}", body.len());
    let mut client = Client::new(address);
    client.stream.write_all(&[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3, 1, 2, 3, 4, 5, 6, 7]).unwrap();
    assert!(client.is_closed());
}

#[test]
fn invalid_documents_are_answered() {
    let (_server, address) = server(ServerOptions::default());
    let mut client = Client::new(address);
    let mut message = Request::new(5, doc! { "ping": "x", "$db": "admin" }).to_bytes().unwrap();
    let at = message.iter().rposition(|byte| *byte == b'x').unwrap();
    message[at] = 0xFF;
    client.stream.write_all(&message).unwrap();
    let response = client.receive().unwrap();
    assert_eq!((code(&response.body), response.header.response_to), (22, 5));
    assert!(ok(&client.run(ping())));
    let mut message = Request::new(6, ping()).to_bytes().unwrap();
    message[16] = 4;
    client.stream.write_all(&message).unwrap();
    assert!(client.is_closed(), "an unknown flag");
}

#[test]
fn random_bytes() {
    let (server, address) = server(ServerOptions::default());
    let mut state = 1u64;
    for _ in 0..100 {
        let mut client = Client::new(address);
        let bytes: Vec<u8> = (0..400)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 33) as u8
            })
            .collect();
        let _ = client.stream.write_all(&bytes);
    }
    assert!(ok(&Client::new(address).run(ping())));
    eventually("nobody is left", || server.connections() == 0);
}
