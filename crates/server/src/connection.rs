//! The life of a connection: it reads a message, runs the command and writes the reply, until one
//! side ends.

use crate::budget::{Budget, Share, UNCOUNTED_BYTES};
use crate::clients::Client;
use crate::handshake::secure;
use crate::inbox::{Arrival, Inbox, Owner};
use crate::shared::Shared;
use quire_commands::metrics::CompressionMetrics;
use quire_commands::{Connection, ConnectionInfo, Outcome, Request, Sequence};
use quire_document::Doc;
use quire_document::memory::{self, Charge};
use quire_error::{Error, ErrorCode};
use quire_storage::Interrupt;
use quire_wire::limits::{COMPRESSED_PREFIX_BYTES, HEADER_BYTES, MESSAGE_BYTES_MAX};
use quire_wire::{Compressor, Flags, Header, Incoming, Malformed, OpCode, Reply};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Larger reply buffers are freed when the connection is idle.
const RESTING_REPLY_BYTES: usize = 4096;

/// The largest message of a client before its login.
const LOGIN_BYTES_MAX: u32 = 1 << 20;

const HTTP_ANSWER: &[u8] = b"HTTP/1.0 200 OK\r\nConnection: close\r\nContent-Type: text/plain\r\n\
Content-Length: 85\r\n\r\nIt looks like you are trying to access MongoDB over HTTP on the native driver port.\r\n";

/// A TLS record with the fatal alert `handshake_failure` (RFC 8446, section 6.2).
const NO_TLS_ALERT: &[u8] = &[21, 3, 1, 0, 2, 2, 40];

/// Serves a client on its own thread until the end of the connection.
pub(crate) fn run(shared: &Shared, client: &Arc<Client>) {
    shared.log_connection(22943, "Connection accepted", client, None);
    // All requests of the thread take their memory from the same pool.
    let pool = shared.service.memory();
    let served = catch_unwind(AssertUnwindSafe(|| pool.within(|| serve(shared, client))));
    client.end();
    let reason = served.unwrap_or_else(|_| "the connection's thread panicked".to_owned());
    client.socket.finish();
    shared.leave(client);
    shared.log_connection(22944, "Connection ended", client, Some(&reason));
}

/// Serves a client until it or the server ends the connection. Returns the reason.
fn serve(shared: &Shared, client: &Client) -> String {
    // Before the TLS handshake, which writes too.
    if let Err(error) = client.socket.bound_writes() {
        return error.to_string();
    }
    if let Err(error) = secure(shared, &client.socket) {
        shared.log_bad_input(&format!("conn{}", client.id), &error);
        return error.message().to_owned();
    }
    let encryption = client.socket.encryption();
    let certificate = encryption.and_then(|(session, _)| session.client());
    let info = ConnectionInfo {
        id: client.id,
        peer: client.peer,
        local: client.socket.local(),
        certificate_subject: certificate.map(|certificate| certificate.subject),
    };
    let connection = shared.service.connect(info);
    let mut session = Session {
        shared,
        client,
        connection,
        expanded: Vec::new(),
        reply: Vec::new(),
        packed: Vec::new(),
        request_share: None,
        reply_share: None,
        reply_bytes_expected: 0,
        proven: false,
    };
    match session.run() {
        Ok(reason) => reason.to_owned(),
        Err(error) => error.to_string(),
    }
}

/// A client's connection with its buffers.
struct Session<'s> {
    shared: &'s Shared,
    client: &'s Client,
    connection: Connection,
    /// The decompressed message of an OP_COMPRESSED.
    expanded: Vec<u8>,
    /// The reply document.
    reply: Vec<u8>,
    /// A compressed reply.
    packed: Vec<u8>,
    /// The share of the budget for the inbox and `expanded`, if they are large.
    request_share: Option<Share<'s>>,
    /// The share of the budget for `reply` and `packed`, if they are large.
    reply_share: Option<Share<'s>>,
    /// The size of the last reply, if its share was returned.
    reply_bytes_expected: u64,
    /// True once the client needs no further login: it no longer counts as one that may be hostile.
    proven: bool,
}

/// Makes `share` cover `bytes`; waits for them without holding any. Returns false if the server
/// stops first. A share that is large enough is kept.
fn take_share<'s>(
    budget: &'s Budget,
    share: &mut Option<Share<'s>>,
    bytes: u64,
    stopping: &AtomicBool,
) -> bool {
    let held = share.as_ref().map_or(UNCOUNTED_BYTES, Share::bytes);
    if bytes <= held {
        return true;
    }
    *share = None;
    *share = budget.take(bytes, stopping);
    share.is_some()
}

/// Whether the connection continues.
enum Next {
    Message,
    Close(&'static str),
}

impl Owner for Session<'_> {
    fn admit(&mut self, bytes: u64) -> bool {
        let Shared { requests, stopping, .. } = self.shared;
        take_share(requests, &mut self.request_share, bytes, stopping)
    }

    fn is_awaited(&self) -> bool {
        self.shared.requests.is_awaited()
    }

