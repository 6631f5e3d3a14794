//! The database profiler: which operations are logged and recorded, and `system.profile`, which
//! keeps the entries of a database.
//!
//! Level 1 records slow operations, or those that the filter selects; level 2 records all. A filter
//! also selects the operations that are logged as slow. `system.profile` is an ordinary collection,
//! which the profiler keeps below [`PROFILE_BYTES_MAX`] by deleting the oldest entries: entries are
//! written in bulk, without the conflicts of a ring. (Manual: "Database Profiler".)

use crate::frame::service::{Service, now_ms};
use quire_catalog::{Collection, Namespace};
use quire_collections::{CollectionCursor, prepare_insert};
use quire_document::{Doc, DocBuf};
use quire_error::{Error, ErrorCode, Result};
use quire_mql::context::{EvalContext, ParseContext, Shared};
use quire_mql::filter::Filter;
use quire_session::{Autocommit, Unit};
use quire_storage::{Direction, Durability, Interrupt, rng};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The bytes of entries that a database keeps: the size of MongoDB's `system.profile`.
pub const PROFILE_BYTES_MAX: u64 = 1024 * 1024;
/// The bytes of the oldest entries that are deleted at once.
const TRIM_BYTES: usize = 128 * 1024;
const TRIM_DOCS: usize = 1000;
/// The number of databases that may have settings of their own: a setting keeps a compiled filter.
const DATABASES_MAX: usize = 1000;
/// The collection that holds the entries.
pub const SYSTEM_PROFILE: &str = "system.profile";

/// The profiler's settings.
pub struct Profiler {
    /// True if a database is profiled or has a filter. While it is false, an operation checks only
    /// its own duration.
    engaged: AtomicBool,
    /// The share of slow operations that are sampled, as the bits of a double.
    sample_rate: AtomicU64,
    /// The level of databases without a setting of their own: `--profile`.
    default_level: AtomicI32,
    databases: RwLock<HashMap<String, Setting>>,
    trimming: AtomicBool,
}

/// The profiler's settings of one database.
#[derive(Clone, Default)]
pub struct Setting {
    /// 0, 1 or 2.
    pub level: i32,
    /// Selects operations instead of their duration.
    pub filter: Option<Arc<ProfileFilter>>,
}

/// A filter over the profiler's entries.
pub struct ProfileFilter {
    /// The filter as `profile` shows it.
    pub shown: DocBuf,
    filter: Filter,
}

/// The decision about an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// True if it is logged.
    pub log: bool,
    /// True if it gets an entry in `system.profile`.
    pub record: bool,
}

impl Default for Profiler {
    fn default() -> Self {
        Profiler {
            engaged: AtomicBool::new(false),
            sample_rate: AtomicU64::new(1f64.to_bits()),
            default_level: AtomicI32::new(0),
            databases: RwLock::default(),
            trimming: AtomicBool::new(false),
        }
    }
}

impl Profiler {
    /// Returns true if operations that are not slow may have to be logged or recorded.
    pub fn is_engaged(&self) -> bool {
        self.engaged.load(Ordering::Relaxed)
    }

    /// Returns the share of slow operations that are sampled.
    pub fn sample_rate(&self) -> f64 {
        f64::from_bits(self.sample_rate.load(Ordering::Relaxed))
    }

    /// Sets that share, between 0 and 1.
    pub fn set_sample_rate(&self, rate: f64) {
        self.sample_rate.store(rate.to_bits(), Ordering::Relaxed);
    }

    /// Returns the settings of a database.
    pub fn setting(&self, db: &str) -> Setting {
        self.read().get(db).cloned().unwrap_or_else(|| self.default_setting())
    }

    fn default_setting(&self) -> Setting {
        Setting { level: self.default_level.load(Ordering::Relaxed), filter: None }
    }

    /// Sets the level of databases without a setting of their own.
    pub fn set_default_level(&self, level: i32) {
        let databases = self.write();
        self.default_level.store(level, Ordering::Relaxed);
        self.engaged.store(level > 0 || !databases.is_empty(), Ordering::Relaxed);
    }

