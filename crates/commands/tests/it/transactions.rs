//! Transactions: what survives a restart, what releases locks, and that no client sees half of one.

use crate::{Client, Server, at, code, number};
use quire_document::{Binary, DocBuf, Value, doc};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const ACCOUNTS: i32 = 4;

fn lsid(session: u8) -> DocBuf {
    let bytes = [session; 16];
    doc! { "id": Value::Binary(Binary { subtype: 4, bytes: &bytes }) }
}

/// Returns the command as a statement of a session's transaction.
pub(crate) fn within(mut command: DocBuf, (session, txn_number): (u8, i64), start: bool) -> DocBuf {
    command.append("lsid", &lsid(session)).append("txnNumber", txn_number);
    command.append("autocommit", false);
    if start {
        command.append("startTransaction", true);
    }
    command
}

fn insert(id: i32) -> DocBuf {
    doc! { "insert": "t", "documents": [{ "_id": id, "a": id }], "$db": "test" }
}

pub(crate) fn commit() -> DocBuf {
    doc! { "commitTransaction": 1, "$db": "admin" }
}

fn ids(client: &mut Client) -> usize {
    let found = client.works(doc! { "find": "t", "$db": "test" });
    at(&found, "cursor.firstBatch").unwrap().as_array().unwrap().count()
}

#[test]
fn a_commit_is_repeated_after_a_restart_and_is_done_once() {
    let server = Server::new();
    let mut client = server.client(1);
    client.works(within(insert(1), (1, 5), true));
    client.works(within(commit(), (1, 5), false));
    let restarted = server.reopened();
    let mut client = restarted.client(1);
    client.works(within(commit(), (1, 5), false));
    assert_eq!(code(&client.run(within(insert(2), (1, 5), false))), 256);
    // A retryable write cannot use the number, and an older transaction cannot begin.
    let mut plain = insert(3);
    plain.append("lsid", &lsid(1)).append("txnNumber", 5i64);
    assert_eq!(code(&client.run(plain)), 217);
    assert_eq!(code(&client.run(within(insert(4), (1, 4), true))), 225);
    assert_eq!(ids(&mut client), 1);
}

#[test]
fn an_open_transaction_is_gone_after_a_restart() {
    let server = Server::new();
    let mut client = server.client(1);
    client.works(doc! { "create": "t", "$db": "test" });
    client.works(within(insert(1), (1, 1), true));
    let restarted = server.reopened();
    let mut client = restarted.client(1);
    let reply = client.run(within(commit(), (1, 1), false));
    assert_eq!(code(&reply), 251);
    assert_eq!(ids(&mut client), 0);
}

/// The time was refused inside transactions.
#[test]
fn a_transaction_reads_at_the_time_that_it_names() {
    let server = Server::new();
    let mut client = server.client(1);
    let first = client.works(insert(1));
    let time = first.get("operationTime").unwrap();
    client.works(insert(2));
    let find = doc! { "find": "t", "$db": "test" };
    let begin = |key| {
        let concern = doc! { "level": "snapshot", "atClusterTime": time };
        let mut command = within(find.clone(), key, true);
        command.append("readConcern", &concern);
        command
    };
    let count =
        |reply: &DocBuf| at(reply, "cursor.firstBatch").unwrap().as_array().unwrap().count();
    assert_eq!(count(&client.works(begin((1, 1)))), 1);
    client.works(within(insert(3), (1, 1), false));
    assert_eq!(count(&client.works(within(find.clone(), (1, 1), false))), 2);
    client.works(within(commit(), (1, 1), false));
    assert_eq!(ids(&mut client), 3);
    // A write after that time is a conflict.
    client.works(begin((1, 2)));
    let change = doc! { "update": "t", "updates": [{ "q": { "_id": 1 }, "u": { "$set": { "a": 9 } } }], "$db": "test" };
    client.works(change.clone());
    assert_eq!(code(&client.run(within(change, (1, 2), false))), 112);
    assert_eq!(code(&client.run(within(insert(4), (1, 2), false))), 251, "it is aborted");
}

