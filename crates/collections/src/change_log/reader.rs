//! Reads the change log in order, from any place on.

use std::collections::VecDeque;

use quire_catalog::{CollectionId, Uuid};
use quire_document::Doc;
use quire_error::{Error, ErrorCode, Label, Result};
use quire_storage::committer::{log_key, split_log_key};
use quire_storage::{Bytes, ClusterTime, Page, ScanRequest, Snapshot, Space, Version};

use super::LogBeginning;
use crate::RecordId;
use crate::StoredDoc;
use crate::failure::from_storage;
use crate::layout::{damaged, doc_key};
use crate::log_record::{Images, LogContent, LogRecord, LoggedChange, LoggedName};
use crate::log_record::{decode, saved_key};

/// The bytes of a page of records.
const PAGE_BYTES: usize = 256 << 10;
/// The documents of inserts that are looked up at a time.
const LOOKED_UP_MAX: u32 = 128;

/// The place of a change: the version of its commit, its record in the commit, and its position in
/// the record. Places are in the order in which the changes happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct ChangePlace {
    /// The version of the commit.
    pub version: u64,
    /// The number of the record in the commit.
    pub index: u32,
    /// The position of the change in the record.
    pub offset: u32,
}

impl ChangePlace {
    /// Returns the place before all changes of the commit with this version.
    pub const fn of_version(version: u64) -> Self {
        ChangePlace { version, index: 0, offset: 0 }
    }

    /// Returns the first place after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        ChangePlace { offset: self.offset.saturating_add(1), ..self }
    }
}

/// A change of a document or of the catalog, as a reader of the log gets it.
#[derive(Debug, Clone)]
pub struct ChangeEntry {
    /// Its place in the log.
    pub place: ChangePlace,
    /// The cluster time of its commit.
    pub time: ClusterTime,
    /// The wall clock in milliseconds since 1970.
    pub wall_ms: u64,
    /// The client's transaction that made it.
    pub origin: Option<Origin>,
    /// What the commit changed.
    pub what: ChangeWhat,
}

/// A client's transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The transaction's number in its session.
    pub number: i64,
    /// The session as MongoDB shows it.
    pub session: Bytes,
}

/// The content of a change. All bytes are BSON documents.
#[derive(Debug, Clone)]
pub enum ChangeWhat {
    /// A document was inserted.
    Insert {
        /// The collection of the document.
        collection: EntryCollection,
        /// The document as it was inserted.
        doc: Bytes,
    },
    /// A document was updated.
    Update {
        /// The collection of the document.
        collection: EntryCollection,
        /// The document's key, `{_id}`.
        key: Bytes,
        /// What changed, as an event shows it.
        description: Bytes,
        /// The document before and after, if the collection keeps them.
        images: (Option<Bytes>, Option<Bytes>),
    },
    /// A document was replaced.
    Replace {
        /// The collection of the document.
        collection: EntryCollection,
        /// The new document.
        after: Bytes,
        /// The document before, if the collection keeps it.
        before: Option<Bytes>,
    },
    /// A document was deleted.
    Delete {
        /// The collection of the document.
        collection: EntryCollection,
        /// The document's key, `{_id}`.
        key: Bytes,
        /// The document before, if the collection keeps it.
        before: Option<Bytes>,
    },
    /// The catalog changed (docs/format.md, "The change log").
    Catalog(Bytes),
}

/// The collection of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryCollection {
    /// The name that it had.
    pub namespace: String,
    /// The UUID of the collection.
    pub uuid: Uuid,
}

impl From<&LoggedName<'_>> for EntryCollection {
    fn from(name: &LoggedName<'_>) -> Self {
        EntryCollection { namespace: name.namespace.to_owned(), uuid: name.uuid }
    }
}

/// Inserts whose documents are still to be read.
struct Run {
    collection: EntryCollection,
    id: CollectionId,
    first: RecordId,
    count: u32,
    /// The position of the next one.
    next: u32,
    place: ChangePlace,
    time: ClusterTime,
    wall_ms: u64,
    origin: Option<Origin>,
}

/// A position in the log.
pub struct LogReader {
    /// The first place that was not read.
    next: ChangePlace,
    /// Records from this place on.
    rows: VecDeque<(Bytes, Bytes)>,
    /// The version of a commit, and its transaction if it is that of one.
    origin: Option<(u64, Option<Origin>)>,
}

