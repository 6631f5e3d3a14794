//! Requests and replies: flags, checksums, compression, streams, handshakes, unix sockets.

use crate::{Client, code, eventually, ok, ping, server, service, waiting_hello};
use quire_document::{DocBuf, Value, doc};
use quire_server::{Endpoint, Listeners, Server, ServerOptions};
use quire_wire::client::{Request, legacy_query};
use quire_wire::{Compressor, Flags, OpCode};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

#[test]
fn replies_have_the_compressor_flags_and_id_of_the_request() {
    let (_server, address) = server(ServerOptions::default());
    let mut client = Client::new(address);
    for compressor in
        [None, Some(Compressor::Snappy), Some(Compressor::Zlib), Some(Compressor::Zstd)]
    {
        for flags in [Flags(0), Flags::CHECKSUM_PRESENT] {
            let request = Request { flags, compressor, ..client.request(ping()) };
            client.send(&request);
            let response = client.receive().unwrap();
            assert!(ok(&response.body));
            assert_eq!(response.compressor, compressor);
            assert_eq!(response.flags, flags);
            assert_eq!(response.header.response_to, request.request_id);
        }
    }
}

#[test]
fn server_status_counts_what_the_compressors_did() {
    let (_server, address) = server(ServerOptions::default());
    let mut client = Client::new(address);
    let status = |client: &mut Client, compressor| {
        let request = client.request(doc! { "serverStatus": 1, "$db": "admin" });
        client.send(&Request { compressor, ..request });
        let network = client.receive().unwrap().body;
        let network = network.get("network").and_then(|network| network.as_document()).unwrap();
        network.to_owned()
    };
    let count = |network: &DocBuf, name: &str, way: &str, field: &str| {
        let path = ["compression", name, way].iter().try_fold(network.as_doc(), |doc, name| {
            doc.get(name).and_then(|inner| inner.as_document())
        });
        path.and_then(|flow| flow.get(field)).and_then(|count| count.exact_i64()).unwrap()
    };
    status(&mut client, Some(Compressor::Zlib));
    let network = status(&mut client, None);
    let packed = count(&network, "zlib", "compressor", "bytesOut");
    assert!(packed > 0 && packed < count(&network, "zlib", "compressor", "bytesIn"));
    assert!(count(&network, "zlib", "decompressor", "bytesOut") > 0);
    assert_eq!(count(&network, "snappy", "compressor", "bytesIn"), 0);
    let sent = |name: &str| network.get(name).and_then(|count| count.exact_i64()).unwrap();
    assert!(sent("bytesOut") > sent("physicalBytesOut"));
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let (_server, address) = server(ServerOptions::default());
    let mut client = Client::new(address);
    let requests: Vec<Request> = (0..200).map(|_| client.request(ping())).collect();
    let bytes: Vec<u8> = requests.iter().flat_map(|request| request.to_bytes().unwrap()).collect();
    client.stream.write_all(&bytes).unwrap();
    for request in &requests {
        assert_eq!(client.receive().unwrap().header.response_to, request.request_id);
    }
}

#[test]
fn a_request_that_wants_no_answer_gets_none() {
    let (_server, address) = server(ServerOptions::default());
    let mut client = Client::new(address);
    let silent = Request { flags: Flags::MORE_TO_COME, ..client.request(ping()) };
    client.send(&silent);
    assert!(ok(&client.run(ping())), "the next reply answers the next request");
}

#[test]
fn the_handshake_comes_as_op_query_too() {
    let (_server, address) = server(ServerOptions::default());
    let mut client = Client::new(address);
    let command = doc! { "isMaster": 1, "helloOk": true };
    client.stream.write_all(&legacy_query(9, "admin.$cmd", command.as_doc())).unwrap();
    let response = client.receive().unwrap();
    assert_eq!((response.header.opcode, response.header.response_to), (OpCode::Reply, 9));
    assert!(matches!(response.body.get("ismaster"), Some(Value::Bool(true))));
    let command = doc! { "ping": 1 };
    client.stream.write_all(&legacy_query(10, "admin.$cmd", command.as_doc())).unwrap();
    let response = client.receive().unwrap();
    assert_eq!(response.header.opcode, OpCode::Reply);
    assert_eq!(code(&response.body), 352);
    assert!(ok(&client.run(ping())));
}

#[test]
fn a_hello_stream_goes_on_until_the_client_leaves() {
    let (server, address) = server(ServerOptions::default());
    let mut client = Client::new(address);
    let body = waiting_hello(&mut client, 10);
    let request = Request { flags: Flags::EXHAUST_ALLOWED, ..client.request(body) };
    client.send(&request);
    let mut expected = request.request_id;
    for _ in 0..5 {
        let response = client.receive().unwrap();
        assert!(response.flags.has(Flags::MORE_TO_COME));
        assert_eq!(response.header.response_to, expected);
        expected = response.header.request_id;
    }
    drop(client);
    eventually("the stream ends", || server.connections() == 0);
}

