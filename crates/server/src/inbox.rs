//! From bytes to whole messages: one buffer a connection, one read a message where it fits.

use crate::socket::Socket;
use quire_wire::limits::{HEADER_BYTES, MESSAGE_BYTES_MAX};
use quire_wire::{Header, Malformed};
use std::io;
use std::time::Duration;

/// What an idle connection keeps, and what the first read may bring.
const RESTING_BYTES: usize = 4096;
/// A connection that has rested this long gives its large buffers back.
const REST_AFTER: Duration = Duration::from_secs(1);

/// The bytes that have arrived: `buffer[start..end]` is not consumed yet.
pub(crate) struct Inbox {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// The socket's reads time out, so that large buffers can be given back.
    ticking: bool,
    /// Bytes read since the last question.
    received: u64,
    /// A read that times out ends the wait with an error.
    impatient: bool,
}

/// How the wait for a message ended.
pub(crate) enum Arrival {
    /// A whole message is there: [`Inbox::message`].
    Message(Header),
    /// The client closed the connection between two messages.
    Closed,
    /// The first bytes are no header; there is no way to find the next message.
    Malformed(Malformed, [u8; HEADER_BYTES]),
}

impl Inbox {
    pub(crate) fn new() -> Inbox {
        let buffer = Vec::new();
        Inbox { buffer, start: 0, end: 0, ticking: false, received: 0, impatient: false }
    }

    /// An inbox whose waits end with an error when the socket's own timeout passes.
    pub(crate) fn impatient() -> Inbox {
        Inbox { impatient: true, ..Inbox::new() }
    }

    /// Waits for a whole message. If this inbox has a large buffer, or `owner_is_large`, `rest` is
    /// called when nothing came for a while.
    pub(crate) fn next(
        &mut self,
        socket: &Socket,
        owner_is_large: bool,
        rest: impl FnMut(),
    ) -> io::Result<Arrival> {
        let large = owner_is_large || self.buffer.len() > RESTING_BYTES;
        if large != self.ticking && self.start == self.end {
            socket.set_read_timeout(large.then_some(REST_AFTER))?;
            self.ticking = large;
        }
        self.next_up_to(socket, MESSAGE_BYTES_MAX as u32, rest)
    }

    /// As [`next`](Self::next), and a message of more than `bytes_max` is an error.
    pub(crate) fn next_up_to(
        &mut self,
        socket: &Socket,
        bytes_max: u32,
        mut rest: impl FnMut(),
    ) -> io::Result<Arrival> {
        while self.available() < HEADER_BYTES {
            if !self.fill(socket, HEADER_BYTES, &mut rest)? {
                return match self.available() {
                    0 => Ok(Arrival::Closed),
                    _ => Err(io::ErrorKind::UnexpectedEof.into()),
                };
            }
        }
        let pending = self.buffer.get(self.start..self.end).unwrap_or_default();
        let Some(first) = pending.first_chunk::<HEADER_BYTES>().copied() else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        let header = match Header::parse(&first) {
            Ok(header) => header,
            Err(malformed) => return Ok(Arrival::Malformed(malformed, first)),
        };
        if header.length > bytes_max {
            return Err(io::ErrorKind::InvalidData.into());
        }
        while self.available() < header.length as usize {
            if !self.fill(socket, header.length as usize, &mut rest)? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(Arrival::Message(header))
    }

    /// The bytes of the message that [`next`](Self::next) announced.
    pub(crate) fn message(&self, header: &Header) -> &[u8] {
        self.buffer.get(self.start..self.start + header.length as usize).unwrap_or_default()
    }

    /// Forgets the message.
    pub(crate) fn consume(&mut self, header: &Header) {
        self.start = (self.start + header.length as usize).min(self.end);
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
    }

    /// Bytes read since the last call.
    pub(crate) fn take_received(&mut self) -> u64 {
        std::mem::take(&mut self.received)
    }

    fn available(&self) -> usize {
        self.end - self.start
    }

    /// Reads once, with room for `needed` bytes in all. False at the end of the stream.
    fn fill(
        &mut self,
        socket: &Socket,
        needed: usize,
        rest: &mut impl FnMut(),
    ) -> io::Result<bool> {
        self.make_room(needed);
        loop {
            let room = self.buffer.get_mut(self.end..).unwrap_or_default();
            match socket.read(room) {
                Ok(0) => return Ok(false),
                Ok(count) => {
                    self.end += count;
                    self.received += count as u64;
                    return Ok(true);
                }
                Err(error) if timed_out(&error) && !self.impatient => {
                    if self.ticking && self.available() == 0 {
                        self.rest(socket)?;
                        rest();
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Gives the large buffer back and waits without a clock from now on.
    fn rest(&mut self, socket: &Socket) -> io::Result<()> {
        self.buffer = vec![0; RESTING_BYTES];
        (self.start, self.end) = (0, 0);
        self.ticking = false;
        socket.set_read_timeout(None)
    }

    /// Room for a message of `needed` bytes from `start` on. New room comes as zero pages from
    /// the kernel, so a client that announces much and sends little costs little.
    fn make_room(&mut self, needed: usize) {
        let room = self.buffer.len() - self.start;
        if room >= needed && self.end < self.buffer.len() {
            return;
        }
        let pending = self.start..self.end;
        if self.buffer.len() >= needed && self.start > 0 {
            self.buffer.copy_within(pending, 0);
        } else {
            let mut grown = vec![0; needed.max(RESTING_BYTES)];
            let old = self.buffer.get(pending).unwrap_or_default();
            if let Some(slot) = grown.get_mut(..old.len()) {
                slot.copy_from_slice(old);
            }
            self.buffer = grown;
        }
        self.end -= self.start;
        self.start = 0;
    }
}

fn timed_out(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}
