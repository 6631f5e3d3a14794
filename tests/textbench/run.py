#!/usr/bin/env python3
"""Compares text search of Quire, SQLite's FTS5 and PostgreSQL's tsvector on the same machine in the same run: builds,
sizes, inserts and queries (docs/benchmarks.md, "Text search").

    cargo build --release -p quire-cli
    tests/textbench/run.py [--articles 1000000] [--part 100000] [--quire target/release/quire] [--postgres DSN]

Articles have 200 words of a vocabulary of 50,000 with Zipf's frequencies, always the same ones. The languages are
"none", FTS5's default and "simple", so that all three have the same words. The cost of an insert is measured with the
first `part` articles: with a text index, and with an ordinary index on arrays of the same words. All data are on disk.
PostgreSQL takes part if a database is named that the script may fill. Quire and PostgreSQL are asked over a socket,
SQLite in this process. The machine should be otherwise idle.
"""
import argparse, bisect, collections, itertools, pathlib, random, sqlite3, sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
from own_server import WORK, Quire, in_own_environment, measured, milliseconds, postgres

WORDS = 200
VOCABULARY = 50_000
SCORE = {"s": {"$meta": "textScore"}}
NO_WORDS_OF_A_LANGUAGE = {"default_language": "none"}


def vocabulary(dice):
    """Returns different words in the order of their frequency, and their frequencies as running sums."""
    words = set()
    while len(words) < VOCABULARY:
        syllables = dice.randint(2, 5)
        words.add("".join(dice.choice("bcdfghklmnprstvz") + dice.choice("aeiou") for _ in range(syllables)))
    words = sorted(words)
    dice.shuffle(words)
    return words, list(itertools.accumulate(1 / (rank + 3) for rank in range(VOCABULARY)))


def articles(count):
    """Yields the texts."""
    dice = random.Random(7)
    words, sums = vocabulary(dice)
    for _ in range(count):
        yield " ".join(dice.choices(words, cum_weights=sums, k=WORDS))


class OfQuire:
    """Quire's index, with its two queries: the best ten by score, and the scores of all."""

    def __init__(self, server, count, part):
        self.server, self.count, self.part = server, count, part
        self.built = server.db.built

    def load(self):
        rows = lambda count: ({"_id": at, "body": text} for at, text in enumerate(articles(count)))
        words = ({"_id": at, "body": sorted(set(text.split()))} for at, text in enumerate(articles(self.part)))
        server = self.server
        measured("Quire, insert without an index", lambda: server.load("built", rows(self.count)), server.cpu)
        server.forget_peak()
        build = lambda: self.built.create_index([("body", "text")], **NO_WORDS_OF_A_LANGUAGE)
        measured("Quire, build of the index", build, server.cpu)
        sizes = server.db.command("collStats", "built")
        print(f"Quire, bytes: index {sizes['indexSizes']['body_text']:,}, documents {sizes['storageSize']:,}; "
              f"memory at its peak {server.memory('VmHWM')} MB", flush=True)
        measured(f"Quire, insert of {self.part} without an index",
                 lambda: server.load("plain", rows(self.part)), server.cpu)
        server.db.kept.create_index([("body", "text")], **NO_WORDS_OF_A_LANGUAGE)
        measured(f"Quire, insert of {self.part} with a text index",
                 lambda: server.load("kept", rows(self.part)), server.cpu)
        server.db.ordinary.create_index("body")
        measured(f"Quire, insert of {self.part} with an ordinary index on arrays of the words",
                 lambda: server.load("ordinary", words), server.cpu)

    def best(self, search):
        found = self.built.find({"$text": {"$search": search}}, {"_id": 1} | SCORE)
        return list(found.sort(list(SCORE.items())).limit(10))

    def every(self, search):
        return list(self.built.find({"$text": {"$search": search}}, {"_id": 1} | SCORE))


class OfSqlite:
    """The same of FTS5, without the texts."""

    def __init__(self, path, count):
        path.unlink(missing_ok=True)
        self.path, self.count, self.db = path, count, sqlite3.connect(path)

    def load(self):
        self.db.execute("create virtual table articles using fts5(body, content='')")
        insert = "insert into articles(rowid, body) values (?, ?)"
        measured("FTS5, insert", lambda: self.db.executemany(insert, enumerate(articles(self.count))))
        measured("FTS5, commit and optimize", self.optimize)
        print(f"FTS5, bytes: index {self.path.stat().st_size:,}", flush=True)

    def optimize(self):
        self.db.execute("insert into articles(articles) values ('optimize')")
        self.db.commit()

    def found(self, search, rest):
        match = search if '"' in search else " OR ".join(search.split())
        return self.db.execute(f"select rowid, rank from articles where articles match ? {rest}", (match,)).fetchall()

    def best(self, search):
        return self.found(search, "order by rank limit 10")

    def every(self, search):
        return self.found(search, "")


