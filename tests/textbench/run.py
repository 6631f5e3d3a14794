"""Text search beside SQLite's FTS5: builds, inserts, sizes and queries (docs/benchmarks.md, "Text search").

    python run.py HOST:PORT ARTICLES

Articles have 200 words of a vocabulary of 50,000 with Zipf's frequencies, always the same ones. Needs pymongo and a
server that it may fill: it drops its collections in the database `textbench`.
"""

import bisect
import itertools
import random
import sqlite3
import sys
import time

from pymongo import MongoClient

WORDS = 200
VOCABULARY = 50_000
BATCH = 1000
SCORE = {"s": {"$meta": "textScore"}}


def vocabulary(dice):
    """Returns different words, the most frequent first, and their frequencies as running sums."""
    words = set()
    while len(words) < VOCABULARY:
        syllables = dice.randint(2, 5)
        words.add("".join(dice.choice("bcdfghklmnprstvz") + dice.choice("aeiou") for _ in range(syllables)))
    sums = list(itertools.accumulate(1 / (rank + 3) for rank in range(VOCABULARY)))
    return sorted(words), sums


def articles(count):
    dice = random.Random(7)
    words, sums = vocabulary(dice)
    dice.shuffle(words)
    draw = lambda: words[min(bisect.bisect(sums, dice.random() * sums[-1]), VOCABULARY - 1)]
    return [" ".join(draw() for _ in range(WORDS)) for _ in range(count)]


def timed(label, work):
    begin = time.perf_counter()
    work()
    print(f"{label}: {time.perf_counter() - begin:.1f} s")


def insert(collection, documents):
    for at in range(0, len(documents), BATCH):
        collection.insert_many(documents[at : at + BATCH])


def milliseconds(query, searches):
    """Returns the median and the worst of the queries."""
    times = []
    for search in searches:
        begin = time.perf_counter()
        query(search)
        times.append((time.perf_counter() - begin) * 1000)
    times.sort()
    return f"{times[len(times) // 2]:.2f} (worst {times[-1]:.2f})"


def main():
    address, count = sys.argv[1], int(sys.argv[2])
    texts = articles(count)
    frequency = {}
    for text in texts:
        for word in set(text.split()):
            frequency[word] = frequency.get(word, 0) + 1
    database = MongoClient(f"mongodb://{address}").textbench
    for name in ("built", "kept", "ordinary"):
        database.drop_collection(name)
    of_text = [{"_id": at, "body": text} for at, text in enumerate(texts)]
    of_words = [{"_id": at, "body": sorted(set(text.split()))} for at, text in enumerate(texts)]
    print(f"{count} articles, {sum(frequency.values())} entries")
    timed("insert without an index", lambda: insert(database.built, of_text))
    timed("build of a text index", lambda: database.built.create_index([("body", "text")], default_language="none"))
    database.kept.create_index([("body", "text")], default_language="none")
    timed("insert with a text index", lambda: insert(database.kept, of_text))
    database.ordinary.create_index("body")
    timed("insert with an ordinary index on arrays of the words", lambda: insert(database.ordinary, of_words))
    sqlite = sqlite3.connect(":memory:")
    sqlite.execute("create virtual table articles using fts5(body)")
    rows = enumerate(texts)
    timed("insert into FTS5", lambda: sqlite.executemany("insert into articles(rowid, body) values (?, ?)", rows))
    print("sizes:", database.command("collStats", "built")["indexSizes"])

    dice = random.Random(1)
    ordered = sorted(frequency, key=lambda word: (frequency[word], word))
    rare = [word for word in ordered if count * 0.002 < frequency[word] <= count * 0.01]
    frequent = [word for word in ordered if frequency[word] > count * 0.3]
    phrases = []
    for _ in range(20):
        words = dice.choice(texts).split()
        at = dice.randrange(WORDS - 1)
        phrases.append(f'"{words[at]} {words[at + 1]}"')

    def best(search):
        found = database.built.find({"$text": {"$search": search}}, {"_id": 1} | SCORE)
        return list(found.sort(list(SCORE.items())).limit(10))

    def every(search):
        return list(database.built.find({"$text": {"$search": search}}, {"_id": 1} | SCORE))

    def best_of_sqlite(search):
        match = search if '"' in search else " OR ".join(search.split())
        statement = "select rowid from articles where articles match ? order by rank limit 10"
        return sqlite.execute(statement, (match,)).fetchall()

    searches = {
        "one word of at most 1 % of the articles": [dice.choice(rare) for _ in range(50)],
        "two such words": [" ".join(dice.sample(rare, 2)) for _ in range(50)],
        "two words of more than 30 %": [" ".join(dice.sample(frequent, 2)) for _ in range(20)],
        "phrases of two words": phrases,
    }
    print("milliseconds: best 10; all; best 10 of FTS5")
    for name, strings in searches.items():
        print(f"{name}: {milliseconds(best, strings)}; {milliseconds(every, strings[:10])}; "
              f"{milliseconds(best_of_sqlite, strings)}")


main()
