//! The limit on connections, and the resources of refused ones.

use crate::{Client, code, eventually, listen, ok, ping, server, service_with};
use quire_document::doc;
use quire_server::{Endpoint, Listeners, ServerOptions, StartError};
use quire_wire::{Header, OpCode};
use std::io::Write;
use std::time::{Duration, Instant};

#[test]
fn a_full_server_says_so() {
    let options = ServerOptions { connections_max: 3, ..ServerOptions::default() };
    let (server, address) = server(options);
    let mut inside: Vec<Client> = (0..3).map(|_| Client::new(address)).collect();
    inside.iter_mut().for_each(|client| assert!(ok(&client.run(ping()))));
    let mut outside = Client::new(address);
    let reply = outside.run(ping());
    assert_eq!(code(&reply), 462);
    assert!(
        reply.get("errmsg").unwrap().as_str().unwrap().contains("too many open connections: 3")
    );
    assert!(outside.is_closed());
    assert_eq!(server.service().metrics.network.connections_rejected.get(), 1);
    inside.pop();
    eventually("there is room again", || server.connections() == 2);
    assert!(ok(&Client::new(address).run(ping())));
}

#[test]
fn a_port_can_be_bound_once() {
    let (_server, address) = server(ServerOptions::default());
    let again = Listeners::bind(&[Endpoint::Tcp(address)]);
    assert!(matches!(again, Err(StartError::AddressInUse(_))));
}

#[cfg(target_os = "linux")]
#[test]
fn connections_leave_no_thread_and_no_file_behind() {
    // Threads are counted by name, because other tests run their own servers meanwhile.
    let (server, address) = server(ServerOptions::default());
    for _ in 0..1000 {
        drop(std::net::TcpStream::connect(address).unwrap());
    }
    eventually("everybody has left", || {
        server.connections() == 0
            && server.service().metrics.network.connections_total.get() == 1000
    });
    eventually("the high connection threads are gone", || {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap();
        let names =
            tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
        names.filter(|name| name.starts_with("conn9")).count() < 3
    });
}

/// Every client could have a message of the largest size in memory at the same time.
#[test]
fn large_messages_are_read_as_far_as_there_is_room() {
    let mib = 1 << 20;
    let options = ServerOptions { request_bytes_max: 4 * mib, ..ServerOptions::default() };
    let (server, address) = server(options);
    let large = || {
        let text = "x".repeat(3 << 20);
        doc! { "insert": "c", "documents": [{ "t": text.as_str() }], "$db": "test" }
    };
    // A client with an incomplete message delays others only for a moment.
    let mut slow = Client::new(address);
    let request = slow.request(large()).to_bytes().unwrap();
    slow.stream.write_all(&request[..1000]).unwrap();
    let mut others: Vec<Client> = (0..3).map(|_| Client::new(address)).collect();
    std::thread::scope(|scope| {
        for other in &mut others {
            scope.spawn(|| assert!(ok(&other.run(large()))));
        }
        assert!(ok(&Client::new(address).run(ping())), "small messages do not wait");
    });
    // It has lost its connection if the others waited for seconds.
    if slow.stream.write_all(&request[1000..]).is_ok()
        && let Ok(reply) = slow.receive()
    {
        assert!(ok(&reply.body));
    }
    let find = || doc! { "find": "c", "batchSize": 10, "$db": "test" };
    others.iter_mut().for_each(|other| assert!(ok(&other.run(find()))));
    drop(server);
}

/// A reply that its client did not read stayed in memory for half a minute, and each connection could
/// have one.
#[test]
fn the_clients_that_read_most_slowly_are_given_up_when_replies_take_too_much_memory() {
    let options = ServerOptions { reply_bytes_max: 8 << 20, ..ServerOptions::default() };
    let (server, address) = server(options);
    let mut polite = Client::new(address);
    let text = "x".repeat(12 << 20);
    let insert = doc! { "insert": "c", "documents": [{ "t": text.as_str() }], "$db": "test" };
    assert!(ok(&polite.run(insert)));
    let find = || doc! { "find": "c", "$db": "test" };
    let mut silent: Vec<Client> = (0..4).map(|_| Client::new(address)).collect();
    for client in &mut silent {
        let request = client.request(find()).to_bytes().unwrap();
        client.stream.write_all(&request).unwrap();
    }
    eventually("the silent clients are given up", || server.connections() == 1);
    assert!(ok(&polite.run(find())));
}

