//! Sessions: their cursors, the single time of snapshot sessions, and their end.

use crate::on_both_engines;
use quire::Client;
use quire::bson::{Document, doc};
use quire::error::ErrorKind;

fn numbers(client: &Client) -> quire::Collection<Document> {
    let numbers = client.database("test").collection::<Document>("numbers");
    let all: Vec<_> = (0..300).map(|id| doc! { "_id": id, "v": 0 }).collect();
    numbers.insert_many(&all).run().unwrap();
    numbers
}

fn sessions(client: &Client) -> usize {
    let pipeline = [doc! { "$listLocalSessions": {} }];
    client.database("config").aggregate(pipeline).run().unwrap().count()
}

#[test]
fn a_snapshot_session_reads_everything_at_one_time() {
    on_both_engines(|client| {
        let numbers = numbers(client);
        let session = client.start_session().snapshot(true).run().unwrap();
        assert_eq!(session.snapshot_time(), None);
        let mut cursor = numbers.find(doc! {}).batch_size(100).session(&session).run().unwrap();
        let time = session.snapshot_time().expect("the first read sets the time");
        assert!(cursor.advance().unwrap());
        numbers.update_many(doc! {}, doc! { "$inc": { "v": 1 } }).session(&session).run().unwrap();
        numbers.delete_many(doc! { "_id": { "$gte": 200 } }).run().unwrap();
        let rest: Vec<Document> = cursor.map(Result::unwrap).collect();
        assert_eq!(rest.len(), 299);
        assert!(rest.iter().all(|document| document.get_i32("v").unwrap() == 0));
        let count = |session| {
            let counted = numbers.count_documents(doc! { "v": 0 });
            match session {
                Some(session) => counted.session(session).run().unwrap(),
                None => counted.run().unwrap(),
            }
        };
        assert_eq!((count(Some(&session)), count(None)), (300, 0));
        assert_eq!(numbers.distinct("v", doc! {}).session(&session).run().unwrap().len(), 1);
        assert_eq!(session.snapshot_time(), Some(time));
        let again = client.start_session().snapshot(true).snapshot_time(time).run().unwrap();
        assert_eq!(count(Some(&again)), 300);
    });
}

#[test]
fn a_session_sees_its_times_and_ends() {
    on_both_engines(|client| {
        let numbers = numbers(client);
        let before = sessions(client);
        let session = client.start_session().run().unwrap();
        assert_eq!(session.operation_time(), None);
        numbers.insert_one(doc! { "_id": 1000 }).session(&session).run().unwrap();
        let first = session.operation_time().unwrap();
        assert!(session.cluster_time().is_some());
        numbers.delete_one(doc! { "_id": 1000 }).session(&session).run().unwrap();
        assert!(session.operation_time().unwrap() > first);
        let ping = client.database("admin").run_command(doc! { "ping": 1 });
        ping.session(&session).run().unwrap();
        assert_eq!(sessions(client), before + 1);
        drop(session);
        assert_eq!(sessions(client), before);
    });
}

#[test]
fn options_of_a_session_that_exclude_each_other_are_refused() {
    let client = Client::in_memory().unwrap();
    let refused = |action: quire::action::StartSession| {
        let error = action.run().unwrap_err();
        assert!(matches!(&*error.kind, ErrorKind::InvalidArgument { .. }), "{error:?}");
    };
    refused(client.start_session().snapshot(true).causal_consistency(true));
    let time = quire::bson::Timestamp { time: 1, increment: 1 };
    refused(client.start_session().snapshot_time(time));
    let session = client.start_session().snapshot(true).snapshot_time(time).run().unwrap();
    let error = numbers(&client).find_one(doc! {}).session(&session).run().unwrap_err();
    assert_eq!(error.code(), Some(239), "{error}");
}
