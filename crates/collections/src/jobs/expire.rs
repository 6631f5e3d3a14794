//! Expiry: TTL indexes, and clustered collections that expire. A job deletes the documents of one
//! index that have expired by the time at which the job was made.

use std::sync::Arc;

use quire_catalog::key::Arena;
use quire_catalog::{Catalog, Collection, CollectionId, Index, IndexId, IndexState, Namespace};
use quire_document::{Binary, Doc, Value, doc};
use quire_error::{Error, ErrorCode, Result};
use quire_storage::{Direction, Interrupt};

use super::step::{Progress, Rest, run_to_end};
use crate::closing::{expire_buckets, has_expired_bucket};
use crate::failure::{Attempt, Failure, from_interruption};
use crate::job::{Job, JobId};
use crate::{IndexCursor, IndexRange, Store, Writer};

/// The kind of these jobs.
const KIND: &str = "ttl";
/// The most buckets that a commit drops.
const BUCKETS_MAX: usize = 100;
/// A commit ends before the limit of its documents if its writes have this many bytes.
const CHUNK_BYTES: usize = 2 << 20;

/// An index whose documents expire.
pub struct Expiring {
    /// The collection of the index.
    pub collection: Arc<Collection>,
    /// The index; that on `_id` if the collection itself expires.
    pub index: Arc<Index>,
    seconds: i64,
}

/// The result of one pass over all expiring indexes.
#[derive(Debug, Default)]
pub struct Expired {
    /// The number of deleted documents.
    pub deleted: u64,
    /// The indexes whose pass ended with an error; documents deleted before the error stay deleted.
    pub failures: Vec<ExpireFailure>,
}

/// An expiring index whose documents could not all be deleted.
#[derive(Debug)]
pub struct ExpireFailure {
    /// The collection of the index.
    pub namespace: Namespace,
    /// The name of the index.
    pub index: String,
    /// The error that ended its pass.
    pub error: Error,
}

impl Expiring {
    /// Returns every expiring index of a catalog that is ready.
    pub fn all(catalog: &Catalog) -> Vec<Self> {
        let indexes = |collection: &Arc<Collection>| {
            let of_index = |index: &Arc<Index>| Expiring::of(collection, index);
            collection.indexes.iter().filter_map(of_index).collect::<Vec<_>>()
        };
        catalog.collections().flat_map(indexes).collect()
    }

    fn of(collection: &Arc<Collection>, index: &Arc<Index>) -> Option<Self> {
        let by_id = || {
            let clustered = collection.clustered_index().filter(|found| found.id == index.id);
            clustered.and(collection.options.expire_after_seconds())
        };
        let is_ready = index.state == IndexState::Ready;
        let seconds = index.expire_after_seconds.or_else(by_id).filter(|_| is_ready)?;
        let (collection, index) = (Arc::clone(collection), Arc::clone(index));
        Some(Expiring { collection, index, seconds })
    }

    /// Returns the index that a job is about, unless it or its expiry is gone.
    fn of_job(job: &Job, catalog: &Catalog) -> Option<Self> {
        let number = |name| job.parameter(name).and_then(|number| u32::try_from(number).ok());
        let collection = catalog.by_id(CollectionId(number("collection")?))?;
        Expiring::of(collection, collection.index_by_id(IndexId(number("index")?))?)
    }

    /// Returns the job that deletes what has expired by `now_ms`.
    pub fn job(&self, now_ms: i64) -> Job {
        let (collection, index) = (self.collection.id.0, self.index.id.0);
        let parameters = doc! {
            "collection": (i64::from(collection)),
            "index": (i64::from(index)),
            "now": Value::Date(now_ms),
        };
        Job::new(JobId::new(KIND, format!("{collection}.{index}")), parameters, now_ms)
    }

    /// Returns true if the index has an entry that has expired by `now_ms`.
    ///
    /// # Errors
    /// The errors of reading.
    pub fn has_work(&self, store: &Arc<Store>, now_ms: i64) -> Result<bool> {
        let view = store.read_view()?;
        let mut cursor =
            IndexCursor::new(&self.index, self.range(self.cutoff(now_ms)), Direction::Forward);
        let mut first = Vec::new();
        cursor.next_page(&view.view(), 1, &mut first)?;
        Ok(!first.is_empty()
            || has_expired_bucket(&view.view(), &self.collection, self.cutoff(now_ms))?)
    }

    /// Returns the date up to which the value of the field has expired.
    fn cutoff(&self, now_ms: i64) -> i64 {
        now_ms.saturating_sub(self.seconds.saturating_mul(1000))
    }

    /// Returns the range of the entries with dates up to `cutoff_ms`.
    fn range(&self, cutoff_ms: i64) -> IndexRange {
        let (oldest, cutoff) = ([Value::Date(i64::MIN)], [Value::Date(cutoff_ms)]);
        match self.index.keys.is_descending(0) {
            true => IndexRange::new(&self.index, &cutoff, true, &oldest, true),
            false => IndexRange::new(&self.index, &oldest, true, &cutoff, true),
        }
    }
}

