#!/usr/bin/env python3
"""Compares a time-series collection whose points are closed with an ordinary collection of the same points: inserts,
bytes on disk, bytes for each column, a day of a sensor, the hours of all and of each, the newest point of each sensor
(docs/benchmarks.md, "Time series").

    cargo build --release -p quire-cli
    tests/seriesbench/run.py [--sensors 100] [--minutes 43200] [--quire target/release/quire]

Each sensor sends a point a minute: three measures with two decimals, which walk in steps of up to half a unit, and an
`_id` of the driver. Both collections have an index on sensor and time. They are always the same points but for `_id`. Each
collection has a server and a directory of its own, and one client inserts batches of 1,000. The bytes are those of all
tables, after the background work has ended by itself. The machine should be otherwise idle; 2 GB of disk are needed.
"""
import argparse, datetime, pathlib, random, sys, time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
from own_server import Quire, best, in_own_environment

BEGIN = datetime.datetime(2024, 3, 1, tzinfo=datetime.timezone.utc)
FIELDS = ("t", "h", "p")
BATCH = 1000
# The background work has ended when nothing has changed for this time, in seconds.
QUIET_S = 45
COLUMN_SENSORS = 5
# Each query is asked as often as this, and its best time counts; the processor time of the server is the mean.
ROUNDS = 5


def points(sensors, minutes):
    """Yields points in the order of their time."""
    dice = random.Random(1)
    walks = [[20.0, 50.0, 1000.0] for _ in range(sensors)]
    for minute in range(minutes):
        at = BEGIN + datetime.timedelta(minutes=minute)
        for sensor, walk in enumerate(walks):
            for field in range(3):
                walk[field] = round(walk[field] + dice.uniform(-0.5, 0.5), 2)
            yield {"at": at, "sensor": sensor, "t": walk[0], "h": walk[1], "p": walk[2]}


def batches(points):
    batch = []
    for point in points:
        batch.append(point)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def insert(server, points):
    """Inserts points. Returns how many, the time of the inserts, and that of the server's processor."""
    count = seconds = cpu = 0
    for batch in batches(points):
        used, begun = server.cpu(), time.perf_counter()
        server.db.points.insert_many(batch, ordered=False)
        seconds += time.perf_counter() - begun
        cpu += server.cpu() - used
        count += len(batch)
    return count, seconds, cpu


def table_bytes(server):
    tables = pathlib.Path(server.directory.name).glob("data/keyspaces/*/tables/*")
    total = 0
    for table in tables:
        try:
            total += table.stat().st_size
        except FileNotFoundError:
            pass  # A merge has removed it.
    return total


def disk_bytes(server):
    """Returns the bytes that the whole directory occupies, with the log."""
    files = pathlib.Path(server.directory.name).rglob("*")
    return sum(file.stat().st_blocks * 512 for file in files if file.is_file())


def flush(server):
    """Writes what is in memory to tables."""
    server.db.command("compact", "points", dryRun=True, force=True)


def wait_until_settled(server):
    """Waits until nothing has changed for a while, before and after a flush. Returns the seconds that it took, without
    the last wait."""
    settled = wait_until_quiet(server)
    flush(server)
    return settled + wait_until_quiet(server)


def wait_until_quiet(server):
    begun = since = time.perf_counter()
    before = None
    while time.perf_counter() - since < QUIET_S:
        stats = server.db.command("collStats", "points")
        now = stats.get("timeseries", {}).get("bucketCount"), table_bytes(server)
        if now != before:
            before, since = now, time.perf_counter()
        time.sleep(1)
    return since - begun


def create(server, is_series):
    if is_series:
        series = {"timeField": "at", "metaField": "sensor", "granularity": "minutes"}
        server.db.create_collection("points", timeseries=series)
    else:
        server.db.points.create_index([("sensor", 1), ("at", 1)])


def day_of(sensor, day):
    begin = BEGIN + datetime.timedelta(days=day)
    times = {"$gte": begin, "$lt": begin + datetime.timedelta(days=1)}
    return [{"$match": {"sensor": sensor, "at": times}}, {"$group": {"_id": None, "mean": {"$avg": "$t"}, "n": {"$sum": 1}}}]


HOUR = {"$dateTrunc": {"date": "$at", "unit": "hour"}}


def hours(key=HOUR):
    return [{"$group": {"_id": key, "mean": {"$avg": "$t"}, "n": {"$sum": 1}}}, {"$sort": {"_id": 1}}]


def newest():
    first = {"_id": "$sensor", "mean": {"$first": "$t"}, "n": {"$first": "$at"}}
    return [{"$sort": {"sensor": -1, "at": -1}}, {"$group": first}, {"$sort": {"_id": 1}}]


