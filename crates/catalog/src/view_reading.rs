//! Finding the collection below a view, without I/O.

use std::sync::Arc;

use quire_document::DocBuf;
use quire_document::limits::VIEW_DEPTH_MAX;
use quire_error::{Error, ErrorCode, Result};
use quire_mql::Collation;

use crate::view::{ViewDefinition, check_bytes, too_deep};
use crate::{Catalog, Collection, Namespace, names};

/// A view resolved to the collection below it and the pipeline on that collection.
#[derive(Debug, Clone)]
pub struct ResolvedView {
    /// The view's own name.
    pub view: Namespace,
    /// The collection below all views, as `database.collection`. It need not exist.
    pub namespace: String,
    /// The stages of all views between the collection and the reader, in the order in which they
    /// run.
    pub pipeline: Vec<DocBuf>,
    /// The positions in `pipeline` at which the stages of each view end, the innermost view's
    /// first. What a view leaves out must not reach the stages behind its end as metadata.
    pub ends: Vec<usize>,
    /// The collation of the view.
    pub collation: Option<Arc<Collation>>,
}

impl Catalog {
    /// Resolves the view `full`, given as `database.view`; `None` if no view has the name.
    ///
    /// # Errors
    /// 165 ViewDepthLimitExceeded; 195 ViewPipelineMaxSizeExceeded; 182 InvalidViewDefinition if a
    /// view definition of the database cannot be decoded.
    pub fn resolve(&self, full: &str) -> Result<Option<ResolvedView>> {
        let Some((db, name)) = names::split(full) else { return Ok(None) };
        let Some(database) = self.database(db).filter(|database| database.has_views()) else {
            return Ok(None);
        };
        database.check_views()?;
        let Some(first) = database.view(name) else { return Ok(None) };
        let mut chain = vec![first];
        let mut last = first;
        while let Some(below) = database.view(&last.on) {
            if chain.len() == VIEW_DEPTH_MAX {
                return Err(too_deep());
            }
            chain.push(below);
            last = below;
        }
        check_bytes(chain.iter().map(|view| view.pipeline_bytes()).sum())?;
        let (mut stages, mut ends) = (Vec::new(), Vec::with_capacity(chain.len()));
        for view in chain.iter().rev() {
            stages.extend(view.pipeline.iter().cloned());
            ends.push(stages.len());
        }
        Ok(Some(ResolvedView {
            view: first.namespace.clone(),
            namespace: format!("{db}.{}", last.on),
            pipeline: stages,
            ends,
            collation: first.collation.clone(),
        }))
    }

    /// Returns the view with this name.
    pub fn view(&self, namespace: &Namespace) -> Option<&Arc<ViewDefinition>> {
        self.database(namespace.db())?.view(namespace.collection())
    }

    /// Returns the collection that a write to the name modifies, if it exists.
    ///
    /// # Errors
    /// 166 CommandNotSupportedOnView if the name is that of a view; 73 InvalidNamespace for the
    /// oplog; 115 CommandNotSupported for the buckets of a time-series collection.
    pub fn writable(&self, namespace: &Namespace) -> Result<Option<Arc<Collection>>> {
        namespace.check_writable()?;
        self.refuse_view(namespace)?;
        match self.lookup(namespace) {
            Some(found) => Ok(Some(Arc::clone(found))),
            None => self.refuse_buckets(namespace).map(|()| None),
        }
    }

    /// Fails with 166 CommandNotSupportedOnView if the name is that of a view or of a time-series
    /// collection, as MongoDB's commands for plain collections do.
    pub fn refuse_view_like(&self, namespace: &Namespace) -> Result<()> {
        self.refuse_view(namespace)?;
        if !self.lookup(namespace).is_some_and(|found| found.is_time_series()) {
            return Ok(());
        }
        let text = format!("Namespace {namespace} is a timeseries collection");
        Err(Error::new(ErrorCode::CommandNotSupportedOnView, text))
    }

    /// Fails with 166 CommandNotSupportedOnView if the name is that of a view.
    pub fn refuse_view(&self, namespace: &Namespace) -> Result<()> {
        match self.view(namespace) {
            None => Ok(()),
            Some(_) => Err(Error::new(
                ErrorCode::CommandNotSupportedOnView,
                format!("Namespace {namespace} is a view, not a collection"),
            )),
        }
    }
}
