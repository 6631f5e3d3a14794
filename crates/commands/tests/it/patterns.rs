//! Declared references: what a write of either side does to the documents that refer. The oracle is
//! the pattern's definition as an aggregation: after every commit, no document has another copy than
//! the one that `$lookup` finds.

use crate::transactions;
use crate::{Client, Server, at, code, number, text};
use quire_document::{Array, DocBuf, Value, doc};
use quire_storage::rng::Rng;

fn orders() -> DocBuf {
    doc! {
        "name": "customer", "type": "reference", "from": "customers", "localField": "customerId",
        "as": "customer", "fields": { "name": "sync", "address": "snapshot" }
    }
}

/// Returns a command as a statement of the transaction of session `txn`.
fn within(txn: u8, start: bool, command: DocBuf) -> DocBuf {
    transactions::within(command, (txn, 1), start)
}

fn commit(txn: u8) -> DocBuf {
    within(txn, false, transactions::commit())
}

fn abort(txn: u8) -> DocBuf {
    within(txn, false, doc! { "abortTransaction": 1, "$db": "admin" })
}

/// Returns a definition with other values of some fields.
fn with(definition: &DocBuf, more: DocBuf) -> DocBuf {
    DocBuf::build(|writer| {
        let fields = definition.as_doc().fields();
        for (name, value) in fields.filter(|(name, _)| more.get(name).is_none()) {
            writer.append(name, value);
        }
        writer.append_all(more.as_doc());
    })
}

fn declare(client: &mut Client, collection: &str, definition: &DocBuf) {
    client.works(doc! { "collMod": collection, "patterns": [definition], "$db": "shop" });
}

fn insert(client: &mut Client, collection: &str, doc: &DocBuf) -> DocBuf {
    client.run(doc! { "insert": collection, "documents": [doc], "$db": "shop" })
}

fn update(client: &mut Client, collection: &str, q: &DocBuf, u: &DocBuf) -> DocBuf {
    let statement = doc! { "q": q, "u": u };
    client.run(doc! { "update": collection, "updates": [&statement], "$db": "shop" })
}

fn delete(client: &mut Client, collection: &str, q: &DocBuf) -> DocBuf {
    let statement = doc! { "q": q, "limit": 0 };
    client.run(doc! { "delete": collection, "deletes": [&statement], "$db": "shop" })
}

/// Returns the code of the first write error; 0 without one.
fn write_code(reply: &DocBuf) -> i64 {
    number(reply, "writeErrors.0.code").unwrap_or(0)
}

fn rows(reply: &DocBuf) -> Vec<DocBuf> {
    let rows: Array<'_> = at(reply, "cursor.firstBatch").unwrap().as_array().unwrap();
    rows.iter().map(|row| row.as_document().unwrap().to_owned()).collect()
}

fn find(client: &mut Client, collection: &str, id: i32) -> DocBuf {
    let filter = doc! { "_id": id };
    let found = client.works(doc! { "find": collection, "filter": &filter, "$db": "shop" });
    rows(&found).into_iter().next().unwrap_or_default()
}

/// A shop with three customers and the orders' pattern.
fn shop(definition: &DocBuf) -> (Server, Client) {
    let server = Server::new();
    let mut client = server.client(1);
    for id in 1..=3 {
        let name = format!("c{id}");
        let address = format!("street {id}");
        let doc = doc! { "_id": id, "name": name.as_str(), "address": address.as_str() };
        insert(&mut client, "customers", &doc);
    }
    let patterns = doc! { "create": "orders", "patterns": [definition], "$db": "shop" };
    client.works(patterns);
    (server, client)
}

