//! Counters: numbers that many clients increment, and whose increments of one document commit together.

use crate::change_streams::open;
use crate::transactions::{self, within};
use crate::{Client, Server, at, code, number, text};
use quire_document::{DocBuf, Value, doc};
use quire_storage::{Faults, SimulatedDisk};

fn counter() -> DocBuf {
    doc! { "name": "views", "type": "counter", "path": "stats.views", "merge": true }
}

fn pages(pattern: &DocBuf) -> (Server, Client) {
    let server = Server::new();
    let mut client = server.client(1);
    client.works(doc! { "create": "pages", "patterns": [pattern], "$db": "d" });
    client.works(insert(&doc! { "_id": "home", "stats": { "views": 0 } }));
    (server, client)
}

fn insert(document: &DocBuf) -> DocBuf {
    doc! { "insert": "pages", "documents": [document], "$db": "d" }
}

fn update(u: Value<'_>) -> DocBuf {
    doc! { "update": "pages", "updates": [{ "q": { "_id": "home" }, "u": u }], "$db": "d" }
}

fn write(client: &mut Client, u: &DocBuf) -> i64 {
    let reply = client.run(update(Value::Document(u.as_doc())));
    number(&reply, "writeErrors.0.code").unwrap_or(0)
}

fn home(client: &mut Client) -> DocBuf {
    let found = client.works(doc! { "find": "pages", "filter": { "_id": "home" }, "$db": "d" });
    at(&found, "cursor.firstBatch.0").unwrap().as_document().unwrap().to_owned()
}

fn views(client: &mut Client) -> Option<i64> {
    number(&home(client), "stats.views")
}

fn validate(client: &mut Client) -> DocBuf {
    client.works(doc! { "validate": "pages", "patterns": true, "$db": "d" })
}

/// A mapper that sends a whole document back undoes the increments of others.
#[test]
fn a_counter_changes_by_what_it_is_and_by_nothing_else() {
    for on_client_write in ["ignore", "reject"] {
        let mut pattern = counter();
        pattern.append("onClientWrite", on_client_write);
        let (_server, mut client) = pages(&pattern);
        let expected = if on_client_write == "reject" { 121 } else { 0 };
        for (change, after) in [
            (doc! { "$inc": { "stats.views": 5 } }, 5),
            (doc! { "$mul": { "stats.views": 3 } }, 15),
            (doc! { "$max": { "stats.views": 20 } }, 20),
            (doc! { "$min": { "stats.views": 10 } }, 10),
        ] {
            assert_eq!(write(&mut client, &change), 0);
            assert_eq!(views(&mut client), Some(after), "{change:?}");
        }
        for change in [
            doc! { "$set": { "stats.views": 0 } },
            doc! { "$set": { "stats": 7 } },
            doc! { "stats": { "views": 1 }, "title": "old" },
            doc! { "$unset": { "stats.views": 1 } },
        ] {
            assert_eq!(write(&mut client, &change), expected, "{change:?}");
            assert_eq!(views(&mut client), Some(10), "{change:?}");
        }
        // What leaves the number alone is an ordinary write, and so is one without it.
        for change in [
            doc! { "stats": { "views": 10 }, "title": "new" },
            doc! { "title": "newer" },
            doc! { "$unset": { "stats": 1 } },
        ] {
            assert_eq!(write(&mut client, &change), 0, "{change:?}");
            assert_eq!(views(&mut client), Some(10), "{change:?}");
        }
        assert_eq!(text(&home(&mut client), "title"), Some("newer"));
        assert_eq!(number(&validate(&mut client), "patterns.views.drift"), Some(0));
    }
}

