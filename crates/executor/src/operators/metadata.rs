//! What `$meta` reads: which stages want it, and what a row has of it.

use bumpalo::Bump;
use quire_document::{ArrayBuf, DocBuf, ValueBuf};
use quire_error::Result;
use quire_mql::EvalContext;
use quire_mql::sort::SortPattern;
use quire_mql::stage::Stage;
use quire_planner::explain::NodeStats;

use crate::env::{Env, Run};
use crate::operators::filtering::reset;
use crate::operators::{BoxedOperator, Operator};
use crate::row::Row;

/// What stages want of rows besides their documents.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// Any metadata.
    pub any: bool,
    /// `$meta: "indexKey"`.
    pub index_key: bool,
    /// `$meta: "sortKey"`.
    pub sort_key: bool,
}

impl Wanted {
    /// What each of the stages and those after it want; a `$group` lets nothing through.
    pub fn from_each(stages: &[Stage]) -> Vec<Wanted> {
        let mut behind = Wanted::default();
        let mut wanted: Vec<Wanted> = stages
            .iter()
            .rev()
            .map(|stage| {
                let kinds = stage.needs().reads.metadata;
                let own = Wanted {
                    any: !kinds.is_empty(),
                    index_key: kinds.contains("indexKey"),
                    sort_key: kinds.contains("sortKey"),
                };
                behind = if matches!(stage, Stage::Group(_)) { own } else { own.or(behind) };
                behind
            })
            .collect();
        wanted.reverse();
        wanted
    }

    fn or(self, other: Wanted) -> Wanted {
        Wanted {
            any: self.any || other.any,
            index_key: self.index_key || other.index_key,
            sort_key: self.sort_key || other.sort_key,
        }
    }
}

/// What `$meta` can read of a row.
pub(crate) fn metadata_of(row: &Row) -> Result<DocBuf> {
    let key = row.key_values()?;
    let sort_key = row.extra.as_ref().and_then(|extra| extra.sort_key.as_ref());
    Ok(DocBuf::build(|writer| {
        if row.record.0 > 0 {
            writer.append("recordId", i64::try_from(row.record.0).unwrap_or(i64::MAX));
        }
        writer.append_some("sortKey", sort_key.map(ValueBuf::as_value));
        if let Some((keys, values)) = key {
            let mut inner = writer.document("indexKey");
            for (field, value) in keys.fields().iter().zip(&values) {
                inner.append_some(&field.path, value.as_ref().map(ValueBuf::as_value));
            }
        }
    }))
}

/// Notes on a row what it is sorted by.
pub(crate) fn add_sort_key(
    row: &mut Row,
    pattern: &SortPattern,
    arena: &mut Bump,
    env: &Env,
) -> Result<()> {
    reset(arena);
    let bytes = row.doc_or_key()?;
    let doc = quire_document::Doc::from_valid_bytes(&bytes);
    let values = pattern.key(doc, &EvalContext::new(arena, doc, &env.shared))?;
    let array: ArrayBuf = values.into_iter().collect();
    row.extra.get_or_insert_default().sort_key = Some(ValueBuf::from(array));
    Ok(())
}

/// Notes what its rows are sorted by where no sort has done it, because an index gives the order.
pub(crate) struct SortKeys {
    input: BoxedOperator,
    pattern: SortPattern,
    arena: Bump,
}

impl SortKeys {
    pub fn new(input: BoxedOperator, pattern: SortPattern) -> Self {
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
