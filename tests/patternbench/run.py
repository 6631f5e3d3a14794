"""What declared patterns cost beside the same work of an application: the figures of docs/benchmarks.md.

    tests/patternbench/run.py target/release/quire [--seconds 2] [--rounds 3] [--only rollups] [--disk] [--instructions]

Every comparison is made in turns on one server in memory, or on disk with `--disk`. The clients send prebuilt messages
and wait for each reply; they are sockets of one thread, so that the client costs little of the machine. CPU is that of
the server. `--instructions` counts with callgrind instead: the load of the machine does not change these figures.
"""
import argparse, itertools, pathlib, re, select, socket, statistics, struct, subprocess, sys, tempfile, time, uuid

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
import own_server

own_server.in_own_environment()
import bson

PARTS = ["others", "fanout", "rollups", "batches", "counter"]
parser = argparse.ArgumentParser()
parser.add_argument("quire")
parser.add_argument("--seconds", type=float, default=2)
parser.add_argument("--rounds", type=int, default=3)
parser.add_argument("--only", choices=PARTS, action="append")
parser.add_argument("--disk", action="store_true")
parser.add_argument("--instructions", action="store_true")
options = parser.parse_args()

# The operations that callgrind counts.
COUNTED = 2000
FILMS = 100
TRANSACTIONS = itertools.count()


class Server:
    """A server in memory or on disk, under callgrind if instructions are counted."""

    def __init__(self):
        self.place = tempfile.TemporaryDirectory(prefix="patterns-", dir=own_server.WORK)
        self.port = own_server.free_port()
        command = [options.quire, "serve", "--port", str(self.port)]
        command += ["--dbpath", f"{self.place.name}/data", "--create"] if options.disk else ["--memory"]
        if options.instructions:
            counts = f"--callgrind-out-file={self.place.name}/counts"
            command = ["valgrind", "--tool=callgrind", "--instr-atstart=no", counts, *command]
        self.process = own_server.Server(command, self.port)
        self.db = self.process.db
        self.db.command("ping")
        self.dumps = 0

    def instructions(self, work):
        """Returns the instructions of `work`."""
        control = ["callgrind_control", str(self.process.server.pid)]
        subprocess.run([*control, "-i", "on"], check=True, capture_output=True)
        work()
        subprocess.run([*control, "-d"], check=True, capture_output=True)
        subprocess.run([*control, "-i", "off"], check=True, capture_output=True)
        self.dumps += 1
        dump = pathlib.Path(self.place.name, f"counts.{self.dumps}").read_text()
        return int(re.search(r"^totals: (\d+)", dump, re.M).group(1))

    def stop(self):
        self.process.stop()
        self.place.cleanup()


class Message:
    """A command, ready to send. In a transaction its number is set before each sending."""

    def __init__(self, command, session=None, db="bench"):
        body = dict(command, **{"$db": db})
        if session:
            body |= {"lsid": {"id": bson.Binary(session, 4)}, "txnNumber": bson.Int64(0), "autocommit": False}
        body = b"\0\0\0\0\0" + bson.encode(body)
        self.bytes = bytearray(struct.pack("<iiii", len(body) + 16, 1, 0, 2013) + body)
        self.number = self.bytes.find(b"\x12txnNumber\0") + 11 if session else None


class Client:
    """A connection that repeats operations. An operation is a list of messages, each sent after the reply to the one before."""

    def __init__(self, port, operations):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.operations, self.done, self.at, self.txn = operations, 0, 0, next(TRANSACTIONS)

    def send(self):
        message = self.operations[self.done % len(self.operations)][self.at]
        if message.number:
            struct.pack_into("<q", message.bytes, message.number, self.txn)
        self.socket.sendall(message.bytes)

    def receive(self):
        """Takes a reply. Returns true if it ends an operation."""
        reply = self.socket.recv(1 << 16)
        length = struct.unpack_from("<i", reply)[0]
        while len(reply) < length:
            reply += self.socket.recv(1 << 16)
        if b"\x01ok\0\0\0\0\0\0\0\xf0\x3f" not in reply or b"writeErrors" in reply:
            raise SystemExit(f"refused: {bson.decode(reply[21:])}")
        self.at += 1
        if self.at < len(self.operations[self.done % len(self.operations)]):
            return False
        self.at, self.done, self.txn = 0, self.done + 1, next(TRANSACTIONS)
        return True


def drive(port, operations, seconds=None, count=None):
    """Lets a client for each of `operations` repeat them, for a time or a number of operations. Returns the number and the time."""
    clients = [Client(port, own) for own in operations]
    poll, by_socket, done = select.epoll(), {}, 0
    for client in clients:
        poll.register(client.socket, select.EPOLLIN)
        by_socket[client.socket.fileno()] = client
        client.send()
    began, waiting = time.perf_counter(), len(clients)
    while waiting:
        for found, _ in poll.poll():
            client = by_socket[found]
            if client.receive():
                done += 1
                # A transaction that is left open would keep its documents.
                if done + waiting > count if count else time.perf_counter() > began + seconds:
                    waiting -= 1
                    continue
            client.send()
    took = time.perf_counter() - began
    for client in clients:
        client.socket.close()
    return done, took


