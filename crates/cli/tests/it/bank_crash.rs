//! kill -9 of the whole server under eight clients that move money between two collections, each in
//! a transaction: the sum never changes, each transfer is complete, no acknowledged transfer is
//! lost, and repeating the interrupted commit returns its outcome. `QUIRE_CRASH_ROUNDS=200` for the
//! long run.

use crate::{Directory, Serving, exchange, try_exchange};
use quire_document::{Array, Binary, DocBuf, Value, doc};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::net::TcpStream;
use std::time::Duration;

const CLIENTS: i32 = 8;
/// The number of accounts in each of the two collections.
const ACCOUNTS: i32 = 6;
const OPENING_SUM: i64 = 1000;
const ROUNDS_OF_A_DIRECTORY: u64 = 20;

/// What a client knows after its connection broke.
struct Cut {
    /// The transfers that were acknowledged in this round.
    acknowledged: i64,
    /// The session and the number of the transaction whose commit was interrupted, if there is one.
    commit: Option<(i32, i64)>,
}

fn within(mut command: DocBuf, (session, number): (i32, i64), start: bool) -> DocBuf {
    let mut bytes = [7; 16];
    bytes[..4].copy_from_slice(&session.to_be_bytes());
    command.append("lsid", &doc! { "id": Value::Binary(Binary { subtype: 4, bytes: &bytes }) });
    command.append("txnNumber", number).append("autocommit", false);
    if start {
        command.append("startTransaction", true);
    }
    command
}

fn commit(id: (i32, i64)) -> DocBuf {
    let concern = doc! { "w": "majority" };
    within(doc! { "commitTransaction": 1, "writeConcern": &concern, "$db": "admin" }, id, false)
}

fn number(value: Option<Value<'_>>) -> i64 {
    match value {
        Some(Value::Int32(number)) => number.into(),
        Some(Value::Int64(number)) => number,
        Some(Value::Double(number)) => number as i64,
        other => panic!("no number: {other:?}"),
    }
}

fn worked(reply: &DocBuf) -> bool {
    number(reply.get("ok")) == 1
}

/// Returns the statements of transfer `n` of a client: out of one collection, into the other, and a
/// record.
fn statements(client: i32, n: i64) -> [DocBuf; 3] {
    let (from, to) = ((client + n as i32) % ACCOUNTS, (client * 3 + n as i32 * 5) % ACCOUNTS);
    let (giver, taker) = if n % 2 == 0 { ("left", "right") } else { ("right", "left") };
    let amount = 1 + n % 9;
    let change = |collection: &str, id: i32, amount: i64| {
        doc! {
            "update": collection, "$db": "bank",
            "updates": [{ "q": { "_id": id }, "u": { "$inc": { "sum": amount } } }],
        }
    };
    let record = doc! {
        "client": client, "n": n, "giver": giver, "from": from, "to": to, "amount": amount,
    };
    [
        change(giver, from, -amount),
        change(taker, to, amount),
        doc! { "insert": "log", "$db": "bank", "documents": [&record] },
    ]
}

/// Transfers until the connection breaks, beginning with transfer `n`.
fn transfer_until_broken(port: u16, client: i32, session: i32, mut n: i64) -> Cut {
    let (mut acknowledged, mut attempt) = (0, 0);
    let cut = |acknowledged, commit| Cut { acknowledged, commit };
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { return cut(0, None) };
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    'attempts: loop {
        attempt += 1;
        let id = (session, attempt);
        for (place, statement) in statements(client, n).into_iter().enumerate() {
            let Some(reply) = try_exchange(&mut stream, within(statement, id, place == 0)) else {
                return cut(acknowledged, None);
            };
            if !worked(&reply) {
                assert_eq!(number(reply.get("code")), 112, "{reply:?}");
                continue 'attempts;
            }
        }
        match try_exchange(&mut stream, commit(id)) {
            None => return cut(acknowledged, Some(id)),
            Some(reply) => assert!(worked(&reply), "{reply:?}"),
        }
        (acknowledged, n) = (acknowledged + 1, n + 1);
    }
}

/// Returns all documents of a collection.
fn all(stream: &mut TcpStream, collection: &str) -> Vec<DocBuf> {
    let mut found = Vec::new();
    let mut take = |batch: Array<'_>| {
        found
            .extend(batch.iter().filter_map(|value| value.as_document()).map(|doc| doc.to_owned()));
    };
    let mut reply = exchange(stream, doc! { "find": collection, "$db": "bank" });
    let mut batch = "firstBatch";
    loop {
        let cursor = reply.get("cursor").and_then(|cursor| cursor.as_document()).unwrap();
        take(cursor.get(batch).and_then(|batch| batch.as_array()).unwrap());
        let id = number(cursor.get("id"));
        if id == 0 {
            return found;
        }
        batch = "nextBatch";
        let more = doc! { "getMore": id, "collection": collection, "$db": "bank" };
        reply = exchange(stream, more);
    }
}

