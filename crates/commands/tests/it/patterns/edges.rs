//! References at their edges: elements that move, what stands in the way of copies, patterns that read
//! what others write, and collections that are replaced.

use super::{delete, find, insert, orders, shop, update, with, write_code};
use crate::{Client, at, code, number, text};
use quire_document::{ArrayBuf, DocBuf, Value, doc};

fn validate(client: &mut Client, pattern: &str) -> DocBuf {
    let reply = client.works(doc! { "validate": "orders", "patterns": true, "$db": "shop" });
    let path = format!("patterns.{pattern}");
    at(&reply, &path).unwrap().as_document().unwrap().to_owned()
}

fn state(client: &mut Client, collection: &str) -> DocBuf {
    let filter = doc! { "name": collection };
    let reply = client.works(doc! { "listCollections": 1, "filter": &filter, "$db": "shop" });
    at(&reply, "cursor.firstBatch.0.info.patterns.0").unwrap().as_document().unwrap().to_owned()
}

/// Returns the reply of an `$out` of one document with this `_id` and name over the customers.
fn replace_customers(client: &mut Client, id: i32) -> DocBuf {
    let source = doc! { "_id": id, "name": "other", "address": "other" };
    client.run(doc! { "drop": "source", "$db": "shop" });
    insert(client, "source", &source);
    client.run(doc! {
        "aggregate": "source", "pipeline": [{ "$out": "customers" }], "cursor": {}, "$db": "shop"
    })
}

/// A new element with the same reference took the snapshot of the one behind it.
#[test]
fn an_element_keeps_its_snapshot_where_it_moves() {
    let lines = doc! { "localField": "lines.customerId", "as": "lines.customer" };
    let (_server, mut client) = shop(&with(&orders(), lines));
    let old = doc! { "_id": 1, "lines": [{ "customerId": 1, "line": "old" }] };
    insert(&mut client, "orders", &old);
    let moved = doc! { "$set": { "address": "elsewhere" } };
    update(&mut client, "customers", &doc! { "_id": 1 }, &moved);
    let first = doc! { "$each": [{ "customerId": 1, "line": "new" }], "$position": 0 };
    update(&mut client, "orders", &doc! { "_id": 1 }, &doc! { "$push": { "lines": &first } });
    let shown = |client: &mut Client| {
        let order = find(client, "orders", 1);
        let lines = at(&order, "lines").unwrap().as_array().unwrap();
        let line = |line: Value<'_>| {
            let line = line.as_document().unwrap().to_owned();
            let address = text(&line, "customer.address").unwrap_or_default().to_owned();
            format!("{} {address}", text(&line, "line").unwrap())
        };
        lines.iter().map(line).collect::<Vec<_>>()
    };
    assert_eq!(shown(&mut client), ["new elsewhere", "old street 1"]);
    let sorted = doc! { "$push": { "lines": { "$each": [], "$sort": { "line": -1 } } } };
    update(&mut client, "orders", &doc! { "_id": 1 }, &sorted);
    assert_eq!(shown(&mut client), ["old street 1", "new elsewhere"]);
    // A client that sends the elements back without their copies gets them by their order.
    let bare = doc! { "$set": { "lines": [
        { "customerId": 1, "line": "a" }, { "customerId": 1, "line": "b" }
    ] } };
    update(&mut client, "orders", &doc! { "_id": 1 }, &bare);
    assert_eq!(shown(&mut client), ["a street 1", "b elsewhere"]);
}

#[test]
fn a_value_in_place_of_the_copies_is_a_write_of_them() {
    let (_server, mut client) = shop(&with(&orders(), doc! { "onClientWrite": "reject" }));
    insert(&mut client, "orders", &doc! { "_id": 1, "customerId": 1 });
    let set = |value: Value<'_>| doc! { "$set": { "customer": value } };
    let one = doc! { "_id": 1 };
    let refused = update(&mut client, "orders", &one, &set(Value::Int32(5)));
    assert_eq!(write_code(&refused), 121);
    assert_eq!(text(&refused, "writeErrors.0.errInfo.path"), Some("customer.name"));
    // Mappers leave the field away or send null.
    for update_ in [doc! { "$unset": { "customer": 1 } }, set(Value::Null)] {
        assert_eq!(write_code(&update(&mut client, "orders", &one, &update_)), 0);
        assert_eq!(text(&find(&mut client, "orders", 1), "customer.name"), Some("c1"));
    }
}

