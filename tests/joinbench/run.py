#!/usr/bin/env python3
"""Compares Quire, DuckDB and another server of MongoDB's protocol on the same machine in the same run: joins,
windows, facets, and writing results.

    cargo build --release -p quire-cli
    tests/joinbench/run.py [--scale 0.1] [--rounds 3] [--only TEXT,TEXT] [--quire target/release/quire] [--peer JARS]

The other server is mongo-java-server with its backend in memory; `--peer` names the directory with the jars of
`de.bwaldvogel:mongo-java-server:1.47.0` and of what it needs (Maven's `dependency:copy-dependencies`). Without it only the
first two run. It answers each query once. A query that it refuses is shown so. Where it gives no answer in a minute, it is stopped,
because it would go on with the query beside the next ones; `--only` asks it for others.

Needs Python's venv module and, once, PyPI: `pymongo` and `duckdb` go into a virtual environment
under the temporary directory. The server gets an empty directory there and a free port, and is
stopped at the end. There are two data sets, which depend only on the scale:

- a shop: customers and orders of one document each, with their lines once embedded in the order and
  once in a collection of their own, shaped after TPC-H (tpc.org/tpch) with our own values. Scale 0.1
  is 15,000 customers, 150,000 orders and about 600,000 lines;
- points, a tree and readings, for queries that TPC-H does not have.

DuckDB has typed columns, which is an upper bound for a document database. If both databases can run a
query, the results are compared.
Times are the best of the rounds, in seconds, by the clock and of the processors (the server's, and
this process's for DuckDB); memory is the server's resident set before and at its peak during the
query. The machine should be otherwise idle; processor times are affected less if it is not.
"""
import argparse, csv, datetime, pathlib, random, sys, time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
from own_server import WORK, Peer, Quire, best, in_own_environment

DAY = datetime.datetime(1992, 1, 1)
SEGMENTS = ["AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY"]
REGIONS = ["AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"]


def shop(scale):
    """Customers, orders and lines as tuples."""
    rng = random.Random(19920101)
    customers = [
        (number, f"Customer {number}", rng.choice(SEGMENTS), REGIONS[number % 25 % 5], f"NATION {number % 25}")
        for number in range(int(150_000 * scale))
    ]
    orders, lines = [], []
    for number in range(int(1_500_000 * scale)):
        ordered = rng.randrange(2400)
        orders.append((number, rng.randrange(len(customers)), DAY + datetime.timedelta(ordered), rng.randrange(5)))
        for line in range(rng.randint(1, 7)):
            shipped = ordered + rng.randint(1, 121)
            quantity = rng.randint(1, 50)
            lines.append((
                number, line, quantity, quantity * rng.randint(900, 2000), rng.randint(0, 10), rng.randint(0, 8),
                "R" if shipped < 1200 and rng.random() < 0.5 else "N", "F" if shipped < 1600 else "O",
                DAY + datetime.timedelta(shipped),
            ))
    return customers, orders, lines


def line_document(line):
    _, number, quantity, price, discount, tax, returned, status, shipped = line
    return {"number": number, "quantity": quantity, "price": price, "discount": discount, "tax": tax,
            "returned": returned, "status": status, "shipped": shipped}


DAY_1 = DAY + datetime.timedelta(1165)
REVENUE = {"$multiply": ["$lines.price", {"$subtract": [100, "$lines.discount"]}]}
YEAR = {"$gte": DAY + datetime.timedelta(731), "$lt": DAY + datetime.timedelta(1096)}


def summary(prefix):
    """TPC-H's query 1, after stages that return a document for each line."""
    field = lambda name: f"${prefix}{name}"
    net = {"$multiply": [field("price"), {"$subtract": [100, field("discount")]}]}
    return [
        {"$match": {f"{prefix}shipped": {"$lte": DAY + datetime.timedelta(2400)}}},
        {"$group": {
            "_id": {"returned": field("returned"), "status": field("status")},
            "quantity": {"$sum": field("quantity")}, "price": {"$sum": field("price")}, "net": {"$sum": net},
            "gross": {"$sum": {"$multiply": [net, {"$add": [100, field("tax")]}]}}, "count": {"$sum": 1},
        }},
        {"$sort": {"_id.returned": 1, "_id.status": 1}},
    ]


def join(local, foreign, other, into):
    return [
        {"$lookup": {"from": other, "localField": local, "foreignField": foreign, "as": into}},
        {"$unwind": f"${into}"},
    ]


