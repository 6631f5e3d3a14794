#!/usr/bin/env python3
"""Compares Quire and DuckDB on the same machine in the same run: the five queries of JSONBench
(github.com/ClickHouse/JSONBench) on generated events.

    cargo build --release -p quire-cli
    tests/jsonbench/run.py [--events 1000000] [--rounds 3] [--quire target/release/quire]

Needs Python's venv module and, once, PyPI: `pymongo` and `duckdb` go into a virtual environment
under the temporary directory. The server gets an empty directory there and a free port, and is
stopped at the end. The events resemble those of Bluesky's firehose: a few kinds of records, with
skewed users and times. DuckDB runs twice: on a column of JSON, its form of documents, and on typed
columns, which is an upper bound for a document database. The three results of each query are compared.
Times are the best of the rounds. The databases do not run at the same time.
"""
import argparse, json, pathlib, random, sys, time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
from own_server import WORK, Quire, best, in_own_environment

START_US = 1_732_206_349_000_000

COLLECTIONS = [
    ("app.bsky.feed.like", 46), ("app.bsky.graph.follow", 21), ("app.bsky.feed.post", 13),
    ("app.bsky.feed.repost", 8), ("app.bsky.graph.block", 3), ("app.bsky.graph.listitem", 3),
    ("app.bsky.actor.profile", 2), ("app.bsky.feed.threadgate", 1), ("app.bsky.feed.postgate", 1),
    ("app.bsky.graph.list", 1),
]
WORDS = "the of and a to in is you that it he was for on are as with his they at be this".split()


