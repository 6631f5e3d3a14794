//! Change streams: of a collection, a database and a client; over restarts; and without a log.

use quire::bson::{Bson, DateTime, Document, doc};
use quire::change_stream::event::{ChangeStreamEvent, OperationType, ResumeToken};
use quire::error::ErrorKind;
use quire::options::{FullDocumentBeforeChangeType, FullDocumentType};
use quire::{ChangeStream, Client, OpenOptions};
use std::time::Duration;

fn watched(test: impl Fn(&Client)) {
    let logging = || OpenOptions::new().change_log(true);
    test(&logging().in_memory().unwrap());
    let directory = tempfile::tempdir().unwrap();
    test(&logging().open(directory.path()).unwrap());
}

fn next<T: serde::de::DeserializeOwned>(
    stream: &mut ChangeStream<ChangeStreamEvent<T>>,
) -> ChangeStreamEvent<T> {
    stream.next().unwrap().unwrap()
}

/// Returns the names of the events that are there.
fn rest(stream: &mut ChangeStream<ChangeStreamEvent<Document>>) -> Vec<String> {
    let events = std::iter::from_fn(|| stream.next_if_any().unwrap());
    events.map(|event| String::from(event.operation_type)).collect()
}

#[test]
fn events_have_what_the_options_ask_for() {
    watched(|client| {
        let db = client.database("d");
        db.run_command(doc! { "create": "c", "changeStreamPreAndPostImages": { "enabled": true } })
            .run()
            .unwrap();
        let c = db.collection::<Document>("c");
        let mut stream = c
            .watch()
            .full_document(FullDocumentType::Required)
            .full_document_before_change(FullDocumentBeforeChangeType::Required)
            .show_expanded_events(true)
            .comment("a stream")
            .batch_size(1)
            .run()
            .unwrap();
        let before = DateTime::now();
        c.insert_one(doc! { "_id": 1, "a": [1, 2, 3], "b": 1 }).run().unwrap();
        // Only the changes of a pipeline are compared element by element.
        let shorter = doc! { "$set": { "a": { "$slice": ["$a", 1] } } };
        c.update_one(doc! { "_id": 1 }, vec![shorter, doc! { "$unset": "b" }]).run().unwrap();
        c.replace_one(doc! { "_id": 1 }, doc! { "x": 1 }).run().unwrap();
        c.delete_one(doc! { "_id": 1 }).run().unwrap();
        let insert = next(&mut stream);
        assert_eq!(insert.operation_type, OperationType::Insert);
        assert_eq!(insert.document_key, Some(doc! { "_id": 1 }));
        assert_eq!(insert.full_document, Some(doc! { "_id": 1, "a": [1, 2, 3], "b": 1 }));
        let ns = insert.ns.unwrap();
        assert_eq!((ns.db.as_str(), ns.coll.as_deref()), ("d", Some("c")));
        assert!(insert.wall_time.unwrap() >= before && insert.cluster_time.is_some());
        assert!(insert.collection_uuid.is_some());
        let update = next(&mut stream);
        let changed = update.update_description.unwrap();
        assert_eq!(changed.removed_fields, ["b"]);
        let arrays = changed.truncated_arrays.unwrap();
        assert_eq!((arrays[0].field.as_str(), arrays[0].new_size), ("a", 1));
        assert_eq!(update.full_document, Some(doc! { "_id": 1, "a": [1] }));
        assert_eq!(
            update.full_document_before_change,
            Some(doc! { "_id": 1, "a": [1, 2, 3], "b": 1 })
        );
        assert_eq!(next(&mut stream).operation_type, OperationType::Replace);
        let delete = next(&mut stream);
        assert_eq!(delete.operation_type, OperationType::Delete);
        assert_eq!(delete.full_document_before_change, Some(doc! { "_id": 1, "x": 1 }));
        assert!(delete.full_document.is_none());
        c.drop().run().unwrap();
        assert_eq!(next(&mut stream).operation_type, OperationType::Drop);
        assert_eq!(next(&mut stream).operation_type, OperationType::Invalidate);
        assert!(stream.next().is_none() && !stream.is_alive());
    });
}

#[test]
fn a_database_and_a_client_show_all_their_collections() {
    watched(|client| {
        let (mut all, mut one) =
            (client.watch().run().unwrap(), client.database("d").watch().run().unwrap());
        client.database("d").collection("a").insert_one(doc! {}).run().unwrap();
        client.database("e").collection("b").insert_one(doc! {}).run().unwrap();
        let mut session = client.start_session().run().unwrap();
        session.start_transaction().run().unwrap();
        client.database("d").collection("a").insert_one(doc! {}).session(&session).run().unwrap();
        session.commit_transaction().run().unwrap();
        client.database("d").drop().run().unwrap();
        let short = Duration::from_millis(1);
        assert_eq!(rest(&mut all), ["insert", "insert", "insert", "drop", "dropDatabase"]);
        assert_eq!(rest(&mut one), ["insert", "insert", "drop", "dropDatabase", "invalidate"]);
        let mut quiet = client.watch().max_await_time(short).run().unwrap();
        assert!(quiet.next_if_any().unwrap().is_none() && quiet.is_alive());
    });
}