def shipping(lines):
    """TPC-H's query 3; the stages `lines` put each order's lines into its field `lines`."""
    return [
        {"$match": {"date": {"$lt": DAY_1}}},
        *join("customer", "_id", "customers", "buyer"),
        {"$match": {"buyer.segment": "BUILDING"}},
        *lines,
        {"$match": {"lines.shipped": {"$gt": DAY_1}}},
        {"$group": {"_id": "$_id", "revenue": {"$sum": REVENUE}, "date": {"$first": "$date"}}},
        {"$sort": {"revenue": -1, "_id": 1}}, {"$limit": 10}, {"$project": {"revenue": 1}},
    ]


def suppliers(lines):
    """After TPC-H's query 5: revenue of the nations of one region in a year."""
    return [
        {"$match": {"date": YEAR}},
        *join("customer", "_id", "customers", "buyer"),
        {"$match": {"buyer.region": "ASIA"}},
        *lines,
        {"$group": {"_id": "$buyer.nation", "revenue": {"$sum": REVENUE}}},
        {"$sort": {"revenue": -1}},
    ]


def forecast(prefix):
    """TPC-H's query 6."""
    field = lambda name: f"${prefix}{name}"
    return [
        {"$match": {f"{prefix}shipped": YEAR, f"{prefix}discount": {"$gte": 5, "$lte": 7}, f"{prefix}quantity": {"$lt": 24}}},
        {"$group": {"_id": None, "revenue": {"$sum": {"$multiply": [field("price"), field("discount")]}}}},
    ]


EMBEDDED = [{"$unwind": "$lines"}]
REFERENCED = join("_id", "order", "lines", "lines")
SQL_1 = """SELECT returned, status, sum(quantity), sum(price), sum(price * (100 - discount)),
    sum(price * (100 - discount) * (100 + tax)), count(*) FROM lines WHERE shipped <= TIMESTAMP '1992-01-01' + INTERVAL 2400 DAY
    GROUP BY ALL ORDER BY returned, status"""
SQL_3 = """SELECT o.id, sum(l.price * (100 - l.discount)) AS revenue FROM orders o JOIN customers c ON c.id = o.customer
    JOIN lines l ON l.number = o.id WHERE o.date < TIMESTAMP '1992-01-01' + INTERVAL 1165 DAY AND c.segment = 'BUILDING'
    AND l.shipped > TIMESTAMP '1992-01-01' + INTERVAL 1165 DAY GROUP BY o.id ORDER BY revenue DESC, o.id LIMIT 10"""
SQL_5 = """SELECT c.nation, sum(l.price * (100 - l.discount)) AS revenue FROM orders o JOIN customers c ON c.id = o.customer
    JOIN lines l ON l.number = o.id WHERE o.date >= TIMESTAMP '1992-01-01' + INTERVAL 731 DAY
    AND o.date < TIMESTAMP '1992-01-01' + INTERVAL 1096 DAY AND c.region = 'ASIA' GROUP BY c.nation ORDER BY revenue DESC"""
SQL_6 = """SELECT sum(price * discount) FROM lines WHERE shipped >= TIMESTAMP '1992-01-01' + INTERVAL 731 DAY
    AND shipped < TIMESTAMP '1992-01-01' + INTERVAL 1096 DAY AND discount BETWEEN 5 AND 7 AND quantity < 24"""
SUMS = lambda d: (d["_id"]["returned"], d["_id"]["status"], d["quantity"], d["price"], d["net"], d["gross"], d["count"])
PAIR = lambda d: (d["_id"], d["revenue"])
COUNT = [{"$count": "n"}]
COUNTED = lambda d: (d["n"],)
AVERAGE = {"$setWindowFields": {"partitionBy": "$series", "sortBy": {"moment": 1},
                                "output": {"mean": {"$avg": "$value", "window": {"documents": [-9, 0]}}}}}
FACETS = [{"$facet": {
    "kinds": [{"$group": {"_id": "$series", "n": {"$sum": 1}}}, {"$count": "n"}],
    "high": [{"$match": {"value": {"$gte": 900}}}, {"$count": "n"}],
    "total": [{"$group": {"_id": None, "total": {"$sum": "$value"}}}],
}}]

