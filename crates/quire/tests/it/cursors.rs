//! Cursors: batches, tailing, and closing a cursor early in the database.

use crate::on_both_engines;
use quire::bson::{Document, doc};
use quire::{Client, Collection};

fn filled(client: &Client, count: i32) -> Collection<Document> {
    let c = client.database("test").collection::<Document>("c");
    c.insert_many((0..count).map(|n| doc! { "_id": n })).run().unwrap();
    c
}

fn open_cursors(client: &Client) -> i64 {
    let status = client.database("admin").run_command(doc! { "serverStatus": 1 }).run().unwrap();
    let open = status.get_document("metrics").unwrap().get_document("cursor").unwrap();
    let open = open.get_document("open").unwrap().get("total").unwrap();
    open.as_i64().or(open.as_i32().map(i64::from)).unwrap()
}

#[test]
fn batches_join_to_the_whole() {
    on_both_engines(|client| {
        let c = filled(client, 1000);
        for size in [1, 7, 100, 1000, 5000] {
            let found = c.find(doc! {}).batch_size(size).sort(doc! { "_id": 1 }).run().unwrap();
            let ids: Vec<_> = found.map(|doc| doc.unwrap().get_i32("_id").unwrap()).collect();
            assert_eq!(ids, (0..1000).collect::<Vec<_>>(), "{size}");
        }
        assert_eq!(c.find(doc! {}).run().unwrap().count(), 1000);
        assert_eq!(open_cursors(client), 0);
    });
}

#[test]
fn dropped_early_they_are_closed() {
    on_both_engines(|client| {
        let c = filled(client, 500);
        let mut cursors: Vec<_> =
            (0..10).map(|_| c.find(doc! {}).batch_size(2).run().unwrap()).collect();
        cursors.iter_mut().for_each(|cursor| assert!(cursor.next().unwrap().is_ok()));
        assert_eq!(open_cursors(client), 10);
        let renamed = cursors.pop().unwrap().with_type::<quire::bson::RawDocumentBuf>();
        assert_eq!(open_cursors(client), 10);
        assert_eq!(renamed.count(), 499);
        drop(cursors);
        assert_eq!(open_cursors(client), 0);
    });
}

#[test]
fn documents_can_be_read_in_place() {
    on_both_engines(|client| {
        let c = filled(client, 5);
        let mut cursor = c.find(doc! {}).batch_size(2).sort(doc! { "_id": -1 }).run().unwrap();
        let mut ids = Vec::new();
        while cursor.advance().unwrap() {
            ids.push(cursor.current().get_i32("_id").unwrap());
        }
        assert_eq!(ids, [4, 3, 2, 1, 0]);
        assert!(cursor.is_exhausted());
    });
}

#[test]
fn a_killed_cursor_ends_with_an_error() {
    on_both_engines(|client| {
        let c = filled(client, 10);
        let mut cursor = c.find(doc! {}).batch_size(2).run().unwrap();
        c.drop().run().unwrap();
        let results: Vec<_> = cursor.by_ref().collect();
        assert!(matches!(&results[..], [Ok(_), Ok(_), Err(_)]), "{results:?}");
        assert!(cursor.next().is_none());
    });
}
