//! Time-series collections: the library closes points as the server does, and finds them again after it was closed.

use quire::Client;
use quire::bson::{DateTime, Document, doc};

fn point(n: i32) -> Document {
    doc! { "at": DateTime::from_millis(i64::from(n) * 1000), "sensor": n % 4, "_id": n, "v": f64::from(n) / 10.0 }
}

fn all(client: &Client) -> Vec<Document> {
    let readings = client.database("test").collection::<Document>("readings");
    let found = readings.find(doc! {}).sort(doc! { "_id": 1 }).run().unwrap();
    found.map(Result::unwrap).collect()
}

fn bucket_count(client: &Client) -> i32 {
    let stats =
        client.database("test").run_command(doc! { "collStats": "readings" }).run().unwrap();
    stats.get_document("timeseries").unwrap().get_i32("bucketCount").unwrap()
}

#[test]
fn buckets_are_there_after_the_library_was_closed() {
    let directory = tempfile::tempdir().unwrap();
    let client = Client::open(directory.path()).unwrap();
    let db = client.database("test");
    let series = doc! { "timeField": "at", "metaField": "sensor", "granularity": "minutes" };
    db.run_command(doc! { "create": "readings", "timeseries": series }).run().unwrap();
    let readings = db.collection::<Document>("readings");
    readings.insert_many((0..400).map(point)).run().unwrap();
    let before = all(&client);
    db.run_command(doc! { "compact": "readings", "force": true }).run().unwrap();
    assert_eq!(bucket_count(&client), 4);
    readings.insert_one(point(-1)).run().unwrap();
    assert_eq!(all(&client)[1..], before);
    drop((db, readings));
    client.shutdown().run().unwrap();

    let client = Client::open(directory.path()).unwrap();
    assert_eq!(bucket_count(&client), 4);
    assert_eq!(all(&client)[1..], before);
    let readings = client.database("test").collection::<Document>("readings");
    assert_eq!(readings.delete_many(doc! { "sensor": 2 }).run().unwrap().deleted_count, 100);
    assert_eq!(readings.count_documents(doc! {}).run().unwrap(), 301);
    assert_eq!(bucket_count(&client), 3);
}