    /// Changes the settings of a database.
    ///
    /// # Errors
    /// 146 ExceededMemoryLimit if too many databases have settings of their own.
    pub fn set(&self, db: &str, setting: Setting) -> Result<()> {
        let mut databases = self.write();
        let default = self.default_level.load(Ordering::Relaxed);
        match setting.level == default && setting.filter.is_none() {
            true => drop(databases.remove(db)),
            false if databases.len() >= DATABASES_MAX && !databases.contains_key(db) => {
                let text = format!(
                    "the profiler keeps the settings of at most {DATABASES_MAX} databases; set the level of another to 0 first"
                );
                return Err(Error::new(ErrorCode::ExceededMemoryLimit, text));
            }
            false => drop(databases.insert(db.to_owned(), setting)),
        }
        self.engaged.store(default > 0 || !databases.is_empty(), Ordering::Relaxed);
        Ok(())
    }

    /// Removes the settings of a database that was dropped.
    pub fn forget(&self, db: &str) {
        let mut databases = self.write();
        databases.remove(db);
        let default = self.default_level.load(Ordering::Relaxed);
        self.engaged.store(default > 0 || !databases.is_empty(), Ordering::Relaxed);
    }

    /// Decides about an operation on `db`. `entry` creates its profiler entry.
    pub fn judge(&self, db: &str, slow: bool, entry: impl FnOnce() -> DocBuf) -> Verdict {
        let setting = if self.is_engaged() { self.setting(db) } else { Setting::default() };
        let picked = match &setting.filter {
            Some(filter) => filter.picks(entry().as_doc()),
            None => slow && self.is_sampled(),
        };
        let record = match setting.level {
            0 => false,
            1 => picked,
            _ => true,
        };
        Verdict { log: picked, record }
    }

    fn is_sampled(&self) -> bool {
        let rate = self.sample_rate();
        rate >= 1.0 || (rng::word() as f64 / u64::MAX as f64) < rate
    }