#[test]
fn current_op_shows_idle_transactions() {
    let server = Server::new();
    let (mut client, mut other) = (server.client(1), server.client(2));
    client.works(doc! { "create": "t", "$db": "test" });
    client.works(within(insert(1), (1, 7), true));
    let rows = |client: &mut Client, idle: bool| {
        let stage = doc! { "$currentOp": { "idleSessions": idle } };
        let pipeline = quire_document::array![&stage];
        let reply = client.works(doc! {
            "aggregate": 1, "pipeline": &pipeline, "cursor": {}, "$db": "admin",
        });
        let batch = at(&reply, "cursor.firstBatch").unwrap().as_array().unwrap();
        let idle = |row: &Value<'_>| {
            let kind = row.as_document().and_then(|row| row.get("type")?.as_str());
            kind == Some("idleSession")
        };
        let row = batch.iter().find(|row| idle(row)).and_then(|row| row.as_document());
        row.map(|row| row.to_owned())
    };
    assert!(rows(&mut other, false).is_none());
    let row = rows(&mut other, true).expect("the transaction is shown");
    assert_eq!(number(&row, "transaction.parameters.txnNumber"), Some(7));
    assert_eq!(row.get("active").and_then(|active| active.as_bool()), Some(false));
    assert!(
        number(&row, "transaction.timeOpenMicros") >= number(&row, "transaction.timeActiveMicros")
    );
    assert!(at(&row, "transaction.readTimestamp").is_some());
    client.works(within(commit(), (1, 7), false));
    assert!(rows(&mut other, true).is_none());
}

/// However a transaction ends, its locks are released.
#[test]
fn ended_sessions_and_old_transactions_release_their_documents() {
    let server = Server::new();
    let mut client = server.client(1);
    client.works(insert(1));
    let change = doc! { "update": "t", "updates": [{ "q": { "_id": 1 }, "u": { "$inc": { "a": 1 } } }], "$db": "test" };
    for (session, ends) in [(1, "endSessions"), (2, "killSessions"), (3, "")] {
        client.works(within(change.clone(), (session, 1), true));
        match ends {
            "" => server.0.abort_old_transactions(Duration::ZERO),
            command => {
                let mut end = DocBuf::new();
                end.append(command, &quire_document::array![&lsid(session)]);
                end.append("$db", "admin");
                client.works(end);
            }
        }
        client.works(change.clone());
        assert_eq!(code(&client.run(within(commit(), (session, 1), false))), 251);
    }
    let status = client.works(doc! { "serverStatus": 1, "$db": "admin" });
    assert_eq!(number(&status, "transactions.currentOpen"), Some(0));
    assert_eq!(number(&status, "transactions.totalAborted"), Some(3));
}

/// Every plan sees the transaction's own writes, and no other uncommitted ones.
#[test]
fn plans_inside_agree_with_each_other() {
    let server = Server::new();
    let mut client = server.client(1);
    let index = doc! { "createIndexes": "t", "indexes": [{ "key": { "a": 1 }, "name": "a_1" }], "$db": "test" };
    client.works(index);
    (0..20).for_each(|id| drop(client.works(insert(id))));
    client.works(within(insert(100), (1, 1), true));
    let change = doc! { "update": "t", "updates": [{ "q": { "a": { "$lt": 5 } }, "u": { "$inc": { "a": 50 } }, "multi": true }], "$db": "test" };
    client.works(within(change, (1, 1), false));
    let remove = doc! { "delete": "t", "deletes": [{ "q": { "a": { "$gte": 18, "$lt": 20 } }, "limit": 0 }], "$db": "test" };
    client.works(within(remove, (1, 1), false));
    client.works(insert(200));
    for hint in [doc! { "$natural": 1 }, doc! { "a": 1 }, doc! { "_id": 1 }] {
        let find =
            doc! { "find": "t", "filter": { "a": { "$gte": 0 } }, "hint": &hint, "$db": "test" };
        let found = client.works(within(find, (1, 1), false));
        let found = at(&found, "cursor.firstBatch").unwrap().as_array().unwrap().count();
        assert_eq!(found, 19, "{hint:?}");
    }
    let group = doc! { "aggregate": "t", "pipeline": [{ "$group": { "_id": Value::Null, "n": { "$sum": 1 }, "top": { "$max": "$a" } } }], "cursor": {}, "$db": "test" };
    let found = client.works(within(group, (1, 1), false));
    assert_eq!(number(&found, "cursor.firstBatch.0.n"), Some(19));
    assert_eq!(number(&found, "cursor.firstBatch.0.top"), Some(100));
    assert_eq!(ids(&mut client), 21);
}

