//! Roll-ups: after every committed operation the derived values of each parent are those that the
//! children give. The oracle computes them anew from what `find` returns.

mod batches;
mod examples;
mod faults;
mod mix;
mod oracle;
mod sides;

use crate::{Client, Server, at, code, number};
use quire_document::{DocBuf, doc};

/// Declares the roll-up of the tests on `products`.
fn declared() -> DocBuf {
    doc! {
        "name": "reviews", "type": "rollup", "from": "reviews", "foreignField": "product",
        "match": { "hidden": { "$ne": true } },
        "set": {
            "count": { "$count": {} },
            "sum": { "$sum": "$stars" },
            "avg": { "$avg": "$stars" },
            "best": { "$max": "$stars" },
            "worst": { "$min": "$stars" },
            "recent": { "$topN": {
                "n": 3, "sortBy": { "at": -1 }, "output": { "id": "$_id", "stars": "$stars" }
            } },
            "ids": { "$push": "$_id" },
            "users": { "$addToSet": "$user" },
            "stars.5": { "$sum": { "$cond": [{ "$eq": ["$stars", 5] }, 1, 0] } }
        }
    }
}

/// Returns a server whose collection `products` declares the roll-up, and a client of it.
fn shop() -> (Server, Client) {
    let server = Server::new();
    let mut client = server.client(1);
    declare(&mut client);
    (server, client)
}

fn declare(client: &mut Client) {
    client.run(doc! { "create": "products", "$db": "test" });
    client.works(doc! { "collMod": "products", "patterns": [&declared()], "$db": "test" });
}

fn review(id: i32, product: &str, stars: i32, at: i32) -> DocBuf {
    doc! { "_id": id, "product": product, "stars": stars, "at": at, "user": (id % 3) }
}

fn insert(collection: &str, document: &DocBuf) -> DocBuf {
    doc! { "insert": collection, "documents": [document], "$db": "test" }
}

fn update(collection: &str, q: &DocBuf, u: &DocBuf) -> DocBuf {
    doc! { "update": collection, "updates": [{ "q": q, "u": u }], "$db": "test" }
}

fn delete(collection: &str, q: &DocBuf) -> DocBuf {
    doc! { "delete": collection, "deletes": [{ "q": q, "limit": 0 }], "$db": "test" }
}

/// Returns the only document that a filter finds.
fn one(client: &mut Client, collection: &str, filter: &DocBuf) -> DocBuf {
    let found = client.works(doc! { "find": collection, "filter": filter, "$db": "test" });
    let batch = at(&found, "cursor.firstBatch").unwrap().as_array().unwrap();
    assert_eq!(batch.count(), 1, "{filter:?}");
    batch.get(0).unwrap().as_document().unwrap().to_owned()
}

/// Returns a product by its `_id`.
fn product(client: &mut Client, id: &str) -> DocBuf {
    one(client, "products", &doc! { "_id": id })
}

/// Asserts that `validate` finds no drift.
fn assert_no_drift(client: &mut Client) {
    let reply = client.works(doc! { "validate": "products", "patterns": true, "$db": "test" });
    assert_eq!(number(&reply, "patterns.reviews.drift"), Some(0), "{reply:?}");
    assert_eq!(code(&reply), 0);
}
