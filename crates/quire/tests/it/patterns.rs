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

#[test]
fn a_roll_up_and_a_counter_are_kept() {
    on_both_engines(|client| {
        let db = client.database("shop");
        let totals = doc! {
            "name": "totals", "type": "rollup", "from": "orders", "foreignField": "customerId",
            "set": { "orders": { "$count": {} }, "total": { "$sum": "$total" } }
        };
        let views = doc! { "name": "views", "type": "counter", "path": "views", "merge": true };
        db.run_command(doc! { "create": "customers", "patterns": [totals, views] }).run().unwrap();
        let customers = db.collection::<Document>("customers");
        customers.insert_one(doc! { "_id": 1, "views": 0 }).run().unwrap();
        let orders = db.collection::<Document>("orders");
        let many = (0..20).map(|id| doc! { "_id": id, "customerId": 1, "total": id });
        orders.insert_many(many).run().unwrap();
        orders.delete_many(doc! { "total": { "$gte": 10 } }).run().unwrap();
        customers.update_one(doc! { "_id": 1 }, doc! { "$inc": { "views": 3 } }).run().unwrap();
        customers.update_one(doc! { "_id": 1 }, doc! { "$set": { "views": 99 } }).run().unwrap();
        let customer = customers.find_one(doc! { "_id": 1 }).run().unwrap().unwrap();
        assert_eq!(customer, doc! { "_id": 1, "views": 3, "orders": 10, "total": 45 });
        let valid =
            db.run_command(doc! { "validate": "customers", "patterns": true }).run().unwrap();
        assert!(valid.get_bool("valid").unwrap(), "{valid:?}");
    });
}