#[test]
fn a_change_of_the_referred_document_reaches_every_copy_that_is_in_sync() {
    let (_server, mut client) = shop(&orders());
    for id in 1..=5 {
        let doc = doc! { "_id": id, "customerId": 1, "total": id };
        assert_eq!(write_code(&insert(&mut client, "orders", &doc)), 0);
    }
    let order = find(&mut client, "orders", 2);
    assert_eq!(text(&order, "customer.name"), Some("c1"));
    assert_eq!(text(&order, "customer.address"), Some("street 1"));
    // The second and later copies change, too, and `n` counts only the client's document.
    let set = doc! { "$set": { "name": "new", "address": "elsewhere" } };
    let reply = update(&mut client, "customers", &doc! { "_id": 1 }, &set);
    assert_eq!(number(&reply, "nModified"), Some(1));
    for id in 1..=5 {
        let order = find(&mut client, "orders", id);
        assert_eq!(text(&order, "customer.name"), Some("new"), "{id}");
        assert_eq!(text(&order, "customer.address"), Some("street 1"), "{id}");
    }
    // Another reference brings other copies; none takes them away.
    let set = doc! { "$set": { "customerId": 2 } };
    update(&mut client, "orders", &doc! { "_id": 2 }, &set);
    let order = find(&mut client, "orders", 2);
    assert_eq!(text(&order, "customer.name"), Some("c2"));
    assert_eq!(text(&order, "customer.address"), Some("street 2"));
    let unset = doc! { "$unset": { "customerId": 1 } };
    update(&mut client, "orders", &doc! { "_id": 2 }, &unset);
    assert!(find(&mut client, "orders", 2).get("customer").is_none());
    // findAndModify takes the same road.
    let query = doc! { "_id": 1 };
    let set = doc! { "$set": { "name": "again" } };
    client.works(
        doc! { "findAndModify": "customers", "query": &query, "update": &set, "$db": "shop" },
    );
    assert_eq!(text(&find(&mut client, "orders", 5), "customer.name"), Some("again"));
}

#[test]
fn a_reference_that_leads_nowhere_and_a_delete_that_would_make_one_are_refused() {
    let (_server, mut client) = shop(&orders());
    let refused = insert(&mut client, "orders", &doc! { "_id": 1, "customerId": 9 });
    assert_eq!(write_code(&refused), 121);
    let message = text(&refused, "writeErrors.0.errmsg").unwrap();
    assert!(message.contains("customer") && message.contains("customerId"), "{message}");
    insert(&mut client, "orders", &doc! { "_id": 1, "customerId": 1 });
    let refused = delete(&mut client, "customers", &doc! { "_id": 1 });
    assert_eq!(write_code(&refused), 121);
    assert_eq!(number(&refused, "n"), Some(0));
    let dropped = client.run(doc! { "drop": "customers", "$db": "shop" });
    assert_eq!(code(&dropped), 20);
    delete(&mut client, "orders", &doc! { "_id": 1 });
    assert_eq!(number(&delete(&mut client, "customers", &doc! { "_id": 1 }), "n"), Some(1));
    client.works(doc! { "drop": "customers", "$db": "shop" });
}

#[test]
fn a_deleted_document_takes_along_nulls_or_leaves_those_that_refer_to_it() {
    let cases = [("cascade", 0), ("setNull", 2), ("keep", 2)];
    for (on_delete, left) in cases {
        let more = doc! { "onDelete": on_delete, "onMissing": "null" };
        let (_server, mut client) = shop(&with(&orders(), more));
        for id in 1..=2 {
            insert(&mut client, "orders", &doc! { "_id": id, "customerId": 1 });
        }
        let reply = delete(&mut client, "customers", &doc! { "_id": 1 });
        assert_eq!(number(&reply, "n"), Some(1), "{on_delete}");
        let count = client.works(doc! { "count": "orders", "$db": "shop" });
        assert_eq!(number(&count, "n"), Some(left), "{on_delete}");
        let order = find(&mut client, "orders", 1);
        match on_delete {
            "setNull" => {
                assert!(order.get("customerId").unwrap().is_nullish());
                assert!(order.get("customer").is_none());
            }
            "keep" => assert_eq!(text(&order, "customer.name"), Some("c1")),
            _ => {}
        }
        // A document that comes again is found by those that still refer to it.
        insert(&mut client, "customers", &doc! { "_id": 1, "name": "back" });
        if on_delete == "keep" {
            assert_eq!(text(&find(&mut client, "orders", 2), "customer.name"), Some("back"));
        }
    }
}