fn transfer(client: &mut Client, key: (u8, i64), from: i32, to: i32) -> bool {
    for (account, amount, start) in [(from, -1, true), (to, 1, false)] {
        let change = doc! { "update": "bank", "updates": [{ "q": { "_id": account }, "u": { "$inc": { "sum": amount } } }], "$db": "test" };
        match code(&client.run(within(change, key, start))) {
            0 => {}
            112 => return false,
            other => panic!("a transfer ended in {other}"),
        }
    }
    client.works(within(commit(), key, false));
    true
}

fn total(client: &mut Client, key: Option<(u8, i64)>) -> i64 {
    let mut sum = 0;
    for account in 0..ACCOUNTS {
        let find = doc! { "find": "bank", "filter": { "_id": account }, "$db": "test" };
        let find = match key {
            Some(key) => within(find, key, account == 0),
            None => find,
        };
        sum += number(&client.works(find), "cursor.firstBatch.0.sum").unwrap();
    }
    sum
}

/// Money is only transferred: the sum that a transaction reads, in several statements, is constant.
#[test]
fn the_bank_keeps_its_sum() {
    let server = Server::new();
    let mut client = server.client(1);
    for account in 0..ACCOUNTS {
        client.works(
            doc! { "insert": "bank", "documents": [{ "_id": account, "sum": 100 }], "$db": "test" },
        );
    }
    let done = AtomicBool::new(false);
    let moved: usize = std::thread::scope(|scope| {
        let movers: Vec<_> = (0..3u8)
            .map(|mover| {
                let server = &server;
                scope.spawn(move || {
                    let mut client = server.client(u64::from(mover) + 2);
                    let pairs = |round: i64| {
                        let from = ((round + i64::from(mover)) % i64::from(ACCOUNTS)) as i32;
                        (from, (from + 1 + (round % 3) as i32) % ACCOUNTS)
                    };
                    (0..150)
                        .filter(|round| {
                            let (from, to) = pairs(*round);
                            transfer(&mut client, (mover + 10, *round), from, to)
                        })
                        .count()
                })
            })
            .collect();
        let reader = scope.spawn(|| {
            let mut client = server.client(9);
            let mut round = 0;
            while !done.load(Ordering::Relaxed) {
                assert_eq!(total(&mut client, Some((20, round))), 400);
                round += 1;
            }
        });
        let moved = movers.into_iter().map(|mover| mover.join().unwrap()).sum();
        done.store(true, Ordering::Relaxed);
        reader.join().unwrap();
        moved
    });
    assert!(moved > 0);
    assert_eq!(total(&mut client, None), 400);
}

/// Writes read the collation of a collection from the published catalog, which does not contain the
/// collections that the transaction itself has created.
#[test]
fn a_write_uses_the_collation_of_a_collection_created_in_its_transaction() {
    let server = Server::new();
    let mut client = server.client(1);
    let create =
        doc! { "create": "c", "collation": { "locale": "en", "strength": 2 }, "$db": "test" };
    client.works(within(create, (1, 1), true));
    let insert = doc! { "insert": "c", "documents": [{ "_id": 1, "s": "Ann" }, { "_id": 2, "s": "Bob" }], "$db": "test" };
    client.works(within(insert, (1, 1), false));
    let update = doc! { "update": "c", "updates": [{ "q": { "s": "ann" }, "u": { "$set": { "a": 1 } } }], "$db": "test" };
    let updated = client.works(within(update, (1, 1), false));
    assert_eq!(number(&updated, "nModified"), Some(1));
    let remove = doc! { "findAndModify": "c", "query": { "s": "BOB" }, "remove": true, "fields": { "same": { "$eq": ["$s", "bOB"] } }, "$db": "test" };
    let removed = client.works(within(remove, (1, 1), false));
    let same = at(&removed, "value.same");
    assert!(matches!(same, Some(Value::Bool(true))), "{removed:?}");
}

