#!/usr/bin/env python3
"""Compares geometry of Quire, SQLite's R*Tree and PostgreSQL's GiST on the same machine in the same run: builds, sizes
and queries (docs/benchmarks.md, "Geometry").

    cargo build --release -p quire-cli
    tests/geobench/run.py [--points 1000000] [--polygons 100000] [--quire target/release/quire] [--postgres DSN]

Seven of ten points lie around 200 cities, the others anywhere but near the poles. Polygons have 5 to 30 corners and
radii of 0.1 to 5 km, around the same places. They are always the same ones. Quire computes on the sphere. The other two
are flat, and the R*Tree has only the boxes around the polygons, so the results differ a little; the numbers of results
are printed. All data are on disk. PostgreSQL takes part if a database is named that the script may fill. Quire and
PostgreSQL are asked over a socket, SQLite in this process. The machine should be otherwise idle.
"""
import argparse, itertools, math, pathlib, random, sqlite3, sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
from own_server import WORK, Quire, in_own_environment, measured, milliseconds, postgres

CITIES = 200
NEAREST = 10


def places(count, seed):
    """Yields pairs of longitude and latitude."""
    dice = random.Random(7)
    cities = [(dice.uniform(-170, 170), dice.uniform(-60, 70)) for _ in range(CITIES)]
    dice = random.Random(seed)
    for _ in range(count):
        if dice.random() < 0.7:
            x, y = dice.choice(cities)
            yield dice.gauss(x, 0.3), dice.gauss(y, 0.3)
        else:
            yield dice.uniform(-175, 175), dice.uniform(-75, 75)


def polygons(count):
    """Yields lists of corners, of which the last one is the first one."""
    dice = random.Random(11)
    for x, y in places(count, 12):
        corners, radius = dice.randint(5, 30), dice.uniform(0.001, 0.05)
        ring = []
        for corner in range(corners):
            angle, far = math.tau * corner / corners, radius * dice.uniform(0.6, 1)
            ring.append((x + far * math.cos(angle), y + far * math.sin(angle)))
        yield ring + ring[:1]


def box(place, width):
    x, y = place
    return x - width / 2, y - width / 2, x + width / 2, y + width / 2


def corners(box):
    x, y, right, top = box
    return [(x, y), (right, y), (right, top), (x, top), (x, y)]


def around(ring):
    xs, ys = zip(*ring)
    return min(xs), max(xs), min(ys), max(ys)


class OfQuire:
    """Quire's 2dsphere indexes, with the queries: ids of what is in a box, meets a box or contains a point."""

    def __init__(self, server, points, polygons):
        self.server, self.counts = server, (points, polygons)
        self.points, self.polygons = server.db.points, server.db.polygons

    def load(self):
        server = self.server
        point = lambda place: {"type": "Point", "coordinates": place}
        rows = ({"_id": at, "at": point(place)} for at, place in enumerate(places(self.counts[0], 1)))
        measured("Quire, insert of the points", lambda: server.load("points", rows), server.cpu)
        rows = ({"_id": at, "area": self.polygon(ring)} for at, ring in enumerate(polygons(self.counts[1])))
        measured("Quire, insert of the polygons", lambda: server.load("polygons", rows), server.cpu)
        server.forget_peak()
        build = lambda collection, field: lambda: collection.create_index([(field, "2dsphere")])
        measured("Quire, index of the points", build(self.points, "at"), server.cpu)
        measured("Quire, index of the polygons", build(self.polygons, "area"), server.cpu)
        sizes = [server.db.command("collStats", name)["indexSizes"] for name in ("points", "polygons")]
        print(f"Quire, bytes: {sizes[0]['at_2dsphere']:,} and {sizes[1]['area_2dsphere']:,}; "
              f"memory at its peak {server.memory('VmHWM')} MB", flush=True)

    def polygon(self, ring):
        return {"type": "Polygon", "coordinates": [ring]}

    def ids(self, collection, filter, limit=0):
        self.last = {"find": collection.name, "filter": filter, "projection": {"_id": 1}, "limit": limit}
        return [row["_id"] for row in collection.find(filter, {"_id": 1}, limit=limit)]

    def examined(self, query, arguments):
        """Returns how many keys and documents the queries read, as a text."""
        keys = documents = 0
        for argument in arguments:
            query(argument)
            stats = self.server.db.command("explain", self.last, verbosity="executionStats")["executionStats"]
            keys, documents = keys + stats["totalKeysExamined"], documents + stats["totalDocsExamined"]
        return f"{keys} keys and {documents} documents read"

    def within(self, box):
        return self.ids(self.points, {"at": {"$geoWithin": {"$geometry": self.polygon(corners(box))}}})

    def intersects(self, box):
        return self.ids(self.polygons, {"area": {"$geoIntersects": {"$geometry": self.polygon(corners(box))}}})

    def contains(self, place):
        point = {"type": "Point", "coordinates": place}
        return self.ids(self.polygons, {"area": {"$geoIntersects": {"$geometry": point}}})

    def near(self, place):
        near = {"$near": {"$geometry": {"type": "Point", "coordinates": place}}}
        return self.ids(self.points, {"at": near}, NEAREST)