#[test]
fn a_stream_goes_on_after_a_restart_and_from_a_time() {
    let directory = tempfile::tempdir().unwrap();
    let client = OpenOptions::new().change_log(true).open(directory.path()).unwrap();
    let c = client.database("d").collection::<Document>("c");
    let mut stream = c.watch().run().unwrap();
    c.insert_many((0..5).map(|id| doc! { "_id": id })).run().unwrap();
    let first = next(&mut stream);
    assert_eq!(stream.resume_token(), Some(first.id.clone()));
    let second = next(&mut stream);
    let stored = quire::bson::serialize_to_document(&second.id).unwrap();
    drop(stream);
    client.shutdown().run().unwrap();
    // A directory that has a log keeps it.
    let client = Client::open(directory.path()).unwrap();
    let c = client.database("d").collection::<Document>("c");
    let token: ResumeToken = quire::bson::deserialize_from_document(stored).unwrap();
    let mut stream = c.watch().resume_after(token.clone()).run().unwrap();
    assert_eq!(stream.resume_token(), Some(token.clone()));
    let ids = |stream: &mut ChangeStream<ChangeStreamEvent<Document>>| -> Vec<Bson> {
        let events = std::iter::from_fn(|| stream.next_if_any().unwrap());
        events.map(|event| event.document_key.unwrap().get("_id").unwrap().clone()).collect()
    };
    assert_eq!(ids(&mut stream), [2, 3, 4].map(Bson::Int32));
    let mut stream = c.watch().start_after(token).run().unwrap();
    assert_eq!(ids(&mut stream).len(), 3);
    let time = first.cluster_time.unwrap();
    let mut stream = c.watch().start_at_operation_time(time).run().unwrap();
    assert_eq!(ids(&mut stream).len(), 5);
    client.shutdown().run().unwrap();
    // Without the log the tokens are gone with it.
    let client = OpenOptions::new().change_log(false).open(directory.path()).unwrap();
    assert_eq!(client.watch().run().unwrap_err().code(), Some(40573));
    client.shutdown().run().unwrap();
    let client = OpenOptions::new().change_log(true).open(directory.path()).unwrap();
    let lost = client.watch().resume_after(first.id).run().unwrap_err();
    assert_eq!(lost.code(), Some(286));
}

/// The database closes a cursor from which nothing is read. The stream opens another one.
#[test]
fn a_stream_whose_cursor_was_closed_goes_on_behind_the_last_event() {
    watched(|client| {
        let c = client.database("d").collection::<Document>("c");
        let mut stream = c.watch().run().unwrap();
        c.insert_many((0..3).map(|id| doc! { "_id": id })).run().unwrap();
        assert_eq!(next(&mut stream).document_key, Some(doc! { "_id": 0 }));
        // `killAllSessions` has no cursors without a session; the sweep of idle cursors has.
        let idle = doc! { "setParameter": 1, "cursorTimeoutMillis": 1 };
        client.database("admin").run_command(idle).run().unwrap();
        let open = || {
            let status = doc! { "serverStatus": 1 };
            let status = client.database("admin").run_command(status).run().unwrap();
            let open = status.get_document("metrics").unwrap().get_document("cursor").unwrap();
            open.get_document("open").unwrap().get("total").cloned()
        };
        while open() != Some(Bson::Int64(0)) {
            std::thread::park_timeout(Duration::from_millis(5));
        }
        let idle = doc! { "setParameter": 1, "cursorTimeoutMillis": 600_000 };
        client.database("admin").run_command(idle).run().unwrap();
        c.insert_one(doc! { "_id": 3 }).run().unwrap();
        let ids: Vec<_> = (1..4).map(|_| next(&mut stream).document_key.unwrap()).collect();
        assert_eq!(ids, [doc! { "_id": 1 }, doc! { "_id": 2 }, doc! { "_id": 3 }]);
    });
}

#[test]
fn a_shutdown_ends_a_stream_that_waits() {
    watched(|client| {
        let c = client.database("d").collection::<Document>("c");
        let mut stream = c.watch().max_await_time(Duration::from_secs(3600)).run().unwrap();
        let (began, begun) = std::sync::mpsc::channel();
        let waiting = std::thread::spawn(move || {
            began.send(()).unwrap();
            (stream.next().unwrap().unwrap_err(), stream.is_alive(), stream.next().is_none())
        });
        begun.recv().unwrap();
        client.clone().shutdown().run().unwrap();
        let (error, alive, ended) = waiting.join().unwrap();
        assert!(error.code() == Some(11600) || matches!(&*error.kind, ErrorKind::Shutdown));
        assert!(!alive && ended);
    });
}

#[test]
fn a_stream_of_ones_own_type_and_a_wrong_pipeline() {
    #[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
    struct Lamp {
        #[serde(rename = "_id")]
        id: i32,
        left: i32,
    }
    watched(|client| {
        let c = client.database("d").collection::<Lamp>("c");
        let mut stream = c.watch().run().unwrap();
        c.insert_one(Lamp { id: 1, left: 2 }).run().unwrap();
        assert_eq!(next(&mut stream).full_document, Some(Lamp { id: 1, left: 2 }));
        let mut plain = stream.with_type::<Document>();
        c.insert_one(Lamp { id: 2, left: 2 }).run().unwrap();
        let event = plain.next().unwrap().unwrap();
        assert_eq!(event.get_str("operationType").unwrap(), "insert");
        let wrong = c.watch().pipeline([doc! { "$group": { "_id": 1 } }]).run().unwrap_err();
        assert_eq!(wrong.code(), Some(20));
    });
}