# name, collection, pipeline, SQL or None, function from a result document to a row, index to create
QUERIES = [
    ("Q1, lines embedded", "orders", EMBEDDED + summary("lines."), SQL_1, SUMS, None),
    ("Q1, lines referenced", "lines", summary(""), SQL_1, SUMS, None),
    ("Q3, lines embedded", "orders", shipping(EMBEDDED), SQL_3, PAIR, None),
    ("Q3, lines referenced", "slim", shipping(REFERENCED), SQL_3, PAIR, None),
    ("Q3, lines referenced and indexed", "slim", shipping(REFERENCED), SQL_3, PAIR, ("lines", "order")),
    ("Q5, lines embedded", "orders", suppliers(EMBEDDED), SQL_5, PAIR, None),
    ("Q5, lines referenced", "slim", suppliers(REFERENCED), SQL_5, PAIR, None),
    ("Q6, lines embedded", "orders", EMBEDDED + forecast("lines."), SQL_6, lambda d: (d["revenue"],), None),
    ("Q6, lines referenced", "lines", forecast(""), SQL_6, lambda d: (d["revenue"],), None),
    ("orders with customers, no index", "slim", join("name", "name", "customers", "buyer") + COUNT,
     "SELECT count(*) FROM (SELECT o.id, c.segment FROM (SELECT id, 'Customer ' || customer AS name FROM orders) o JOIN customers c USING (name))", COUNTED, None),
    ("orders with customers, index", "slim", join("name", "name", "customers", "buyer") + COUNT,
     "SELECT count(*) FROM (SELECT o.id, c.segment FROM (SELECT id, 'Customer ' || customer AS name FROM orders) o JOIN customers c USING (name))", COUNTED, ("customers", "name")),
    ("$graphLookup of a whole tree", "tree",
     [{"$match": {"_id": 0}}, {"$graphLookup": {"from": "tree", "startWith": "$_id", "connectFromField": "_id", "connectToField": "parent", "as": "below", "depthField": "depth"}},
      {"$project": {"n": {"$size": "$below"}}}],
     "WITH RECURSIVE below(id) AS (SELECT id FROM tree WHERE parent = 0 UNION SELECT t.id FROM tree t JOIN below b ON t.parent = b.id) SELECT count(*) FROM below",
     COUNTED, ("tree", "parent")),
    ("moving average of ten", "points", [AVERAGE, {"$group": {"_id": None, "n": {"$sum": {"$toLong": {"$floor": "$mean"}}}}}],
     "SELECT sum(floor(mean))::BIGINT FROM (SELECT avg(value) OVER (PARTITION BY series ORDER BY moment ROWS 9 PRECEDING) AS mean FROM points)", COUNTED, None),
    ("$facet with three branches", "points", FACETS, None, None, None),
    ("$out of all points", "points", [{"$out": "copy"}], None, None, None),
]


