//! The planner's statistics, measured on a view.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use quire_catalog::{Catalog, Collection, Namespace, QuerySettings, ResolvedView};
use quire_collections::{CollectionCursor, IndexCursor, IndexRange, View};
use quire_document::path::Path;
use quire_document::{Value, ValueBuf};
use quire_error::{Error, Result};
use quire_mql::filter::InList;
use quire_planner::{IndexScan, Keys, Statistics};
use quire_storage::Direction;

use crate::env::Env;
use crate::joins::keys::for_each_foreign;
use crate::scans::index_bounds::{ByteBounds, Verdict};
use crate::scans::index_scan::{seek_range, whole_range};
use crate::scans::random_picks::draws;
use crate::steady::SeenSeries;

/// The number of documents whose values stand for the keys of a join, and the bytes of the documents
/// after which no more are read.
const EXAMPLES: usize = 4;
const EXAMPLE_BYTES: usize = 64 << 10;

/// Index dives on a view, for an execution in the environment `env`.
pub(crate) struct ViewStatistics<'v> {
    view: View<'v>,
    env: &'v Env,
    /// A namespace that was looked up before, and its collection.
    known: Option<(&'v str, Option<&'v Arc<Collection>>)>,
    /// The time-series collections that were looked up.
    pub series: SeenSeries,
    /// True for a statement that writes points, which has made records of those that it writes.
    records_only: bool,
}

impl<'v> ViewStatistics<'v> {
    pub fn new(view: View<'v>, env: &'v Env) -> Self {
        let series = SeenSeries::default();
        ViewStatistics { view, env, known: None, series, records_only: false }
    }

    /// Leaves out buckets of time-series collections.
    pub fn of_records(self) -> Self {
        ViewStatistics { records_only: true, ..self }
    }

    /// Adds a namespace that was looked up before, and its collection.
    pub fn knowing(mut self, namespace: &'v str, found: Option<&'v Arc<Collection>>) -> Self {
        self.known = Some((namespace, found));
        self
    }

    /// Returns the number in the whole collection for which a number in the read documents stands.
    fn of_all(&self, sampled: u64) -> u64 {
        let times = self.env.params.documents_per_sampled;
        if times > 1.0 { (sampled as f64 * times) as u64 } else { sampled }
    }

    /// Returns the number in the read documents that stands for a number in the whole collection,
    /// rounded up.
    fn of_sample(&self, all: u64) -> u64 {
        let times = self.env.params.documents_per_sampled;
        if times > 1.0 { (all as f64 / times).ceil() as u64 } else { all }
    }

    fn count_range(&self, scan: &IndexScan, range: IndexRange, limit: u64) -> Option<u64> {
        let mut cursor = IndexCursor::new(&scan.index, range, Direction::Forward);
        let mut entries = Vec::new();
        let mut count = 0;
        while count < limit {
            let rows = usize::try_from(limit - count).unwrap_or(1024).min(1024);
            entries.clear();
            let more = cursor.next_page(&self.view, rows, &mut entries).ok()?;
            count += entries.len() as u64;
            if !more {
                break;
            }
        }
        Some(count)
    }

    /// Estimates the keys that a scan for the keys of a join visits: those for the values of the first
    /// documents of the collection.
    fn keys_of_example(&self, scan: &IndexScan, limit: u64) -> u64 {
        let Some(found) = self.example(scan) else { return limit };
        self.keys(&found, limit)
    }

    /// Returns the scan for the values of the first documents of the collection; `None` if they have
    /// none that the index serves.
    fn example(&self, scan: &IndexScan) -> Option<IndexScan> {
        let path = Path::new(&scan.keys.fields().get(scan.keyed?.field)?.path);
        let (mut found, mut values) = (Vec::new(), Vec::new());
        let mut first = CollectionCursor::new(&scan.collection, Direction::Forward);
        first.next_page(&self.view, &scan.collection, EXAMPLES, EXAMPLE_BYTES, &mut found).ok()?;
        for record in &found {
            for_each_foreign(&path, record.doc.as_doc(), |value| {
                let is_single = !matches!(value, Value::Array(_) | Value::Null);
                values.extend(is_single.then(|| ValueBuf::new(value)));
            });
        }
        values.truncate(EXAMPLES);
        let collator = self.env.parse.collator.clone();
        let keys = Keys::new(InList::new(values, Vec::new(), collator), None);
        keys.bind_example(scan)
    }

