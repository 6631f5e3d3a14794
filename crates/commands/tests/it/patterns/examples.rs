//! The worked examples of references with the pattern declared: orders with their customer and products,
//! parts of products, snapshots.

use super::{declare, delete, find, insert, update, with, write_code};
use crate::{Client, Server, at, number, text};
use quire_document::{DocBuf, doc};

fn shop() -> (Server, Client) {
    let server = Server::new();
    let client = server.client(1);
    (server, client)
}

/// Returns a text of each element of an array.
fn texts(document: &DocBuf, array: &str, path: &str) -> Vec<String> {
    let elements = at(document, array).unwrap().as_array().unwrap().iter();
    let one = |element: DocBuf| text(&element, path).unwrap_or_default().to_owned();
    elements.map(|element| one(element.as_document().unwrap().to_owned())).collect()
}

fn set(client: &mut Client, collection: &str, id: i32, fields: &DocBuf) {
    let reply = update(client, collection, &doc! { "_id": id }, &doc! { "$set": fields });
    assert_eq!(number(&reply, "nModified"), Some(1), "{reply:?}");
}

/// S0-13: an order keeps the price of its moment, and follows the name of its user.
#[test]
fn an_extended_reference_keeps_the_price_and_follows_the_name() {
    let (_server, mut client) = shop();
    for (id, name, phone) in [(1, "Alice", "138"), (2, "Bob", "139")] {
        insert(&mut client, "users", &doc! { "_id": id, "name": name, "phone": phone });
    }
    insert(&mut client, "products", &doc! { "_id": 1, "title": "Phone", "price": 5999 });
    let user = doc! {
        "name": "user", "type": "reference", "from": "users", "localField": "user.id", "as": "user",
        "fields": { "name": "sync", "phone": "snapshot" }
    };
    let product = doc! {
        "name": "product", "type": "reference", "from": "products", "localField": "items.productId",
        "as": "items.product",
        "fields": { "title": "sync", "price": { "mode": "snapshot", "as": "priceAtOrder" } }
    };
    client.works(doc! { "create": "orders", "patterns": [&user, &product], "$db": "shop" });
    for (id, user) in [(1, 1), (2, 1), (3, 2)] {
        let order =
            doc! { "_id": id, "user": { "id": user }, "items": [{ "productId": 1, "n": 1 }] };
        assert_eq!(write_code(&insert(&mut client, "orders", &order)), 0);
    }
    set(&mut client, "products", 1, &doc! { "price": 6499, "title": "Phone 2" });
    set(&mut client, "users", 1, &doc! { "name": "Alicia", "phone": "000" });
    for (id, name, phone) in [(1, "Alicia", "138"), (2, "Alicia", "138"), (3, "Bob", "139")] {
        let order = find(&mut client, "orders", id);
        assert_eq!(
            (text(&order, "user.name"), text(&order, "user.phone")),
            (Some(name), Some(phone))
        );
        assert_eq!(number(&order, "items.0.product.priceAtOrder"), Some(5999));
        assert_eq!(text(&order, "items.0.product.title"), Some("Phone 2"));
    }
    // Orders are found by the copied field, with an index on it.
    let index = doc! { "key": { "user.name": 1 }, "name": "user.name_1" };
    client.works(doc! { "createIndexes": "orders", "indexes": [&index], "$db": "shop" });
    let find = doc! { "find": "orders", "filter": { "user.name": "Alicia" } };
    let plan =
        client.works(doc! { "explain": &find, "verbosity": "executionStats", "$db": "shop" });
    assert_eq!(number(&plan, "executionStats.totalDocsExamined"), Some(2));
    assert_eq!(number(&plan, "executionStats.nReturned"), Some(2));
}

/// S2-03 to S2-05: a product has the ids and the names of its parts; the rename of a part reaches every
/// product, also one that has it twice, and a sale of the part writes only the part.
#[test]
fn products_have_the_names_of_their_parts() {
    let (_server, mut client) = shop();
    for (id, name, quantity) in [(1, "#4 grommet", 94), (2, "fan", 3), (3, "power switch", 7)] {
        insert(&mut client, "parts", &doc! { "_id": id, "name": name, "quantity": quantity });
    }
    let parts = doc! {
        "name": "part", "type": "reference", "from": "parts", "localField": "parts.id", "as": "parts",
        "fields": { "name": "sync" }, "onDelete": "keep"
    };
    client.works(doc! { "create": "products", "patterns": [&parts], "$db": "shop" });
    let products = [
        doc! { "_id": 1, "parts": [{ "id": 1 }, { "id": 2 }, { "id": 3 }] },
        doc! { "_id": 2, "parts": [{ "id": 1 }, { "id": 2 }, { "id": 1 }] },
    ];
    for product in &products {
        assert_eq!(write_code(&insert(&mut client, "products", product)), 0);
    }
    let names =
        |client: &mut Client, id: i32| texts(&find(client, "products", id), "parts", "name");
    assert_eq!(names(&mut client, 1), ["#4 grommet", "fan", "power switch"]);
    set(&mut client, "parts", 1, &doc! { "name": "#5 grommet" });
    assert_eq!(names(&mut client, 1), ["#5 grommet", "fan", "power switch"]);
    assert_eq!(names(&mut client, 2), ["#5 grommet", "fan", "#5 grommet"]);
    // The index that the pattern has made finds the products of a part.
    let find_products = doc! { "find": "products", "filter": { "parts.id": 3 } };
    let plan = client
        .works(doc! { "explain": &find_products, "verbosity": "executionStats", "$db": "shop" });
    assert_eq!(number(&plan, "executionStats.totalDocsExamined"), Some(1));
    let before = client.works(doc! { "collStats": "products", "$db": "shop" });
    set(&mut client, "parts", 1, &doc! { "quantity": 93 });
    let after = client.works(doc! { "collStats": "products", "$db": "shop" });
    let derived = |stats: &DocBuf| number(stats, "patterns.part.derivedWrites");
    assert!(derived(&before).is_some(), "{before:?}");
    assert_eq!(derived(&before), derived(&after), "a sale writes one document");
    // A part that no longer exists keeps its last name.
    delete(&mut client, "parts", &doc! { "_id": 3 });
    assert_eq!(names(&mut client, 1), ["#5 grommet", "fan", "power switch"]);
}

