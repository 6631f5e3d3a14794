//! The port at which Prometheus reads (`--metricsPort`): one thread answers one request at a time
//! with the numbers of `serverStatus` in the OpenMetrics format. What is read holds counts and sizes,
//! no names of collections and no values, so a reader needs no login.

mod families;

use crate::listener::{Endpoint, StartError};
use quire_commands::Service;
use rustix::event::{PollFd, PollFlags, poll};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The time that a client has for its request, and again for reading the reply.
const CLIENT_TIME: Duration = Duration::from_secs(2);
/// The largest request line with its headers, in bytes.
const REQUEST_BYTES_MAX: usize = 8 << 10;
/// The most headers of a request.
const HEADERS_MAX: usize = 64;
/// The pause after a connection could not be accepted.
const FAILED_PAUSE: Duration = Duration::from_millis(50);

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";

/// Binds the address of the port.
///
/// # Errors
/// [`StartError`] if the address is in use or cannot be bound.
pub fn bind(address: SocketAddr) -> Result<TcpListener, StartError> {
    let listener = TcpListener::bind(address).map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => StartError::AddressInUse(Endpoint::Tcp(address)),
        _ => StartError::Bind(Endpoint::Tcp(address), error),
    })?;
    listener
        .set_nonblocking(true)
        .map_err(|error| StartError::Bind(Endpoint::Tcp(address), error))?;
    Ok(listener)
}

/// The port while it is served. Dropping it ends that.
pub struct MetricsEndpoint {
    address: SocketAddr,
    bell: UnixStream,
    thread: Option<JoinHandle<()>>,
}

impl MetricsEndpoint {
    /// Serves the numbers of a service.
    ///
    /// # Errors
    /// [`StartError::Thread`] if the system cannot start a thread.
    pub fn start(service: &Arc<Service>, listener: TcpListener) -> Result<Self, StartError> {
        let address = listener.local_addr().map_err(StartError::Thread)?;
        let (bell, wake) = UnixStream::pair().map_err(StartError::Thread)?;
        let service = Arc::clone(service);
        let thread = std::thread::Builder::new().name("metrics".to_owned()).stack_size(256 << 10);
        let thread = thread.spawn(move || serve(&service, &listener, &wake));
        let thread = Some(thread.map_err(StartError::Thread)?);
        Ok(MetricsEndpoint { address, bell, thread })
    }

    /// Returns the address that Prometheus reads, with the port that was chosen.
    pub fn url(&self) -> String {
        format!("http://{}/metrics", self.address)
    }
}

impl Drop for MetricsEndpoint {
    fn drop(&mut self) {
        // The thread ends when the bell can be read, or is closed.
        let _ = self.bell.write_all(&[1]);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Answers requests until the bell rings.
fn serve(service: &Service, listener: &TcpListener, wake: &UnixStream) {
    loop {
        let mut waiting = [PollFd::new(wake, PollFlags::IN), PollFd::new(listener, PollFlags::IN)];
        if poll(&mut waiting, None).is_err() {
            continue;
        }
        if !waiting[0].revents().is_empty() {
            return;
        }
        match listener.accept() {
            // The client is gone, or was too slow: the next one has its turn.
            Ok((client, _)) => drop(answer(service, client)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => std::thread::sleep(FAILED_PAUSE),
        }
    }
}

/// A reply: its status line, the type of its text, and the text.
struct Answer {
    status: &'static str,
    kind: &'static str,
    text: String,
}

/// Reads one request and replies to it.
fn answer(service: &Service, mut client: TcpStream) -> io::Result<()> {
    client.set_nonblocking(false)?;
    client.set_write_timeout(Some(CLIENT_TIME))?;
    let (Answer { status, kind, text }, with_text) = match read_request(&mut client)? {
        Some(request) => (reply_to(service, &request), request.method != "HEAD"),
        None => (refused("400 Bad Request", "this is no request of HTTP/1.1\n"), true),
    };
    let length = text.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n"
    );
    client.write_all(head.as_bytes())?;
    if with_text {
        client.write_all(text.as_bytes())?;
    }
    client.flush()
}

struct HttpRequest {
    method: String,
    path: String,
}

/// Reads up to the end of the headers; `None` for what is no request, or too large.
fn read_request(client: &mut TcpStream) -> io::Result<Option<HttpRequest>> {
    let begun = Instant::now();
    let (mut bytes, mut chunk) = (Vec::new(), [0; 1024]);
    while bytes.len() < REQUEST_BYTES_MAX {
        let left = CLIENT_TIME.saturating_sub(begun.elapsed());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        client.set_read_timeout(Some(left))?;
        let read = client.read(&mut chunk)?;
        bytes.extend_from_slice(chunk.get(..read).unwrap_or_default());
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut request = httparse::Request::new(&mut headers);
        match request.parse(&bytes) {
            Ok(httparse::Status::Complete(_)) => {
                let (Some(method), Some(path)) = (request.method, request.path) else { break };
                return Ok(Some(HttpRequest { method: method.to_owned(), path: path.to_owned() }));
            }
            Ok(httparse::Status::Partial) if read > 0 => {}
            Ok(httparse::Status::Partial) | Err(_) => break,
        }
    }
    Ok(None)
}

fn reply_to(service: &Service, request: &HttpRequest) -> Answer {
    let path = request.path.split('?').next().unwrap_or_default();
    match (request.method.as_str(), path) {
        ("GET" | "HEAD", "/metrics") => {
            let text = families::text(service);
            Answer { status: "200 OK", kind: OPEN_METRICS, text }
        }
        ("GET" | "HEAD", _) => refused("404 Not Found", "the metrics are at /metrics\n"),
        _ => refused("405 Method Not Allowed", "only GET and HEAD work here\n"),
    }
}

fn refused(status: &'static str, text: &str) -> Answer {
    Answer { status, kind: TEXT, text: text.to_owned() }
}
