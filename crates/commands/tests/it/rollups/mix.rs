//! Random mixes of every write command. `QUIRE_PATTERN_SEEDS` asks for more seeds than CI runs.

use super::oracle::{all, assert_exact, assert_same};
use super::{assert_no_drift, declare, delete, insert, shop, update};
use crate::patterns::seeds;
use crate::transactions::{commit, within};
use crate::{Client, Server, at, code, replica_set};
use quire_commands::log::NoLog;
use quire_document::testing::Generator;
use quire_document::{ArrayBuf, DocBuf, Value, ValueBuf, doc};
use quire_storage::simulated::{Crash, Faults, SimulatedDisk};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const PRODUCTS: [&str; 4] = ["a", "b", "c", "d"];
const REVIEWS: u64 = 24;

/// Draws commands.
struct Draws(Generator);

impl Draws {
    fn id(&mut self) -> i32 {
        self.0.below(REVIEWS) as i32
    }

    fn product(&mut self) -> &'static str {
        self.0.pick(&PRODUCTS).copied().unwrap()
    }

    fn stars(&mut self) -> ValueBuf {
        let number = self.0.below(6) as i32;
        match self.0.below(8) {
            0 => ValueBuf::new(f64::from(number) + 0.25),
            1 => ValueBuf::new(i64::from(number) << 20),
            2 => ValueBuf::new(Value::Null),
            3 => ValueBuf::new("many"),
            _ => ValueBuf::new(number),
        }
    }

    fn review(&mut self, id: i32) -> DocBuf {
        let (stars, at, user) = (self.stars(), self.0.below(9) as i32, self.0.below(4) as i32);
        let mut review = doc! { "_id": id, "at": at, "user": user };
        match self.0.below(10) {
            0 => {}
            1 => {
                review.append("product", Value::Null);
            }
            2 => {
                let (one, two) = (self.product(), self.product());
                review.append("product", &quire_document::array![one, two, one]);
            }
            _ => {
                review.append("product", self.product());
            }
        }
        if self.0.below(5) > 0 {
            review.append("stars", &stars);
        }
        if self.0.one_in(6) {
            review.append("hidden", true);
        }
        review
    }

    fn change(&mut self) -> DocBuf {
        let stars = self.stars();
        match self.0.below(8) {
            0 => doc! { "$set": { "product": (self.product()) } },
            1 => doc! { "$inc": { "n": 1 } },
            2 => doc! { "$set": { "hidden": (self.0.one_in(2)) } },
            3 => doc! { "$unset": { "stars": 1 } },
            4 => doc! { "$set": { "at": (self.0.below(9) as i32) } },
            5 => doc! { "$set": { "user": (self.0.below(4) as i32) } },
            6 => doc! { "$unset": { "product": 1 } },
            _ => doc! { "$set": { "stars": &stars } },
        }
    }

    fn filter(&mut self) -> DocBuf {
        match self.0.below(3) {
            0 => doc! { "product": (self.product()) },
            1 => doc! { "user": (self.0.below(4) as i32) },
            _ => doc! { "_id": (self.id()) },
        }
    }

    fn review_command(&mut self) -> DocBuf {
        let (id, filter, change) = (self.id(), self.filter(), self.change());
        match self.0.below(12) {
            0 | 1 => {
                let two = [self.review(id), self.review(id + 1)];
                let documents: quire_document::ArrayBuf = two.iter().collect();
                let ordered = self.0.one_in(2);
                doc! { "insert": "reviews", "documents": &documents, "ordered": ordered, "$db": "test" }
            }
            2 => insert("reviews", &self.review(id)),
            3 => update("reviews", &filter, &change),
            4 => {
                let one = doc! { "q": &filter, "u": &change, "multi": true };
                doc! { "update": "reviews", "updates": [&one], "$db": "test" }
            }
            5 => {
                let stages = quire_document::array![{ "$set": { "stars": (self.0.below(6) as i32), "at": "$user" } }];
                let one = doc! { "q": &filter, "u": &stages, "multi": true };
                doc! { "update": "reviews", "updates": [&one], "$db": "test" }
            }
            6 => {
                let one = doc! { "q": { "_id": id }, "u": &self.review(id), "upsert": true };
                doc! { "update": "reviews", "updates": [&one], "$db": "test" }
            }
            7 => doc! {
                "findAndModify": "reviews", "query": &filter, "update": &change,
                "new": (self.0.one_in(2)), "$db": "test"
            },
            8 => {
                doc! { "findAndModify": "reviews", "query": &filter, "remove": true, "$db": "test" }
            }
            9 => {
                let ops = quire_document::array![
                    { "insert": 0, "document": &self.review(id) },
                    { "update": 0, "filter": &filter, "updateMods": &change, "multi": true },
                    { "delete": 0, "filter": { "_id": (self.id()) } }
                ];
                doc! {
                    "bulkWrite": 1, "ops": &ops, "nsInfo": [{ "ns": "test.reviews" }],
                    "ordered": false, "$db": "admin"
                }
            }
            10 => delete("reviews", &filter),
            _ => {
                let documents =
                    quire_document::array![&self.review(id), &self.review((id + 5) % 24)];
                let pipeline = quire_document::array![
                    { "$documents": &documents },
                    { "$merge": { "into": "reviews", "whenMatched": "replace" } }
                ];
                doc! { "aggregate": 1, "pipeline": &pipeline, "cursor": {}, "$db": "test" }
            }
        }
    }

    fn product_command(&mut self) -> DocBuf {
        let id = self.product();
        match self.0.below(6) {
            0 => delete("products", &doc! { "_id": id }),
            1 => insert("products", &doc! { "_id": id, "count": 99, "own": 1 }),
            2 => {
                let one =
                    doc! { "q": { "_id": id }, "u": { "own": 2, "stars": 7 }, "upsert": true };
                doc! { "update": "products", "updates": [&one], "$db": "test" }
            }
            3 => update(
                "products",
                &doc! { "_id": id },
                &doc! { "$set": { "sum": -1, "stars.5": 0 } },
            ),
            4 => update("products", &doc! {}, &doc! { "$inc": { "count": 1, "own": 1 } }),
            _ => update(
                "products",
                &doc! { "_id": id },
                &doc! { "$unset": { "ids": 1, "recent": 1 } },
            ),
        }
    }

    fn command(&mut self) -> DocBuf {
        if self.0.below(4) == 0 { self.product_command() } else { self.review_command() }
    }
}

