//! What happens to patterns besides ordinary writes: a restart, a rename, a drop, a refusal in the
//! background, expiry. Also the commands of the pages in docs/patterns.

use super::random::{settle, wrong_copies};
use super::{declare, find, insert, orders, rows, shop, update, with, write_code};
use crate::change_streams::open;
use crate::{Server, code, number, text};
use quire_document::{DocBuf, Value, doc};
use quire_storage::{Faults, SimulatedDisk};

/// The commands of a page in docs/patterns: each line with `db.runCommand` works, is refused, or finds
/// documents, as its comment says.
fn run_page(page: &str) {
    let server = Server::new();
    let mut client = server.client(1);
    let mut commands = 0;
    for line in page.lines() {
        let Some(rest) = line.strip_prefix("db.runCommand(") else { continue };
        let (command, used) = quire_document::literal::parse_prefix(rest).unwrap();
        let mut command = command.as_value().as_document().unwrap().to_owned();
        command.append("$db", "shop");
        let reply = client.run(command);
        let comment =
            rest.get(used..).and_then(|rest| rest.split_once("// ")).map(|(_, text)| text);
        let is_refused = code(&reply) != 0 || reply.get("writeErrors").is_some();
        match comment {
            Some("refused") => assert!(is_refused, "{line}: {reply:?}"),
            Some("1 document") => assert_eq!(rows(&reply).len(), 1, "{line}"),
            Some(other) => panic!("{other}"),
            None => assert!(!is_refused, "{line}: {reply:?}"),
        }
        commands += 1;
    }
    assert!(commands >= 5, "{commands}");
}

#[test]
fn the_commands_of_the_pages_do_what_the_pages_say() {
    run_page(include_str!("../../../../../docs/patterns/reference.md"));
    run_page(include_str!("../../../../../docs/patterns/zh/reference.md"));
    run_page(include_str!("../../../../../docs/patterns/computed.md"));
    run_page(include_str!("../../../../../docs/patterns/zh/computed.md"));
    run_page(include_str!("../../../../../docs/patterns/subset.md"));
    run_page(include_str!("../../../../../docs/patterns/zh/subset.md"));
    run_page(include_str!("../../../../../docs/patterns/two-way-reference.md"));
    run_page(include_str!("../../../../../docs/patterns/zh/two-way-reference.md"));
    run_page(include_str!("../../../../../docs/patterns/counter.md"));
    run_page(include_str!("../../../../../docs/patterns/zh/counter.md"));
}

/// A process that ends within a fan-out leaves a task; the next process goes on with it. A pattern
/// that is removed meanwhile takes its tasks along.
#[test]
fn a_fan_out_goes_on_in_the_next_process() {
    let (server, mut client) = shop(&with(&orders(), doc! { "maxFanout": 10 }));
    let docs = quire_document::ArrayBuf::build(|out| {
        for id in 0..2500 {
            out.push(&doc! { "_id": id, "customerId": 1 });
        }
    });
    client.works(doc! { "insert": "orders", "documents": &docs, "$db": "shop" });
    let set = doc! { "$set": { "name": "new" } };
    update(&mut client, "customers", &doc! { "_id": 1 }, &set);
    let stats = client.works(doc! { "collStats": "orders", "$db": "shop" });
    assert_eq!(number(&stats, "patterns.customer.lag.tasks"), Some(1));
    assert_eq!(wrong_copies(&mut client), 101);
    // One step of the job, then the process ends.
    let store = server.0.store();
    let mut job = store.jobs(|_| {}).unwrap().remove(0);
    let interrupt = quire_storage::Interrupt::new();
    store.step_job(&mut job, &mut true, &interrupt, quire_collections::derive_step).unwrap();
    assert_eq!(store.jobs(|_| {}).unwrap().len(), 1);
    let server = server.reopened();
    let mut client = server.client(2);
    settle(&server, &mut client);
    for id in [0, 999, 1000, 1001, 2499] {
        assert_eq!(text(&find(&mut client, "orders", id), "customer.name"), Some("new"), "{id}");
    }
    let valid = client.works(doc! { "validate": "orders", "patterns": true, "$db": "shop" });
    assert_eq!(number(&valid, "patterns.customer.drift"), Some(0));
    update(&mut client, "customers", &doc! { "_id": 1 }, &doc! { "$set": { "name": "x" } });
    let remove = doc! { "name": "customer", "remove": true };
    client.works(doc! { "collMod": "orders", "patterns": [&remove], "$db": "shop" });
    settle(&server, &mut client);
    assert_eq!(text(&find(&mut client, "orders", 7), "customer.name"), Some("new"));
    client.works(doc! { "drop": "customers", "$db": "shop" });
}