/// The references of a collection were completed before its roll-ups, so a document that was inserted
/// behind its children referred to nothing.
#[test]
fn a_pattern_reads_what_another_one_of_its_collection_writes() {
    let favourite = with(&orders(), doc! { "localField": "last" });
    let (_server, mut client) = shop(&favourite);
    let visits = doc! {
        "name": "last", "type": "rollup", "from": "visits", "foreignField": "order",
        "set": { "last": { "$max": "$customer" } }
    };
    client.works(doc! { "collMod": "orders", "patterns": [&visits], "$db": "shop" });
    insert(&mut client, "visits", &doc! { "_id": 1, "order": 1, "customer": 2 });
    insert(&mut client, "orders", &doc! { "_id": 1 });
    assert_eq!(text(&find(&mut client, "orders", 1), "customer.name"), Some("c2"));
    insert(&mut client, "visits", &doc! { "_id": 2, "order": 1, "customer": 3 });
    assert_eq!(text(&find(&mut client, "orders", 1), "customer.name"), Some("c3"));
    for pattern in ["customer", "last"] {
        assert_eq!(number(&validate(&mut client, pattern), "drift"), Some(0), "{pattern}");
    }
}

/// An element of an array in the referred field found its document, but no change of it reached the
/// copies.
#[test]
fn an_array_in_the_referred_field_names_no_document() {
    let by_code = with(&orders(), doc! { "foreignField": "codes", "onMissing": "null" });
    let (_server, mut client) = shop(&orders());
    let index = doc! { "key": { "codes": 1 }, "name": "codes_1", "unique": true };
    client.works(doc! { "dropIndexes": "customers", "index": "*", "$db": "shop" });
    delete(&mut client, "customers", &doc! {});
    client.works(doc! { "createIndexes": "customers", "indexes": [&index], "$db": "shop" });
    let codes = ArrayBuf::build(|out| {
        out.push(5);
        out.push(8);
    });
    let customer = doc! { "_id": 1, "codes": Value::Array(codes.as_array()), "name": "c1" };
    insert(&mut client, "customers", &customer);
    client.works(doc! { "collMod": "orders", "patterns": [&by_code], "$db": "shop" });
    insert(&mut client, "orders", &doc! { "_id": 1, "customerId": 5 });
    assert_eq!(text(&find(&mut client, "orders", 1), "customer.name"), None);
    let one = doc! { "$set": { "codes": 5 } };
    update(&mut client, "customers", &doc! { "_id": 1 }, &one);
    assert_eq!(text(&find(&mut client, "orders", 1), "customer.name"), Some("c1"));
    assert_eq!(number(&validate(&mut client, "customer"), "drift"), Some(0));
}

/// With `keep` a reference outlives its document: that is no drift, and does not stop a build.
#[test]
fn kept_references_are_no_problem_of_the_pattern() {
    let kept = with(&orders(), doc! { "onDelete": "keep" });
    let (_server, mut client) = shop(&kept);
    insert(&mut client, "orders", &doc! { "_id": 1, "customerId": 1 });
    delete(&mut client, "customers", &doc! { "_id": 1 });
    assert_eq!(number(&validate(&mut client, "customer"), "drift"), Some(0));
    let again = with(&kept, doc! { "maxFanout": 9 });
    client.works(doc! { "collMod": "orders", "patterns": [&again], "$db": "shop" });
    assert_eq!(text(&state(&mut client, "orders"), "state"), Some("ready"));
    assert_eq!(text(&find(&mut client, "orders", 1), "customer.name"), Some("c1"));
    // A new reference must still lead to a document.
    assert_eq!(
        write_code(&insert(&mut client, "orders", &doc! { "_id": 2, "customerId": 1 })),
        121
    );
}

/// `$out` over the referred collection had left the pattern stopped, with references to nothing.
#[test]
fn a_collection_that_documents_refer_to_is_replaced_as_the_pattern_says() {
    let (server, mut client) = shop(&orders());
    insert(&mut client, "orders", &doc! { "_id": 1, "customerId": 1 });
    let refused = replace_customers(&mut client, 7);
    assert_eq!(code(&refused), 20, "{refused:?}");
    let message = text(&refused, "errmsg").unwrap();
    assert!(message.contains("cannot replace shop.customers"), "{message}");
    assert!(
        message.contains("shop.orders refer to 1") && message.contains("'customer'"),
        "{message}"
    );
    let rename = doc! {
        "renameCollection": "shop.source", "to": "shop.customers", "dropTarget": true, "$db": "admin"
    };
    assert_eq!(code(&client.run(rename)), 20);
    assert_eq!(text(&state(&mut client, "orders"), "state"), Some("ready"));
    // What is written after the refusal is checked as before.
    assert_eq!(
        write_code(&insert(&mut client, "orders", &doc! { "_id": 2, "customerId": 7 })),
        121
    );
    // Who replaces all that is referred to may do so.
    assert_eq!(code(&replace_customers(&mut client, 1)), 0);
    super::random::settle(&server, &mut client);
    assert_eq!(text(&find(&mut client, "orders", 1), "customer.name"), Some("other"));
    delete(&mut client, "orders", &doc! {});
    assert_eq!(code(&replace_customers(&mut client, 7)), 0);
    super::random::settle(&server, &mut client);
    assert_eq!(text(&state(&mut client, "orders"), "state"), Some("ready"));
    assert_eq!(write_code(&insert(&mut client, "orders", &doc! { "_id": 2, "customerId": 7 })), 0);
}

