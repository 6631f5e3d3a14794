//! The two sides of a pattern: collections that cannot be one, a pattern that is removed before it is
//! built, repairs beside writers, and the privileges on both.

use super::random::{settle, wrong_copies};
use super::{delete, find, insert, orders, rows, shop, update, with, write_code};
use crate::access::guarded;
use crate::{Client, Server, code, number, text};
use quire_access::Mechanism;
use quire_document::{DocBuf, doc};
use std::sync::atomic::{AtomicBool, Ordering};

fn totals(from: &str) -> DocBuf {
    doc! {
        "name": "totals", "type": "rollup", "from": from, "foreignField": "customerId",
        "set": { "orders": { "$count": {} }, "ids": { "$push": "$_id" } }
    }
}

/// Returns the code and the message of a command that is refused.
fn refused(client: &mut Client, command: DocBuf) -> (i32, String) {
    let reply = client.run(command);
    (code(&reply), text(&reply, "errmsg").unwrap_or_default().to_owned())
}

#[test]
fn collections_that_cannot_be_a_side_are_refused() {
    let (_server, mut client) = shop(&orders());
    for other in [
        doc! { "create": "ring", "capped": true, "size": 4096, "$db": "shop" },
        doc! { "create": "points", "timeseries": { "timeField": "t" }, "$db": "shop" },
        doc! { "create": "view", "viewOn": "customers", "pipeline": [], "$db": "shop" },
    ] {
        client.works(other);
    }
    for (owner, expected, why) in
        [("ring", 72, "capped"), ("points", 72, "time-series"), ("view", 72, "view")]
    {
        let command = doc! { "collMod": owner, "patterns": [&totals("orders")], "$db": "shop" };
        let (found, message) = refused(&mut client, command);
        assert_eq!(found, expected, "{message}");
        assert!(message.contains(why) && message.contains("patterns"), "{message}");
    }
    for (from, why) in [("points", "timeseries"), ("view", "is a view")] {
        for pattern in [totals(from), with(&orders(), doc! { "from": from })] {
            let command = doc! { "create": "owner", "patterns": [&pattern], "$db": "shop" };
            let (found, message) = refused(&mut client, command);
            assert_eq!(found, 166, "{message}");
            assert!(message.contains(why), "{message}");
        }
    }
    // What a pattern reads is there, so nothing else takes its name.
    for later in [
        doc! { "create": "customers", "viewOn": "orders", "pipeline": [], "$db": "shop" },
        doc! { "create": "customers", "timeseries": { "timeField": "t" }, "$db": "shop" },
    ] {
        assert_eq!(code(&client.run(later)), 48);
    }
    for side in ["customers", "orders"] {
        let (found, message) =
            refused(&mut client, doc! { "convertToCapped": side, "size": 4096, "$db": "shop" });
        assert_eq!((found, message.contains("'customer'")), (20, true), "{message}");
    }
}

/// A capped collection may be read: the documents that fall out of it are deleted like any.
#[test]
fn what_falls_out_of_a_capped_collection_is_no_child_any_more() {
    let server = Server::new();
    let mut client = server.client(1);
    client.works(doc! { "create": "log", "capped": true, "size": 4096, "max": 3, "$db": "shop" });
    client.works(doc! { "create": "customers", "patterns": [&totals("log")], "$db": "shop" });
    insert(&mut client, "customers", &doc! { "_id": 1 });
    for id in 0..5 {
        insert(&mut client, "log", &doc! { "_id": id, "customerId": 1 });
    }
    let filter = doc! { "_id": 1, "orders": 3, "ids": [2, 3, 4] };
    let found = client.works(doc! { "find": "customers", "filter": &filter, "$db": "shop" });
    assert_eq!(rows(&found).len(), 1);
    let many = doc! {
        "insert": "log", "$db": "shop", "documents": [
            { "_id": 10, "customerId": 1 }, { "_id": 11, "customerId": 2 },
            { "_id": 12, "customerId": 1 }, { "_id": 13, "customerId": 1 },
        ]
    };
    client.works(many);
    let filter = doc! { "_id": 1, "orders": 2, "ids": [12, 13] };
    let found = client.works(doc! { "find": "customers", "filter": &filter, "$db": "shop" });
    assert_eq!(rows(&found).len(), 1);
}

/// The job that builds a pattern finds it gone, and leaves the documents as they are.
#[test]
fn a_pattern_that_is_removed_while_it_is_built_is_gone() {
    let keeping = with(&orders(), doc! { "onDelete": "setNull" });
    let (server, mut client) = shop(&keeping);
    insert(&mut client, "orders", &doc! { "_id": 1, "customerId": 1 });
    // Documents that a pattern reads are gone, so a job builds it anew; none runs here yet.
    client.works(doc! { "drop": "customers", "$db": "shop" });
    let remove = doc! { "name": "customer", "remove": true };
    client.works(doc! { "collMod": "orders", "patterns": [&remove], "$db": "shop" });
    settle(&server, &mut client);
    let order = find(&mut client, "orders", 1);
    assert_eq!(number(&order, "customerId"), Some(1));
    assert_eq!(text(&order, "customer.name"), Some("c1"));
    let filter = doc! { "name": "orders" };
    let listed = client.works(doc! { "listCollections": 1, "filter": &filter, "$db": "shop" });
    assert!(crate::at(&listed, "cursor.firstBatch.0.info.patterns").is_none(), "{listed:?}");
    assert_eq!(write_code(&insert(&mut client, "orders", &doc! { "_id": 2, "customerId": 9 })), 0);
}

