//! Stopping: quickly when nothing runs, and while an operation runs.

use crate::{Client, ok, ping, server, waiting_hello};
use quire_server::{ServerOptions, Stop};
use std::net::TcpStream;
use std::time::{Duration, Instant};

#[test]
fn idle_connections_end_with_the_server() {
    let (mut server, address) = server(ServerOptions::default());
    let mut clients: Vec<Client> = (0..20).map(|_| Client::new(address)).collect();
    clients.iter_mut().for_each(|client| assert!(ok(&client.run(ping()))));
    let began = Instant::now();
    server.stop();
    assert!(began.elapsed() < Duration::from_secs(2));
    assert_eq!(server.connections(), 0);
    clients.iter_mut().for_each(|client| assert!(client.is_closed()));
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn running_operations_are_interrupted_and_answered() {
    let (mut server, address) = server(ServerOptions::default());
    let mut client = Client::new(address);
    let body = waiting_hello(&mut client, 3_600_000);
    let request = client.request(body);
    client.send(&request);
    std::thread::sleep(Duration::from_millis(50));
    let began = Instant::now();
    server.stop();
    assert!(began.elapsed() < Duration::from_secs(4));
    let reply = client.receive().unwrap().body;
    assert!(!ok(&reply), "{reply:?}");
    assert!(client.is_closed());
}

#[test]
fn stopping_twice_is_stopping_once() {
    let (mut server, _) = server(ServerOptions::default());
    server.stop();
    server.stop();
}

#[test]
fn the_first_reason_stays() {
    let stop = Stop::new();
    assert!(!stop.is_requested());
    assert_eq!(stop.wait(Duration::from_millis(1)), None);
    let waiting = stop.clone();
    let waiter = std::thread::spawn(move || waiting.wait(Duration::from_secs(60)));
    stop.request("one");
    stop.request("two");
    assert_eq!(waiter.join().unwrap().as_deref(), Some("one"));
}
