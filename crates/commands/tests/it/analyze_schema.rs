//! `analyzeSchema` and `$schemaStats`: what they find, on what, for whom, and how they end.

use crate::access::guarded;
use crate::{Client, Server, at, code, number, text};
use quire_access::Mechanism;
use quire_document::{ArrayBuf, DocBuf, Value, doc};
use quire_storage::{Interrupt, Interruption};

fn insert(client: &mut Client, collection: &str, documents: impl Iterator<Item = DocBuf>) {
    let documents: Vec<DocBuf> = documents.collect();
    let documents: ArrayBuf = documents.iter().collect();
    client.works(doc! { "insert": collection, "documents": &documents, "$db": "shop" });
}

/// Orders of customers, with a copy of the customer's name that has drifted once.
fn fill(client: &mut Client) {
    let name = |at: i32| format!("customer number {at}");
    let customers =
        (0..50).map(|at| doc! { "_id": format!("c{at}").as_str(), "name": name(at).as_str() });
    insert(client, "customers", customers);
    let orders = (0..150).map(|at| {
        let copied = if at == 7 { "an old name".to_owned() } else { name(at % 50) };
        let customer = format!("c{}", at % 50);
        doc! {
            "_id": at, "customer": customer.as_str(), "customerName": copied.as_str(),
            "lines": [{ "n": at % 4 }, { "n": 1 }],
        }
    });
    insert(client, "orders", orders);
    let index = doc! { "key": { "customer": 1 }, "name": "customer_1" };
    client.works(doc! { "createIndexes": "orders", "indexes": [&index], "$db": "shop" });
}

fn stats(client: &mut Client, collection: &str, options: DocBuf) -> DocBuf {
    let stage = doc! { "$schemaStats": &options };
    let command =
        doc! { "aggregate": collection, "pipeline": [&stage], "cursor": {}, "$db": "shop" };
    client.run(command)
}

#[test]
fn a_collection_is_described_with_its_references_and_copies() {
    let server = Server::new();
    let mut client = server.client(1);
    fill(&mut client);
    let found = client.works(doc! { "analyzeSchema": "orders", "full": true, "$db": "shop" });
    assert_eq!((number(&found, "version"), text(&found, "database")), (Some(1), Some("shop")));
    assert_eq!(number(&found, "collections.0.read"), Some(150));
    assert_eq!(text(&found, "collections.0.indexes.1.name"), Some("customer_1"));
    assert_eq!(text(&found, "collections.0.indexUses.1.name"), Some("customer_1"));
    assert_eq!(text(&found, "references.0.path"), Some("customer"));
    assert_eq!(text(&found, "references.0.to"), Some("customers"));
    assert_eq!(text(&found, "copies.0.path"), Some("customerName"));
    assert_eq!(number(&found, "copies.0.compared"), Some(150));
    assert_eq!(number(&found, "copies.0.equal"), Some(149));
    let whole = client.works(doc! { "analyzeSchema": 1, "sample": 10, "$db": "shop" });
    assert_eq!(text(&whole, "collections.1.name"), Some("orders"));
    assert_eq!(number(&whole, "collections.1.read"), Some(10));
    assert_eq!(number(&whole, "collections.1.documents"), Some(150));
    // The stage gives the collection's own document, which later stages can use.
    let one = stats(&mut client, "orders", doc! { "full": true });
    assert_eq!(number(&one, "cursor.firstBatch.0.read"), Some(150));
    assert_eq!(text(&one, "cursor.firstBatch.0.references.0.path"), Some("customer"));
}

