//! Patterns of every kind together, chained: random writes, transactions, expiry and crashes, and
//! renames, drops and replacements of the collections on either side. The oracle is what `quire eject`
//! prints: after each commit the aggregations that define the patterns find nothing that differs.

use super::random::settle;
use super::{abort, commit, rows, seeds, within};
use crate::change_streams::open;
use crate::{Client, Server, code, text};
use quire_catalog::patterns::Pattern;
use quire_document::{ArrayBuf, DocBuf, Value, ValueBuf, doc};
use quire_storage::rng::Rng;
use quire_storage::{Crash, Faults, SimulatedDisk};

const CITIES: usize = 0;
const CUSTOMERS: usize = 1;
const ORDERS: usize = 2;

/// The number of documents of each collection; one more value refers to nothing.
const DOCUMENTS: [u64; 3] = [3, 5, 12];

/// Draws operations, and knows the names that the collections have.
struct Shop {
    rng: Rng,
    names: [&'static str; 3],
    on_delete: &'static str,
    max_fanout: i32,
    /// True if a pattern was declared whose derived writes can be left to a job.
    defers: bool,
    transactions: u8,
}

impl Shop {
    fn new(seed: u64) -> Shop {
        let mut rng = Rng::new(seed);
        let on_delete = ["cascade", "setNull", "restrict"][rng.below(3) as usize];
        let max_fanout = [0, 1, 1000][rng.below(3) as usize];
        let names = ["cities", "customers", "orders"];
        let defers = max_fanout < 1000;
        Shop { rng, names, on_delete, max_fanout, defers, transactions: 0 }
    }

    fn reference(&self, name: &str, from: usize, local: &str, fields: &DocBuf) -> DocBuf {
        doc! {
            "name": name, "type": "reference", "from": (self.names[from]), "localField": local,
            "as": name, "fields": fields, "onDelete": (self.on_delete), "onMissing": "null",
            "maxFanout": (self.max_fanout)
        }
    }

    fn rollup(&self, name: &str, from: usize, foreign: &str, set: &DocBuf) -> DocBuf {
        doc! {
            "name": name, "type": "rollup", "from": (self.names[from]), "foreignField": foreign,
            "match": { "hidden": { "$ne": true } }, "set": set, "maxFanout": (self.max_fanout)
        }
    }

    /// Returns the patterns that a collection declares.
    fn patterns(&self, of: usize) -> Vec<DocBuf> {
        match of {
            CITIES => {
                let set = doc! {
                    "sales.spent": { "$sum": "$stats.spent" }, "sales.best": { "$max": "$stats.largest" },
                    "customers": { "$count": {} }
                };
                vec![self.rollup("customers", CUSTOMERS, "city", &set)]
            }
            CUSTOMERS => {
                let best = doc! {
                    "n": 2, "sortBy": { "total": -1, "_id": 1 }, "output": { "id": "$_id", "t": "$total" }
                };
                let set = doc! {
                    "stats.orders": { "$count": {} }, "stats.spent": { "$sum": "$total" },
                    "stats.largest": { "$max": "$total" }, "stats.mean": { "$avg": "$total" },
                    "orderIds": { "$push": "$_id" }, "totals": { "$addToSet": "$total" },
                    "best": { "$topN": &best }
                };
                vec![
                    self.reference("in", CITIES, "city", &doc! { "name": "sync" }),
                    self.rollup("orders", ORDERS, "customer", &set),
                    doc! { "name": "visits", "type": "counter", "path": "visits", "merge": true },
                ]
            }
            _ => {
                let fields = doc! { "name": "sync", "in.name": { "mode": "sync", "as": "city" } };
                vec![self.reference("by", CUSTOMERS, "customer", &fields)]
            }
        }
    }

    /// Makes a collection with its patterns and its index for expiry.
    fn declare(&self, client: &mut Client, of: usize) {
        let name = self.names[of];
        client.run(doc! { "create": name, "$db": "shop" });
        let patterns: ArrayBuf = self.patterns(of).iter().collect();
        client.works(doc! { "collMod": name, "patterns": &patterns, "$db": "shop" });
        let index = doc! { "key": { "at": 1 }, "name": "at_1", "expireAfterSeconds": 1 };
        client.works(doc! { "createIndexes": name, "indexes": [&index], "$db": "shop" });
    }

    fn declare_all(&self, client: &mut Client) {
        [ORDERS, CUSTOMERS, CITIES].into_iter().for_each(|of| self.declare(client, of));
    }

    fn collection(&mut self) -> usize {
        [CITIES, CUSTOMERS, CUSTOMERS, ORDERS, ORDERS, ORDERS][self.rng.below(6) as usize]
    }