impl LogReader {
    /// Returns a reader of the changes from `place` on.
    pub fn at(place: ChangePlace) -> Self {
        LogReader { next: place, rows: VecDeque::new(), origin: None }
    }

    /// Returns the first place that was not read.
    pub fn place(&self) -> ChangePlace {
        self.next
    }

    /// Appends the next changes of the commits up to `until` to `out`: those for which `wants`
    /// returns true for the namespace of the collection, and all changes of the catalog. Stops after
    /// `max` changes, or a page of the log. Returns true if there were no more. `until` must not be
    /// earlier than in the last call.
    ///
    /// # Errors
    /// 286 ChangeStreamHistoryLost if the log no longer has the changes.
    pub fn read(
        &mut self,
        snapshot: &dyn Snapshot,
        until: Version,
        wants: &dyn Fn(&str) -> bool,
        max: usize,
        out: &mut VecDeque<ChangeEntry>,
    ) -> Result<bool> {
        self.check_kept(snapshot)?;
        if self.rows.is_empty() && !self.read_page(snapshot, until)? {
            self.next = self.next.max(ChangePlace::of_version(until.as_u64() + 1));
            return Ok(true);
        }
        let room = out.len() + max;
        while let Some((key, value)) = self.rows.front().cloned() {
            if out.len() >= room {
                return Ok(false);
            }
            let (version, index) =
                split_log_key(&key).ok_or_else(|| damaged("a key of the log"))?;
            let place = ChangePlace { version, index, offset: 0 };
            self.next = self.next.max(place);
            if !self.read_record(snapshot, (place, &value), wants, room, out)? {
                return Ok(false);
            }
            self.next = ChangePlace { version, index: index + 1, offset: 0 };
            self.rows.pop_front();
        }
        Ok(false)
    }

    /// Reads the next records up to `until`. Returns false if there are none.
    fn read_page(&mut self, snapshot: &dyn Snapshot, until: Version) -> Result<bool> {
        let (start, end) =
            (log_key(self.next.version, self.next.index), log_key(until.as_u64() + 1, 0));
        if start >= end {
            return Ok(false);
        }
        let request = ScanRequest::new(Space::Log, &start, &end);
        let mut page = Page::default();
        let request = ScanRequest { bytes_max: PAGE_BYTES, ..request };
        snapshot.scan(&request, &mut page).map_err(from_storage)?;
        self.rows = page.rows.into();
        Ok(!self.rows.is_empty())
    }

    fn check_kept(&self, snapshot: &dyn Snapshot) -> Result<()> {
        match LogBeginning::read(snapshot)? {
            Some(beginning) if beginning.version.as_u64() <= self.next.version => Ok(()),
            Some(_) | None => Err(history_lost()),
        }
    }

    /// Reads one record. Returns false if `out` is full before its end.
    fn read_record(
        &mut self,
        snapshot: &dyn Snapshot,
        (place, value): (ChangePlace, &Bytes),
        wants: &dyn Fn(&str) -> bool,
        room: usize,
        out: &mut VecDeque<ChangeEntry>,
    ) -> Result<bool> {
        let time = value.first_chunk().map(|time| ClusterTime(u64::from_be_bytes(*time)));
        let time = time.ok_or_else(|| damaged("a record of the change log"))?;
        let record = value.slice(8..);
        let LogRecord { wall_ms, content } = decode(&record)?;
        if place.index == 0 {
            self.origin = Some((place.version, None));
        }
        let what = match content {
            LogContent::Transaction { number, session } => {
                self.origin = Some((place.version, Some(Origin { number, session })));
                return Ok(true);
            }
            LogContent::Catalog(entry) => ChangeWhat::Catalog(entry),
            LogContent::Documents { collection, .. } if !wants(collection.namespace) => {
                return Ok(true);
            }
            LogContent::Documents { collection, change } => {
                let named = EntryCollection::from(&collection);
                let LoggedChange::Inserts { first, count } = change else {
                    let what = single(named, change);
                    return self.push(snapshot, (place, time, wall_ms), what, out).map(|()| true);
                };
                let run = Run {
                    collection: named,
                    id: collection.id,
                    first,
                    count,
                    next: self.next.offset,
                    place,
                    time,
                    wall_ms,
                    origin: self.origin(snapshot, place)?,
                };
                return self.read_inserts(snapshot, run, room, out);
            }
        };
        self.push(snapshot, (place, time, wall_ms), what, out).map(|()| true)
    }

