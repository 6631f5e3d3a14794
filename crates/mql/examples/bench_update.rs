//! Nanoseconds a document for updates of documents of 1 and 10 KB, and a value for accumulators:
//! `cargo run --release -p quire-mql --example bench_update`.

#![allow(clippy::unwrap_used)]

use bumpalo::Bump;
use quire_document::{Doc, DocBuf, Value, doc};
use quire_error::Result;
use quire_mql::accumulator::AccumulatorSpec;
use quire_mql::{EvalContext, ParseContext, Shared, Update, UpdateSpec};
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

fn updates() -> Vec<(&'static str, DocBuf)> {
    vec![
        ("$set first", doc! { "$set": { "first": 6 } }),
        ("$set last", doc! { "$set": { "last": 8 } }),
        ("$set new field", doc! { "$set": { "new": 8 } }),
        ("$inc last", doc! { "$inc": { "last": 1 } }),
        ("$set address.zip", doc! { "$set": { "address.zip": 8000 } }),
        ("$push tags", doc! { "$push": { "tags": "white" } }),
        (
            "$push tags $each $slice",
            doc! { "$push": { "tags": { "$each": ["white"], "$slice": (-4) } } },
        ),
        ("$pull tags", doc! { "$pull": { "tags": "green" } }),
        ("$set last to itself", doc! { "$set": { "last": 7 } }),
        (
            "$set, $inc, $unset",
            doc! { "$set": { "first": 6 }, "$inc": { "last": 1 }, "$unset": { "field_3": 1 } },
        ),
    ]
}

fn main() -> Result<()> {
    let context = ParseContext::default();
    let (arena, shared) = (Bump::new(), Shared::default());
    let docs = [document(20), document(235)];
    let sizes = docs.each_ref().map(|doc| doc.as_bytes().len());
    println!("{:32} {:>9} {:>9}", "ns a document of bytes", sizes[0], sizes[1]);
    let mut out = Vec::new();
    for (name, update) in updates() {
        let update = Value::Document(update.as_doc());
        let update =
            Update::parse(UpdateSpec { update, array_filters: &[], multi: false }, &context)?;
        print!("{name:32}");
        for doc in &docs {
            let cx = EvalContext::new(&arena, doc.as_doc(), &shared);
            print!(
                " {:9.0}",
                nanoseconds(|| {
                    out.clear();
                    black_box(update.apply(doc.as_doc(), None, &cx, &mut out).is_ok());
                })
            );
        }
        println!();
    }
    println!("{:32} {:>9}", "ns a value", "field");
    for name in ["$sum", "$avg", "$min", "$push", "$addToSet", "$stdDevPop"] {
        let spec = doc! { (name): "$first" };
        let spec = AccumulatorSpec::parse("x", Value::Document(spec.as_doc()), &context)?;
        let cx = EvalContext::new(&arena, docs[0].as_doc(), &shared);
        let mut state = spec.new_state(Value::Null, &cx)?;
        let took = nanoseconds(|| {
            black_box(spec.add(state.as_mut(), black_box(&cx)).is_ok());
        });
        println!("{name:32} {took:9.1}");
    }
    black_box(Doc::empty());
    Ok(())
}
