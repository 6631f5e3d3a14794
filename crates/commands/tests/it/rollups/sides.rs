//! What happens around a roll-up: chains, other keys than `_id`, many parents, replaced and dropped
//! collections, damage, numbers that `$sum` would round.

use super::oracle::assert_exact;
use super::{assert_no_drift, declared, delete, insert, one, product, review, shop, update};
use crate::{Client, Server, at, code, number};
use quire_document::{ArrayBuf, Decimal128, DocBuf, Value, doc};
use quire_storage::{CommitOptions, Mode, Page, ScanRequest, Space, begin};
use std::sync::Arc;

fn collmod(client: &mut Client, collection: &str, pattern: &DocBuf) -> DocBuf {
    client.run(doc! { "collMod": collection, "patterns": [pattern], "$db": "test" })
}

/// Waits until no pattern of a collection has work left.
pub fn settle(server: &Server, client: &mut Client, collection: &str, name: &str) {
    let jobs = server.0.start_jobs().unwrap();
    loop {
        let stats = client.works(doc! { "collStats": collection, "$db": "test" });
        if number(&stats, &format!("patterns.{name}.lag.tasks")) == Some(0) {
            break;
        }
        std::thread::park_timeout(std::time::Duration::from_millis(2));
    }
    drop(jobs);
}

/// A total of what a reference copies, and a total of totals.
#[test]
fn patterns_in_a_chain_follow_in_one_commit() {
    let server = Server::new();
    let mut client = server.client(1);
    client.works(insert("goods", &doc! { "_id": "pen", "price": 3 }));
    let copy = doc! {
        "name": "price", "type": "reference", "from": "goods", "localField": "good",
        "as": "copy", "fields": { "price": "sync" }
    };
    let of_lines = doc! {
        "name": "total", "type": "rollup", "from": "lines", "foreignField": "order",
        "set": { "total": { "$sum": "$copy.price" } }
    };
    let of_orders = doc! {
        "name": "spent", "type": "rollup", "from": "orders", "foreignField": "customer",
        "set": { "spent": { "$sum": "$total" }, "largest": { "$max": "$total" } }
    };
    for (collection, pattern) in [("lines", copy), ("orders", of_lines), ("customers", of_orders)] {
        client.works(doc! { "create": collection, "patterns": [&pattern], "$db": "test" });
    }
    client.works(insert("customers", &doc! { "_id": 1 }));
    for order in [10, 11] {
        client.works(insert("orders", &doc! { "_id": order, "customer": 1 }));
    }
    for (id, order) in [(1, 10), (2, 10), (3, 11)] {
        client.works(insert("lines", &doc! { "_id": id, "order": order, "good": "pen" }));
    }
    let customer = one(&mut client, "customers", &doc! {});
    assert_eq!((number(&customer, "spent"), number(&customer, "largest")), (Some(9), Some(6)));
    client.works(update("goods", &doc! {}, &doc! { "$set": { "price": 5 } }));
    let customer = one(&mut client, "customers", &doc! {});
    assert_eq!((number(&customer, "spent"), number(&customer, "largest")), (Some(15), Some(10)));
    client.works(delete("lines", &doc! { "_id": 2 }));
    let customer = one(&mut client, "customers", &doc! {});
    assert_eq!((number(&customer, "spent"), number(&customer, "largest")), (Some(10), Some(5)));
    let circle = doc! {
        "name": "circle", "type": "rollup", "from": "customers", "foreignField": "favourite",
        "set": { "price": { "$max": "$spent" } }
    };
    assert_eq!(code(&collmod(&mut client, "goods", &circle)), 72, "a circle");
}

