//! Measures an insert, an update, a point read and a scan on the memory engine: `cargo run
//! --release -p quire-collections --example cost`.

#![allow(clippy::unwrap_used)]

use std::time::{Duration, Instant};

use quire_catalog::{IndexSpec, Namespace};
use quire_collections::{
    CollectionCursor, CreateIndexes, Store, StoreOptions, WriterMode, prepare_insert,
};
use quire_document::{DocBuf, Value, doc};
use quire_storage::{CommitOptions, Direction, Interrupt};

/// Few enough documents for the CPU caches, so that the code is measured and not the memory.
const DOCS: i32 = 20_000;

fn document(id: i32) -> DocBuf {
    let mut doc = doc! { "_id": id, "group": id % 1000, "name": "a name that is quite long" };
    for field in ["f0", "f1", "f2", "f3", "f4", "f5", "f6", "f7", "f8"] {
        doc.append(field, &"x".repeat(90));
    }
    doc
}

fn report(what: &str, count: i32, took: Duration) {
    println!("{what:40} {:8.2} us", took.as_secs_f64() * 1e6 / f64::from(count));
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store = Store::open(quire_storage::open_memory()?, StoreOptions::default())?;
    let ns = Namespace::new("bench", "docs")?;
    let collection = store.ensure_collection(&ns)?;
    let docs: Vec<DocBuf> = (0..DOCS).map(document).collect();
    println!("{} bytes a document", docs[0].as_bytes().len());
    let interrupt = Interrupt::new();

    let begun = Instant::now();
    for doc in &docs[..docs.len() / 2] {
        store.write(&CommitOptions::buffered(), &interrupt, |writer| {
            let mut buffer = Vec::new();
            let doc = prepare_insert(&store, doc.as_doc(), &mut buffer)?;
            writer.insert(&collection, doc)
        })?;
    }
    report("insert, one a commit", DOCS / 2, begun.elapsed());

    let begun = Instant::now();
    for chunk in docs[docs.len() / 2..].chunks(1000) {
        let mut writer = store.writer(WriterMode::Statement)?;
        for doc in chunk {
            writer.insert(&collection, doc.as_doc()).map_err(quire_error::Error::from)?;
        }
        writer.commit(CommitOptions::buffered()).map_err(quire_error::Error::from)?;
    }
    report("insert, 1,000 a commit", DOCS / 2, begun.elapsed());

    for what in ["find by _id, a view each (cold hints)", "find by _id, a view each"] {
        let begun = Instant::now();
        for n in 0..DOCS {
            let view = store.read_view()?;
            let collection = view.catalog().lookup(&ns).ok_or("no collection")?;
            let id = (i64::from(n) * 7919 % i64::from(DOCS)) as i32;
            let found = view.view().get_by_id(collection, Value::Int32(id))?;
            assert!(found.is_some());
        }
        report(what, DOCS, begun.elapsed());
    }

    let begun = Instant::now();
    let view = store.read_view()?;
    let mut cursor = CollectionCursor::new(&collection, Direction::Forward);
    let (mut records, mut sum) = (Vec::new(), 0i64);
    loop {
        records.clear();
        let more = cursor.next_page(&view.view(), &collection, 1000, 1 << 20, &mut records)?;
        for record in &records {
            if let Some(Value::Int32(group)) = record.doc.get("group") {
                sum += i64::from(group);
            }
        }
        if !more {
            break;
        }
    }
    assert!(sum > 0);
    report("scan, one field read", DOCS, begun.elapsed());
    drop(view);

    let begun = Instant::now();
    let specs =
        vec![IndexSpec::parse(doc! { "key": { "group": 1 }, "name": "g" }.as_doc(), false)?];
    let request = CreateIndexes { namespace: ns.clone(), specs };
    store.create_indexes(&request, &interrupt, &CommitOptions::buffered())?;
    report("build of an index", DOCS, begun.elapsed());

    let begun = Instant::now();
    for id in 0..DOCS / 4 {
        store.write(&CommitOptions::buffered(), &interrupt, |writer| {
            let collection = writer.catalog().lookup(&ns).cloned();
            let collection =
                collection.ok_or_else(|| quire_error::Error::internal("no collection"))?;
            let found = writer.view().get_by_id(&collection, Value::Int32(id))?;
            let found = found.ok_or_else(|| quire_error::Error::internal("no document"))?;
            let mut new = document(id);
            new.append("more", 1);
            writer.replace(&collection, found.id, found.doc.as_doc(), new.as_doc())
        })?;
    }
    report("update by _id, one a commit", DOCS / 4, begun.elapsed());
    Ok(())
}