    fn push(
        &mut self,
        snapshot: &dyn Snapshot,
        (place, time, wall_ms): (ChangePlace, ClusterTime, u64),
        what: ChangeWhat,
        out: &mut VecDeque<ChangeEntry>,
    ) -> Result<()> {
        // The reader began after this change, the only one of its record.
        if self.next > place {
            return Ok(());
        }
        let origin = self.origin(snapshot, place)?;
        out.push_back(ChangeEntry { place, time, wall_ms, origin, what });
        Ok(())
    }

    /// Returns the transaction of a commit. A reader that begins within the commit reads the first
    /// record.
    fn origin(&mut self, snapshot: &dyn Snapshot, place: ChangePlace) -> Result<Option<Origin>> {
        if let Some((version, origin)) = &self.origin
            && *version == place.version
        {
            return Ok(origin.clone());
        }
        let first = snapshot.get(Space::Log, &log_key(place.version, 0)).map_err(from_storage)?;
        let record = first.filter(|value| value.len() > 8).map(|value| value.slice(8..));
        let origin = match record.as_ref().map(decode).transpose()?.map(|record| record.content) {
            Some(LogContent::Transaction { number, session }) => Some(Origin { number, session }),
            _ => None,
        };
        self.origin = Some((place.version, origin.clone()));
        Ok(origin)
    }

    /// Appends inserts with their documents. Returns false if `out` is full before the last.
    fn read_inserts(
        &mut self,
        snapshot: &dyn Snapshot,
        mut run: Run,
        room: usize,
        out: &mut VecDeque<ChangeEntry>,
    ) -> Result<bool> {
        while run.next < run.count {
            let left = u32::try_from(room.saturating_sub(out.len())).unwrap_or(u32::MAX);
            let many = left.min(LOOKED_UP_MAX).min(run.count - run.next);
            if many == 0 {
                return Ok(false);
            }
            let first = run.first.0 + u64::from(run.next);
            let docs = inserted(snapshot, run.id, first..first + u64::from(many))?;
            for doc in docs {
                let place = ChangePlace { offset: run.next, ..run.place };
                let what = ChangeWhat::Insert { collection: run.collection.clone(), doc };
                let (time, wall_ms, origin) = (run.time, run.wall_ms, run.origin.clone());
                out.push_back(ChangeEntry { place, time, wall_ms, origin, what });
                run.next += 1;
                self.next = place.next();
            }
        }
        Ok(true)
    }
}

/// Returns the content of a record of one change.
fn single(collection: EntryCollection, change: LoggedChange) -> ChangeWhat {
    match change {
        LoggedChange::Update { key, description, images: Images { before, after }, .. } => {
            ChangeWhat::Update { collection, key, description, images: (before, after) }
        }
        LoggedChange::Replace { after, images, .. } => {
            ChangeWhat::Replace { collection, after, before: images.before }
        }
        LoggedChange::Delete { key, images, .. } => {
            ChangeWhat::Delete { collection, key, before: images.before }
        }
        LoggedChange::Inserts { .. } => ChangeWhat::Catalog(Bytes::new()),
    }
}

/// Returns documents as they were inserted: saved by their first change, or unchanged.
fn inserted(
    snapshot: &dyn Snapshot,
    collection: CollectionId,
    ids: std::ops::Range<u64>,
) -> Result<Vec<Bytes>> {
    let keys: Vec<Bytes> = ids.clone().map(|id| saved_key(collection, RecordId(id))).collect();
    let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
    let mut saved = Vec::with_capacity(keys.len());
    snapshot.get_many(Space::Log, &keys, &mut saved).map_err(from_storage)?;
    let missing = ids.zip(&saved).filter(|(_, saved)| saved.is_none());
    let keys: Vec<_> = missing.map(|(id, _)| doc_key(collection, RecordId(id))).collect();
    let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
    let mut stored = Vec::with_capacity(keys.len());
    snapshot.get_many(Space::Doc, &keys, &mut stored).map_err(from_storage)?;
    let mut stored = stored.into_iter();
    let found = saved.into_iter().map(|saved| match saved {
        Some(doc) => Ok(doc),
        None => {
            let value = stored.next().flatten().ok_or_else(history_lost)?;
            Ok(StoredDoc::decode(value)?.into_bytes())
        }
    });
    found.collect()
}