/// A collection that takes the place of the one that its pattern reads, reads itself from then on. What
/// `restrict` forbids was not looked for there, and a circle was made without a word.
#[test]
fn a_collection_that_takes_the_name_that_it_reads_reads_itself() {
    let over = doc! {
        "renameCollection": "shop.orders", "to": "shop.customers", "dropTarget": true, "$db": "admin"
    };
    for on_delete in ["restrict", "setNull"] {
        let (server, mut client) = shop(&with(&orders(), doc! { "onDelete": on_delete }));
        insert(&mut client, "orders", &doc! { "_id": 1, "customerId": 1, "name": "one" });
        insert(&mut client, "orders", &doc! { "_id": 2, "customerId": 3, "name": "two" });
        if on_delete == "restrict" {
            let refused = client.run(over.clone());
            assert_eq!(code(&refused), 20, "{refused:?}");
            assert!(text(&refused, "errmsg").unwrap().contains("refer to 3"), "{refused:?}");
            update(
                &mut client,
                "orders",
                &doc! { "_id": 2 },
                &doc! { "$set": { "customerId": 1 } },
            );
        }
        client.works(over.clone());
        super::random::settle(&server, &mut client);
        let two = find(&mut client, "customers", 2);
        let expected = if on_delete == "restrict" { Some("one") } else { None };
        assert_eq!(text(&two, "customer.name"), expected, "{two:?}");
        update(&mut client, "customers", &doc! { "_id": 1 }, &doc! { "$set": { "name": "new" } });
        insert(&mut client, "customers", &doc! { "_id": 4, "customerId": 1 });
        for id in [1, 4] {
            let found = find(&mut client, "customers", id);
            assert_eq!(text(&found, "customer.name"), Some("new"), "{id}");
        }
        let valid = client.works(doc! { "validate": "customers", "patterns": true, "$db": "shop" });
        assert_eq!(number(&valid, "patterns.customer.drift"), Some(0), "{valid:?}");
    }
    let circle = doc! {
        "fields": { "customer.name": { "mode": "sync", "as": "name" } }, "onDelete": "keep"
    };
    let (_server, mut client) = shop(&with(&orders(), circle));
    let refused = client.run(over);
    assert_eq!(code(&refused), 72, "{refused:?}");
    assert!(text(&refused, "errmsg").unwrap().contains("circle"), "{refused:?}");
}

/// Documents that were there were taken for missing where the unique index was not.
#[test]
fn a_collection_that_a_pattern_cannot_read_does_not_take_its_name() {
    let (_server, mut client) = shop(&orders());
    let unique = doc! { "key": { "code": 1 }, "name": "code_1", "unique": true };
    client.works(doc! { "createIndexes": "goods", "indexes": [&unique], "$db": "shop" });
    let good = doc! {
        "name": "good", "type": "reference", "from": "goods", "localField": "code",
        "foreignField": "code", "as": "good", "fields": { "title": "sync" }, "onDelete": "setNull",
        "onMissing": "null"
    };
    client.works(doc! { "collMod": "orders", "patterns": [&good], "$db": "shop" });
    insert(&mut client, "goods", &doc! { "_id": 1, "code": "a", "title": "A" });
    insert(&mut client, "orders", &doc! { "_id": 1, "customerId": 1, "code": "a" });
    insert(&mut client, "source", &doc! { "_id": 7, "code": "a", "title": "B" });
    let over = doc! {
        "renameCollection": "shop.source", "to": "shop.goods", "dropTarget": true, "$db": "admin"
    };
    let refused = client.run(over.clone());
    assert_eq!(code(&refused), 72, "{refused:?}");
    assert_eq!(text(&find(&mut client, "orders", 1), "good.title"), Some("A"));
    client.works(doc! { "createIndexes": "source", "indexes": [&unique], "$db": "shop" });
    client.works(over);
    client.works(doc! { "drop": "goods", "$db": "shop" });
    let collated = doc! { "create": "goods", "collation": { "locale": "en" }, "$db": "shop" };
    assert_eq!(code(&client.run(collated)), 72);
    // A collection that was made anew has no index by which a document is found.
    insert(&mut client, "goods", &doc! { "_id": 9, "code": "b", "title": "B" });
    let refused = insert(&mut client, "orders", &doc! { "_id": 2, "customerId": 1, "code": "b" });
    assert_eq!(write_code(&refused), 27, "{refused:?}");
    client.works(doc! { "createIndexes": "goods", "indexes": [&unique], "$db": "shop" });
    insert(&mut client, "orders", &doc! { "_id": 2, "customerId": 1, "code": "b" });
    assert_eq!(text(&find(&mut client, "orders", 2), "good.title"), Some("B"));
}