/// A drop waited for a moment when no transaction used its collection, which never came while
/// transactions overlapped.
#[test]
fn a_change_of_the_catalog_runs_under_overlapping_transactions() {
    let server = Server::new();
    let mut client = server.client(1);
    client.works(insert(0));
    client.works(within(insert(1), (1, 1), true));
    std::thread::scope(|scope| {
        let drops = scope.spawn(|| server.client(2).works(doc! { "drop": "t", "$db": "test" }));
        // Until the drop waits, each new transaction joins; then it is told to retry.
        let mut number = 0;
        let refused = loop {
            number += 1;
            let reply = client.run(within(insert(1000), (2, number), true));
            if code(&reply) != 112 && code(&reply) != 0 {
                break reply;
            }
            client.run(within(doc! { "abortTransaction": 1, "$db": "admin" }, (2, number), false));
        };
        assert_eq!(code(&refused), 24, "{refused:?}");
        let labels = refused.get("errorLabels").and_then(|labels| labels.as_array()).unwrap();
        assert_eq!(
            labels.get(0).and_then(|label| label.as_str()),
            Some("TransientTransactionError")
        );
        assert_eq!(code(&client.run(within(commit(), (2, number), false))), 251);
        // Another collection can be used, and the transaction that the drop waits for can use this
        // one.
        let other = doc! { "insert": "u", "documents": [{ "_id": 1 }], "$db": "test" };
        client.works(within(other, (3, 1), true));
        client.works(within(commit(), (3, 1), false));
        let parameter = "maxTransactionLockRequestTimeoutMillis";
        client.works(doc! { "setParameter": 1, parameter: -1, "$db": "admin" });
        let patient = scope.spawn(|| server.client(3).run(within(insert(7), (5, 1), true)));
        client.works(within(insert(2), (1, 1), false));
        client.works(within(commit(), (1, 1), false));
        assert_eq!(code(&patient.join().unwrap()), 0);
        assert_eq!(crate::number(&drops.join().unwrap(), "nIndexesWas"), Some(1));
    });
    assert_eq!(ids(&mut client), 0);
    client.works(within(insert(1), (4, 1), true));
    client.works(within(commit(), (4, 1), false));
    assert_eq!(ids(&mut client), 1);
}

/// A statement that ran when its transaction expired continued to its end and kept the locks until
/// then.
#[test]
fn the_statement_of_an_expired_transaction_is_stopped() {
    let server = Server::new();
    let mut client = server.client(1);
    insert_many(&mut client);
    let change = doc! { "update": "t", "updates": [{ "q": { "_id": 1 }, "u": { "$inc": { "a": 1 } } }], "$db": "test" };
    client.works(within(change.clone(), (1, 1), true));
    std::thread::scope(|scope| {
        let runs = scope.spawn(|| server.client(2).run(within(long(), (1, 1), false)));
        running(&mut client);
        while !runs.is_finished() {
            server.0.abort_old_transactions(Duration::ZERO);
            std::thread::yield_now();
        }
        let reply = runs.join().unwrap();
        assert!(matches!(code(&reply), 251 | 290), "{reply:?}");
    });
    client.works(change);
    assert_eq!(code(&client.run(within(commit(), (1, 1), false))), 251);
}

/// Inserts 2,000 documents, over which [`long`] takes seconds.
fn insert_many(client: &mut Client) {
    let documents: Vec<DocBuf> = (0..2000).map(|id| doc! { "_id": id, "a": id % 7 }).collect();
    let documents: quire_document::ArrayBuf = documents.iter().collect();
    client.works(doc! { "insert": "t", "documents": &documents, "$db": "test" });
}

