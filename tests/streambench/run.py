"""What change streams and jobs on changes cost, and how long they take: the figures of docs/benchmarks.md.

    tests/streambench/run.py target/release/quire [--seconds 4] [--rounds 3] [--jobs 10000]

Every comparison is made in turns in one run on one server. CPU is that of the server.
"""
import argparse, pathlib, statistics, sys, threading, time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
import own_server

own_server.in_own_environment()
import pymongo

parser = argparse.ArgumentParser()
parser.add_argument("quire")
parser.add_argument("--seconds", type=float, default=4)
parser.add_argument("--rounds", type=int, default=3)
parser.add_argument("--jobs", type=int, default=10_000)
options = parser.parse_args()

BATCH, DOCUMENT = 50, {"s": "x" * 100}
server = own_server.Quire(options.quire, "--create")
address = server.db.client.address


def database():
    return pymongo.MongoClient(*address, directConnection=True).bench


class Streams:
    """Threads that read change streams, until the end of a `with`."""

    def __init__(self, count, collection="written"):
        self.count, self.collection, self.stop = count, collection, threading.Event()

    def read(self, ready):
        with database()[self.collection].watch(max_await_time_ms=200) as stream:
            ready.release()
            while not self.stop.is_set():
                stream.try_next()

    def __enter__(self):
        ready = threading.Semaphore(0)
        self.threads = [threading.Thread(target=self.read, args=(ready,)) for _ in range(self.count)]
        for thread in self.threads:
            thread.start()
        for _ in self.threads:
            ready.acquire()

    def __exit__(self, *_):
        self.stop.set()
        for thread in self.threads:
            thread.join()


class Triggers:
    """Jobs that copy each inserted document, until the end of a `with`."""

    def __init__(self, count, collection="written", parallel=None):
        self.names = [f"copy{number}" for number in range(count)]
        self.changes = {"collection": collection} | ({"parallel": {"lanes": parallel}} if parallel else {})

    def __enter__(self):
        for name in self.names:
            copy = [{"$documents": ["$$event.fullDocument"]}, {"$merge": {"into": name}}]
            server.db.command({"createJob": name, "changes": self.changes, "pipeline": copy})

    def __exit__(self, *_):
        for name in self.names:
            server.db.command({"dropJob": name})
            server.db[name].drop()


def write(seconds, collection="written"):
    """Writes batches over one connection. Returns documents a second, and microseconds of CPU a document."""
    target, count = database()[collection], 0
    began, cpu = time.perf_counter(), server.cpu()
    while time.perf_counter() < began + seconds:
        target.insert_many([dict(DOCUMENT, n=n) for n in range(BATCH)])
        count += BATCH
    return count / (time.perf_counter() - began), (server.cpu() - cpu) / count * 1e6


def compare(title, beside):
    """Measures writes beside each of the things of `beside`, in turns."""
    found = {name: [] for name in beside}
    for _ in range(options.rounds):
        for name, thing in beside.items():
            with thing():
                found[name].append(write(options.seconds))
            server.db.written.drop()
    print(title)
    base = None
    for name, rounds in found.items():
        speed, cpu = (statistics.median(column) for column in zip(*rounds))
        base = base or speed
        print(f"  {name:28} {speed:9,.0f} documents/s  {speed / base:5.2f}  {cpu:6.1f} µs of CPU", flush=True)


def delays(collection, shown, count=300, pause=0.01):
    """Returns the sorted times in ms from the acknowledgement of an insert into `collection` until a stream of `shown` has it."""
    acknowledged, seen, stop, ready = {}, {}, threading.Event(), threading.Semaphore(0)

    def read():
        with database()[shown].watch(max_await_time_ms=200) as stream:
            ready.release()
            while not stop.is_set() or len(seen) < count:
                event = stream.try_next()
                if event and "number" in (event.get("fullDocument") or {}):
                    seen[event["fullDocument"]["number"]] = time.perf_counter()

    reader = threading.Thread(target=read)
    reader.start()
    ready.acquire()
    target = database()[collection]
    for number in range(count):
        target.insert_one({"number": number})
        acknowledged[number] = time.perf_counter()
        time.sleep(pause)
    stop.set()
    reader.join()
    return sorted(max(0, seen[number] - acknowledged[number]) * 1000 for number in range(count))


def show_delays(title, beside, collection, shown):
    with beside:
        times = delays(collection, shown)
    print(f"  {title:28} p50 {times[len(times) // 2]:6.2f} ms  p99 {times[len(times) * 99 // 100]:7.2f} ms", flush=True)


class Load:
    """A thread that writes batches into a collection, until the end of a `with`."""

    def __init__(self, collection):
        self.collection, self.stop = collection, threading.Event()

    def keep_writing(self):
        target = database()[self.collection]
        while not self.stop.is_set():
            target.insert_many([dict(DOCUMENT) for _ in range(BATCH)])

    def __enter__(self):
        self.thread = threading.Thread(target=self.keep_writing)
        self.thread.start()

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()
        server.db[self.collection].drop()


def log_bytes():
    stats = server.db.client.local["oplog.rs"].aggregate([{"$collStats": {"storageStats": {}}}])
    return next(stats)["storageStats"]["storageSize"]


