//! Inserts buckets of MongoDB into `system.buckets.X`, as `mongorestore` does: the points of each become points of the
//! time-series collection `X`, in one commit for each bucket.

use std::sync::Arc;

use quire_catalog::buckets::{series_of_buckets, validation_of_buckets};
use quire_catalog::{Collection, Namespace, Validation};
use quire_collections::{
    Effect, Failure, Keep, MongoBucket, Writer, duplicate_bucket_error, from_interruption,
    is_in_doubt,
};
use quire_document::{Doc, Value};
use quire_error::{Error, ErrorClass, ErrorCode, Result};
use quire_storage::{Committed, Interrupt};

use crate::UnitOfWork;
use crate::modify::insert_outcome::InsertOutcome;

/// Inserts the points of buckets. `buckets` names `system.buckets.X`. An ordered insert ends with the first error.
///
/// # Errors
/// Those of the statement (interrupted, out of space). The errors of single buckets are in the result, also 20 IllegalOperation
/// if `X` is no time-series collection.
pub(super) fn insert_buckets(
    unit: &mut dyn UnitOfWork,
    buckets: &Namespace,
    documents: &[Doc<'_>],
    ordered: bool,
    interrupt: &Arc<Interrupt>,
) -> Result<InsertOutcome> {
    let mut outcome = InsertOutcome::default();
    let Some((series, validation)) = target(unit, buckets)? else {
        let failed = if ordered { 0..1 } else { 0..documents.len() };
        outcome.errors = failed.map(|at| (at, no_series(buckets))).collect();
        return Ok(outcome);
    };
    let statements = unit.statements().to_vec();
    for (at, bucket) in documents.iter().enumerate() {
        // To unpack a bucket takes time, also one that is refused then.
        interrupt.check().map_err(from_interruption)?;
        let statement = statements.get(at).copied();
        match insert_bucket(unit, (&series, &validation), (*bucket, statement), interrupt) {
            Ok(committed) => {
                outcome.inserted += 1;
                outcome.committed = committed.or(outcome.committed);
            }
            Err(error) if ends_command(&error) => return Err(error),
            Err(error) => {
                outcome.errors.push((at, error));
                if ordered {
                    break;
                }
            }
        }
    }
    Ok(outcome)
}

/// Returns true for an error that is not about the bucket.
fn ends_command(error: &Error) -> bool {
    error.code().is_a(ErrorClass::Interruption)
        || error.code() == ErrorCode::WriteConflict
        || is_in_doubt(error)
}

/// Returns the time-series collection, whose buckets have a number from now on, and what validates them; `None` if there is none.
fn target(
    unit: &dyn UnitOfWork,
    buckets: &Namespace,
) -> Result<Option<(Arc<Collection>, Validation)>> {
    let Some(name) = series_of_buckets(buckets) else { return Ok(None) };
    let found = unit.collection(&name)?.filter(|found| found.is_time_series());
    let Some(series) = found else { return Ok(None) };
    unit.store().number_buckets(&series)?;
    let validation = validation_of_buckets(&series)?;
    Ok(Some((series, validation)))
}

fn no_series(buckets: &Namespace) -> Error {
    let text = format!("{buckets} can only be created with a time-series collection");
    Error::new(ErrorCode::IllegalOperation, text)
}

fn insert_bucket(
    unit: &mut dyn UnitOfWork,
    (series, validation): (&Arc<Collection>, &Validation),
    (bucket, statement): (Doc<'_>, Option<i32>),
    interrupt: &Arc<Interrupt>,
) -> Result<Option<Committed>> {
    let bucket = MongoBucket::unpack(unit.store(), series, validation, bucket)?;
    let ((), committed) = unit.write_with(interrupt, |writer: &mut Writer| {
        let collection = writer.collection(&series.namespace);
        let Some(collection) = collection.filter(|found| found.id == series.id) else {
            let text = format!("{} was dropped", series.namespace);
            return Err(Error::new(ErrorCode::NamespaceNotFound, text).into());
        };
        if !writer.restore_bucket(&collection, &bucket)? {
            return Err(Failure::from(duplicate_bucket_error(&collection, bucket.id)));
        }
        if let Some(statement) = statement {
            let id = Value::ObjectId(bucket.id);
            writer.remember(statement, Effect::Insert, Keep::Id(id));
        }
        Ok(())
    })?;
    Ok(committed)
}