fn open_accounts(server: &Serving) {
    for collection in ["left", "right"] {
        for id in 0..ACCOUNTS {
            let account = doc! { "_id": id, "sum": OPENING_SUM };
            let insert = doc! { "insert": collection, "$db": "bank", "documents": [&account] };
            assert!(worked(&server.run(insert)));
        }
    }
    assert!(worked(&server.run(doc! { "create": "log", "$db": "bank" })));
}

/// Checks the sum and the records. Returns how many transfers each client has made.
fn audit(server: &Serving) -> Vec<i64> {
    let mut stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    let mut expected: BTreeMap<(&str, i64), i64> = BTreeMap::new();
    for collection in ["left", "right"] {
        expected.extend((0..ACCOUNTS).map(|id| ((collection, i64::from(id)), OPENING_SUM)));
    }
    let mut made = vec![Vec::new(); CLIENTS as usize];
    for record in all(&mut stream, "log") {
        let field = |name: &str| number(record.get(name));
        made[field("client") as usize].push(field("n"));
        let giver = record.get("giver").and_then(|giver| giver.as_str()).unwrap();
        let (giver, taker) = if giver == "left" { ("left", "right") } else { ("right", "left") };
        *expected.get_mut(&(giver, field("from"))).unwrap() -= field("amount");
        *expected.get_mut(&(taker, field("to"))).unwrap() += field("amount");
    }
    let mut total = 0;
    for collection in ["left", "right"] {
        for account in all(&mut stream, collection) {
            let (id, sum) = (number(account.get("_id")), number(account.get("sum")));
            assert_eq!(expected[&(collection, id)], sum, "{collection} {id}");
            total += sum;
        }
    }
    assert_eq!(total, OPENING_SUM * i64::from(ACCOUNTS) * 2);
    let count = |mut numbers: Vec<i64>| {
        numbers.sort_unstable();
        assert!(numbers.iter().copied().eq(0..numbers.len() as i64), "{numbers:?}");
        numbers.len() as i64
    };
    made.into_iter().map(count).collect()
}

#[test]
fn a_transfer_is_whole_or_did_not_happen_when_the_server_is_killed() {
    let rounds: u64 =
        std::env::var("QUIRE_CRASH_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(3);
    let mut directory = Directory::new();
    let mut done = vec![0; CLIENTS as usize];
    let (mut total, mut cut_off, mut survived) = (0, 0, 0);
    for round in 0..rounds {
        let is_new = round % ROUNDS_OF_A_DIRECTORY == 0;
        if is_new {
            directory = Directory::new();
            done.fill(0);
        }
        let path = directory.join("db");
        let path = path.to_str().unwrap();
        let server = Serving::start(&["--dbpath", path]);
        if is_new {
            open_accounts(&server);
        }
        let port = server.port();
        let clients: Vec<_> = (0..CLIENTS)
            .zip(done.iter().copied())
            .map(|(client, n)| {
                let session = (round as i32) * CLIENTS + client;
                std::thread::spawn(move || transfer_until_broken(port, client, session, n))
            })
            .collect();
        // A different moment in each round.
        std::thread::sleep(Duration::from_millis(100 + round * 7919 % 400));
        server.signal(Signal::KILL);
        let cuts: Vec<Cut> = clients.into_iter().map(|client| client.join().unwrap()).collect();
        drop(server);

        let server = Serving::start(&["--dbpath", path]);
        let made = audit(&server);
        for (client, cut) in cuts.iter().enumerate() {
            let unknown = made[client] - done[client] - cut.acknowledged;
            assert!((0..=i64::from(cut.commit.is_some())).contains(&unknown), "client {client}");
            if let Some(id) = cut.commit {
                let reply = server.run(commit(id));
                let expected = if unknown == 1 { 0 } else { 251 };
                assert_eq!(reply.get("code").map_or(0, |code| number(Some(code))), expected);
                (cut_off, survived) = (cut_off + 1, survived + unknown);
            }
            total += cut.acknowledged;
        }
        assert_eq!(audit(&server), made, "an answer of a repeated commit changes nothing");
        done = made;
        assert_eq!(server.end().code(), Some(0));
    }
    assert!(total > 0, "nothing was ever acknowledged");
    println!(
        "{total} acknowledged transfers in {rounds} rounds; of {cut_off} commits that were cut off {survived} had happened"
    );
}