class OfSqlite:
    """The same of two R*Trees."""

    def __init__(self, path, points, polygons):
        path.unlink(missing_ok=True)
        self.path, self.counts, self.db = path, (points, polygons), sqlite3.connect(path)

    def load(self):
        self.db.execute("create virtual table points using rtree(id, left, right, low, high)")
        self.db.execute("create virtual table polygons using rtree(id, left, right, low, high)")
        insert = "insert into {} values (?, ?, ?, ?, ?)".format
        rows = ((at, x, x, y, y) for at, (x, y) in enumerate(places(self.counts[0], 1)))
        measured("R*Tree, insert of the points", lambda: self.insert(insert("points"), rows))
        size = self.path.stat().st_size
        rows = ((at, *around(ring)) for at, ring in enumerate(polygons(self.counts[1])))
        measured("R*Tree, insert of the boxes", lambda: self.insert(insert("polygons"), rows))
        print(f"R*Tree, bytes: {size:,} and {self.path.stat().st_size - size:,}", flush=True)

    def insert(self, statement, rows):
        self.db.executemany(statement, rows)
        self.db.commit()

    def overlapping(self, table, box):
        x, y, right, top = box
        statement = f"select id from {table} where right >= ? and left <= ? and high >= ? and low <= ?"
        return self.db.execute(statement, (x, right, y, top)).fetchall()

    def within(self, box):
        return self.overlapping("points", box)

    def intersects(self, box):
        return self.overlapping("polygons", box)

    def contains(self, place):
        return self.overlapping("polygons", (*place, *place))

    def near(self, place):
        """Boxes of twice the width, until there are enough points within the circle in the box."""
        x, y = place
        statement = ("select (left - ?) * (left - ?) + (low - ?) * (low - ?) as far, id from points "
                     "where right >= ? and left <= ? and high >= ? and low <= ? order by far limit ?")
        width = 0.02
        while True:
            left, low, right, high = box(place, width)
            found = self.db.execute(statement, (x, x, y, y, left, right, low, high, NEAREST)).fetchall()
            if len(found) == NEAREST and found[-1][0] <= (width / 2) ** 2:
                return found
            width *= 2


class OfPostgres:
    """The same of GiST indexes on flat points and polygons."""

    def __init__(self, dsn, points, polygons):
        self.cursor, self.counts = postgres(dsn), (points, polygons)

    def load(self):
        run = self.cursor.execute
        run("drop table if exists points; create table points (id int primary key, at point)")
        run("drop table if exists polygons; create table polygons (id int primary key, area polygon)")
        rows = enumerate(map(str, places(self.counts[0], 1)))
        measured("PostgreSQL, insert of the points", lambda: self.insert("points", "point", rows))
        rows = enumerate(str(tuple(ring[:-1])) for ring in polygons(self.counts[1]))
        measured("PostgreSQL, insert of the polygons", lambda: self.insert("polygons", "polygon", rows))
        measured("PostgreSQL, index of the points",
                 lambda: run("create index points_at on points using gist (at)"))
        measured("PostgreSQL, index of the polygons",
                 lambda: run("create index polygons_area on polygons using gist (area)"))
        run("vacuum analyze points")
        run("vacuum analyze polygons")
        run("select pg_relation_size('points_at'), pg_relation_size('polygons_area')")
        print("PostgreSQL, bytes: {:,} and {:,}".format(*self.cursor.fetchone()), flush=True)

    def insert(self, table, kind, rows):
        statement = f"insert into {table} select id, shape::{kind} from unnest(%s, %s) as row(id, shape)"
        while batch := list(itertools.islice(rows, 1000)):
            self.cursor.execute(statement, tuple(map(list, zip(*batch))))

    def ids(self, rest, *arguments):
        self.cursor.execute(f"select id from {rest}", arguments)
        return self.cursor.fetchall()

    def within(self, of):
        x, y, right, top = of
        return self.ids("points where at <@ %s::box", f"({x},{y}),({right},{top})")

    def intersects(self, of):
        return self.ids("polygons where area && %s::polygon", str(tuple(corners(of)[:-1])))

    def contains(self, place):
        return self.ids("polygons where area @> %s::polygon", f"({place})")

    def near(self, place):
        return self.ids(f"points order by at <-> %s::point limit {NEAREST}", str(place))


def queries(count):
    """Returns the arguments of each kind of query, by the name of the kind and of the method."""
    boxes = lambda width, seed: [box(place, width) for place in places(count, seed)]
    return {
        "points in a box of 5 km": ("within", boxes(0.05, 21)),
        "points in a box of 100 km": ("within", boxes(1, 22)),
        "polygons that meet a box of 5 km": ("intersects", boxes(0.05, 23)),
        "polygons that meet a box of 100 km": ("intersects", boxes(1, 24)),
        "polygons that contain a point": ("contains", list(places(count, 25))),
        f"the {NEAREST} points nearest to a place": ("near", list(places(count, 26))),
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--polygons", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--quire", default="target/release/quire")
    parser.add_argument("--postgres")
    options = parser.parse_args()
    in_own_environment()
    counts = (options.points, options.polygons)
    server = Quire(options.quire)
    sqlite = OfSqlite(WORK / "places.sqlite", *counts)
    programs = {"Quire": OfQuire(server, *counts), "R*Tree": sqlite}
    if options.postgres:
        programs["PostgreSQL"] = OfPostgres(options.postgres, *counts)
    try:
        for program in programs.values():
            program.load()
        print("milliseconds, median (worst); results of all queries")
        for kind, (method, arguments) in queries(options.queries).items():
            for name, program in programs.items():
                query = getattr(program, method)
                found = sum(len(query(argument)) for argument in arguments)
                print(f"{kind}, {name}: {milliseconds(query, arguments)}; {found}", flush=True)
            quire = programs["Quire"]
            print(f"{kind}: {quire.examined(getattr(quire, method), arguments)}", flush=True)
    finally:
        server.stop()
        sqlite.path.unlink()


main()
