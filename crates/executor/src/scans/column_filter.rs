//! Tests the conditions on measurements with the columns of a bucket, so that only the points that pass are built.

use std::ops::Range;

use bumpalo::Bump;
use quire_collections::PackedBucket;
use quire_document::{Doc, Value};
use quire_error::Result;
use quire_mql::EvalContext;
use quire_mql::column::Column;
use quire_mql::filter::Node as Condition;

use crate::env::Scope;
use crate::operators::filtering::renew;

/// A condition on top-level fields of points.
pub(crate) struct ColumnFilter {
    condition: Condition,
    fields: Vec<String>,
    arena: Bump,
}

impl ColumnFilter {
    /// Returns the filter of a condition; `None` if the condition needs more than the values of top-level fields.
    pub fn new(condition: &Condition) -> Option<Self> {
        let condition = condition.without_implied();
        if !condition.reads_only_paths() {
            return None;
        }
        let mut fields: Vec<String> = Vec::new();
        condition.visit_paths(&mut |node| fields.push(node.path.as_str().to_owned()));
        fields.sort_unstable();
        fields.dedup();
        let are_whole = fields.iter().all(|field| !field.contains('.'));
        are_whole.then(|| ColumnFilter { condition, fields, arena: Bump::new() })
    }

    /// Returns the positions of the points in `at` that pass; `None` if the bucket has no columns of the fields.
    ///
    /// # Errors
    /// 301 DataCorruptionDetected if the bucket is damaged; the interrupt's error and those of the condition.
    pub fn passing(
        &mut self,
        bucket: &PackedBucket,
        at: Range<usize>,
        scope: Scope<'_>,
    ) -> Result<Option<Vec<usize>>> {
        let Some(columns) = bucket.field_columns(&self.fields)? else { return Ok(None) };
        let columns: Vec<Column<'_>> =
            columns.iter().map(|column| column.rows(at.clone())).collect();
        let mut passing = Vec::new();
        for row in 0..at.len() {
            renew(&mut self.arena, scope.env)?;
            let context = EvalContext::new(&self.arena, Doc::empty(), &scope.env.shared);
            let value = |path: &str| -> Option<Value<'_>> {
                let field = self.fields.iter().position(|field| field == path)?;
                columns.get(field)?.get(row)
            };
            if self.condition.matches_key(&value, &context.with_variables(scope.variables))? {
                passing.push(at.start + row);
            }
        }
        Ok(Some(passing))
    }
}
