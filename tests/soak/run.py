#!/usr/bin/env python3
"""Measures how much hostile clients slow down the ordinary clients of a server, for an hour.

    cargo build --release -p quire-cli
    tests/soak/run.py [--minutes 60] [--quire target/release/quire] [--json FILE]

Needs Python's venv module and, once, PyPI: `pymongo` goes into a virtual environment under the
temporary directory. The server gets an empty directory there and a free port, and is stopped at the
end.

A round takes three minutes: in the first the ordinary clients run alone, in the other two the hostile
ones run too, so that other work of the machine affects both. Four ordinary clients send reads and
writes of few documents at a steady rate. Three hostile processes choose from a list of valid requests
that need more memory or time than a client should get, and from a list of abuses of the connection.

The run fails if the 99th percentile of the ordinary requests with hostile clients is more than 5 times
that without them, if an ordinary request fails, if the median of the server's resident memory without
the block cache and the memtables is more than 1.25 times higher in the last third than in the first,
with the hostile clients or without them, or if a hostile request gets no reply. The cache and the
memtables are subtracted because both have their own limits and grow during most of an hour: blocks of
tables that compaction has replaced leave the cache only when it is full. Their sizes are in the result
too.
"""
import argparse, json, multiprocessing, pathlib, queue, random, socket, struct, sys, threading, time, zlib

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
from own_server import Quire, in_own_environment

ROUND = 180
ALONE = 60
# Seconds after which what the hostile ones had has been given back.
SETTLED = 20
DOCUMENTS = 20_000
ORDINARY_CLIENTS = 4
ORDINARY_PAUSE = 0.02
HOSTILE_PROCESSES = 3
HOSTILE_PAUSE = 0.5
P99_RATIO_MAX = 5
MEMORY_RATIO_MAX = 1.25

OP_MSG, OP_COMPRESSED = 2013, 2012


def ordinary(db, rng, at):
    """One request of an application."""
    number = rng.randrange(DOCUMENTS)
    kind = at % 6
    if kind == 0:
        db.items.find_one({"_id": number})
    elif kind == 1:
        db.items.update_one({"_id": number}, {"$inc": {"seen": 1}})
    elif kind == 2:
        list(db.items.find({"group": number % 500}).limit(20))
    elif kind == 3:
        db.log.insert_one({"item": number, "text": "x" * 200})
    elif kind == 4:
        list(db.items.aggregate([{"$match": {"group": number % 500}}, {"$group": {"_id": "$kind", "n": {"$sum": 1}}}]))
    else:
        db.log.delete_many({"item": number})


class Ordinary(threading.Thread):
    """A client that sends at a steady rate and records the duration of each request in seconds."""

    def __init__(self, port, seed, end, hostile_now):
        super().__init__()
        self.port, self.rng, self.end, self.hostile_now = port, random.Random(seed), end, hostile_now
        self.times = {False: [], True: []}
        self.errors = []

    def run(self):
        import pymongo

        db = pymongo.MongoClient("127.0.0.1", self.port, directConnection=True, w=1).bench
        at = 0
        while time.time() < self.end:
            beside, begun = self.hostile_now.is_set(), time.perf_counter()
            try:
                ordinary(db, self.rng, at)
            except Exception as error:  # every failure of an ordinary request is a finding
                self.errors.append(f"{type(error).__name__}: {error}"[:300])
            if beside == self.hostile_now.is_set():
                self.times[beside].append(time.perf_counter() - begun)
            at += 1
            time.sleep(ORDINARY_PAUSE)


def doubling(times):
    return [{"$set": {"a": {"$concatArrays": ["$a", "$a"]}}} for _ in range(times)]


