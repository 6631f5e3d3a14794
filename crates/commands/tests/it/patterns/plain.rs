//! What `quire eject` prints: the aggregations of a plain MongoDB find nothing where the engine has kept a
//! pattern, and write what the engine would.

use super::{Client, Server, at, delete, doc, insert, orders, rows, update, with};
use quire_catalog::patterns::Pattern;
use quire_document::{ArrayBuf, DocBuf, Value};

/// Runs an aggregation over a collection.
fn aggregate(client: &mut Client, collection: &str, stages: &[DocBuf]) -> Vec<DocBuf> {
    if stages.is_empty() {
        return Vec::new();
    }
    let pipeline = ArrayBuf::build(|out| {
        for stage in stages {
            out.push(stage);
        }
    });
    rows(&client.works(doc! {
        "aggregate": collection, "pipeline": Value::Array(pipeline.as_array()),
        "cursor": { "batchSize": 1000 }, "$db": "shop"
    }))
}

fn all(client: &mut Client, collection: &str) -> Vec<DocBuf> {
    aggregate(client, collection, &[doc! { "$sort": { "_id": 1 } }])
}

/// Asserts that the aggregations agree with the engine about a pattern, and, after the pattern is removed
/// and `damage` done, that they write what was there.
fn agrees(client: &mut Client, collection: &str, definition: &DocBuf, damage: &DocBuf) {
    let pattern = Pattern::parse("test", definition.as_doc()).unwrap();
    let plain = pattern.plain(collection);
    assert_eq!(aggregate(client, collection, &plain.compute), [] as [DocBuf; 0]);
    assert_eq!(aggregate(client, collection, &plain.refused), [] as [DocBuf; 0]);
    let kept = all(client, collection);
    assert!(!kept.is_empty());
    let removal = doc! { "name": pattern.name.as_str(), "remove": true };
    client.works(doc! { "collMod": collection, "patterns": [&removal], "$db": "shop" });
    let statement = doc! { "q": {}, "u": damage, "multi": true };
    client.works(doc! { "update": collection, "updates": [&statement], "$db": "shop" });
    assert!(!aggregate(client, collection, &plain.compute).is_empty(), "{definition:?}");
    let stages: Vec<DocBuf> = plain.compute.iter().chain(&plain.write).cloned().collect();
    aggregate(client, collection, &stages);
    assert_eq!(aggregate(client, collection, &plain.compute), [] as [DocBuf; 0]);
    let repaired = all(client, collection);
    let print = |docs: &[DocBuf]| -> Vec<String> {
        docs.iter().map(|doc| quire_document::literal::print(doc.as_doc())).collect()
    };
    assert_eq!(print(&repaired), print(&kept), "{definition:?}");
}

fn customers(definition: &DocBuf) -> (Server, Client) {
    let server = Server::new();
    let mut client = server.client(1);
    for id in 1..=3 {
        let name = format!("c{id}");
        let doc = doc! { "_id": id, "name": name.as_str(), "address": "street" };
        insert(&mut client, "customers", &doc);
    }
    client.works(doc! { "create": "orders", "patterns": [definition], "$db": "shop" });
    (server, client)
}

#[test]
fn a_reference_is_the_same_in_plain_aggregations() {
    let lenient = with(&orders(), doc! { "onMissing": "null", "onDelete": "setNull" });
    let (_server, mut client) = customers(&lenient);
    for order in [
        doc! { "_id": 1, "customerId": 1, "customer": { "own": 1 } },
        doc! { "_id": 2, "customerId": 2.0 },
        doc! { "_id": 3, "customerId": Value::Null },
        doc! { "_id": 4, "customerId": [1, 9, 3] },
        doc! { "_id": 5 },
        doc! { "_id": 6, "customerId": 9 },
        doc! { "_id": 7, "customerId": [] },
    ] {
        insert(&mut client, "orders", &order);
    }
    update(&mut client, "customers", &doc! { "_id": 1 }, &doc! { "$set": { "name": "new" } });
    delete(&mut client, "customers", &doc! { "_id": 2 });
    let pattern = Pattern::parse("test", lenient.as_doc()).unwrap();
    let plain = pattern.plain("orders");
    assert_eq!(aggregate(&mut client, "orders", &plain.compute), [] as [DocBuf; 0]);
    // No operator damages the copies of an array and of a single reference at once.
    delete(&mut client, "orders", &doc! { "_id": { "$in": [4, 7] } });
    agrees(&mut client, "orders", &lenient, &doc! { "$set": { "customer.name": "wrong" } });
}

#[test]
fn a_reference_in_elements_is_the_same_in_plain_aggregations() {
    let lines = doc! {
        "localField": "lines.of.customerId", "as": "lines.of.customer", "onMissing": "null",
        "fields": { "name": { "mode": "sync", "as": "n" }, "address": "snapshot" }
    };
    let lines = with(&orders(), lines);
    let (_server, mut client) = customers(&lines);
    for order in [
        doc! { "_id": 1, "lines": [{ "of": { "customerId": 1 }, "q": 1 }, { "of": [{ "customerId": 2 }, {}] }] },
        doc! { "_id": 2, "lines": { "of": { "customerId": 3 } } },
        doc! { "_id": 3, "lines": 7 },
        doc! { "_id": 4 },
    ] {
        insert(&mut client, "orders", &order);
    }
    update(&mut client, "customers", &doc! { "_id": 2 }, &doc! { "$set": { "name": "new" } });
    let plain = Pattern::parse("test", lines.as_doc()).unwrap().plain("orders");
    assert_eq!(aggregate(&mut client, "orders", &plain.compute), [] as [DocBuf; 0]);
    delete(&mut client, "orders", &doc! { "_id": { "$ne": 1 } });
    let damage = doc! { "$set": { "lines.0.of.customer.n": "wrong" } };
    agrees(&mut client, "orders", &lines, &damage);
}

