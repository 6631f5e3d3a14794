//! Copies a collection into the laboratory: all documents, or a random sample, in the order of the
//! collection. Each document has the same probability, independently of the others.

use crate::laboratory::bounded_store::BoundedStore;
use quire_advisor::SampleSize;
use quire_catalog::{Collection, Namespace};
use quire_collections::{BucketCursor, CollectionCursor, Record, RecordId, Span, WritePolicy};
use quire_document::DocWriter;
use quire_error::Result;
use quire_executor::Views;
use quire_storage::rng::Rng;
use quire_storage::{CommitOptions, Direction};
use std::sync::Arc;

/// The documents and bytes that are read at a time, and inserted by one commit.
const PAGE_DOCS: usize = 500;
const PAGE_BYTES: usize = 2 << 20;
/// A look-up of a document costs about as much as reading this many adjacent ones.
const DOCS_PER_DRAW: u64 = 20;

/// A copy of a collection.
pub struct Copied {
    /// The name, which is that of the collection.
    pub namespace: Namespace,
    /// The documents of the copy and of the collection.
    pub size: SampleSize,
    /// The bytes of the documents in the copy.
    pub bytes: u64,
}

/// How a copy ended.
pub enum CopyEnd {
    /// It is complete.
    Copied(Copied),
    /// There is no room for more than this fraction of the documents.
    NoRoom(f64),
}

/// Where the documents of a copy come from.
enum Reading {
    /// A scan, which keeps a document if a random number below the first number is below the second.
    Scan(CollectionCursor, u64, u64),
    /// The buckets of a time-series collection, after such a scan of its records.
    Points(BucketCursor, u64, u64),
    /// Record ids that were drawn, in order, and how many were looked up.
    Draws(Vec<RecordId>, usize),
}

/// Copies about `most` documents of a collection, or all if it has no more. Ends early when the
/// laboratory holds more than `bytes_max`.
pub fn copy(
    store: &mut BoundedStore<'_>,
    views: &mut dyn Views,
    (from, to): (&Arc<Collection>, &Arc<Collection>),
    most: u64,
    random: &mut Rng,
    bytes_max: u64,
) -> Result<CopyEnd> {
    let total = views.view().counts(from).documents;
    let mut reading = begin(views, from, most.min(total), random)?;
    let (mut copied, mut bytes, mut page) = (0, 0, Vec::new());
    loop {
        page.clear();
        let more = reading.next_page(views, from, random, &mut page)?;
        insert(store, to, &page)?;
        copied += page.len() as u64;
        bytes += page.iter().map(|record| record.doc.as_bytes().len() as u64).sum::<u64>();
        if !store.charge(bytes_max) {
            return Ok(CopyEnd::NoRoom(reading.done(total, copied)));
        }
        store.pause()?;
        views.renew()?;
        if !more {
            break;
        }
    }
    // A document that was inserted or deleted meanwhile changes the number.
    let is_whole = match reading {
        Reading::Scan(_, of, kept) | Reading::Points(_, of, kept) => kept >= of,
        Reading::Draws(..) => false,
    };
    let total = if is_whole { copied } else { views.view().counts(from).documents.max(copied) };
    let namespace = from.namespace.clone();
    Ok(CopyEnd::Copied(Copied { namespace, size: SampleSize { sampled: copied, total }, bytes }))
}

/// Chooses the documents: by drawing record ids if that reads less than a scan.
fn begin(
    views: &dyn Views,
    from: &Arc<Collection>,
    most: u64,
    random: &mut Rng,
) -> Result<Reading> {
    let view = views.view();
    let total = view.counts(from).documents;
    let ids = view.record_ids(from)?;
    let space = ids.end.saturating_sub(ids.start);
    let wanted = u128::from(most) * u128::from(space) / u128::from(total.max(1));
    let draws = u64::try_from(wanted).unwrap_or(u64::MAX);
    if draws.saturating_mul(DOCS_PER_DRAW) >= total || view.has_buckets(from)? {
        let cursor = CollectionCursor::new(from, Direction::Forward);
        return Ok(Reading::Scan(cursor, total, most));
    }
    let mut drawn: Vec<RecordId> =
        (0..draws).map(|_| RecordId(ids.start + random.below(space.max(1)))).collect();
    drawn.sort_unstable_by_key(|id| id.0);
    drawn.dedup_by_key(|id| id.0);
    Ok(Reading::Draws(drawn, 0))
}

impl Reading {
    /// Appends the next documents. Returns false if there are no more.
    fn next_page(
        &mut self,
        views: &dyn Views,
        from: &Arc<Collection>,
        random: &mut Rng,
        page: &mut Vec<Record>,
    ) -> Result<bool> {
        let view = views.view();
        match self {
            Reading::Scan(cursor, of, kept) => {
                let more = cursor.next_page(&view, from, PAGE_DOCS, PAGE_BYTES, page)?;
                if kept < of {
                    page.retain(|_| random.below(*of) < *kept);
                }
                match from.buckets.filter(|_| !more) {
                    Some(buckets) => {
                        let all = BucketCursor::by_time(buckets, Span::ALL, Direction::Forward);
                        *self = Reading::Points(all, *of, *kept);
                        Ok(true)
                    }
                    None => Ok(more),
                }
            }
            Reading::Points(cursor, of, kept) => {
                let more = view.next_points(from, cursor, page)?;
                if kept < of {
                    page.retain(|_| random.below(*of) < *kept);
                }
                Ok(more)
            }
            Reading::Draws(drawn, at) => {
                let ids = drawn.get(*at..).unwrap_or_default();
                let ids = ids.get(..PAGE_DOCS).unwrap_or(ids);
                let mut found = Vec::with_capacity(ids.len());
                view.get_many(from, ids, &mut found)?;
                let exists = |(id, doc): (&RecordId, _)| Some(Record { id: *id, doc: doc? });
                page.extend(ids.iter().zip(found).filter_map(exists));
                *at += ids.len();
                Ok(*at < drawn.len())
            }
        }
    }

    /// Returns the fraction of the wanted documents that are copied.
    fn done(&self, total: u64, copied: u64) -> f64 {
        match self {
            Reading::Scan(_, _, kept) | Reading::Points(_, _, kept) => {
                copied as f64 / (*kept).min(total).max(1) as f64
            }
            Reading::Draws(drawn, at) => *at as f64 / drawn.len().max(1) as f64,
        }
    }
}

fn insert(store: &BoundedStore<'_>, to: &Arc<Collection>, page: &[Record]) -> Result<()> {
    if page.is_empty() {
        return Ok(());
    }
    let commit = CommitOptions::buffered();
    let interrupt = store.interrupt();
    let policy = (&commit, WritePolicy::Internal);
    store.store().write_statement(policy, None, interrupt, |writer| {
        for record in page {
            writer.insert(to, record.doc.as_doc())?;
        }
        Ok(())
    })?;
    Ok(())
}

/// Appends the sizes of a copy.
pub fn write_copied(copied: &Copied, out: &mut DocWriter<'_>) {
    let long = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    out.append("collection", copied.namespace.as_str());
    out.append("documents", long(copied.size.sampled));
    out.append("documentsInCollection", long(copied.size.total));
    out.append("bytes", long(copied.bytes)).append("isWhole", copied.size.is_whole());
}
