//! Runs a `distinct`.

use std::ops::ControlFlow;
use std::sync::Arc;

use quire_catalog::key::Part;
use quire_document::path::{Leaf, Path};
use quire_document::{Array, ArrayBuf, Doc, Value, compare};
use quire_error::Result;
use quire_mql::Collation;
use quire_mql::context::sort_by;
use quire_planner::ReadRequest;
use quire_storage::Interrupt;

use crate::distinct_values::DistinctValues;
use crate::env::{Env, Scope};
use crate::examined::Examined;
use crate::execution::Execution;
use crate::opening::open::open;
use crate::params::ExecParams;
use crate::recent_values::RecentValues;
use crate::row::Row;
use crate::taking::{Documents, Given, Scratch, Taken, Taker};
use crate::views::Views;

/// Returns the distinct values at the path `key`, with the elements of arrays, in MongoDB's order
/// of values. The request is a `distinct`, or the pipeline of a `distinct` on a view.
///
/// # Errors
/// The errors of `mql` about the filter and of the planner about the hint; 17217 if the values do
/// not fit into a reply.
pub fn distinct<'r>(
    key: &str,
    request: impl Into<ReadRequest<'r>>,
    views: &mut dyn Views,
    params: ExecParams,
) -> Result<(ArrayBuf, Examined)> {
    let interrupt = Arc::clone(&params.interrupt);
    distinct_of(key, open(request, views, params)?, views, &interrupt)
}

/// As [`distinct`], of the documents of an execution.
///
/// # Errors
/// Those of the execution; 17217 if the values do not fit into a reply.
pub fn distinct_of(
    key: &str,
    mut execution: Execution,
    views: &mut dyn Views,
    interrupt: &Arc<Interrupt>,
) -> Result<(ArrayBuf, Examined)> {
    let taker = DistinctTaker {
        path: Path::new(key),
        name: key.to_owned(),
        collation: execution.plan.collation.clone(),
        env: Arc::clone(&execution.env),
    };
    let (mut values, mut recent) = (DistinctValues::default(), RecentValues::default());
    let give = &mut |given| taker.add_given(given, &mut values, &mut recent);
    execution.all(views, interrupt, &taker, give)?;
    Ok((values.sorted(), execution.examined()))
}

/// Finds the values at a path; the elements of an array replace it.
struct DistinctTaker {
    path: Path,
    name: String,
    collation: Option<Arc<Collation>>,
    env: Arc<Env>,
}

impl DistinctTaker {
    /// Adds the values of rows, or those that a thread has found.
    fn add_given(
        &self,
        given: Given,
        values: &mut DistinctValues,
        recent: &mut RecentValues,
    ) -> Result<()> {
        match given {
            Given::Rows(rows) => rows.iter().try_for_each(|row| self.add_row(row, values, recent)),
            Given::Taken(Taken::Values(later)) => values.append(later),
            Given::Taken(_) => Err(Taken::mistaken("distinct")),
        }
    }

    /// Adds the value of a row: from the document, or from an index key that has the value.
    fn add_row(
        &self,
        row: &Row,
        values: &mut DistinctValues,
        recent: &mut RecentValues,
    ) -> Result<()> {
        if let Some(doc) = &row.doc {
            return self.add(Doc::from_valid_bytes(doc), values, recent);
        }
        let Some((keys, key)) = row.key_values()? else { return Ok(()) };
        let mut fields = keys.fields().iter().zip(&key);
        match fields.find(|(field, _)| field.part == Part::Value && field.path == self.name) {
            Some((_, Some(value))) if !matches!(value.as_value(), Value::Array(_)) => {
                values.add(value.as_value(), self.collation.as_deref(), recent, &self.env)
            }
            Some((_, None)) => Ok(()),
            _ => self.add(Doc::from_valid_bytes(&row.doc_or_key()?), values, recent),
        }
    }

    fn add(
        &self,
        doc: Doc<'_>,
        values: &mut DistinctValues,
        recent: &mut RecentValues,
    ) -> Result<()> {
        let collation = self.collation.as_deref();
        let mut add = |value| values.add(value, collation, recent, &self.env);
        let added = self.path.visit(doc, Leaf::Whole, |found| {
            let added = match found.value {
                Some(Value::Array(array)) if collation.is_some() => self
                    .smallest_first(array)
                    .and_then(|all| all.into_iter().try_for_each(&mut add)),
                Some(Value::Array(array)) => array.iter().try_for_each(&mut add),
                Some(other) => add(other),
                None => Ok(()),
            };
            added.map_or_else(ControlFlow::Break, ControlFlow::Continue)
        });
        added.break_value().map_or(Ok(()), Err)
    }

    /// Returns the elements of an array in the order of their bytes. Of elements that are equal
    /// under a collation the first one is kept, as in mongod.
    fn smallest_first<'v>(&self, array: Array<'v>) -> Result<Vec<Value<'v>>> {
        let mut elements: Vec<Value<'v>> = array.iter().collect();
        sort_by(&mut elements, &self.env.shared, |a, b| compare(*a, *b, None))?;
        Ok(elements)
    }
}

impl Taker for DistinctTaker {
    /// The pieces of a thread are appended in the order in which it reads them. So a value that the
    /// thread found in an earlier piece need not be in a later one.
    fn take(&self, docs: &Documents<'_>, scratch: &mut Scratch, _: Scope<'_>) -> Option<Taken> {
        let (mut values, recent) = (DistinctValues::default(), &mut scratch.recent);
        let added = docs.docs.iter().try_for_each(|doc| self.add(*doc, &mut values, recent));
        if added.is_err() {
            // The stage gets the rows instead; then it has not got these values from this thread.
            *recent = RecentValues::default();
            return None;
        }
        Some(Taken::Values(values))
    }
}