/// Deletes at most `rows_max` documents of a job's index, and returns how far it came. The position
/// is the key of the index at which the next step begins.
///
/// # Errors
/// The errors of reading and writing.
pub fn expire_step(writer: &mut Writer, job: &Job, rows_max: usize) -> Attempt<Progress> {
    let catalog = Arc::clone(writer.catalog());
    let Some(expiring) = Expiring::of_job(job, &catalog) else { return Ok(Progress::end(0)) };
    let now_ms = match job.parameters.get("now") {
        Some(Value::Date(now_ms)) => now_ms,
        _ => return Ok(Progress::end(0)),
    };
    let collection = &expiring.collection;
    let cutoff_ms = expiring.cutoff(now_ms);
    if collection.buckets.is_some() {
        let (points, has_more) = expire_buckets(writer, collection, cutoff_ms, BUCKETS_MAX)?;
        if points > 0 && has_more {
            return Ok(Progress { position: job.position.clone(), done: points, rest: Rest::More });
        }
        let rows = expire_rows(writer, job, (&expiring, cutoff_ms), rows_max)?;
        let rest =
            if points > 0 && rows.rest == Rest::MoreUnstored { Rest::More } else { rows.rest };
        return Ok(Progress { done: rows.done + points, rest, ..rows });
    }
    expire_rows(writer, job, (&expiring, cutoff_ms), rows_max)
}

/// Deletes records as [`expire_step`] does.
fn expire_rows(
    writer: &mut Writer,
    job: &Job,
    (expiring, cutoff_ms): (&Expiring, i64),
    rows_max: usize,
) -> Attempt<Progress> {
    let Expiring { collection, index, .. } = expiring;
    let mut range = expiring.range(cutoff_ms);
    if let Some(Value::Binary(next)) = job.position.get("next") {
        range = range.beginning_at(next.bytes);
    }
    let mut cursor = IndexCursor::new(index, range, Direction::Forward);
    let mut entries = Vec::new();
    let mut has_more = cursor.next_page(&writer.view(), rows_max, &mut entries)?;
    let mut next = cursor.remaining().start().to_vec();
    let mut deleted = 0;
    for entry in &entries {
        let found = writer.view().get(collection, entry.record)?;
        if let Some(doc) = found
            && has_expired(index, doc.as_doc(), cutoff_ms)?
        {
            match writer.delete(collection, entry.record, doc.as_doc()) {
                Ok(()) => deleted += 1,
                // A pattern keeps the document while others refer to it. The next pass tries again.
                Err(Failure::Error(error))
                    if error.code() == ErrorCode::DocumentValidationFailure => {}
                Err(failure) => return Err(failure),
            }
        }
        if writer.buffered_bytes() >= CHUNK_BYTES {
            let rest = IndexRange::whole(index);
            let rest = rest.after(index, &entry.values, entry.record, Direction::Forward);
            next = rest.start().to_vec();
            has_more = true;
            break;
        }
    }
    if !has_more {
        return Ok(Progress::end(deleted));
    }
    let next = Value::Binary(Binary { subtype: 0, bytes: &next });
    // A step that deleted nothing read entries of documents that have not expired.
    let rest = if deleted > 0 { Rest::More } else { Rest::MoreUnstored };
    Ok(Progress { position: doc! { "next": next }, done: deleted, rest })
}

/// Returns true if the document is in the index and the earliest date in the field is not after the
/// cutoff.
fn has_expired(index: &Index, doc: Doc<'_>, cutoff_ms: i64) -> Result<bool> {
    let arena = Arena::new();
    let generated = index.keys.generate(doc, &arena)?;
    let expired =
        |value: &Option<Value<'_>>| matches!(value, Some(Value::Date(at)) if *at <= cutoff_ms);
    Ok(generated.keys().any(|key| key.first().is_some_and(expired)))
}

/// Deletes every document that has expired by `now_ms`: all jobs of one pass, one after the other.
/// An error ends the job of its own index only.
///
/// # Errors
/// The reason why `interrupt` ended the pass.
pub fn expire_documents(
    store: &Arc<Store>,
    now_ms: i64,
    interrupt: &Arc<Interrupt>,
) -> Result<Expired> {
    let mut expired = Expired::default();
    for expiring in Expiring::all(&store.catalog()) {
        let mut job = expiring.job(now_ms);
        let ended = run_to_end(store, &mut job, interrupt, expire_step);
        interrupt.check().map_err(from_interruption)?;
        expired.deleted += u64::try_from(job.done).unwrap_or(0);
        if let Err(error) = ended {
            let namespace = expiring.collection.namespace.clone();
            let index = expiring.index.name.clone();
            expired.failures.push(ExpireFailure { namespace, index, error });
        }
    }
    Ok(expired)
}