/// Runs commands, mostly alone, sometimes in a transaction that commits or aborts.
fn run(client: &mut Client, draws: &mut Draws, txn: &mut i64) -> String {
    if !draws.0.one_in(8) {
        let command = draws.command();
        client.run(command.clone());
        return format!("{command:?}");
    }
    *txn += 1;
    let mut shown = String::from("transaction");
    for statement in 0..3 {
        let mut command = draws.command();
        if command.get("aggregate").is_some() {
            command = insert("reviews", &draws.review(30));
        }
        shown = format!("{shown}, {command:?}");
        let reply = client.run(within(command, (7, *txn), statement == 0));
        if code(&reply) != 0 || reply.get("writeErrors").is_some() {
            break;
        }
    }
    let end = if draws.0.one_in(3) {
        doc! { "abortTransaction": 1, "$db": "admin" }
    } else {
        commit()
    };
    client.run(within(end, (7, *txn), false));
    shown
}

#[test]
fn every_write_command_keeps_every_accumulator() {
    for seed in seeds(3) {
        let (_server, mut client) = shop();
        let (mut draws, mut txn) = (Draws(Generator::new(seed)), 0);
        for step in 0..60 {
            let shown = run(&mut client, &mut draws, &mut txn);
            assert_exact(&mut client, &format!("seed {seed}, step {step}, {shown}"));
        }
        assert_no_drift(&mut client);
    }
}

/// Gives the second server the indexes that the patterns of the first have made: a write of one of
/// many documents takes the first that its plan finds.
fn copy_indexes(from: &mut Client, to: &mut Client) {
    let reply = from.works(doc! { "listIndexes": "reviews", "$db": "test" });
    let specs = at(&reply, "cursor.firstBatch").unwrap().as_array().unwrap();
    let specs: ArrayBuf = specs.iter().collect();
    to.works(doc! { "createIndexes": "reviews", "indexes": &specs, "$db": "test" });
}

#[test]
fn declared_after_the_load_equals_declared_before() {
    for seed in seeds(2).map(|seed| seed + 100) {
        let (_server, mut before) = shop();
        let server = Server::new();
        let mut after = server.client(1);
        copy_indexes(&mut before, &mut after);
        let mut draws = Draws(Generator::new(seed));
        for step in 0..50 {
            // Other writes of products fail in one of the two: the paths of the roll-up are ignored
            // where it is declared.
            let command = match draws.0.below(8) {
                0 => delete("products", &doc! { "_id": (draws.product()) }),
                1 => insert("products", &doc! { "_id": (draws.product()), "count": 99, "own": 1 }),
                _ => draws.review_command(),
            };
            before.run(command.clone());
            after.run(command.clone());
            let plain = all(&mut after, "reviews", &DocBuf::new());
            let declared = all(&mut before, "reviews", &DocBuf::new());
            assert_eq!(plain, declared, "seed {seed}, step {step}, {command:?}");
        }
        declare(&mut after);
        assert_exact(&mut after, &format!("seed {seed}"));
        assert_no_drift(&mut after);
    }
}

