//! A bucket of MongoDB that is about to be restored: validated, with its points unpacked.

use std::sync::Arc;

use quire_catalog::{Collection, Validation, validation_error};
use quire_columns::{Unpacked, unpack};
use quire_document::memory::{self, Charge};
use quire_document::{Doc, ObjectId, Value};
use quire_error::{Error, ErrorCode, Result};
use quire_mql::context::current_interrupt;

use crate::Store;

/// A bucket of MongoDB.
#[derive(Debug)]
pub struct MongoBucket<'b> {
    /// The `_id` of the bucket, which names it among the restored ones.
    pub id: ObjectId,
    /// The meta value of its points; `None` if they have none.
    pub meta: Option<Value<'b>>,
    /// Its points, whole.
    pub points: Unpacked,
    /// The share of the memory of all requests that the points hold.
    _memory: Charge,
}

impl<'b> MongoBucket<'b> {
    /// Checks a bucket of a time-series collection with the validator of its buckets, and unpacks it.
    ///
    /// # Errors
    /// 121 DocumentValidationFailure for a document that is no bucket; those of [`unpack`]; 146 ExceededMemoryLimit if the memory of
    /// all requests has less left than the points take.
    pub fn unpack(
        store: &Arc<Store>,
        series: &Collection,
        validation: &Validation,
        bucket: Doc<'b>,
    ) -> Result<Self> {
        if let Some(validator) = validation.validator() {
            let now = store.write_time_now();
            let interrupt = current_interrupt();
            if !validator.accepts(bucket, now, interrupt.as_ref())? {
                let details = validator.explain(bucket, now, interrupt.as_ref())?;
                return Err(validation_error(&details));
            }
        }
        let Some(Value::ObjectId(id)) = bucket.get("_id") else {
            return Err(Error::bad_value("the _id of a bucket is an ObjectId"));
        };
        let options = series.options.time_series();
        let time_field = options.map_or("", |options| &options.time_field);
        let meta_field = options.and_then(|options| options.meta_field.as_deref());
        let points = unpack(bucket, time_field, meta_field)?;
        let refused = |_| Error::new(ErrorCode::ExceededMemoryLimit, memory::exhausted());
        let memory = Charge::take(points.size()).map_err(refused)?;
        Ok(MongoBucket { id, meta: bucket.get("meta"), points, _memory: memory })
    }
}