/// The wait for memory ends when the server stops.
#[test]
fn a_server_stops_while_messages_wait_for_room() {
    let options = ServerOptions { request_bytes_max: 1 << 20, ..ServerOptions::default() };
    let (mut server, address) = server(options);
    let text = "x".repeat(900 << 10);
    let mut waiting: Vec<Client> = (0..6).map(|_| Client::new(address)).collect();
    for client in &mut waiting {
        let body = doc! { "insert": "c", "documents": [{ "t": text.as_str() }], "$db": "test" };
        let request = client.request(body).to_bytes().unwrap();
        client.stream.write_all(&request[..70 << 10]).unwrap();
    }
    eventually("all are there", || server.connections() == 6);
    let since = std::time::Instant::now();
    server.stop();
    assert!(since.elapsed() < std::time::Duration::from_secs(9));
}

fn of_length(length: u32, opcode: OpCode) -> [u8; 16] {
    Header { length, request_id: 1, response_to: 0, opcode }.to_bytes()
}

/// A connection that sends nothing, or never completes its first message, would keep a thread and a
/// place among the connections.
#[test]
fn the_first_message_must_come_soon() {
    let limit = Duration::from_millis(300);
    let options = ServerOptions { handshake_limit: limit, ..ServerOptions::default() };
    let (server, address) = server(options);
    let began = Instant::now();
    let mut silent = Client::new(address);
    let mut slow = Client::new(address);
    let mut fast = Client::new(address);
    assert!(ok(&fast.run(ping())));
    slow.stream.write_all(&of_length(40_000, OpCode::Msg)).unwrap();
    while slow.stream.write_all(&[0; 8]).is_ok() {
        assert!(began.elapsed() < Duration::from_secs(10));
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(silent.is_closed());
    assert!(began.elapsed() >= limit);
    assert!(ok(&fast.run(ping())));
    eventually("two have gone", || server.connections() == 1);
}

#[test]
fn before_a_login_messages_are_small() {
    let (_server, address) = listen(service_with(None, true), ServerOptions::default());
    let mut client = Client::new(address);
    let padded = |bytes: usize| {
        doc! { "ping": 1, "comment": "x".repeat(bytes).as_str(), "$db": "admin" }
    };
    assert!(ok(&client.run(padded(900 << 10))));
    client.stream.write_all(&of_length((1 << 20) + 1, OpCode::Msg)).unwrap();
    assert!(client.is_closed());
    // Small, but its header announces a larger size after decompression.
    let mut client = Client::new(address);
    let mut message = of_length(16 + 9 + 10, OpCode::Compressed).to_vec();
    message.extend_from_slice(&OpCode::Msg.number().to_le_bytes());
    message.extend_from_slice(&(40i32 << 20).to_le_bytes());
    message.push(3);
    message.extend_from_slice(&[0; 10]);
    client.stream.write_all(&message).unwrap();
    assert!(client.is_closed());
}

#[test]
fn one_address_cannot_take_all_connections_without_a_login() {
    let options = ServerOptions { connections_max: 6, unproven_max: 3, ..ServerOptions::default() };
    let (server, address) = listen(service_with(None, true), options.clone());
    let mut inside: Vec<Client> = (0..3).map(|_| Client::new(address)).collect();
    // A reply is not a login.
    inside.iter_mut().for_each(|client| assert!(ok(&client.run(ping()))));
    assert_eq!(code(&Client::new(address).run(ping())), 462);
    inside.pop();
    eventually("there is room again", || server.connections() == 2);
    assert!(ok(&Client::new(address).run(ping())));

    // Without access control the first message is enough.
    let (_server, address) = listen(service_with(None, false), options);
    let mut inside = Vec::new();
    for _ in 0..6 {
        let mut client = Client::new(address);
        assert!(ok(&client.run(ping())));
        inside.push(client);
    }
}

/// A server behind a proxy or a NAT router sees all its clients at one address.
#[test]
fn clients_of_one_address_are_limited_only_when_half_of_the_room_is_taken() {
    let options =
        ServerOptions { connections_max: 10, unproven_max: 2, ..ServerOptions::default() };
    let (_server, address) = listen(service_with(None, true), options);
    let mut inside: Vec<Client> = (0..5).map(|_| Client::new(address)).collect();
    inside.iter_mut().for_each(|client| assert!(ok(&client.run(ping()))));
    let refused = Client::new(address).run(ping());
    assert_eq!(code(&refused), 462);
    let text = refused.get("errmsg").unwrap().as_str().unwrap();
    assert!(text.ends_with("too many open connections: 2"), "{text}");
}
