//! Expressions of each family, and `$group` by a field with `$sum`, on documents of 1 KB.

use crate::harness::nanoseconds;
use bumpalo::Bump;
use quire_document::{Doc, DocBuf, Value, doc, hash_of};
use quire_error::Result;
use quire_mql::stage::{Stage, parse_stage};
use quire_mql::{EvalContext, Expression, ParseContext, Shared};
use std::collections::HashMap;
use std::hint::black_box;

pub fn run() -> Result<()> {
    let context = ParseContext::default();
    let (mut arena, shared) = (Bump::new(), Shared::default());
    let docs: Vec<DocBuf> = (0..1024).map(document).collect();
    println!("\n{:40} {:>9}", "expression", "ns");
    for (name, source) in expressions() {
        let Ok(expression) = Expression::parse(Value::from(&source), &context) else {
            println!("{name:40} not built");
            continue;
        };
        let doc = docs[5].as_doc();
        let time = nanoseconds(|| {
            arena.reset();
            let cx = EvalContext::new(&arena, black_box(doc), &shared);
            black_box(expression.eval(&cx).is_ok());
        });
        println!("{name:40} {time:9.0}");
    }
    group(&docs, &context, &shared)?;
    batch(&docs, &context, &shared)
}

/// A document of about 1 KB.
fn document(at: i32) -> DocBuf {
    DocBuf::build(|writer| {
        writer.append("_id", at).append("key", at % 16).append("amount", at % 100);
        writer.append("ratio", f64::from(at) * 0.25);
        for field in 0..16 {
            let name = format!("field_{field}");
            writer.append(&name, "a text of some thirty letters here, more or less");
        }
        let mut items = writer.array("items");
        for item in 0..8 {
            items.document().append("price", item).append("count", 2);
        }
        items.finish();
        writer.append("last", 7);
    })
}

fn expressions() -> Vec<(&'static str, DocBuf)> {
    vec![
        ("path to the second field", doc! { "$ifNull": ["$key", 0] }),
        ("path to the last field", doc! { "$ifNull": ["$last", 0] }),
        ("$add of two ints", doc! { "$add": ["$key", "$amount"] }),
        ("$multiply of int and double", doc! { "$multiply": ["$amount", "$ratio"] }),
        ("$gt", doc! { "$gt": ["$amount", 50] }),
        ("$cond", doc! { "$cond": [{ "$lt": ["$key", 8] }, "low", "high"] }),
        ("$concat", doc! { "$concat": ["$field_0", "-", "$field_1"] }),
        ("$toUpper", doc! { "$toUpper": "$field_0" }),
        ("$year", doc! { "$year": Value::Date(1_700_000_000_000) }),
        ("$sum of items.price", doc! { "$sum": "$items.price" }),
        (
            "$map over 8 items",
            doc! { "$map": {
            "input": "$items", "in": { "$multiply": ["$$this.price", "$$this.count"] } } },
        ),
        (
            "$filter over 8 items",
            doc! { "$filter": {
            "input": "$items", "cond": { "$gt": ["$$this.price", 4] } } },
        ),
        (
            "$reduce over 8 items",
            doc! { "$reduce": {
            "input": "$items", "initialValue": 0, "in": { "$add": ["$$value", "$$this.price"] } } },
        ),
        ("$setUnion", doc! { "$setUnion": ["$items.price", [1, 2, 99]] }),
        ("object of three fields", doc! { "a": "$key", "b": "$amount", "c": "$ratio" }),
    ]
}

/// A hash table of states, as the executor keeps it.
fn group(docs: &[DocBuf], context: &ParseContext, shared: &Shared) -> Result<()> {
    let source = doc! { "$group": { "_id": "$key", "total": { "$sum": "$amount" } } };
    let stages = parse_stage(Value::from(&source), context)?;
    let Some(Stage::Group(group)) = stages.first() else { return Ok(()) };
    let (mut arena, mut groups) = (Bump::new(), HashMap::new());
    let time = nanoseconds(|| {
        for doc in docs {
            arena.reset();
            let cx = EvalContext::new(&arena, doc.as_doc(), shared);
            let Ok(cx) = group.extract(&cx) else { return };
            let Ok(key) = group.key().eval(&cx) else { return };
            let states = groups
                .entry(hash_of(key, None))
                .or_insert_with(|| group.new_states(key, &cx).unwrap_or_default());
            black_box(group.add(states, &cx).is_ok());
        }
    });
    println!("{:40} {:9.0}", "$group by key with $sum", time / docs.len() as f64);
    Ok(())
}

fn batch(docs: &[DocBuf], context: &ParseContext, shared: &Shared) -> Result<()> {
    let source = doc! { "$add": [{ "$multiply": ["$amount", 2] }, "$key"] };
    let expression = Expression::parse(Value::from(&source), context)?;
    let views: Vec<Doc<'_>> = docs.iter().map(DocBuf::as_doc).collect();
    let mut arena = Bump::new();
    let time = nanoseconds(|| {
        arena.reset();
        let cx = EvalContext::new(&arena, Doc::empty(), shared);
        black_box(expression.eval_batch(&views, &cx).is_ok());
    });
    println!("{:40} {:9.0}", "$add of a $multiply, in a batch", time / docs.len() as f64);
    Ok(())
}
