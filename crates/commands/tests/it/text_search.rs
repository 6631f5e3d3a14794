//! `$text` equals a scorer that reads all documents: random documents, weights, languages and search
//! strings, before and after updates and deletes, inside a transaction, and with a limit by score.
//!
//! `QUIRE_TEXT_SEEDS` sets the number of rounds, `QUIRE_TEXT_SEED` the first one.

use std::collections::BTreeMap;

use crate::transactions::within;
use crate::{Client, Server, at, code, number};
use quire_document::{ArrayBuf, Doc, DocBuf, Value, doc};
use quire_mql::filter::TextQuery;
use quire_mql::fulltext::{Language, TextFields, TextMatcher, TextVersion};
use quire_storage::rng::Rng;

/// The rounds of a run in CI.
const ROUNDS: u64 = 6;
const DOCUMENTS: u64 = 80;
const QUERIES: u64 = 30;

/// Words with stems in common, stop words, accents, other scripts and other letter cases.
const WORDS: &[&str] = &[
    "run",
    "running",
    "Runs",
    "the",
    "and",
    "apple",
    "apples",
    "APPLE",
    "café",
    "cafe",
    "Café",
    "naïve",
    "red",
    "fox",
    "foxes",
    "co-op",
    "don't",
    "数据库",
    "数据",
    "Straße",
    "θάλασσα",
    "ΘΑΛΑΣΣΑ",
    "x1",
    "42",
    "word_with_lines",
    "élève",
    "jose\u{301}",
    "ёлка",
    "елка",
    "don",
    "t",
    "a",
    "very",
    "walk",
    "walked",
];

fn pick<'t>(random: &mut Rng, from: &[&'t str]) -> &'t str {
    from[random.below(from.len() as u64) as usize]
}

fn text(random: &mut Rng) -> String {
    let mut text = String::new();
    for _ in 0..random.below(8) {
        text.push_str(pick(random, WORDS));
        text.push_str(pick(random, &[" ", " ", " ", ", ", ". ", "-", "\n"]));
    }
    text
}

fn document(random: &mut Rng, id: i64) -> DocBuf {
    let (title, body, inner) = (text(random), text(random), text(random));
    let mut doc = doc! { "_id": id, "title": title.as_str(), "k": random.below(3) as i32 };
    if random.one_in(2) {
        doc.append("body", &[body.as_str(), inner.as_str()].into_iter().collect::<ArrayBuf>());
    }
    if random.one_in(3) {
        doc.append("part", &doc! { "body": inner.as_str(), "language": "french" });
    }
    if random.one_in(5) {
        doc.append("language", pick(random, &["german", "none", "en"]));
    }
    doc
}

/// Characters of random search strings.
const CHARACTERS: &[&str] =
    &["\"", "-", " ", "a", "É", "\u{301}", "の", "\0", "'", "_", ".", "ß", "\t", "run"];

fn search(random: &mut Rng) -> String {
    let mut text = String::new();
    if random.one_in(6) {
        (0..random.below(20)).for_each(|_| text.push_str(pick(random, CHARACTERS)));
        return text;
    }
    for _ in 0..=random.below(5) {
        let word = pick(random, WORDS);
        match random.below(8) {
            0 => text.push_str(&format!("-{word}")),
            1 => text.push_str(&format!("\"{word} {}\"", pick(random, WORDS))),
            2 => text.push_str(&format!("-\"{word}\"")),
            3 => text.push_str(&format!("\"{word}")),
            _ => text.push_str(word),
        }
        text.push_str(pick(random, &[" ", " ", "", "-", " - "]));
    }
    text
}