/// Parents are found by another field than `_id`; several can have the same value.
#[test]
fn parents_have_other_keys_and_change_them() {
    let server = Server::new();
    let mut client = server.client(1);
    let pattern = doc! {
        "name": "sales", "type": "rollup", "from": "sales", "localField": "sku",
        "foreignField": "item.sku", "set": { "sold": { "$sum": "$item.count" } }
    };
    client.works(doc! { "create": "goods", "patterns": [&pattern], "$db": "test" });
    for (id, sku) in [(1, "x"), (2, "x"), (3, "y")] {
        client.works(insert("goods", &doc! { "_id": id, "sku": sku }));
    }
    for (id, sku, count) in [(1, "x", 2), (2, "x", 3), (3, "y", 7)] {
        let item = doc! { "sku": sku, "count": count };
        client.works(insert("sales", &doc! { "_id": id, "item": &item }));
    }
    let sold =
        |client: &mut Client, id: i32| number(&one(client, "goods", &doc! { "_id": id }), "sold");
    assert_eq!([1, 2, 3].map(|id| sold(&mut client, id)), [Some(5), Some(5), Some(7)]);
    client.works(update("goods", &doc! { "_id": 2 }, &doc! { "$set": { "sku": "y" } }));
    client.works(update("goods", &doc! { "_id": 3 }, &doc! { "$unset": { "sku": 1 } }));
    assert_eq!([1, 2, 3].map(|id| sold(&mut client, id)), [Some(5), Some(7), Some(0)]);
    let index = doc! { "dropIndexes": "goods", "index": "sku_1", "$db": "test" };
    assert_eq!(code(&client.run(index)), 72, "the pattern needs it");
}

/// Beyond `maxFanout` a job writes the parents; the end is the same.
#[test]
fn many_parents_of_one_value_are_left_to_a_job() {
    let server = Server::new();
    let mut client = server.client(1);
    let pattern = doc! {
        "name": "rate", "type": "rollup", "from": "rates", "localField": "currency",
        "foreignField": "currency", "set": { "rate": { "$last": "$rate" } }, "maxFanout": 5
    };
    client.works(doc! { "create": "prices", "patterns": [&pattern], "$db": "test" });
    let prices: Vec<DocBuf> = (0..30).map(|id| doc! { "_id": id, "currency": "EUR" }).collect();
    let prices: ArrayBuf = prices.iter().collect();
    client.works(doc! { "insert": "prices", "documents": &prices, "$db": "test" });
    client.works(insert("rates", &doc! { "_id": 1, "currency": "EUR", "rate": 7 }));
    let stats = client.works(doc! { "collStats": "prices", "$db": "test" });
    assert_eq!(number(&stats, "patterns.rate.lag.tasks"), Some(1));
    settle(&server, &mut client, "prices", "rate");
    let wrong = client.works(doc! {
        "count": "prices", "query": { "rate": { "$ne": 7 } }, "$db": "test"
    });
    assert_eq!(number(&wrong, "n"), Some(0));
}

/// An insert of many children commits before its derived writes are too many for one commit.
#[test]
fn many_children_at_once_leave_nothing_to_a_job() {
    let (_server, mut client) = shop();
    let products: Vec<DocBuf> = (0..1100).map(|id| doc! { "_id": id }).collect();
    let products: ArrayBuf = products.iter().collect();
    client.works(doc! { "insert": "products", "documents": &products, "$db": "test" });
    let reviews: Vec<DocBuf> =
        (0..1100).map(|id| doc! { "_id": id, "product": id, "stars": 1 }).collect();
    let reviews: ArrayBuf = reviews.iter().collect();
    client.works(doc! { "insert": "reviews", "documents": &reviews, "$db": "test" });
    let all = doc! { "q": {}, "u": { "$set": { "stars": 2 } }, "multi": true };
    client.works(doc! { "update": "reviews", "updates": [&all], "$db": "test" });
    let right = client.works(doc! { "count": "products", "query": { "sum": 2 }, "$db": "test" });
    assert_eq!(number(&right, "n"), Some(1100));
    let stats = client.works(doc! { "collStats": "products", "$db": "test" });
    assert_eq!(number(&stats, "patterns.reviews.lag.tasks"), Some(0));
}