/// What a validator refuses fails in the write that caused it, or stops the task with its reason.
#[test]
fn a_derived_write_that_is_refused_fails_its_cause_or_stops_in_the_background() {
    let (server, mut client) = shop(&orders());
    insert(&mut client, "orders", &doc! { "_id": 5, "customerId": 1 });
    let validator = doc! { "customer.name": { "$ne": "bad" } };
    client.works(doc! { "collMod": "orders", "validator": &validator, "$db": "shop" });
    let bad = doc! { "$set": { "name": "bad" } };
    let refused = update(&mut client, "customers", &doc! { "_id": 1 }, &bad);
    assert_eq!(write_code(&refused), 121);
    let message = text(&refused, "writeErrors.0.errmsg").unwrap();
    assert!(message.contains("'customer'") && message.contains("_id 5"), "{message}");
    assert_eq!(text(&find(&mut client, "customers", 1), "name"), Some("c1"));
    declare(&mut client, "orders", &with(&orders(), doc! { "maxFanout": 0 }));
    assert_eq!(write_code(&update(&mut client, "customers", &doc! { "_id": 1 }, &bad)), 0);
    let jobs = server.0.start_jobs().unwrap();
    loop {
        let stats = client.works(doc! { "collStats": "orders", "$db": "shop" });
        if let Some(reason) = text(&stats, "patterns.customer.lag.reason") {
            assert!(reason.contains("_id 5"), "{reason}");
            break;
        }
        std::thread::park_timeout(std::time::Duration::from_millis(2));
    }
    drop(jobs);
}

#[test]
fn renames_take_patterns_along_and_replacements_build_them_anew() {
    let (server, mut client) = shop(&orders());
    insert(&mut client, "orders", &doc! { "_id": 1, "customerId": 1 });
    let rename = |from: &str, to: &str| {
        let (from, to) = (format!("shop.{from}"), format!("shop.{to}"));
        doc! { "renameCollection": from.as_str(), "to": to.as_str(), "dropTarget": true, "$db": "admin" }
    };
    client.works(rename("customers", "clients"));
    client.works(rename("orders", "sales"));
    update(&mut client, "clients", &doc! { "_id": 1 }, &doc! { "$set": { "name": "x" } });
    assert_eq!(text(&find(&mut client, "sales", 1), "customer.name"), Some("x"));
    let declared = client.works(doc! { "find": "quire.patterns", "$db": "shop" });
    let declared = rows(&declared);
    assert_eq!(declared.len(), 1);
    assert_eq!(text(&declared[0], "_id"), Some("sales.customer"));
    assert_eq!(text(&declared[0], "from"), Some("clients"));
    // Another collection takes the place of the one that is read.
    insert(&mut client, "others", &doc! { "_id": 1, "name": "other" });
    client.works(rename("others", "clients"));
    settle(&server, &mut client);
    assert_eq!(text(&find(&mut client, "sales", 1), "customer.name"), Some("other"));
    // `$out` writes the documents, and the build their copies.
    let pipeline = doc! { "p": [
        { "$set": { "_id": 2 } }, { "$unset": "customer" }, { "$out": "sales" }
    ] };
    let pipeline = pipeline.get("p").unwrap();
    client.works(doc! { "aggregate": "sales", "pipeline": pipeline, "cursor": {}, "$db": "shop" });
    settle(&server, &mut client);
    assert_eq!(text(&find(&mut client, "sales", 2), "customer.name"), Some("other"));
    // `$merge` writes as any client.
    insert(&mut client, "more", &doc! { "_id": 3, "customerId": 1 });
    let pipeline = doc! { "p": [{ "$merge": "sales" }] };
    let pipeline = pipeline.get("p").unwrap();
    client.works(doc! { "aggregate": "more", "pipeline": pipeline, "cursor": {}, "$db": "shop" });
    assert_eq!(text(&find(&mut client, "sales", 3), "customer.name"), Some("other"));
    let across = doc! { "renameCollection": "shop.sales", "to": "other.sales", "$db": "admin" };
    assert_eq!(code(&client.run(across)), 20);
    let index = doc! { "dropIndexes": "sales", "index": "customerId_1", "$db": "shop" };
    assert_eq!(code(&client.run(index)), 72);
    client.works(doc! { "dropIndexes": "sales", "index": "*", "$db": "shop" });
    // Dropping what is read does what the pattern says about deletes.
    declare(
        &mut client,
        "sales",
        &with(&declared[0], doc! { "onDelete": "setNull" }).without_ids(),
    );
    client.works(doc! { "drop": "clients", "$db": "shop" });
    settle(&server, &mut client);
    let sale = find(&mut client, "sales", 3);
    assert!(sale.get("customerId").unwrap().is_nullish() && sale.get("customer").is_none());
    client.works(doc! { "drop": "sales", "$db": "shop" });
    let declared = client.works(doc! { "find": "quire.patterns", "$db": "shop" });
    assert!(rows(&declared).is_empty());
}