#[test]
fn a_counter_is_a_number() {
    let (_server, mut client) = pages(&counter());
    let refused = client.run(insert(&doc! { "_id": 2, "stats": { "views": "many" } }));
    assert_eq!(number(&refused, "writeErrors.0.code"), Some(121));
    assert_eq!(text(&refused, "writeErrors.0.errInfo.pattern"), Some("views"));
    assert_eq!(
        number(&client.run(insert(&doc! { "_id": 2, "stats": 7 })), "writeErrors.0.code"),
        Some(121)
    );
    // The first number is the client's; a document without one is counted from its first increment.
    client.works(insert(&doc! { "_id": 3, "stats": { "views": 2.5 } }));
    client.works(insert(&doc! { "_id": 4 }));
    let replaced = doc! { "q": { "_id": 4 }, "u": { "$set": { "stats.views": 3 } } };
    client.works(doc! { "update": "pages", "updates": [&replaced], "$db": "d" });
    assert_eq!(number(&validate(&mut client), "patterns.views.drift"), Some(0));
    // A document that was there before says why the pattern has stopped.
    client.works(doc! { "insert": "old", "documents": [{ "_id": 1, "n": "x" }], "$db": "d" });
    let pattern = doc! { "name": "n", "type": "counter", "path": "n" };
    let stopped = client.run(doc! { "collMod": "old", "patterns": [&pattern], "$db": "d" });
    assert_eq!(code(&stopped), 121);
    let message = text(&stopped, "errmsg").unwrap();
    assert!(message.contains("_id 1") && message.contains("a counter is a number"), "{message}");
    let reply = client.works(doc! { "validate": "old", "patterns": true, "$db": "d" });
    assert_eq!(number(&reply, "patterns.n.drift"), Some(1));
    assert!(text(&reply, "errors.0").unwrap().contains("a counter is a number"));
    client.works(
        doc! { "update": "old", "updates": [{ "q": {}, "u": { "$set": { "n": 1 } } }], "$db": "d" },
    );
    client.works(doc! { "collMod": "old", "patterns": [&pattern], "$db": "d" });
}

