//! Two ways to send a command: over a socket, and to a service in this process.

use quire_commands::{Call, Connection, ConnectionInfo, Service};
use quire_document::{Doc, DocBuf};
use quire_storage::Interrupt;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Sends commands and returns the replies.
pub trait Client {
    /// Returns the reply; an error if the connection is lost.
    fn call(&mut self, command: Doc<'_>) -> Result<DocBuf, String>;
}

/// Creates clients of one server.
pub trait Connect: Sync {
    /// Returns a new connection.
    fn connect(&self) -> Box<dyn Client>;
}

/// A service in this process.
pub struct InProcess(pub Arc<Service>);

struct Embedded {
    service: Arc<Service>,
    connection: Connection,
}

static NEXT: AtomicU64 = AtomicU64::new(1_000_000);

impl Connect for InProcess {
    fn connect(&self) -> Box<dyn Client> {
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let connection = self.0.connect(ConnectionInfo {
            id,
            peer: None,
            local: None,
            certificate_subject: None,
        });
        Box::new(Embedded { service: Arc::clone(&self.0), connection })
    }
}

impl Client for Embedded {
    fn call(&mut self, command: Doc<'_>) -> Result<DocBuf, String> {
        let call = match Call::new(command.as_bytes()) {
            Ok(call) => call,
            Err(error) => {
                let mut reply = Vec::new();
                self.service.error_reply(&error, &mut reply);
                return Ok(DocBuf::from_valid_bytes(reply));
            }
        };
        let interrupt = Interrupt::with_deadline(Duration::from_secs(20));
        match self.connection.call(&call, interrupt) {
            (_, outcome) if outcome.hang_up => Err("connection closed by server".into()),
            (reply, _) => Ok(reply),
        }
    }
}

/// A server at an address.
pub struct AtAddress(pub String);

struct Socket {
    stream: Option<TcpStream>,
    next: i32,
}

impl Connect for AtAddress {
    fn connect(&self) -> Box<dyn Client> {
        let stream = TcpStream::connect(&self.0).ok();
        if let Some(stream) = &stream {
            let _ = stream.set_nodelay(true);
            let _ = stream.set_read_timeout(Some(Duration::from_secs(20)));
        }
        Box::new(Socket { stream, next: 1 })
    }
}

impl Client for Socket {
    fn call(&mut self, command: Doc<'_>) -> Result<DocBuf, String> {
        let result = self.exchange(command.as_bytes());
        if result.is_err() {
            self.stream = None;
        }
        result
    }
}

impl Socket {
    fn exchange(&mut self, body: &[u8]) -> Result<DocBuf, String> {
        let gone = || "connection closed by server".to_owned();
        let stream = self.stream.as_mut().ok_or_else(gone)?;
        let mut message = Vec::with_capacity(21 + body.len());
        for number in [21 + body.len() as i32, self.next, 0, 2013, 0] {
            message.extend_from_slice(&number.to_le_bytes());
        }
        self.next += 1;
        message.push(0);
        message.extend_from_slice(body);
        stream.write_all(&message).map_err(|_| gone())?;
        let mut header = [0; 16];
        stream.read_exact(&mut header).map_err(|_| gone())?;
        let length = u32::from_le_bytes([header[0], header[1], header[2], header[3]]) as usize;
        let mut rest = vec![0; length.saturating_sub(16)];
        stream.read_exact(&mut rest).map_err(|_| gone())?;
        rest.get(5..).map(|body| DocBuf::from_valid_bytes(body.to_vec())).ok_or_else(gone)
    }
}