def of_nothing():
    return [{"$match": {"sensor": -1}}, {"$group": {"_id": None, "n": {"$sum": 1}}}]


def same(rows):
    """Returns rows without the last digits of their means: the two sum in another order."""
    return [(row["_id"], round(row["mean"], 6), row["n"]) for row in rows]


def asked_of_all(server):
    """Returns the times of aggregations over all points as a dictionary, and their results."""
    times, results = {}, []
    for name, pipeline in (
        ("mean of each hour, all sensors, ms", hours()),
        ("mean of each hour of each sensor, ms", hours({"sensor": "$sensor", "hour": HOUR})),
        ("newest point of each sensor, ms", newest()),
        ("an aggregation that finds nothing, ms", of_nothing()),
    ):
        used = server.cpu()
        took, rows = best(ROUNDS, lambda: list(server.db.points.aggregate(pipeline)))
        used = (server.cpu() - used) / ROUNDS
        times[name] = f"{took * 1000:.2f} (CPU {used * 1000:.1f})"
        results.append(same(rows))
    return times, results


def measured(binary, is_series, sensors, minutes):
    """Returns the figures of one collection as a dictionary, and the results of the queries."""
    server = Quire(binary, "--create")
    try:
        create(server, is_series)
        count, seconds, cpu = insert(server, points(sensors, minutes))
        settled = wait_until_settled(server)
        all_cpu = server.cpu()
        days = max(1, minutes // 1440)
        asked = [(at * 7 % sensors, at * 3 % days) for at in range(20)]
        times, results, used = [], [], server.cpu()
        for sensor, day in asked:
            took, rows = best(ROUNDS, lambda: list(server.db.points.aggregate(day_of(sensor, day))))
            times.append(took)
            results.append(same(rows))
        times.sort()
        used = (server.cpu() - used) / ROUNDS / len(asked)
        of_all, rows = asked_of_all(server)
        results += rows
        stored = table_bytes(server)
        figures = {
            "points": f"{count:,}",
            "inserts a second": f"{count / seconds:,.0f}",
            "CPU of the server for each, µs": f"{cpu / count * 1e6:.2f}",
            "the same, until settled": f"{all_cpu / count * 1e6:.2f}",
            "until settled, s": f"{settled:.0f}",
            "tables on disk, MB": f"{stored / 1e6:.2f}",
            "bytes a point": f"{stored / count:.2f}",
            "directory on disk with the log, MB": f"{disk_bytes(server) / 1e6:.2f}",
            "mean of a sensor's day, ms": f"{times[len(times) // 2] * 1000:.2f} (CPU {used * 1000:.2f})",
            **of_all,
        }
        return figures, results
    finally:
        server.stop()


def with_fields(minutes, fields, random_doubles):
    """Yields points of a few sensors with some fields only, sensor by sensor in each minute."""
    from bson import ObjectId

    dice = random.Random(2)
    for point in points(COLUMN_SENSORS, minutes):
        kept = {"at": point["at"], "sensor": point["sensor"], "_id": ObjectId() if "_id" in fields else 0}
        for field in FIELDS:
            if field in fields:
                kept[field] = dice.random() if random_doubles else point[field]
        yield kept


def columns(binary, minutes):
    """Prints the bytes of each column: buckets with the column, less those without it."""
    server = Quire(binary, "--create")
    try:
        def bytes_a_point(fields, random_doubles=False):
            server.db.points.drop()
            create(server, True)
            count, _, _ = insert(server, with_fields(minutes, fields, random_doubles))
            server.db.command("compact", "points", force=True)
            # So few rows are counted exactly.
            return server.db.command("collStats", "points")["storageSize"] / count

        base = bytes_a_point(())
        print(f"\n| column, {COLUMN_SENSORS} sensors | bytes a point |\n| --- | --- |")
        print(f"| times, and what a bucket has once | {base:.3f} |")
        for field in ("_id", *FIELDS):
            print(f"| {field} | {bytes_a_point((field,)) - base:.3f} |")
        print(f"| a random double | {bytes_a_point(('t',), True) - base:.3f} |", flush=True)
    finally:
        server.stop()


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--sensors", type=int, default=100)
    arguments.add_argument("--minutes", type=int, default=43_200)
    arguments.add_argument("--quire", default="target/release/quire")
    asked = arguments.parse_args()
    ordinary, expected = measured(asked.quire, False, asked.sensors, asked.minutes)
    closed, found = measured(asked.quire, True, asked.sensors, asked.minutes)
    if found != expected:
        sys.exit("the two collections have different results")
    print("| | ordinary collection | time series, closed |\n| --- | --- | --- |")
    for name, figure in ordinary.items():
        print(f"| {name} | {figure} | {closed[name]} |")
    columns(asked.quire, asked.minutes)


if __name__ == "__main__":
    in_own_environment()
    main()