#[test]
fn a_view_is_described_by_what_it_returns() {
    let server = Server::new();
    let mut client = server.client(1);
    fill(&mut client);
    let pipeline = doc! { "$project": { "customer": 1 } };
    client
        .works(doc! { "create": "v", "viewOn": "orders", "pipeline": [&pipeline], "$db": "shop" });
    let found = client.works(doc! { "analyzeSchema": "v", "full": true, "$db": "shop" });
    assert_eq!(text(&found, "collections.0.name"), Some("v"));
    assert_eq!(number(&found, "collections.0.read"), Some(150));
    assert_eq!(text(&found, "collections.0.paths.1.path"), Some("customer"));
    assert!(at(&found, "collections.0.paths.2").is_none());
    assert_eq!(text(&found, "references.0.to"), Some("customers"));
    let stage = stats(&mut client, "v", doc! {});
    assert_eq!(text(&stage, "cursor.firstBatch.0.name"), Some("v"));
    // A whole database is its collections.
    let whole = client.works(doc! { "analyzeSchema": 1, "$db": "shop" });
    assert!(at(&whole, "collections.2").is_none());
}

/// A system collection that the client names, and collections of every kind.
#[test]
fn collections_of_every_kind_are_described() {
    let server = Server::new();
    let mut client = server.client(1);
    fill(&mut client);
    let series = doc! { "timeField": "t", "metaField": "m" };
    client.works(doc! { "create": "series", "timeseries": &series, "$db": "shop" });
    client.works(doc! { "create": "ring", "capped": true, "size": 100_000, "$db": "shop" });
    let clustered = doc! { "key": { "_id": 1 }, "unique": true };
    client.works(doc! { "create": "rows", "clusteredIndex": &clustered, "$db": "shop" });
    client.works(doc! { "create": "v", "viewOn": "ring", "pipeline": [], "$db": "shop" });
    let point = |at: i32| doc! { "_id": at, "t": Value::Date(i64::from(at)), "m": at % 3, "v": at };
    for name in ["series", "ring", "rows"] {
        insert(&mut client, name, (0..120).map(point));
    }
    let commands = doc! { "commands": [{ "find": "x", "filter": { "v": 7 } }] };
    for (name, read, advised) in [
        ("series", 120, 0),
        ("ring", 120, 0),
        ("rows", 120, 0),
        ("v", 120, 166),
        ("system.views", 1, 73),
    ] {
        let found = client.works(doc! { "analyzeSchema": name, "full": true, "$db": "shop" });
        assert_eq!(text(&found, "collections.0.name"), Some(name));
        assert_eq!(number(&found, "collections.0.read"), Some(read), "{name}");
        let command = doc! { "adviseIndexes": name, "workload": &commands, "$db": "shop" };
        assert_eq!(code(&client.run(command)), advised, "{name}");
    }
    // The collections of the system are no part of a database's profile.
    let whole = client.works(doc! { "analyzeSchema": 1, "$db": "shop" });
    assert_eq!(at(&whole, "collections").unwrap().as_array().unwrap().count(), 5);
}

/// Rule I1 says what was measured: the index that serves the statements, and nothing about statements
/// that no index makes cheaper.
#[test]
fn a_missing_index_was_tried_before_it_is_a_finding() {
    let server = Server::with(&[("quireLaboratoryCorePercent", "100")]);
    let mut client = server.client(1);
    let rows = (0..2000).map(|at| {
        let word = format!("word{at}");
        doc! { "_id": at, "kind": "all", "word": word.as_str(), "place": at % 400, "at": at }
    });
    insert(&mut client, "rows", rows);
    for at in 0..30 {
        let served = doc! { "place": at, "at": { "$gte": 300 } };
        client.works(doc! { "find": "rows", "filter": &served, "$db": "shop" });
        let unserved =
            doc! { "kind": "all", "word": { "$ne": "word" }, "$expr": { "$eq": ["$at", at] } };
        client.works(doc! { "find": "rows", "filter": &unserved, "$db": "shop" });
    }
    let missing = |client: &mut Client, tries: bool| -> Vec<DocBuf> {
        let command =
            doc! { "adviseSchema": 1, "tryIndexes": tries, "silence": ["A15"], "$db": "shop" };
        let reply = client.works(command);
        let findings = at(&reply, "findings").unwrap().as_array().unwrap();
        let findings = findings.iter().map(|one| one.as_document().unwrap().to_owned());
        findings.filter(|one| text(one, "rule") == Some("I1")).collect()
    };
    let estimated = missing(&mut client, false);
    assert_eq!(estimated.len(), 2, "{estimated:?}");
    assert_eq!(text(&estimated[0], "confidence.kind"), Some("estimated"));
    let tried = missing(&mut client, true);
    assert_eq!(tried.len(), 1, "{tried:?}");
    let found = &tried[0];
    assert_eq!(text(found, "confidence.kind"), Some("executed"));
    assert_eq!(number(found, "confidence.copied"), Some(2000));
    // With the values of some documents, the second field of the key does not help.
    let path = text(found, "path").unwrap();
    assert!(["place_1", "place_1_at_1"].contains(&path), "{path}");
    let apply = text(found, "apply.0").unwrap();
    assert!(apply.starts_with("db.rows.createIndex({\"place\":1"), "{apply}");
    let undo = format!("db.rows.dropIndex(\"{path}\")");
    assert_eq!(text(found, "undo.0"), Some(&*undo));
    let evidence =
        |name: &str| at(found, &format!("evidence.{name}")).unwrap().as_number().unwrap().to_f64();
    assert!(evidence("examinedForEach") > 400.0 && evidence("examinedByEachWith") <= 5.0);
    // The smaller copy may have none of the documents that a statement asks for.
    assert!(evidence("growthOfCost") > 0.9 && evidence("growthOfCostWith") >= 0.0);
    assert!(evidence("examinedByEachWithLow") <= evidence("examinedByEachWithHigh"));
}

