//! The worked examples with the pattern declared: votes, the last messages of a host, a customer's
//! total, the newest reviews of a product, tasks that are handed over.

use super::{delete, insert, one, update};
use crate::transactions::{commit, within};
use crate::{Client, Server, at, number};
use quire_document::{ArrayBuf, DocBuf, Value, doc};
use std::sync::atomic::{AtomicBool, Ordering};

fn declaring(collection: &str, pattern: &DocBuf) -> (Server, Client) {
    let server = Server::new();
    let mut client = server.client(1);
    client.works(doc! { "create": collection, "patterns": [pattern], "$db": "test" });
    (server, client)
}

fn strings(doc: &DocBuf, path: &str, field: &str) -> Vec<String> {
    let array = at(doc, path).unwrap().as_array().unwrap();
    let of = |value: Value<'_>| {
        value.as_document().unwrap().get(field).unwrap().as_str().unwrap().to_owned()
    };
    array.iter().map(of).collect()
}

/// S0-12: count, average and distribution of votes never contradict each other.
#[test]
fn votes() {
    let stars = |n: i32| doc! { "$sum": { "$cond": [{ "$eq": ["$stars", n] }, 1, 0] } };
    let pattern = doc! {
        "name": "votes", "type": "rollup", "from": "votes", "foreignField": "movie",
        "set": {
            "rating.count": { "$count": {} },
            "rating.average": { "$avg": "$stars" },
            "rating.distribution.5": &stars(5),
            "rating.distribution.4": &stars(4),
            "rating.distribution.3": &stars(3)
        }
    };
    let (_server, mut client) = declaring("movies", &pattern);
    client.works(insert("movies", &doc! { "_id": 1, "title": "m" }));
    for (id, stars) in [(1, 5), (2, 3), (3, 4)] {
        client.works(insert("votes", &doc! { "_id": id, "movie": 1, "stars": stars }));
    }
    let wanted = doc! {
        "_id": 1, "title": "m",
        "rating": { "count": 3, "average": 4.0, "distribution": { "5": 1, "4": 1, "3": 1 } }
    };
    assert_eq!(one(&mut client, "movies", &doc! {}), wanted);
    let cast = |id: i32| doc! { "_id": id, "movie": 1, "stars": 5 };
    client.works(insert("votes", &cast(4)));
    client.works(update("votes", &doc! { "_id": 2 }, &doc! { "$set": { "stars": 5 } }));
    let found = one(&mut client, "movies", &doc! {});
    assert_eq!(number(&found, "rating.distribution.5"), Some(3));
    assert_eq!(number(&found, "rating.distribution.3"), Some(0));
    assert!(matches!(at(&found, "rating.average"), Some(Value::Double(4.75))));
}

/// S2-09: a host has its last five messages, oldest first, and a late one comes to its place.
#[test]
fn the_last_messages_of_a_host() {
    let pattern = doc! {
        "name": "last", "type": "rollup", "from": "logmsg", "foreignField": "host",
        "set": { "logmsgs": { "$bottomN": {
            "n": 5, "sortBy": { "time": 1 }, "output": { "message": "$message", "time": "$time" }
        } } }
    };
    let (_server, mut client) = declaring("hosts", &pattern);
    client.works(insert("hosts", &doc! { "_id": 1, "name": "goofy" }));
    let line = |time: i32| {
        let message = format!("m{time}");
        doc! { "_id": (time * 10), "host": 1, "time": time, "message": message.as_str() }
    };
    for time in [1, 2, 3, 4, 6, 7, 8] {
        client.works(insert("logmsg", &line(time)));
    }
    let host = one(&mut client, "hosts", &doc! {});
    assert_eq!(strings(&host, "logmsgs", "message"), ["m3", "m4", "m6", "m7", "m8"]);
    client.works(insert("logmsg", &line(5)));
    client.works(insert("logmsg", &line(0)));
    let host = one(&mut client, "hosts", &doc! {});
    assert_eq!(strings(&host, "logmsgs", "message"), ["m4", "m5", "m6", "m7", "m8"]);
}