    fn read(&self) -> RwLockReadGuard<'_, HashMap<String, Setting>> {
        self.databases.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, HashMap<String, Setting>> {
        self.databases.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ProfileFilter {
    /// Compiles a filter.
    ///
    /// # Errors
    /// The errors of `mql` about the filter.
    pub fn parse(filter: Doc<'_>) -> Result<ProfileFilter> {
        let parsed = Filter::parse(filter, &ParseContext::default())?;
        let shown = parsed.to_bson();
        Ok(ProfileFilter { shown, filter: parsed })
    }

    /// Returns true if the filter matches an entry; false if it fails on the entry.
    fn picks(&self, entry: Doc<'_>) -> bool {
        let arena = bumpalo::Bump::new();
        let shared = Shared::new(now_ms());
        self.filter.matches(entry, &EvalContext::new(&arena, entry, &shared)).unwrap_or(false)
    }
}

impl Service {
    /// Sets the defaults of the profiler: the level, and the share of slow operations that are
    /// sampled.
    pub fn set_profile_defaults(&self, level: i32, sample_rate: f64) {
        self.profiler.set_default_level(level);
        self.profiler.set_sample_rate(sample_rate);
    }

    /// Creates `system.profile` of a database that will be profiled.
    ///
    /// # Errors
    /// The errors of creating a collection.
    pub fn make_profile(&self, db: &str) -> Result<()> {
        let namespace = Namespace::new(db, SYSTEM_PROFILE)?;
        self.store.ensure_collection(&namespace).map(drop)
    }

    /// Writes an entry. An entry that cannot be written is dropped, because its operation has
    /// ended. While `fsync` blocks writes, no entries are written. A database that does not exist gets no
    /// entry: that would create it, for example after its `dropDatabase`.
    pub fn record_profile(&self, db: &str, entry: Doc<'_>) {
        if self.store.catalog().database(db).is_none() {
            return;
        }
        let Some(_writing) = self.write_gate.try_enter() else { return };
        if let Ok(namespace) = Namespace::new(db, SYSTEM_PROFILE) {
            let _ = self.insert_profile(&namespace, entry);
        }
    }

    fn insert_profile(&self, namespace: &Namespace, entry: Doc<'_>) -> Result<()> {
        let interrupt = Interrupt::new();
        let mut unit = self.profiler_unit();
        unit.own_collection(namespace, &interrupt)?;
        unit.write_durably(&interrupt, |writer| {
            let Some(collection) = writer.collection(namespace) else {
                return Ok(());
            };
            let mut buffer = Vec::new();
            let store = Arc::clone(writer.store());
            let prepared = prepare_insert(&store, entry, &mut buffer)?;
            writer.insert(&collection, prepared).map(drop)
        })?;
        let catalog = self.store.catalog();
        match catalog.lookup(namespace) {
            Some(collection) => self.trim_profile(collection, &interrupt),
            None => Ok(()),
        }
    }

    /// Deletes the oldest entries if there are too many bytes of entries.
    fn trim_profile(&self, collection: &Arc<Collection>, interrupt: &Arc<Interrupt>) -> Result<()> {
        let too_large = self.store.counts(collection).bytes > PROFILE_BYTES_MAX;
        if !too_large || self.profiler.trimming.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let trimmed = self.delete_oldest(collection, interrupt);
        self.profiler.trimming.store(false, Ordering::Release);
        trimmed
    }

    fn delete_oldest(&self, collection: &Collection, interrupt: &Arc<Interrupt>) -> Result<()> {
        let mut oldest = Vec::new();
        let view = self.store.read_view()?;
        let mut cursor = CollectionCursor::new(collection, Direction::Forward);
        cursor.next_page(&view.view(), collection, TRIM_DOCS, TRIM_BYTES, &mut oldest)?;
        drop(view);
        self.profiler_unit().write_durably(interrupt, |writer| {
            let now = writer.collection(&collection.namespace);
            let Some(now) = now.filter(|now| now.id == collection.id) else { return Ok(()) };
            for record in &oldest {
                if let Some(doc) = writer.view().get(&now, record.id)? {
                    writer.delete(&now, record.id, doc.as_doc())?;
                }
            }
            Ok(())
        })
    }

    /// Returns the unit of work for entries: the server's own, with buffered durability.
    fn profiler_unit(&self) -> Unit {
        Unit::Autocommit(Autocommit::of_server(&self.store, Durability::Buffered))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_document::doc;

    #[test]
    fn levels_time_and_filters_decide() {
        let profiler = Profiler::default();
        let judge = |slow: bool| profiler.judge("db", slow, || doc! { "op": "query" });
        let verdict = |log: bool, record: bool| Verdict { log, record };
        assert_eq!((judge(false), judge(true)), (verdict(false, false), verdict(true, false)));
        profiler.set("db", Setting { level: 1, filter: None }).unwrap();
        assert_eq!((judge(false), judge(true)), (verdict(false, false), verdict(true, true)));
        profiler.set_sample_rate(0.0);
        assert_eq!(judge(true), verdict(false, false));
        profiler.set("db", Setting { level: 2, filter: None }).unwrap();
        assert_eq!(judge(false), verdict(false, true));
        let filter =
            |filter: DocBuf| Some(Arc::new(ProfileFilter::parse(filter.as_doc()).unwrap()));
        profiler.set("db", Setting { level: 1, filter: filter(doc! { "op": "query" }) }).unwrap();
        assert_eq!(judge(false), verdict(true, true));
        profiler.set("db", Setting { level: 1, filter: filter(doc! { "op": "insert" }) }).unwrap();
        assert_eq!(judge(true), verdict(false, false));
        assert!(profiler.is_engaged());
        profiler.set("db", Setting::default()).unwrap();
        assert!(!profiler.is_engaged());
        profiler.set_default_level(2);
        assert_eq!(judge(false), verdict(false, true));
        profiler.set("db", Setting::default()).unwrap();
        assert_eq!(judge(false), verdict(false, false));
    }

    #[test]
    fn filters_are_shown_in_full() {
        let shown = |filter: DocBuf| {
            let parsed = ProfileFilter::parse(filter.as_doc()).unwrap();
            quire_catalog::debug_doc(parsed.shown.as_doc())
        };
        assert_eq!(shown(doc! { "op": "query" }), "{ op: { $eq: \"query\" } }");
        let two = doc! { "op": "query", "nreturned": { "$gt": 1 } };
        assert_eq!(
            shown(two),
            "{ $and: [ { op: { $eq: \"query\" } }, { nreturned: { $gt: 1 } } ] }"
        );
    }
}