#[test]
fn no_increment_is_lost_beside_others() {
    const CLIENTS: u8 = 12;
    const ROUNDS: u8 = 20;
    let (server, mut client) = pages(&counter());
    client.works(insert(&doc! { "_id": "numbers", "stats": { "views": 0 } }));
    let numbers: Vec<i64> = std::thread::scope(|scope| {
        let work = |of: u8| {
            let mut client = server.client(20 + u64::from(of));
            scope.spawn(move || {
                let mut numbers = Vec::new();
                for round in 0..ROUNDS {
                    let mut change =
                        update(Value::Document(doc! { "$inc": { "stats.views": 1 } }.as_doc()));
                    if of.is_multiple_of(2) {
                        // As a driver sends it, with a number for its retry.
                        let id = quire_document::Binary { subtype: 4, bytes: &[of; 16] };
                        change.append("lsid", &doc! { "id": Value::Binary(id) });
                        change.append("txnNumber", i64::from(round));
                    }
                    assert_eq!(number(&client.works(change), "nModified"), Some(1));
                    let next = client.works(doc! {
                        "findAndModify": "pages", "query": { "_id": "numbers" }, "new": true,
                        "update": { "$inc": { "stats.views": 1 } }, "$db": "d"
                    });
                    numbers.push(number(&next, "value.stats.views").unwrap());
                    // One that fails beside them fails alone.
                    if round % 5 == 0 {
                        let bad = doc! { "$inc": { "stats.views": "x" } };
                        assert_eq!(write(&mut client, &bad), 14);
                    }
                }
                numbers
            })
        };
        let workers: Vec<_> = (0..CLIENTS).map(work).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    assert_eq!(views(&mut client), Some(i64::from(CLIENTS) * i64::from(ROUNDS)));
    // Each client got numbers that no other client has got.
    let mut sorted = numbers;
    sorted.sort_unstable();
    assert_eq!(sorted, (1..=i64::from(CLIENTS) * i64::from(ROUNDS)).collect::<Vec<_>>());
    assert_eq!(number(&validate(&mut client), "patterns.views.drift"), Some(0));
}

/// Increments that commit together are one event each, in the order of their values.
#[test]
fn each_increment_is_one_event_of_a_change_stream() {
    const CLIENTS: u64 = 8;
    const ROUNDS: i64 = 10;
    let server = open(&SimulatedDisk::new(Faults::none(1)));
    let mut client = server.client(1);
    client.works(doc! { "create": "pages", "patterns": [&counter()], "$db": "d" });
    client.works(insert(&doc! { "_id": "home", "stats": { "views": 0 } }));
    let opened = client.works(doc! {
        "aggregate": "pages", "pipeline": [{ "$changeStream": {} }], "cursor": {}, "$db": "d"
    });
    let cursor = number(&opened, "cursor.id").unwrap();
    std::thread::scope(|scope| {
        for of in 0..CLIENTS {
            let mut client = server.client(20 + of);
            scope.spawn(move || {
                for _ in 0..ROUNDS {
                    let change = doc! { "$inc": { "stats.views": 1 } };
                    assert_eq!(write(&mut client, &change), 0);
                }
            });
        }
    });
    let total = CLIENTS as i64 * ROUNDS;
    assert_eq!(views(&mut client), Some(total));
    let (mut seen, mut empty) = (Vec::new(), 0);
    // Nothing follows the last one.
    while (seen.len() as i64) < total && empty < 50 || empty == 0 {
        let more = doc! { "getMore": cursor, "collection": "pages", "maxTimeMS": 1, "$db": "d" };
        let reply = client.works(more);
        let batch = at(&reply, "cursor.nextBatch").unwrap().as_array().unwrap();
        empty += usize::from(batch.is_empty());
        for event in batch.iter() {
            let event = event.as_document().unwrap().to_owned();
            assert_eq!(text(&event, "operationType"), Some("update"));
            let fields = at(&event, "updateDescription.updatedFields").unwrap();
            let value = fields.as_document().unwrap().get("stats.views").unwrap();
            seen.push(value.exact_i64().unwrap());
        }
    }
    assert_eq!(seen, (1..=total).collect::<Vec<_>>());
}

#[test]
fn a_repeated_increment_is_counted_once() {
    let (_server, mut client) = pages(&counter());
    let id = quire_document::Binary { subtype: 4, bytes: &[7; 16] };
    let mut change = update(Value::Document(doc! { "$inc": { "stats.views": 1 } }.as_doc()));
    change.append("lsid", &doc! { "id": Value::Binary(id) });
    change.append("txnNumber", 1_i64);
    client.works(change.clone());
    let again = client.works(change);
    assert_eq!((number(&again, "n"), number(&again, "retriedStmtIds.0")), (Some(1), Some(0)));
    assert_eq!(views(&mut client), Some(1));
}

#[test]
fn increments_in_a_transaction_are_those_of_the_transaction() {
    let (_server, mut client) = pages(&counter());
    let change = update(Value::Document(doc! { "$inc": { "stats.views": 3 } }.as_doc()));
    client.works(within(change.clone(), (1, 1), true));
    assert_eq!(views(&mut client), Some(0));
    client.works(within(transactions::commit(), (1, 1), false));
    assert_eq!(views(&mut client), Some(3));
    client.works(within(change, (1, 2), true));
    client.works(within(doc! { "abortTransaction": 1, "$db": "admin" }, (1, 2), false));
    assert_eq!(views(&mut client), Some(3));
    // An upsert that finds nothing inserts the first number.
    let upsert =
        doc! { "q": { "_id": "new" }, "u": { "$inc": { "stats.views": 2 } }, "upsert": true };
    let reply = client.works(doc! { "update": "pages", "updates": [&upsert], "$db": "d" });
    assert_eq!(text(&reply, "upserted.0._id"), Some("new"));
}

#[test]
fn a_validator_refuses_the_increment_that_breaks_it() {
    let (server, mut client) = pages(&counter());
    client.works(doc! {
        "collMod": "pages", "validator": { "stats.views": { "$lte": 10 } }, "$db": "d"
    });
    let refused: usize = std::thread::scope(|scope| {
        let work = |of: u64| {
            let mut client = server.client(20 + of);
            scope.spawn(move || {
                let change = doc! { "$inc": { "stats.views": 1 } };
                (0..5).filter(|_| write(&mut client, &change) == 121).count()
            })
        };
        let workers: Vec<_> = (0..6).map(work).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).sum()
    });
    assert_eq!((views(&mut client), refused), (Some(10), 20));
}