/// Script 01: of 1,500 messages a host has the last 1,000, with a late one at its place and none that is too
/// old.
#[test]
fn the_last_thousand_messages_of_a_host() {
    let pattern = doc! {
        "name": "last", "type": "rollup", "from": "logmsg", "foreignField": "host",
        "set": { "logmsgs": { "$bottomN": {
            "n": 1000, "sortBy": { "time": 1 }, "output": { "message": "$message", "time": "$time" }
        } } }
    };
    let (_server, mut client) = declaring("hosts", &pattern);
    client.works(insert("hosts", &doc! { "_id": 1, "name": "goofy" }));
    let line = |time: i32, message: &str| doc! { "host": 1, "time": time, "message": message };
    for batch in 0..5 {
        let lines = (0..300).map(|at| batch * 300 + at);
        let lines: Vec<DocBuf> = lines.map(|at| line(at * 10, format!("m{at}").as_str())).collect();
        let lines: ArrayBuf = lines.iter().collect();
        client.works(doc! { "insert": "logmsg", "documents": &lines, "$db": "test" });
    }
    let kept = |client: &mut Client| strings(&one(client, "hosts", &doc! {}), "logmsgs", "message");
    let wanted: Vec<String> = (500..1500).map(|at| format!("m{at}")).collect();
    assert_eq!(kept(&mut client), wanted);
    client.works(insert("logmsg", &line(7005, "late")));
    let messages = kept(&mut client);
    assert_eq!((messages.len(), messages[0].as_str()), (1000, "m501"));
    assert_eq!(messages[199..202], ["m700", "late", "m701"]);
    client.works(insert("logmsg", &line(0, "too old")));
    assert_eq!(kept(&mut client), messages);
}

/// Script 13: likes of one page, by many clients at once. A counter that merges needs no shards, and
/// sixteen shards with a declared sum add up as well.
#[test]
fn likes_by_many_clients() {
    const CLIENTS: u64 = 16;
    const LIKES: i32 = 12;
    let counter = doc! { "name": "n", "type": "counter", "path": "n", "merge": true };
    let (server, mut client) = declaring("single", &counter);
    client.works(insert("single", &doc! { "_id": 1, "n": 0 }));
    let sum = doc! {
        "name": "likes", "type": "rollup", "from": "shards", "foreignField": "page",
        "set": { "likes": { "$sum": "$n" }, "shards": { "$count": {} } }
    };
    client.works(doc! { "create": "pages", "patterns": [&sum], "$db": "test" });
    client.works(insert("pages", &doc! { "_id": "home" }));
    for shard in 0..4 {
        client.works(insert("shards", &doc! { "_id": shard, "page": "home", "n": 0 }));
    }
    std::thread::scope(|scope| {
        for of in 0..CLIENTS {
            let mut client = server.client(10 + of);
            scope.spawn(move || {
                let like = doc! { "$inc": { "n": 1 } };
                for turn in 0..LIKES {
                    client.works(update("single", &doc! { "_id": 1 }, &like));
                    let shard = (turn + of as i32) % 4;
                    client.works(update("shards", &doc! { "_id": shard }, &like));
                }
            });
        }
    });
    let likes = CLIENTS as i64 * i64::from(LIKES);
    assert_eq!(number(&one(&mut client, "single", &doc! {}), "n"), Some(likes));
    let page = one(&mut client, "pages", &doc! {});
    assert_eq!((number(&page, "likes"), number(&page, "shards")), (Some(likes), Some(4)));
}

/// S3-05: a customer's total follows each order, whoever changes it and how.
#[test]
fn a_customers_total() {
    let pattern = doc! {
        "name": "spent", "type": "rollup", "from": "orders", "foreignField": "user",
        "set": { "totalSpent": { "$sum": "$amount" } }
    };
    let (_server, mut client) = declaring("users", &pattern);
    client.works(insert("users", &doc! { "_id": 123, "name": "Alice" }));
    let total = |client: &mut Client| number(&one(client, "users", &doc! {}), "totalSpent");
    assert_eq!(total(&mut client), Some(0));
    for (id, amount) in [(1, 5000), (2, 150), (3, 50)] {
        client.works(insert("orders", &doc! { "_id": id, "user": 123, "amount": amount }));
    }
    assert_eq!(total(&mut client), Some(5200));
    let raised = doc! { "$set": { "amount": 400 } };
    client.works(doc! {
        "findAndModify": "orders", "query": { "_id": 2 }, "update": &raised, "$db": "test"
    });
    assert_eq!(total(&mut client), Some(5450));
    for _ in 0..2 {
        client.works(doc! {
            "findAndModify": "orders", "query": { "_id": 1 }, "remove": true, "$db": "test"
        });
    }
    assert_eq!(total(&mut client), Some(450));
    let order = insert("orders", &doc! { "_id": 4, "user": 123, "amount": 80 });
    client.works(within(order, (5, 1), true));
    assert_eq!(total(&mut client), Some(450), "outside of the transaction");
    client.works(within(commit(), (5, 1), false));
    assert_eq!(total(&mut client), Some(530));
}

