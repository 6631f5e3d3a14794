//! Many threads on one client.

use crate::on_both_engines;
use quire::Client;
use quire::bson::{Document, doc};
use quire::options::{IndexModel, ReturnDocument};

fn is_send_and_sync<T: Send + Sync + Clone>() {}

#[test]
fn threads_share_a_client() {
    is_send_and_sync::<Client>();
    is_send_and_sync::<quire::Database>();
    is_send_and_sync::<quire::Collection<Document>>();
    on_both_engines(|client| {
        let counters = client.database("test").collection::<Document>("counters");
        let log = client.database("test").collection::<Document>("log");
        log.create_index(IndexModel::builder().keys(doc! { "thread": 1 }).build()).run().unwrap();
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let (counters, log) = (counters.clone(), log.clone());
                scope.spawn(move || {
                    for n in 0..50 {
                        let counted = counters
                            .find_one_and_update(doc! { "_id": 1 }, doc! { "$inc": { "n": 1 } })
                            .upsert(true)
                            .return_document(ReturnDocument::After)
                            .run()
                            .unwrap();
                        let number = counted.unwrap().get_i32("n").unwrap();
                        log.insert_one(doc! { "_id": number, "thread": thread, "n": n })
                            .run()
                            .unwrap();
                    }
                });
            }
        });
        let counted = counters.find_one(doc! { "_id": 1 }).run().unwrap().unwrap();
        assert_eq!(counted.get_i32("n").unwrap(), 400);
        assert_eq!(log.count_documents(doc! {}).run().unwrap(), 400);
        assert_eq!(log.count_documents(doc! { "thread": 3 }).run().unwrap(), 50);
    });
}