def logged(title, work, count):
    # What is in memory is not counted.
    server.db.client.admin.command("fsync")
    before = log_bytes()
    work(count)
    server.db.client.admin.command("fsync")
    print(f"  {title:28} {(log_bytes() - before) / count:6.0f} bytes", flush=True)


def renames(title, copies, declared, count=100):
    """Renames a customer again and again, and measures until the copies in `copies` orders have the name."""
    db = database()
    db.client.drop_database("renamed")
    db = db.client.renamed
    db.customers.insert_one({"_id": 1, "name": "0"})
    if declared:
        reference = {"name": "customer", "type": "reference", "from": "customers", "localField": "customerId", "as": "customer", "fields": {"name": "sync"}}
        db.command({"create": "orders", "patterns": [reference]})
        db.orders.insert_many([{"customerId": 1} for _ in range(copies)])
    else:
        db.orders.create_index("customer._id")
        db.orders.insert_many([{"customer": {"_id": 1, "name": "0"}} for _ in range(copies)])
        change = {"q": {"$expr": {"$eq": ["$customer._id", "$$event.documentKey._id"]}}, "multi": True,
                  "u": [{"$set": {"customer.name": "$$event.updateDescription.updatedFields.name"}}]}
        db.command({"createJob": "names", "changes": {"collection": "customers"}, "writes": [{"update": "orders", "updates": [change]}]})
    rename = lambda name: db.customers.update_one({"_id": 1}, {"$set": {"name": name}})

    def wait(name):
        while db.orders.count_documents({"customer.name": name}) < copies:
            pass

    acknowledged, copied, cpu = [], [], server.cpu()
    for number in range(count):
        began = time.perf_counter()
        rename(str(number))
        acknowledged.append((time.perf_counter() - began) * 1000)
        time.sleep(0.01)
    time.sleep(0.5)
    cpu = (server.cpu() - cpu) / count * 1e6
    for number in range(count):
        began = time.perf_counter()
        rename(f"again {number}")
        wait(f"again {number}")
        copied.append((time.perf_counter() - began) * 1000)
    print(f"  {title:12} acknowledged {statistics.median(acknowledged):6.2f} ms  copied {statistics.median(copied):6.2f} ms  {cpu:7.0f} µs of CPU", flush=True)
    if not declared:
        db.command({"dropJob": "names"})


nothing = lambda: Streams(0)
try:
    compare("Batches of 50 beside streams", {"none": nothing, "one": lambda: Streams(1), "ten": lambda: Streams(10)})
    compare("Batches of 50 beside streams of another collection", {"none": nothing, "ten": lambda: Streams(10, "quiet")})
    compare("Batches of 50 beside jobs that copy each document", {
        "none": nothing, "one": lambda: Triggers(1), "one in four lanes": lambda: Triggers(1, parallel=4), "ten": lambda: Triggers(10),
        "ten on another collection": lambda: Triggers(10, "quiet"),
    })
    print("From the acknowledgement of an insert to its event")
    show_delays("idle", Streams(0), "single", "single")
    show_delays("beside a busy collection", Load("busy"), "single", "single")
    show_delays("in a busy collection", Load("single"), "single", "single")
    print("From the acknowledgement of an insert to the event of what a job has written for it")
    with Triggers(1, "single"):
        show_delays("idle", Streams(0), "single", "copy0")
        show_delays("beside a busy collection", Load("busy"), "single", "copy0")
    print("A renamed customer with copies in 100 orders; then in 1")
    for copies in [100, 1]:
        renames("by a job", copies, declared=False)
        renames("declared", copies, declared=True)
    print("Bytes of the log a write, of documents of 120 bytes")
    table = server.db.logged
    logged("inserts in batches", lambda count: table.insert_many([dict(DOCUMENT, _id=n) for n in range(count)]), 50_000)
    logged("single inserts", lambda count: [table.insert_one({"s": DOCUMENT["s"]}) for _ in range(count)], 3_000)
    logged("single updates", lambda count: [table.update_one({"_id": n}, {"$set": {"n": 1}}) for n in range(count)], 3_000)
    logged("updates of many", lambda count: table.update_many({"_id": {"$lt": count}}, {"$set": {"n": 2}}), 50_000)
    logged("deletes of many", lambda count: table.delete_many({"_id": {"$lt": count}}), 50_000)
    print(f"{options.jobs:,} jobs of which none is due")
    schedule, writes = {"cron": "0 0 1 1 *"}, [{"delete": "old", "deletes": [{"q": {}, "limit": 0}]}]
    for name, count in [("none", 0), ("all", options.jobs)]:
        began = time.perf_counter()
        for number in range(count):
            server.db.command({"createJob": f"yearly{number}", "schedule": schedule, "writes": writes}, writeConcern={"w": 1})
        took = time.perf_counter() - began
        time.sleep(2)
        cpu, memory = server.cpu(), server.memory("VmRSS")
        time.sleep(20)
        print(f"  {name:28} {(server.cpu() - cpu) / 20 * 100:5.2f} % of a core  {memory} MB  created in {took:.1f} s", flush=True)
finally:
    server.stop()
