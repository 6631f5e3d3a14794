//! The projection stages of a `find` or of a `$project` at the head of a pipeline.

use std::sync::Arc;
use std::vec;

use bumpalo::Bump;
use bytes::Bytes;
use quire_collections::RecordId;
use quire_document::{ArrayBuf, Doc, DocBuf, DocWriter};
use quire_error::Result;
use quire_mql::EvalContext;
use quire_mql::projection::Projection;
use quire_planner::Reshape;
use quire_planner::explain::NodeStats;

use crate::chunks::Chunks;
use crate::env::{Run, Scope};
use crate::operators::filtering::renew;
use crate::operators::metadata::metadata_of;
use crate::operators::{BATCH_BYTES, BoxedOperator, Operator, over};
use crate::row::Row;

/// The field that `showRecordId` adds.
const RECORD_ID: &str = "$recordId";

/// The operator that applies a projection to each row.
pub(crate) struct Project {
    input: BoxedOperator,
    /// Rows of the input that have not been projected, and true if the input has ended.
    waiting: vec::IntoIter<Row>,
    done: bool,
    projection: Arc<Projection>,
    show_record_id: bool,
    empty_sort_key: bool,
    reads_metadata: bool,
    arena: Bump,
    scratch: Vec<u8>,
    stats: NodeStats,
}

impl Project {
    /// Returns the operator of `spec`; `projection` is its compiled projection.
    pub fn new(input: BoxedOperator, projection: Arc<Projection>, spec: &Reshape) -> Self {
        let reads_metadata = !projection.metadata().is_empty();
        Project {
            input,
            waiting: Vec::new().into_iter(),
            done: false,
            projection,
            show_record_id: spec.show_record_id,
            empty_sort_key: spec.empty_sort_key,
            reads_metadata,
            arena: Bump::new(),
            scratch: Vec::new(),
            stats: NodeStats::default(),
        }
    }

    fn project(&mut self, row: &mut Row, scope: Scope<'_>) -> Result<()> {
        renew(&mut self.arena, scope.env)?;
        let source = row.doc_or_key()?;
        let doc = Doc::from_valid_bytes(&source);
        let mut metadata = self.reads_metadata.then(|| metadata_of(row)).transpose()?;
        if let Some(metadata) = &mut metadata
            && self.empty_sort_key
            && !metadata.as_doc().contains("sortKey")
        {
            // In a find without a sort the sort key is empty.
            metadata.extend(|writer| {
                writer.append("sortKey", &ArrayBuf::new());
            });
        }
        let context = EvalContext::new(&self.arena, doc, &scope.env.shared)
            .with_variables(scope.variables)
            .with_metadata(metadata.as_ref().map(DocBuf::as_doc));
        let record = self.show_record_id.then_some(row.record);
        shape(&self.projection, record, &context, &mut self.scratch)?;
        row.doc = Some(Bytes::copy_from_slice(&self.scratch));
        Ok(())
    }
}

/// Writes the projection of the document of `context` into `bytes`, with the record id if `spec`
/// shows it.
fn shape(
    projection: &Projection,
    record: Option<RecordId>,
    context: &EvalContext<'_>,
    bytes: &mut Vec<u8>,
) -> Result<()> {
    bytes.clear();
    let mut write = || {
        let mut writer = DocWriter::new(bytes);
        projection.apply(context.root, &mut writer, context)?;
        if let Some(record) = record {
            writer.append(RECORD_ID, i64::try_from(record.0).unwrap_or(i64::MAX));
        }
        writer.finish();
        Ok(())
    };
    match projection.computes() {
        true => context.limited(write)?,
        false => write()?,
    }
    projection.check(Doc::from_valid_bytes(bytes), context)
}

/// A projection that reads documents and no metadata, with the memory for its evaluation. A scan
/// runs it in the threads that read.
pub(crate) struct Shaper {
    projection: Arc<Projection>,
    arena: Bump,
    scratch: Vec<u8>,
    chunks: Chunks,
}

impl Shaper {
    /// Returns `None` for a projection that needs metadata of a row.
    pub fn new(spec: &Reshape) -> Option<Self> {
        let projection = spec.projection.as_ref()?;
        let plain = !spec.show_record_id && projection.metadata().is_empty();
        plain.then(|| Shaper::sharing(Arc::clone(projection)))
    }

    /// Returns a shaper that shares a projection with other threads.
    pub fn sharing(projection: Arc<Projection>) -> Self {
        let (scratch, chunks) = (Vec::new(), Chunks::default());
        Shaper { projection, arena: Bump::new(), scratch, chunks }
    }

    /// Returns the projection that it runs.
    pub fn projection(&self) -> &Arc<Projection> {
        &self.projection
    }

    /// Returns the projection of a document, in memory that is shared with other results.
    pub fn shape(&mut self, doc: Doc<'_>, scope: Scope<'_>) -> Result<Bytes> {
        renew(&mut self.arena, scope.env)?;
        let context = EvalContext::new(&self.arena, doc, &scope.env.shared);
        let context = context.with_variables(scope.variables);
        shape(&self.projection, None, &context, &mut self.scratch)?;
        Ok(self.chunks.copy(&self.scratch))
    }
}

impl Operator for Project {
    fn next(&mut self, run: &mut Run<'_>, max: usize, out: &mut Vec<Row>) -> Result<bool> {
        if self.waiting.len() == 0 && !self.done {
            let mut rows = Vec::new();
            self.done = !self.input.next(run, max, &mut rows)?;
            self.waiting = rows.into_iter();
        }
        let (limit, mut bytes) = (out.len() + max, 0);
        while out.len() < limit
            && bytes < BATCH_BYTES
            && let Some(mut row) = self.waiting.next()
        {
            self.project(&mut row, run.scope())?;
            self.stats.returned += 1;
            bytes += row.size();
            out.push(row);
        }
        self.stats.is_eof = self.done && self.waiting.len() == 0;
        Ok(!self.stats.is_eof)
    }

    fn rest(&mut self) {
        self.waiting.as_mut_slice().iter_mut().for_each(Row::detach);
        self.input.rest();
    }

    fn stats(&self) -> NodeStats {
        over(&self.input, &self.stats)
    }
}
