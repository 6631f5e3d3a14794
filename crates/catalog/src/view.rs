//! Views: pipelines that clients read as collections. A view definition is a document of the
//! collection `system.views` of its database. The catalog has all definitions, so that a reader
//! finds the collection below a view without I/O.

use std::sync::Arc;

use quire_document::limits::{VIEW_DEPTH_MAX, VIEW_PIPELINE_BYTES_MAX};
use quire_document::{Array, Doc, DocBuf, DocWriter, Value};
use quire_error::{Error, ErrorCode, Result};
use quire_mql::Collation;
use quire_mql::stage::find_stage;

use crate::Namespace;

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