/// S2-06: the name of the product is copied into its parts.
#[test]
fn parts_have_the_name_of_their_product() {
    let (_server, mut client) = shop();
    let index = doc! { "key": { "number": 1 }, "name": "number_1", "unique": true };
    client.works(doc! { "createIndexes": "products", "indexes": [&index], "$db": "shop" });
    for (id, code, name) in [(1, 1234, "smoke shifter"), (2, 5678, "fan")] {
        insert(&mut client, "products", &doc! { "_id": id, "number": code, "name": name });
    }
    let product = doc! {
        "name": "product", "type": "reference", "from": "products", "localField": "product.number",
        "foreignField": "number", "as": "product", "fields": { "name": "sync" }
    };
    client.works(doc! { "create": "parts", "patterns": [&product], "$db": "shop" });
    for (id, number) in [(1, 1234), (2, 1234), (3, 1234), (4, 5678)] {
        let part = doc! { "_id": id, "product": { "number": number } };
        assert_eq!(write_code(&insert(&mut client, "parts", &part)), 0);
    }
    set(&mut client, "products", 1, &doc! { "name": "left-handed smoke shifter" });
    for (id, name) in
        [(1, "left-handed smoke shifter"), (3, "left-handed smoke shifter"), (4, "fan")]
    {
        assert_eq!(text(&find(&mut client, "parts", id), "product.name"), Some(name));
    }
    let again = update(
        &mut client,
        "products",
        &doc! { "_id": 1 },
        &doc! { "$set": { "name": "left-handed smoke shifter" } },
    );
    assert_eq!((number(&again, "n"), number(&again, "nModified")), (Some(1), Some(0)));
    let page = doc! { "find": "parts", "filter": { "product.number": 1234 } };
    let plan =
        client.works(doc! { "explain": &page, "verbosity": "executionStats", "$db": "shop" });
    assert_eq!(number(&plan, "executionStats.totalDocsExamined"), Some(3));
}

/// S3-07: the order keeps what customer and product were; only open orders take over a new name.
#[test]
fn snapshots_stay_and_open_orders_follow() {
    let (_server, mut client) = shop();
    let address = doc! { "city": "上海" };
    insert(&mut client, "customers", &doc! { "_id": 1, "name": "张三", "address": &address });
    insert(&mut client, "products", &doc! { "_id": 1, "title": "无线蓝牙耳机", "price": 25900 });
    let customer = doc! {
        "name": "customer", "type": "reference", "from": "customers", "localField": "customerId",
        "as": "customerSnapshot", "fields": { "name": "snapshot", "address": "snapshot" },
        "onDelete": "keep"
    };
    let product = doc! {
        "name": "product", "type": "reference", "from": "products", "localField": "productId",
        "as": "productSnapshot", "onDelete": "keep",
        "fields": { "title": "snapshot", "price": { "mode": "snapshot", "as": "priceAtOrder" } }
    };
    client.works(doc! { "create": "orders", "patterns": [&customer, &product], "$db": "shop" });
    // The name that follows has a path of its own, set while the order is open.
    let open = doc! {
        "name": "open", "type": "reference", "from": "customers", "localField": "openFor",
        "as": "current", "fields": { "name": "sync" }, "onDelete": "setNull"
    };
    declare(&mut client, "orders", &open);
    let order = doc! { "_id": 1, "customerId": 1, "productId": 1, "n": 2 };
    insert(&mut client, "orders", &order);
    insert(&mut client, "orders", &with(&order, doc! { "_id": 2, "openFor": 1 }));
    set(&mut client, "customers", 1, &doc! { "name": "李四", "address.city": "北京" });
    set(&mut client, "products", 1, &doc! { "price": 29900 });
    insert(&mut client, "orders", &with(&order, doc! { "_id": 3 }));
    for (id, name, city, price) in
        [(1, "张三", "上海", 25900), (2, "张三", "上海", 25900), (3, "李四", "北京", 29900)]
    {
        let found = find(&mut client, "orders", id);
        assert_eq!(text(&found, "customerSnapshot.name"), Some(name), "{id}");
        assert_eq!(text(&found, "customerSnapshot.address.city"), Some(city), "{id}");
        assert_eq!(number(&found, "productSnapshot.priceAtOrder"), Some(price), "{id}");
    }
    assert_eq!(text(&find(&mut client, "orders", 2), "current.name"), Some("李四"));
    assert!(find(&mut client, "orders", 1).get("current").is_none());
    // The order stays readable after its product has been deleted.
    delete(&mut client, "products", &doc! { "_id": 1 });
    let found = find(&mut client, "orders", 1);
    assert_eq!(text(&found, "productSnapshot.title"), Some("无线蓝牙耳机"));
    let valid = client.works(doc! { "validate": "orders", "patterns": true, "$db": "shop" });
    for pattern in ["customer", "product", "open"] {
        assert_eq!(number(&valid, &format!("patterns.{pattern}.drift")), Some(0), "{pattern}");
    }
}
