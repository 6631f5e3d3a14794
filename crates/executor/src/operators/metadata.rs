//! The metadata of a row, which `$meta` reads.

use std::sync::Arc;

use bumpalo::Bump;
use quire_collections::RecordId;
use quire_document::{ArrayBuf, DocBuf, ValueBuf};
use quire_error::Result;
use quire_mql::EvalContext;
use quire_mql::sort::SortPattern;
use quire_planner::explain::NodeStats;

use crate::env::{Env, Run};
use crate::operators::filtering::reset;
use crate::operators::{BoxedOperator, Operator, over, pass_on};
use crate::row::Row;

/// Returns the metadata of a row.
pub(crate) fn metadata_of(row: &Row) -> Result<DocBuf> {
    let key = row.key_values()?;
    Ok(DocBuf::build(|writer| {
        if row.record.0 > 0 {
            writer.append("recordId", i64::try_from(row.record.0).unwrap_or(i64::MAX));
        }
        if let Some(extra) = &row.extra {
            extra.write(writer);
        }
        if let Some((keys, values)) = key {
            let mut inner = writer.document("indexKey");
            for (field, value) in keys.fields().iter().zip(&values) {
                inner.append_some(&field.path, value.as_ref().map(ValueBuf::as_value));
            }
        }
    }))
}

/// Sets the sort key of a row.
pub(crate) fn add_sort_key(
    row: &mut Row,
    pattern: &SortPattern,
    arena: &mut Bump,
    env: &Env,
) -> Result<()> {
    reset(arena);
    let bytes = row.doc_or_key()?;
    let doc = quire_document::Doc::from_valid_bytes(&bytes);
    let metadata = pattern.reads_metadata().then(|| metadata_of(row)).transpose()?;
    let context = EvalContext::new(arena, doc, &env.shared);
    let context = context.with_metadata(metadata.as_ref().map(DocBuf::as_doc));
    let values = pattern.key(doc, &context)?;
    let array: ArrayBuf = values.into_iter().collect();
    row.extra.get_or_insert_default().sort_key = Some(ValueBuf::from(array));
    Ok(())
}

/// The end of a view's stages: passes rows on without metadata.
pub(crate) struct HiddenMetadata {
    input: BoxedOperator,
    stats: NodeStats,
}

impl HiddenMetadata {
    pub fn new(input: BoxedOperator) -> Self {
        HiddenMetadata { input, stats: NodeStats::default() }
    }
}

impl Operator for HiddenMetadata {
    fn next(&mut self, run: &mut Run<'_>, max: usize, out: &mut Vec<Row>) -> Result<bool> {
        let start = out.len();
        let more = pass_on(&mut self.input, &mut self.stats, run, max, out)?;
        for row in out.iter_mut().skip(start) {
            row.know_doc()?;
            *row = Row { record: RecordId(0), doc: row.doc.take(), extra: None };
        }
        Ok(more)
    }

    fn rest(&mut self) {
        self.input.rest();
    }

    fn stats(&self) -> NodeStats {
        over(&self.input, &self.stats)
    }
}

/// Sets the sort keys of rows if no sort has done so, because an index provides the order.
pub(crate) struct SortKeys {
    input: BoxedOperator,
    pattern: Arc<SortPattern>,
    arena: Bump,
}

impl SortKeys {
    pub fn new(input: BoxedOperator, pattern: Arc<SortPattern>) -> Self {
        SortKeys { input, pattern, arena: Bump::new() }
    }
}

impl Operator for SortKeys {
    fn next(&mut self, run: &mut Run<'_>, max: usize, out: &mut Vec<Row>) -> Result<bool> {
        let start = out.len();
        let more = self.input.next(run, max, out)?;
        for row in out.iter_mut().skip(start) {
            add_sort_key(row, &self.pattern, &mut self.arena, run.env)?;
        }
        Ok(more)
    }

    fn rest(&mut self) {
        self.input.rest();
    }

    fn stats(&self) -> NodeStats {
        self.input.stats()
    }
}
