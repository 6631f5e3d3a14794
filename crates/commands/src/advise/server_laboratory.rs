//! The laboratory of the advice about indexes, over copies of this server's collections.

use crate::frame::context::Context;
use crate::laboratory::workbench::{CopyOf, Wanted, Workbench};
use crate::read::explained::{explain_on, on_collection};
use quire_advisor::SampleSize;
use quire_advisor::indexes::{
    BuiltIndex, CopyShare, ExistingIndex, IndexDefinition, Laboratory, LaboratoryCopy, Measured,
};
use quire_catalog::{Collection, IndexSpec, Namespace};
use quire_collections::{CollectionCursor, CreateIndexes};
use quire_document::Doc;
use quire_error::{Error, ErrorCode, Result};
use quire_executor::{FreshViews, OpenViews, Views};
use quire_planner::{ReadRequest, Verbosity};
use quire_storage::{CommitOptions, Direction};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The documents and bytes that are read at a time.
const PAGE_DOCS: usize = 500;
const PAGE_BYTES: usize = 2 << 20;

/// Copies of this server's collections.
pub struct ServerLaboratory<'c> {
    cx: &'c Context<'c>,
    sample_size: u64,
    seed: u64,
    bench: Option<Workbench<'c>>,
}

impl<'c> ServerLaboratory<'c> {
    /// Returns a laboratory whose copies have at most `sample_size` documents.
    pub fn new(cx: &'c Context<'c>, sample_size: u64, seed: u64) -> Self {
        ServerLaboratory { cx, sample_size, seed, bench: None }
    }

    fn namespace(&self, collection: &str) -> Result<Namespace> {
        Namespace::new(self.cx.db, collection)
    }

    fn bench(&mut self) -> Result<&mut Workbench<'c>> {
        self.bench.as_mut().ok_or_else(|| Error::internal("the laboratory has no copies"))
    }

    /// Builds an index on the copy. Returns why it cannot be built.
    fn build(&mut self, namespace: &Namespace, index: &IndexDefinition) -> Result<Option<String>> {
        let cx = self.cx;
        let bench = self.bench()?;
        let spec = IndexSpec::parse(index.spec().as_doc(), false);
        let built = spec.and_then(|spec| {
            let create = CreateIndexes { namespace: namespace.clone(), specs: vec![spec] };
            let commit = CommitOptions::buffered();
            bench.store().create_indexes(&create, &cx.interrupt, &commit)
        });
        bench.bounded().pause()?;
        match built {
            Err(error) => Ok(Some(error.message().to_owned())),
            Ok(built) if built.existed > 0 => Ok(Some("the index exists".to_owned())),
            Ok(_) if bench.has_room() => Ok(None),
            Ok(_) => {
                bench.drop_index(namespace, &index.name())?;
                Ok(Some("the laboratory has no memory for it".to_owned()))
            }
        }
    }

    /// Returns what is known of an index that was asked for.
    fn built(
        &mut self,
        namespace: &Namespace,
        index: &IndexDefinition,
        refused: Option<String>,
    ) -> Result<BuiltIndex> {
        let bench = self.bench()?;
        let name = index.name();
        let sizes = bench.sizes(namespace)?;
        let bytes = sizes.indexes.iter().find(|size| size.name == name).map(|size| size.bytes);
        let bytes = match refused {
            Some(error) => Err(error),
            None => bytes.ok_or_else(|| "the index was not built".to_owned()),
        };
        let most_keys = bench.most_keys_of(namespace, Some(&name))?;
        Ok(BuiltIndex { bytes, most_keys })
    }
}

/// Returns the collection with this name.
pub fn find(cx: &Context<'_>, collection: &str) -> Result<Option<Arc<Collection>>> {
    let namespace = Namespace::new(cx.db, collection)?;
    Ok(cx.service.store.catalog().lookup(&namespace).cloned())
}