/// With `maxFanout: 0` jobs write all parents; when nothing is left they have what they have when each
/// commit writes them.
#[test]
fn all_in_the_background_and_then_quiet_equals_all_in_the_foreground() {
    for seed in seeds(2).map(|seed| seed + 300) {
        let (_server, mut foreground) = shop();
        let server = Server::new();
        let mut background = server.client(1);
        background.works(doc! { "create": "products", "$db": "test" });
        let mut late = super::declared();
        late.append("maxFanout", 0);
        background.works(doc! { "collMod": "products", "patterns": [&late], "$db": "test" });
        for client in [&mut foreground, &mut background] {
            let (mut draws, mut txn) = (Draws(Generator::new(seed)), 0);
            for _ in 0..40 {
                run(client, &mut draws, &mut txn);
            }
        }
        super::sides::settle(&server, &mut background, "products", "reviews");
        assert_exact(&mut background, &format!("seed {seed}"));
        let none = DocBuf::new();
        assert_eq!(
            all(&mut foreground, "products", &none),
            all(&mut background, "products", &none)
        );
    }
}

/// Writers at once, and a reader that checks each snapshot that it gets.
#[test]
fn every_snapshot_beside_concurrent_writers_is_exact() {
    let (server, mut client) = shop();
    for id in PRODUCTS {
        client.works(insert("products", &doc! { "_id": id }));
    }
    client.works(insert("reviews", &Draws(Generator::new(1)).review(0)));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let mut client = server.client(10 + writer);
                scope.spawn(move || {
                    let mut draws = Draws(Generator::new(500 + writer));
                    for _ in 0..40 {
                        client.run(draws.command());
                    }
                })
            })
            .collect();
        let reader = scope.spawn(|| {
            let mut client = server.client(3);
            let mut looks = 0_i64;
            while looks < 5 || !done.load(Ordering::Relaxed) {
                looks += 1;
                let (products, reviews) = snapshot(&mut client, looks);
                assert_same(&products, &reviews, "a snapshot");
            }
        });
        for writer in writers {
            writer.join().unwrap();
        }
        done.store(true, Ordering::Relaxed);
        reader.join().unwrap();
    });
    assert_exact(&mut client, "at the end");
    assert_no_drift(&mut client);
}

/// Reads both collections in one transaction.
fn snapshot(client: &mut Client, number: i64) -> (Vec<DocBuf>, Vec<DocBuf>) {
    let mut more = within(DocBuf::new(), (9, number), true);
    more.append("readConcern", &doc! { "level": "snapshot" });
    let products = all(client, "products", &more);
    let reviews = all(client, "reviews", &within(DocBuf::new(), (9, number), false));
    client.works(within(commit(), (9, number), false));
    (products, reviews)
}

/// After a kill of the process or a power cut at any write, the values are those of the children that
/// are left.
#[test]
fn crashes_leave_every_value_exact() {
    for seed in seeds(4) {
        let mut disk = SimulatedDisk::new(Faults::none(seed));
        let open = |disk: &SimulatedDisk| {
            Server::open(disk.open().unwrap(), replica_set(), &[], Arc::new(NoLog))
        };
        declare(&mut open(&disk).client(1));
        let (mut draws, mut txn) = (Draws(Generator::new(seed + 900)), 0);
        for round in 0..4 {
            let server = open(&disk);
            let mut client = server.client(1);
            assert_exact(&mut client, &format!("seed {seed}, round {round}"));
            for _ in 0..10 {
                if draws.0.one_in(2) {
                    run(&mut client, &mut draws, &mut txn);
                    continue;
                }
                let mut command = draws.command();
                command.append("writeConcern", &doc! { "w": 1 });
                client.run(command);
            }
            drop((client, server));
            let how = [Crash::Process, Crash::Power, Crash::TornTail];
            disk.crash(how[draws.0.below(3) as usize]);
        }
        let server = open(&disk);
        let mut client = server.client(1);
        assert_exact(&mut client, &format!("seed {seed}, at the end"));
        assert_no_drift(&mut client);
    }
}
