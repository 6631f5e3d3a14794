//! Declared references: what a write of either side does to the documents that refer. The oracle is
//! the pattern's definition as an aggregation: after every commit, no document has another copy than
//! the one that `$lookup` finds.

mod edges;
mod examples;
mod lifecycle;
mod plain;
mod random;
mod sides;
mod together;

use crate::transactions;
use crate::{Client, Server, at, code, number, text};
use quire_document::{Array, DocBuf, Value, doc};
pub use random::seeds;
use random::wrong_copies;

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
    // Its reply has the document as it is stored, also that of an upsert.
    for id in [5, 50] {
        let command = doc! {
            "findAndModify": "orders", "query": { "_id": id }, "upsert": true, "new": true,
            "update": { "$set": { "customerId": 3 } }, "$db": "shop"
        };
        let reply = client.works(command);
        assert_eq!(text(&reply, "value.customer.name"), Some("c3"), "{id}");
    }
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
    // A write of which nothing is left changes no document, and is no change for a stream.
    let mine = doc! { "$set": { "customer.name": "mine" } };
    let kept = update(&mut client, "orders", &doc! { "_id": 1 }, &mine);
    assert_eq!((number(&kept, "n"), number(&kept, "nModified")), (Some(1), Some(0)), "{kept:?}");
    let unset = doc! { "$unset": { "customer.name": 1 } };
    assert_eq!(write_code(&update(&mut client, "orders", &doc! { "_id": 1 }, &unset)), 0);
    let stats = client.works(doc! { "collStats": "orders", "$db": "shop" });
    assert_eq!(number(&stats, "patterns.customer.ignoredWrites"), Some(3));

    declare(&mut client, "orders", &with(&orders(), doc! { "onClientWrite": "reject" }));
    // A whole document sent back with its copies is no change of them.
    assert_eq!(write_code(&update(&mut client, "orders", &doc! { "_id": 1 }, &order)), 0);
    let set = doc! { "$set": { "customer.name": "mine" } };
    let refused = update(&mut client, "orders", &doc! { "_id": 1 }, &set);
    assert_eq!(write_code(&refused), 121);
    assert_eq!(text(&refused, "writeErrors.0.errInfo.pattern"), Some("customer"), "{refused:?}");
    assert_eq!(text(&refused, "writeErrors.0.errInfo.path"), Some("customer.name"));
    for removing in [unset, doc! { "$rename": { "customer.name": "name" } }] {
        let refused = update(&mut client, "orders", &doc! { "_id": 1 }, &removing);
        assert_eq!(write_code(&refused), 121, "{removing:?}");
    }
    // A replacement may leave the copies out, and what lies beside them is the client's.
    let bare = doc! { "customerId": 1, "note": 1 };
    assert_eq!(write_code(&update(&mut client, "orders", &doc! { "_id": 1 }, &bare)), 0);
    let beside = doc! { "$unset": { "customer.note": 1 } };
    assert_eq!(write_code(&update(&mut client, "orders", &doc! { "_id": 1 }, &beside)), 0);
    assert_eq!(text(&find(&mut client, "orders", 1), "customer.name"), Some("c1"));
}

#[test]
fn create_says_what_a_pattern_would_cost() {
    let server = Server::new();
    let mut client = server.client(1);
    let dry = |name: &str, pattern: &DocBuf| {
        doc! { "create": name, "patterns": [pattern], "dryRun": true, "$db": "shop" }
    };
    let cost = client.works(dry("orders", &orders()));
    assert_eq!(number(&cost, "patterns.customer.documents"), Some(0));
    assert_eq!(number(&cost, "patterns.customer.fanout.max"), Some(0));
    let listed = client.works(doc! { "listCollections": 1, "$db": "shop" });
    assert!(rows(&listed).is_empty());
    // What the declaration would refuse is refused.
    let wrong = doc! { "create": "orders", "patterns": 5, "dryRun": true, "$db": "shop" };
    assert_eq!(code(&client.run(wrong)), 14);
    client.works(doc! { "create": "orders", "patterns": [&orders()], "$db": "shop" });
    insert(&mut client, "customers", &doc! { "_id": 1, "name": "c1", "address": "a" });
    insert(&mut client, "orders", &doc! { "_id": 1, "customerId": 1 });
    let cost = client.works(dry("orders", &orders()));
    assert_eq!(number(&cost, "patterns.customer.documents"), Some(0));
    assert_eq!(number(&cost, "patterns.customer.fanout.max"), Some(1));
    let capped = doc! {
        "create": "capped", "capped": true, "size": 4096, "patterns": [&orders()],
        "dryRun": true, "$db": "shop"
    };
    assert_eq!(code(&client.run(capped)), 72);
    // Without patterns there is nothing that it could say.
    let bare = doc! { "create": "plain", "dryRun": true, "$db": "shop" };
    assert_eq!(code(&client.run(bare)), 40415);
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

#[test]
fn a_value_of_another_type_of_number_is_the_same_reference() {
    let (_server, mut client) = shop(&orders());
    insert(&mut client, "orders", &doc! { "_id": 1, "customerId": (Value::Double(1.0)) });
    update(&mut client, "customers", &doc! { "_id": 1 }, &doc! { "$set": { "name": "x" } });
    assert_eq!(text(&find(&mut client, "orders", 1), "customer.name"), Some("x"));
}
