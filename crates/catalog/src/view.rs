//! Views: pipelines that clients read as collections. A view definition is a document of the
//! collection `system.views` of its database. The catalog has all definitions, so that a reader
//! finds the collection below a view without I/O.

use std::sync::Arc;

use quire_document::limits::{VIEW_DEPTH_MAX, VIEW_PIPELINE_BYTES_MAX};
use quire_document::{Array, Doc, DocBuf, DocWriter, Value};
use quire_error::{Error, ErrorCode, Result};
use quire_mql::Collation;
use quire_mql::stage::find_stage;

use crate::{Catalog, Collection, Namespace, names};

/// The collection that stores the view definitions of a database.
pub const SYSTEM_VIEWS: &str = "system.views";

/// The definition of a view.
#[derive(Debug, Clone)]
pub struct ViewDefinition {
    /// The name of the view.
    pub namespace: Namespace,
    /// The source: the collection or view of the same database that the pipeline reads. It need not
    /// exist.
    pub on: Arc<str>,
    /// The stages, one document for each.
    pub pipeline: Vec<DocBuf>,
    /// The collation of the pipeline and of every read of the view. A view does not inherit the
    /// collation of its source.
    pub collation: Option<Arc<Collation>>,
}

/// A view resolved to the collection below it and the pipeline on that collection.
#[derive(Debug, Clone)]
pub struct ResolvedView {
    /// The view's own name.
    pub view: Namespace,
    /// The collection below all views, as `database.collection`. It need not exist.
    pub namespace: String,
    /// The stages of all views between the collection and the reader, in the order of execution.
    pub pipeline: Vec<DocBuf>,
    /// The collation of the view.
    pub collation: Option<Arc<Collation>>,
}

impl ViewDefinition {
    /// Returns the size in bytes of the view's own stages, without those of its source.
    pub(crate) fn pipeline_bytes(&self) -> usize {
        self.pipeline.iter().map(|stage| stage.as_bytes().len()).sum()
    }

    /// Returns the definition as `listCollections` shows it.
    pub fn options(&self) -> DocBuf {
        DocBuf::build(|writer| self.write_options(writer))
    }

    /// Returns the document of `system.views`.
    pub fn document(&self) -> DocBuf {
        DocBuf::build(|writer| {
            writer.append("_id", self.namespace.as_str());
            self.write_options(writer);
        })
    }

    fn write_options(&self, writer: &mut DocWriter<'_>) {
        writer.append("viewOn", &*self.on);
        {
            let mut stages = writer.array("pipeline");
            self.pipeline.iter().for_each(|stage| {
                stages.push(stage);
            });
        }
        if let Some(collation) = &self.collation {
            writer.append("collation", &collation.to_document());
        }
    }

    /// Decodes a document of `system.views`.
    ///
    /// # Errors
    /// 182 InvalidViewDefinition if it is malformed.
    pub fn from_document(doc: Doc<'_>) -> Result<Self> {
        let (Some(Value::String(name)), Some(Value::String(on)), Some(Value::Array(stages))) =
            (doc.get("_id"), doc.get("viewOn"), doc.get("pipeline"))
        else {
            return Err(invalid_definition());
        };
        let collation = match doc.get("collation") {
            None => None,
            Some(Value::Document(stored)) => {
                Collation::parse(stored).map_err(|_| invalid_definition())?
            }
            Some(_) => return Err(invalid_definition()),
        };
        Ok(ViewDefinition {
            namespace: Namespace::parse(name).map_err(|_| invalid_definition())?,
            on: on.into(),
            pipeline: documents(stages).ok_or_else(invalid_definition)?,
            collation,
        })
    }

    /// Returns the collections and views of the same database that the view reads: its source, then
    /// those that stages name.
    pub fn sources(&self) -> Vec<&str> {
        let mut found = vec![&*self.on];
        self.pipeline.iter().for_each(|stage| named_by_stage(stage.as_doc(), &mut found));
        found
    }
}

fn documents(stages: Array<'_>) -> Option<Vec<DocBuf>> {
    stages.iter().map(|stage| stage.as_document().map(Doc::to_owned)).collect()
}

/// Returns the error of every use of a database's views while one of its definitions cannot be
/// decoded.
pub(crate) fn invalid_definition() -> Error {
    let text = "Invalid view definition detected in the view catalog. Drop the collection system.views of the database to remove its views";
    Error::new(ErrorCode::InvalidViewDefinition, text)
}

/// Appends the collections of the same database that a stage reads besides its input.
fn named_by_stage<'s>(stage: Doc<'s>, found: &mut Vec<&'s str>) {
    let Some(only) = stage.first() else { return };
    let Some(row) = find_stage(only.key()) else { return };
    let fields = only.value().as_document().unwrap_or_default();
    let named = row.facts.names.of(only.value(), fields);
    found.extend(named.and_then(|name| name.as_str()));
    for pipeline in row.facts.pipelines.of(fields) {
        let stages = pipeline.iter().filter_map(|stage| stage.as_document());
        stages.for_each(|stage| named_by_stage(stage, found));
    }
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
        let stages = chain.iter().rev().flat_map(|view| view.pipeline.iter().cloned());
        Ok(Some(ResolvedView {
            view: first.namespace.clone(),
            namespace: format!("{db}.{}", last.on),
            pipeline: stages.collect(),
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
    /// 166 CommandNotSupportedOnView if the name is that of a view.
    pub fn writable(&self, namespace: &Namespace) -> Result<Option<Arc<Collection>>> {
        self.refuse_view(namespace)?;
        Ok(self.lookup(namespace).cloned())
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

/// Fails with 195 ViewPipelineMaxSizeExceeded if the stages of a view and of the views below it
/// have too many bytes.
pub(crate) fn check_bytes(bytes: usize) -> Result<()> {
    if bytes <= VIEW_PIPELINE_BYTES_MAX {
        return Ok(());
    }
    let text =
        format!("View pipeline exceeds maximum size; maximum size is {VIEW_PIPELINE_BYTES_MAX}");
    Err(Error::new(ErrorCode::ViewPipelineMaxSizeExceeded, text))
}

/// Returns the error for too many views on top of each other.
pub(crate) fn too_deep() -> Error {
    let text = format!("View depth limit exceeded; maximum depth is {VIEW_DEPTH_MAX}");
    Error::new(ErrorCode::ViewDepthLimitExceeded, text)
}