    fn id(&mut self, of: usize) -> i32 {
        self.rng.below(DOCUMENTS[of]) as i32
    }

    /// Returns what a document has as its reference to a document of `to`.
    fn value(&mut self, to: usize) -> ValueBuf {
        let mut one = || self.rng.below(DOCUMENTS[to] + 1) as i32;
        let (first, second) = (one(), one());
        match self.rng.below(12) {
            0 => ValueBuf::new(Value::Null),
            1 => ValueBuf::new(f64::from(first)),
            2 if to == CUSTOMERS => [first, second, first].into_iter().collect::<ArrayBuf>().into(),
            _ => ValueBuf::new(first),
        }
    }

    /// Returns the field that refers, and where to.
    fn local(of: usize) -> (&'static str, usize) {
        if of == CUSTOMERS { ("city", CITIES) } else { ("customer", CUSTOMERS) }
    }

    fn document(&mut self, of: usize, id: i32) -> DocBuf {
        let n = self.rng.below(50) as i32;
        let mut document = doc! { "_id": id, "name": n };
        if of != CITIES {
            let (local, to) = Shop::local(of);
            document.append(local, self.value(to).as_value());
            document.append("total", n).append("hidden", self.rng.one_in(5));
        }
        if self.rng.one_in(10) {
            document.append("at", Value::Date(0));
        }
        document
    }

    fn change(&mut self, of: usize) -> DocBuf {
        let n = self.rng.below(50) as i32;
        let (local, to) = Shop::local(of);
        let value = self.value(to);
        match (of, self.rng.below(9)) {
            (CITIES, 0..3) => doc! { "$set": { "sales.spent": 7, "customers": n } },
            (CITIES, 3) => doc! { "$unset": { "name": 1 } },
            (_, 0) => doc! { "$set": { "at": Value::Date(0) } },
            (_, 1) => doc! { "$set": { "total": n, "hidden": (self.rng.one_in(4)) } },
            (_, 2) => doc! { "$set": { local: value.as_value(), "total": n } },
            (CUSTOMERS, 3) => doc! { "$inc": { "visits": 1 } },
            (CUSTOMERS, 4) => doc! { "$set": { "stats": 5, "in": "mine", "visits": n } },
            (CUSTOMERS, 5) => doc! { "$unset": { "stats.spent": 1, "in": 1 } },
            (ORDERS, 3) => doc! { "$unset": { local: 1, "by": 1 } },
            (ORDERS, 4) => doc! { "$set": { "by": { "name": "mine", "own": n } } },
            (ORDERS, 5) => doc! { "$rename": { "total": "old" } },
            _ => doc! { "$set": { "name": n } },
        }
    }

    fn filter(&mut self, of: usize) -> DocBuf {
        match self.rng.below(4) {
            0 => doc! { "total": { "$lt": (self.rng.below(50) as i32) } },
            1 => {
                let (local, to) = Shop::local(of);
                doc! { local: (self.id(to)) }
            }
            _ => doc! { "_id": (self.id(of)) },
        }
    }

    /// Returns a random write.
    fn write(&mut self) -> DocBuf {
        let of = self.collection();
        let (name, id, filter, change) =
            (self.names[of], self.id(of), self.filter(of), self.change(of));
        let multi = self.rng.one_in(2);
        match self.rng.below(9) {
            0 | 1 => {
                let more = self.id(of);
                let documents = [self.document(of, id), self.document(of, more)];
                let documents: ArrayBuf = documents.iter().collect();
                doc! { "insert": name, "documents": &documents, "ordered": multi, "$db": "shop" }
            }
            2 => {
                let whole = self.document(of, id);
                let statement = doc! { "q": { "_id": id }, "u": &whole, "upsert": true };
                doc! { "update": name, "updates": [&statement], "$db": "shop" }
            }
            3 => {
                let stages =
                    quire_document::array![{ "$set": { "total": "$name", "name": "$_id" } }];
                let statement = doc! { "q": &filter, "u": &stages, "multi": multi };
                doc! { "update": name, "updates": [&statement], "$db": "shop" }
            }
            4 => {
                let statement = doc! { "q": &filter, "limit": (i32::from(!multi)) };
                doc! { "delete": name, "deletes": [&statement], "$db": "shop" }
            }
            5 => doc! {
                "findAndModify": name, "query": &filter, "update": &change, "upsert": false,
                "new": multi, "$db": "shop"
            },
            _ => {
                let statement = doc! { "q": &filter, "u": &change, "multi": multi };
                doc! { "update": name, "updates": [&statement], "$db": "shop" }
            }
        }
    }

