//! A small shop: calls every method of a collection and a database once, and reads the data after
//! reopening.

use crate::on_both_engines;
use quire::bson::oid::ObjectId;
use quire::bson::{Bson, DateTime, Document, doc};
use quire::options::{Hint, IndexModel, IndexOptions, ReturnDocument, WriteConcern};
use quire::{Client, Collection};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Product {
    #[serde(rename = "_id")]
    sku: String,
    name: String,
    price: f64,
    tags: Vec<String>,
    stock: i32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Order {
    #[serde(rename = "_id", skip_serializing_if = "Option::is_none")]
    id: Option<ObjectId>,
    customer: String,
    placed: DateTime,
    lines: Vec<Line>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Line {
    sku: String,
    quantity: i32,
}

fn product(sku: &str, name: &str, price: f64, tags: &[&str]) -> Product {
    let tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
    Product { sku: sku.into(), name: name.into(), price, tags, stock: 10 }
}

fn stocked(client: &Client) -> Collection<Product> {
    let products = client.database("shop").collection::<Product>("products");
    let all = [
        product("a1", "Lamp", 30.0, &["home", "light"]),
        product("a2", "Desk", 250.0, &["home", "office"]),
        product("a3", "Pen", 2.5, &["office"]),
    ];
    let inserted = products.insert_many(&all).run().unwrap();
    assert_eq!(inserted.inserted_ids[&2], Bson::from("a3"));
    products
}

#[test]
fn finding() {
    on_both_engines(|client| {
        let products = stocked(client);
        let names = |filter: Document| -> Vec<String> {
            let found = products.find(filter).sort(doc! { "price": -1 }).run().unwrap();
            found.map(|product| product.unwrap().name).collect()
        };
        assert_eq!(names(doc! {}), ["Desk", "Lamp", "Pen"]);
        assert_eq!(names(doc! { "tags": "home" }), ["Desk", "Lamp"]);
        let lamp = products.find_one(doc! { "_id": "a1" }).run().unwrap().unwrap();
        assert_eq!(lamp, product("a1", "Lamp", 30.0, &["home", "light"]));
        assert_eq!(products.find_one(doc! { "_id": "none" }).run().unwrap(), None);
        let short = products.clone_with_type::<Document>();
        let found: Result<Vec<_>, _> = short
            .find(doc! {})
            .projection(doc! { "name": 1, "_id": 0 })
            .sort(doc! { "name": 1 })
            .skip(1)
            .limit(1)
            .run()
            .unwrap()
            .collect();
        assert_eq!(found.unwrap(), [doc! { "name": "Lamp" }]);
        assert_eq!(products.count_documents(doc! { "price": { "$lt": 100 } }).run().unwrap(), 2);
        assert_eq!(products.count_documents(doc! {}).skip(1).limit(5).run().unwrap(), 2);
        assert_eq!(products.count_documents(doc! { "price": 0 }).run().unwrap(), 0);
        assert_eq!(products.estimated_document_count().run().unwrap(), 3);
        let mut tags = products.distinct("tags", doc! {}).run().unwrap();
        tags.sort_by_key(|tag| tag.to_string());
        assert_eq!(tags, ["home", "light", "office"].map(Bson::from));
    });
}

#[test]
fn changing() {
    on_both_engines(|client| {
        let products = stocked(client);
        let update = doc! { "$inc": { "stock": -1 } };
        let done = products.update_many(doc! { "tags": "office" }, update.clone()).run().unwrap();
        assert_eq!((done.matched_count, done.modified_count), (2, 2));
        let done = products
            .update_one(doc! { "_id": "a9" }, doc! { "$setOnInsert": { "name": "Chair" } })
            .upsert(true)
            .run()
            .unwrap();
        assert_eq!((done.matched_count, done.modified_count), (0, 0));
        assert_eq!(done.upserted_id, Some("a9".into()));
        let pipeline = vec![doc! { "$set": { "price": { "$multiply": ["$price", 2] } } }];
        products.update_one(doc! { "_id": "a1" }, pipeline).run().unwrap();
        let before = products.find_one_and_update(doc! { "_id": "a1" }, update.clone()).run();
        assert_eq!(before.unwrap().map(|lamp| (lamp.price, lamp.stock)), Some((60.0, 10)));
        let after = products
            .find_one_and_update(doc! { "_id": "a1" }, update)
            .return_document(ReturnDocument::After)
            .run();
        assert_eq!(after.unwrap().map(|lamp| lamp.stock), Some(8));
        let cheap = product("a3", "Pencil", 1.0, &[]);
        let done = products.replace_one(doc! { "_id": "a3" }, &cheap).run().unwrap();
        assert_eq!(done.modified_count, 1);
        let old = products
            .find_one_and_replace(doc! { "_id": "a3" }, product("a3", "Pen", 2.0, &[]))
            .run()
            .unwrap();
        assert_eq!(old, Some(cheap));
        let gone = products.find_one_and_delete(doc! { "_id": "a3" }).run().unwrap();
        assert_eq!(gone.map(|pen| pen.price), Some(2.0));
        let none = products.find_one_and_delete(doc! { "_id": "a3" }).run().unwrap();
        assert_eq!(none, None);
        assert_eq!(products.delete_one(doc! {}).run().unwrap().deleted_count, 1);
        let gone = products.delete_many(doc! {}).write_concern(WriteConcern::nodes(1)).run();
        assert_eq!(gone.unwrap().deleted_count, 2);
    });
}

#[test]
fn ids_are_created_and_returned() {
    on_both_engines(|client| {
        let orders = client.database("shop").collection::<Order>("orders");
        let lines = vec![Line { sku: "a1".into(), quantity: 2 }];
        let order =
            Order { id: None, customer: "Ada".into(), placed: DateTime::from_millis(5), lines };
        let id = orders.insert_one(&order).run().unwrap().inserted_id;
        let found = orders.find_one(doc! { "_id": &id }).run().unwrap().unwrap();
        assert_eq!(Bson::from(found.id.unwrap()), id);
        assert_eq!(Order { id: None, ..found }, order);
        let raw = orders.clone_with_type::<Document>().find_one(doc! {}).run().unwrap().unwrap();
        assert_eq!(raw.keys().next().unwrap(), "_id");
    });
}

#[test]
fn pipelines_and_commands() {
    on_both_engines(|client| {
        let products = stocked(client);
        let pipeline = [
            doc! { "$unwind": "$tags" },
            doc! { "$group": { "_id": "$tags", "value": { "$sum": "$price" } } },
            doc! { "$sort": { "_id": 1 } },
        ];
        #[derive(Debug, PartialEq, Deserialize)]
        struct Tag {
            #[serde(rename = "_id")]
            tag: String,
            value: f64,
        }
        let tags = products.aggregate(pipeline).with_type::<Tag>().batch_size(1).run().unwrap();
        let tags: Vec<Tag> = tags.collect::<Result<_, _>>().unwrap();
        let sums: Vec<_> = tags.iter().map(|tag| (tag.tag.as_str(), tag.value)).collect();
        assert_eq!(sums, [("home", 280.0), ("light", 30.0), ("office", 252.5)]);
        let shop = client.database("shop");
        let reply = shop.run_command(doc! { "count": "products" }).run().unwrap();
        assert_eq!(reply.get_i32("n").unwrap(), 3);
        let found = shop
            .run_cursor_command(doc! { "find": "products", "batchSize": 1 })
            .batch_size(1)
            .run()
            .unwrap();
        assert_eq!(found.count(), 3);
        let hello = client.database("admin").run_command(doc! { "hello": 1 }).run().unwrap();
        assert!(hello.get_bool("isWritablePrimary").unwrap());
    });
}

#[test]
fn names_and_indexes() {
    on_both_engines(|client| {
        let products = stocked(client);
        let shop = client.database("shop");
        shop.create_collection("log").comment("made").run().unwrap();
        let mut names = shop.list_collection_names().run().unwrap();
        names.sort();
        assert_eq!(names, ["log", "products"]);
        let log = shop.list_collections().filter(doc! { "name": "log" }).run().unwrap().next();
        let log = log.unwrap().unwrap();
        assert_eq!(log.collection_type, "collection");
        assert!(log.info.contains_key("uuid") && log.id_index.is_some());
        assert!(client.list_database_names().run().unwrap().contains(&"shop".to_owned()));
        let databases = client.list_databases().run().unwrap();
        assert!(databases.iter().any(|database| database.name == "shop" && !database.empty));

        let unique = IndexOptions::builder().unique(true).build();
        let by_name = IndexModel::builder().keys(doc! { "name": 1 }).options(unique).build();
        assert_eq!(products.create_index(by_name).run().unwrap().index_name, "name_1");
        let by_price = IndexModel::builder().keys(doc! { "price": -1, "stock": 1 }).build();
        let named = IndexOptions::builder().name("tags".to_owned()).build();
        let by_tags = IndexModel::builder().keys(doc! { "tags": 1 }).options(named).build();
        let made = products.create_indexes([by_price, by_tags]).run().unwrap().index_names;
        assert_eq!(made, ["price_-1_stock_1", "tags"]);
        let mut listed = products.list_index_names().run().unwrap();
        listed.sort();
        assert_eq!(listed, ["_id_", "name_1", "price_-1_stock_1", "tags"]);
        let found: Vec<_> = products.list_indexes().run().unwrap().flatten().collect();
        let by_name = found.iter().find(|index| index.keys == doc! { "name": 1 }).unwrap();
        assert_eq!(by_name.options.as_ref().unwrap().unique, Some(true));
        let hinted = products.find(doc! {}).hint(Hint::Name("tags".into())).run().unwrap();
        assert!(hinted.count() > 0);
        let lamp = product("a4", "Lamp", 1.0, &[]);
        let refused = products.insert_one(lamp).run().unwrap_err();
        assert!(refused.is_duplicate_key());
        products.drop_index("tags").run().unwrap();
        products.drop_indexes().run().unwrap();
        assert_eq!(products.list_index_names().run().unwrap(), ["_id_"]);
        products.drop().run().unwrap();
        products.drop().run().unwrap();
        shop.drop().run().unwrap();
        assert!(shop.list_collection_names().run().unwrap().is_empty());
    });
}

#[test]
fn reopening() {
    let directory = tempfile::tempdir().unwrap();
    let client = Client::open(directory.path()).unwrap();
    let expected: Vec<_> = stocked(&client).find(doc! {}).run().unwrap().flatten().collect();
    client.shutdown().run().unwrap();
    for _ in 0..2 {
        let client = Client::open(directory.path()).unwrap();
        let products = client.database("shop").collection::<Product>("products");
        let found: Vec<_> = products.find(doc! {}).run().unwrap().flatten().collect();
        assert_eq!(found, expected);
        assert_eq!(client.warnings(), [""; 0]);
        // The second time only the drop closes it.
    }
}
