//! Nanoseconds a document for filters, projections and sort keys on documents of 1 and 10 KB:
//! `cargo run --release -p quire-mql --example bench_filter`.

#![allow(clippy::unwrap_used)]

use bumpalo::Bump;
use quire_document::{Doc, DocBuf, doc};
use quire_error::Result;
use quire_mql::projection::Projection;
use quire_mql::sort::SortPattern;
use quire_mql::{EvalContext, Filter, ParseContext, Shared};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// A document of about `fields` times 55 bytes: numbers, texts, a nested document, an array.
fn document(fields: usize) -> DocBuf {
    DocBuf::build(|writer| {
        writer.append("_id", 1).append("first", 5).append("status", "active");
        for at in 0..fields {
            let name = format!("field_{at}");
            match at % 4 {
                0 => writer.append(&name, at as i32),
                1 => writer.append(&name, at as f64 * 1.5),
                _ => writer.append(&name, "a text of some thirty letters here, more or less"),
            };
        }
        let mut address = writer.document("address");
        address.append("city", "Bern").append("zip", 3000);
        address.finish();
        let mut tags = writer.array("tags");
        for tag in ["red", "green", "blue", "black"] {
            tags.push(tag);
        }
        tags.finish();
        writer.append("last", 7);
    })
}

/// The shortest of many short runs: what other processes take does not count.
fn nanoseconds(mut work: impl FnMut()) -> f64 {
    let mut rounds = 1u32;
    while {
        let start = Instant::now();
        (0..rounds).for_each(|_| work());
        start.elapsed() < Duration::from_micros(200)
    } {
        rounds *= 2;
    }
    (0..99)
        .map(|_| {
            let start = Instant::now();
            (0..rounds).for_each(|_| work());
            start.elapsed().as_nanos() as f64 / f64::from(rounds)
        })
        .fold(f64::INFINITY, f64::min)
}

fn main() -> Result<()> {
    let context = ParseContext::default();
    let (arena, shared) = (Bump::new(), Shared::default());
    let cx = EvalContext::new(&arena, Doc::empty(), &shared);
    let docs = [document(20), document(235)];
    println!(
        "{:44} {:>9} {:>9}",
        "ns a document of bytes",
        docs[0].as_bytes().len(),
        docs[1].as_bytes().len()
    );
    let filters = [
        ("{first: 5}", doc! { "first": 5 }),
        ("{last: {$gt: 6}}", doc! { "last": { "$gt": 6 } }),
        ("{missing: 1}", doc! { "missing": 1 }),
        (
            "{first: 5, status: \"active\", last: 7}",
            doc! { "first": 5, "status": "active", "last": 7 },
        ),
        ("{\"address.zip\": 3000}", doc! { "address.zip": 3000 }),
        ("{tags: \"black\"}", doc! { "tags": "black" }),
        ("{last: {$in: [1, 3, 5, 7, 9]}}", doc! { "last": { "$in": [1, 3, 5, 7, 9] } }),
        ("{status: /^act/}", doc! { "status": { "$regex": "^act" } }),
        ("{$or: [{first: 1}, {last: 7}]}", doc! { "$or": [{ "first": 1 }, { "last": 7 }] }),
        ("{$expr: {$eq: [\"$last\", 7]}}", doc! { "$expr": { "$eq": ["$last", 7] } }),
    ];
    for (name, filter) in &filters {
        let filter = Filter::parse(filter.as_doc(), &context)?;
        print!("{name:44}");
        for doc in &docs {
            print!(
                " {:9.0}",
                nanoseconds(|| {
                    black_box(filter.matches(black_box(doc.as_doc()), &cx).is_ok());
                })
            );
        }
        println!();
    }
    let projections = [
        ("project {first: 1, last: 1}", doc! { "first": 1, "last": 1 }),
        ("project {field_3: 0}", doc! { "field_3": 0 }),
        ("project {\"address.city\": 1, _id: 0}", doc! { "address.city": 1, "_id": 0 }),
        ("project {x: {$add: [\"$first\", 1]}}", doc! { "x": { "$add": ["$first", 1] } }),
    ];
    let mut arena = Bump::new();
    let mut bytes = Vec::new();
    for (name, projection) in &projections {
        let projection = Projection::parse_find(projection.as_doc(), None, &context)?;
        print!("{name:44}");
        for doc in &docs {
            print!(
                " {:9.0}",
                nanoseconds(|| {
                    bytes.clear();
                    arena.reset();
                    let cx = EvalContext::new(&arena, doc.as_doc(), &shared);
                    let mut writer = quire_document::DocWriter::new(&mut bytes);
                    black_box(projection.apply(doc.as_doc(), &mut writer, &cx).is_ok());
                })
            );
        }
        println!();
    }
    let sort = SortPattern::parse(doc! { "last": -1, "first": 1 }.as_doc(), &context)?;
    print!("{:44}", "sort key {last: -1, first: 1}");
    for doc in &docs {
        print!(
            " {:9.0}",
            nanoseconds(|| {
                black_box(sort.key(black_box(doc.as_doc()), &cx).is_ok());
            })
        );
    }
    println!();
    Ok(())
}
