//! Plans compared with a naive evaluation, and explain compared with recorded replies.

#![allow(clippy::unwrap_used)]

mod buckets;
mod choices;
mod collation;
mod densify;
mod explain;
mod first_of_each;
mod follows;
mod fusion;
mod group;
mod interrupts;
mod joins;
mod memory;
mod metadata;
mod metamorphic;
mod model;
mod modify;
mod one_state;
mod planned_once;
mod plans;
mod retry;
mod sample;
mod skewed;
mod threads;
mod trials;
mod window_functions;
mod windows;

use std::sync::Arc;

use quire_catalog::{Collection, IndexSpec, Namespace};
use quire_collections::{
    Attempt, CreateIndexes, LineId, RetryLog, Store, StoreOptions, WritePolicy, Writer,
    prepare_insert,
};
use quire_document::{Array, ArrayBuf, ArrayWriter, Doc, DocBuf};
use quire_error::Result;
use quire_executor::{BatchLimits, ExecParams, Execution, FreshViews, OpenViews, UnitOfWork};
use quire_storage::{CommitOptions, Committed, Interrupt};

/// Commits each write of a statement, as outside a transaction.
struct Own<'t> {
    store: &'t Arc<Store>,
    commit: CommitOptions,
    /// The session that stores the results of the statements, and their ids.
    retry: Option<(&'t mut RetryLog, &'t [i32])>,
}

impl<'t> Own<'t> {
    fn new(store: &'t Arc<Store>) -> Self {
        Own { store, commit: CommitOptions::buffered(), retry: None }
    }
}

impl UnitOfWork for Own<'_> {
    fn store(&self) -> &Arc<Store> {
        self.store
    }

    fn collection(&self, namespace: &Namespace) -> Result<Option<Arc<Collection>>> {
        self.store().catalog().writable(namespace)
    }

    fn views(&self) -> Result<OpenViews<'_>> {
        FreshViews::new(self.store).map(OpenViews::Fresh)
    }

    fn statements(&self) -> &[i32] {
        self.retry.as_ref().map_or(&[], |(_, statements)| *statements)
    }

    fn write(
        &mut self,
        interrupt: &Arc<Interrupt>,
        attempt: &mut dyn FnMut(&mut Writer) -> Attempt<()>,
    ) -> Result<Option<Committed>> {
        let log = self.retry.as_mut().map(|(log, _)| &mut **log);
        let written = self.store.write_statement(
            (&self.commit, WritePolicy::Client),
            log,
            interrupt,
            attempt,
        );
        written.map(|((), committed)| committed)
    }

    fn write_in_line(
        &mut self,
        _: &LineId,
        interrupt: &Arc<Interrupt>,
        attempt: &mut dyn FnMut(&mut Writer) -> Attempt<()>,
    ) -> Result<Option<Committed>> {
        self.write(interrupt, attempt)
    }

    fn admit_inserts(&self, _: &Namespace) -> Result<()> {
        Ok(())
    }

    fn ensure_collection(
        &mut self,
        namespace: &Namespace,
        _: &Arc<Interrupt>,
        _: &dyn Fn(&Store) -> bool,
    ) -> Result<()> {
        self.store.ensure_collection(namespace).map(|_| ())
    }
}

/// Statements of one transaction.
struct InTransaction<'t>(&'t mut Writer);

impl UnitOfWork for InTransaction<'_> {
    fn store(&self) -> &Arc<Store> {
        self.0.store()
    }

    fn collection(&self, namespace: &Namespace) -> Result<Option<Arc<Collection>>> {
        self.0.catalog().writable(namespace)
    }

    fn views(&self) -> Result<OpenViews<'_>> {
        Ok(OpenViews::Pinned(self.0.view()))
    }

    fn statements(&self) -> &[i32] {
        &[]
    }

    fn write(
        &mut self,
        _: &Arc<Interrupt>,
        attempt: &mut dyn FnMut(&mut Writer) -> Attempt<()>,
    ) -> Result<Option<Committed>> {
        self.0.statement(attempt).map(|()| None)
    }

    fn write_in_line(
        &mut self,
        _: &LineId,
        interrupt: &Arc<Interrupt>,
        attempt: &mut dyn FnMut(&mut Writer) -> Attempt<()>,
    ) -> Result<Option<Committed>> {
        self.write(interrupt, attempt)
    }

    fn admit_inserts(&self, _: &Namespace) -> Result<()> {
        Ok(())
    }

    fn ensure_collection(
        &mut self,
        _: &Namespace,
        _: &Arc<Interrupt>,
        _: &dyn Fn(&Store) -> bool,
    ) -> Result<()> {
        Ok(())
    }
}

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

/// Returns all documents, in batches of `batch` documents, each on a new view.
fn drain(store: &Arc<Store>, execution: &mut Execution, batch: usize) -> Vec<DocBuf> {
    try_drain(store, execution, batch).unwrap()
}

fn try_drain(store: &Arc<Store>, execution: &mut Execution, batch: usize) -> Result<Vec<DocBuf>> {
    drain_between(store, execution, batch, || ())
}

/// Does what [`try_drain`] does; calls `before_each` before each batch.
fn drain_between(
    store: &Arc<Store>,
    execution: &mut Execution,
    batch: usize,
    mut before_each: impl FnMut(),
) -> Result<Vec<DocBuf>> {
    let mut out = Vec::new();
    loop {
        before_each();
        let mut views = FreshViews::new(store).unwrap();
        let mut bytes = Vec::new();
        let mut writer = ArrayWriter::new(&mut bytes);
        let limits = BatchLimits::docs(batch);
        let end = execution.next_batch(&mut views, &Interrupt::new(), limits, &mut writer)?;
        writer.finish();
        let docs = ArrayBuf::from_valid_bytes(bytes);
        out.extend(documents(docs.as_array()).map(Doc::to_owned));
        if end.is_last() {
            return Ok(out);
        }
    }
}

fn documents(array: Array<'_>) -> impl Iterator<Item = Doc<'_>> {
    array.iter().filter_map(|value| value.as_document())
}