class OfPostgres:
    """The same of PostgreSQL, with the words of each text in a column."""

    def __init__(self, dsn, count):
        self.cursor, self.count = postgres(dsn), count

    def load(self):
        self.cursor.execute("drop table if exists articles; create table articles (id int primary key, body text, words tsvector)")
        measured("PostgreSQL, insert without an index", self.copy)
        build = "create index articles_words on articles using gin (words)"
        measured("PostgreSQL, build of the index", lambda: self.cursor.execute(build))
        self.cursor.execute("vacuum analyze articles")
        self.cursor.execute("select pg_relation_size('articles_words'), pg_table_size('articles')")
        print("PostgreSQL, bytes: index {:,}, table {:,}".format(*self.cursor.fetchone()), flush=True)

    def copy(self):
        insert = "insert into articles select number, body, to_tsvector('simple', body) from unnest(%s, %s) as row(number, body)"
        rows = enumerate(articles(self.count))
        while batch := list(itertools.islice(rows, 1000)):
            self.cursor.execute(insert, tuple(map(list, zip(*batch))))

    def found(self, search, rest):
        words = search.strip('"').split()
        query = (" <-> " if '"' in search else " | ").join(words)
        self.cursor.execute(f"select id, ts_rank(words, to_tsquery('simple', %s)) as score from articles "
                            f"where words @@ to_tsquery('simple', %s) {rest}", (query, query))
        return self.cursor.fetchall()

    def best(self, search):
        return self.found(search, "order by score desc limit 10")

    def every(self, search):
        return self.found(search, "")


def searches(count):
    """Returns the strings to search for, by the name of their kind."""
    frequency, sample = collections.Counter(), []
    for at, text in enumerate(articles(count)):
        frequency.update(set(text.split()))
        if at % max(count // 20, 1) == 0:
            sample.append(text.split())
    print(f"{count} articles, {sum(frequency.values()):,} pairs of an article and a word", flush=True)
    dice = random.Random(1)
    ordered = sorted(frequency, key=lambda word: (frequency[word], word))
    counts = [frequency[word] for word in ordered]
    rare = ordered[bisect.bisect(counts, count * 0.002) : bisect.bisect(counts, count * 0.01)]
    frequent = ordered[bisect.bisect(counts, count * 0.3) :]
    phrases = []
    for words in sample[:20]:
        at = dice.randrange(WORDS - 1)
        phrases.append(f'"{words[at]} {words[at + 1]}"')
    return {
        "one word of 0.2 to 1 %": [dice.choice(rare) for _ in range(50)],
        "two such words": [" ".join(dice.sample(rare, 2)) for _ in range(50)],
        "one of them and one of more than 30 %": [f"{dice.choice(rare)} {dice.choice(frequent)}" for _ in range(20)],
        "two words of more than 30 %": [" ".join(dice.sample(frequent, 2)) for _ in range(20)],
        "a phrase of two words": phrases,
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--articles", type=int, default=1_000_000)
    parser.add_argument("--part", type=int, default=100_000)
    parser.add_argument("--quire", default="target/release/quire")
    parser.add_argument("--postgres")
    options = parser.parse_args()
    in_own_environment()
    strings = searches(options.articles)
    server = Quire(options.quire)
    sqlite = OfSqlite(WORK / "articles.sqlite", options.articles)
    programs = {"Quire": OfQuire(server, options.articles, min(options.part, options.articles)), "FTS5": sqlite}
    if options.postgres:
        programs["PostgreSQL"] = OfPostgres(options.postgres, options.articles)
    try:
        for program in programs.values():
            program.load()
        print("milliseconds, median (worst): the best ten; all")
        for kind, of_kind in strings.items():
            for name, program in programs.items():
                print(f"{kind}, {name}: {milliseconds(program.best, of_kind)}; "
                      f"{milliseconds(program.every, of_kind[:10])}", flush=True)
    finally:
        server.stop()
        sqlite.path.unlink()


main()
