//! Declared patterns: the library takes the same commands as the server, and keeps copies exact.

use crate::on_both_engines;
use quire::bson::{Document, doc};

#[test]
fn a_declared_reference_is_kept() {
    on_both_engines(|client| {
        let db = client.database("shop");
        let customers = db.collection::<Document>("customers");
        customers.insert_one(doc! { "_id": 1, "name": "Wang" }).run().unwrap();
        let customer = doc! {
            "name": "customer", "type": "reference", "from": "customers",
            "localField": "customerId", "as": "customer", "fields": { "name": "sync" }
        };
        db.run_command(doc! { "create": "orders", "patterns": [customer] }).run().unwrap();
        let orders = db.collection::<Document>("orders");
        orders.insert_one(doc! { "_id": 1, "customerId": 1 }).run().unwrap();
        let set = doc! { "$set": { "name": "Li" } };
        customers.update_one(doc! { "_id": 1 }, set).run().unwrap();
        let order = orders.find_one(doc! { "_id": 1 }).run().unwrap().unwrap();
        assert_eq!(order, doc! { "_id": 1, "customerId": 1, "customer": { "name": "Li" } });
        let refused = customers.delete_one(doc! { "_id": 1 }).run().unwrap_err();
        assert_eq!(refused.code(), Some(121));
    });
}
