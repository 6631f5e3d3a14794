//! Measures the basic operations on a document of 1 KB: `cargo bench -p quire-document`.
//!
//! A loop and a clock: it prints the smallest of several runs, in nanoseconds for one operation. If
//! that is too noisy, count instructions (`valgrind --tool=callgrind`).

#![allow(clippy::unwrap_used)]

use quire_document::key::{KeyReader, TypeBits, append, append_full};
use quire_document::limits::Limits;
use quire_document::path::{Leaf, Path};
use quire_document::{
    Decimal128, DocBuf, Value, array, compare_documents, doc, hash_of, literal, validate,
};
use std::hint::black_box;
use std::ops::ControlFlow;
use std::time::Instant;

/// Returns a customer's order of about 1 KB: ids, texts, numbers, dates, an embedded address,
/// items.
fn order(number: i32) -> DocBuf {
    let text = "a description of the kind that shops print below the picture";
    doc! {
        "_id": number,
        "customer": { "name": "Ada Lovelace", "email": "ada@example.org", "level": 3 },
        "created": Value::Date(1_700_000_000_000),
        "status": "shipped",
        "total": Decimal128::parse("129.90").unwrap_or(Decimal128::ZERO),
        "weight": 12.75,
        "address": { "street": "12 St James's Square", "city": "London", "zip": "SW1Y 4JH" },
        "items": [
            { "sku": "A-1001", "name": "notebook", "price": 19.99, "count": 2, "note": text },
            { "sku": "B-2002", "name": "pencil", "price": 1.25, "count": 12, "note": text },
            { "sku": "C-3003", "name": "table of numbers", "price": 74.95, "count": 1, "note": text }
        ],
        "tags": ["books", "office", "gift", "express"],
        "history": [
            { "at": Value::Date(1_700_000_000_000), "what": "ordered", "by": "web" },
            { "at": Value::Date(1_700_000_100_000), "what": "paid", "by": "bank" },
            { "at": Value::Date(1_700_000_200_000), "what": "shipped", "by": "depot" }
        ],
        "notes": text,
        "version": 7i64,
        "active": true
    }
}

fn measure<T>(name: &str, mut operation: impl FnMut() -> T) {
    // `cargo bench -p quire-document -- validate` runs only the benchmarks whose names contain the
    // word.
    let wanted = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    if wanted.is_some_and(|word| !name.contains(&word)) {
        return;
    }
    let mut total = 0u64;
    let mut best = f64::INFINITY;
    let mut rounds = 16u32;
    let deadline = Instant::now();
    while deadline.elapsed().as_millis() < 400 {
        let start = Instant::now();
        for _ in 0..rounds {
            black_box(operation());
        }
        total += u64::from(rounds);
        let nanos = start.elapsed().as_nanos() as f64;
        best = best.min(nanos / f64::from(rounds));
        if nanos < 5e6 {
            rounds = rounds.saturating_mul(2);
        }
    }
    println!("{name:<44} {best:>10.1} ns {total:>12} times");
}

fn main() {
    let (order_a, order_b) = (order(1), order(1));
    let (doc, other) = (order_a.as_doc(), order_b.as_doc());
    let changed = {
        let mut changed = order(1);
        changed.append("last", 1);
        changed
    };
    println!("a document of {} bytes", doc.len());
    let bytes = order_a.as_bytes();
    measure("validate", || validate(black_box(bytes), &Limits::WIRE).is_ok());
    measure("walk the elements, undecoded", || doc.iter().count());
    measure("walk and decode", || doc.fields().filter(|(_, value)| value.is_number()).count());
    measure("find the last field", || doc.get(black_box("active")).is_some());
    let nested = Path::new("address.zip");
    measure("path address.zip", || nested.get(black_box(doc)).is_some());
    let through = Path::new("items.price");
    measure("path items.price through the array", || {
        let mut sum = 0.0;
        let _ = through.visit::<()>(black_box(doc), Leaf::Elements, |found| {
            if let Some(Value::Double(price)) = found.value {
                sum += price;
            }
            ControlFlow::Continue(())
        });
        sum
    });
    measure("compare equal documents", || compare_documents(black_box(doc), other, None));
    measure("compare, different at the end", || {
        compare_documents(black_box(doc), changed.as_doc(), None)
    });
    measure("hash of the document", || hash_of(black_box(Value::Document(doc)), None));
    keys(doc);
    let text = literal::print(doc);
    measure("print the literal", || literal::print(black_box(doc)).len());
    measure("parse the literal", || literal::parse(black_box(&text)).is_ok());
    measure("copy with the builder", || {
        DocBuf::build(|writer| {
            doc.iter().for_each(|element| {
                writer.append_element(element);
            })
        })
    });
    decimals();
}

fn keys(doc: quire_document::Doc<'_>) {
    let mut key = Vec::with_capacity(256);
    let values = ["status", "created", "_id"].map(|name| doc.get(name).unwrap_or(Value::Null));
    measure("key of string, date, int", || {
        key.clear();
        values.iter().for_each(|value| append(*value, false, &mut key));
        key.len()
    });
    let mut bits = TypeBits::new();
    measure("the same with type bits", || {
        key.clear();
        bits.clear();
        values.iter().for_each(|value| append_full(*value, false, None, &mut key, &mut bits));
        key.len()
    });
    let (stored, stored_bits) = (key.clone(), bits.clone());
    let mut out = Vec::with_capacity(256);
    measure("read it back", || {
        out.clear();
        let mut reader = KeyReader::new(&stored, stored_bits.as_bytes());
        (0..3).filter(|_| reader.next_into(false, &mut out).is_ok()).count()
    });
    for (name, value) in [
        ("key of a double", Value::Double(12.75)),
        ("key of a decimal", doc.get("total").unwrap_or(Value::Null)),
        ("key of the whole document", Value::Document(doc)),
    ] {
        measure(name, || {
            key.clear();
            append(black_box(value), false, &mut key);
            key.len()
        });
    }
    let tags = array!["books", "office", "gift", "express"];
    measure("key of an array of strings", || {
        key.clear();
        append(Value::from(&tags), true, &mut key);
        key.len()
    });
}

fn decimals() {
    let parse = |text: &str| Decimal128::parse(text).unwrap_or(Decimal128::ZERO);
    let (a, b) = (parse("129.90"), parse("0.07"));
    measure("decimal sum", || black_box(a).add(b));
    measure("decimal product", || black_box(a).multiply(b));
    measure("decimal quotient", || black_box(a).divide(b));
    measure("decimal to text", || black_box(a).to_string().len());
    measure("decimal logarithm", || black_box(a).ln());
}