    /// Runs a transaction, which commits or aborts.
    fn transaction(&mut self, client: &mut Client) -> String {
        self.transactions += 1;
        let (txn, mut alive) = (self.transactions, true);
        let mut shown = String::from("transaction");
        for at in 0..=self.rng.below(3) {
            let command = self.write();
            shown.push_str(&format!(" {command:?}"));
            let reply = client.run(within(txn, at == 0, command));
            alive = code(&reply) == 0 && reply.get("writeErrors").is_none();
            if !alive {
                break;
            }
        }
        match alive && !self.rng.one_in(3) {
            true => drop(client.works(commit(txn))),
            false => {
                client.run(abort(txn));
                shown.push_str(" aborted");
            }
        }
        shown
    }

    /// Puts documents of its own in the place of a collection, by `$merge`, `$out` or a rename.
    fn replace(&mut self, client: &mut Client) -> String {
        let of = self.collection();
        let name = self.names[of];
        client.run(doc! { "drop": "spare", "$db": "shop" });
        let ids = 0..DOCUMENTS[of] as i32;
        let documents: Vec<DocBuf> = ids.map(|id| self.document(of, id)).collect();
        let documents: ArrayBuf = documents.iter().filter(|_| !self.rng.one_in(3)).collect();
        let written = doc! { "insert": "spare", "documents": &documents, "$db": "shop" };
        // The list can be empty.
        if code(&client.run(written)) != 0 {
            return "nothing to replace by".to_owned();
        }
        let (how, command) = match self.rng.below(3) {
            0 => (
                "$merge",
                quire_document::array![{ "$merge": { "into": name, "whenMatched": "replace" } }],
            ),
            1 => ("$out", quire_document::array![{ "$out": name }]),
            _ => {
                let to = format!("shop.{name}");
                let reply = client.run(doc! {
                    "renameCollection": "shop.spare", "to": to.as_str(), "dropTarget": true, "$db": "admin"
                });
                self.replaced(client, of, &reply);
                return format!("rename over {name}: {reply:?}");
            }
        };
        let reply = client.run(doc! {
            "aggregate": "spare", "pipeline": &command, "cursor": {}, "$db": "shop"
        });
        assert!([0, 20, 112].contains(&code(&reply)), "{how} {name}: {reply:?}");
        format!("{how} {name}: {reply:?}")
    }

    /// A collection that takes a name by a rename has its own patterns: none.
    fn replaced(&self, client: &mut Client, of: usize, reply: &DocBuf) {
        assert!([0, 20].contains(&code(reply)), "{reply:?}");
        if code(reply) == 0 {
            self.declare(client, of);
        }
    }

    fn drop(&mut self, client: &mut Client) -> String {
        let of = self.collection();
        let reply = client.run(doc! { "drop": (self.names[of]), "$db": "shop" });
        self.replaced(client, of, &reply);
        format!("drop {}: {reply:?}", self.names[of])
    }

    /// Renames a collection, or back.
    fn rename(&mut self, client: &mut Client) -> String {
        const OTHERS: [[&str; 2]; 3] =
            [["cities", "towns"], ["customers", "clients"], ["orders", "sales"]];
        let of = self.collection();
        let to = OTHERS[of][usize::from(self.names[of] == OTHERS[of][0])];
        let (from, target) = (format!("shop.{}", self.names[of]), format!("shop.{to}"));
        client.works(
            doc! { "renameCollection": from.as_str(), "to": target.as_str(), "$db": "admin" },
        );
        self.names[of] = to;
        format!("rename {from} to {to}")
    }