/// A text index, its fields as the scorer knows them, and true if `k` is before the texts.
fn index(random: &mut Rng) -> (DocBuf, TextFields, bool) {
    let wildcard = random.one_in(4);
    let version = if random.one_in(4) { TextVersion::Two } else { TextVersion::Three };
    let language = pick(random, &["english", "none", "german"]);
    let mut key = DocBuf::new();
    let (before, after) = (random.one_in(3), random.one_in(3));
    if before {
        key.append("k", 1);
    }
    if wildcard {
        key.append("$**", "text");
    } else {
        key.append("title", "text").append("body", "text").append("part.body", "text");
    }
    if after && !before {
        key.append("k", -1);
    }
    let weight = random.below(9) as i32 + 1;
    let spec = doc! {
        "key": &key, "name": "text", "weights": { "title": weight }, "default_language": language,
        "textIndexVersion": version as i32 + 1
    };
    let mut weights = vec![("title".to_owned(), f64::from(weight))];
    if !wildcard {
        weights.splice(0..0, [("body".to_owned(), 1.0), ("part.body".to_owned(), 1.0)]);
    }
    let language = Language::named(language, version).unwrap();
    let override_field = "language".to_owned();
    (spec, TextFields { weights, wildcard, language, override_field, version }, before)
}

/// A collection with a text index, and its documents.
struct Round {
    client: Client,
    fields: TextFields,
    documents: BTreeMap<i64, DocBuf>,
    transactions: i64,
    seed: u64,
    /// True if the field `k` is before the texts, so that each search needs it.
    is_after_k: bool,
}

impl Round {
    fn new(server: &Server, seed: u64) -> (Self, Rng) {
        let mut random = Rng::new(seed);
        let mut client = server.client(seed);
        client.run(doc! { "drop": "t", "$db": "test" });
        let (spec, fields, is_after_k) = index(&mut random);
        // The index is built over a part of the documents, and maintained for the others.
        let documents: BTreeMap<i64, DocBuf> =
            (0..DOCUMENTS as i64).map(|id| (id, document(&mut random, id))).collect();
        let half = DOCUMENTS as usize / 2;
        let insert = |client: &mut Client, part: ArrayBuf| {
            client.works(doc! { "insert": "t", "documents": &part, "$db": "test" });
        };
        insert(&mut client, documents.values().take(half).collect());
        client.works(doc! { "createIndexes": "t", "indexes": [&spec], "$db": "test" });
        insert(&mut client, documents.values().skip(half).collect());
        (Round { client, fields, documents, transactions: 0, seed, is_after_k }, random)
    }

    /// Returns the matches of a query and their scores, by a scan of all documents.
    fn expected(&self, query: &TextQuery, filter: Doc<'_>) -> BTreeMap<i64, f64> {
        let matcher =
            TextMatcher::new(self.fields.clone(), query.clone(), self.fields.language).unwrap();
        let k = filter.get("k").and_then(|k| k.exact_i64());
        let passes =
            |doc: &DocBuf| k.is_none() || doc.get("k").and_then(|found| found.exact_i64()) == k;
        let all = self.documents.iter().filter(|(_, doc)| passes(doc));
        all.filter(|(_, doc)| matcher.matches(doc.as_doc()).unwrap())
            .map(|(id, doc)| (*id, matcher.score(doc.as_doc()).unwrap().unwrap()))
            .collect()
    }

