//! What goes wrong elsewhere: one test for each fault.

use super::oracle::assert_exact;
use super::{assert_no_drift, declare, delete, insert, product, review, shop, update};
use crate::transactions::{commit, within};
use crate::{Server, at, code, number, replica_set};
use quire_commands::log::NoLog;
use quire_document::{DocBuf, doc};
use quire_storage::simulated::{Crash, Faults, SimulatedDisk};
use std::sync::Arc;

/// A database kept the group after its last row was deleted, with the old maximum.
#[test]
fn the_last_child_of_a_group_is_deleted() {
    let (_server, mut client) = shop();
    client.works(insert("products", &doc! { "_id": "a" }));
    client.works(insert("reviews", &review(1, "a", 4, 1)));
    assert_eq!(number(&product(&mut client, "a"), "best"), Some(4));
    client.works(delete("reviews", &doc! { "_id": 1 }));
    let empty = product(&mut client, "a");
    assert!(empty.get("best").is_none() && empty.get("avg").is_none());
    assert_eq!(number(&empty, "count"), Some(0));
    assert_eq!(at(&empty, "ids").unwrap().as_array().unwrap().count(), 0);
    assert_exact(&mut client, "an empty group");
}

/// Hooks on `save` did not see findAndModify.
#[test]
fn find_and_modify_is_a_write_like_any() {
    let (_server, mut client) = shop();
    client.works(insert("products", &doc! { "_id": "a" }));
    client.works(insert("reviews", &review(1, "a", 4, 1)));
    let change = doc! { "$set": { "stars": 2 } };
    client.works(doc! {
        "findAndModify": "reviews", "query": { "_id": 1 }, "update": &change, "$db": "test"
    });
    assert_eq!(number(&product(&mut client, "a"), "sum"), Some(2));
    client.works(doc! {
        "findAndModify": "reviews", "query": { "_id": 1 }, "remove": true, "$db": "test"
    });
    assert_eq!(number(&product(&mut client, "a"), "sum"), Some(0));
}

/// Counter caches went to -1 when an increment and a decrement ran at once.
#[test]
fn plus_and_minus_at_once_leave_what_is_there() {
    let (server, mut client) = shop();
    client.works(insert("products", &doc! { "_id": "a" }));
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let mut client = server.client(20 + writer);
            scope.spawn(move || {
                for round in 0..15 {
                    let id = writer as i32 * 100 + round;
                    client.works(insert("reviews", &review(id, "a", 1, round)));
                    if round % 3 > 0 {
                        client.works(delete("reviews", &doc! { "_id": id }));
                    }
                }
            });
        }
    });
    assert_eq!(number(&product(&mut client, "a"), "count"), Some(20));
    assert_exact(&mut client, "after all");
}

/// A recomputation beside a commit lost the commit's difference.
#[test]
fn a_declaration_beside_writers_loses_nothing() {
    let server = Server::new();
    let mut client = server.client(1);
    for id in ["a", "b"] {
        client.works(insert("products", &doc! { "_id": id }));
    }
    for id in 0..40 {
        client.works(insert("reviews", &review(id, "a", 2, id)));
    }
    std::thread::scope(|scope| {
        for writer in 0..3 {
            let mut client = server.client(20 + writer);
            scope.spawn(move || {
                for round in 0..20 {
                    let id = 1000 + writer as i32 * 100 + round;
                    let to = if round % 2 == 0 { "a" } else { "b" };
                    client.works(insert("reviews", &review(id, to, 3, round)));
                    client.works(delete("reviews", &doc! { "_id": (round * 2) }));
                }
            });
        }
        declare(&mut client);
    });
    assert_exact(&mut client, "after the declaration");
    assert_no_drift(&mut client);
}

/// A view that was maintained and dropped in one transaction crashed.
#[test]
fn the_pattern_and_the_collections_can_be_dropped_while_they_are_kept() {
    let (server, mut client) = shop();
    client.works(insert("products", &doc! { "_id": "a" }));
    std::thread::scope(|scope| {
        for writer in 0..2 {
            let mut client = server.client(20 + writer);
            scope.spawn(move || {
                for round in 0..20 {
                    client.run(insert("reviews", &review(writer as i32 * 100 + round, "a", 3, 1)));
                }
            });
        }
        let remove = doc! { "name": "reviews", "remove": true };
        client.works(doc! { "collMod": "products", "patterns": [&remove], "$db": "test" });
        client.works(doc! { "drop": "products", "$db": "test" });
    });
    client.works(insert("products", &doc! { "_id": "a" }));
    declare(&mut client);
    assert_exact(&mut client, "declared anew");
    assert_eq!(number(&product(&mut client, "a"), "count"), Some(40));
}

#[test]
fn a_child_that_moves_changes_both_parents() {
    let (_server, mut client) = shop();
    for id in ["a", "b"] {
        client.works(insert("products", &doc! { "_id": id }));
    }
    client.works(insert("reviews", &review(1, "a", 5, 1)));
    client.works(insert("reviews", &review(2, "a", 3, 2)));
    client.works(update("reviews", &doc! { "_id": 1 }, &doc! { "$set": { "product": "b" } }));
    assert_eq!(number(&product(&mut client, "a"), "sum"), Some(3));
    assert_eq!(number(&product(&mut client, "b"), "sum"), Some(5));
    assert_exact(&mut client, "moved");
}