/// `$out` to the children, their drop and their rename.
#[test]
fn other_children_build_the_pattern_anew() {
    let (server, mut client) = shop();
    client.works(insert("products", &doc! { "_id": "a" }));
    client.works(insert("reviews", &review(1, "a", 4, 1)));
    for id in 5..8 {
        client.works(insert("import", &review(id, "a", 2, id)));
    }
    let out = quire_document::array![{ "$out": "reviews" }];
    client.works(doc! { "aggregate": "import", "pipeline": &out, "cursor": {}, "$db": "test" });
    settle(&server, &mut client, "products", "reviews");
    assert_exact(&mut client, "$out");
    client.works(insert("reviews", &review(9, "a", 5, 9)));
    assert_exact(&mut client, "a write after $out");
    client.works(doc! {
        "renameCollection": "test.reviews", "to": "test.opinions", "$db": "admin"
    });
    client.works(insert("opinions", &review(10, "a", 5, 9)));
    assert_eq!(number(&product(&mut client, "a"), "count"), Some(5));
    client.works(doc! { "drop": "opinions", "$db": "test" });
    settle(&server, &mut client, "products", "reviews");
    assert_eq!(number(&product(&mut client, "a"), "count"), Some(0));
    let valid = client.works(doc! { "validate": "products", "patterns": true, "$db": "test" });
    assert_eq!(number(&valid, "patterns.reviews.drift"), Some(0));
}

/// Sums don't depend on the order, and nothing is lost beside a large number.
#[test]
fn sums_are_exact() {
    let (_server, mut client) = shop();
    client.works(insert("products", &doc! { "_id": "a" }));
    let mut add = |id: i32, stars: Value<'_>| {
        let review = doc! { "_id": id, "product": "a", "stars": stars };
        client.works(insert("reviews", &review));
        let product = product(&mut client, "a");
        format!("{:?}", product.get("sum").unwrap())
    };
    assert_eq!(add(1, Value::Double(1e100)), "Double(1e100)");
    assert_eq!(add(2, Value::Double(0.1)), "Double(1e100)");
    assert_eq!(add(3, Value::Double(-1e100)), "Double(0.1)");
    assert_eq!(add(4, Value::Double(0.2)), "Double(0.30000000000000004)");
    let decimal = |text: &str| Value::Decimal(Decimal128::parse(text).unwrap());
    add(5, decimal("1.10"));
    client.works(delete("reviews", &doc! { "_id": { "$lt": 5 } }));
    let sum = product(&mut client, "a");
    assert_eq!(format!("{:?}", sum.get("sum").unwrap()), format!("{:?}", decimal("1.10")));
    client.works(insert("reviews", &doc! { "_id": 6, "product": "a", "stars": (f64::NAN) }));
    client.works(delete("reviews", &doc! { "_id": 5 }));
    let sum = product(&mut client, "a");
    assert!(matches!(sum.get("sum"), Some(Value::Double(sum)) if sum.is_nan()));
    client.works(delete("reviews", &doc! { "_id": 6 }));
    let sum = product(&mut client, "a");
    assert!(matches!(sum.get("sum"), Some(Value::Int32(0))), "{sum:?}");
}

/// A stored group that is lost or damaged costs a computation, and the check reports it.
#[test]
fn damaged_groups_are_found_and_computed_again() {
    let (server, mut client) = shop();
    client.works(insert("products", &doc! { "_id": "a" }));
    client.works(insert("reviews", &review(1, "a", 4, 1)));
    let engine = server.0.store().engine();
    let mut page = Page::default();
    let request = ScanRequest::new(Space::Meta, b"r", b"s");
    engine.snapshot().unwrap().scan(&request, &mut page).unwrap();
    assert_eq!(page.rows.len(), 1);
    let key = page.rows[0].0.clone();
    let mut txn = begin(engine, Mode::Write).unwrap();
    txn.put(Space::Meta, key, b"damaged".to_vec().into()).unwrap();
    txn.commit(CommitOptions::buffered()).unwrap();
    let found = |repair| quire_collections::check(server.0.store(), repair).unwrap().findings.len();
    assert_eq!(found(false), 1);
    client.works(insert("reviews", &review(2, "a", 5, 2)));
    assert_exact(&mut client, "after the damage");
    assert_eq!(found(false), 0, "the write has mended it");
    assert_no_drift(&mut client);
}