#[test]
fn what_a_reference_refuses_is_found_in_plain_aggregations() {
    let key = doc! { "name": "key", "type": "reference", "from": "customers", "localField": "ids" };
    let (_server, mut client) = customers(&key);
    insert(&mut client, "orders", &doc! { "_id": 1, "ids": [1, 2] });
    insert(&mut client, "orders", &doc! { "_id": 2, "ids": 3 });
    let plain = Pattern::parse("test", key.as_doc()).unwrap().plain("orders");
    assert!(plain.compute.is_empty() && plain.write.is_empty());
    assert_eq!(aggregate(&mut client, "orders", &plain.refused), [] as [DocBuf; 0]);
    let removal = doc! { "name": "key", "remove": true };
    client.works(doc! { "collMod": "orders", "patterns": [&removal], "$db": "shop" });
    for order in [doc! { "_id": 3, "ids": [1, 9] }, doc! { "_id": 4, "ids": 9 }] {
        insert(&mut client, "orders", &order);
    }
    let refused = aggregate(&mut client, "orders", &plain.refused);
    assert_eq!(refused, [doc! { "_id": 3 }, doc! { "_id": 4 }]);
}

/// What becomes of documents whose referred document is deleted.
#[test]
fn references_to_nothing_become_null_as_the_engine_makes_them() {
    for (local, into) in [("customerId", "customer"), ("lines.of.customerId", "lines.of.customer")]
    {
        let more = doc! {
            "localField": local, "as": into, "onMissing": "null", "onDelete": "setNull"
        };
        let definition = with(&orders(), more);
        let (_server, mut client) = customers(&definition);
        let documents = [
            doc! { "_id": 1, "customerId": 1, "lines": [{ "of": { "customerId": 1 }, "q": 1 }, 4] },
            doc! { "_id": 2, "customerId": [2, 1.0, 1], "lines": { "of": [{ "customerId": [1, 3] }] } },
            doc! { "_id": 3, "customerId": 2, "lines": [{ "of": [{ "customerId": 2 }, {}] }, {}] },
            doc! { "_id": 4, "lines": 7 },
        ];
        for document in &documents {
            insert(&mut client, "orders", document);
        }
        let before = all(&mut client, "orders");
        delete(&mut client, "customers", &doc! { "_id": 1 });
        let wanted = all(&mut client, "orders");
        assert_ne!(before, wanted);
        client.works(doc! {
            "collMod": "orders", "patterns": [{ "name": "customer", "remove": true }], "$db": "shop"
        });
        delete(&mut client, "orders", &doc! {});
        for document in &before {
            insert(&mut client, "orders", document);
        }
        let plain = Pattern::parse("test", definition.as_doc()).unwrap().plain("orders");
        let stages: ArrayBuf = plain.release.iter().collect();
        let lost = doc! { local: { "$in": [1] } };
        let statement = doc! { "q": &lost, "u": &stages, "multi": true };
        client.works(doc! {
            "update": "orders", "updates": [&statement], "let": { "gone": [1] }, "$db": "shop"
        });
        aggregate(&mut client, "orders", &[plain.compute, plain.write].concat());
        assert_eq!(all(&mut client, "orders"), wanted, "{local}");
    }
}

#[test]
fn a_roll_up_is_the_same_in_plain_aggregations() {
    let server = Server::new();
    let mut client = server.client(1);
    let rollup = doc! {
        "name": "reviews", "type": "rollup", "from": "reviews", "foreignField": "product",
        "match": { "hidden": { "$ne": true } },
        "set": {
            "r.count": { "$count": {} }, "r.sum": { "$sum": "$stars" }, "r.best": { "$max": "$stars" },
            "r.avg": { "$avg": "$stars" }, "r.ids": { "$push": "$_id" },
            "r.users": { "$addToSet": "$user" }, "stars.5": { "$sum": { "$cond": [
                { "$eq": ["$stars", 5] }, 1, 0
            ] } },
            "recent": { "$topN": { "n": 2, "sortBy": { "at": -1 }, "output": "$_id" } }
        }
    };
    client.works(doc! { "create": "products", "patterns": [&rollup], "$db": "shop" });
    for id in ["a", "b", "c"] {
        insert(&mut client, "products", &doc! { "_id": id, "own": 1 });
    }
    for id in 0..12 {
        let product = if id % 3 == 0 { "b" } else { "a" };
        let review = doc! {
            "_id": id, "product": product, "stars": (id % 6), "at": (100 - id), "user": (id % 2),
            "hidden": (id == 5)
        };
        insert(&mut client, "reviews", &review);
    }
    delete(&mut client, "reviews", &doc! { "_id": 4 });
    agrees(&mut client, "products", &rollup, &doc! { "$set": { "r.sum": 99, "recent": 1 } });
    assert_eq!(at(&all(&mut client, "products")[0], "own").unwrap().exact_i64(), Some(1));
}

#[test]
fn what_is_no_counter_is_found_in_plain_aggregations() {
    let server = Server::new();
    let mut client = server.client(1);
    for page in [doc! { "_id": 1, "n": 5 }, doc! { "_id": 2 }, doc! { "_id": 3, "n": "x" }] {
        insert(&mut client, "pages", &page);
    }
    let counter = doc! { "name": "n", "type": "counter", "path": "n" };
    let plain = Pattern::parse("test", counter.as_doc()).unwrap().plain("pages");
    assert_eq!(aggregate(&mut client, "pages", &plain.refused), [doc! { "_id": 3 }]);
}