#[test]
fn each_element_of_an_array_has_its_own_copies() {
    let definition = doc! {
        "name": "product", "type": "reference", "from": "customers",
        "localField": "items.productId", "as": "items.product",
        "fields": { "name": "sync", "address": { "mode": "snapshot", "as": "then" } }
    };
    let (_server, mut client) = shop(&definition);
    let items = doc! {
        "_id": 1, "items": [{ "productId": 1 }, { "productId": 2, "n": 7 }, { "productId": 1 }]
    };
    assert_eq!(write_code(&insert(&mut client, "orders", &items)), 0);
    let set = doc! { "$set": { "name": "x", "address": "y" } };
    update(&mut client, "customers", &doc! { "_id": 1 }, &set);
    let push = doc! { "$push": { "items": { "productId": 1 } } };
    update(&mut client, "orders", &doc! { "_id": 1 }, &push);
    let order = find(&mut client, "orders", 1);
    for (at, name, then) in
        [(0, "x", "street 1"), (1, "c2", "street 2"), (2, "x", "street 1"), (3, "x", "y")]
    {
        assert_eq!(text(&order, &format!("items.{at}.product.name")), Some(name), "{at}");
        assert_eq!(text(&order, &format!("items.{at}.product.then")), Some(then), "{at}");
    }
    assert_eq!(number(&order, "items.1.n"), Some(7));
    // Values in an array that the copies do not pass have them in an array of the same length.
    let definition = doc! {
        "name": "authors", "type": "reference", "from": "customers", "localField": "authorIds",
        "as": "authors", "fields": { "name": "sync" }
    };
    client.works(doc! { "create": "books", "$db": "shop" });
    declare(&mut client, "books", &definition);
    insert(&mut client, "books", &doc! { "_id": 1, "authorIds": [2, 1] });
    let book = find(&mut client, "books", 1);
    assert_eq!(text(&book, "authors.0.name"), Some("c2"));
    assert_eq!(text(&book, "authors.1.name"), Some("x"));
}

#[test]
fn a_clients_write_of_a_copy_is_ignored_and_counted_or_rejected() {
    let (_server, mut client) = shop(&orders());
    let whole = doc! { "_id": 1, "customerId": 1, "customer": { "name": "mine", "note": 3 } };
    assert_eq!(write_code(&insert(&mut client, "orders", &whole)), 0);
    let order = find(&mut client, "orders", 1);
    assert_eq!(text(&order, "customer.name"), Some("c1"));
    assert_eq!(number(&order, "customer.note"), Some(3));
    let stats = client.works(doc! { "collStats": "orders", "$db": "shop" });
    assert_eq!(number(&stats, "patterns.customer.ignoredWrites"), Some(1));
    assert_eq!(text(&stats, "patterns.customer.state"), Some("ready"));
    assert_eq!(number(&stats, "patterns.customer.lag.tasks"), Some(0));

    declare(&mut client, "orders", &with(&orders(), doc! { "onClientWrite": "reject" }));
    // A whole document sent back with its copies is no change of them.
    assert_eq!(write_code(&update(&mut client, "orders", &doc! { "_id": 1 }, &order)), 0);
    let set = doc! { "$set": { "customer.name": "mine" } };
    let refused = update(&mut client, "orders", &doc! { "_id": 1 }, &set);
    assert_eq!(write_code(&refused), 121);
    assert_eq!(text(&refused, "writeErrors.0.errInfo.pattern"), Some("customer"), "{refused:?}");
    assert_eq!(text(&refused, "writeErrors.0.errInfo.path"), Some("customer.name"));
}

#[test]
fn a_pattern_is_built_over_the_documents_that_are_there() {
    let server = Server::new();
    let mut client = server.client(1);
    insert(&mut client, "customers", &doc! { "_id": 1, "name": "c1", "address": "a" });
    for id in 0..1200 {
        // What a restored document has of a snapshot is the snapshot.
        let doc = doc! { "_id": id, "customerId": 1, "customer": { "address": "then" } };
        insert(&mut client, "orders", &doc);
    }
    let dry = doc! { "collMod": "orders", "patterns": [&orders()], "dryRun": true, "$db": "shop" };
    let cost = client.works(dry);
    assert_eq!(number(&cost, "patterns.customer.documents"), Some(1200));
    assert_eq!(number(&cost, "patterns.customer.fanout.p50"), Some(1200));
    assert!(number(&cost, "patterns.customer.bytes").unwrap() > 1200 * 8);
    assert!(
        find(&mut client, "orders", 7)
            .get("customer")
            .unwrap()
            .as_document()
            .unwrap()
            .get("name")
            .is_none()
    );
    declare(&mut client, "orders", &orders());
    let order = find(&mut client, "orders", 1100);
    assert_eq!(text(&order, "customer.name"), Some("c1"));
    assert_eq!(text(&order, "customer.address"), Some("then"));
    let valid = client.works(doc! { "validate": "orders", "patterns": true, "$db": "shop" });
    assert_eq!(number(&valid, "patterns.customer.checked"), Some(1200));
    assert_eq!(number(&valid, "patterns.customer.drift"), Some(0));
    // It is shown beside the options, because a dump passes those on.
    let filter = doc! { "name": "orders" };
    let listed = client.works(doc! { "listCollections": 1, "filter": &filter, "$db": "shop" });
    let listed = &rows(&listed)[0];
    assert_eq!(text(listed, "info.patterns.0.state"), Some("ready"));
    assert!(at(listed, "options.patterns").is_none());
    let declared = client.works(doc! { "find": "quire.patterns", "$db": "shop" });
    assert_eq!(text(&rows(&declared)[0], "_id"), Some("orders.customer"));
    // A document that refers to nothing stops a build, with the reason.
    insert(&mut client, "visits", &doc! { "_id": 1, "customerId": 5 });
    let refused = client.run(doc! { "collMod": "visits", "patterns": [&orders()], "$db": "shop" });
    assert_eq!(code(&refused), 121);
    assert!(text(&refused, "errmsg").unwrap().contains("_id 1"), "{refused:?}");
    let remove = doc! { "name": "customer", "remove": true };
    client.works(doc! { "collMod": "visits", "patterns": [&remove], "$db": "shop" });
    // It survives a restart.
    let mut client = server.reopened().client(2);
    let set = doc! { "$set": { "name": "later" } };
    update(&mut client, "customers", &doc! { "_id": 1 }, &set);
    assert_eq!(text(&find(&mut client, "orders", 3), "customer.name"), Some("c1"));
    let stats = client.works(doc! { "collStats": "orders", "$db": "shop" });
    assert_eq!(number(&stats, "patterns.customer.lag.tasks"), Some(1));
}

