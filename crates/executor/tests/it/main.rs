//! Plans against a naive evaluation, and explain against recorded replies.

#![allow(clippy::unwrap_used)]

mod explain;
mod group;
mod metadata;
mod model;
mod modify;
mod plans;
mod retry;
mod sample;
mod threads;

use std::sync::Arc;

use quire_catalog::{IndexSpec, Namespace};
use quire_collections::{CreateIndexes, Store, StoreOptions, prepare_insert};
use quire_document::{Array, ArrayBuf, ArrayWriter, Doc, DocBuf};
use quire_error::Result;
use quire_executor::{BatchLimits, ExecParams, Execution, FreshViews};
use quire_storage::{CommitOptions, Interrupt};

fn store() -> Arc<Store> {
    let options = StoreOptions { random_seed: 7, ..StoreOptions::default() };
    Store::open(quire_storage::open_memory().unwrap(), options).unwrap()
}

fn ns(text: &str) -> Namespace {
    Namespace::parse(text).unwrap()
}

fn params() -> ExecParams {
    ExecParams::new(Interrupt::new(), 0)
}

fn insert_all<'d>(store: &Arc<Store>, name: &str, docs: impl IntoIterator<Item = Doc<'d>>) {
    let collection = store.ensure_collection(&ns(name)).unwrap();
    let docs: Vec<DocBuf> = docs
        .into_iter()
        .map(|doc| {
            let mut buffer = Vec::new();
            prepare_insert(store, doc, &mut buffer).unwrap().to_owned()
        })
        .collect();
    store
        .write(&CommitOptions::buffered(), &Interrupt::new(), |writer| {
            for doc in &docs {
                writer.insert(&collection, doc.as_doc())?;
            }
            Ok(())
        })
        .unwrap();
}

fn create_indexes<'d>(
    store: &Arc<Store>,
    name: &str,
    specs: impl Iterator<Item = Doc<'d>>,
) -> Result<()> {
    let specs = specs.map(|spec| IndexSpec::parse(spec, false)).collect::<Result<_>>()?;
    let request = CreateIndexes { namespace: ns(name), specs };
    store.create_indexes(&request, &Interrupt::new(), &CommitOptions::buffered()).map(|_| ())
}

/// All documents, in batches of `batch` documents, each on a fresh view.
fn drain(store: &Arc<Store>, execution: &mut Execution, batch: usize) -> Vec<DocBuf> {
    try_drain(store, execution, batch).unwrap()
}

fn try_drain(store: &Arc<Store>, execution: &mut Execution, batch: usize) -> Result<Vec<DocBuf>> {
    let mut out = Vec::new();
    loop {
        let mut views = FreshViews::new(store).unwrap();
        let mut bytes = Vec::new();
        let mut writer = ArrayWriter::new(&mut bytes);
        let limits = BatchLimits::docs(batch);
        let end = execution.next_batch(&mut views, &Interrupt::new(), limits, &mut writer)?;
        writer.finish();
        let docs = ArrayBuf::from_valid_bytes(bytes);
        out.extend(documents(docs.as_array()).map(Doc::to_owned));
        if end.exhausted {
            return Ok(out);
        }
    }
}

fn documents(array: Array<'_>) -> impl Iterator<Item = Doc<'_>> {
    array.iter().filter_map(|value| value.as_document())
}
