//! Reads bytes and returns whole messages: one buffer for each connection, one read for each
//! message if it fits.

use crate::socket::Socket;
use quire_wire::limits::HEADER_BYTES;
use quire_wire::{Header, Malformed};
use std::io;
use std::time::{Duration, Instant};

/// The buffer of an idle connection, and the size of the first read.
const RESTING_BYTES: usize = 4096;
/// Incomplete messages larger than this are read with a time limit.
const LARGE_BYTES: usize = 64 << 10;
/// The buffer for a message of which less than half has arrived: a header alone reserves no more.
const UNPROVEN_BYTES: usize = 1 << 20;
/// The idle time after which a connection rests: it frees large buffers.
const REST_AFTER: Duration = Duration::from_secs(1);
/// While other connections wait for memory, this many bytes of a large message must come in this
/// time. Its memory is theirs otherwise.
const PACE_BYTES: usize = 128 << 10;
const PACE_TIME: Duration = Duration::from_secs(2);

/// The bytes that have arrived: `buffer[start..end]` is not consumed yet.
pub(crate) struct Inbox {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// True if the socket's reads time out, so that the connection can rest.
    ticking: bool,
    /// True if the connection has rested since the last message.
    rested: bool,
    /// The bytes read since the last call of [`take_received`](Self::take_received).
    received: u64,
    /// The time by which the awaited message must be complete.
    deadline: Option<Instant>,
}

/// The connection of an inbox. It may keep large buffers, and has a share of the memory of all
/// connections.
pub(crate) trait Owner {
    /// Waits until a message of `bytes` may be read. Called before memory is allocated for it, and
    /// before each read. Returning false ends the connection.
    fn admit(&mut self, bytes: u64) -> bool;

    /// Returns true if other connections wait for memory. Then a large message that comes too slowly
    /// ends its connection.
    fn is_awaited(&self) -> bool;

    /// Called if nothing has arrived for a while: frees large buffers and caches.
    fn rest(&mut self);

    /// Called when a wait in which [`rest`](Self::rest) was called has ended.
    fn wake(&mut self);
}

/// The result of waiting for a message.
pub(crate) enum Arrival {
    /// A whole message has arrived: [`Inbox::message`].
    Message(Header),
    /// The client closed the connection between two messages.
    Closed,
    /// The first bytes are not a header, so the next message cannot be found.
    Malformed(Malformed, [u8; HEADER_BYTES]),
}

impl Inbox {
    pub(crate) fn new() -> Inbox {
        let buffer = Vec::new();
        Inbox {
            buffer,
            start: 0,
            end: 0,
            ticking: false,
            rested: false,
            received: 0,
            deadline: None,
        }
    }

    /// Waits for the first message of a connection, of at most `bytes_max`.
    ///
    /// # Errors
    /// `TimedOut` if it is not complete after `limit`.
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

    /// Waits for a whole message of at most `bytes_max`. This inbox and its owner rest after nothing
    /// has arrived for `REST_AFTER`.
    pub(crate) fn next(
        &mut self,
        socket: &Socket,
        bytes_max: u32,
        owner: &mut impl Owner,
    ) -> io::Result<Arrival> {
        if self.start == self.end {
            self.set_ticking(socket, true)?;
        }
        let arrival = self.next_up_to(socket, bytes_max, owner);
        if std::mem::take(&mut self.rested) {
            owner.wake();
        }
        arrival
    }