#[test]
fn transactions_keep_patterns_or_undo_all_of_it() {
    let (_server, mut client) = shop(&orders());
    insert(&mut client, "orders", &doc! { "_id": 1, "customerId": 1 });
    let set = doc! { "$set": { "name": "in txn" } };
    let statement = doc! { "q": { "_id": 1 }, "u": &set };
    let rename = doc! { "update": "customers", "updates": [&statement], "$db": "shop" };
    let add =
        doc! { "insert": "orders", "documents": [{ "_id": 2, "customerId": 1 }], "$db": "shop" };
    client.works(within(1, true, rename.clone()));
    client.works(within(1, false, add.clone()));
    client.works(abort(1));
    assert_eq!(text(&find(&mut client, "orders", 1), "customer.name"), Some("c1"));
    client.works(within(2, true, rename));
    client.works(within(2, false, add));
    client.works(commit(2));
    for id in 1..=2 {
        assert_eq!(text(&find(&mut client, "orders", id), "customer.name"), Some("in txn"));
    }
}

/// Two transactions on the same snapshot: one renames, one adds an order, which would keep the old
/// name. One of them must fail, whichever commits first. Two orders do not disturb each other.
#[test]
fn a_rename_beside_a_new_order_never_leaves_the_old_name() {
    for rename_first in [true, false] {
        let (server, mut one) = shop(&orders());
        let mut two = server.client(2);
        let set = doc! { "$set": { "name": "new" } };
        let statement = doc! { "q": { "_id": 1 }, "u": &set };
        let rename = doc! { "update": "customers", "updates": [&statement], "$db": "shop" };
        let order = |id: i32| {
            let doc = doc! { "_id": id, "customerId": 1 };
            doc! { "insert": "orders", "documents": [&doc], "$db": "shop" }
        };
        one.works(within(1, true, rename));
        two.works(within(2, true, order(1)));
        let (first, second) = match rename_first {
            true => (one.run(commit(1)), two.run(commit(2))),
            false => {
                let first = two.run(commit(2));
                (first, one.run(commit(1)))
            }
        };
        assert_eq!(code(&first), 0, "{first:?}");
        assert_eq!(code(&second), 112, "{second:?}");
        let label = text(&second, "errorLabels.0");
        assert_eq!(label, Some("TransientTransactionError"));
        one.works(within(3, true, order(2)));
        two.works(within(4, true, order(3)));
        one.works(commit(3));
        two.works(commit(4));
        assert_eq!(wrong_copies(&mut one), 0);
    }
}

/// Returns the number of orders whose copies differ from what `$lookup` finds.
fn wrong_copies(client: &mut Client) -> usize {
    let pipeline = doc! { "p": [
        { "$lookup": {
            "from": "customers", "localField": "customerId", "foreignField": "_id", "as": "t"
        } },
        { "$project": {
            "stored": "$customer.name", "wanted": { "$arrayElemAt": ["$t.name", 0] },
            "region": "$customer.region", "from": { "$arrayElemAt": ["$t.place.name", 0] },
        } },
        { "$match": { "$or": [
            { "$expr": { "$ne": ["$stored", "$wanted"] } },
            { "$expr": { "$ne": ["$region", "$from"] } },
        ] } },
    ] };
    let pipeline = pipeline.get("p").unwrap();
    let found = client
        .works(doc! { "aggregate": "orders", "pipeline": pipeline, "cursor": {}, "$db": "shop" });
    let found = rows(&found);
    if let Some(first) = found.first() {
        eprintln!("{first:?}");
    }
    found.len()
}