/// Returns a read that compares each document with every other.
fn long() -> DocBuf {
    let joined = doc! {
        "$lookup": {
            "from": "t", "let": { "a": "$a" }, "as": "found",
            "pipeline": [{ "$match": { "$expr": { "$gt": [{ "$add": ["$a", "$$a"] }, 100] } } }],
        },
    };
    doc! { "aggregate": "t", "pipeline": [&joined], "cursor": {}, "$db": "test" }
}

/// Returns the row of the statement that runs on the collection, once `currentOp` shows one.
fn running(client: &mut Client) -> DocBuf {
    let in_progress = doc! { "currentOp": 1, "ns": "test.t", "active": true, "$db": "admin" };
    loop {
        let shown = client.works(in_progress.clone());
        let row = at(&shown, "inprog.0").and_then(|row| row.as_document());
        if let Some(row) = row.filter(|row| row.get("opid").is_some()) {
            return row.to_owned();
        }
        std::thread::yield_now();
    }
}

/// Another client sees the statement with its transaction, and stops both.
#[test]
fn kill_op_ends_a_statement_and_its_transaction() {
    let server = Server::new();
    let mut client = server.client(1);
    insert_many(&mut client);
    let change = doc! { "update": "t", "updates": [{ "q": { "_id": 1 }, "u": { "$inc": { "a": 1 } } }], "$db": "test" };
    client.works(within(change.clone(), (1, 7), true));
    std::thread::scope(|scope| {
        let runs = scope.spawn(|| server.client(2).run(within(long(), (1, 7), false)));
        let row = running(&mut client);
        assert_eq!(number(&row, "transaction.parameters.txnNumber"), Some(7), "{row:?}");
        let opid = row.get("opid").unwrap();
        client.works(doc! { "killOp": 1, "op": opid, "$db": "admin" });
        let killed = std::time::Instant::now();
        let reply = runs.join().unwrap();
        println!("ended {:?} after killOp", killed.elapsed());
        assert!(killed.elapsed() < Duration::from_secs(1), "{:?}", killed.elapsed());
        assert_eq!(code(&reply), 11601, "{reply:?}");
    });
    // Its lock is free, and it cannot be committed.
    client.works(change);
    assert_eq!(code(&client.run(within(commit(), (1, 7), false))), 251);
}

/// A scan in a transaction that had deleted the first documents moved the mark at which the scans
/// of all clients begin: other clients missed these documents, also after the abort.
#[test]
fn a_scan_after_a_delete_inside_hides_nothing_from_others() {
    let server = Server::new();
    let mut client = server.client(1);
    (0..5).for_each(|id| drop(client.works(insert(id))));
    let remove = doc! { "delete": "t", "deletes": [{ "q": {}, "limit": 0 }], "$db": "test" };
    client.works(within(remove, (1, 1), true));
    client.works(within(doc! { "find": "t", "$db": "test" }, (1, 1), false));
    assert_eq!(ids(&mut client), 5);
    client.works(within(doc! { "abortTransaction": 1, "$db": "admin" }, (1, 1), false));
    assert_eq!(ids(&mut client), 5);
}

/// Each transaction may have 256 MiB of writes, and nothing bounded the sum of all of them.
#[test]
fn the_writes_of_an_open_transaction_are_counted() {
    let server = Server::new();
    let mut client = server.client(1);
    client.works(doc! { "create": "t", "$db": "test" });
    let text = "x".repeat(10 << 20);
    let large = |id| doc! { "insert": "t", "documents": [{ "_id": id, "t": text.as_str() }], "$db": "test" };
    let before = server.0.memory().used();
    client.works(within(large(1), (1, 1), true));
    client.works(within(large(2), (1, 1), false));
    let held = server.0.memory().used();
    assert!(held > before + (18 << 20), "{before} {held}");
    client.works(within(doc! { "abortTransaction": 1, "$db": "admin" }, (1, 1), false));
    assert!(server.0.memory().used() < held - (18 << 20));
}
