//! Transactions: visibility, how they end, and the form that retries.

use crate::on_both_engines;
use quire::bson::{Document, doc};
use quire::error::{Error, ErrorKind};
use quire::options::{ReadConcern, WriteConcern};
use quire::{Client, ClientSession, Collection};
use std::sync::Barrier;

fn accounts(client: &Client) -> Collection<Document> {
    let accounts = client.database("bank").collection::<Document>("accounts");
    let all: Vec<_> = (0..10).map(|id| doc! { "_id": id, "sum": 100 }).collect();
    accounts.insert_many(&all).run().unwrap();
    accounts
}

fn add(
    accounts: &Collection<Document>,
    id: i32,
    sum: i32,
    session: &ClientSession,
) -> Result<(), Error> {
    let update = doc! { "$inc": { "sum": sum } };
    accounts.update_one(doc! { "_id": id }, update).session(session).run().map(drop)
}

fn sum(accounts: &Collection<Document>, id: i32) -> i32 {
    let found = accounts.find_one(doc! { "_id": id }).run().unwrap();
    found.and_then(|found| found.get_i32("sum").ok()).unwrap()
}

fn refusal(error: Error) -> String {
    match *error.kind {
        ErrorKind::InvalidArgument { message, .. } => message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn writes_of_a_transaction_are_visible_after_the_commit_and_never_after_an_abort() {
    on_both_engines(|client| {
        let accounts = accounts(client);
        let mut session = client.start_session().run().unwrap();
        session
            .start_transaction()
            .read_concern(ReadConcern::snapshot())
            .write_concern(WriteConcern::majority())
            .run()
            .unwrap();
        add(&accounts, 1, -30, &session).unwrap();
        let log = client.database("audit").collection::<Document>("log");
        log.insert_one(doc! { "moved": 30 }).session(&session).run().unwrap();
        let own = accounts.find(doc! { "sum": 70 }).session(&session).run().unwrap();
        assert_eq!(own.count(), 1);
        assert_eq!(
            accounts.count_documents(doc! { "sum": 70 }).session(&session).run().unwrap(),
            1
        );
        assert_eq!((sum(&accounts, 1), log.count_documents(doc! {}).run().unwrap()), (100, 0));
        session.commit_transaction().run().unwrap();
        session.commit_transaction().run().expect("a commit may be repeated");
        assert_eq!((sum(&accounts, 1), log.count_documents(doc! {}).run().unwrap()), (70, 1));

        session.start_transaction().run().unwrap();
        add(&accounts, 1, 1, &session).unwrap();
        session.abort_transaction().run().unwrap();
        assert_eq!(sum(&accounts, 1), 70);
        add(&accounts, 1, 1, &session).unwrap();
        assert_eq!(sum(&accounts, 1), 71, "an operation after it is outside");
    });
}

#[test]
fn a_cursor_inside_reads_the_state_of_the_transaction_to_its_end() {
    on_both_engines(|client| {
        let accounts = accounts(client);
        let mut session = client.start_session().run().unwrap();
        session.start_transaction().run().unwrap();
        let mut cursor = accounts.find(doc! {}).batch_size(2).session(&session).run().unwrap();
        assert!(cursor.advance().unwrap());
        accounts.delete_many(doc! { "_id": { "$gt": 5 } }).run().unwrap();
        assert_eq!(cursor.map(Result::unwrap).count(), 9);
        session.commit_transaction().run().unwrap();
        assert_eq!(accounts.count_documents(doc! {}).session(&session).run().unwrap(), 6);
    });
}

#[test]
fn calls_in_a_wrong_order_are_refused() {
    let client = Client::in_memory().unwrap();
    let accounts = accounts(&client);
    let mut session = client.start_session().run().unwrap();
    let none = "no transaction started";
    assert_eq!(refusal(session.commit_transaction().run().unwrap_err()), none);
    assert_eq!(refusal(session.abort_transaction().run().unwrap_err()), none);
    session.start_transaction().run().unwrap();
    let twice = refusal(session.start_transaction().run().unwrap_err());
    assert_eq!(twice, "transaction already in progress");
    let read = accounts.find(doc! {}).read_concern(ReadConcern::local()).session(&session).run();
    assert!(refusal(read.map(drop).unwrap_err()).contains("read concern"));
    let write =
        accounts.delete_one(doc! {}).write_concern(WriteConcern::nodes(1)).session(&session);
    assert!(refusal(write.run().unwrap_err()).contains("write concern"));
    session.commit_transaction().run().expect("one without an operation commits");
    let ended = refusal(session.abort_transaction().run().unwrap_err());
    assert_eq!(ended, "Cannot call abortTransaction after calling commitTransaction");
    session.start_transaction().run().unwrap();
    session.abort_transaction().run().unwrap();
    let twice = refusal(session.abort_transaction().run().unwrap_err());
    assert_eq!(twice, "cannot call abortTransaction twice");
    let ended = refusal(session.commit_transaction().run().unwrap_err());
    assert_eq!(ended, "Cannot call commitTransaction after calling abortTransaction");
    let mut snapshot = client.start_session().snapshot(true).run().unwrap();
    assert!(refusal(snapshot.start_transaction().run().unwrap_err()).contains("snapshot sessions"));
}

#[test]
fn a_conflict_fails_at_once_and_a_dropped_session_releases_its_documents() {
    on_both_engines(|client| {
        let accounts = accounts(client);
        let mut first = client.start_session().run().unwrap();
        let mut second = client.start_session().run().unwrap();
        first.start_transaction().run().unwrap();
        second.start_transaction().run().unwrap();
        add(&accounts, 1, 1, &first).unwrap();
        let error = add(&accounts, 1, 1, &second).unwrap_err();
        assert_eq!(error.code(), Some(112));
        assert!(error.contains_label("TransientTransactionError"));
        second.abort_transaction().run().unwrap();
        drop(first);
        add(&accounts, 1, 5, &second).unwrap();
        assert_eq!(sum(&accounts, 1), 105, "the first was never committed");
    });
}

#[test]
fn and_run_tries_again_after_conflicts_and_not_after_other_errors() {
    on_both_engines(|client| {
        let accounts = accounts(client);
        let start = Barrier::new(4);
        let attempts: u32 = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        let mut session = client.start_session().run().unwrap();
                        let mut attempts = 0;
                        start.wait();
                        for _ in 0..25 {
                            let moved = session.start_transaction().and_run(|session| {
                                attempts += 1;
                                add(&accounts, 0, -1, session)?;
                                add(&accounts, 1, 1, session)
                            });
                            moved.unwrap();
                        }
                        attempts
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert!(attempts >= 100);
        assert_eq!((sum(&accounts, 0), sum(&accounts, 1)), (0, 200));

        let mut session = client.start_session().run().unwrap();
        let mut runs = 0;
        let failed = session.start_transaction().and_run(|session| {
            runs += 1;
            add(&accounts, 2, 1, session)?;
            accounts.insert_one(doc! { "_id": 3 }).session(session).run()
        });
        assert!(failed.unwrap_err().is_duplicate_key());
        assert_eq!((runs, sum(&accounts, 2)), (1, 100));
        let ended = session.start_transaction().and_run(|session| {
            add(&accounts, 2, 1, session)?;
            session.abort_transaction().run()
        });
        ended.expect("the body may abort");
        assert_eq!(sum(&accounts, 2), 100);
    });
}
