//! Slots that a job makes and many clients book: the script of acceptance 09 with a job in place of its
//! preparation.

use super::change_streams::{array, document};
use super::user_jobs::{begin, find};
use super::*;
use quire_document::doc;
use std::collections::BTreeSet;
use std::sync::Barrier;

const CLIENTS: i32 = 50;
const DAYS: usize = 365;

/// Books a free slot for which `filter` holds, the earliest one, and returns it.
fn book(client: &mut Client, by: i32, filter: &DocBuf) -> Option<DocBuf> {
    let mut query = filter.clone();
    query.append("status", "free");
    let reply = client
        .works(doc! { "findAndModify": "slots", "query": &query, "sort": { "date": 1 },
        "update": { "$set": { "status": "booked", "by": by } }, "new": true, "$db": "d" });
    let value = reply.get("value").and_then(|value| value.as_document());
    value.map(Doc::to_owned)
}

/// Lets all clients book at the same time. Returns the slots that they got.
fn race(server: &Server, filter: &DocBuf) -> Vec<DocBuf> {
    let start = Barrier::new(CLIENTS as usize);
    std::thread::scope(|scope| {
        let client = |by: i32| {
            let (mut client, start) = (server.client(100 + by as u64), &start);
            scope.spawn(move || {
                client.works(doc! { "find": "slots", "limit": 1, "$db": "d" });
                start.wait();
                book(&mut client, by, filter)
            })
        };
        let clients: Vec<_> = (0..CLIENTS).map(client).collect();
        clients.into_iter().filter_map(|client| client.join().unwrap()).collect()
    })
}

fn date(slot: &DocBuf) -> i64 {
    match slot.get("date") {
        Some(Value::Date(date)) => date,
        other => panic!("{other:?}"),
    }
}

#[test]
fn fifty_clients_book_what_a_job_has_made_and_each_room_and_day_is_booked_once() {
    let (_disk, _clock, server, _jobs) = begin();
    let mut client = server.client(1);
    let unique = doc! { "key": { "resourceId": 1, "date": 1 }, "name": "slot", "unique": true };
    client.works(doc! { "createIndexes": "slots", "indexes": [&unique], "$db": "d" });
    let template = doc! { "resourceId": "$$item", "date": "$$day", "status": "free" };
    client.works(doc! { "createJob": "slots", "schedule": { "cron": "0 1 * * *" },
    "slots": { "over": ["room1"], "days": (DAYS as i32), "template": &template, "into": "slots",
        "on": ["resourceId", "date"] }, "$db": "d" });
    client.works(doc! { "runJob": "slots", "wait": true, "$db": "d" });
    let days: Vec<i64> = find(&mut client, "slots").iter().map(date).collect();
    assert_eq!(days.len(), DAYS);

    // All want one day.
    let day = doc! { "resourceId": "room1", "date": Value::Date(days[30]) };
    let got = race(&server, &day);
    assert_eq!(got.len(), 1);
    let slot = client.works(doc! { "find": "slots", "filter": &day, "$db": "d" });
    let slot = document(array(&slot, "cursor.firstBatch").iter().next());
    assert_eq!(
        (text(&slot, "status"), number(&slot, "by")),
        (Some("booked"), number(&got[0], "by"))
    );

    // All want one of twenty days.
    let range = doc! { "$gte": Value::Date(days[60]), "$lt": Value::Date(days[80]) };
    let got = race(&server, &doc! { "resourceId": "room1", "date": &range });
    let booked: BTreeSet<i64> = got.iter().map(date).collect();
    assert_eq!((got.len(), booked.len()), (20, 20));
    let clients: BTreeSet<_> = got.iter().map(|slot| number(slot, "by")).collect();
    assert_eq!(clients.len(), 20);

    // The next run leaves booked slots alone and fills gaps.
    let gap = doc! { "q": { "status": "free" }, "limit": 1 };
    client.works(doc! { "delete": "slots", "deletes": [&gap], "$db": "d" });
    client.works(doc! { "runJob": "slots", "wait": true, "$db": "d" });
    let slots = find(&mut client, "slots");
    let booked = slots.iter().filter(|slot| text(slot, "status") == Some("booked"));
    assert_eq!((slots.len(), booked.count()), (DAYS, 21));
}
