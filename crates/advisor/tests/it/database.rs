//! References, and the report of a whole database.

use crate::{Memory, Unseen};
use quire_advisor::{Extent, Limits, Reference, profile_database, report::report};
use quire_document::{DocBuf, ObjectId, doc};

fn id(number: u32) -> ObjectId {
    ObjectId::from_parts(1_600_000_000 + number * 1000, [1; 5], number)
}

/// A shop: orders refer to customers by ObjectId and to products by number in an array; categories
/// are a tree; quantities are numbers that are also products by chance.
fn shop() -> Memory {
    let mut shop = Memory::default();
    let customers = (0..100).map(|at| doc! { "_id": id(at), "name": format!("c{at}").as_str() });
    shop.add("customers", customers.collect(), vec![]);
    let sku = doc! { "key": { "sku": 1 }, "name": "sku_1", "unique": true };
    let products = (0..50).map(|at| doc! { "_id": at, "sku": format!("SKU-{at}").as_str() });
    shop.add("products", products.collect(), vec![sku]);
    let orders = (0..1000_u32).map(|at| {
        // Every second order is one of the first customer; a tenth of the rest has a lost one.
        let customer = match at {
            at if at % 2 == 0 => id(0),
            at if at % 20 == 1 => id(5000 + at % 7),
            at => id(at % 100),
        };
        let sku = format!("SKU-{}", at % 50);
        let line = doc! { "productId": (at % 50) as i32, "sku": sku.as_str(), "quantity": (at % 9) as i32 };
        doc! { "_id": id(10_000 + at), "customer": customer, "lines": [&line, &line] }
    });
    shop.add("orders", orders.collect(), vec![]);
    let categories = (0..40).map(|at| match at {
        0 => doc! { "_id": "category 0" },
        at => doc! {
            "_id": format!("category {at}").as_str(), "parent": format!("category {}", at / 3).as_str(),
        },
    });
    shop.add("categories", categories.collect(), vec![]);
    shop
}

#[test]
fn references_are_found_by_their_values() {
    let found = profile_database(&mut shop(), &[], Extent::All, Limits::default(), &mut Unseen);
    let found = found.unwrap_or_else(|error| panic!("{error}"));
    let edge = |reference: &Reference| {
        let Reference { from, path, to, field, .. } = reference;
        format!("{from}.{path} -> {to}.{field}")
    };
    let mut edges: Vec<String> = found.references.iter().map(edge).collect();
    edges.sort();
    let expected = [
        "categories.parent -> categories._id",
        "orders.customer -> customers._id",
        "orders.lines.productId -> products._id",
        "orders.lines.sku -> products.sku",
    ];
    assert_eq!(edges, expected);
    let of =
        |path: &str| found.references.iter().find(|found| found.path == path).cloned().unwrap();
    let customer = of("customer");
    assert!(!customer.in_array && !customer.sampled && of("lines.sku").in_array);
    // Of the values, 7 are lost.
    assert_eq!(customer.looked_up - customer.found, 7);
    assert!((customer.orphans() - 7.0 / customer.looked_up as f64).abs() < 1e-9);
    assert_eq!(customer.fan_out[3], 500);
    assert_eq!(of("lines.sku").fan_out, [40; 4]);
    assert_eq!(of("parent").fan_out, [3; 4]);
}

#[test]
fn a_report_names_its_version_and_what_was_read() {
    let only = ["orders".to_owned()];
    let found =
        profile_database(&mut shop(), &only, Extent::Sample(10), Limits::default(), &mut Unseen);
    let found = report("shop", &found.unwrap_or_else(|error| panic!("{error}")));
    let number = |name: &str| found.get(name).and_then(|value| value.as_number());
    assert!(number("version").is_some() && number("sample").is_some(), "{found:?}");
    let collections = found.get("collections").and_then(|all| all.as_array()).unwrap();
    let names: Vec<DocBuf> =
        collections.iter().map(|one| one.as_document().unwrap().to_owned()).collect();
    assert_eq!(names.len(), 1);
    assert_eq!(names[0].get("read").and_then(|read| read.as_number()).unwrap().to_f64(), 10.0);
    assert_eq!(names[0].get("documents").and_then(|all| all.as_number()).unwrap().to_f64(), 1000.0);
}