impl Laboratory for ServerLaboratory<'_> {
    type Error = Error;

    fn indexes(&mut self, collection: &str) -> Result<Vec<ExistingIndex>> {
        let Some(found) = find(self.cx, collection)? else { return Ok(Vec::new()) };
        let ready = found.ready_indexes().map(|index| ExistingIndex {
            name: index.name.clone(),
            spec: index.to_document(),
            uses: Some(index.uses.load(Ordering::Relaxed)),
        });
        Ok(ready.collect())
    }

    fn copy(
        &mut self,
        collection: &str,
        others: &[String],
        share: CopyShare,
        indexes: &[IndexDefinition],
    ) -> Result<LaboratoryCopy> {
        // The next copies need the turn and the memory of the last ones.
        self.bench = None;
        let namespace = self.namespace(collection)?;
        let mut views = FreshViews::new(&self.cx.service.store)?;
        let Some(source) = find(self.cx, collection)? else {
            let text = format!("ns does not exist: {}", namespace.as_str());
            return Err(Error::new(ErrorCode::NamespaceNotFound, text));
        };
        let documents = views.view().counts(&source).documents;
        let fits = self.sample_size.min(documents);
        let most = match share {
            CopyShare::Whole => fits,
            CopyShare::Fourth => (fits / 4).max(1),
        };
        let mut own = CopyOf::as_it_is(source);
        own.documents_max = Some(most);
        own.more_indexes = indexes.len() as u64;
        let mut copies = vec![own];
        for other in others {
            if let Some(other) = find(self.cx, other)? {
                copies.push(CopyOf::as_it_is(other));
            }
        }
        let wanted = Wanted { copies, views: Vec::new(), seed: self.seed };
        self.bench = Some(Workbench::open(self.cx, &mut views, &wanted)?);
        drop(views);
        // They serve no request, and a candidate may be the same index.
        let bench = self.bench()?;
        for index in bench.collection(&namespace)?.indexes.iter().filter(|index| index.hidden) {
            bench.drop_index(&namespace, &index.name)?;
        }
        let mut built = Vec::new();
        for index in indexes {
            let refused = self.build(&namespace, index)?;
            self.cx.check_interrupt()?;
            built.push(self.built(&namespace, index, refused)?);
        }
        let bench = self.bench()?;
        let size = bench.copy_of(&namespace).map(|copied| copied.size);
        let most_keys = bench.most_keys(&namespace)?;
        let size = size.unwrap_or(SampleSize { sampled: 0, total: documents });
        Ok(LaboratoryCopy { size, built, most_keys })
    }

    fn rebuild(
        &mut self,
        collection: &str,
        names: &[&str],
        indexes: &[IndexDefinition],
    ) -> Result<()> {
        let namespace = self.namespace(collection)?;
        let bench = self.bench()?;
        for index in &bench.collection(&namespace)?.indexes {
            if !index.is_id() && !names.contains(&index.name.as_str()) {
                bench.drop_index(&namespace, &index.name)?;
            }
        }
        for index in indexes {
            if let Some(refused) = self.build(&namespace, index)? {
                return Err(Error::new(ErrorCode::ExceededMemoryLimit, refused));
            }
            self.cx.check_interrupt()?;
        }
        Ok(())
    }

    fn show(&mut self, collection: &str, names: &[&str]) -> Result<()> {
        let namespace = self.namespace(collection)?;
        let bench = self.bench()?;
        for index in &bench.collection(&namespace)?.indexes {
            let hidden = !names.contains(&index.name.as_str());
            if !index.is_id() && index.hidden != hidden {
                bench.hide(&namespace, &index.name, hidden)?;
            }
        }
        Ok(())
    }

    fn run(&mut self, command: Doc<'_>) -> Result<Option<Measured>> {
        let cx = self.cx;
        let bench = self.bench()?;
        let name = command.first().map_or("", |first| first.key());
        let Some(explain) = cx.service.commands.find(name).and_then(|row| row.explain) else {
            return Ok(None);
        };
        let explained = explain(cx, command, &mut |what| {
            let server = OpenViews::Fresh(FreshViews::new(&cx.service.store)?);
            let resolved = on_collection(what, &server)?;
            let what = resolved.as_ref().map_or(what, ReadRequest::Aggregate);
            let namespace = Namespace::parse(what.target().0)?;
            let whole = SampleSize { sampled: 1, total: 1 };
            let size = bench.copy_of(&namespace).map_or(whole, |copied| copied.size);
            let params = bench.exec_params(size);
            explain_on(cx, what, Verbosity::ExecutionStats, &mut bench.views()?, params)
        });
        cx.check_interrupt()?;
        bench.bounded().pause()?;
        // What a recorded command asks may have become impossible.
        let Ok(explained) = explained else { return Ok(None) };
        Ok(Measured::of_explanation(explained.as_doc()).filter(|run| run.error.is_none()))
    }

    fn read(&mut self, collection: &str, each: &mut dyn FnMut(Doc<'_>)) -> Result<()> {
        let namespace = self.namespace(collection)?;
        let bench = self.bench()?;
        let copy = bench.collection(&namespace)?;
        let mut cursor = CollectionCursor::new(&copy, Direction::Forward);
        let (mut page, mut more) = (Vec::new(), true);
        while more {
            page.clear();
            let view = bench.store().read_view()?;
            more = cursor.next_page(&view.view(), &copy, PAGE_DOCS, PAGE_BYTES, &mut page)?;
            page.iter().for_each(|record| each(record.doc.as_doc()));
            bench.bounded().pause()?;
        }
        Ok(())
    }
}
