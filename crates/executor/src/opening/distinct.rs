//! Runs a `distinct`.

use std::ops::ControlFlow;
use std::sync::Arc;

use quire_catalog::key::Part;
use quire_document::path::{Leaf, Path};
use quire_document::{Array, ArrayBuf, Doc, Value, compare};
use quire_error::{Error, Result};
use quire_mql::Collation;
use quire_planner::ReadRequest;

use crate::distinct_values::DistinctValues;
use crate::env::Scope;
use crate::examined::Examined;
use crate::opening::open::open;
use crate::params::ExecParams;
use crate::row::Row;
use crate::taking::{Documents, Given, Scratch, Taken, Taker};
use crate::views::Views;

/// The largest reply in bytes. MongoDB: 16 MiB (17217).
const REPLY_BYTES_MAX: usize = 16 * 1024 * 1024;

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
    let mut execution = open(request, views, params)?;
    let taker = DistinctTaker::new(key, execution.plan.collation.clone());
    let mut values = DistinctValues::default();
    execution.all(views, &interrupt, &taker, &mut |given| {
        taker.add_given(given, &mut values)?;
        if values.bytes() > REPLY_BYTES_MAX {
            return Err(Error::location(17217, "distinct too big, 16mb cap"));
        }
        Ok(())
    })?;
    Ok((values.sorted(), execution.examined()))
}

/// Finds the values at a path; the elements of an array replace it.
struct DistinctTaker {
    path: Path,
    name: String,
    collation: Option<Arc<Collation>>,
}

impl DistinctTaker {
    fn new(path: &str, collation: Option<Arc<Collation>>) -> Self {
        Self { path: Path::new(path), name: path.to_owned(), collation }
    }

    /// Adds the values of rows, or those that a thread has found.
    fn add_given(&self, given: Given, values: &mut DistinctValues) -> Result<()> {
        match given {
            Given::Rows(rows) => rows.iter().try_for_each(|row| self.add_row(row, values)),
            Given::Taken(Taken::Values(later)) => {
                values.append(later);
                Ok(())
            }
            Given::Taken(_) => Err(Taken::mistaken("distinct")),
        }
    }

    /// Adds the value of a row: from the document, or from an index key that has the value.
    fn add_row(&self, row: &Row, values: &mut DistinctValues) -> Result<()> {
        if let Some(doc) = &row.doc {
            self.add(Doc::from_valid_bytes(doc), values);
            return Ok(());
        }
        let Some((keys, key)) = row.key_values()? else { return Ok(()) };
        let mut fields = keys.fields().iter().zip(&key);
        match fields.find(|(field, _)| field.part == Part::Value && field.path == self.name) {
            Some((_, Some(value))) if !matches!(value.as_value(), Value::Array(_)) => {
                values.add(value.as_value(), self.collation.as_deref());
            }
            Some((_, None)) => {}
            _ => self.add(Doc::from_valid_bytes(&row.doc_or_key()?), values),
        }
        Ok(())
    }

    fn add(&self, doc: Doc<'_>, values: &mut DistinctValues) {
        let collation = self.collation.as_deref();
        let _ = self.path.visit::<()>(doc, Leaf::Whole, |found| {
            match found.value {
                Some(Value::Array(array)) if collation.is_some() => {
                    smallest_first(array).into_iter().for_each(|it| values.add(it, collation));
                }
                Some(Value::Array(array)) => array.iter().for_each(|it| values.add(it, collation)),
                Some(other) => values.add(other, collation),
                None => {}
            }
            ControlFlow::Continue(())
        });
    }
}

/// Returns the elements of an array in the order of their bytes. Of elements that are equal under a
/// collation the first one is kept, as in mongod.
fn smallest_first(array: Array<'_>) -> Vec<Value<'_>> {
    let mut elements: Vec<Value<'_>> = array.iter().collect();
    elements.sort_by(|a, b| compare(*a, *b, None));
    elements
}

impl Taker for DistinctTaker {
    fn take(&self, docs: &Documents<'_>, _: &mut Scratch, _: Scope<'_>) -> Option<Taken> {
        let mut values = DistinctValues::default();
        docs.docs.iter().for_each(|doc| self.add(*doc, &mut values));
        values.settle();
        Some(Taken::Values(values))
    }
}
