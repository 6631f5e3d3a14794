//! The shop (see ../README.md) through MongoDB's Rust driver. This file has the main steps; `purchase` has a purchase and
//! `once` retries each kind of operation.

mod once;
mod purchase;

use futures::TryStreamExt;
use mongodb::bson::{Bson, Document, doc};
use mongodb::options::{ReadConcern, WriteModel};
use mongodb::{Client, Collection, Database, IndexModel};
use serde::de::DeserializeOwned;
use std::collections::HashSet;
use std::env;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

pub type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

const CUSTOMERS: i32 = 300;
const PRODUCTS: i32 = 100;
const STOCK: i32 = 6;
const CITIES: [&str; 5] = ["Ghent", "Oslo", "Porto", "Turin", "Zagreb"];
const CATEGORIES: [&str; 6] = ["books", "garden", "kitchen", "music", "sport", "toys"];

/// The shop's collections.
#[derive(Clone)]
pub struct Shop {
    client: Client,
    db: Database,
    customers: Collection<Document>,
    products: Collection<Document>,
    orders: Collection<Document>,
    carts: Collection<Document>,
    counters: Collection<Document>,
    events: Collection<Document>,
}

#[tokio::main]
async fn main() -> Result {
    let client = Client::with_uri_str(env::var("SHOP_URI")?).await?;
    let db = client.database(&env::var("SHOP_DB")?);
    let shop = Shop {
        customers: db.collection("customers"),
        products: db.collection("products"),
        orders: db.collection("orders"),
        carts: db.collection("carts"),
        counters: db.collection("counters"),
        events: db.collection("events"),
        client,
        db,
    };
    shop.stock_the_shop().await?;
    shop.duplicates_are_refused().await?;
    let sales = purchase::rush(&shop).await?;
    purchase::the_books_balance(&shop, sales).await?;
    once::each_is_done_once(&shop).await?;
    shop.updates_with_operators().await?;
    shop.reports().await?;
    shop.cursors_and_pages().await?;
    shop.sessions().await?;
    println!(r#"{{"driver": "mongodb 3.9.1", "sales": {sales}}}"#);
    Ok(())
}

/// Sends one line to the proxy's control port and reads one back.
pub async fn control(word: &str) -> Result<String> {
    let mut peer = TcpStream::connect(env::var("SHOP_CONTROL")?).await?;
    peer.write_all(format!("{word}\n").as_bytes()).await?;
    let mut answer = String::new();
    BufReader::new(peer).read_line(&mut answer).await?;
    Ok(answer.trim().to_owned())
}

pub fn sku(i: i32) -> String {
    format!("sku-{i:03}")
}

/// Returns all documents of a pipeline.
pub async fn rows<T: DeserializeOwned>(
    of: &Collection<Document>,
    pipeline: Vec<Document>,
) -> Result<Vec<T>> {
    let found: Vec<Document> = of.aggregate(pipeline).await?.try_collect().await?;
    found.into_iter().map(|row| Ok(mongodb::bson::from_document(row)?)).collect()
}

impl Shop {
    async fn stock_the_shop(&self) -> Result {
        self.db.drop().await?;
        let unique = IndexModel::builder().keys(doc! {"email": 1}).options(unique()).build();
        self.customers.create_index(unique).await?;
        for (on, keys) in [
            (&self.customers, doc! {"city": 1, "spent": -1}),
            (&self.products, doc! {"category": 1, "price": 1}),
            (&self.products, doc! {"tags": 1}),
        ] {
            on.create_index(IndexModel::builder().keys(keys).build()).await?;
        }
        let named =
            |name: &str| mongodb::options::IndexOptions::builder().name(name.to_owned()).build();
        let mut sparse = named("by_sku");
        sparse.sparse = Some(true);
        let mut expiring = named("abandoned");
        expiring.expire_after = Some(Duration::from_secs(3600));
        self.orders
            .create_indexes([
                IndexModel::builder()
                    .keys(doc! {"customer": 1, "placedAt": -1})
                    .options(named("by_customer"))
                    .build(),
                IndexModel::builder().keys(doc! {"items.sku": 1}).options(sparse).build(),
            ])
            .await?;
        self.carts
            .create_index(
                IndexModel::builder().keys(doc! {"updatedAt": 1}).options(expiring).build(),
            )
            .await?;

        let people = (0..CUSTOMERS).map(|i| {
            doc! {
                "_id": i, "email": format!("c{i}@shop.example"), "name": format!("Customer {i}"), "city": CITIES[i as usize % 5],
                "address": {"street": format!("{i} Main Street"), "zip": (10000 + i).to_string()}, "orders": 0, "spent": 0, "recent": [],
            }
        });
        assert_eq!(
            self.customers.insert_many(people).await?.inserted_ids.len(),
            CUSTOMERS as usize
        );
        let stock = (0..PRODUCTS).map(|i| {
            let product = doc! {
                "_id": sku(i), "category": CATEGORIES[i as usize % 6], "price": 100 + i * 37 % 900, "stock": STOCK, "sold": 0,
                "tags": [format!("t{}", i % 7), format!("t{}", i % 11)],
                "variants": [{"size": "S", "stock": 1}, {"size": "M", "stock": 2}, {"size": "L", "stock": 3}],
            };
            self.products.insert_one_model(product).map(WriteModel::InsertOne)
        });
        let stocked = self
            .client
            .bulk_write(stock.collect::<std::result::Result<Vec<_>, _>>()?)
            .ordered(false)
            .await?;
        assert_eq!(stocked.inserted_count, i64::from(PRODUCTS));

        assert_eq!(self.orders.list_index_names().await?, ["_id_", "by_customer", "by_sku"]);
        let carts: Vec<IndexModel> = self.carts.list_indexes().await?.try_collect().await?;
        let ttl = carts
            .iter()
            .filter_map(|index| index.options.as_ref())
            .find_map(|options| options.expire_after);
        assert_eq!(ttl, Some(Duration::from_secs(3600)));
        Ok(())
    }

    async fn duplicates_are_refused(&self) -> Result {
        let again = self.customers.insert_one(doc! {"_id": 9000, "email": "c7@shop.example"}).await;
        assert_eq!(code(&again.expect_err("a duplicate")), Some(11000));
        let batch = (1..=5).map(|i| {
            let email = if i % 2 == 1 {
                format!("new{i}@shop.example")
            } else {
                format!("c{i}@shop.example")
            };
            doc! {"_id": 9000 + i, "email": email}
        });
        let refused =
            self.customers.insert_many(batch).ordered(false).await.expect_err("duplicates");
        let mongodb::error::ErrorKind::InsertMany(failure) = &*refused.kind else {
            panic!("{refused}")
        };
        let errors = failure.write_errors.as_ref().expect("write errors");
        assert_eq!(
            errors.iter().map(|one| (one.index, one.code)).collect::<Vec<_>>(),
            [(1, 11000), (3, 11000)]
        );
        let taken = self
            .customers
            .update_one(doc! {"_id": 1}, doc! {"$set": {"email": "c2@shop.example"}})
            .await;
        assert_eq!(code(&taken.expect_err("a duplicate")), Some(11000));
        assert_eq!(
            self.customers.delete_many(doc! {"_id": {"$gte": 9000}}).await?.deleted_count,
            3
        );
        Ok(())
    }

    async fn updates_with_operators(&self) -> Result {
        let Shop { products, orders, events, .. } = self;
        products
            .update_one(
                doc! {"_id": sku(1), "variants.size": "M"},
                doc! {"$inc": {"variants.$.stock": 5}},
            )
            .await?;
        let product = products.find_one(doc! {"_id": sku(1)}).await?.expect("the product");
        let stocks: Vec<_> = product
            .get_array("variants")?
            .iter()
            .map(|v| v.as_document().and_then(|v| v.get_i32("stock").ok()))
            .collect();
        assert_eq!(stocks, [Some(1), Some(7), Some(3)]);
        let raised = products
            .update_many(
                doc! {"category": "books"},
                doc! {"$set": {"variants.$[low].reorder": true}},
            )
            .array_filters([doc! {"low.stock": {"$lt": 2}}])
            .await?;
        assert_eq!(raised.modified_count, 17);
        assert_eq!(products.count_documents(doc! {"variants.reorder": true}).await?, 17);
        let flagged = orders
            .update_many(doc! {}, vec![doc! {"$set": {"large": {"$gte": ["$total", 1000]}}}])
            .await?;
        assert_eq!(flagged.modified_count, orders.count_documents(doc! {}).await?);
        let large = orders.count_documents(doc! {"large": true}).await?;
        assert_eq!(large, orders.count_documents(doc! {"total": {"$gte": 1000}}).await?);
        products
            .update_many(
                doc! {},
                doc! {"$addToSet": {"tags": "all"}, "$currentDate": {"touched": true}},
            )
            .await?;
        products.update_many(doc! {}, doc! {"$pull": {"tags": "t3"}}).await?;
        assert_eq!(
            products.count_documents(doc! {"tags": "all", "touched": {"$type": "date"}}).await?,
            PRODUCTS as u64
        );
        assert_eq!(products.count_documents(doc! {"tags": "t3"}).await?, 0);
        events.insert_many([doc! {"_id": 1, "n": 1}, doc! {"_id": 2, "n": 2}]).await?;
        assert_eq!(events.update_many(doc! {}, doc! {"$mul": {"n": 10}}).await?.modified_count, 2);
        assert_eq!(events.replace_one(doc! {"_id": 2}, doc! {"n": "two"}).await?.modified_count, 1);
        assert_eq!(events.delete_one(doc! {"_id": 1}).await?.deleted_count, 1);
        assert_eq!(
            events.find(doc! {}).await?.try_collect::<Vec<_>>().await?,
            [doc! {"_id": 2, "n": "two"}]
        );
        Ok(())
    }

    async fn reports(&self) -> Result {
        let by_category: Vec<Document> = rows(
            &self.products,
            vec![
                doc! {"$group": {"_id": "$category", "revenue": {"$sum": {"$multiply": ["$sold", "$price"]}}}},
                doc! {"$sort": {"revenue": -1, "_id": 1}},
            ],
        )
        .await?;
        let sum: i32 = by_category.iter().map(|row| row.get_i32("revenue").expect("an int")).sum();
        let revenue: Vec<Document> =
            rows(&self.orders, vec![doc! {"$group": {"_id": null, "total": {"$sum": "$total"}}}])
                .await?;
        assert_eq!((by_category.len(), sum), (CATEGORIES.len(), revenue[0].get_i32("total")?));
        let best: Vec<Document> = self
            .customers
            .find(doc! {})
            .projection(doc! {"_id": 0, "email": 1, "spent": 1})
            .sort(doc! {"spent": -1, "_id": 1})
            .limit(5)
            .await?
            .try_collect()
            .await?;
        assert_eq!(best[0].keys().collect::<Vec<_>>(), ["email", "spent"]);
        assert!(best.is_sorted_by_key(|one| -one.get_i32("spent").expect("an int")));
        let cities: Vec<Document> =
            rows(&self.customers, vec![doc! {"$sortByCount": "$city"}]).await?;
        assert!(cities.len() == 5 && cities.iter().all(|row| row.get_i32("count") == Ok(60)));
        let mut names = self.customers.distinct("city", doc! {}).await?;
        names.sort_by_key(Bson::to_string);
        assert_eq!(names, CITIES.map(Bson::from));
        Ok(())
    }

    async fn cursors_and_pages(&self) -> Result {
        let events = &self.events;
        events.delete_many(doc! {}).await?;
        let many =
            (0..1000).map(|i| doc! {"_id": i, "kind": i % 4, "text": "x".repeat(i as usize % 50)});
        events.insert_many(many).await?;
        let id = |event: &Document| event.get_i32("_id").expect("an int");
        let all: Vec<Document> = events.find(doc! {}).batch_size(37).await?.try_collect().await?;
        assert_eq!(all.iter().map(id).collect::<HashSet<_>>().len(), 1000);
        let mut pages = Vec::new();
        for page in 0..5 {
            let found: Vec<_> = events
                .find(doc! {"kind": 1})
                .sort(doc! {"_id": -1})
                .skip(page * 50)
                .limit(50)
                .await?
                .try_collect()
                .await?;
            pages.extend(found.iter().map(id));
        }
        assert_eq!(pages, (0..250).map(|i| 997 - 4 * i).collect::<Vec<_>>());
        let (mut after, mut found) = (-1, 0);
        loop {
            let next = events.find(doc! {"_id": {"$gt": after}}).sort(doc! {"_id": 1}).limit(300);
            let page: Vec<_> = next.await?.try_collect().await?;
            let Some(last) = page.last() else { break };
            (found, after) = (found + page.len(), id(last));
        }
        assert_eq!(found, 1000);
        let mut left = events.find(doc! {}).batch_size(10).await?;
        assert!(left.advance().await?);
        drop(left);
        assert_eq!(events.estimated_document_count().await?, 1000);
        Ok(())
    }

    async fn sessions(&self) -> Result {
        let mut session = self.client.start_session().causal_consistency(true).await?;
        self.events.insert_one(doc! {"_id": "session"}).session(&mut session).await?;
        let found = self
            .events
            .find_one(doc! {"_id": "session"})
            .read_concern(ReadConcern::majority())
            .session(&mut session)
            .await?;
        assert_eq!(found, Some(doc! {"_id": "session"}));
        Ok(())
    }
}

fn unique() -> mongodb::options::IndexOptions {
    mongodb::options::IndexOptions::builder().unique(true).build()
}

/// Returns the server's error code of one write.
fn code(error: &mongodb::error::Error) -> Option<i32> {
    match &*error.kind {
        mongodb::error::ErrorKind::Write(mongodb::error::WriteFailure::WriteError(one)) => {
            Some(one.code)
        }
        _ => None,
    }
}