def measured(server, operations):
    """Returns microseconds of CPU, or instructions, of the server an operation, and operations a second."""
    drive(server.port, operations, count=max(10 if options.instructions else 100, len(operations)))
    if options.instructions:
        first = time.perf_counter()
        drive(server.port, operations, count=1)
        count = max(10, min(COUNTED, int(5 / (time.perf_counter() - first))))
        return server.instructions(lambda: drive(server.port, operations, count=count)) / count, 0.0
    cpu = server.process.cpu()
    done, took = drive(server.port, operations, options.seconds)
    return (server.process.cpu() - cpu) / done * 1e6, done / took


UNIT = "instructions" if options.instructions else "µs of CPU"


def compare(title, forms):
    """Measures the operations of each form in turns, and prints the medians and the ranges beside the first form."""
    found = {name: [] for name in forms}
    for _ in range(1 if options.instructions else options.rounds):
        for name, (prepare, operations) in forms.items():
            server = Server()
            try:
                prepare(server.db)
                found[name].append(measured(server, operations))
            finally:
                server.stop()
    print(title)
    base = None
    for name, rounds in found.items():
        costs, rates = zip(*rounds)
        cost, rate = statistics.median(costs), statistics.median(rates)
        base = base or (cost, rate)
        speed = "" if options.instructions else f"  {rate:8,.0f}/s ×{rate / base[1]:.2f}"
        print(f"  {name:32} {cost:11,.1f} {UNIT} ({min(costs):,.0f} to {max(costs):,.0f}) ×{cost / base[0]:.2f}{speed}", flush=True)


def update(collection, q, u, multi=False):
    return {"update": collection, "updates": [{"q": q, "u": u, "multi": multi}]}


def in_transaction(*commands):
    """Returns the messages of a transaction of a session of its own."""
    session = uuid.uuid4().bytes
    first, *more = commands
    messages = [Message(first | {"startTransaction": True}, session)] + [Message(command, session) for command in more]
    return messages + [Message({"commitTransaction": 1}, session, "admin")]


REFERENCE = {"name": "customer", "type": "reference", "from": "customers", "localField": "customerId", "as": "customer",
             "fields": {"name": "sync"}}
ALL_SUMS = {"count": {"$count": {}}, "sum": {"$sum": "$stars"}, "mean": {"$avg": "$stars"}}


def rollup(accumulators):
    return {"name": "votes", "type": "rollup", "from": "votes", "foreignField": "film", "set": accumulators}


def others():
    """A write that touches no pattern, beside collections with patterns and without."""
    def prepare(declared):
        def fill(db):
            db.command({"create": "orders", "patterns": [REFERENCE] if declared else []})
            db.command({"create": "films", "patterns": [rollup(ALL_SUMS)] if declared else []})
            db.plain.insert_many([{"_id": n, "s": "x" * 1000} for n in range(1000)])
        return fill
    insert = [[Message({"insert": "plain", "documents": [{"s": "x" * 1000}]})]]
    change = [[Message(update("plain", {"_id": n}, {"$inc": {"n": 1}}))] for n in range(1000)]
    for title, operations in [("insert", insert), ("update by _id", change)]:
        compare(f"A write that touches no pattern: {title}", {
            "no patterns": (prepare(False), [operations]), "patterns of other collections": (prepare(True), [operations])})


def fanout():
    """A customer gets another name, which stands in orders."""
    for orders in [1, 10, 1000]:
        def prepare(declared, copies):
            def fill(db):
                db.customers.insert_one({"_id": 1, "name": "0", "town": "0"})
                if declared:
                    db.command({"create": "orders", "patterns": [REFERENCE]})
                    db.orders.insert_many([{"customerId": 1, "total": n, "s": "x" * 200} for n in range(copies)])
                else:
                    db.orders.create_index("customerId")
                    db.orders.insert_many([{"customerId": 1, "total": n, "s": "x" * 200, "customer": {"name": "0"}} for n in range(copies)])
            return fill
        names = [f"name {n % 2}" for n in range(2)]
        rename = lambda name: Message(update("customers", {"_id": 1}, {"$set": {"name": name}}))
        copy = lambda name: Message(update("orders", {"customerId": 1}, {"$set": {"customer.name": name}}, multi=True))
        town = lambda name: Message(update("customers", {"_id": 1}, {"$set": {"town": name}}))
        in_order = lambda name: in_transaction(update("customers", {"_id": 1}, {"$set": {"name": name}}),
                                               update("orders", {"customerId": 1}, {"$set": {"customer.name": name}}, multi=True))
        session_rename = [in_order(name) for name in names]
        compare(f"A new name that stands in {orders:,} orders", {
            "update, updateMany, no transaction": (prepare(False, orders), [[[rename(name), copy(name)] for name in names]]),
            "the same in a transaction": (prepare(False, orders), [session_rename]),
            "declared": (prepare(True, orders), [[[rename(name)] for name in names]]),
            "declared, of another field": (prepare(True, orders), [[[town(name)] for name in names]]),
            "the update alone": (prepare(False, orders), [[[rename(name)] for name in names]]),
        })


