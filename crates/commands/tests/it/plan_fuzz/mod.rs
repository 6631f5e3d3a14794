//! A differential fuzz between plans. A random query has one answer: with each index alone, with all
//! indexes, without any, in a transaction, on a view, and in batches of one document. Documents have
//! arrays in arrays, and sorts follow the keys of the indexes.
//!
//! `QUIRE_PLAN_SEEDS` sets the number of rounds, `QUIRE_PLAN_SEED` the first one. Each round has its
//! own documents and indexes.

mod answers;
mod generate;

use crate::transactions::within;
use crate::{Client, Server, at, code, number};
use answers::Expected;
use generate::pick;
use quire_document::literal::print;
use quire_document::{ArrayBuf, DocBuf, Value, doc};
use quire_storage::rng::Rng;
use std::fmt::Write;

/// The rounds of a run in CI.
const ROUNDS: u64 = 4;
const INDEXES: u64 = 5;
const DOCUMENTS: i32 = 60;
const QUERIES: u64 = 40;
/// The differences that a failure shows.
const SHOWN_MAX: usize = 30;
/// The collection without indexes, and the one with all of them.
const BARE: &str = "bare";
const ALL: &str = "all";

/// The collections of a round, with the same documents.
struct Round {
    client: Client,
    /// The key of each index; the collection `only<number>` has only that index.
    keys: Vec<DocBuf>,
    transactions: i64,
    seed: u64,
    differences: Vec<String>,
}

/// A query as all collections get it.
#[derive(Clone)]
struct Query {
    filter: DocBuf,
    sort: DocBuf,
    projection: DocBuf,
    skip: usize,
    limit: usize,
}

impl Query {
    fn random(random: &mut Rng, key: &DocBuf) -> Query {
        let sort = if random.one_in(3) { DocBuf::new() } else { generate::sort(random, key) };
        let projection =
            if random.one_in(3) { DocBuf::new() } else { generate::projection(random, key) };
        let has_ids = !projection.as_doc().contains("_id");
        let limited = random.one_in(2) && (sort.as_doc().is_empty() || has_ids);
        Query {
            filter: generate::filter(random),
            sort,
            projection,
            skip: if limited && random.one_in(2) { random.below(5) as usize } else { 0 },
            limit: if limited { 1 + random.below(6) as usize } else { 0 },
        }
    }

    fn find(&self, collection: &str) -> DocBuf {
        doc! {
            "find": collection, "filter": &self.filter, "sort": &self.sort,
            "projection": &self.projection, "skip": self.skip as i64, "limit": self.limit as i64,
            "$db": "db"
        }
    }

    /// Returns the query as a pipeline.
    fn aggregate(&self, collection: &str) -> DocBuf {
        let mut stages = vec![doc! { "$match": &self.filter }];
        if !self.sort.as_doc().is_empty() {
            stages.push(doc! { "$sort": &self.sort });
        }
        if self.skip > 0 {
            stages.push(doc! { "$skip": self.skip as i64 });
        }
        if self.limit > 0 {
            stages.push(doc! { "$limit": self.limit as i64 });
        }
        if !self.projection.as_doc().is_empty() {
            stages.push(doc! { "$project": &self.projection });
        }
        pipeline(collection, &stages)
    }

    /// Returns the answer without `skip` and `limit`, and the sort key of each document.
    fn whole(&self) -> Query {
        Query { skip: 0, limit: 0, ..self.clone() }
    }

    fn text(&self) -> String {
        print(self.find("t").as_doc())
    }
}

fn pipeline(collection: &str, stages: &[DocBuf]) -> DocBuf {
    let stages: ArrayBuf = stages.iter().collect();
    doc! { "aggregate": collection, "pipeline": &stages, "cursor": {}, "$db": "db" }
}

impl Round {
    fn new(seed: u64) -> Round {
        let random = &mut Rng::new(seed);
        let mut client = Server::new().client(1);
        let mut keys = Vec::new();
        client.works(doc! { "create": BARE, "$db": "db" });
        client.works(doc! { "create": ALL, "$db": "db" });
        for number in 0..INDEXES {
            let spec = generate::index(random, &format!("i{number}"));
            let create = |collection: &str| {
                doc! { "createIndexes": collection, "indexes": [&spec], "$db": "db" }
            };
            if code(&client.run(create(ALL))) == 0 {
                client.works(create(&format!("only{}", keys.len())));
                keys.push(spec.get("key").unwrap().as_document().unwrap().to_owned());
            }
        }
        let mut round = Round { client, keys, transactions: 0, seed, differences: Vec::new() };
        (0..DOCUMENTS).for_each(|id| round.insert(&generate::document(random, id)));
        let view = doc! { "create": "view", "viewOn": ALL, "pipeline": [], "$db": "db" };
        round.client.works(view);
        round
    }