fn subset() -> DocBuf {
    let output = doc! { "reviewId": "$_id", "stars": "$stars" };
    doc! {
        "name": "reviews", "type": "rollup", "from": "product_reviews", "foreignField": "productId",
        "set": {
            "ratingCount": { "$count": {} },
            "ratingSum": { "$sum": "$stars" },
            "ratingAvg": { "$avg": "$stars" },
            "recentReviews": { "$topN": {
                "n": 10, "sortBy": { "createdAt": -1 }, "output": &output
            } }
        }
    }
}

/// S3-06 and script 15: five writers in random order leave the ten newest; the eleventh moves up.
#[test]
fn the_newest_reviews_of_a_product() {
    let (server, mut client) = declaring("products", &subset());
    client.works(insert("products", &doc! { "_id": "prod_123", "price": 399 }));
    std::thread::scope(|scope| {
        for writer in 0..5 {
            let mut client = server.client(10 + writer);
            scope.spawn(move || {
                for round in 0..5 {
                    let n = (round * 7 + writer as i32 * 11) % 5 * 5 + writer as i32;
                    let id = format!("r{n}");
                    client.works(insert(
                        "product_reviews",
                        &doc! {
                            "_id": id.as_str(), "productId": "prod_123", "stars": (n % 5 + 1),
                            "createdAt": n
                        },
                    ));
                }
            });
        }
    });
    let product = one(&mut client, "products", &doc! {});
    let newest = |from: i32| (0..10).map(|n| format!("r{}", from - n)).collect::<Vec<_>>();
    assert_eq!(strings(&product, "recentReviews", "reviewId"), newest(24));
    assert_eq!(number(&product, "ratingCount"), Some(25));
    assert_eq!(number(&product, "ratingSum"), Some(75));
    assert_eq!(number(&product, "ratingAvg"), Some(3));
    client.works(delete("product_reviews", &doc! { "_id": "r24" }));
    let product = one(&mut client, "products", &doc! {});
    assert_eq!(strings(&product, "recentReviews", "reviewId"), newest(23));
    assert_eq!(number(&product, "ratingSum"), Some(70));
    for n in (4..24).rev() {
        client.works(delete("product_reviews", &doc! { "_id": (format!("r{n}").as_str()) }));
    }
    let product = one(&mut client, "products", &doc! {});
    assert_eq!(strings(&product, "recentReviews", "reviewId"), ["r3", "r2", "r1", "r0"]);
}

/// Script 12: a task is handed over by one write, and both sides agree at every look.
#[test]
fn tasks_that_are_handed_over() {
    let pattern = doc! {
        "name": "tasks", "type": "rollup", "from": "tasks", "foreignField": "owner",
        "set": { "tasks": { "$push": "$_id" } }
    };
    let (server, mut client) = declaring("person", &pattern);
    let person = |n: i32| format!("person{n}");
    for n in 0..4 {
        client.works(insert("person", &doc! { "_id": (person(n).as_str()) }));
    }
    for task in 0..12 {
        client.works(insert("tasks", &doc! { "_id": task, "owner": (person(task % 4).as_str()) }));
    }
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..3)
            .map(|writer| {
                let mut client = server.client(10 + writer);
                scope.spawn(move || {
                    for round in 0..20 {
                        let (task, to) = ((round * 5 + writer as i32) % 12, (round * 3) % 4);
                        let owner = doc! { "$set": { "owner": (person(to).as_str()) } };
                        client.works(update("tasks", &doc! { "_id": task }, &owner));
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            let mut client = server.client(3);
            let mut look = 0;
            while look < 3 || !done.load(Ordering::Relaxed) {
                look += 1;
                assert_both_sides_agree(&mut client, look);
            }
        });
        for writer in writers {
            writer.join().unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_both_sides_agree(&mut client, 1_000_000);
}

fn assert_both_sides_agree(client: &mut Client, number: i64) {
    let lookup = doc! {
        "from": "tasks", "localField": "_id", "foreignField": "owner",
        "pipeline": [{ "$sort": { "_id": 1 } }], "as": "owned"
    };
    let pipeline = quire_document::array![
        { "$lookup": &lookup },
        { "$match": { "$expr": { "$ne": ["$tasks", "$owned._id"] } } }
    ];
    let command =
        doc! { "aggregate": "person", "pipeline": &pipeline, "cursor": {}, "$db": "test" };
    let wrong = client.works(within(command, (8, number), true));
    client.works(within(commit(), (8, number), false));
    let batch = at(&wrong, "cursor.firstBatch").unwrap().as_array().unwrap();
    assert_eq!(batch.count(), 0, "{wrong:?}");
}
