//! Documents and indexes on the memory engine.
#![allow(clippy::unwrap_used)]

mod basics;
mod builds;
mod capped;
mod change_log;
mod changes;
mod crash;
mod damage;
mod ddl;
mod jobs;
mod make_unique;
mod model;
mod patterns;
mod pressure;
mod rebuild;
mod rules;
mod series;
mod threads;
mod views;

use std::ops::ControlFlow;
use std::sync::Arc;

use quire_catalog::{Collection, IndexSpec, Namespace};
use quire_collections::{
    CollectionCursor, CreateIndexes, Record, Store, StoreOptions, VisitedDoc, Writer, WriterMode,
    check,
};
use quire_document::{Doc, DocBuf, doc};
use quire_error::Result;
use quire_storage::{CommitOptions, Direction, Interrupt};

fn store() -> Arc<Store> {
    open(quire_storage::open_memory().unwrap())
}

fn open(engine: Arc<dyn quire_storage::Engine>) -> Arc<Store> {
    Store::open(engine, StoreOptions { random_seed: 7, ..StoreOptions::default() }).unwrap()
}

fn ns(text: &str) -> Namespace {
    Namespace::parse(text).unwrap()
}

fn collection(store: &Arc<Store>, name: &str) -> Arc<Collection> {
    store.ensure_collection(&ns(name)).unwrap()
}

fn insert(store: &Arc<Store>, name: &str, doc: &DocBuf) -> Result<()> {
    let made = collection(store, name);
    let mut buffer = Vec::new();
    let doc = quire_collections::prepare_insert(store, doc.as_doc(), &mut buffer)?;
    store
        .write(&CommitOptions::buffered(), &Interrupt::new(), |writer| {
            // The writer's snapshot may have a newer index than `made`.
            let collection = writer.catalog().lookup(&ns(name)).unwrap_or(&made).clone();
            writer.insert(&collection, doc).map(|_| ())
        })
        .map(|_| ())
}

fn index(store: &Arc<Store>, name: &str, spec: &DocBuf) -> Result<quire_collections::BuiltIndexes> {
    let spec = IndexSpec::parse(spec.as_doc(), false)?;
    let request = CreateIndexes { namespace: ns(name), specs: vec![spec] };
    store.create_indexes(&request, &Interrupt::new(), &CommitOptions::buffered())
}

fn all(store: &Arc<Store>, name: &str) -> Vec<DocBuf> {
    records(store, name).iter().map(|record| record.doc.as_doc().to_owned()).collect()
}

fn records(store: &Arc<Store>, name: &str) -> Vec<Record> {
    let view = store.read_view().unwrap();
    let Some(collection) = view.catalog().lookup(&ns(name)).cloned() else { return Vec::new() };
    let mut cursor = CollectionCursor::new(&collection, Direction::Forward);
    let mut out = Vec::new();
    while cursor.next_page(&view.view(), &collection, 100, 1 << 20, &mut out).unwrap() {}
    let mut cursor = CollectionCursor::new(&collection, Direction::Forward);
    let mut expected = out.iter();
    let visitor = &mut |visited: VisitedDoc<'_>| {
        let record = expected.next().unwrap();
        assert_eq!((visited.id, visited.to_bytes()), (record.id, record.doc.clone().into_bytes()));
        Ok(ControlFlow::Continue(()))
    };
    while cursor.visit_page(&view.view(), &collection, 70, 1 << 20, visitor).unwrap() {}
    assert!(expected.next().is_none());
    out
}

fn assert_clean(store: &Arc<Store>) {
    let report = check(store, false).unwrap();
    assert!(report.is_clean(), "{:#?}", report.findings);
}

fn update(store: &Arc<Store>, name: &str, id: i32, new: Doc<'_>) -> Result<()> {
    store
        .write(&CommitOptions::buffered(), &Interrupt::new(), |writer| {
            let collection = writer.catalog().lookup(&ns(name)).cloned().unwrap();
            let found = writer.view().get_by_id(&collection, id.into())?.unwrap();
            writer.replace(&collection, found.id, found.doc.as_doc(), new)
        })
        .map(|_| ())
}

fn delete(store: &Arc<Store>, name: &str, id: i32) -> Result<()> {
    store
        .write(&CommitOptions::buffered(), &Interrupt::new(), |writer| {
            let collection = writer.catalog().lookup(&ns(name)).cloned().unwrap();
            let found = writer.view().get_by_id(&collection, id.into())?.unwrap();
            writer.delete(&collection, found.id, found.doc.as_doc())
        })
        .map(|_| ())
}

/// Returns a writer that has inserted the document 1, and undone the insert of the document 2.
fn with_one_of_two(store: &Arc<Store>, collection: &Collection) -> Writer {
    let mut writer = store.writer(WriterMode::Statement).unwrap();
    writer.insert(collection, doc! { "_id": 1 }.as_doc()).unwrap();
    let before = writer.savepoint();
    writer.insert(collection, doc! { "_id": 2 }.as_doc()).unwrap();
    writer.rollback_to(before);
    writer
}

#[test]
fn a_savepoint_loses_one_document_and_not_the_others() {
    let store = store();
    let c = collection(&store, "d.t");
    let mut writer = with_one_of_two(&store, &c);
    assert!(writer.insert(&c, doc! { "_id": 1.0 }.as_doc()).is_err());
    writer.insert(&c, doc! { "_id": 3 }.as_doc()).unwrap();
    writer.commit(CommitOptions::buffered()).unwrap();
    assert_eq!(all(&store, "d.t").len(), 2);
    assert_eq!(store.counts(&c).documents, 2);
    assert_clean(&store);
}
