//! Logical sessions: their members, what ends with them, and their times.

use crate::{Client, Server, at, code, number, text};
use quire_collections::{Stepped, reap_job};
use quire_document::{Binary, DocBuf, Timestamp, Value, doc};
use quire_storage::{Clock, Interrupt, ManualClock, open_memory};
use std::sync::Arc;

fn lsid(session: u8) -> DocBuf {
    let bytes = [session; 16];
    doc! { "id": Value::Binary(Binary { subtype: 4, bytes: &bytes }) }
}

fn local_sessions(client: &mut Client) -> usize {
    let stage = doc! { "$listLocalSessions": {} };
    let list =
        client.works(doc! { "aggregate": 1, "pipeline": [&stage], "cursor": {}, "$db": "test" });
    at(&list, "cursor.firstBatch").unwrap().as_array().unwrap().count()
}

/// Returns a cursor with remaining documents, opened in a session.
fn cursor(client: &mut Client, session: u8) -> i64 {
    client.run(doc! { "insert": "t", "documents": [{ "_id": 1 }, { "_id": 2 }], "$db": "test" });
    let find = doc! { "find": "t", "batchSize": 1, "lsid": &lsid(session), "$db": "test" };
    number(&client.works(find), "cursor.id").unwrap()
}

fn get_more(id: i64, session: Option<u8>) -> DocBuf {
    let mut command = doc! { "getMore": id, "collection": "t", "$db": "test" };
    if let Some(session) = session {
        command.append("lsid", &lsid(session));
    }
    command
}

#[test]
fn sessions_begin_at_their_first_use_and_end_on_request() {
    let server = Server::new();
    let mut client = server.client(1);
    let started = client.works(doc! { "startSession": 1, "$db": "test" });
    assert_eq!(number(&started, "timeoutMinutes"), Some(30));
    assert!(matches!(at(&started, "id.id"), Some(Value::Binary(Binary { subtype: 4, .. }))));
    let id = cursor(&mut client, 1);
    client.works(doc! { "refreshSessions": [&lsid(2), Value::Null], "$db": "test" });
    assert_eq!(local_sessions(&mut client), 3);
    client.works(doc! { "endSessions": [&lsid(1), &lsid(9)], "$db": "admin" });
    assert_eq!(local_sessions(&mut client), 2);
    assert_eq!(code(&client.run(get_more(id, Some(1)))), 43);
}

#[test]
fn a_cursor_belongs_to_its_session() {
    let server = Server::new();
    let mut client = server.client(1);
    let id = cursor(&mut client, 1);
    assert_eq!(code(&client.run(get_more(id, None))), 50737);
    assert_eq!(code(&client.run(get_more(id, Some(2)))), 50738);
    client.works(get_more(id, Some(1)));
}

#[test]
fn killing_a_session_stops_its_operations() {
    let server = Server::new();
    let block = doc! {
        "configureFailPoint": "failCommand", "mode": { "times": 2 }, "$db": "admin",
        "data": { "failCommands": ["ping"], "blockConnection": true, "blockTimeMS": 60_000 },
    };
    let mut client = server.client(1);
    client.works(block);
    let mut other = server.client(2);
    let mut kills = 0;
    for kill in ["killSessions", "killAllSessionsByPattern"] {
        let busy = std::thread::scope(|scope| {
            let busy =
                scope.spawn(|| other.run(doc! { "ping": 1, "lsid": &lsid(1), "$db": "test" }));
            loop {
                let own = doc! { "currentOp": 1, "command.ping": 1, "$db": "admin" };
                let running = client.works(own);
                let list = running.get("inprog").unwrap().as_array().unwrap();
                if let Some(Value::Document(operation)) = list.iter().next() {
                    assert!(operation.get("lsid").is_some(), "{running:?}");
                    break;
                }
                std::thread::yield_now();
            }
            let target = match kill {
                "killSessions" => lsid(1),
                _ => {
                    doc! { "uid": Value::Binary(Binary { subtype: 0, bytes: &quire_session::NO_USER }) }
                }
            };
            client.works(doc! { kill: [&target], "$db": "admin" });
            kills += 1;
            busy.join().unwrap()
        });
        assert_eq!(code(&busy), 11601, "{kill}");
    }
    assert_eq!(kills, 2);
}