/// Returns the error for changes that the log no longer has.
pub fn history_lost() -> Error {
    let text = "Resume of change stream was not possible, as the resume point may no longer be in the oplog.";
    Error::new(ErrorCode::ChangeStreamHistoryLost, text)
        .with_label(Label::NonResumableChangeStreamError)
}

impl ChangeEntry {
    /// Returns the bytes of memory that the entry holds.
    pub fn held_bytes(&self) -> usize {
        let of = |image: &Option<Bytes>| image.as_ref().map_or(0, Bytes::len);
        let bytes = match &self.what {
            ChangeWhat::Insert { doc, .. } => doc.len(),
            ChangeWhat::Update { key, description, images: (before, after), .. } => {
                key.len() + description.len() + of(before) + of(after)
            }
            ChangeWhat::Replace { after, before, .. } => after.len() + of(before),
            ChangeWhat::Delete { key, before, .. } => key.len() + of(before),
            ChangeWhat::Catalog(entry) => entry.len(),
        };
        size_of::<ChangeEntry>() + bytes
    }

    /// Removes the documents before and after the change that the collection keeps for streams.
    pub fn forget_images(&mut self) {
        match &mut self.what {
            ChangeWhat::Update { images, .. } => *images = (None, None),
            ChangeWhat::Replace { before, .. } | ChangeWhat::Delete { before, .. } => {
                *before = None;
            }
            ChangeWhat::Insert { .. } | ChangeWhat::Catalog(_) => {}
        }
    }

    /// Returns the entry of a change of the catalog.
    pub fn catalog(&self) -> Option<Doc<'_>> {
        match &self.what {
            ChangeWhat::Catalog(entry) => Some(Doc::from_valid_bytes(entry)),
            _ => None,
        }
    }
}

impl LogBeginning {
    /// Returns the place of the first change that is not earlier than `time`; `None` if all are.
    ///
    /// # Errors
    /// The errors of the engine.
    pub fn seek(&self, snapshot: &dyn Snapshot, time: ClusterTime) -> Result<Option<ChangePlace>> {
        let found = quire_storage::seek_log(snapshot, self.version, time).map_err(from_storage)?;
        let Some(key) = found else { return Ok(None) };
        let (version, _) = split_log_key(&key).ok_or_else(|| damaged("a key of the log"))?;
        Ok(Some(ChangePlace::of_version(version)))
    }

    /// Returns the version and the cluster time of the last commit with changes before the version
    /// `before`; `None` if the log has none.
    ///
    /// # Errors
    /// The errors of the engine.
    pub fn last_before(
        &self,
        snapshot: &dyn Snapshot,
        before: u64,
    ) -> Result<Option<(u64, ClusterTime)>> {
        let (start, end) = (log_key(self.version.as_u64(), 0), log_key(before, 0));
        if start >= end {
            return Ok(None);
        }
        let request = ScanRequest::new(Space::Log, &start, &end).reverse().rows_max(1);
        let mut page = Page::default();
        snapshot.scan(&request, &mut page).map_err(from_storage)?;
        let Some((key, value)) = page.rows.first() else { return Ok(None) };
        let (version, _) = split_log_key(key).ok_or_else(|| damaged("a key of the log"))?;
        let time = value.first_chunk().map(|time| ClusterTime(u64::from_be_bytes(*time)));
        let time = time.ok_or_else(|| damaged("a record of the change log"))?;
        Ok(Some((version, time)))
    }

    /// Returns the cluster time of the last commit with changes up to `version`, at least that
    /// before the beginning.
    ///
    /// # Errors
    /// The errors of the engine.
    pub fn time_at(&self, snapshot: &dyn Snapshot, version: u64) -> Result<ClusterTime> {
        let last = self.last_before(snapshot, version.saturating_add(1))?;
        Ok(last.map_or(self.time, |(_, time)| time))
    }
}