    fn found(&mut self, command: DocBuf) -> Vec<(i64, f64)> {
        let reply = self.client.works(command);
        let batch = at(&reply, "cursor.firstBatch").unwrap().as_array().unwrap();
        let row = |row: Value<'_>| {
            let row = row.as_document().unwrap();
            (row.get("_id").unwrap().exact_i64().unwrap(), row.get("s").unwrap().to_f64().unwrap())
        };
        batch.iter().map(row).collect()
    }

    fn check(&mut self, random: &mut Rng) {
        let query = TextQuery {
            search: search(random),
            language: String::new(),
            case_sensitive: random.one_in(4),
            diacritic_sensitive: random.one_in(4),
        };
        let operand = doc! {
            "$search": query.search.as_str(), "$caseSensitive": query.case_sensitive,
            "$diacriticSensitive": query.diacritic_sensitive
        };
        let mut filter = doc! { "$text": &operand };
        if self.is_after_k || random.one_in(3) {
            filter.append("k", random.below(3) as i32);
        }
        let expected = self.expected(&query, filter.as_doc());
        let told = format!("seed {}: {filter:?}", self.seed);
        let meta = doc! { "$meta": "textScore" };
        let find = doc! {
            "find": "t", "filter": &filter, "projection": { "s": &meta }, "batchSize": 1000,
            "$db": "test"
        };
        let mut by_id = find.clone();
        by_id.append("sort", &doc! { "_id": 1 });
        let all: Vec<(i64, f64)> = expected.iter().map(|(id, score)| (*id, *score)).collect();
        assert_eq!(self.found(by_id.clone()), all, "{told}");
        self.check_inside(random, &query, &filter, by_id);
        let mut best = all.clone();
        best.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let limit = 1 + random.below(12) as usize;
        let mut sorted = find;
        sorted.append("sort", &doc! { "s": &meta }).append("limit", limit as i32);
        best.truncate(limit);
        let found = self.found(sorted);
        let scores = |rows: &[(i64, f64)]| rows.iter().map(|row| row.1).collect::<Vec<_>>();
        assert_eq!(scores(&found), scores(&best), "the best {limit}, {told}");
        assert!(found.iter().all(|(id, score)| expected.get(id) == Some(score)), "{told}");
        let counted = self.client.works(doc! { "count": "t", "query": &filter, "$db": "test" });
        assert_eq!(number(&counted, "n"), Some(all.len() as i64), "{told}");
    }

    /// Inserts a document in a transaction, which then finds it too, and aborts the transaction.
    fn check_inside(&mut self, random: &mut Rng, query: &TextQuery, filter: &DocBuf, find: DocBuf) {
        self.transactions += 1;
        let number = (self.seed as u8, self.transactions);
        let new = document(random, 1000);
        let insert = doc! { "insert": "t", "documents": [&new], "$db": "test" };
        self.client.works(within(insert, number, true));
        self.documents.insert(1000, new);
        let expected: Vec<(i64, f64)> = self.expected(query, filter.as_doc()).into_iter().collect();
        let found = self.found(within(find, number, false));
        assert_eq!(found, expected, "in a transaction, seed {}: {filter:?}", self.seed);
        let abort = doc! { "abortTransaction": 1, "$db": "admin" };
        self.client.works(within(abort, number, false));
        self.documents.remove(&1000);
    }

    /// Changes and deletes documents, some by a `$text`.
    fn change(&mut self, random: &mut Rng) {
        for _ in 0..15 {
            let id = random.below(DOCUMENTS) as i64;
            if random.one_in(3) {
                self.documents.remove(&id);
                let delete = doc! { "q": { "_id": id }, "limit": 1 };
                self.client.works(doc! { "delete": "t", "deletes": [&delete], "$db": "test" });
            } else if let Some(known) = self.documents.get_mut(&id) {
                *known = document(random, id);
                let update = doc! { "q": { "_id": id }, "u": &*known };
                self.client.works(doc! { "update": "t", "updates": [&update], "$db": "test" });
            }
        }
        let word = pick(random, WORDS);
        let query = TextQuery {
            search: word.to_owned(),
            language: String::new(),
            case_sensitive: false,
            diacritic_sensitive: false,
        };
        let mut filter = doc! { "$text": { "$search": word } };
        if self.is_after_k {
            filter.append("k", 1);
        }
        let matched = self.expected(&query, filter.as_doc());
        // The update removes the word by which it finds documents.
        let update = doc! {
            "q": &filter, "u": { "$set": { "title": "changed word" } },
            "multi": true
        };
        let reply = self.client.works(doc! { "update": "t", "updates": [&update], "$db": "test" });
        assert_eq!(number(&reply, "n"), Some(matched.len() as i64), "{word}, seed {}", self.seed);
        for id in matched.keys() {
            let old = &self.documents[id];
            let fields = old.as_doc().fields().map(|(name, value)| match name {
                "title" => (name, Value::String("changed word")),
                _ => (name, value),
            });
            let changed = DocBuf::build(|out| {
                for (name, value) in fields {
                    out.append(name, value);
                }
            });
            self.documents.insert(*id, changed);
        }
    }

    fn validate(&mut self) {
        let reply = self.client.works(doc! { "validate": "t", "full": true, "$db": "test" });
        let valid = at(&reply, "valid").and_then(|valid| valid.as_bool());
        assert_eq!(valid, Some(true), "seed {}: {reply:?}", self.seed);
    }
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