# The accumulators, and what an application writes to the film for a vote.
MEAN = [{"$set": {"count": {"$add": [{"$ifNull": ["$count", 0]}, 1]}, "sum": {"$add": [{"$ifNull": ["$sum", 0]}, 4]}}},
        {"$set": {"mean": {"$divide": ["$sum", "$count"]}}}]
LAST = {"last": {"$each": [{"by": "somebody", "stars": 4}], "$sort": {"stars": -1}, "$slice": 10}}
TOP = {"$topN": {"n": 10, "sortBy": {"stars": -1}, "output": {"by": "$by", "stars": "$stars"}}}
KINDS = {
    "count and sum": ({"count": {"$count": {}}, "sum": {"$sum": "$stars"}}, {"$inc": {"count": 1, "sum": 4}}),
    "count, sum and mean": (ALL_SUMS, MEAN),
    "max": ({"best": {"$max": "$stars"}}, {"$max": {"best": 4}}),
    "topN of 10": ({"last": TOP}, {"$push": LAST}),
    "firstN of 10": ({"first": {"$firstN": {"n": 10, "input": "$by"}}}, {"$push": {"first": {"$each": ["somebody"], "$slice": 10}}}),
    "push": ({"by": {"$push": "$by"}}, {"$push": {"by": "somebody"}}),
    "addToSet": ({"by": {"$addToSet": "$by"}}, {"$addToSet": {"by": "somebody"}}),
}


def films(accumulators, clients):
    def fill(db):
        db.votes.create_index("film")
        db.command({"create": "films", "patterns": [rollup(accumulators)] if accumulators else []})
        db.films.insert_many([{"_id": n, "title": "x" * 100} for n in range(FILMS * clients)])
    return fill


def own_films(client):
    return range(client * FILMS, (client + 1) * FILMS)


def rollups():
    """A vote changes its film."""
    vote = lambda film: {"insert": "votes", "documents": [{"film": film, "by": "somebody", "stars": 4}]}
    for clients in [1] if options.instructions else [1, 8]:
        alone = [[[Message(vote(film))] for film in own_films(client)] for client in range(clients)]
        for kind, (accumulators, change) in KINDS.items():
            plain = [[in_transaction(vote(film), update("films", {"_id": film}, change)) for film in own_films(client)]
                     for client in range(clients)]
            compare(f"A vote changes {kind} of its film, {clients} clients", {
                "a transaction of the application": (films(None, clients), plain),
                "declared": (films(accumulators, clients), alone),
                "the insert alone": (films(None, clients), alone),
            })


def batches():
    """A hundred votes of one film in one insert."""
    votes = lambda film: {"insert": "votes", "documents": [{"film": film, "by": "somebody", "stars": 4}] * 100}
    change = {"$inc": {"count": 100, "sum": 400}}
    alone = [[[Message(votes(film))] for film in own_films(0)]]
    compare("A hundred votes in one insert change count and sum of their film", {
        "a transaction of the application": (films(None, 1), [[in_transaction(votes(film), update("films", {"_id": film}, change))
                                                               for film in own_films(0)]]),
        "declared": (films(KINDS["count and sum"][0], 1), alone),
        "the insert alone": (films(None, 1), alone),
    })


def counter():
    """32 clients increment one number, and each a number of its own."""
    def prepare(declared):
        def fill(db):
            patterns = [{"name": "views", "type": "counter", "path": "views", "merge": True}] if declared else []
            db.command({"create": "pages", "patterns": patterns})
            db.pages.insert_many([{"_id": n, "views": 0, "s": "x" * 200} for n in range(32)])
        return fill
    for concern in [1, "majority"] if options.disk else [1]:
        add = lambda page: [[Message(update("pages", {"_id": page}, {"$inc": {"views": 1}}) | {"writeConcern": {"w": concern}})]]
        same, each = [add(0) for _ in range(32)], [add(page) for page in range(32)]
        compare(f"Increments of 32 clients, w: {concern}", {
            "32 documents, no pattern": (prepare(False), each), "32 documents, counter": (prepare(True), each),
            "one document, counter": (prepare(True), same), "one document, no pattern": (prepare(False), same)})


own_server.WORK.mkdir(parents=True, exist_ok=True)
for part in options.only or PARTS:
    globals()[part]()
