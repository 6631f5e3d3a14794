"""Order and completeness of change streams under fire.

Eight threads write (single writes, transactions, drops and renames) to a server that is killed every few
seconds. Four readers follow the database; each dies after a random number of events and resumes at the
token that it has. In the end the data that each reader has built of its events are the data of the
server: no event is missing, doubled or out of order, and a transaction is whole.

    tests/soak/streams.py target/debug/quire [ROUNDS]
"""
import pathlib, random, signal, subprocess, sys, tempfile, threading, time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
import own_server

own_server.in_own_environment()
import pymongo
from pymongo.errors import OperationFailure, PyMongoError

WRITERS, READERS, COLLECTIONS = 8, 4, "abc"
program, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 5


class Reader:
    """Builds the data of the database from its events."""

    def __init__(self, db):
        opened = db.command({"aggregate": 1, "pipeline": [{"$changeStream": {}}], "cursor": {"batchSize": 0}})
        self.data, self.events, self.token = {}, 0, opened["cursor"]["postBatchResumeToken"]

    def follow(self, db, most):
        """Resumes, and applies at most `most` events. Returns the number of applied ones."""
        stage = {"$changeStream": {"resumeAfter": self.token}}
        reply = db.command({"aggregate": 1, "pipeline": [stage], "cursor": {"batchSize": 50}})["cursor"]
        batch, done = reply["firstBatch"], 0
        while True:
            for event in batch:
                if done == most:
                    return done
                self.apply(event)
                done += 1
            self.token = reply["postBatchResumeToken"]
            if not batch and done:
                return done
            more = {"getMore": reply["id"], "collection": "$cmd.aggregate", "maxTimeMS": 50, "batchSize": 50}
            reply = db.command(more)["cursor"]
            batch = reply["nextBatch"]
            if not batch:
                self.token = reply["postBatchResumeToken"]
                return done

    def apply(self, event):
        kind, collection = event["operationType"], event["ns"].get("coll")
        key = (collection, event.get("documentKey", {}).get("_id"))
        if kind == "insert":
            assert key not in self.data, f"twice: {event}"
            self.data[key] = event["fullDocument"]["v"]
        elif kind == "replace":
            assert key in self.data, f"something is missing before {event}"
            self.data[key] = event["fullDocument"]["v"]
        elif kind == "update":
            assert key in self.data, f"something is missing before {event}"
            self.data[key] = event["updateDescription"]["updatedFields"].get("v", self.data[key])
        elif kind == "delete":
            assert key in self.data, f"something is missing before {event}"
            del self.data[key]
        elif kind == "drop":
            self.data = {known: v for known, v in self.data.items() if known[0] != collection}
        elif kind == "rename":
            to = event["to"]["coll"]
            kept = {known: v for known, v in self.data.items() if known[0] != to}
            self.data = {(to if name == collection else name, id): v for (name, id), v in kept.items()}
        else:
            raise AssertionError(kind)
        self.token, self.events = event["_id"], self.events + 1


def write(client, rng):
    """Does one random write."""
    db, collection = client.fire, client.fire[rng.choice(COLLECTIONS)]
    id, v, kind = rng.randrange(3000), rng.randrange(1000), rng.randrange(60)
    if kind == 0:
        collection.drop()
    elif kind == 1:
        collection.rename("c", dropTarget=True)
    elif kind < 10:
        collection.delete_one({"_id": id})
    elif kind < 20:
        collection.update_many({"_id": {"$gte": id, "$lt": id + 50}}, {"$set": {"v": v}})
    elif kind < 28:
        collection.replace_one({"_id": id}, {"v": v})
    elif kind < 38:
        with client.start_session() as session, session.start_transaction():
            for name in COLLECTIONS:
                db[name].update_one({"_id": id}, {"$set": {"v": v}}, upsert=True, session=session)
            if rng.random() < 0.3:
                session.abort_transaction()
    else:
        collection.insert_many([{"_id": id + at, "v": v} for at in range(8)], ordered=False)


def keep_writing(port, seed, stop):
    options = {"directConnection": True, "serverSelectionTimeoutMS": 500}
    rng, client = random.Random(seed), pymongo.MongoClient("127.0.0.1", port, **options)
    while not stop.is_set():
        try:
            write(client, rng)
        except PyMongoError:
            pass  # A conflict, a duplicate, a rename of nothing, or a server that is gone.


with tempfile.TemporaryDirectory() as directory:
    rng, readers = random.Random(44), []
    for round in range(rounds + 1):
        port = own_server.free_port()
        command = [program, "serve", "--dbpath", directory, "--create", "--port", str(port)]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            client = pymongo.MongoClient("127.0.0.1", port, directConnection=True, serverSelectionTimeoutMS=60_000)
            client.admin.command("ping")
            readers = readers or [Reader(client.fire) for _ in range(READERS)]
            if round == rounds:
                break
            stop = threading.Event()
            writers = [threading.Thread(target=keep_writing, args=(port, rng.random(), stop)) for _ in range(WRITERS)]
            for writer in writers:
                writer.start()
            until = time.monotonic() + 2 + 2 * rng.random()
            while time.monotonic() < until:
                rng.choice(readers).follow(client.fire, rng.randrange(1, 200))
        finally:
            if round < rounds:
                server.send_signal(signal.SIGKILL)
                stop.set()
                for writer in writers:
                    writer.join()
                server.wait()
    found = {(name, doc["_id"]): doc["v"] for name in COLLECTIONS for doc in client.fire[name].find()}
    for reader in readers:
        while reader.follow(client.fire, 10**9):
            pass
        assert reader.data == found, f"{len(reader.data)} documents instead of {len(found)}"
    server.kill()
    server.wait()
    print(f"{rounds} rounds, {[reader.events for reader in readers]} events, {len(found)} documents: all agree")
