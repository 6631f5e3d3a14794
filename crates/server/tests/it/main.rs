//! A server with real sockets: incomplete messages, wrong lengths, lost clients, limits, shutdown.

#![allow(clippy::unwrap_used)]

mod broken;
mod certificates;
mod exchange;
mod limits;
mod stop;
mod tls;
mod waiting;

use quire_commands::{Service, ServiceOptions};
use quire_document::{DocBuf, Value, doc};
use quire_server::{Encryption, Endpoint, Listeners, Server, ServerOptions};
use quire_wire::client::{Request, Response, parse_response};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Returns a server in memory on a free port.
fn server(options: ServerOptions) -> (Server, SocketAddr) {
    listen(service(), options)
}

/// Serves a service on a free port.
fn listen(service: Arc<Service>, options: ServerOptions) -> (Server, SocketAddr) {
    let listeners = Listeners::bind(&[Endpoint::Tcp(([127, 0, 0, 1], 0).into())]).unwrap();
    let server = Server::start(service, listeners, options).unwrap();
    let Endpoint::Tcp(address) = server.endpoints()[0].clone() else { panic!("no address") };
    (server, address)
}

fn service() -> Arc<Service> {
    service_with(None, false)
}

/// Returns a service whose listener may have a certificate, and whose clients may have to log in.
fn service_with(certificate: Option<Arc<Encryption>>, access_control: bool) -> Arc<Service> {
    let options = ServiceOptions {
        argv: Vec::new(),
        access_control,
        certificate: certificate.map(|certificate| certificate as _),
        ..ServiceOptions::in_process("inMemory", None)
    };
    Service::open(quire_storage::open_memory().unwrap(), options).unwrap()
}

/// The client's side of a connection.
struct Client {
    stream: TcpStream,
    next_id: i32,
}

impl Client {
    fn new(address: SocketAddr) -> Client {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.set_nodelay(true).unwrap();
        Client { stream, next_id: 100 }
    }

    fn request(&mut self, body: DocBuf) -> Request {
        self.next_id += 1;
        Request::new(self.next_id, body)
    }

    fn send(&mut self, request: &Request) {
        self.stream.write_all(&request.to_bytes().unwrap()).unwrap();
    }

    fn receive(&mut self) -> io::Result<Response> {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length)?;
        let mut message = length.to_vec();
        message.resize(i32::from_le_bytes(length) as usize, 0);
        self.stream.read_exact(&mut message[4..])?;
        parse_response(&message).map_err(io::Error::other)
    }

    fn run(&mut self, body: DocBuf) -> DocBuf {
        let request = self.request(body);
        self.send(&request);
        let response = self.receive().unwrap();
        assert_eq!(response.header.response_to, request.request_id);
        response.body
    }

    /// Returns true if the server has closed the connection, with or without a reply before.
    fn is_closed(&mut self) -> bool {
        let mut rest = Vec::new();
        match self.stream.read_to_end(&mut rest) {
            Ok(_) => true,
            Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
        }
    }
}

fn ping() -> DocBuf {
    doc! { "ping": 1, "$db": "admin" }
}

fn ok(reply: &DocBuf) -> bool {
    matches!(reply.get("ok"), Some(Value::Double(1.0)))
}

fn code(reply: &DocBuf) -> i32 {
    match reply.get("code") {
        Some(Value::Int32(code)) => code,
        other => panic!("{other:?} in {reply:?}"),
    }
}

/// Returns a `hello` that waits up to `wait_ms` for a change that never comes.
fn waiting_hello(client: &mut Client, wait_ms: i64) -> DocBuf {
    let first = client.run(doc! { "hello": 1, "$db": "admin" });
    let version = first.get("topologyVersion").unwrap();
    doc! { "hello": 1, "topologyVersion": version, "maxAwaitTimeMS": wait_ms, "$db": "admin" }
}

/// Waits for a condition.
fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < until, "never: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