/// The patterns of the random rounds: orders copy from customers what these copy from places.
fn chained(on_delete: &str, max_fanout: i32) -> (DocBuf, DocBuf) {
    let customers = doc! {
        "name": "place", "type": "reference", "from": "places", "localField": "placeId",
        "as": "place", "fields": { "name": "sync" }, "onDelete": on_delete, "onMissing": "null",
        "maxFanout": max_fanout
    };
    let orders = doc! {
        "name": "customer", "type": "reference", "from": "customers", "localField": "customerId",
        "as": "customer", "onDelete": on_delete, "onMissing": "null", "maxFanout": max_fanout,
        "fields": { "name": "sync", "place.name": { "mode": "sync", "as": "region" } }
    };
    (customers, orders)
}

fn random_name(rng: &mut Rng) -> String {
    format!("n{}", rng.below(1000))
}

/// Returns a random command, without its database.
fn random_command(rng: &mut Rng) -> DocBuf {
    let (collection, reference, target) =
        [("places", "none", 1), ("customers", "placeId", 4), ("orders", "customerId", 8)]
            [rng.below(3) as usize];
    let id = |rng: &mut Rng| rng.below(10) as i32;
    let value = |rng: &mut Rng| rng.below(target) as i32;
    let name = random_name(rng);
    let set = match rng.below(6) {
        0 => doc! { "$set": { "name": name.as_str() } },
        1 => doc! { "$set": { reference: (value(rng)) } },
        2 => doc! { "$unset": { "name": 1 } },
        3 => doc! { "$set": { "customer.name": "client's", "place": 5 } },
        4 => doc! { "$unset": { "customer": 1, "place": 1 } },
        _ => doc! { "$set": { "name": name.as_str(), reference: (value(rng)) } },
    };
    let filter = match rng.below(3) {
        0 => doc! { reference: (value(rng)) },
        _ => doc! { "_id": (id(rng)) },
    };
    let multi = rng.one_in(2);
    match rng.below(8) {
        0 | 1 => {
            let docs: Vec<DocBuf> = (0..=rng.below(3))
                .map(|_| doc! { "_id": (id(rng)), "name": name.as_str(), reference: (value(rng)) })
                .collect();
            let docs = quire_document::ArrayBuf::build(|out| {
                docs.iter().for_each(|doc| {
                    out.push(doc);
                });
            });
            doc! { "insert": collection, "documents": &docs, "ordered": (rng.one_in(2)) }
        }
        2 => {
            let replacement = doc! { "name": name.as_str(), reference: (value(rng)) };
            let statement = doc! { "q": { "_id": (id(rng)) }, "u": &replacement, "upsert": true };
            doc! { "update": collection, "updates": [&statement] }
        }
        3 => {
            let stages = doc! { "u": [{ "$set": { "name": name.as_str(), "x": "$name" } }] };
            let statement = doc! { "q": &filter, "u": (stages.get("u").unwrap()), "multi": multi };
            doc! { "update": collection, "updates": [&statement] }
        }
        4 => {
            let statement = doc! { "q": &filter, "limit": (i32::from(!multi)) };
            doc! { "delete": collection, "deletes": [&statement] }
        }
        5 => {
            let query = doc! { "_id": (id(rng)) };
            match rng.one_in(3) {
                true => doc! { "findAndModify": collection, "query": &query, "remove": true },
                false => doc! { "findAndModify": collection, "query": &query, "update": &set },
            }
        }
        _ => {
            let statement = doc! { "q": &filter, "u": &set, "multi": multi };
            doc! { "update": collection, "updates": [&statement] }
        }
    }
}

/// Runs the jobs that are in the table.
fn settle(server: &Server, client: &mut Client) {
    let jobs = server.0.start_jobs().unwrap();
    loop {
        let left = server.0.store().jobs(|_| {}).unwrap();
        if left.iter().all(|job| !matches!(job.id.kind.as_str(), "derived" | "patternBuild")) {
            break;
        }
        client.works(doc! { "ping": 1, "$db": "admin" });
        std::thread::park_timeout(std::time::Duration::from_millis(2));
    }
    drop(jobs);
}

