//! A connection to a running server.

use super::uri::{Host, Uri};
use super::{Documents, integer, is_advisor};
use quire_commands::ADVISOR_DRIVER;
use quire_document::{DocBuf, Value, doc};
use quire_tls::ClientTls;
use quire_wire::client::{Request, parse_response};
use quire_wire::limits::{HEADER_BYTES, MESSAGE_BYTES_MAX};
use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;

/// How a connection ends that the server does not want, such as one without TLS.
const CLOSED: &str = "the server closed the connection";

/// A connection after its handshake.
pub(crate) struct Socket {
    stream: Box<dyn Stream>,
    next_id: i32,
}

pub(crate) trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

impl Socket {
    /// Connects to the first host that is a primary (or to the first host, if the URI says so).
    ///
    /// # Errors
    /// A message for people: the hosts that were tried, and the failures.
    pub(crate) fn connect(
        uri: &Uri,
        tls: Option<&ClientTls>,
        tool: &str,
    ) -> Result<Socket, String> {
        let mut tried = Vec::new();
        for host in &uri.hosts {
            let failed = |why: String| match host {
                Host::Tcp(name, port) => format!("{name}:{port}: {why}"),
                Host::Unix(path) => format!("{}: {why}", path.display()),
            };
            let socket = open(host, uri, tls).map_err(|error| error.to_string());
            match socket.and_then(|socket| socket.greet(uri, tool)) {
                Ok(socket) => return Ok(socket),
                Err(why) if tls.is_none() && why == CLOSED => {
                    tried.push(failed(format!("{why}; if it asks for TLS, give --tls")));
                }
                Err(why) => tried.push(failed(why)),
            }
        }
        Err(format!("cannot connect to the server: {}", tried.join("; ")))
    }

    /// Does the handshake. Fails for a member that accepts no writes.
    fn greet(mut self, uri: &Uri, tool: &str) -> Result<Socket, String> {
        let name = uri.app_name.as_deref().unwrap_or(tool);
        let driver = if is_advisor(tool) { ADVISOR_DRIVER } else { "quire" };
        let hello = doc! {
            "hello": 1,
            "client": {
                "application": { "name": name },
                "driver": { "name": driver, "version": crate::version::QUIRE },
                "os": { "type": std::env::consts::OS },
            },
            "$db": "admin",
        };
        let reply = self.call(hello, None)?;
        if reply.get("ok").and_then(integer) != Some(1) {
            return Err("it does not reply to hello".to_owned());
        }
        let set = match reply.get("setName") {
            Some(Value::String(set)) => Some(set),
            _ => None,
        };
        if uri.replica_set.is_some() && set != uri.replica_set.as_deref() {
            let found = set.map_or("no replica set".to_owned(), |set| format!("set '{set}'"));
            let wanted = uri.replica_set.as_deref().unwrap_or_default();
            return Err(format!("it is a member of {found}, not of '{wanted}'"));
        }
        let primary = matches!(reply.get("isWritablePrimary"), Some(Value::Bool(true)));
        if !uri.direct && !primary {
            return Err("it is not the primary".to_owned());
        }
        if let Some(login) = &uri.login {
            let password = login.password.as_deref().unwrap_or_default();
            super::login::log_in(&mut self, login, password)?;
        }
        Ok(self)
    }

    /// Sends a command and waits for its reply. The error says how the connection ended.
    pub(crate) fn call(
        &mut self,
        body: DocBuf,
        documents: Option<Documents>,
    ) -> Result<DocBuf, String> {
        let mut request = Request::new(self.next_id, body);
        self.next_id = self.next_id.wrapping_add(1);
        request.sequences =
            documents.into_iter().map(|(name, documents)| (name.to_owned(), documents)).collect();
        let message = request.to_bytes().map_err(|error| error.to_string())?;
        let reply = self.exchange(&message).map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => CLOSED.to_owned(),
            _ if quire_tls::is_unknown_issuer(&error) => {
                format!("{error}; --tlsCAFile names the authority of the server's certificate")
            }
            _ => format!("the connection broke: {error}"),
        })?;
        let reply = parse_response(&reply)
            .map_err(|fault| format!("a malformed reply: {}", fault.error().message()))?;
        Ok(reply.body)
    }

    fn exchange(&mut self, message: &[u8]) -> std::io::Result<Vec<u8>> {
        self.stream.write_all(message)?;
        let mut reply = vec![0; HEADER_BYTES];
        self.stream.read_exact(&mut reply)?;
        let length = reply.first_chunk().map_or(0, |length| u32::from_le_bytes(*length)) as usize;
        if !(HEADER_BYTES..=MESSAGE_BYTES_MAX).contains(&length) {
            let text = format!("a reply of {length} bytes");
            return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, text));
        }
        reply.resize(length, 0);
        self.stream.read_exact(&mut reply[HEADER_BYTES..])?;
        Ok(reply)
    }
}

fn open(host: &Host, uri: &Uri, tls: Option<&ClientTls>) -> std::io::Result<Socket> {
    let stream: Box<dyn Stream> = match host {
        Host::Unix(path) => {
            let stream = UnixStream::connect(path)?;
            stream.set_read_timeout(uri.socket_timeout)?;
            Box::new(stream)
        }
        Host::Tcp(name, port) => {
            let mut last = std::io::Error::other("the name has no address");
            let mut found = None;
            for address in (name.as_str(), *port).to_socket_addrs()? {
                match TcpStream::connect_timeout(&address, uri.connect_timeout) {
                    Ok(stream) => {
                        found = Some(stream);
                        break;
                    }
                    Err(error) => last = error,
                }
            }
            let stream = found.ok_or(last)?;
            stream.set_nodelay(true)?;
            let stream: Box<dyn Stream> = match tls {
                Some(tls) => {
                    stream.set_read_timeout(Some(uri.connect_timeout))?;
                    let secure = tls.connect(stream, name)?;
                    secure.sock.set_read_timeout(uri.socket_timeout)?;
                    Box::new(secure)
                }
                None => {
                    stream.set_read_timeout(uri.socket_timeout)?;
                    Box::new(stream)
                }
            };
            stream
        }
    };
    Ok(Socket { stream, next_id: 1 })
}