def hostile_requests():
    """Hostile commands by name. Each may succeed or fail, but must not stop or block the server."""
    thousand = ["$v"] * 1000
    millions = {"$set": {"v": {"$range": [0, 1_000_000]}}}
    on_one = {"$match": {"_id": 1}}

    def pipeline(*stages, **options):
        return {"aggregate": "hostile", "pipeline": [on_one, *stages], "cursor": {}, **options}

    def find(filter, **options):
        return {"find": "hostile", "filter": filter, **options}

    wide = {"$let": {"vars": {f"v{at}": at for at in range(40_000)}, "in": "$$v39999"}}
    return {
        "concatenated arrays": pipeline(millions, {"$project": {"x": {"$size": {"$concatArrays": thousand}}}}),
        "arrays of arrays": pipeline(millions, {"$project": {"x": {"$size": [thousand]}}}),
        "zip": pipeline(millions, {"$project": {"x": {"$zip": {"inputs": thousand}}}}),
        "doubling": pipeline({"$set": {"a": [1]}}, *doubling(31)),
        "roots in roots": pipeline(*[{"$project": {"a": "$$ROOT", "b": "$$ROOT"}}] * 40),
        "a set of a million": pipeline(millions, {"$project": {"x": {"$size": {"$setUnion": ["$v", "$v"]}}}}),
        "sorted in a loop": pipeline(
            millions,
            {"$project": {"x": {"$map": {"input": "$v", "in": {"$sortArray": {"input": "$v", "sortBy": -1}}}}}},
            maxTimeMS=500,
        ),
        "variables": pipeline({"$project": {"x": wide}}),
        "a regular expression": find({"text": {"$regex": ".{0,200}.{0,200}.{0,150}[YZ]"}}),
        "a regular expression that backtracks": find({"text": {"$regex": "(a+)+$"}}),
        "a sum over the product": {
            "aggregate": "items", "cursor": {}, "maxTimeMS": 500,
            "pipeline": [{"$lookup": {"from": "items", "pipeline": [], "as": "x"}}, {"$unwind": "$x"}, {"$group": {"_id": None, "n": {"$sum": 1}}}],
        },
        "everything pushed": {
            "aggregate": "items", "cursor": {}, "maxTimeMS": 1000,
            "pipeline": [{"$set": {"t": {"$range": [0, 5000]}}}, {"$group": {"_id": None, "all": {"$push": "$t"}}}],
        },
        "a sort of much": {
            "aggregate": "items", "cursor": {}, "maxTimeMS": 1000, "allowDiskUse": False,
            "pipeline": [{"$set": {"t": {"$range": [0, 5000]}}}, {"$sort": {"seen": -1, "t": 1}}, {"$limit": 100_000}],
        },
        "a filter of a million": find({"_id": {"$in": list(range(1_000_000))}}),
        "a deep filter": find({"$or": [{"a": {"$not": {"$gt": at}}} for at in range(20_000)]}),
        "a cursor left behind": {"find": "items", "filter": {}, "batchSize": 2},
        "a large insert": {"insert": "large", "documents": [{"_id": at, "text": "y" * 1_000_000} for at in range(20)]},
        "keys of an array": {"insert": "keyed", "documents": [{"_id": 1, "a": list(range(50_000)), "b": "z" * 2_000_000}]},
        "an update that grows": {
            "update": "hostile",
            "updates": [{"q": {"_id": 2}, "u": [{"$set": {"v": {"$range": [0, 1_000_000]}}}, *doubling(3)]}],
        },
        "sleeping": {"aggregate": "items", "cursor": {}, "maxTimeMS": 300, "pipeline": [{"$match": {"$expr": {"$gt": [{"$size": {"$range": [0, 100_000]}}, 1_000_000]}}}]},
    }


def message(body, request_id=1):
    section = struct.pack("<I", 0) + b"\0" + body
    return struct.pack("<iiii", 16 + len(section), request_id, 0, OP_MSG) + section


def compressed(body):
    """Returns the message as an OP_COMPRESSED with zlib."""
    section = struct.pack("<I", 0) + b"\0" + body
    packed = zlib.compress(section, 9)
    content = struct.pack("<iiB", OP_MSG, len(section), 2) + packed
    return struct.pack("<iiii", 16 + len(content), 1, 0, OP_COMPRESSED) + content