    /// Declares the patterns of a collection with another `maxFanout`.
    fn change_patterns(&mut self, client: &mut Client) -> String {
        let of = self.collection();
        let before = self.max_fanout;
        self.max_fanout = [0, 1, 2, 1000][self.rng.below(4) as usize];
        self.defers |= self.max_fanout < 1000;
        self.declare(client, of);
        format!("{} declared with {} after {before}", self.names[of], self.max_fanout)
    }
}

/// Returns the definition that a document of `quire.patterns` holds, and its collection.
fn declared(row: &DocBuf) -> (String, Pattern) {
    let definition = DocBuf::build(|writer| {
        let fields = row.as_doc().fields();
        for (name, value) in fields.filter(|(name, _)| !matches!(*name, "_id" | "collection")) {
            writer.append(name, value);
        }
    });
    let collection = text(row, "collection").unwrap().to_owned();
    (collection, Pattern::parse("test", definition.as_doc()).unwrap())
}

/// Asserts that all patterns of the database are declared, and that no document differs from their
/// definitions.
fn assert_exact(client: &mut Client, context: &str) {
    let found = client.works(doc! { "find": "quire.patterns", "$db": "shop" });
    let found = rows(&found);
    assert_eq!(found.len(), 5, "{context}: {found:?}");
    for (collection, pattern) in found.iter().map(declared) {
        let plain = pattern.plain(&collection);
        for stages in [&plain.compute, &plain.refused].into_iter().filter(|s| !s.is_empty()) {
            let pipeline: ArrayBuf = stages.iter().collect();
            let wrong = client.works(doc! {
                "aggregate": collection.as_str(), "pipeline": &pipeline, "cursor": {}, "$db": "shop"
            });
            let wrong = rows(&wrong);
            if let Some(first) = wrong.first() {
                let id = first.get("_id").unwrap();
                let stored = client.works(doc! {
                    "find": collection.as_str(), "filter": { "_id": id }, "$db": "shop"
                });
                panic!(
                    "{context}: pattern {pattern}, wanted {first:?}\nstored {:?}",
                    rows(&stored)
                );
            }
        }
    }
}

fn assert_no_drift(client: &mut Client, shop: &Shop, context: &str) {
    for name in shop.names {
        let valid = client.works(doc! { "validate": name, "patterns": true, "$db": "shop" });
        assert!(matches!(valid.get("valid"), Some(Value::Bool(true))), "{context}: {valid:?}");
    }
}

/// One operation. Returns what it was, and whether jobs follow from it.
fn operation(shop: &mut Shop, server: &Server, client: &mut Client) -> (String, bool) {
    match shop.rng.below(30) {
        0 => (shop.replace(client), true),
        1 => (shop.drop(client), true),
        2 => (shop.rename(client), true),
        3 => (shop.change_patterns(client), true),
        4 => {
            let (store, interrupt) = (server.0.store(), quire_storage::Interrupt::new());
            let later = i64::from(i32::MAX);
            let expired = quire_collections::expire_documents(store, later, &interrupt).unwrap();
            assert_eq!(expired.failures.len(), 0);
            ("expiry".to_owned(), true)
        }
        5..10 => (shop.transaction(client), false),
        _ => {
            let mut command = shop.write();
            if shop.rng.one_in(3) {
                command.append("writeConcern", &doc! { "w": 1 });
            }
            client.run(command.clone());
            (format!("{command:?}"), false)
        }
    }
}

fn round(seed: u64) {
    let mut shop = Shop::new(seed);
    let mut disk = SimulatedDisk::new(Faults::none(seed));
    let mut server = open(&disk);
    let mut client = server.client(1);
    shop.declare_all(&mut client);
    let mut history = format!("seed {seed}, {}, {}", shop.on_delete, shop.max_fanout);
    for step in 0..40 {
        if shop.rng.one_in(20) {
            drop((client, server));
            let how = [Crash::Process, Crash::Power, Crash::TornTail];
            disk.crash(how[shop.rng.below(3) as usize]);
            server = open(&disk);
            client = server.client(1);
            settle(&server, &mut client);
            history.push_str("\ncrash");
            assert_exact(&mut client, &history);
        }
        let (shown, has_jobs) = operation(&mut shop, &server, &mut client);
        if has_jobs || shop.defers {
            settle(&server, &mut client);
        }
        history.push_str(&format!("\n{step}: {shown}"));
        assert_exact(&mut client, &history);
    }
    assert_no_drift(&mut client, &shop, &history);
    drop(client);
    let findings = quire_collections::check(server.0.store(), false).unwrap().findings;
    assert!(findings.is_empty(), "seed {seed}: {findings:?}");
}

/// `QUIRE_PATTERN_SEEDS` sets the number of seeds.
#[test]
fn every_operation_keeps_every_pattern() {
    for seed in seeds(6) {
        round(seed);
    }
}

/// Writers go on while the collections below them are replaced, dropped and declared again.
#[test]
fn writers_beside_replacements_leave_no_drift() {
    let mut shop = Shop::new(4711);
    let server = Server::new();
    let mut client = server.client(1);
    shop.declare_all(&mut client);
    std::thread::scope(|scope| {
        for writer in 0..3 {
            let server = &server;
            scope.spawn(move || {
                let (mut draws, mut client) = (Shop::new(writer), server.client(10 + writer));
                for _ in 0..60 {
                    client.run(draws.write());
                }
            });
        }
        for turn in 0..9 {
            match turn % 3 {
                0 => shop.replace(&mut client),
                1 => shop.drop(&mut client),
                _ => shop.change_patterns(&mut client),
            };
        }
    });
    settle(&server, &mut client);
    assert_exact(&mut client, "at the end");
    assert_no_drift(&mut client, &shop, "at the end");
}