fn round(seed: u64) {
    let mut rng = Rng::new(seed);
    let server = Server::new();
    let mut client = server.client(1);
    let on_delete = ["cascade", "setNull", "restrict"][rng.below(3) as usize];
    let max_fanout = [0, 1, 1000][rng.below(3) as usize];
    let (customers, orders) = chained(on_delete, max_fanout);
    let declare_first = rng.one_in(2);
    client.works(doc! { "create": "customers", "$db": "shop" });
    client.works(doc! { "create": "orders", "$db": "shop" });
    if declare_first {
        declare(&mut client, "customers", &customers);
        declare(&mut client, "orders", &orders);
    }
    let mut txn = 0_u8;
    for step in 0..60 {
        if !declare_first && step == 30 {
            declare(&mut client, "orders", &orders);
            declare(&mut client, "customers", &customers);
        }
        if rng.one_in(5) {
            txn += 1;
            let mut alive = true;
            for at in 0..=rng.below(3) {
                let command = with(&random_command(&mut rng), doc! { "$db": "shop" });
                let reply = client.run(within(txn, at == 0, command));
                alive &= code(&reply) == 0 && reply.get("writeErrors").is_none();
                if !alive {
                    break;
                }
            }
            match alive && rng.one_in(2) {
                true => drop(client.works(commit(txn))),
                false => drop(client.run(abort(txn))),
            }
        } else {
            let command = with(&random_command(&mut rng), doc! { "$db": "shop" });
            client.run(command);
        }
        let is_declared = declare_first || step >= 30;
        if is_declared && max_fanout == 0 {
            settle(&server, &mut client);
        }
        if is_declared && max_fanout != 1 {
            assert_eq!(wrong_copies(&mut client), 0, "seed {seed}, step {step}");
        }
    }
    settle(&server, &mut client);
    assert_eq!(wrong_copies(&mut client), 0, "seed {seed}, at the end");
    for collection in ["customers", "orders"] {
        let valid = client.works(doc! { "validate": collection, "patterns": true, "$db": "shop" });
        assert_eq!(at(&valid, "valid").unwrap().as_bool(), Some(true), "seed {seed}: {valid:?}");
    }
}

/// `QUIRE_PATTERN_SEEDS` sets the number of seeds.
#[test]
fn random_writes_leave_every_copy_exact() {
    let seeds = std::env::var("QUIRE_PATTERN_SEEDS").ok().and_then(|text| text.parse().ok());
    for seed in 0..seeds.unwrap_or(12) {
        round(seed);
    }
}

#[test]
fn a_value_of_another_type_of_number_is_the_same_reference() {
    let (_server, mut client) = shop(&orders());
    insert(&mut client, "orders", &doc! { "_id": 1, "customerId": (Value::Double(1.0)) });
    update(&mut client, "customers", &doc! { "_id": 1 }, &doc! { "$set": { "name": "x" } });
    assert_eq!(text(&find(&mut client, "orders", 1), "customer.name"), Some("x"));
}

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
    assert!(commands > 15, "{commands}");
}

#[test]
fn the_commands_of_the_pages_do_what_the_pages_say() {
    run_page(include_str!("../../../../docs/patterns/reference.md"));
    run_page(include_str!("../../../../docs/patterns/zh/reference.md"));
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

/// Four writers at once, and a reader that compares copies and base at each snapshot.
#[test]
fn concurrent_writers_leave_every_copy_exact() {
    let server = Server::new();
    let mut client = server.client(1);
    let (customers, orders) = chained("setNull", 1000);
    client.works(doc! { "create": "customers", "patterns": [&customers], "$db": "shop" });
    client.works(doc! { "create": "orders", "patterns": [&orders], "$db": "shop" });
    std::thread::scope(|scope| {
        for writer in 0..4_u64 {
            let server = &server;
            scope.spawn(move || {
                let mut client = server.client(10 + writer);
                let mut rng = Rng::new(1000 + writer);
                for _ in 0..60 {
                    client.run(with(&random_command(&mut rng), doc! { "$db": "shop" }));
                }
            });
        }
        for _ in 0..20 {
            assert_eq!(wrong_copies(&mut client), 0);
        }
    });
    assert_eq!(wrong_copies(&mut client), 0);
    for collection in ["customers", "orders"] {
        let valid = client.works(doc! { "validate": collection, "patterns": true, "$db": "shop" });
        assert_eq!(at(&valid, "valid").unwrap().as_bool(), Some(true), "{valid:?}");
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
