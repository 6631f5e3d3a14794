//! Benchmarks of filters, projections and sort keys.

use crate::harness::{head, row};
use bumpalo::Bump;
use quire_document::{Doc, DocBuf, DocWriter, doc};
use quire_error::Result;
use quire_mql::projection::Projection;
use quire_mql::sort::SortPattern;
use quire_mql::{EvalContext, Filter, ParseContext, Shared};
use std::hint::black_box;

pub fn run(docs: &[DocBuf; 2]) -> Result<()> {
    let context = ParseContext::default();
    let (mut arena, shared) = (Bump::new(), Shared::default());
    head("filter", docs);
    for (name, filter) in filters() {
        let filter = Filter::parse(filter.as_doc(), &context)?;
        let cx = EvalContext::new(&arena, Doc::empty(), &shared);
        row(name, docs, |doc| {
            black_box(filter.matches(doc, &cx).is_ok());
        });
    }
    head("projection", docs);
    let mut bytes = Vec::new();
    for (name, projection) in projections() {
        let projection = Projection::parse_find(projection.as_doc(), None, &context)?;
        row(name, docs, |doc| {
            bytes.clear();
            arena.reset();
            let cx = EvalContext::new(&arena, doc, &shared);
            black_box(projection.apply(doc, &mut DocWriter::new(&mut bytes), &cx).is_ok());
        });
    }
    head("sort key", docs);
    let sort = SortPattern::parse(doc! { "last": -1, "first": 1 }.as_doc(), &context)?;
    let cx = EvalContext::new(&arena, Doc::empty(), &shared);
    row("{last: -1, first: 1}", docs, |doc| {
        black_box(sort.key(doc, &cx).is_ok());
    });
    Ok(())
}

fn filters() -> Vec<(&'static str, DocBuf)> {
    vec![
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
    ]
}

fn projections() -> Vec<(&'static str, DocBuf)> {
    vec![
        ("{first: 1, last: 1}", doc! { "first": 1, "last": 1 }),
        ("{field_3: 0}", doc! { "field_3": 0 }),
        ("{\"address.city\": 1, _id: 0}", doc! { "address.city": 1, "_id": 0 }),
        ("{x: {$add: [\"$first\", 1]}}", doc! { "x": { "$add": ["$first", 1] } }),
    ]
}