def load(servers, db, scale, collections):
    """Loads the data sets that these collections belong to."""

    def insert(name, documents):
        documents = list(documents)
        for server in servers:
            server.load(name, documents)

    if "points" in collections:
        points = int(10_000_000 * scale)
        insert("points", ({"_id": n, "series": n * 7919 % 100, "moment": n, "value": n * 7907 % 1000} for n in range(points)))
        db.execute(f"CREATE TABLE points AS SELECT n AS id, n * 7919 % 100 AS series, n AS moment, n * 7907 % 1000 AS value FROM range({points}) r(n)")
    if "tree" in collections:
        tree = int(1_000_000 * scale)
        insert("tree", ({"_id": n, "parent": n // 10 if n else None} for n in range(tree)))
        db.execute(f"CREATE TABLE tree AS SELECT n AS id, CASE WHEN n > 0 THEN n // 10 END AS parent FROM range({tree}) r(n)")
    if collections - {"points", "tree"}:
        load_shop(insert, db, scale)


def load_shop(insert, db, scale):
    customers, orders, lines = shop(scale)
    fields = ("_id", "name", "segment", "region", "nation")
    insert("customers", (dict(zip(fields, customer)) for customer in customers))
    by_order = [[] for _ in orders]
    for line in lines:
        by_order[line[0]].append(line_document(line))

    def order(row):
        number, customer, date, priority = row
        return {"_id": number, "customer": customer, "name": f"Customer {customer}", "date": date, "priority": priority}

    insert("slim", (order(row) for row in orders))
    insert("orders", (order(row) | {"lines": by_order[row[0]]} for row in orders))
    insert("lines", ({"order": line[0]} | line_document(line) for line in lines))
    for table, columns, rows in [
        ("customers", "id BIGINT, name TEXT, segment TEXT, region TEXT, nation TEXT", customers),
        ("orders", "id BIGINT, customer BIGINT, date TIMESTAMP, priority BIGINT", orders),
        ("lines", "number BIGINT, line BIGINT, quantity BIGINT, price BIGINT, discount BIGINT, tax BIGINT, returned TEXT, status TEXT, shipped TIMESTAMP", lines),
    ]:
        path = WORK / f"{table}.csv"
        with open(path, "w", newline="") as out:
            csv.writer(out).writerows(rows)
        db.execute(f"CREATE TABLE {table} ({columns})")
        db.execute(f"COPY {table} FROM '{path}' (HEADER false)")
        path.unlink()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--scale", type=float, default=0.1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1, help="threads that DuckDB may use")
    parser.add_argument("--only", default="", help="queries whose name holds one of these texts, with commas between")
    parser.add_argument("--quire", default="target/release/quire")
    parser.add_argument("--peer", help="the directory with the jars of mongo-java-server")
    options = parser.parse_args()
    in_own_environment()
    import duckdb, pymongo

    quire, wrong = Quire(options.quire), []
    peer = Peer(options.peer) if options.peer else None
    try:
        db = duckdb.connect()
        db.execute(f"SET threads = {options.threads}; SET TimeZone = 'UTC'")
        chosen = [query for query in QUERIES if any(text in query[0] for text in options.only.split(","))]
        load([server for server in (quire, peer) if server], db, options.scale, {query[1] for query in chosen})
        print(f"scale {options.scale}, best of {options.rounds}, seconds and processor seconds; memory of Quire before and at its peak, MB")
        print(f"{'':40} {'Quire':>8} {'CPU':>8} {'DuckDB':>8} {'CPU':>8} {'before':>8} {'peak':>8} {'peer':>8} {'CPU':>8}")
        for name, collection, pipeline, sql, row, index in chosen:
            for server in (quire, peer):
                if index and server:
                    server.db[index[0]].create_index(index[1], name="bench")
            quire.forget_peak()
            before = quire.memory("VmRSS")
            try:
                aggregate = lambda: list(quire.db[collection].aggregate(pipeline, allowDiskUse=True))
                (taken, cpu), answer = best(options.rounds, aggregate, [time.perf_counter, quire.cpu])
                shown = f"{taken:8.3f} {cpu:8.2f}"
            except pymongo.errors.OperationFailure as error:
                answer, shown = None, f"   error {error.code:8}"
                wrong.append(f"{name}: {error}")
            peak = quire.memory("VmHWM")
            other = ask_peer(peer, collection, pipeline, row, answer, wrong, name) if peer else ""
            if other is None:
                peer.stop()
                peer, other = None, "no answer"
            for server in (quire, peer):
                if index and server:
                    server.db[index[0]].drop_index("bench")
            far = "       -        -"
            if sql:
                execute = lambda: db.execute(sql).fetchall()
                (taken, cpu), rows = best(options.rounds, execute, [time.perf_counter, time.process_time])
                far = f"{taken:8.3f} {cpu:8.3f}"
                if answer is not None and [tuple(map(int_of, row(document))) for document in answer] != [tuple(map(int_of, values)) for values in rows]:
                    wrong.append(f"{name}: {answer[:2]} is not {rows[:2]}")
            print(f"{name:40} {shown} {far} {before:8} {peak:8} {other}", flush=True)
    finally:
        quire.stop()
        if peer:
            peer.stop()
    if wrong:
        sys.exit("\n".join(wrong))


def ask_peer(peer, collection, pipeline, row, answer, wrong, name):
    """What the other server needs for a query, as it is shown; None if it does not answer."""
    import pymongo

    aggregate = lambda: list(peer.db[collection].aggregate(pipeline))
    try:
        (taken, cpu), others = best(1, aggregate, [time.perf_counter, peer.cpu])
    except pymongo.errors.OperationFailure as error:
        return f"refused: {error.details.get('errmsg', '')[:60]}"
    except pymongo.errors.PyMongoError:
        return None
    if row and answer and [tuple(map(int_of, row(document))) for document in others] != [tuple(map(int_of, row(document))) for document in answer]:
        wrong.append(f"{name}: {answer[:2]} is not the peer's {others[:2]}")
    return f"{taken:8.3f} {cpu:8.2f}"


def int_of(value):
    """Converts whole numbers of both databases to Python's; returns other values unchanged."""
    return value if isinstance(value, str) else int(value)


if __name__ == "__main__":
    main()