#[test]
fn idle_sessions_and_their_records_expire() {
    let server = Server::new();
    let mut client = server.client(1);
    let id = cursor(&mut client, 1);
    let insert = |document: i32| {
        let session = lsid(1);
        doc! {
            "insert": "u", "documents": [{ "_id": document }], "lsid": &session, "txnNumber": 1i64, "$db": "test",
        }
    };
    client.works(insert(1));
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let now = now.as_millis() as i64;
    let reap = |now: i64| {
        let (mut job, mut is_stored) = (reap_job(now), false);
        let stepped = server.0.store().step_job(
            &mut job,
            &mut is_stored,
            &Interrupt::new(),
            |writer, job| server.0.reap_step(writer, job, now, 500),
        );
        assert_eq!((stepped.unwrap(), is_stored), (Stepped::Ended, false));
        job.done
    };
    server.0.end_idle_sessions(now + 29 * 60_000);
    assert_eq!(local_sessions(&mut client), 1);
    server.0.end_idle_sessions(now + 31 * 60_000);
    assert_eq!(local_sessions(&mut client), 0);
    assert_eq!(code(&client.run(get_more(id, Some(1)))), 43);
    // The record is younger than the time-out: a repeated write is still recognised.
    assert_eq!(reap(now), 0);
    assert!(client.works(insert(2)).get("retriedStmtIds").is_some());
    // A session in use keeps its records, however old they are.
    assert_eq!(reap(now + 31 * 60_000), 0);
    server.0.end_idle_sessions(now + 40 * 60_000);
    assert_eq!(reap(now + 40 * 60_000), 1);
    assert!(client.works(insert(2)).get("retriedStmtIds").is_none());
}

#[test]
fn malformed_session_ids_are_refused_and_leave_no_session() {
    let server = Server::new();
    let mut client = server.client(1);
    let short = Value::Binary(Binary { subtype: 4, bytes: &[1; 15] });
    let long = Value::Binary(Binary { subtype: 0, bytes: &[1; 33] });
    let good = lsid(1);
    let id = good.get("id").unwrap();
    for (lsid, expected) in [
        (doc! {}, 40414),
        (doc! { "id": Value::Null }, 40414),
        (doc! { "id": short }, 207),
        (doc! { "id": 1 }, 14),
        (doc! { "id": id, "uid": long }, 12),
        (doc! { "id": id, "id2": 1 }, 40415),
        (doc! { "id": id, "txnNumber": 1i64 }, 115),
    ] {
        let find = doc! { "find": "t", "lsid": &lsid, "$db": "test" };
        assert_eq!(code(&client.run(find)), expected, "{lsid:?}");
    }
    assert_eq!(local_sessions(&mut client), 0);
}

#[test]
fn a_clients_cluster_time_moves_the_clock_on() {
    let server = Server::new();
    let mut client = server.client(1);
    let time = |reply: &DocBuf| match reply.get("operationTime") {
        Some(Value::Timestamp(time)) => time,
        other => panic!("{other:?}"),
    };
    let now = time(&client.works(doc! { "ping": 1, "$db": "test" }));
    let ahead = Timestamp { seconds: now.seconds + 1000, increment: 7 };
    let find = |after: Timestamp| doc! { "find": "t", "readConcern": { "afterClusterTime": after }, "$db": "test" };
    assert_eq!(code(&client.run(find(ahead))), 72);
    let mut gossiping = find(ahead);
    gossiping.append("$clusterTime", &doc! { "clusterTime": ahead });
    assert!(time(&client.works(gossiping)) >= ahead);
    let insert = doc! { "insert": "t", "documents": [{ "_id": 1 }], "$db": "test" };
    let written = time(&client.works(insert));
    assert!(written > ahead);
    client.works(find(written));
    let years = Timestamp { seconds: now.seconds + 400 * 24 * 3600, increment: 1 };
    let mut liar = doc! { "ping": 1, "$db": "test" };
    liar.append("$clusterTime", &doc! { "clusterTime": years });
    assert_eq!(code(&client.run(liar)), 205);
}

