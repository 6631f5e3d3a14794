"""A TCP proxy between a driver and the server that closes connections on request.

It parses enough of the wire protocol to distinguish an application's command from a driver's own handshakes
and heartbeats (which are never compressed), and to count the compressors in use.

The control port reads one line on each connection and replies with one line:
  sever         closes every connection now; running commands lose their reply
  cut           closes only connections on which a command waits for its reply
  lose-request  closes the connection on which the next command arrives; the server never sees the command
  lose-reply    forwards the next command to the server and closes its connection instead of sending the reply
  lost          returns how many requests and replies were lost that way so far
  crash         kills the server (SIGKILL) and starts it again on the same data
"""

import collections
import socket
import struct
import threading

OP_COMPRESSED = 2012
OP_MSG = 2013
COMPRESSORS = {0: "none", 1: "snappy", 2: "zlib", 3: "zstd"}
HOUSEKEEPING = {b"hello", b"ismaster", b"isMaster", b"endSessions", b"killCursors", b"saslStart", b"saslContinue"}


class Proxy:
    """Listens on its own port and forwards connections to a `Server` on this machine. If the server has `security`,
    it decrypts and encrypts the traffic."""

    def __init__(self, security=None):
        self.security = security
        self.lock = threading.Lock()
        self.links = set()
        self.armed = None
        self.lost = 0
        self.severed = 0
        self.compressed = collections.Counter()
        self.server = None
        self.listener = listen()
        self.port = self.listener.getsockname()[1]
        self.control = listen()
        self.control_port = self.control.getsockname()[1]

    def start(self, server):
        self.server = server
        threading.Thread(target=self.accept, daemon=True).start()
        threading.Thread(target=self.obey, daemon=True).start()

    def reset(self):
        """Resets the counters for the next driver."""
        with self.lock:
            self.armed, self.lost, self.severed = None, 0, 0
            self.compressed.clear()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            threading.Thread(target=self.link, args=(client,), daemon=True).start()

    def link(self, client):
        """Connects to the server too, with handshakes if connections are encrypted."""
        try:
            if self.security:
                client = self.security.accept(client)
                server = self.security.connect(self.server.port)
            else:
                server = socket.create_connection(("127.0.0.1", self.server.port))
        except OSError:
            client.close()
            return
        link = Link(self, client, server)
        with self.lock:
            self.links.add(link)
        link.start()

    def obey(self):
        while True:
            peer, _ = self.control.accept()
            with peer, peer.makefile("rwb") as stream:
                word = stream.readline().decode().strip()
                stream.write(f"{self.command(word)}\n".encode())

    def command(self, word):
        if word in ("sever", "cut"):
            with self.lock:
                links = [link for link in self.links if word == "sever" or link.waiting]
                self.severed += len(links)
            for link in links:
                link.close()
            return len(links)
        if word in ("lose-request", "lose-reply"):
            with self.lock:
                self.armed = word
            return "armed"
        if word == "lost":
            return self.lost
        if word == "crash":
            self.server.crash()
            return "restarted"
        return "unknown"

    def fate(self):
        """Returns the fault for a command of the client: `None`, `lose-request` or `lose-reply`."""
        with self.lock:
            fate, self.armed = self.armed, None
            self.lost += fate is not None
            return fate

    def count(self, direction, opcode, body):
        if opcode == OP_COMPRESSED:
            with self.lock:
                self.compressed[direction, COMPRESSORS.get(body[8], "?")] += 1


class Link:
    """One connection of a client and its twin to the server."""

    def __init__(self, proxy, client, server):
        self.proxy, self.client, self.server = proxy, client, server
        self.drop_reply = False
        self.waiting = False
        for end in (client, server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def start(self):
        for pump in (self.requests, self.replies):
            threading.Thread(target=self.run, args=(pump,), daemon=True).start()

    def run(self, pump):
        try:
            pump()
        except OSError:
            pass
        self.close()

    def requests(self):
        for opcode, head, body in messages(self.client):
            self.proxy.count("request", opcode, body)
            fate = None
            if is_command(opcode, body):
                self.waiting = True
                fate = self.proxy.fate()
            if fate == "lose-request":
                return
            if fate == "lose-reply":
                self.drop_reply = True
            self.server.sendall(head + body)

    def replies(self):
        for opcode, head, body in messages(self.server):
            self.proxy.count("reply", opcode, body)
            if self.drop_reply:
                return
            self.waiting = False
            self.client.sendall(head + body)

    def close(self):
        with self.proxy.lock:
            self.proxy.links.discard(self)
        for end in (self.client, self.server):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            end.close()


def listen():
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", 0))
    listener.listen(128)
    return listener


def messages(end):
    """Yields the arriving messages as (opcode, header, body) until the connection ends."""
    while True:
        head = exactly(end, 16)
        if head is None:
            return
        length, _, _, opcode = struct.unpack("<iiii", head)
        body = exactly(end, length - 16)
        if body is None:
            return
        yield opcode, head, body


def exactly(end, size):
    data = bytearray()
    while len(data) < size:
        part = end.recv(min(size - len(data), 1 << 20))
        if not part:
            return None
        data += part
    return bytes(data)


def is_command(opcode, body):
    """Returns true for a message of the application. An uncompressed OP_MSG has flags (4 bytes), a section's kind (1), the
    document's length (4) and the first field's type (1) before the command's name."""
    if opcode == OP_MSG:
        return body[10 : body.index(b"\0", 10)] not in HOUSEKEEPING
    return opcode == OP_COMPRESSED