    /// Inserts a document into all collections, unless an index refuses it.
    fn insert(&mut self, document: &DocBuf) {
        let insert = |collection: &str| {
            doc! { "insert": collection, "documents": [document], "$db": "db" }
        };
        let reply = self.client.works(insert(ALL));
        if number(&reply, "n") == Some(1) {
            self.client.works(insert(BARE));
            (0..self.keys.len()).for_each(|at| {
                self.client.works(insert(&format!("only{at}")));
            });
        }
    }

    /// Returns all documents of a cursor, or the code of the error.
    fn answer(&mut self, command: DocBuf) -> Result<Vec<DocBuf>, i32> {
        let reply = self.client.run(command);
        if code(&reply) != 0 {
            return Err(code(&reply));
        }
        let documents = |reply: &DocBuf, batch: &str| -> Vec<DocBuf> {
            let batch = at(reply, batch).unwrap().as_array().unwrap();
            batch.iter().map(|doc| doc.as_document().unwrap().to_owned()).collect()
        };
        let mut found = documents(&reply, "cursor.firstBatch");
        let namespace = crate::text(&reply, "cursor.ns").unwrap().to_owned();
        let collection = namespace.trim_start_matches("db.");
        let mut id = number(&reply, "cursor.id").unwrap();
        while id != 0 {
            let more = doc! {
                "getMore": id, "collection": collection, "batchSize": 1, "$db": "db"
            };
            let reply = self.client.run(more);
            if code(&reply) != 0 {
                return Err(code(&reply));
            }
            found.extend(documents(&reply, "cursor.nextBatch"));
            id = number(&reply, "cursor.id").unwrap();
        }
        Ok(found)
    }

    /// Returns the answer of a statement in a transaction of its own.
    fn in_transaction(&mut self, command: DocBuf) -> Result<Vec<DocBuf>, i32> {
        self.transactions += 1;
        let key = (1, self.transactions);
        let answer = self.answer(within(command, key, true));
        self.client.run(within(doc! { "abortTransaction": 1, "$db": "admin" }, key, false));
        answer
    }

    /// Returns the expected answer of a query; the code of an error, if it has none.
    fn expected(&mut self, query: &Query) -> Result<Expected, i32> {
        let natural = |query: &Query| {
            let mut find = query.find(BARE);
            find.append("hint", &doc! { "$natural": 1 });
            find
        };
        let found = self.answer(natural(&query.whole()))?;
        let mut sorted = Vec::new();
        if !query.sort.as_doc().is_empty() {
            let projection = doc! { "_id": 1, "key": { "$meta": "sortKey" } };
            sorted = self.answer(natural(&Query { projection, ..query.whole() }))?;
        }
        Ok(Expected::new(&found, &sorted))
    }

    /// Compares the answers of all ways to run a query with the expected one.
    fn check(&mut self, query: &Query) {
        let expected = self.expected(query);
        let mut batches = query.find(ALL);
        batches.append("batchSize", 1);
        let mut ways = vec![
            ("all indexes", self.answer(query.find(ALL))),
            ("a pipeline", self.answer(query.aggregate(ALL))),
            ("batches of one document", self.answer(batches)),
            ("a view", self.answer(query.find("view"))),
            ("a pipeline on a view", self.answer(query.aggregate("view"))),
            ("a transaction", self.in_transaction(query.find(ALL))),
        ];
        for at in 0..self.keys.len() {
            ways.push(("one index", self.answer(query.find(&format!("only{at}")))));
        }
        for (at, (way, answer)) in ways.iter().enumerate() {
            let difference = match (answer, &expected) {
                (Ok(answer), Ok(expected)) => expected.difference(answer, query.skip, query.limit),
                (answer, expected) => {
                    let (answer, expected) = (answer.as_ref().err(), expected.as_ref().err());
                    (answer != expected).then(|| format!("{answer:?} in place of {expected:?}"))
                }
            };
            if let Some(difference) = difference {
                self.fail(&format!("{way} ({at}): {difference}\n{}", query.text()));
            }
        }
    }