def abuses(port, rng):
    """Abuses of the connection by name. Each returns when it is done."""
    import bson

    def connect():
        stream = socket.create_connection(("127.0.0.1", port), timeout=20)
        stream.settimeout(20)
        return stream

    def announced():
        with connect() as stream:
            stream.sendall(struct.pack("<iiii", 48_000_000, 1, 0, OP_MSG) + b"\0" * 100)
            time.sleep(1)

    def torn():
        with connect() as stream:
            stream.sendall(message(bson.encode({"ping": 1, "$db": "bench"}))[: rng.randrange(1, 40)])
            time.sleep(0.2)

    def noise():
        with connect() as stream:
            stream.sendall(struct.pack("<iiii", 516, 1, 0, OP_MSG) + rng.randbytes(500))
            stream.recv(1000)

    def bombs():
        body = bson.encode({"ping": 1, "$db": "bench", "x": b"\0" * 15_000_000})
        with connect() as stream:
            for _ in range(5):
                stream.sendall(compressed(body))
            stream.recv(1000)

    def unread():
        with connect() as stream:
            for _ in range(200):
                stream.sendall(message(bson.encode({"find": "items", "batchSize": 5000, "$db": "bench"})))
            time.sleep(1)

    def sessions():
        with connect() as stream:
            for at in range(2000):
                session = {"id": bson.Binary(rng.randbytes(16), 4)}
                stream.sendall(message(bson.encode({"ping": 1, "lsid": session, "$db": "bench"}), at))
                stream.recv(4096)

    return {"announced": announced, "torn": torn, "noise": noise, "bombs": bombs, "unread": unread, "sessions": sessions}


def hostile(port, seed, end, hostile_now, report):
    """A process that sends hostile requests one after the other, until it is told to stop."""
    import pymongo

    rng = random.Random(seed)
    client = pymongo.MongoClient("127.0.0.1", port, directConnection=True, socketTimeoutMS=60_000, retryWrites=False)
    requests, attacks = hostile_requests(), abuses(port, rng)
    names = [*requests, *attacks]
    while time.time() < end:
        if not hostile_now.wait(1):
            continue
        name = rng.choice(names)
        begun, outcome = time.perf_counter(), "answered"
        try:
            if name in requests:
                reply = client.bench.command(requests[name])
                del reply
            else:
                attacks[name]()
        except pymongo.errors.OperationFailure as error:
            outcome = f"error {error.code}"
        except pymongo.errors.DocumentTooLarge:
            outcome = "refused by the driver"
        except pymongo.errors.PyMongoError as error:
            outcome = f"no answer: {type(error).__name__}: {error}"[:200]
        except OSError:
            outcome = "connection closed"
        report.put((name, outcome, time.perf_counter() - begun))
        time.sleep(HOSTILE_PAUSE)


def percentile(times, share):
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def load(server):
    db = server.db
    server.load("items", ({"_id": at, "group": at % 500, "kind": at % 7, "seen": 0, "text": "t" * 300} for at in range(DOCUMENTS)))
    db.items.create_index("group")
    db.log.create_index("item")
    db.keyed.create_index([("a", 1), ("b", 1)])
    db.hostile.insert_many([{"_id": at, "text": "a" * 4096 + "b", "a": [1]} for at in range(10)])


