//! `bulk_write`: many writes in one call, and its report of failed writes.

use crate::on_both_engines;
use quire::bson::{Bson, Document, doc};
use quire::error::ErrorKind;
use quire::options::Hint;
use quire::{Client, Collection, WriteModel};

fn collections(client: &Client) -> (Collection<Document>, Collection<Document>) {
    (client.database("a").collection("left"), client.database("b").collection("right"))
}

fn numbered(collection: &Collection<Document>, ids: std::ops::Range<i32>) -> Vec<WriteModel> {
    ids.map(|id| collection.insert_one_model(doc! { "_id": id }).unwrap()).collect()
}

#[test]
fn writes_of_every_kind_on_two_databases() {
    on_both_engines(|client| {
        let (left, right) = collections(client);
        let mut writes = numbered(&left, 0..3);
        writes.extend(numbered(&right, 0..1));
        writes.push(
            left.update_many_model(doc! { "_id": { "$gte": 1 } }, doc! { "$set": { "a": 1 } }),
        );
        writes.push(
            left.update_one_model(doc! { "_id": 7 }, doc! { "$set": { "a": 7 } }).upsert(true),
        );
        writes.push(right.replace_one_model(doc! { "_id": 0 }, doc! { "b": 1 }).unwrap());
        writes.push(left.delete_one_model(doc! { "_id": 0 }).hint(Hint::Keys(doc! { "_id": 1 })));
        writes.push(right.insert_one_model(doc! { "c": 1 }).unwrap());
        let done = client.bulk_write(writes.clone()).verbose_results().run().unwrap();
        let summary = &done.summary;
        assert_eq!((summary.inserted_count, summary.upserted_count), (5, 1));
        assert_eq!((summary.matched_count, summary.modified_count), (3, 3));
        assert_eq!(summary.deleted_count, 1);
        assert_eq!(done.insert_results[&3].inserted_id, Bson::from(0));
        assert_eq!(done.update_results[&4].matched_count, 2);
        let upsert = &done.update_results[&5];
        assert_eq!((upsert.matched_count, &upsert.upserted_id), (0, &Some(Bson::from(7))));
        assert_eq!(done.delete_results[&7].deleted_count, 1);
        let made = &done.insert_results[&8].inserted_id;
        assert!(right.find_one(doc! { "_id": made, "c": 1 }).run().unwrap().is_some());
        assert_eq!(
            left.find_one(doc! { "_id": 7 }).run().unwrap(),
            Some(doc! { "_id": 7, "a": 7 })
        );
        assert_eq!(
            right.find_one(doc! { "_id": 0 }).run().unwrap(),
            Some(doc! { "_id": 0, "b": 1 })
        );
    });
}

#[test]
fn failures_are_returned_with_their_positions() {
    on_both_engines(|client| {
        let (left, right) = collections(client);
        let mut writes = numbered(&left, 0..2);
        writes.extend(numbered(&left, 0..1));
        writes.extend(numbered(&right, 0..1));
        let error = client.bulk_write(writes.clone()).run().unwrap_err();
        assert!(error.is_duplicate_key(), "{error}");
        assert!(error.to_string().starts_with("write 2: "), "{error}");
        let ErrorKind::BulkWrite(failed) = &*error.kind else { panic!("{error:?}") };
        assert_eq!(failed.write_errors.keys().collect::<Vec<_>>(), [&2]);
        let done = failed.partial_result.as_ref().unwrap();
        assert_eq!(done.summary.inserted_count, 2);
        assert_eq!(right.count_documents(doc! {}).run().unwrap(), 0, "it ends with the first");

        let error = client.bulk_write(writes).ordered(false).verbose_results().run().unwrap_err();
        let ErrorKind::BulkWrite(failed) = &*error.kind else { panic!("{error:?}") };
        assert_eq!(failed.write_errors.len(), 3);
        let done = failed.partial_result.as_ref().unwrap();
        assert_eq!(done.insert_results.keys().collect::<Vec<_>>(), [&3]);
        assert_eq!(right.count_documents(doc! {}).run().unwrap(), 1);
    });
}

#[test]
fn invalid_requests_are_refused_before_any_write() {
    on_both_engines(|client| {
        let (left, _) = collections(client);
        let error = client.bulk_write([]).run().unwrap_err();
        assert!(matches!(&*error.kind, ErrorKind::InvalidArgument { .. }), "{error:?}");
        let mut writes = numbered(&left, 0..1);
        writes.push(left.delete_one_model(doc! {}).upsert(true));
        let error = client.bulk_write(writes).run().unwrap_err();
        assert!(matches!(&*error.kind, ErrorKind::Command(_)), "{error:?}");
        assert_eq!(left.count_documents(doc! {}).run().unwrap(), 0);
    });
}

/// More writes than one command takes: positions are numbered over all batches.
#[test]
fn more_than_one_command_takes() {
    let client = Client::in_memory().unwrap();
    let (left, _) = collections(&client);
    let mut writes = numbered(&left, 0..100_001);
    writes.extend(numbered(&left, 7..8));
    let error = client.bulk_write(writes).run().unwrap_err();
    let ErrorKind::BulkWrite(failed) = &*error.kind else { panic!("{error:?}") };
    assert_eq!(failed.write_errors.keys().collect::<Vec<_>>(), [&100_001]);
    assert_eq!(failed.partial_result.as_ref().unwrap().summary.inserted_count, 100_001);
}
