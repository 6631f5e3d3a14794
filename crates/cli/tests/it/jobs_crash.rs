//! kill -9 of the server while a scheduled job moves money, a job on changes books orders, another one, in
//! parallel for each customer, pays for them, and a generator makes slots: each run and each event has its
//! effect once, in the order of the customer's orders. `QUIRE_CRASH_ROUNDS=100` for the long run. At the
//! end the tool `quire jobs` shows and runs a job.

use crate::{Directory, Serving, quire, text, try_exchange};
use quire_document::{Doc, DocBuf, Value, doc};
use rustix::process::Signal;
use std::net::TcpStream;
use std::time::Duration;

const OPENING_SUM: i64 = 1_000_000;
/// The orders of a round.
const ORDERS_MAX: i64 = 100;
const CUSTOMERS: i64 = 7;
const ROOMS: [&str; 3] = ["a", "b", "c"];
const DAYS: i32 = 20;

fn works(server: &Serving, command: DocBuf) -> DocBuf {
    let reply = server.run(command.clone());
    let ok = reply.get("ok").and_then(|ok| ok.to_f64()) == Some(1.0);
    assert!(ok && !reply.as_doc().contains("writeErrors"), "{command:?}: {reply:?}");
    reply
}

fn create_jobs(server: &Serving) {
    for (id, sum) in [("a", OPENING_SUM), ("b", 0)] {
        let account = doc! { "_id": id, "sum": sum };
        works(server, doc! { "insert": "accounts", "documents": [&account], "$db": "d" });
    }
    let change = |id: &str, amount: i64| {
        doc! { "q": { "_id": id }, "u": { "$inc": { "sum": amount } } }
    };
    let moves = doc! { "update": "accounts", "updates": [&change("a", -1), &change("b", 1)] };
    let note = doc! { "insert": "moves", "documents": [{ "amount": 1 }] };
    let schedule = doc! { "every": 1, "unit": "second" };
    works(
        server,
        doc! { "createJob": "move", "schedule": &schedule, "writes": [&moves, &note], "$db": "d" },
    );
    let event = doc! { "$documents": ["$$event"] };
    let order = doc! { "$project": { "_id": "$documentKey._id", "times": { "$literal": 1 } } };
    let again = doc! { "$set": { "times": { "$add": ["$times", 1] } } };
    let book = doc! { "$merge": { "into": "booked", "whenMatched": [&again] } };
    let changes = doc! { "collection": "orders", "batchSize": 7 };
    works(
        server,
        doc! { "createJob": "book", "changes": &changes, "pipeline": [&event, &order, &book],
        "$db": "d" },
    );
    create_pay(server);
    let template = doc! { "_id": { "room": "$$item", "day": "$$day" } };
    let slots = doc! { "over": [ROOMS[0], ROOMS[1], ROOMS[2]], "days": DAYS, "template": &template,
    "into": "slots" };
    works(
        server,
        doc! { "createJob": "slots", "schedule": &schedule, "slots": &slots, "$db": "d" },
    );
}

/// Creates the job that moves the price of an order from the customer's account to the bank, and notes
/// the order in the account.
fn create_pay(server: &Serving) {
    for id in -1..CUSTOMERS {
        let account = doc! { "_id": id, "sum": OPENING_SUM, "orders": [] };
        works(server, doc! { "insert": "wallets", "documents": [&account], "$db": "d" });
    }
    let note = doc! { "$set": { "sum": { "$subtract": ["$sum", "$$event.fullDocument.price"] },
    "orders": { "$concatArrays": ["$orders", ["$$event.documentKey._id"]] } } };
    let gain = doc! { "$set": { "sum": { "$add": ["$sum", "$$event.fullDocument.price"] } } };
    let of_customer = doc! { "$expr": { "$eq": ["$_id", "$$event.fullDocument.customer"] } };
    let pay = doc! { "update": "wallets", "updates": [
    { "q": &of_customer, "u": [&note] }, { "q": { "_id": -1 }, "u": [&gain] }] };
    let parallel = doc! { "by": "$$event.fullDocument.customer", "lanes": 3 };
    let changes = doc! { "collection": "orders", "batchSize": 5, "parallel": &parallel };
    works(
        server,
        doc! { "createJob": "pay", "changes": &changes, "attempts": 1000, "writes": [&pay], "$db": "d" },
    );
}

/// Returns an order.
fn order(n: i64) -> DocBuf {
    doc! { "_id": n, "customer": (n * n % CUSTOMERS), "price": (n % 10) }
}

/// Inserts orders, at most `ORDERS_MAX`, until the connection breaks. Returns the number of the next
/// one.
fn order_until_broken(port: u16, first: i64) -> i64 {
    let mut n = first;
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { return n };
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    loop {
        let command = if n < first + ORDERS_MAX {
            n += 2;
            let orders = [order(n - 2), order(n - 1)];
            doc! { "insert": "orders", "documents": [&orders[0], &orders[1]], "$db": "d" }
        } else {
            doc! { "ping": 1, "$db": "admin" }
        };
        if try_exchange(&mut stream, command).is_none() {
            return n;
        }
    }
}