/// Copies stay behind, because all are left to jobs; repairs and writers meet in the same documents.
#[test]
fn repairs_beside_writers_leave_no_drift() {
    let (server, mut client) = shop(&with(&orders(), doc! { "maxFanout": 0 }));
    for id in 0..20 {
        insert(&mut client, "orders", &doc! { "_id": id, "customerId": (1 + id % 3) });
    }
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let repairs = scope.spawn(|| {
            let mut client = server.client(9);
            let repair =
                doc! { "validate": "orders", "patterns": true, "repair": true, "$db": "shop" };
            while !done.load(Ordering::Relaxed) {
                client.works(repair.clone());
            }
        });
        let writers: Vec<_> = (0..2)
            .map(|writer: i32| {
                let mut client = server.client(20 + writer as u64);
                scope.spawn(move || {
                    for round in 0..15 {
                        let name = format!("w{writer} r{round}");
                        let set = doc! { "$set": { "name": name.as_str() } };
                        update(&mut client, "customers", &doc! { "_id": (1 + round % 3) }, &set);
                        let order = doc! { "_id": (100 + writer * 100 + round), "customerId": 2 };
                        insert(&mut client, "orders", &order);
                        delete(&mut client, "orders", &doc! { "_id": (round + writer) });
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.join().unwrap();
        }
        done.store(true, Ordering::Relaxed);
        repairs.join().unwrap();
    });
    let repair = doc! { "validate": "orders", "patterns": true, "repair": true, "$db": "shop" };
    client.works(repair);
    assert_eq!(wrong_copies(&mut client), 0);
    settle(&server, &mut client);
    let valid = client.works(doc! { "validate": "orders", "patterns": true, "$db": "shop" });
    assert_eq!(number(&valid, "patterns.customer.drift"), Some(0), "{valid:?}");
}

/// Declaring needs privileges on both sides; causing a derived write needs those of one's own write.
#[test]
fn a_pattern_is_declared_with_privileges_on_both_sides() {
    let (server, mut root) = guarded();
    root.works(
        doc! { "insert": "customers", "documents": [{ "_id": 1, "name": "c1" }], "$db": "shop" },
    );
    let on = |collection: &str, actions: &[&str]| {
        let actions: quire_document::ArrayBuf = actions.iter().copied().collect();
        doc! { "resource": { "db": "shop", "collection": collection }, "actions": &actions }
    };
    let own = on("bills", &["find", "insert", "update", "remove", "createCollection", "collMod"]);
    for (user, other) in [
        ("none", on("customers", &["update"])),
        ("reads", on("customers", &["update", "find"])),
        ("changes", on("customers", &["update", "collMod"])),
        ("both", on("customers", &["update", "find", "collMod"])),
    ] {
        root.works(doc! {
            "createRole": user, "roles": [], "privileges": [&own, &other], "$db": "shop"
        });
        root.works(doc! { "createUser": user, "pwd": "p", "roles": [user], "$db": "shop" });
        let mut client = server.client(10);
        assert_eq!(client.log_in("shop", user, "p", Mechanism::Sha256), 0);
        let expected = if user == "both" { 0 } else { 13 };
        let create = doc! { "create": "bills", "patterns": [&orders()], "$db": "shop" };
        assert_eq!(code(&client.run(create)), expected, "{user}");
        let change = doc! { "collMod": "bills", "patterns": [&orders()], "$db": "shop" };
        assert_eq!(code(&client.run(change)), expected, "{user}");
        if user == "both" {
            insert(&mut client, "bills", &doc! { "_id": 1, "customerId": 1 });
        }
        root.run(doc! { "dropUser": user, "$db": "shop" });
    }
    // The copies in the bills change, although the client may not write them.
    let only = on("customers", &["find", "update"]);
    root.works(doc! { "createRole": "clerk", "roles": [], "privileges": [&only], "$db": "shop" });
    root.works(doc! { "createUser": "clerk", "pwd": "p", "roles": ["clerk"], "$db": "shop" });
    let mut clerk = server.client(30);
    assert_eq!(clerk.log_in("shop", "clerk", "p", Mechanism::Sha256), 0);
    update(&mut clerk, "customers", &doc! { "_id": 1 }, &doc! { "$set": { "name": "new" } });
    assert_eq!(text(&find(&mut root, "bills", 1), "customer.name"), Some("new"));
}