def summary(outcomes):
    """For each hostile request: its number, the longest time in seconds, and the results."""
    rows = {}
    for name, outcome, seconds in outcomes:
        row = rows.setdefault(name, {"count": 0, "slowest": 0.0, "outcomes": {}})
        row["count"] += 1
        row["slowest"] = round(max(row["slowest"], seconds), 2)
        row["outcomes"][outcome] = row["outcomes"].get(outcome, 0) + 1
    return rows


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--minutes", type=float, default=60)
    arguments.add_argument("--quire", default="target/release/quire")
    arguments.add_argument("--json")
    options = arguments.parse_args()
    in_own_environment()

    server = Quire(options.quire, "--wiredTigerCacheSizeGB", "0.25")
    load(server)
    port = server.db.client.address[1]
    context = multiprocessing.get_context("fork")
    hostile_now, report = context.Event(), context.Queue()
    begun = time.time()
    end = begun + options.minutes * 60
    attackers = [context.Process(target=hostile, args=(port, seed, end, hostile_now, report), daemon=True) for seed in range(HOSTILE_PROCESSES)]
    for attacker in attackers:
        attacker.start()
    clients = [Ordinary(port, 100 + seed, end, hostile_now) for seed in range(ORDINARY_CLIENTS)]
    for client in clients:
        client.start()

    outcomes, memory = [], []

    def held_by_engine():
        cache = server.db.command("serverStatus")["wiredTiger"]["cache"]
        used = cache["bytes currently in the cache"] + cache["tracked dirty bytes in the cache"]
        return used / 1e6

    while time.time() < end:
        passed = time.time() - begun
        (hostile_now.set if passed % ROUND >= ALONE else hostile_now.clear)()
        try:
            outcomes.append(report.get(timeout=1))
        except queue.Empty:
            pass
        memory.append((passed, server.memory("VmRSS"), held_by_engine()))
    for client in clients:
        client.join()
    while not report.empty():
        outcomes.append(report.get())
    alive = server.server.poll() is None

    alone = [taken for client in clients for taken in client.times[False]]
    beside = [taken for client in clients for taken in client.times[True]]
    errors = [error for client in clients for error in client.errors]
    third = (end - begun) / 3
    early = [sample[1:] for sample in memory if sample[0] < third]
    late = [sample[1:] for sample in memory if sample[0] > 2 * third]

    def medians(size, chosen=lambda passed: True):
        thirds = (("first third", lambda at: at < third), ("last third", lambda at: at > 2 * third))
        return {
            name: round(percentile([size(*sample[1:]) for sample in memory if within(sample[0]) and chosen(sample[0])], 0.5))
            for name, within in thirds
        }

    resident, engine = medians(lambda resident, _: resident), medians(lambda _, engine: engine)
    without = lambda resident, engine: resident - engine
    rest = {
        "beside": medians(without, lambda passed: passed % ROUND >= ALONE),
        "alone": medians(without, lambda passed: SETTLED <= passed % ROUND < ALONE),
    }
    result = {
        "minutes": options.minutes,
        "ordinary requests": len(alone) + len(beside),
        "ordinary errors": errors[:20],
        "ms alone": {share: round(percentile(alone, share) * 1000, 2) for share in (0.5, 0.99, 0.999)},
        "ms beside": {share: round(percentile(beside, share) * 1000, 2) for share in (0.5, 0.99, 0.999)},
        "p99 ratio": round(percentile(beside, 0.99) / percentile(alone, 0.99), 2),
        "median memory MB": resident,
        "of it block cache and memtables": engine,
        "without them": rest,
        "sessions": server.db.command("serverStatus")["logicalSessionRecordCache"]["activeSessionsCount"],
        "peak memory MB": {"first third": max(early)[0], "last third": max(late)[0]},
        "memory MB each minute": [(round(at / 60), resident, round(engine)) for at, resident, engine in memory[::60]],
        "hostile": summary(outcomes),
    }
    text = json.dumps(result, indent=2)
    print(text)
    if options.json:
        pathlib.Path(options.json).write_text(text)
    unanswered = [name for name, outcome, _ in outcomes if outcome.startswith("no answer")]
    grown = any(part["last third"] > part["first third"] * MEMORY_RATIO_MAX for part in rest.values())
    failed = not alive or errors or unanswered or result["p99 ratio"] > P99_RATIO_MAX or grown
    server.stop()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