/// Returns the definition in a document of `quire.patterns`.
trait Definition {
    fn without_ids(&self) -> DocBuf;
}

impl Definition for DocBuf {
    fn without_ids(&self) -> DocBuf {
        DocBuf::build(|writer| {
            let fields = self.as_doc().fields();
            for (name, value) in fields.filter(|(name, _)| !matches!(*name, "_id" | "collection")) {
                writer.append(name, value);
            }
        })
    }
}

#[test]
fn expiry_keeps_what_restrict_protects() {
    let (server, mut client) = shop(&orders());
    insert(&mut client, "orders", &doc! { "_id": 1, "customerId": 1 });
    let set = doc! { "$set": { "at": (Value::Date(0)) } };
    for id in 1..=2 {
        update(&mut client, "customers", &doc! { "_id": id }, &set);
    }
    let index = doc! { "key": { "at": 1 }, "name": "at_1", "expireAfterSeconds": 1 };
    client.works(doc! { "createIndexes": "customers", "indexes": [&index], "$db": "shop" });
    let (store, interrupt) = (server.0.store(), quire_storage::Interrupt::new());
    let expired =
        quire_collections::expire_documents(store, i64::from(i32::MAX), &interrupt).unwrap();
    assert_eq!((expired.deleted, expired.failures.len()), (1, 0));
    assert_eq!(text(&find(&mut client, "customers", 1), "name"), Some("c1"));
}

/// A stream shows a derived write as an update, and what the pattern adds to a client's own update.
#[test]
fn change_streams_show_what_patterns_write() {
    let server = open(&SimulatedDisk::new(Faults::none(1)));
    let mut client = server.client(1);
    insert(&mut client, "customers", &doc! { "_id": 1, "name": "a" });
    insert(&mut client, "customers", &doc! { "_id": 2, "name": "b" });
    client.works(doc! { "create": "orders", "patterns": [&orders()], "$db": "shop" });
    insert(&mut client, "orders", &doc! { "_id": 1, "customerId": 1 });
    let stages = doc! { "p": [{ "$changeStream": {} }] };
    let stages = stages.get("p").unwrap();
    let opened = client
        .works(doc! { "aggregate": "orders", "pipeline": stages, "cursor": {}, "$db": "shop" });
    let cursor = number(&opened, "cursor.id").unwrap();
    update(&mut client, "customers", &doc! { "_id": 1 }, &doc! { "$set": { "name": "x" } });
    let set = doc! { "$set": { "customerId": 2 } };
    update(&mut client, "orders", &doc! { "_id": 1 }, &set);
    let more = doc! { "getMore": cursor, "collection": "orders", "$db": "shop" };
    let events = client.works(more);
    assert_eq!(text(&events, "cursor.nextBatch.0.operationType"), Some("update"));
    let updated = |at: usize| format!("cursor.nextBatch.{at}.updateDescription.updatedFields");
    let field = |at: usize, name: &str| {
        let fields = crate::at(&events, &updated(at)).unwrap().as_document().unwrap();
        fields.get(name).and_then(|value| Some(value.as_str()?.to_owned()))
    };
    assert_eq!(field(0, "customer.name").as_deref(), Some("x"));
    assert_eq!(text(&events, "cursor.nextBatch.1.operationType"), Some("update"));
    assert_eq!(field(1, "customer.name").as_deref(), Some("b"));
}

#[test]
fn validate_finds_and_repairs_what_differs() {
    let (_server, mut client) = shop(&with(&orders(), doc! { "maxFanout": 0 }));
    insert(&mut client, "orders", &doc! { "_id": 1, "customerId": 1 });
    insert(&mut client, "orders", &doc! { "_id": 2, "customerId": 2 });
    // No job runs in this server, so the copy stays behind.
    update(&mut client, "customers", &doc! { "_id": 1 }, &doc! { "$set": { "name": "x" } });
    let validate = doc! { "validate": "orders", "patterns": true, "$db": "shop" };
    let found = client.works(validate.clone());
    assert_eq!(number(&found, "patterns.customer.drift"), Some(1));
    assert_eq!(number(&found, "patterns.customer.documents.0"), Some(1));
    assert_eq!(crate::at(&found, "valid").unwrap().as_bool(), Some(false));
    let repaired = client.works(with(&validate, doc! { "repair": true }));
    assert_eq!(number(&repaired, "patterns.customer.repaired"), Some(1));
    assert_eq!(crate::at(&repaired, "valid").unwrap().as_bool(), Some(true));
    assert_eq!(text(&find(&mut client, "orders", 1), "customer.name"), Some("x"));
    let found = client.works(validate);
    assert_eq!(number(&found, "patterns.customer.drift"), Some(0));
}