#[test]
fn a_parent_that_comes_after_its_children_is_complete_at_once() {
    let (_server, mut client) = shop();
    for id in 0..30 {
        client.works(insert("reviews", &review(id, "late", 1, id)));
    }
    client.works(insert("products", &doc! { "_id": "late", "count": 7 }));
    assert_eq!(number(&product(&mut client, "late"), "count"), Some(30));
    // Also after it was deleted, and when an upsert makes it.
    client.works(delete("products", &doc! { "_id": "late" }));
    client.works(delete("reviews", &doc! { "_id": 3 }));
    let upsert = doc! { "q": { "_id": "late" }, "u": { "$set": { "x": 1 } }, "upsert": true };
    client.works(doc! { "update": "products", "updates": [&upsert], "$db": "test" });
    assert_eq!(number(&product(&mut client, "late"), "count"), Some(29));
    assert_exact(&mut client, "late parents");
}

#[test]
fn an_aborted_transaction_leaves_nothing() {
    let (_server, mut client) = shop();
    client.works(insert("products", &doc! { "_id": "a" }));
    client.works(insert("reviews", &review(1, "a", 5, 1)));
    client.works(within(insert("reviews", &review(2, "a", 1, 2)), (7, 1), true));
    let inside = client.works(within(
        doc! { "find": "products", "filter": { "_id": "a" }, "$db": "test" },
        (7, 1),
        false,
    ));
    assert_eq!(number(&inside, "cursor.firstBatch.0.count"), Some(2), "its own writes");
    assert_eq!(number(&product(&mut client, "a"), "count"), Some(1));
    client.works(within(doc! { "abortTransaction": 1, "$db": "admin" }, (7, 1), false));
    assert_exact(&mut client, "aborted");
    client.works(within(insert("reviews", &review(3, "a", 1, 2)), (7, 2), true));
    client.works(within(commit(), (7, 2), false));
    assert_exact(&mut client, "committed");
}

/// A retried statement must not count twice.
#[test]
fn a_retry_does_not_count_again() {
    let (_server, mut client) = shop();
    client.works(insert("products", &doc! { "_id": "a" }));
    let mut retried = within(insert("reviews", &review(1, "a", 5, 1)), (7, 1), false);
    retried = DocBuf::build(|writer| {
        for (name, value) in retried.as_doc().fields().filter(|(name, _)| *name != "autocommit") {
            writer.append(name, value);
        }
    });
    client.works(retried.clone());
    client.works(retried);
    assert_eq!(number(&product(&mut client, "a"), "count"), Some(1));
}

#[test]
fn clients_do_not_write_derived_paths() {
    let (_server, mut client) = shop();
    client.works(insert("products", &doc! { "_id": "a" }));
    client.works(insert("reviews", &review(1, "a", 5, 1)));
    client.works(update(
        "products",
        &doc! { "_id": "a" },
        &doc! { "$set": { "count": 9, "x": 1 } },
    ));
    client.works(update("products", &doc! { "_id": "a" }, &doc! { "whole": "document" }));
    assert_exact(&mut client, "ignored");
    let mut strict = super::declared();
    strict.append("onClientWrite", "reject");
    client.works(doc! { "collMod": "products", "patterns": [&strict], "$db": "test" });
    for written in [doc! { "$set": { "count": 9 } }, doc! { "$unset": { "count": 1 } }] {
        let refused = client.run(update("products", &doc! { "_id": "a" }, &written));
        assert_eq!(number(&refused, "writeErrors.0.code"), Some(121), "{refused:?}");
    }
    client.works(update("products", &doc! { "_id": "a" }, &doc! { "$set": { "y": 1 } }));
    assert_exact(&mut client, "rejected");
}

/// A parent that a validator refuses makes the write of the child fail, which names the pattern.
#[test]
fn a_derived_write_that_is_refused_refuses_its_cause() {
    let (_server, mut client) = shop();
    client.works(insert("products", &doc! { "_id": "a" }));
    let validator = doc! { "count": { "$lt": 2 } };
    client.works(doc! { "collMod": "products", "validator": &validator, "$db": "test" });
    client.works(insert("reviews", &review(1, "a", 5, 1)));
    let refused = client.run(insert("reviews", &review(2, "a", 5, 1)));
    assert_eq!(number(&refused, "writeErrors.0.code"), Some(121), "{refused:?}");
    assert!(format!("{refused:?}").contains("reviews"), "{refused:?}");
    assert_exact(&mut client, "refused");
}

/// After a power cut at any write the derived values are those of the children that are left.
#[test]
fn power_cuts_leave_no_drift() {
    for cut in [3, 7, 12, 20, 33] {
        let mut disk = SimulatedDisk::new(Faults::none(cut));
        let open = |disk: &SimulatedDisk| {
            Server::open(disk.open().unwrap(), replica_set(), &[], Arc::new(NoLog))
        };
        {
            let server = open(&disk);
            let mut client = server.client(1);
            declare(&mut client);
            client.works(insert("products", &doc! { "_id": "a" }));
            for id in 0..cut as i32 {
                let mut command = insert("reviews", &review(id, "a", id % 6, id));
                command.append("writeConcern", &doc! { "w": 1, "j": (id % 3 == 0) });
                client.works(command);
            }
        }
        disk.crash(Crash::Power);
        let server = open(&disk);
        let mut client = server.client(1);
        assert_exact(&mut client, &format!("a cut after {cut} writes"));
        assert_no_drift(&mut client);
        assert_eq!(code(&client.run(insert("reviews", &review(900, "a", 1, 1)))), 0);
        assert_exact(&mut client, "a write after the cut");
    }
}
