//! The record of the beginning of the change log, and what happens to the log at an open.

use std::sync::Arc;

use quire_catalog::{
    CATALOG_FORMAT, CollectionId, FormatRecord, format_key, log_key, number_in_key,
    prefix_of_dropped,
};
use quire_document::{Timestamp, Value, doc};
use quire_error::Result;
use quire_storage::{
    Bytes, ClusterTime, CommitOptions, Engine, Mode, Page, ScanRequest, Snapshot, Space, Txn,
    Version, begin, prefix_end,
};

use crate::ChangeLogMode;
use crate::failure::from_storage;
use crate::layout::{collection_end, damaged};
use crate::meta::{meta_doc, put_meta};

/// The beginning of the change log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogBeginning {
    /// The version of the first commit whose changes the log has.
    pub version: Version,
    /// The cluster time of the commit before.
    pub time: ClusterTime,
    /// True while the log has every change since the directory was created: it was begun with the
    /// directory, and nothing was removed since.
    pub whole: bool,
}

impl LogBeginning {
    /// Reads the beginning; `None` if there is no log.
    ///
    /// # Errors
    /// The errors of the engine; `DataCorruptionDetected`.
    pub fn read(snapshot: &dyn Snapshot) -> Result<Option<Self>> {
        let stored = snapshot.get(Space::Meta, &log_key()).map_err(from_storage)?;
        let Some(bytes) = stored else { return Ok(None) };
        let record = meta_doc(&bytes)?;
        match (record.get("begins"), record.get("time"), record.get("whole")) {
            (
                Some(Value::Int64(begins)),
                Some(Value::Timestamp(time)),
                Some(Value::Bool(whole)),
            ) => Ok(Some(LogBeginning {
                version: Version::from_u64(begins.unsigned_abs()),
                time: ClusterTime(time.to_u64()),
                whole,
            })),
            _ => Err(damaged("the beginning of the change log")),
        }
    }

    pub(super) fn write(self, txn: &mut Txn) -> Result<()> {
        let begins = i64::try_from(self.version.as_u64()).unwrap_or(i64::MAX);
        let time = Timestamp::from_u64(self.time.0);
        put_meta(txn, &log_key(), doc! { "begins": begins, "time": time, "whole": self.whole })
    }
}

/// Continues, begins or removes the log, as `mode` says. Returns true if there is one.
///
/// # Errors
/// The errors of the engine.
pub(crate) fn open(engine: &Arc<dyn Engine>, mode: ChangeLogMode) -> Result<bool> {
    let snapshot = engine.snapshot().map_err(from_storage)?;
    let found = LogBeginning::read(&*snapshot)?;
    drop(snapshot);
    match (mode, found) {
        (ChangeLogMode::On | ChangeLogMode::AsFound, Some(beginning)) => {
            // A crash may have come between the commit that moved the beginning and this.
            engine.truncate_log(beginning.version).map_err(from_storage)?;
            Ok(true)
        }
        (ChangeLogMode::On, None) => {
            begin_log(engine)?;
            Ok(true)
        }
        (ChangeLogMode::Off, Some(_)) => {
            discard(engine)?;
            Ok(false)
        }
        (ChangeLogMode::AsFound | ChangeLogMode::Off, None) => Ok(false),
    }
}

/// Begins a log, and raises the format of the catalog: an earlier program would change documents
/// without saving them.
fn begin_log(engine: &Arc<dyn Engine>) -> Result<()> {
    let mut txn = begin(engine, Mode::Write).map_err(from_storage)?;
    let next_id = match txn.get(Space::Meta, &format_key()).map_err(from_storage)? {
        Some(bytes) => FormatRecord::decode(meta_doc(&bytes)?)?.next_id,
        None => 1,
    };
    // An earlier log of this directory may have been removed: changes since its end are in no log.
    let whole = next_id == 1;
    let record = FormatRecord { format: CATALOG_FORMAT, next_id };
    put_meta(&mut txn, &format_key(), record.encode())?;
    let before = txn.commit(CommitOptions::buffered()).map_err(from_storage)?;
    let version = Version::from_u64(before.version.as_u64() + 1);
    let mut txn = begin(engine, Mode::Write).map_err(from_storage)?;
    LogBeginning { version, time: before.cluster_time, whole }.write(&mut txn)?;
    txn.commit(CommitOptions::synced()).map_err(from_storage)?;
    engine.truncate_log(version).map_err(from_storage)
}

/// Removes the log, the documents that it saves, and those of dropped collections.
///
/// # Errors
/// The errors of the engine.
pub(crate) fn discard(engine: &Arc<dyn Engine>) -> Result<()> {
    let mut txn = begin(engine, Mode::Write).map_err(from_storage)?;
    for id in dropped_collections(&txn)? {
        drop_collection(&mut txn, id)?;
    }
    let saved = Bytes::from_static(&[0xff]);
    txn.drop_range(Space::Log, saved, Bytes::new());
    txn.delete(Space::Meta, log_key().into()).map_err(from_storage)?;
    let committed = txn.commit(CommitOptions::synced()).map_err(from_storage)?;
    let after = Version::from_u64(committed.version.as_u64() + 1);
    engine.truncate_log(after).map_err(from_storage)
}

/// Drops the documents that the log has kept of a dropped collection.
pub(super) fn drop_collection(txn: &mut Txn, id: CollectionId) -> Result<()> {
    let start = Bytes::copy_from_slice(&id.to_bytes());
    txn.drop_range(Space::Doc, start, collection_end(id).into());
    let key = Bytes::copy_from_slice(&quire_catalog::dropped_key(id));
    txn.delete(Space::Meta, key).map_err(from_storage)
}

/// Returns the dropped collections whose documents the log keeps.
///
/// # Errors
/// The errors of the engine.
pub(crate) fn dropped_collections(snapshot: &dyn Snapshot) -> Result<Vec<CollectionId>> {
    let (start, end) = prefix_of_dropped();
    let (mut from, mut page, mut found) = (start.to_vec(), Page::default(), Vec::new());
    loop {
        let request = ScanRequest::new(Space::Meta, &from, &end).keys_only();
        snapshot.scan(&request, &mut page).map_err(from_storage)?;
        let numbers = page.rows.iter().filter_map(|(key, _)| number_in_key(key));
        found.extend(numbers.map(CollectionId));
        match &page.resume {
            Some(resume) => from = resume.to_vec(),
            None => return Ok(found),
        }
    }
}

/// Returns the end of the keys of a collection's documents and saved documents.
pub(super) fn range_of(id: CollectionId) -> (Vec<u8>, Vec<u8>) {
    let start = id.to_bytes().to_vec();
    let end = prefix_end(&start);
    (start, end)
}
