//! Measures the documents per second of scans, groups and point reads over documents of 1 KB in
//! memory: `cargo run --release -p quire-executor --example throughput`.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Instant;

use quire_catalog::Namespace;
use quire_collections::{Store, StoreOptions, prepare_insert};
use quire_document::{ArrayWriter, DocBuf, doc};
use quire_error::Result;
use quire_executor::{BatchLimits, ExecParams, Execution, FreshViews, count, open};
use quire_planner::{AggregateRequest, CountRequest, FindRequest};
use quire_storage::{CommitOptions, Interrupt};

const DOCS: i32 = 200_000;

fn main() -> Result<()> {
    let engine = quire_storage::open_memory().map_err(quire_collections::from_storage)?;
    let store = Store::open(engine, StoreOptions::default())?;
    fill(&store)?;
    let find =
        |filter: DocBuf| FindRequest { namespace: "db.t".into(), filter, ..FindRequest::default() };
    for id in [1, 2] {
        let reads = 100_000;
        let begun = Instant::now();
        for read in 0..reads {
            let views = FreshViews::new(&store)?;
            let request = find(doc! { "_id": (read * 7 % DOCS) });
            drain(&store, open(&request, &views, params())?)?;
        }
        let each = begun.elapsed() / reads as u32;
        println!("point find by _id, round {id}: {each:?}");
    }
    let rate = |name: &str, run: &dyn Fn() -> Result<usize>| -> Result<()> {
        let mut best = f64::MAX;
        let mut answered = 0;
        for _ in 0..3 {
            let begun = Instant::now();
            answered = run()?;
            best = best.min(begun.elapsed().as_secs_f64());
        }
        let millions = f64::from(DOCS) / best / 1e6;
        println!("{name}: {millions:.2} M docs/s ({answered} answered)");
        Ok(())
    };
    let views = || FreshViews::new(&store);
    rate("scan", &|| drain(&store, open(&find(doc! {}), &views()?, params())?))?;
    rate("scan with a filter that keeps nothing", &|| {
        drain(&store, open(&find(doc! { "g": { "$gt": 1000 } }), &views()?, params())?)
    })?;
    rate("count with a filter", &|| {
        let request = CountRequest {
            namespace: "db.t".into(),
            filter: doc! { "v": { "$lt": 1000 } },
            ..CountRequest::default()
        };
        Ok(count(&request, &mut views()?, params())?.0 as usize)
    })?;
    let pipeline = |stages: Vec<DocBuf>| AggregateRequest {
        namespace: "db.t".into(),
        pipeline: stages,
        ..AggregateRequest::default()
    };
    let group = doc! { "$group": { "_id": "$g", "n": { "$sum": 1 }, "v": { "$sum": "$v" } } };
    rate("group by a field with two sums", &|| {
        drain(&store, open(&pipeline(vec![group.clone()]), &views()?, params())?)
    })?;
    rate("filter, then group", &|| {
        let stages = vec![doc! { "$match": { "v": { "$gte": 0 } } }, group.clone()];
        drain(&store, open(&pipeline(stages), &views()?, params())?)
    })?;
    rate("sort by a field", &|| {
        let request = FindRequest { sort: doc! { "v": (-1) }, limit: 100, ..find(doc! {}) };
        drain(&store, open(&request, &views()?, params())?)
    })
}

fn params() -> ExecParams {
    ExecParams::new(Interrupt::new(), 0)
}

fn fill(store: &Arc<Store>) -> Result<()> {
    let namespace = Namespace::parse("db.t")?;
    let collection = store.ensure_collection(&namespace)?;
    let text = "x".repeat(90);
    for chunk in 0..DOCS / 1000 {
        store.write(&CommitOptions::buffered(), &Interrupt::new(), |writer| {
            for id in chunk * 1000..(chunk + 1) * 1000 {
                let doc = doc! {
                    "_id": id, "name": text.as_str(), "g": (id % 100), "a": text.as_str(),
                    "b": { "c": text.as_str(), "d": id }, "v": f64::from(id),
                    "e": text.as_str(), "f": text.as_str(), "h": text.as_str(),
                    "i": text.as_str(), "j": text.as_str(), "k": text.as_str()
                };
                let mut buffer = Vec::new();
                let doc = prepare_insert(store, doc.as_doc(), &mut buffer)?;
                writer.insert(&collection, doc)?;
            }
            Ok(())
        })?;
    }
    Ok(())
}

fn drain(store: &Arc<Store>, mut execution: Execution) -> Result<usize> {
    let mut answered = 0;
    loop {
        let mut views = FreshViews::new(store)?;
        let mut bytes = Vec::with_capacity(1 << 16);
        let mut writer = ArrayWriter::new(&mut bytes);
        let limits = BatchLimits::docs(10_000);
        let end = execution.next_batch(&mut views, &Interrupt::new(), limits, &mut writer)?;
        answered += end.docs;
        if end.is_last() {
            return Ok(answered);
        }
    }
}