    /// Reads until a whole message has arrived. The error `InvalidData` means that its header
    /// announces more than `bytes_max`, and `TimedOut` that it comes too slowly while others wait.
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
        let mut paced: Option<(Instant, usize)> = None;
        while self.available() < header.length as usize {
            if !owner.admit(header.length.into()) {
                return Err(io::Error::other("the server stops"));
            }
            if !self.fill(socket, header.length as usize, owner)? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let (since, before) = *paced.get_or_insert_with(|| (Instant::now(), 0));
            if header.length as usize > LARGE_BYTES && since.elapsed() >= PACE_TIME {
                if self.available() - before < PACE_BYTES && owner.is_awaited() {
                    let text = "a large message comes too slowly while others wait for memory";
                    return Err(io::Error::new(io::ErrorKind::TimedOut, text));
                }
                paced = Some((Instant::now(), self.available()));
            }
        }
        Ok(Arrival::Message(header))
    }

    /// Returns the bytes of the message whose header [`next`](Self::next) returned.
    pub(crate) fn message(&self, header: &Header) -> &[u8] {
        self.buffer.get(self.start..self.start + header.length as usize).unwrap_or_default()
    }

    /// Removes the message from the buffer.
    pub(crate) fn consume(&mut self, header: &Header) {
        self.start = (self.start + header.length as usize).min(self.end);
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
    }

    /// Frees a large buffer that is empty.
    pub(crate) fn shrink(&mut self) {
        if self.start == self.end && self.buffer.len() > RESTING_BYTES {
            (self.start, self.end) = (0, 0);
            self.buffer = vec![0; RESTING_BYTES];
        }
    }

    /// Returns the bytes read since the last call.
    pub(crate) fn take_received(&mut self) -> u64 {
        std::mem::take(&mut self.received)
    }

    fn available(&self) -> usize {
        self.end - self.start
    }

    /// Reads once, with room for a part of the `needed` bytes that grows with those that have
    /// arrived. Returns false at the end of the stream.
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
                // A part of an encrypted record has arrived.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if timed_out(&error) => match self.available() {
                    0 if self.ticking => {
                        self.rest(socket)?;
                        owner.rest();
                    }
                    0 => {}
                    _ => return Ok(true),
                },
                Err(error) => return Err(error),
            }
        }
    }

    /// Turns time-outs of the socket's reads on or off. Under a deadline they are always on.
    fn set_ticking(&mut self, socket: &Socket, ticking: bool) -> io::Result<()> {
        if self.ticking != ticking && self.deadline.is_none() {
            socket.set_read_timeout(ticking.then_some(REST_AFTER))?;
            self.ticking = ticking;
        }
        Ok(())
    }

    /// Frees a large buffer, and turns read time-outs off.
    fn rest(&mut self, socket: &Socket) -> io::Result<()> {
        self.shrink();
        (self.ticking, self.rested) = (false, true);
        socket.set_read_timeout(None)
    }

    /// Makes room for a message of `needed` bytes from `start` on.
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
    struct Others {
        wait: bool,
        /// The calls of `rest` (true) and `wake`.
        rests: Vec<bool>,
    }

    impl Others {
        fn new(wait: bool) -> Self {
            Others { wait, ..Self::default() }
        }
    }

    impl Owner for Others {
        fn admit(&mut self, _bytes: u64) -> bool {
            true
        }

        fn is_awaited(&self) -> bool {
            self.wait
        }

        fn rest(&mut self) {
            self.rests.push(true);
        }

        fn wake(&mut self) {
            self.rests.push(false);
        }
    }

    /// The beginning of a message of a megabyte.
    fn begin(client: &mut UnixStream) -> io::Result<()> {
        let mut begun = (1u32 << 20).to_le_bytes().to_vec();
        begun.extend_from_slice(&[1, 0, 0, 0, 0, 0, 0, 0, 0xdd, 7, 0, 0, 0, 0]);
        client.write_all(&begun)
    }

    #[test]
    fn a_first_message_that_stalls_ends_with_its_limit() -> io::Result<()> {
        let (mut client, server) = UnixStream::pair()?;
        let socket = Socket::unix(server);
        begin(&mut client)?;
        let limit = REST_AFTER + REST_AFTER / 4;
        let arrival = Inbox::new().first(&socket, 2 << 20, limit, &mut Others::new(false));
        assert!(arrival.is_err_and(|error| error.kind() == io::ErrorKind::TimedOut));
        Ok(())
    }

    /// Connections that sent large messages except for the last bytes kept them in memory beyond
    /// the bound for all connections.
    #[test]
    fn a_message_that_stalls_gives_its_memory_to_those_who_wait() -> io::Result<()> {
        let (mut client, server) = UnixStream::pair()?;
        let socket = Socket::unix(server);
        begin(&mut client)?;
        let since = Instant::now();
        let arrival = Inbox::new().next(&socket, 2 << 20, &mut Others::new(true));
        assert!(arrival.is_err_and(|error| error.kind() == io::ErrorKind::TimedOut));
        assert!(since.elapsed() >= PACE_TIME);

        // Without a connection that waits, a message that stalls is kept.
        let (mut client, server) = UnixStream::pair()?;
        let socket = Socket::unix(server);
        begin(&mut client)?;
        let rest = std::thread::spawn(move || {
            std::thread::sleep(PACE_TIME + REST_AFTER);
            client.write_all(&vec![0; (1 << 20) - 18]).map(|()| client)
        });
        let arrival = Inbox::new().next(&socket, 2 << 20, &mut Others::new(false));
        assert!(matches!(arrival, Ok(Arrival::Message(_))));
        assert!(rest.join().is_ok_and(|sent| sent.is_ok()));
        Ok(())
    }

    #[test]
    fn a_connection_rests_once_between_two_messages() -> io::Result<()> {
        let (mut client, server) = UnixStream::pair()?;
        let socket = Socket::unix(server);
        let message = [16, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0xdd, 7, 0, 0];
        let sender = std::thread::spawn(move || -> io::Result<()> {
            client.write_all(&message)?;
            client.write_all(&message)?;
            std::thread::sleep(REST_AFTER * 5 / 2);
            client.write_all(&message)
        });
        let (mut inbox, mut owner) = (Inbox::new(), Others::new(false));
        for rests in [&[][..], &[], &[true, false]] {
            let Arrival::Message(header) = inbox.next(&socket, 1 << 20, &mut owner)? else {
                return Err(io::ErrorKind::InvalidData.into());
            };
            inbox.consume(&header);
            assert_eq!(owner.rests, rests);
        }
        assert!(sender.join().is_ok_and(|sent| sent.is_ok()));
        Ok(())
    }
}