/// After a restart with the right clock, a server whose clock had been three years ahead refused every
/// request of the drivers that had been connected to it, because they sent its own times.
#[test]
fn a_clock_that_was_set_back_refuses_no_time_that_the_server_has_sent() {
    const DAY: u32 = 24 * 3600;
    const NOW: u32 = 2_000_000_000;
    let clock = Arc::new(ManualClock::new(u64::from(NOW) * 1000));
    let engine = open_memory().unwrap();
    let open = || Server::at(Arc::clone(&engine), Arc::clone(&clock) as Arc<dyn Clock>);
    let show = |seconds: u32| clock.set_ms(u64::from(seconds) * 1000);
    let told = |server: &Server, seconds: u32| {
        let mut ping = doc! { "ping": 1, "$db": "test" };
        let time = Timestamp { seconds, increment: 1 };
        ping.append("$clusterTime", &doc! { "clusterTime": time });
        let reply = server.client(1).run(ping);
        let Some(Value::Timestamp(now)) = reply.get("operationTime") else { panic!("{reply:?}") };
        (code(&reply), now.seconds)
    };
    // Clients cannot advance it further with each start: only the wall clock counts.
    for _ in 0..3 {
        let server = open();
        assert_eq!(told(&server, NOW + 364 * DAY), (0, NOW + 364 * DAY));
        assert_eq!(told(&server, NOW + 367 * DAY).0, 205);
    }
    let ahead = NOW + 3 * 365 * DAY;
    assert_eq!(told(&open(), ahead).0, 205);
    show(ahead);
    assert_eq!(told(&open(), NOW), (0, ahead));
    show(NOW);
    let server = open();
    assert_eq!(told(&server, ahead), (0, ahead));
    // Times that clients sent to the server while it was ahead are accepted as well.
    assert_eq!(told(&server, ahead + 364 * DAY), (0, ahead + 364 * DAY));
    assert_eq!(told(&server, ahead + 367 * DAY).0, 205);

    // The clock jumps while the server runs: the background job notices.
    let later = ahead + 5 * 365 * DAY;
    let jobs = server.0.start_jobs().unwrap();
    show(later);
    let setting = || server.0.store().setting("clock").unwrap().unwrap();
    let latest = || match setting().get("latest") {
        Some(Value::Date(ms)) => ms / 1000,
        other => panic!("{other:?}"),
    };
    while latest() < i64::from(later) {
        std::thread::yield_now();
    }
    drop(jobs);
    show(NOW);
    assert_eq!(told(&open(), later), (0, later));
}

#[test]
fn default_concerns_hold_and_outlive_the_server() {
    let server = Server::new();
    let mut client = server.client(1);
    let get = || doc! { "getDefaultRWConcern": 1, "$db": "admin" };
    let fresh = client.works(get());
    assert_eq!(text(&fresh, "defaultWriteConcernSource"), Some("implicit"));
    assert_eq!(text(&fresh, "defaultWriteConcern.w"), Some("majority"));
    let set = doc! {
        "setDefaultRWConcern": 1, "defaultWriteConcern": { "w": 1, "wtimeout": 10 },
        "defaultReadConcern": { "level": "majority" }, "$db": "admin",
    };
    client.works(set);
    let refused = doc! {
        "setDefaultRWConcern": 1, "defaultReadConcern": { "level": "local" },
        "defaultWriteConcern": {}, "$db": "admin",
    };
    assert_eq!(code(&client.run(refused)), 20);
    for w in [doc! { "w": 2 }, doc! { "w": "moon" }, doc! { "wtimeout": 5 }, doc! { "w": 0 }] {
        let set = doc! { "setDefaultRWConcern": 1, "defaultWriteConcern": &w, "$db": "admin" };
        assert_ne!(code(&client.run(set)), 0, "{w:?}");
    }
    let again = server.reopened();
    let kept = again.client(1).works(get());
    assert_eq!(text(&kept, "defaultReadConcern.level"), Some("majority"));
    assert_eq!(number(&kept, "defaultWriteConcern.wtimeout"), Some(10));
    assert_eq!(text(&kept, "defaultReadConcernSource"), Some("global"));
}

#[test]
fn a_failed_write_reports_its_write_concern_too() {
    let server = Server::new();
    let mut client = server.client(1);
    client.works(doc! { "insert": "t", "documents": [{ "_id": 1, "s": "x" }], "$db": "test" });
    let modify = |body: DocBuf| {
        let mut command = doc! { "findAndModify": "t", "query": { "_id": 1 } };
        command.extend(|writer| {
            writer.append_all(body.as_doc());
        });
        command.append("writeConcern", &doc! { "w": 3 }).append("$db", "test");
        command
    };
    let failed = client.run(modify(doc! { "update": { "$inc": { "s": 1 } } }));
    assert_eq!((code(&failed), number(&failed, "writeConcernError.code")), (14, Some(100)));
    // A command that could not be parsed has not begun to write.
    let unparsed = client.run(modify(doc! { "remove": true, "new": true }));
    assert_eq!(code(&unparsed), 9);
    assert!(unparsed.get("writeConcernError").is_none());
}
