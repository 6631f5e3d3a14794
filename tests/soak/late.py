#!/usr/bin/env python3
"""How late operations end: for every command, stage, operator and option that takes a list or a document,
the largest that a message holds, with time limits and with killOp.

    cargo build --release -p quire-cli
    tests/soak/late.py [--quire target/release/quire] [--only REGEX] [--limits 1,20,100,300] [--rounds 2] [--json FILE]

The server gets an empty directory and a free port. Needs nothing but Python. Requests are encoded before they
are sent, so that the time of the client is not part of what is measured: the clock runs from when the whole
request is sent to when the reply is there. Each request runs once without a limit, then with each limit that
is shorter than that, then with a killOp in its middle. A line tells how long it took, with which code it
ended, and how late it ended after each limit, in milliseconds (the best of the rounds, so that what else the
machine does falls out). The run fails if a request ends more than 100 ms late, or takes the server with it.
"""

import argparse
import json
import pathlib
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

from large_requests import collections, commands, document

LATE_MS_MAX = 100
OP_MSG = 2013


class Client:
    def __init__(self, port):
        self.stream = socket.create_connection(("127.0.0.1", port), timeout=300)
        self.stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    @staticmethod
    def message(body, sequence=None, **more):
        body = {**body, **more}
        body.setdefault("$db", "bench")
        content = struct.pack("<IB", 0, 0) + document(body)
        if sequence is not None:
            name, items = sequence
            # The elements of the array without their names.
            section = name.encode() + b"\0" + items
            content += struct.pack("<Bi", 1, len(section) + 4) + section
        return struct.pack("<iiii", 16 + len(content), 1, 0, OP_MSG) + content

    def exchange(self, message):
        """The seconds from the end of sending to the reply, and the reply's bytes."""
        self.stream.sendall(message)
        begun = time.perf_counter()
        header = self.receive(16)
        reply = self.receive(struct.unpack("<i", header[:4])[0] - 16)
        return time.perf_counter() - begun, reply[5:]

    def receive(self, size):
        parts = []
        while size:
            part = self.stream.recv(min(size, 1 << 20))
            if not part:
                raise ConnectionError("the server closed the connection")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def run(self, body, **more):
        return self.exchange(self.message(body, **more))[1]


def field(reply, name):
    """A number at the top of a reply, `None` if it is not there."""
    at = 4
    widths = {1: 8, 8: 1, 16: 4, 18: 8, 9: 8, 17: 8, 10: 0, 7: 12}
    while at < len(reply) and reply[at]:
        kind, end = reply[at], reply.index(b"\0", at + 1)
        key, at = reply[at + 1 : end].decode(), end + 1
        if key == name and kind in (1, 16, 18):
            return struct.unpack({1: "<d", 16: "<i", 18: "<q"}[kind], reply[at : at + widths[kind]])[0]
        if kind in widths:
            at += widths[kind]
        elif kind == 2:
            at += 4 + struct.unpack("<i", reply[at : at + 4])[0]
        elif kind in (3, 4):
            at += struct.unpack("<i", reply[at : at + 4])[0]
        else:
            at += 5 + struct.unpack("<i", reply[at : at + 4])[0]
    return None


def stripped(array):
    """The documents of an encoded array, one after the other."""
    content, at, parts = array.content, 4, []
    while content[at]:
        begin = content.index(b"\0", at + 1) + 1
        at = begin + struct.unpack("<i", content[begin : begin + 4])[0]
        parts.append(content[begin:at])
    return b"".join(parts)