def events(count):
    """Generates the events, which depend only on `count`."""
    rng = random.Random(20241121)
    users = max(count // 40, 10)
    names = [name for name, _ in COLLECTIONS]
    weights = [weight for _, weight in COLLECTIONS]
    time_us = START_US
    for number in range(count):
        time_us += int(rng.expovariate(1 / 20_000))
        user = min(int(users * rng.random() ** 3), users - 1)
        event = {"did": f"did:plc:{user * 2654435761 % 2**48:024x}", "time_us": time_us}
        if rng.random() < 0.02:
            event["kind"] = "identity"
            event["identity"] = {"did": event["did"], "handle": f"user{user}.bsky.social", "seq": number}
            yield event
            continue
        collection = rng.choices(names, weights)[0]
        operation = "create" if rng.random() < 0.93 else "delete"
        commit = {"rev": f"3l{number:011x}", "operation": operation, "collection": collection, "rkey": f"3l{rng.getrandbits(52):013x}"}
        event["kind"] = "commit"
        event["commit"] = commit
        if operation == "create":
            record = {"$type": collection, "createdAt": time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(time_us // 1_000_000))}
            if collection.endswith("post"):
                record["langs"] = ["en"]
                record["text"] = " ".join(rng.choices(WORDS, k=rng.randint(3, 40)))
            else:
                record["subject"] = {"cid": f"bafyrei{rng.getrandbits(208):052x}", "uri": f"at://did:plc:{rng.getrandbits(96):024x}/{collection}/3l{rng.getrandbits(52):013x}"}
            commit["record"] = record
            commit["cid"] = f"bafyrei{rng.getrandbits(208):052x}"
        yield event


CREATED = {"kind": "commit", "commit.operation": "create"}
POSTED = CREATED | {"commit.collection": "app.bsky.feed.post"}
SPREAD = ["app.bsky.feed.post", "app.bsky.feed.repost", "app.bsky.feed.like"]
DATE = {"$toDate": {"$divide": ["$time_us", 1000]}}

# name, pipeline, SQL with placeholders such as {collection}, function from a result document to a row
QUERIES = [
    ("1: kinds of records by number",
     [{"$group": {"_id": "$commit.collection", "count": {"$sum": 1}}}, {"$sort": {"count": -1, "_id": 1}}],
     "SELECT {collection} AS event, count(*) AS n FROM {table} GROUP BY event ORDER BY n DESC, event NULLS FIRST",
     lambda d: (d["_id"], d["count"])),
    ("2: the same with the number of users",
     [{"$match": CREATED},
      {"$group": {"_id": "$commit.collection", "count": {"$sum": 1}, "users": {"$addToSet": "$did"}}},
      {"$project": {"count": 1, "users": {"$size": "$users"}}}, {"$sort": {"count": -1, "_id": 1}}],
     "SELECT {collection} AS event, count(*) AS n, count(DISTINCT {did}) FROM {table} WHERE {kind} = 'commit' AND {operation} = 'create' GROUP BY event ORDER BY n DESC, event",
     lambda d: (d["_id"], d["count"], d["users"])),
    ("3: by hour of the day",
     [{"$match": CREATED | {"commit.collection": {"$in": SPREAD}}},
      {"$group": {"_id": {"event": "$commit.collection", "hour": {"$hour": DATE}}, "count": {"$sum": 1}}},
      {"$sort": {"_id.hour": 1, "_id.event": 1}}],
     "SELECT {collection} AS event, hour(make_timestamp({time_us})) AS h, count(*) AS n FROM {table} WHERE {kind} = 'commit' AND {operation} = 'create' AND {collection} IN ('" + "','".join(SPREAD) + "') GROUP BY event, h ORDER BY h, event",
     lambda d: (d["_id"]["event"], d["_id"]["hour"], d["count"])),
    ("4: the three who posted first",
     [{"$match": POSTED}, {"$group": {"_id": "$did", "first": {"$min": DATE}, "at": {"$min": "$time_us"}}},
      {"$sort": {"at": 1}}, {"$limit": 3}],
     "SELECT {did} AS user, min({time_us}) AS t FROM {table} WHERE {kind} = 'commit' AND {operation} = 'create' AND {collection} = 'app.bsky.feed.post' GROUP BY user ORDER BY t LIMIT 3",
     lambda d: (d["_id"], d["at"])),
    ("5: the three with the longest span of posts",
     [{"$match": POSTED}, {"$group": {"_id": "$did", "first": {"$min": "$time_us"}, "last": {"$max": "$time_us"}}},
      {"$project": {"span": {"$subtract": ["$last", "$first"]}}}, {"$sort": {"span": -1, "_id": 1}}, {"$limit": 3}],
     "SELECT {did} AS user, max({time_us}) - min({time_us}) AS span FROM {table} WHERE {kind} = 'commit' AND {operation} = 'create' AND {collection} = 'app.bsky.feed.post' GROUP BY user ORDER BY span DESC, user LIMIT 3",
     lambda d: (d["_id"], d["span"])),
]

JSON_COLUMNS = {"table": "events", "collection": "(j->>'$.commit.collection')", "did": "(j->>'$.did')", "kind": "(j->>'$.kind')",
                "operation": "(j->>'$.commit.operation')", "time_us": "CAST(j->>'$.time_us' AS BIGINT)"}
TYPED_COLUMNS = {"table": "typed", "collection": "collection", "did": "did", "kind": "kind", "operation": "operation", "time_us": "time_us"}


def load_duckdb(path, threads):
    import duckdb

    db = duckdb.connect()
    db.execute(f"SET threads = {threads}; SET TimeZone = 'UTC'")
    db.execute("CREATE TABLE events (j JSON)")
    db.execute(f"INSERT INTO events SELECT json FROM read_json_objects('{path}', format = 'newline_delimited')")
    columns = ", ".join(f"{expression} AS {name}" for name, expression in JSON_COLUMNS.items() if name != "table")
    db.execute(f"CREATE TABLE typed AS SELECT {columns} FROM events")
    return db


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1, help="threads that DuckDB may use; a long scan of Quire uses all processors")
    parser.add_argument("--quire", default="target/release/quire")
    options = parser.parse_args()
    in_own_environment()
    path = WORK / f"events-{options.events}.ndjson"
    if not path.exists():
        with open(path.with_suffix(".part"), "w") as out:
            out.writelines(json.dumps(event, separators=(",", ":")) + "\n" for event in events(options.events))
        path.with_suffix(".part").rename(path)
    size = path.stat().st_size / options.events
    print(f"{options.events} events, {size:.0f} bytes each as JSON; best of {options.rounds}; thousands of documents a second")
    print(f"{'':44} {'Quire':>8} {'DuckDB, JSON':>13} {'DuckDB, typed':>14}")
    quire = Quire(options.quire)
    try:
        with open(path) as lines:
            quire.load("events", map(json.loads, lines))
        db = load_duckdb(path, options.threads)
        for name, pipeline, sql, row in QUERIES:
            speeds = []
            taken, answer = best(options.rounds, lambda: list(quire.db.events.aggregate(pipeline)))
            speeds.append(options.events / taken / 1000)
            answers = [[row(document) for document in answer]]
            for columns in (JSON_COLUMNS, TYPED_COLUMNS):
                taken, rows = best(options.rounds, lambda: db.execute(sql.format(**columns)).fetchall())
                speeds.append(options.events / taken / 1000)
                answers.append([tuple(values) for values in rows])
            print(f"{name:44} {speeds[0]:8.0f} {speeds[1]:13.0f} {speeds[2]:14.0f}", flush=True)
            if any(answer != answers[0] for answer in answers):
                sys.exit(f"the answers differ: {[answer[:5] for answer in answers]}")
    finally:
        quire.stop()


if __name__ == "__main__":
    main()
