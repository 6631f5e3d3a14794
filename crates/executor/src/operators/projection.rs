//! The projection stages of a `find` or of a `$project` at the head of a pipeline.

use std::sync::Arc;
use std::vec;

use bumpalo::Bump;
use bytes::Bytes;
use quire_document::{ArrayBuf, Doc, DocBuf, DocWriter};
use quire_error::Result;
use quire_mql::EvalContext;
use quire_mql::projection::Projection;
use quire_planner::Reshape;
use quire_planner::explain::NodeStats;

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
    /// What came from the input and has not been reshaped, and whether that was all.
    waiting: vec::IntoIter<Row>,
    done: bool,
    projection: Arc<Projection>,
    show_record_id: bool,
    empty_sort_key: bool,
    reads_metadata: bool,
    arena: Bump,
    stats: NodeStats,
}

impl Project {
    /// `projection` is what is run of `spec`.
    pub fn new(input: BoxedOperator, projection: Arc<Projection>, spec: &Reshape) -> Self {
        let reads_metadata = !projection.needs().metadata.is_empty();
        Project {
            input,
            waiting: Vec::new().into_iter(),
            done: false,
            projection,
            show_record_id: spec.show_record_id,
            empty_sort_key: spec.empty_sort_key,
            reads_metadata,
            arena: Bump::new(),
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
            // A find that does not sort has an empty key.
            metadata.extend(|writer| {
                writer.append("sortKey", &ArrayBuf::new());
            });
        }
        let context = EvalContext::new(&self.arena, doc, &scope.env.shared)
            .with_variables(scope.variables)
            .with_metadata(metadata.as_ref().map(DocBuf::as_doc));
        let mut bytes = Vec::with_capacity(doc.len().min(1024));
        let mut writer = DocWriter::new(&mut bytes);
        self.projection.apply(doc, &mut writer, &context)?;
        if self.show_record_id {
            writer.append(RECORD_ID, i64::try_from(row.record.0).unwrap_or(i64::MAX));
        }
        writer.finish();
        self.projection.check(Doc::from_valid_bytes(&bytes), &context)?;
        row.doc = Some(Bytes::from(bytes));
        Ok(())
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
