//! The projection stages of a `find` or of a `$project` at the head of a pipeline.

use std::vec;

use bumpalo::Bump;
use bytes::Bytes;
use quire_document::{ArrayBuf, Doc, DocBuf, DocWriter};
use quire_error::Result;
use quire_mql::EvalContext;
use quire_mql::projection::Projection;
use quire_planner::explain::NodeStats;

use crate::env::{Env, Run};
use crate::operators::filtering::renew;
use crate::operators::metadata::metadata_of;
use crate::operators::{BATCH_BYTES, BoxedOperator, Operator, over};
use crate::row::Row;

/// The field that `showRecordId` adds.
const RECORD_ID: &str = "$recordId";

/// Reshapes documents.
pub(crate) struct Project {
    input: BoxedOperator,
    /// What came from the input and has not been reshaped, and whether that was all.
    waiting: vec::IntoIter<Row>,
    done: bool,
    projection: Projection,
    show_record_id: bool,
    reads_metadata: bool,
    arena: Bump,
    stats: NodeStats,
}

/// Compiles a projection as the planner writes it into a plan.
pub(crate) fn compile(spec: Doc<'_>, env: &Env) -> Result<Projection> {
    let own = DocBuf::build(|writer| {
        spec.iter().filter(|element| element.key() != RECORD_ID).for_each(|element| {
            writer.append_element(element);
        });
    });
    if env.project_stage {
        return Projection::parse_project(own.as_doc().into(), &env.parse);
    }
    Projection::parse_find(own.as_doc(), Some(env.filter.as_doc()), &env.parse)
}

impl Project {
    /// `spec` is what `projection` was compiled from.
    pub fn new(input: BoxedOperator, projection: Projection, spec: Doc<'_>) -> Self {
        let reads_metadata = !projection.needs().metadata.is_empty();
        Project {
            input,
            waiting: Vec::new().into_iter(),
            done: false,
            projection,
            show_record_id: spec.contains(RECORD_ID),
            reads_metadata,
            arena: Bump::new(),
            stats: NodeStats::default(),
        }
    }

    fn project(&mut self, row: &mut Row, env: &Env) -> Result<()> {
        renew(&mut self.arena, env)?;
        let source = row.doc_or_key()?;
        let doc = Doc::from_valid_bytes(&source);
        let mut metadata = self.reads_metadata.then(|| metadata_of(row)).transpose()?;
        if let Some(metadata) = &mut metadata
            && !env.project_stage
            && !metadata.as_doc().contains("sortKey")
        {
            // A find that does not sort has an empty key.
            metadata.extend(|writer| {
                writer.append("sortKey", &ArrayBuf::new());
            });
        }
        let variables = env.variable_values();
        let context = EvalContext::new(&self.arena, doc, &env.shared)
            .with_variables(&variables)
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
            self.project(&mut row, run.env)?;
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