#[test]
fn a_lost_client_ends_its_waiting_operation() {
    let (server, address) = server(ServerOptions::default());
    let mut client = Client::new(address);
    let body = waiting_hello(&mut client, 3_600_000);
    let request = client.request(body);
    client.send(&request);
    std::thread::sleep(Duration::from_millis(20));
    let began = Instant::now();
    drop(client);
    eventually("the operation ends", || server.connections() == 0);
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[test]
fn large_messages_pass_and_buffers_shrink_again() {
    let (_server, address) = server(ServerOptions::default());
    let mut client = Client::new(address);
    let text = "x".repeat(4 << 20);
    let reply = client.run(doc! { "ping": 1, "$db": "admin", "comment": text.as_str() });
    assert!(ok(&reply), "{reply:?}");
    std::thread::sleep(Duration::from_millis(1200));
    assert!(ok(&client.run(ping())));
    assert!(ok(&client.run(ping())));
}

#[test]
fn a_unix_socket_serves_and_goes() {
    let directory = std::env::temp_dir().join(format!("quire-socket-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let path = directory.join("mongodb-1.sock");
    let endpoint = Endpoint::Unix(path.clone(), 0o700);
    let bound = Listeners::bind(std::slice::from_ref(&endpoint)).unwrap();
    assert!(Listeners::bind(std::slice::from_ref(&endpoint)).is_err(), "somebody listens there");
    let mut server = Server::start(service(), bound, ServerOptions::default()).unwrap();
    let mut stream = UnixStream::connect(&path).unwrap();
    stream.write_all(&Request::new(1, ping()).to_bytes().unwrap()).unwrap();
    let mut length = [0; 4];
    stream.read_exact(&mut length).unwrap();
    server.stop();
    assert!(!path.exists());
    std::os::unix::net::UnixListener::bind(&path).unwrap();
    assert!(path.exists(), "left behind by a process that died");
    assert!(Listeners::bind(&[endpoint]).is_ok());
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn many_clients_at_once() {
    let (server, address) = server(ServerOptions::default());
    let threads: Vec<_> = (0..16)
        .map(|_| {
            std::thread::spawn(move || {
                for _ in 0..10 {
                    let mut client = Client::new(address);
                    (0..10).for_each(|_| assert!(ok(&client.run(ping()))));
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    eventually("everybody has left", || server.connections() == 0);
    assert_eq!(server.service().metrics.network.requests.get(), 1600);
    assert_eq!(server.service().metrics.network.connections_total.get(), 160);
    assert_eq!(server.service().metrics.network.connections_current.get(), 0);
}

#[test]
fn documents_too_deep_are_answered() {
    let (_server, address) = server(ServerOptions::default());
    let mut client = Client::new(address);
    let mut deep = doc! { "a": 1 };
    for _ in 0..300 {
        deep = doc! { "a": &deep };
    }
    let reply: DocBuf = client.run(doc! { "ping": 1, "$db": "admin", "comment": &deep });
    assert!(!ok(&reply));
    assert!(ok(&client.run(ping())), "the connection goes on");
}

/// Returns the client addresses that `$currentOp` shows for connections without an operation.
fn idle(client: &mut Client) -> Vec<String> {
    let stages = quire_document::array![
        { "$currentOp": { "idleConnections": true } }, { "$match": { "active": false } }
    ];
    let reply =
        client.run(doc! { "aggregate": 1, "pipeline": &stages, "cursor": {}, "$db": "admin" });
    let cursor = reply.get("cursor").and_then(|cursor| cursor.as_document()).unwrap();
    let rows = cursor.get("firstBatch").and_then(|rows| rows.as_array()).unwrap();
    let address = |row: Value<'_>| Some(row.as_document()?.get("client")?.as_str()?.to_owned());
    rows.iter().filter_map(address).collect()
}

#[test]
fn connections_without_an_operation_are_shown_on_request() {
    let (_server, address) = server(ServerOptions::default());
    let (mut asking, mut resting) = (Client::new(address), Client::new(address));
    assert!(ok(&resting.run(ping())));
    let name = |client: &Client| client.stream.local_addr().unwrap().to_string();
    let (own, other) = (name(&asking), name(&resting));
    eventually("the idle connection is shown", || idle(&mut asking).contains(&other));
    assert!(!idle(&mut asking).contains(&own));
    drop(resting);
    eventually("it is gone", || idle(&mut asking).is_empty());
}
