//! Refuses a client when the server is full: replies to its handshake with an error that says so,
//! because a closed connection alone would not explain it. A few threads at most do this; beyond
//! that the connection is closed at once.

use crate::inbox::{Arrival, Inbox, Owner};
use crate::shared::Shared;
use crate::socket::Socket;
use quire_error::{Error, ErrorCode};
use quire_wire::{OpCode, Reply};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The number of refusals that are written at the same time.
const AT_ONCE_MAX: usize = 8;
/// The time limit for the arrival of the handshake.
const PATIENCE: Duration = Duration::from_millis(500);
/// The size limit of the handshake message.
const MESSAGE_BYTES_MAX: u32 = 64 * 1024;
const STACK_BYTES: usize = 128 * 1024;

/// Refuses a connection without making the listener wait.
pub(crate) fn refuse(shared: &Arc<Shared>, socket: Socket, limit: usize) {
    if shared.refusals.fetch_add(1, Ordering::AcqRel) >= AT_ONCE_MAX {
        shared.refusals.fetch_sub(1, Ordering::AcqRel);
        return;
    }
    let owner = Arc::clone(shared);
    let thread = std::thread::Builder::new().name("refusal".into()).stack_size(STACK_BYTES);
    let spawned = thread.spawn(move || {
        // The client may be gone already; then the reply is not needed.
        let _ = answer(&owner, &socket, limit);
        owner.refusals.fetch_sub(1, Ordering::AcqRel);
    });
    if spawned.is_err() {
        shared.refusals.fetch_sub(1, Ordering::AcqRel);
    }
}

fn answer(shared: &Shared, socket: &Socket, limit: usize) -> std::io::Result<()> {
    socket.set_write_timeout(Some(PATIENCE))?;
    let mut inbox = Inbox::new();
    let arrival = inbox.first(socket, MESSAGE_BYTES_MAX, PATIENCE, &mut Unbounded)?;
    let Arrival::Message(header) = arrival else { return Ok(()) };
    let text = format!("connection refused because there are too many open connections: {limit}");
    let error = Error::new(ErrorCode::IngressRequestRateLimitExceeded, text);
    let mut document = Vec::new();
    shared.service.error_reply(&error, &mut document);
    let reply = Reply {
        request_id: shared.service.next_request_id(),
        response_to: header.request_id,
        legacy: header.opcode == OpCode::Query,
        ..Reply::default()
    };
    let mut scratch = Vec::new();
    let frame = reply.frame(&document, &mut scratch).map_err(std::io::Error::other)?;
    socket.write_all(frame.parts())
}

/// The owner of a refused client's inbox: its messages are too small to be counted.
struct Unbounded;

impl Owner for Unbounded {
    fn admit(&mut self, _bytes: u64) -> bool {
        true
    }

    fn is_awaited(&self) -> bool {
        false
    }

    fn rest(&mut self) {}

    fn wake(&mut self) {}
}