#[test]
fn wrong_arguments_are_refused() {
    let server = Server::new();
    let mut client = server.client(1);
    fill(&mut client);
    let mut refused = |command: DocBuf| {
        let mut command = command;
        command.append("$db", "shop");
        code(&client.run(command))
    };
    assert_eq!(refused(doc! { "analyzeSchema": "none" }), 26);
    assert_eq!(refused(doc! { "analyzeSchema": true }), 73);
    assert_eq!(refused(doc! { "analyzeSchema": "orders", "sample": 0 }), 2);
    assert_eq!(refused(doc! { "analyzeSchema": "orders", "sample": 5, "full": true }), 72);
    assert_eq!(refused(doc! { "analyzeSchema": "orders", "x": 1 }), 40415);
    for missing in [
        doc! { "analyzeSchema": 1 },
        doc! { "adviseSchema": 1 },
        doc! { "adviseIndexes": 1, "workload": { "commands": [] } },
    ] {
        let mut missing = missing;
        missing.append("$db", "shpo");
        let reply = client.run(missing.clone());
        assert_eq!(code(&reply), 26, "a misspelt database is not already right: {missing:?}");
        assert!(text(&reply, "errmsg").unwrap().contains("Database shpo does not exist"));
    }
    assert_eq!(code(&stats(&mut client, "none", doc! {})), 26);
    assert_eq!(code(&stats(&mut client, "orders", doc! { "x": 1 })), 40415);
    let stage = doc! { "$schemaStats": {} };
    let later = doc! { "aggregate": "orders", "pipeline": [{ "$match": {} }, &stage], "cursor": {}, "$db": "shop" };
    assert_eq!(code(&client.run(later)), 40602);
}

/// What a client may not read is in no profile, not even as the target of a reference.
#[test]
fn only_what_the_client_may_read_is_described() {
    let (server, mut root) = guarded();
    root.works(doc! { "drop": "orders", "$db": "shop" });
    fill(&mut root);
    let privilege = doc! {
        "resource": { "db": "shop", "collection": "orders" }, "actions": ["find"],
    };
    root.works(
        doc! { "createRole": "few", "roles": [], "privileges": [&privilege], "$db": "shop" },
    );
    root.works(doc! { "createUser": "few", "pwd": "p", "roles": ["few"], "$db": "shop" });
    let mut few = server.client(2);
    assert_eq!(few.log_in("shop", "few", "p", Mechanism::Sha256), 0);
    assert_eq!(code(&few.run(doc! { "analyzeSchema": "customers", "$db": "shop" })), 13);
    let found = few.works(doc! { "analyzeSchema": 1, "$db": "shop" });
    assert_eq!(text(&found, "collections.0.name"), Some("orders"));
    assert!(at(&found, "collections.1").is_none() && at(&found, "references.0").is_none());
    assert!(at(&found, "collections.0.indexes.0").is_none());
    assert!(at(&found, "collections.0.indexUses.0").is_none());
    assert_eq!(code(&few.run(doc! { "analyzeSchema": 1, "$db": "admin" })), 13);
}

