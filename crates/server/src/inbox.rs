//! From bytes to whole messages: one buffer a connection, one read a message where it fits.

use crate::socket::Socket;
use quire_wire::limits::HEADER_BYTES;
use quire_wire::{Header, Malformed};
use std::io;
use std::time::{Duration, Instant};

/// What an idle connection keeps, and what the first read may bring.
const RESTING_BYTES: usize = 4096;
/// A message of more than this, which is not all there, is read with a clock.
const LARGE_BYTES: usize = 64 << 10;
/// Room for a message of which less than half has come: a header alone reserves no more.
const UNPROVEN_BYTES: usize = 1 << 20;
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
    /// When the message that is awaited must be there.
    deadline: Option<Instant>,
}

/// The connection that an inbox belongs to. It may keep large buffers, and has a part of the memory that
/// all connections together may use.
pub(crate) trait Owner {
    /// Waits until a message of `bytes` may be read. Called before there is room made for it, and
    /// again after [`stalled`](Self::stalled). False ends the connection.
    fn admit(&mut self, bytes: u64) -> bool;

    /// The rest of a large message has not come for a while: others may go on meanwhile.
    fn stalled(&mut self);

    /// Nothing has come for a while: large buffers go back.
    fn rest(&mut self);
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
        Inbox { buffer, start: 0, end: 0, ticking: false, received: 0, deadline: None }
    }

    /// Waits for the first message of a connection, of `bytes_max` at most. While it is incomplete
    /// and nothing comes, the owner is told that it has stalled, as for any other message.
    ///
    /// # Errors
    /// `TimedOut` if it is not there after `limit`.
    pub(crate) fn first(
        &mut self,
        socket: &Socket,
        bytes_max: u32,
        limit: Duration,
        owner: &mut impl Owner,
    ) -> io::Result<Arrival> {
        self.deadline = Some(Instant::now() + limit);
        let arrival = self.next_up_to(socket, bytes_max, owner);
        self.deadline = None;
        socket.set_read_timeout(None)?;
        arrival
    }

    /// Waits for a whole message of at most `bytes_max`. If this inbox or, as `owner_is_large` says,
    /// its owner keeps large buffers, both give them back when nothing has come for `REST_AFTER`.
    pub(crate) fn next(
        &mut self,
        socket: &Socket,
        bytes_max: u32,
        owner_is_large: bool,
        owner: &mut impl Owner,
    ) -> io::Result<Arrival> {
        let large = owner_is_large || self.buffer.len() > RESTING_BYTES;
        if self.start == self.end {
            self.set_ticking(socket, large)?;
        }
        self.next_up_to(socket, bytes_max, owner)
    }

    /// Reads until a whole message is there. The error `InvalidData` says that its header announces
    /// more than `bytes_max`.
    fn next_up_to(
        &mut self,
        socket: &Socket,
        bytes_max: u32,
        owner: &mut impl Owner,
    ) -> io::Result<Arrival> {
        while self.available() < HEADER_BYTES {
            if !self.fill(socket, HEADER_BYTES, owner)? {
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
            let text = format!("a message of {} bytes, more than {bytes_max}", header.length);
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        if self.available() < header.length as usize && header.length as usize > LARGE_BYTES {
            self.set_ticking(socket, true)?;
        }
        while self.available() < header.length as usize {
            if !owner.admit(header.length.into()) {
                return Err(io::Error::other("the server stops"));
            }
            if !self.fill(socket, header.length as usize, owner)? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(Arrival::Message(header))
    }

    /// Returns the bytes of the message that [`next`](Self::next) announced.
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

    /// Gives a large buffer back that holds nothing.
    pub(crate) fn shrink(&mut self) {
        if self.start == self.end && self.buffer.len() > RESTING_BYTES {
            (self.start, self.end) = (0, 0);
            self.buffer = vec![0; RESTING_BYTES];
        }
    }

    /// Bytes read since the last call.
    pub(crate) fn take_received(&mut self) -> u64 {
        std::mem::take(&mut self.received)
    }

    fn available(&self) -> usize {
        self.end - self.start
    }

    /// Reads once, with room for as much of the `needed` bytes as those that have come make likely.
    /// False at the end of the stream.
    fn fill(&mut self, socket: &Socket, needed: usize, owner: &mut impl Owner) -> io::Result<bool> {
        self.make_room(needed.min(self.available().saturating_mul(2).max(UNPROVEN_BYTES)));
        loop {
            if let Some(deadline) = self.deadline {
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                socket.set_read_timeout(Some(left.min(REST_AFTER)))?;
            }
            let room = self.buffer.get_mut(self.end..).unwrap_or_default();
            match socket.read(room) {
                Ok(0) => return Ok(false),
                Ok(count) => {
                    self.end += count;
                    self.received += count as u64;
                    return Ok(true);
                }
                // The part of an encrypted record.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if timed_out(&error) => match self.available() {
                    0 if self.ticking => {
                        self.rest(socket)?;
                        owner.rest();
                    }
                    0 => {}
                    _ => {
                        owner.stalled();
                        return Ok(true);
                    }
                },
                Err(error) => return Err(error),
            }
        }
    }

    /// Has reads of the socket time out, or not. Under a deadline they always do.
    fn set_ticking(&mut self, socket: &Socket, ticking: bool) -> io::Result<()> {
        if self.ticking != ticking && self.deadline.is_none() {
            socket.set_read_timeout(ticking.then_some(REST_AFTER))?;
            self.ticking = ticking;
        }
        Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    #[derive(Default)]
    struct Counts {
        stalled: usize,
    }

    impl Owner for Counts {
        fn admit(&mut self, _bytes: u64) -> bool {
            true
        }

        fn stalled(&mut self) {
            self.stalled += 1;
        }

        fn rest(&mut self) {}
    }

    /// A first message that stalled kept its part of the memory of all connections until the limit
    /// on the first message had passed.
    #[test]
    fn a_first_message_that_stalls_is_noticed_before_its_limit() -> io::Result<()> {
        let (mut client, server) = UnixStream::pair()?;
        let (socket, mut counts) = (Socket::unix(server), Counts::default());
        let mut begun = (1u32 << 20).to_le_bytes().to_vec();
        begun.extend_from_slice(&[1, 0, 0, 0, 0, 0, 0, 0, 0xdd, 7, 0, 0, 0, 0]);
        client.write_all(&begun)?;
        let limit = REST_AFTER + REST_AFTER / 4;
        let arrival = Inbox::new().first(&socket, 2 << 20, limit, &mut counts);
        assert!(arrival.is_err_and(|error| error.kind() == io::ErrorKind::TimedOut));
        assert_eq!(counts.stalled, 2);
        Ok(())
    }
}
