//! Statements that write many children: the parent that several of them have is written once.

use super::oracle::assert_exact;
use super::{assert_no_drift, delete, insert, product, review, shop};
use crate::transactions::within;
use crate::{Client, code, number};
use quire_document::{ArrayBuf, DocBuf, doc};

/// The most children whose parents are gathered before they are written.
const GATHERED: i64 = 16;

fn insert_all(reviews: &[DocBuf], ordered: bool) -> DocBuf {
    let reviews: ArrayBuf = reviews.iter().collect();
    doc! { "insert": "reviews", "documents": &reviews, "ordered": ordered, "$db": "test" }
}

/// Returns the number of the parents' writes so far.
fn derived(client: &mut Client) -> i64 {
    let stats = client.works(doc! { "collStats": "products", "$db": "test" });
    number(&stats, "patterns.reviews.derivedWrites").unwrap()
}

#[test]
fn a_parent_of_many_children_is_written_once() {
    let (_server, mut client) = shop();
    for id in ["a", "b"] {
        client.works(insert("products", &doc! { "_id": id }));
    }
    let reviews: Vec<DocBuf> =
        (0..100).map(|id| review(id, if id % 2 == 0 { "a" } else { "b" }, id % 6, id)).collect();
    let before = derived(&mut client);
    client.works(insert_all(&reviews, true));
    assert_exact(&mut client, "inserted");
    assert_eq!(derived(&mut client) - before, 2);
    let more = doc! { "q": { "product": "a" }, "u": { "$inc": { "stars": 1 } }, "multi": true };
    client.works(doc! { "update": "reviews", "updates": [&more], "$db": "test" });
    assert_exact(&mut client, "updated");
    let pipeline: [DocBuf; 3] = [
        doc! { "$match": { "_id": { "$lt": 40 } } },
        doc! { "$set": { "product": "b" } },
        doc! { "$merge": "reviews" },
    ];
    let pipeline: ArrayBuf = pipeline.iter().collect();
    let merged =
        doc! { "aggregate": "reviews", "pipeline": &pipeline, "cursor": {}, "$db": "test" };
    client.works(merged);
    assert_exact(&mut client, "merged");
    client.works(delete("reviews", &doc! { "product": "a" }));
    assert_exact(&mut client, "deleted");
    assert_no_drift(&mut client);
}

#[test]
fn parents_of_their_own_are_written_in_the_same_commit() {
    let (_server, mut client) = shop();
    let count = GATHERED as i32 * 3 + 5;
    for id in 0..count {
        let product = format!("p{id}");
        client.works(insert("products", &doc! { "_id": product.as_str() }));
    }
    let reviews: Vec<DocBuf> = (0..count).map(|id| review(id, &format!("p{id}"), 5, id)).collect();
    let before = derived(&mut client);
    client.works(insert_all(&reviews, true));
    assert_eq!(derived(&mut client) - before, i64::from(count));
    assert_exact(&mut client, "inserted");
}

/// The parent is written after the last child. If it is refused, the error is that of the child that
/// has caused it, and the others stay.
#[test]
fn the_child_whose_parent_is_refused_is_refused() {
    let (_server, mut client) = shop();
    for id in ["a", "b"] {
        client.works(insert("products", &doc! { "_id": id }));
    }
    let validator = doc! { "sum": { "$lte": 10 } };
    client.works(doc! { "collMod": "products", "validator": &validator, "$db": "test" });
    let reviews = [(1, "a", 4), (2, "b", 9), (3, "a", 5), (4, "a", 3), (5, "b", 1), (6, "a", 1)];
    let reviews: Vec<DocBuf> =
        reviews.iter().map(|(id, product, stars)| review(*id, product, *stars, *id)).collect();
    // A retryable write: the second try must find the results of the first.
    let unordered = DocBuf::build(|writer| {
        let whole = within(insert_all(&reviews, false), (7, 1), false);
        for (name, value) in whole.as_doc().fields().filter(|(name, _)| *name != "autocommit") {
            writer.append(name, value);
        }
    });
    for attempt in ["first", "second"] {
        let reply = client.run(unordered.clone());
        assert_eq!(number(&reply, "n"), Some(5), "{attempt}: {reply:?}");
        assert_eq!(number(&reply, "writeErrors.0.index"), Some(3), "{attempt}: {reply:?}");
        assert_eq!(number(&reply, "writeErrors.0.code"), Some(121), "{attempt}: {reply:?}");
        assert!(reply.get("writeErrors").unwrap().as_array().unwrap().count() == 1);
        assert_exact(&mut client, attempt);
    }
    assert_eq!(number(&product(&mut client, "a"), "sum"), Some(10));
    // An ordered one ends there.
    client.works(delete("reviews", &doc! {}));
    let reply = client.run(insert_all(&reviews, true));
    assert_eq!((number(&reply, "n"), code(&reply)), (Some(3), 0), "{reply:?}");
    assert_eq!(number(&reply, "writeErrors.0.index"), Some(3), "{reply:?}");
    assert_exact(&mut client, "ordered");
    assert_no_drift(&mut client);
}