    /// Compares answers that have no order: of pipelines, `count` and `distinct`.
    fn check_unordered(&mut self, command: impl Fn(&str) -> DocBuf) {
        let mut answers: Vec<(String, Vec<String>)> = Vec::new();
        let collections = [BARE.to_owned(), ALL.to_owned(), "view".to_owned()];
        let alone = (0..self.keys.len()).map(|at| format!("only{at}"));
        for collection in collections.into_iter().chain(alone) {
            let mut command = command(&collection);
            if command.as_doc().contains("aggregate") && collection == BARE {
                command.append("hint", &doc! { "$natural": 1 });
            }
            let reply = self.client.run(command);
            let found = at(&reply, "cursor.firstBatch").or(reply.get("values"));
            let mut shown: Vec<String> = match found {
                Some(Value::Array(found)) => found.iter().map(answers::text_of_any).collect(),
                _ => vec![format!("{:?} {}", number(&reply, "n"), code(&reply))],
            };
            shown.sort();
            answers.push((collection, shown));
        }
        for (collection, answer) in &answers[1..] {
            if answer != &answers[0].1 {
                let text = print(command("t").as_doc());
                self.fail(&format!("{collection}: {answer:?}\nbare: {:?}\n{text}", answers[0].1));
            }
        }
    }

    /// Notes a difference.
    fn fail(&mut self, text: &str) {
        let mut keys = String::new();
        for (at, key) in self.keys.iter().enumerate() {
            let _ = writeln!(keys, "only{at}: {}", print(key.as_doc()));
        }
        self.differences.push(format!("QUIRE_PLAN_SEED={}: {text}\n{keys}", self.seed));
    }
}

/// Returns a pipeline whose stages the planner moves, covers or answers from keys. `key` is that of
/// an index.
fn stages(random: &mut Rng, key: &DocBuf) -> Vec<DocBuf> {
    let filter = generate::filter(random);
    let path = match key.as_doc().first().map(|first| first.key()) {
        Some(path) if !path.contains('$') && random.one_in(2) => path.to_owned(),
        _ => generate::path(random).to_owned(),
    };
    let field = format!("${path}");
    let field = field.as_str();
    let group = doc! { "$group": { "_id": field, "n": { "$sum": 1 } } };
    let other = generate::path(random).split('.').next().unwrap_or("k");
    match random.below(8) {
        0 => vec![group],
        1 => vec![doc! { "$match": &filter }, group],
        2 => vec![doc! { "$group": { "_id": field } }],
        3 => vec![doc! { "$unwind": field }, doc! { "$match": &filter }],
        4 => vec![doc! { "$set": { "r": field } }, doc! { "$match": { "r": { "$gte": 1 } } }],
        5 => vec![
            doc! { "$project": { "r": format!("${other}").as_str(), "k": 1 } },
            doc! { "$match": { "$or": [{ "r.x": 1 }, { "r": { "$in": [1, Value::Null] } }] } },
        ],
        6 => vec![
            doc! { "$set": { "r": field, "s": { "$ifNull": ["$k", 0] } } },
            doc! { "$match": { "$expr": { "$lt": ["$r", 3] } } },
            doc! { "$match": &filter },
        ],
        _ => vec![
            doc! { "$lookup": { "from": BARE, "localField": path.as_str(), "foreignField": "k", "as": "j" } },
            doc! { "$set": { "j": { "$size": "$j" } } },
            doc! { "$match": &filter },
        ],
    }
}

#[test]
fn every_plan_gives_the_same_answer() {
    let setting = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let first = setting("QUIRE_PLAN_SEED").unwrap_or(1);
    let rounds = setting("QUIRE_PLAN_SEEDS").unwrap_or(ROUNDS);
    let mut differences = Vec::new();
    for seed in first..first + rounds {
        let mut round = Round::new(seed);
        let random = &mut Rng::new(seed ^ 0xf00d);
        if round.keys.is_empty() {
            continue;
        }
        for _ in 0..QUERIES {
            let key = pick(random, &round.keys).clone();
            round.check(&Query::random(random, &key));
            let stages = stages(random, &key);
            round.check_unordered(|collection| pipeline(collection, &stages));
            let (filter, path) = (generate::filter(random), generate::path(random));
            round.check_unordered(|collection| {
                doc! { "count": collection, "query": &filter, "$db": "db" }
            });
            round.check_unordered(|collection| {
                doc! { "distinct": collection, "key": path, "query": &filter, "$db": "db" }
            });
        }
        differences.append(&mut round.differences);
    }
    let shown: Vec<String> = differences.iter().take(SHOWN_MAX).cloned().collect();
    assert!(differences.is_empty(), "{} differences\n{}", differences.len(), shown.join("\n"));
}
