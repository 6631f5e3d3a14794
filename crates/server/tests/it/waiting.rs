//! Cursors that wait for data on a real socket: a lost client and a shutdown end the wait.

use crate::{Client, eventually, listen, ok, service};
use quire_commands::Service;
use quire_document::{DocBuf, Value, doc};
use quire_server::ServerOptions;
use std::net::SocketAddr;

/// Returns a client whose getMore waits for up to an hour.
fn waiting_client(address: SocketAddr) -> Client {
    let mut client = Client::new(address);
    client.run(doc! { "create": "c", "capped": true, "size": 100_000, "$db": "d" });
    client.run(doc! { "insert": "c", "documents": [{ "_id": 1 }], "$db": "d" });
    let find = doc! { "find": "c", "tailable": true, "awaitData": true, "$db": "d" };
    let reply = client.run(find);
    let id = cursor_id(&reply);
    let more = doc! { "getMore": id, "collection": "c", "maxTimeMS": 3_600_000, "$db": "d" };
    let request = client.request(more);
    client.send(&request);
    client
}

fn cursor_id(reply: &DocBuf) -> i64 {
    match reply.get("cursor").and_then(|cursor| cursor.as_document()?.get("id")) {
        Some(Value::Int64(id)) if id != 0 => id,
        other => panic!("{other:?} in {reply:?}"),
    }
}

fn waiting(service: &Service) -> u64 {
    service.store().engine().stats().watches
}

#[test]
fn a_waiting_cursor_ends_with_its_client() {
    let service = service();
    let (server, address) = listen(service.clone(), ServerOptions::default());
    let client = waiting_client(address);
    eventually("the cursor waits", || waiting(&service) == 1);
    drop(client);
    eventually("the wait ends", || waiting(&service) == 0);
    eventually("the connection is gone", || server.connections() == 0);
}

#[test]
fn a_waiting_cursor_ends_with_the_server() {
    let service = service();
    let (mut server, address) = listen(service.clone(), ServerOptions::default());
    let mut client = waiting_client(address);
    eventually("the cursor waits", || waiting(&service) == 1);
    server.stop();
    assert_eq!(waiting(&service), 0);
    assert!(!ok(&client.receive().unwrap().body));
    assert!(client.is_closed());
}