/// Groups leave with their pattern and with their collections.
#[test]
fn no_group_outlives_its_pattern() {
    let (server, mut client) = shop();
    let rows = |server: &Server| {
        let engine = Arc::clone(server.0.store().engine());
        engine.maintenance(quire_storage::Maintenance::Reclaim).unwrap();
        let mut page = Page::default();
        let request = ScanRequest::new(Space::Meta, b"r", b"s");
        engine.snapshot().unwrap().scan(&request, &mut page).unwrap();
        page.rows.len()
    };
    client.works(insert("products", &doc! { "_id": "a" }));
    client.works(insert("reviews", &review(1, "a", 4, 1)));
    client.works(insert("reviews", &review(2, "nobody", 4, 1)));
    assert_eq!(rows(&server), 1, "a value without a parent has none");
    let remove = doc! { "name": "reviews", "remove": true };
    client.works(doc! { "collMod": "products", "patterns": [&remove], "$db": "test" });
    assert_eq!(rows(&server), 0);
    assert_eq!(code(&collmod(&mut client, "products", &declared())), 0);
    assert_eq!(rows(&server), 1);
    client.works(doc! { "drop": "reviews", "$db": "test" });
    assert_eq!(rows(&server), 0);
    let findings = quire_collections::check(server.0.store(), false).unwrap().findings;
    assert!(findings.is_empty(), "{findings:?}");
}

/// Drift is found and mended.
#[test]
fn validate_finds_and_mends_drift() {
    let (server, mut client) = shop();
    client.works(insert("products", &doc! { "_id": "a" }));
    client.works(insert("reviews", &review(1, "a", 4, 1)));
    let store = server.0.store();
    let namespace = quire_catalog::Namespace::parse("test.products").unwrap();
    let options = CommitOptions::buffered();
    let interrupt = quire_storage::Interrupt::new();
    store
        .write(&options, &interrupt, |writer| {
            let collection = writer.collection(&namespace).unwrap();
            let found = writer.view().get_by_id(&collection, Value::String("a"))?.unwrap();
            let wrong = doc! { "_id": "a", "count": 77 };
            // As the server itself writes.
            writer.replace(&collection, found.id, found.doc.as_doc(), wrong.as_doc())
        })
        .unwrap();
    let validate = |repair: bool| {
        let mut command = doc! { "validate": "products", "patterns": true, "$db": "test" };
        if repair {
            command.append("repair", true);
        }
        command
    };
    let found = client.works(validate(false));
    assert_eq!(number(&found, "patterns.reviews.drift"), Some(1), "{found:?}");
    assert!(matches!(at(&found, "valid"), Some(Value::Bool(false))));
    client.works(validate(true));
    assert_no_drift(&mut client);
    assert_exact(&mut client, "mended");
}

/// `dryRun` says how many parents a change of one child reaches, and from how many children the values
/// of a parent are computed.
#[test]
fn a_dry_run_tells_the_fan_out() {
    let server = Server::new();
    let mut client = server.client(1);
    for id in ["a", "b", "c"] {
        client.works(insert("products", &doc! { "_id": id, "shop": 1 }));
    }
    for id in 0..9 {
        client.works(insert("reviews", &review(id, if id == 0 { "b" } else { "a" }, 3, id)));
    }
    client.works(insert("reviews", &doc! { "_id": 20, "product": "a", "hidden": true }));
    client.works(insert("reviews", &doc! { "_id": 21, "product": "gone" }));
    let dry_run = |client: &mut Client, pattern: &DocBuf| {
        client.works(doc! {
            "collMod": "products", "patterns": [pattern], "dryRun": true, "$db": "test"
        })
    };
    let cost = dry_run(&mut client, &super::declared());
    let told = |cost: &DocBuf, path: &str| number(cost, &format!("patterns.reviews.{path}"));
    assert_eq!(told(&cost, "documents"), Some(3));
    assert_eq!((told(&cost, "fanout.p50"), told(&cost, "fanout.max")), (Some(1), Some(1)));
    assert_eq!((told(&cost, "children.p50"), told(&cost, "children.max")), (Some(1), Some(8)));
    // Each of the three products of the shop gets what its only child gives.
    client.works(insert("visits", &doc! { "_id": 1, "shop": 1 }));
    let by_shop = doc! {
        "name": "reviews", "type": "rollup", "from": "visits", "localField": "shop",
        "foreignField": "shop", "set": { "visits": { "$count": {} } }
    };
    let cost = dry_run(&mut client, &by_shop);
    assert_eq!((told(&cost, "fanout.max"), told(&cost, "children.max")), (Some(3), Some(1)));
    assert!(product(&mut client, "a").get("visits").is_none());
}
