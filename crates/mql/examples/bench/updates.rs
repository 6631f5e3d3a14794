//! Benchmarks of updates and accumulators.

use crate::harness::{head, nanoseconds, row};
use bumpalo::Bump;
use quire_document::{DocBuf, Value, doc};
use quire_error::Result;
use quire_mql::accumulator::AccumulatorSpec;
use quire_mql::{EvalContext, ParseContext, Shared, Update, UpdateSpec};
use std::hint::black_box;

pub fn run(docs: &[DocBuf; 2]) -> Result<()> {
    let context = ParseContext::default();
    let (arena, shared) = (Bump::new(), Shared::default());
    head("update", docs);
    let mut out = Vec::new();
    for (name, update) in updates() {
        let update = Value::Document(update.as_doc());
        let update =
            Update::parse(UpdateSpec { update, array_filters: &[], multi: false }, &context)?;
        row(name, docs, |doc| {
            let cx = EvalContext::new(&arena, doc, &shared);
            out.clear();
            black_box(update.apply(doc, None, &cx, &mut out).is_ok());
        });
    }
    println!("\n{:40} {:>9}", "accumulator", "ns");
    for name in ["$sum", "$avg", "$min", "$push", "$addToSet", "$stdDevPop"] {
        let spec = doc! { (name): "$first" };
        let spec = AccumulatorSpec::parse("x", Value::Document(spec.as_doc()), &context)?;
        let cx = EvalContext::new(&arena, docs[0].as_doc(), &shared);
        let mut state = spec.new_state(Value::Null, &cx)?;
        let took = nanoseconds(|| {
            black_box(spec.add(state.as_mut(), black_box(&cx)).is_ok());
        });
        println!("{name:40} {took:9.1}");
    }
    Ok(())
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