fn all(server: &Serving, collection: &str) -> Vec<DocBuf> {
    let find = doc! { "find": collection, "batchSize": 1_000_000, "singleBatch": true, "$db": "d" };
    let reply = works(server, find);
    let batch = reply.get("cursor").and_then(|cursor| cursor.as_document()?.get("firstBatch"));
    let batch = batch.and_then(|batch| batch.as_array()).unwrap();
    batch.iter().filter_map(|doc| doc.as_document()).map(Doc::to_owned).collect()
}

/// Waits until all orders are paid for, and checks that each was paid for once, in order.
fn check_paid(server: &Serving) {
    let mut orders: Vec<i64> = all(server, "orders").iter().map(|doc| number(doc, "_id")).collect();
    orders.sort_unstable();
    let paid =
        |wallets: &[DocBuf]| wallets.iter().map(|wallet| paid_by(wallet).len()).sum::<usize>();
    let mut wallets = all(server, "wallets");
    while paid(&wallets) < orders.len() {
        let shown = text(&quire(&["jobs", "show", "d.pay", "--uri", &server.uri()]).stdout);
        assert!(shown.contains("\"active\""), "{shown}");
        wallets = all(server, "wallets");
    }
    for wallet in wallets {
        let customer = number(&wallet, "_id");
        let own = |n: &&i64| number(&order(**n), "customer") == customer;
        let expected: Vec<i64> = match customer {
            -1 => Vec::new(),
            _ => orders.iter().filter(own).copied().collect(),
        };
        assert_eq!(paid_by(&wallet), expected, "the orders of customer {customer}");
        let price = |n: &i64| number(&order(*n), "price");
        let sum = match customer {
            -1 => OPENING_SUM + orders.iter().map(price).sum::<i64>(),
            _ => OPENING_SUM - expected.iter().map(price).sum::<i64>(),
        };
        assert_eq!(number(&wallet, "sum"), sum, "the money of customer {customer}");
    }
}

/// Returns the numbers of the orders that a customer has paid for.
fn paid_by(wallet: &DocBuf) -> Vec<i64> {
    let orders = wallet.get("orders").and_then(|orders| orders.as_array()).unwrap();
    orders.iter().filter_map(|order| order.exact_i64()).collect()
}

fn number(doc: &DocBuf, name: &str) -> i64 {
    doc.get(name).and_then(|value| value.exact_i64()).unwrap()
}

#[test]
fn runs_and_events_have_their_effect_once_when_the_server_is_killed() {
    let rounds: u64 =
        std::env::var("QUIRE_CRASH_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(3);
    let directory = Directory::new();
    let path = directory.join("db");
    let path = path.to_str().unwrap();
    let mut next = 0;
    for round in 0..rounds {
        let server = Serving::start(&["--dbpath", path]);
        if round == 0 {
            create_jobs(&server);
        }
        let port = server.port();
        let client = std::thread::spawn(move || order_until_broken(port, next));
        // A different moment in each round.
        std::thread::sleep(Duration::from_millis(300 + round * 7919 % 900));
        server.signal(Signal::KILL);
        next = client.join().unwrap();
    }
    let server = Serving::start(&["--dbpath", path]);
    while all(&server, "booked").len() < all(&server, "orders").len() {
        let shown = text(&quire(&["jobs", "show", "d.book", "--uri", &server.uri()]).stdout);
        assert!(shown.contains("\"active\""), "{shown}");
    }
    assert!(all(&server, "booked").iter().all(|booked| number(booked, "times") == 1));
    check_paid(&server);
    let slots = all(&server, "slots").len();
    assert!(slots >= ROOMS.len() * DAYS as usize, "{slots} slots");
    let uri = server.uri();
    let ran = quire(&["jobs", "run", "d.move", "--uri", &uri]);
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
    let listed = text(&quire(&["jobs", "--uri", &uri]).stdout);
    assert!(listed.contains("d.move") && listed.contains("on changes"), "{listed}");
    works(&server, doc! { "pauseJob": "move", "$db": "d" });
    let shown = text(&quire(&["jobs", "show", "d.move", "--uri", &uri]).stdout);
    assert!(shown.contains("\"paused\""), "{shown}");
    let moves = all(&server, "moves").len() as i64;
    assert!(moves > 0);
    for account in all(&server, "accounts") {
        let expected = match account.get("_id") {
            Some(Value::String("a")) => OPENING_SUM - moves,
            _ => moves,
        };
        assert_eq!(number(&account, "sum"), expected);
    }
    assert_eq!(server.end().code(), Some(0));
}