    fn rest(&mut self) {
        (self.request_share, self.reply_share) = (None, None);
        for buffer in [&mut self.expanded, &mut self.reply, &mut self.packed] {
            buffer.clear();
            buffer.shrink_to(RESTING_REPLY_BYTES);
        }
        (self.shared.options.on_rest)(true);
    }

    fn wake(&mut self) {
        (self.shared.options.on_rest)(false);
    }
}

impl Session<'_> {
    fn run(&mut self) -> io::Result<&'static str> {
        let mut inbox = Inbox::new();
        let mut first = true;
        loop {
            let socket = &self.client.socket;
            let bytes_max = self.message_bytes_max();
            let arrival = match first {
                true => inbox.first(socket, bytes_max, self.shared.options.handshake_limit, self),
                false => inbox.next(socket, bytes_max, self),
            };
            let network = &self.shared.service.metrics.network;
            network.bytes_in.add(inbox.take_received());
            let header = match arrival? {
                Arrival::Message(header) => header,
                Arrival::Closed => return Ok("the client closed the connection"),
                Arrival::Malformed(malformed, bytes) => {
                    self.hang_up(&malformed, first.then_some(&bytes));
                    return Ok("the client sent something other than a message of this protocol");
                }
            };
            first = false;
            network.requests.add(1);
            if self.shared.stopping.load(Ordering::Acquire) {
                return Ok("the server stops");
            }
            match self.message(&header, inbox.message(&header))? {
                Next::Message => inbox.consume(&header),
                Next::Close(reason) => return Ok(reason),
            }
            self.give_back(&mut inbox);
        }
    }

    /// Returns the size of the largest message that the client may send now.
    fn message_bytes_max(&self) -> u32 {
        match self.connection.needs_login() {
            true => LOGIN_BYTES_MAX,
            false => MESSAGE_BYTES_MAX as u32,
        }
    }

    /// Frees large buffers if memory is scarce; else they are kept for the next message.
    fn give_back(&mut self, inbox: &mut Inbox) {
        if self.request_share.is_some() && self.shared.requests.is_scarce() {
            inbox.shrink();
            self.expanded = Vec::new();
            self.request_share = None;
        }
        if self.reply_share.is_some() && self.shared.replies.is_scarce() {
            (self.reply, self.packed) = (Vec::new(), Vec::new());
            // The next reply may be as large.
            let bytes = self.reply_share.take().map_or(0, |share| share.bytes());
            self.reply_bytes_expected = bytes;
        }
    }

    /// Runs one message.
    fn message(&mut self, header: &Header, message: &[u8]) -> io::Result<Next> {
        let mut reply = Reply { response_to: header.request_id, ..Reply::default() };
        let mut expanded = std::mem::take(&mut self.expanded);
        let next = self.unpacked(header, message, &mut expanded, &mut reply);
        self.expanded = expanded;
        next
    }

    fn unpacked(
        &mut self,
        header: &Header,
        message: &[u8],
        expanded: &mut Vec<u8>,
        reply: &mut Reply,
    ) -> io::Result<Next> {
        let (mut header, mut message) = (*header, message);
        if header.opcode == OpCode::Compressed {
            let expanded_bytes = quire_wire::expanded_bytes(message);
            if expanded_bytes > self.message_bytes_max().into() {
                return Ok(Next::Close(
                    "the client sent a message that is too large after decompression",
                ));
            }
            let bytes = header.length as u64 + expanded_bytes;
            let stopping = &self.shared.stopping;
            if !take_share(&self.shared.requests, &mut self.request_share, bytes, stopping) {
                return Ok(Next::Close("the server stops"));
            }
            match quire_wire::expand(&header, message, expanded) {
                Ok((inner, compressor)) => {
                    let packed = message.len().saturating_sub(COMPRESSED_PREFIX_BYTES);
                    (header, message) = (inner, expanded.as_slice());
                    if let Some(metrics) = compression(self.shared, compressor) {
                        metrics.decompressor.add(packed, message.len() - HEADER_BYTES);
                    }
                    reply.compressor = Some(compressor).filter(|used| *used != Compressor::Noop);
                }
                Err(malformed) => return self.malformed(reply, &malformed),
            }
        }
        reply.legacy = matches!(header.opcode, OpCode::Query | OpCode::GetMore);
        match quire_wire::parse(&header, message) {
            Ok(incoming) => self.request(incoming, reply),
            Err(malformed) => self.malformed(reply, &malformed),
        }
    }

    fn request(&mut self, incoming: Incoming<'_>, reply: &mut Reply) -> io::Result<Next> {
        let (body, sequences, flags): (Doc<'_>, Vec<Sequence<'_>>, Flags) = match incoming {
            Incoming::Query(query) => (query.body, Vec::new(), Flags::default()),
            Incoming::Msg(msg) => {
                let sequences = msg.sequences.into_iter().map(|sequence| Sequence {
                    name: sequence.name,
                    documents: sequence.documents,
                });
                (msg.body, sequences.collect(), msg.flags)
            }
        };
        reply.checksum = flags.has(Flags::CHECKSUM_PRESENT);
        let silent = flags.has(Flags::MORE_TO_COME);
        let interrupt = Interrupt::new();
        let request = Request {
            body,
            sequences: &sequences,
            legacy_query: reply.legacy,
            exhaust_allowed: flags.has(Flags::EXHAUST_ALLOWED) && !silent,
            interrupt: Arc::clone(&interrupt),
        };
        let expected = std::mem::take(&mut self.reply_bytes_expected);
        let stopping = &self.shared.stopping;
        if !take_share(&self.shared.replies, &mut self.reply_share, expected, stopping) {
            return Ok(Next::Close("the server stops"));
        }
        self.reply.clear();
        self.client.begin(&interrupt, !silent);
        let outcome = self.connection.handle(&request, &mut self.reply);
        self.client.end();
        // Before the reply: a client that has it may connect again at once.
        if !self.proven && !self.connection.needs_login() {
            self.shared.clients.prove(self.client);
            self.proven = true;
        }
        self.answer(outcome, silent, reply)
    }

    /// Sends the reply, and the further replies of an exhaust stream.
    fn answer(
        &mut self,
        mut outcome: Outcome,
        silent: bool,
        reply: &mut Reply,
    ) -> io::Result<Next> {
        loop {
            if outcome.hang_up {
                return Ok(Next::Close("a command closed the connection"));
            }
            if !silent {
                reply.more_to_come = outcome.more_to_come;
                self.send(reply)?;
            }
            if outcome.close {
                return Ok(Next::Close("a command closed the connection"));
            }
            if silent || !reply.more_to_come {
                return Ok(Next::Message);
            }
            if self.shared.stopping.load(Ordering::Acquire) {
                return Ok(Next::Close("the server stops"));
            }
            reply.response_to = reply.request_id;
            let interrupt = Interrupt::new();
            self.reply.clear();
            self.client.begin(&interrupt, true);
            outcome = self.connection.next_exhaust(Arc::clone(&interrupt), &mut self.reply);
            self.client.end();
            if self.reply.is_empty() {
                return Ok(Next::Message);
            }
        }
    }

    fn send(&mut self, reply: &mut Reply) -> io::Result<()> {
        reply.request_id = self.shared.service.next_request_id();
        let mut charge = Charge::default();
        let shared = self.shared;
        let (service, bytes) = (&shared.service, self.reply.len());
        // A large reply stays in memory until the client has read it.
        if charge.cover(bytes).is_err() {
            let error = Error::new(ErrorCode::ExceededMemoryLimit, memory::exhausted());
            self.reply = Vec::new();
            reply.more_to_come = false;
            service.error_reply(&error, &mut self.reply);
        }
        let frame = reply.frame(&self.reply, &mut self.packed).map_err(io::Error::other)?;
        self.shared.service.metrics.network.bytes_out.add(frame.len() as u64);
        if let Some((bytes, became)) = frame.compressed()
            && let Some(metrics) = reply.compressor.and_then(|used| compression(shared, used))
        {
            metrics.compressor.add(bytes, became);
        }
        let packed = if reply.compressor.is_some() { frame.len() } else { 0 };
        let held = (self.reply.capacity() + packed) as u64;
        if held > UNCOUNTED_BYTES
            && self.reply_share.as_ref().is_none_or(|share| share.bytes() < held)
        {
            self.reply_share = Some(self.shared.replies.note(held));
        }
        match held > UNCOUNTED_BYTES {
            true => self.client.send(frame.parts(), held),
            false => self.client.socket.write_all(frame.parts()),
        }
    }

    /// Replies to a message that could not be decoded as a request.
    fn malformed(&mut self, reply: &mut Reply, malformed: &Malformed) -> io::Result<Next> {
        match malformed {
            Malformed::Answer(error) => {
                self.reply.clear();
                self.shared.service.error_reply(error, &mut self.reply);
                self.send(reply)?;
                Ok(Next::Message)
            }
            Malformed::Ignore(_) => {
                self.shared.log_bad_input(self.connection.name(), malformed.error());
                Ok(Next::Message)
            }
            Malformed::HangUp(_) => {
                self.hang_up(malformed, None);
                Ok(Next::Close("the client sent a malformed message"))
            }
        }
    }

    fn hang_up(&self, malformed: &Malformed, first_bytes: Option<&[u8; HEADER_BYTES]>) {
        let answer: &[u8] = match first_bytes {
            Some(bytes) if Header::is_http(bytes) => HTTP_ANSWER,
            Some(bytes) if Header::is_tls(bytes) => NO_TLS_ALERT,
            _ => &[],
        };
        if !answer.is_empty() {
            let _ = self.client.socket.write_all([answer, &[], &[]]);
        }
        self.shared.log_bad_input(self.connection.name(), malformed.error());
    }
}

/// Returns the counters of a compressor; `None` for the one that copies.
fn compression(shared: &Shared, used: Compressor) -> Option<&CompressionMetrics> {
    let network = &shared.service.metrics.network;
    match used {
        Compressor::Noop => None,
        Compressor::Snappy => Some(&network.snappy),
        Compressor::Zlib => Some(&network.zlib),
        Compressor::Zstd => Some(&network.zstd),
    }
}
