//! What the products of these tests must have, computed from their reviews in the plainest way.

use crate::{Client, at};
use quire_document::{ArrayBuf, Doc, DocBuf, Value, ValueBuf, compare, doc};

/// The documents of a collection, in the order of `_id`.
pub fn all(client: &mut Client, collection: &str, more: &DocBuf) -> Vec<DocBuf> {
    let mut command = doc! {
        "find": collection, "sort": { "_id": 1 }, "batchSize": 10_000, "$db": "test"
    };
    more.as_doc().fields().for_each(|(name, value)| {
        command.append(name, value);
    });
    let found = client.works(command);
    let batch = at(&found, "cursor.firstBatch").unwrap().as_array().unwrap();
    batch.iter().map(|row| row.as_document().unwrap().to_owned()).collect()
}

/// Asserts that every product has what its reviews give.
pub fn assert_exact(client: &mut Client, context: &str) {
    let none = DocBuf::new();
    let (products, reviews) = (all(client, "products", &none), all(client, "reviews", &none));
    assert_same(&products, &reviews, context);
}

/// Asserts that every product has what the reviews give.
pub fn assert_same(products: &[DocBuf], reviews: &[DocBuf], context: &str) {
    for product in products {
        let wanted = expected(product, reviews);
        for (path, wanted) in &wanted {
            let found = at(product, path);
            let equal = match (found, wanted.as_ref().map(ValueBuf::as_value)) {
                (None, None) => true,
                (Some(found), Some(wanted)) => compare(found, wanted, None).is_eq(),
                _ => false,
            };
            assert!(equal, "{context}: {path} must be {wanted:?}: {product:?}\nof {reviews:?}");
        }
    }
}

type Expected = Vec<(&'static str, Option<ValueBuf>)>;

fn expected(product: &DocBuf, reviews: &[DocBuf]) -> Expected {
    let id = product.get("_id").unwrap();
    let refers = |review: &&DocBuf| match review.get("product") {
        Some(Value::Array(products)) => products.iter().any(|p| compare(p, id, None).is_eq()),
        Some(product) => compare(product, id, None).is_eq(),
        None => false,
    };
    let shown = |review: &&DocBuf| !matches!(review.get("hidden"), Some(Value::Bool(true)));
    let reviews: Vec<Doc<'_>> =
        reviews.iter().filter(refers).filter(shown).map(DocBuf::as_doc).collect();
    let stars: Vec<Value<'_>> = reviews.iter().filter_map(|review| review.get("stars")).collect();
    let numbers: Vec<f64> = stars.iter().filter_map(|star| number_of(*star)).collect();
    let sum: f64 = numbers.iter().sum();
    let extreme = |sign: i32| {
        let known = stars.iter().filter(|star| !star.is_nullish());
        let best = known.max_by(|a, b| {
            let order = compare(**a, **b, None);
            if sign > 0 { order } else { order.reverse() }
        });
        best.map(|best| ValueBuf::new(*best))
    };
    let mut recent = reviews.clone();
    recent.sort_by(|a, b| {
        let at = |doc: &Doc<'_>| ValueBuf::new(doc.get("at").unwrap_or(Value::Null));
        compare(at(b).as_value(), at(a).as_value(), None)
    });
    let recent: Vec<DocBuf> = recent
        .iter()
        .take(3)
        .map(|review| {
            DocBuf::build(|writer| {
                writer.append("id", review.get("_id").unwrap());
                writer.append_some("stars", review.get("stars"));
            })
        })
        .collect();
    let ids = reviews.iter().map(|review| review.get("_id").unwrap());
    let mut users: Vec<Value<'_>> = reviews.iter().filter_map(|r| r.get("user")).collect();
    users.sort_by(|a, b| compare(*a, *b, None));
    users.dedup_by(|a, b| compare(*a, *b, None).is_eq());
    let fives = stars.iter().filter(|star| number_of(**star) == Some(5.0)).count();
    vec![
        ("count", Some(ValueBuf::new(reviews.len() as i64))),
        ("sum", Some(ValueBuf::new(sum))),
        ("avg", (!numbers.is_empty()).then(|| ValueBuf::new(sum / numbers.len() as f64))),
        ("best", extreme(1)),
        ("worst", extreme(-1)),
        ("recent", Some(recent.iter().collect::<ArrayBuf>().into())),
        ("ids", Some(ids.collect::<ArrayBuf>().into())),
        ("users", Some(users.into_iter().collect::<ArrayBuf>().into())),
        ("stars.5", Some(ValueBuf::new(fives as i64))),
    ]
}

fn number_of(value: Value<'_>) -> Option<f64> {
    match value {
        Value::Int32(number) => Some(f64::from(number)),
        Value::Int64(number) => Some(number as f64),
        Value::Double(number) => Some(number),
        _ => None,
    }
}