    /// Counts the keys as the scan itself would visit them.
    fn count_checked(&self, scan: &IndexScan, limit: u64) -> Option<u64> {
        let mut scan = Cow::Borrowed(scan);
        if scan.backward {
            scan.to_mut().backward = false;
        }
        let bounds = ByteBounds::new(&scan, &|| self.env.check_interrupt()).ok()?;
        let Some(start) = bounds.start() else { return Some(0) };
        let mut cursor =
            IndexCursor::new(&scan.index, seek_range(&scan, &start), Direction::Forward);
        let mut entries = Vec::new();
        let mut count = 0;
        while count < limit {
            entries.clear();
            let more = cursor.next_page(&self.view, 32, &mut entries).ok()?;
            for entry in &entries {
                count += 1;
                if entry.is_shortened() {
                    continue;
                }
                match bounds.check(&entry.values).ok()? {
                    Verdict::Valid => {}
                    Verdict::Done => return Some(count),
                    Verdict::Seek(seek) => {
                        cursor.seek(seek_range(&scan, &seek));
                        break;
                    }
                }
            }
            if !more && cursor.is_done() {
                break;
            }
        }
        Some(count)
    }
}

/// Refuses to read the buckets of a time-series collection where none are made: a tool that copies them would copy nothing.
fn refuse_buckets(catalog: &Catalog, namespace: &Namespace) -> Result<()> {
    match catalog.series_of(namespace) {
        Some(_) => Err(Error::not_built("reading buckets of a time-series collection here")),
        None => Ok(()),
    }
}

impl Statistics for ViewStatistics<'_> {
    fn collection(&self, namespace: &str) -> Result<Option<Arc<Collection>>> {
        let found = match self.known {
            Some((known, found)) if known == namespace => found,
            _ => self.view.catalog().find(namespace),
        };
        if found.is_none() {
            refuse_buckets(self.view.catalog(), &Namespace::parse(namespace)?)?;
        }
        Ok(found.cloned())
    }

    fn view(&self, namespace: &str) -> Result<Option<ResolvedView>> {
        self.view.catalog().resolve(namespace)
    }

    fn check_interrupt(&self) -> Result<()> {
        self.env.check_interrupt()
    }

    fn note_query(&self) {
        self.env.queries_planned.fetch_add(1, Ordering::Relaxed);
    }

    fn query_settings(&self) -> Option<&Arc<QuerySettings>> {
        self.env.params.query_settings.as_ref()
    }

    fn uses_plan_cache(&self) -> bool {
        self.env.params.plan_cache && self.env.params.considered.is_none()
    }

    fn now_ms(&self) -> i64 {
        self.env.params.now_ms
    }

    fn documents(&self, collection: &Collection) -> u64 {
        self.of_all(self.view.counts(collection).documents)
    }

    fn keys(&self, scan: &IndexScan, limit: u64) -> u64 {
        if scan.keyed.is_some() {
            return self.keys_of_example(scan, limit);
        }
        let asked = limit;
        let limit = self.of_sample(limit);
        let counted = if scan.range.is_some() || scan.is_one_range() {
            self.count_range(scan, whole_range(scan), limit)
        } else {
            self.count_checked(scan, limit)
        };
        self.of_all(counted.unwrap_or(limit)).min(asked)
    }

    fn has_buckets(&self, collection: &Arc<Collection>) -> Result<bool> {
        if self.records_only {
            return Ok(false);
        }
        let has_buckets = self.view.has_buckets(collection)?;
        self.series.add(collection, has_buckets);
        Ok(has_buckets)
    }

    fn draws(&self, collection: &Collection, size: u64) -> bool {
        draws(&self.view, collection, size)
    }
}
