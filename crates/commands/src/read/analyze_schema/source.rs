//! The collections of this server as a source of the advisor. A read takes new views from time to
//! time, so that it keeps no old versions of documents, and it ends when the operation is killed.

use crate::frame::context::Context;
use crate::frame::service::now_ms;
use crate::read::on_view;
use quire_access::{Action, Target};
use quire_advisor::{Extent, IndexUse, Lookup, SourceCollection};
use quire_catalog::{Collection, Namespace};
use quire_collections::collection_sizes;
use quire_document::{ArrayBuf, Doc, DocBuf, doc};
use quire_error::{Error, Result};
use quire_executor::{BatchLimits, UnitOfWork, open};
use quire_planner::{AggregateRequest, ReadRequest};
use std::sync::atomic::Ordering;

/// The documents that are read at a time.
const BATCH: usize = 256;

/// The collections of a database that the client may read.
pub struct ServerCollections<'c> {
    pub cx: &'c Context<'c>,
    pub db: &'c str,
    /// A view or a collection of the system that the client has named, which is no collection of users.
    pub named: Option<String>,
}

impl ServerCollections<'_> {
    fn describe(&self, collection: &Collection) -> Result<SourceCollection> {
        let name = collection.namespace.collection();
        let target = Target::Collection(self.db, name);
        let sizes = collection_sizes(&self.cx.service.store, collection)?;
        let listed = self.cx.may(target, Action::ListIndexes);
        let listed = collection.listed_indexes().filter(|_| listed);
        let indexes = listed.map(|index| index.to_document()).collect();
        let seconds = now_ms().saturating_sub(self.cx.service.started_ms) as f64 / 1000.0;
        let counted = self.cx.may(target, Action::IndexStats);
        let uses = collection.listed_indexes().filter(|_| counted).map(|index| IndexUse {
            name: index.name.clone(),
            uses: Some(index.uses.load(Ordering::Relaxed)),
            seconds,
            bytes: sizes.indexes.iter().find(|size| size.name == index.name).map(|size| size.bytes),
        });
        Ok(SourceCollection {
            name: name.to_owned(),
            documents: Some(sizes.counts.documents),
            options: collection.options.document().to_owned(),
            indexes,
            uses: uses.collect(),
        })
    }

    /// Calls `each` with the documents of a pipeline over a collection or a view.
    fn run(
        &self,
        collection: &str,
        pipeline: Vec<DocBuf>,
        each: &mut dyn FnMut(Doc<'_>),
    ) -> Result<()> {
        let namespace = Namespace::new(self.db, collection)?;
        let mut request = AggregateRequest {
            namespace: namespace.as_str().to_owned(),
            pipeline,
            ..AggregateRequest::default()
        };
        let unit = self.cx.unit()?;
        let mut views = unit.views()?;
        if let Some(resolved) = on_view::resolved(ReadRequest::Aggregate(&request), &views)? {
            request = resolved;
        }
        let mut execution = open(&request, &views, self.cx.exec_params())?;
        let mut is_last = false;
        while !is_last {
            let mut end = Ok(true);
            let batch = ArrayBuf::build(|out| {
                let limits = BatchLimits::docs(BATCH);
                let batch = execution.next_batch(&mut views, &self.cx.interrupt, limits, out);
                end = batch.map(|batch| batch.is_last());
            });
            is_last = end?;
            batch.as_array().iter().filter_map(|value| value.as_document()).for_each(&mut *each);
        }
        Ok(())
    }
}

impl quire_advisor::Source for ServerCollections<'_> {
    type Error = Error;

    fn collections(&mut self) -> Result<Vec<SourceCollection>> {
        let catalog = self.cx.service.store.catalog();
        let mut found = Vec::new();
        for collection in catalog.database(self.db).iter().flat_map(|db| db.collections()) {
            let namespace = &collection.namespace;
            let target = Target::Collection(namespace.db(), namespace.collection());
            if !namespace.is_system() && self.cx.may(target, Action::Find) {
                found.push(self.describe(collection)?);
            }
        }
        if let Some(name) = &self.named {
            found.push(SourceCollection { name: name.clone(), ..SourceCollection::default() });
        }
        Ok(found)
    }

    fn read(
        &mut self,
        collection: &str,
        extent: Extent,
        each: &mut dyn FnMut(Doc<'_>),
    ) -> Result<()> {
        let pipeline = match extent {
            Extent::All => Vec::new(),
            Extent::Sample(size) => vec![doc! { "$sample": { "size": size as i64 } }],
        };
        self.run(collection, pipeline, each)
    }

    fn look_up(&mut self, collection: &str, lookups: &[Lookup]) -> Result<Vec<u64>> {
        let mut counts = Vec::with_capacity(lookups.len());
        for lookup in lookups {
            let mut count = 0;
            self.fetch(collection, lookup, &mut |_| count += 1)?;
            counts.push(count);
        }
        Ok(counts)
    }

    fn fetch(
        &mut self,
        collection: &str,
        lookup: &Lookup,
        each: &mut dyn FnMut(Doc<'_>),
    ) -> Result<()> {
        let mut filter = DocBuf::new();
        filter.append(&lookup.field, &doc! { "$in": &lookup.values });
        self.run(collection, vec![doc! { "$match": &filter }], each)
    }
}