#[test]
fn searches_equal_a_scan_of_all_documents() {
    let server = Server::new();
    let first = setting("QUIRE_TEXT_SEED", 1);
    for seed in first..first + setting("QUIRE_TEXT_SEEDS", ROUNDS) {
        let (mut round, mut random) = Round::new(&server, seed);
        for _ in 0..2 {
            (0..QUERIES).for_each(|_| round.check(&mut random));
            round.change(&mut random);
            round.validate();
        }
    }
}

#[test]
fn a_service_that_starts_again_has_the_same_index() {
    let server = Server::new();
    let mut client = server.client(1);
    let spec = doc! { "key": { "k": 1, "t": "text", "n": 1 }, "name": "x", "weights": { "t": 3 } };
    client.works(doc! { "createIndexes": "c", "indexes": [&spec], "$db": "test" });
    let list = doc! { "listIndexes": "c", "$db": "test" };
    let before = client.works(list.clone());
    client.works(
        doc! { "insert": "c", "documents": [{ "_id": 1, "k": 1, "t": "a fox" }], "$db": "test" },
    );
    let again = server.reopened();
    let mut client = again.client(2);
    let shown = |reply: &DocBuf| format!("{:?}", at(reply, "cursor.firstBatch"));
    assert_eq!(shown(&client.works(list)), shown(&before));
    let find =
        doc! { "find": "c", "filter": { "k": 1, "$text": { "$search": "foxes" } }, "$db": "test" };
    let reply = client.works(find);
    assert!(at(&reply, "cursor.firstBatch.0._id").is_some(), "{reply:?}");
}

/// A search found no document whose field before the texts was equal only under the collation.
#[test]
fn a_collation_does_not_use_the_keys_of_an_index_without_it() {
    let server = Server::new();
    let mut client = server.client(1);
    client.works(
        doc! { "create": "c", "collation": { "locale": "en", "strength": 2 }, "$db": "test" },
    );
    let spec = doc! {
        "key": { "k": 1, "t": "text", "n": 1 }, "name": "x", "collation": { "locale": "simple" }
    };
    client.works(doc! { "createIndexes": "c", "indexes": [&spec], "$db": "test" });
    let document = doc! { "_id": 1, "k": 1, "t": "a fox", "n": "A" };
    client.works(doc! { "insert": "c", "documents": [&document], "$db": "test" });
    let mut count = |filter: DocBuf| {
        let mut filter = filter;
        filter.append("$text", &doc! { "$search": "fox" });
        let reply = client.run(doc! { "count": "c", "query": &filter, "$db": "test" });
        (code(&reply), number(&reply, "n"))
    };
    assert_eq!(count(doc! { "k": 1, "n": "a" }), (0, Some(1)));
    assert_eq!(count(doc! { "k": 1, "n": "b" }), (0, Some(0)));
    assert_eq!(count(doc! { "k": "a" }).0, 291, "the field before the texts has no bounds");
}

#[test]
fn one_text_index_of_a_collection() {
    let server = Server::new();
    let mut client = server.client(1);
    let create = |client: &mut Client, spec: DocBuf| {
        code(&client.run(doc! { "createIndexes": "c", "indexes": [&spec], "$db": "test" }))
    };
    assert_eq!(create(&mut client, doc! { "key": { "a": "text" }, "name": "a" }), 0);
    assert_eq!(create(&mut client, doc! { "key": { "a": "text" }, "name": "a" }), 0);
    assert_eq!(create(&mut client, doc! { "key": { "b": "text" }, "name": "b" }), 85);
    assert_eq!(create(&mut client, doc! { "key": { "k": 1, "b": "text" }, "name": "c" }), 67);
    client.works(doc! { "dropIndexes": "c", "index": "a", "$db": "test" });
    assert_eq!(create(&mut client, doc! { "key": { "b": "text" }, "name": "b" }), 0);
}