/// The reply names the problem that the data have, and leaves out what is silenced.
#[test]
fn advice_names_the_copies_that_have_drifted() {
    let server = Server::new();
    let mut client = server.client(1);
    fill(&mut client);
    let found = client.works(doc! { "adviseSchema": 1, "full": true, "$db": "shop" });
    assert_eq!(text(&found, "findings.0.rule"), Some("A12C"));
    assert_eq!(text(&found, "findings.0.path"), Some("customerName"));
    // The recorder has counted the inserts.
    assert_eq!(text(&found, "relations.0.answer"), Some("right"));
    assert!(at(&found, "findings.1").is_none(), "{found:?}");
    let silent =
        doc! { "adviseSchema": 1, "full": true, "silence": ["A12C:orders"], "$db": "shop" };
    let silent = client.works(silent);
    assert_eq!(number(&silent, "silenced"), Some(1));
    assert!(at(&silent, "findings.0").is_none());
    // A given workload takes its place.
    let recorded = doc! {
        "quireWorkload": 1, "begins": Value::Date(0), "ends": Value::Date(1_000_000),
        "forgotten": { "shapes": 0, "statements": 0 },
        "shapes": [{
            "ns": "shop.customers", "kind": "find", "cause": "client",
            "shape": { "cmdNs": { "db": "shop", "coll": "customers" }, "command": "find", "filter": {} },
            "measures": { "count": 1000 },
        }],
    };
    let told = client.works(doc! { "adviseSchema": 1, "workload": &recorded, "$db": "shop" });
    assert_eq!(text(&told, "relations.0.answer"), Some("right"));
    for wrong in [
        doc! { "adviseSchema": "orders", "$db": "shop" },
        doc! { "adviseSchema": 1, "workload": { "a": 1 }, "$db": "shop" },
    ] {
        assert_eq!(code(&client.run(wrong.clone())), 2, "{wrong:?}");
    }
    let wrong = doc! { "adviseSchema": 1, "silence": [5], "$db": "shop" };
    assert_eq!(code(&client.run(wrong)), 14);
    let wrong = doc! { "adviseSchema": 1, "silence": ["A12c"], "$db": "shop" };
    let refused = client.run(wrong);
    assert_eq!(code(&refused), 2);
    assert!(text(&refused, "errmsg").unwrap().contains("near names are A12C, "), "{refused:?}");
}

/// What was asked is counted of all collections and clients, so it needs a right of its own.
#[test]
fn advice_knows_the_requests_if_the_client_may_see_them() {
    let (server, mut root) = guarded();
    root.works(doc! { "drop": "orders", "$db": "shop" });
    fill(&mut root);
    let advise = doc! { "adviseSchema": 1, "full": true, "$db": "shop" };
    let seen = root.works(advise.clone());
    assert!(at(&seen, "workloadSeconds").is_some(), "{seen:?}");
    let mut reader = server.client(2);
    assert_eq!(reader.log_in("shop", "reader", "p", Mechanism::Sha256), 0);
    let seen = reader.works(advise);
    assert!(at(&seen, "workloadSeconds").is_none(), "{seen:?}");
    assert_eq!(text(&seen, "relations.0.answer"), Some("unknown"));
}

#[test]
fn a_killed_or_late_analysis_ends() {
    let server = Server::new();
    let mut client = server.client(1);
    fill(&mut client);
    let interrupt = Interrupt::new();
    interrupt.kill(Interruption::Killed);
    let command = doc! { "analyzeSchema": 1, "full": true, "$db": "shop" };
    let (reply, _) = client.exchange(&command, interrupt);
    assert_eq!(code(&reply), 11601);
}