class Server:
    def __init__(self, binary):
        self.directory = tempfile.TemporaryDirectory(prefix="quire-late-")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        command = [binary, "serve", "--dbpath", self.directory.name, "--port", str(self.port)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(200):
            try:
                self.client = Client(self.port)
                break
            except OSError:
                time.sleep(0.05)
        self.load()

    def load(self):
        client = self.client
        one = lambda at: {"_id": at, "n": at, "i": at, "j": at, "s": "a" * 200, "v": list(range(900)), "o": {"a": 1}, "no": False}
        for name, count in (("c", 20), ("u", 3)):
            client.run({"insert": name, "documents": [one(at) for at in range(count)]})
        index = lambda **key: {"key": key, "name": "_".join(key)}
        client.run({"createIndexes": "c", "indexes": [index(i=1), index(j=1), index(i=1, j=1)]})
        client.run({"createIndexes": "keyed", "indexes": [index(a=1), index(a=1, b=1), index(b=1)]})
        client.run({"createIndexes": "wild", "indexes": [{"key": {"$**": 1}, "name": "w"}]})
        client.run({"createIndexes": "hashed", "indexes": [{"key": {"h": "hashed"}, "name": "h"}]})
        client.run({"createIndexes": "collated", "indexes": [{"key": {"s": 1}, "name": "s", "collation": {"locale": "de"}}]})
        client.run({"create": "v1", "viewOn": "c", "pipeline": []})
        for name, documents in collections().items():
            for one in documents:
                client.run({"insert": name, "documents": [one]})

    def reset(self):
        """The collections that requests write to, as they were."""
        for name in ("u", "u2", "u9", "i1", "i2", "b1", "m", "keyed", "wild", "hashed", "collated"):
            (
                self.client.run({"delete": name, "deletes": [{"q": {}, "limit": 0}]})
                if name != "u"
                else self.client.run({"drop": "u"})
            )
        one = lambda at: {"_id": at, "n": at, "i": at, "j": at, "s": "a" * 200, "v": list(range(900)), "o": {"a": 1}, "no": False}
        self.client.run({"insert": "u", "documents": [one(at) for at in range(3)]})

    def resident_mb(self):
        with open(f"/proc/{self.process.pid}/status") as lines:
            return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmRSS"))

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        self.directory.cleanup()


def killed(server, message, after):
    """The seconds between a killOp and the end of the operation that it is sent for."""
    client, killer, ended = Client(server.port), Client(server.port), []
    port = client.stream.getsockname()[1]
    thread = threading.Thread(target=lambda: ended.append((client.exchange(message), time.perf_counter())))
    thread.start()
    time.sleep(after)
    pipeline = [{"$currentOp": {}}, {"$match": {"client": f"127.0.0.1:{port}"}}, {"$project": {"opid": 1}}]
    reply = killer.run({"aggregate": 1, "pipeline": pipeline, "cursor": {}, "$db": "admin"})
    at = reply.find(b"opid\0")
    if at < 0:
        thread.join()
        return None
    opid = struct.unpack("<i", reply[at + 5 : at + 9])[0]
    begun = time.perf_counter()
    killer.run({"killOp": 1, "op": opid, "$db": "admin"})
    thread.join()
    return ended[0][1] - begun


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--quire", default="target/release/quire")
    arguments.add_argument("--only", default="")
    arguments.add_argument("--limits", default="1,20,100,300")
    arguments.add_argument("--rounds", type=int, default=2)
    arguments.add_argument("--json")
    options = arguments.parse_args()
    limits = [int(limit) for limit in options.limits.split(",")]
    server, rows, failed = Server(options.quire), {}, False
    for name, request in commands().items():
        if not re.search(options.only, name):
            continue
        body, sequence = request, None
        if isinstance(request, tuple):
            body, sequence = request[0], (request[1], stripped(request[2]))
        client = Client(server.port)
        row = rows[name] = {}
        try:
            plain = Client.message(body, sequence, maxTimeMS=60_000)
            if len(plain) > 48_000_000:
                raise ValueError(f"{name} is too long")
            before = server.resident_mb()
            taken, reply = client.exchange(plain)
            row["ms"], row["code"] = round(taken * 1000), field(reply, "code") or 0
            late = {}
            for limit in limits:
                if limit >= taken * 1000:
                    continue
                message = Client.message(body, sequence, maxTimeMS=limit)
                times = []
                for _ in range(options.rounds):
                    seconds, reply = client.exchange(message)
                    times.append(round(seconds * 1000) - limit)
                    if times[-1] <= LATE_MS_MAX / 2:
                        break
                late[limit] = min(times)
            if taken > 0.15:
                seconds = min(filter(None, (killed(server, plain, taken * share) for share in (0.3, 0.6))), default=None)
                if seconds is not None:
                    late["killOp"] = round(seconds * 1000)
            row["late"] = late
            row["mb"] = server.resident_mb() - before
        except (OSError, ConnectionError) as error:
            row["failed"] = str(error)
            if server.process.poll() is not None:
                print(f"{name}: the server ended")
                server = Server(options.quire)
        worst = max(row.get("late", {}).values(), default=0)
        failed |= worst > LATE_MS_MAX or "failed" in row
        print(f"{'LATE' if worst > LATE_MS_MAX else 'FAIL' if 'failed' in row else '    '} {name}: {json.dumps(row)}", flush=True)
        if re.match(r"(insert|update|upsert|delete|findAndModify|bulkWrite|aggregate merge|arrayFilters)", name):
            server.reset()
    server.stop()
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(rows, indent=1))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
