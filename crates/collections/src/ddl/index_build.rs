//! Filling announced indexes. Since the announcement every write maintains them, so what is
//! left is what was there before: copied in chunks that guard each record, then published.

use std::sync::Arc;

use quire_catalog::{Collection, Index, IndexId, IndexState, Namespace};
use quire_error::{Error, ErrorCode, Result};
use quire_storage::{CommitOptions, Direction, Interrupt, KeyTurn, Space};

use super::{drop_index_data, next_epoch, put_collection};
use crate::entry::EntryKeys;
use crate::layout::doc_key;
use crate::{
    Attempt, CollectionCursor, Failure, Record, RecordId, Store, Writer, WriterMode,
    from_interruption,
};

const CHUNK_ROWS: usize = 1000;
const CHUNK_BYTES: usize = 4 << 20;

impl Store {
    /// Fills the indexes and publishes them. On an error they stay announced; the caller
    /// removes them.
    pub(super) fn build_indexes(
        self: &Arc<Self>,
        collection: &Collection,
        ids: &[IndexId],
        interrupt: &Arc<Interrupt>,
        options: &CommitOptions,
    ) -> Result<()> {
        let mut from = RecordId(0);
        let mut rows = CHUNK_ROWS;
        let mut turn = None;
        loop {
            interrupt.check().map_err(from_interruption)?;
            match self.fill_chunk(collection, ids, from, rows, turn.as_ref()) {
                Ok(Some(next)) => {
                    turn = None;
                    from = next;
                    rows = (rows * 2).min(CHUNK_ROWS);
                }
                Ok(None) => break,
                // Somebody changed a record of the chunk: try fewer, down to one, which can
                // only lose against writes to itself.
                Err(failure @ Failure::Conflict(_)) => {
                    turn = self.before_retry(failure, turn, interrupt)?;
                    rows = (rows / 4).max(1);
                }
                Err(Failure::Error(error)) => return Err(error),
            }
        }
        self.publish_indexes(&collection.namespace, ids, options)
    }

    /// Adds the entries of the next records. The record to go on from, or `None` at the end.
    fn fill_chunk(
        self: &Arc<Self>,
        collection: &Collection,
        ids: &[IndexId],
        from: RecordId,
        rows: usize,
        turn: Option<&KeyTurn>,
    ) -> Attempt<Option<RecordId>> {
        let mut writer = self.writer(WriterMode::Statement)?;
        writer.set_turn(turn);
        let current = current(&writer, collection, ids)?;
        let indexes: Vec<Arc<Index>> =
            ids.iter().filter_map(|id| current.index_by_id(*id)).cloned().collect();
        let mut cursor = CollectionCursor::between(&current, Direction::Forward, Some(from), None);
        let mut records: Vec<Record> = Vec::new();
        cursor.next_page(&writer.view(), &current, rows, CHUNK_BYTES, &mut records)?;
        let Some(last) = records.last().map(|record| record.id) else { return Ok(None) };
        writer.guard(&current)?;
        let mut keys = EntryKeys::default();
        for record in &records {
            writer.txn_mut().guard(Space::Doc, &doc_key(current.id, record.id));
            for index in &indexes {
                let doc = record.doc.as_doc();
                writer.add_document(&current, index, record.id, doc, &mut keys)?;
            }
        }
        let done = cursor.is_done() || last == RecordId::MAX;
        writer.commit(CommitOptions::buffered())?;
        Ok((!done).then_some(RecordId(last.0.saturating_add(1))))
    }

    fn publish_indexes(
        &self,
        namespace: &Namespace,
        ids: &[IndexId],
        options: &CommitOptions,
    ) -> Result<()> {
        self.change_catalog(options, |txn, catalog, _| {
            let collection = catalog.lookup(namespace).ok_or_else(aborted)?;
            let mut next = next_epoch(collection);
            let mut found = 0;
            for index in &mut next.indexes {
                if ids.contains(&index.id) {
                    Arc::make_mut(index).state = IndexState::Ready;
                    found += 1;
                }
            }
            if found != ids.len() {
                return Err(aborted());
            }
            put_collection(txn, &next)?;
            Ok((Some(catalog.with(Arc::new(next))), ()))
        })
    }

    /// Removes indexes by number, as far as they are there.
    pub(crate) fn remove_indexes(
        &self,
        namespace: &Namespace,
        ids: &[IndexId],
        options: &CommitOptions,
    ) -> Result<()> {
        self.change_catalog(options, |txn, catalog, _| {
            let Some(collection) = catalog.lookup(namespace) else { return Ok((None, ())) };
            let doomed: Vec<_> =
                collection.indexes.iter().filter(|index| ids.contains(&index.id)).collect();
            if doomed.is_empty() {
                return Ok((None, ()));
            }
            doomed.iter().try_for_each(|index| drop_index_data(txn, index))?;
            let mut next = next_epoch(collection);
            next.indexes.retain(|index| !ids.contains(&index.id));
            put_collection(txn, &next)?;
            Ok((Some(catalog.with(Arc::new(next))), ()))
        })
    }
}

/// The collection as the writer's catalog has it, with the indexes still announced.
fn current(writer: &Writer, collection: &Collection, ids: &[IndexId]) -> Attempt<Arc<Collection>> {
    let now = writer.catalog().lookup(&collection.namespace).ok_or_else(aborted)?;
    if now.id != collection.id || ids.iter().any(|id| now.index_by_id(*id).is_none()) {
        return Err(aborted().into());
    }
    Ok(Arc::clone(now))
}

fn aborted() -> Error {
    Error::new(
        ErrorCode::IndexBuildAborted,
        "the index build was aborted: the collection or the index was dropped",
    )
}
