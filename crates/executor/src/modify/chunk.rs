//! Writes many documents in chunks.

use std::sync::Arc;
use std::time::{Duration, Instant};

use quire_catalog::time_series::BUCKETS;
use quire_catalog::{Collection, Namespace};
use quire_collections::{Attempt, ChunkSize, Failure, RecordId, StoredDoc, Writer};
use quire_error::{Error, Result};
use quire_storage::Committed;

use crate::UnitOfWork;
use crate::modify::points::make_records;
use crate::modify::statement::Statement;
use crate::record_set::RecordSet;

/// The largest number of documents in a chunk.
pub(crate) const CHUNK_DOCS: usize = 1000;
/// Returns the number of commits of an insert of `documents` documents, if no chunk ends early. Each bucket of a time-series
/// collection has one of its own.
pub fn insert_commits(namespace: &Namespace, documents: usize) -> usize {
    match namespace.collection().starts_with(BUCKETS) {
        true => documents,
        false => documents.div_ceil(CHUNK_DOCS),
    }
}

/// The buffered bytes at which a chunk ends.
pub(crate) const CHUNK_BYTES: usize = 4 << 20;
/// The time after which a chunk ends.
const CHUNK_TIME: Duration = Duration::from_millis(20);

/// Writes one document that exists now. Returns what to count.
pub(crate) type WriteOne<'f, T> = dyn FnMut(&mut Writer, &Collection, RecordId, &StoredDoc, &mut Statement) -> Attempt<Option<T>>
    + 'f;

/// Calls `write_one` once for every document that the statement's query finds, with the document's
/// state in the transaction that writes it. `on_commit` gets the results of a chunk's calls after
/// the chunk is committed. After an error the documents that come before the failed one stay written.
pub(crate) fn for_all<T>(
    unit: &mut dyn UnitOfWork,
    namespace: &Namespace,
    statement: &mut Statement,
    write_one: &mut WriteOne<'_, T>,
    on_commit: &mut dyn FnMut(Vec<T>),
) -> Result<Option<Committed>> {
    make_records(unit, namespace, statement)?;
    let Some(mut search) = statement.search(unit)? else { return Ok(None) };
    let mut written = RecordSet::default();
    let remember = search.meets_again;
    let mut last = None;
    let mut size = ChunkSize::new(CHUNK_DOCS);
    let mut ids: Vec<RecordId> = Vec::new();
    loop {
        ids.clear();
        let found = search.next(unit, statement, CHUNK_DOCS)?;
        for id in found.records {
            if !remember || !written.contains(id, &statement.env)? {
                ids.push(id);
            }
        }
        let mut rest = ids.as_slice();
        while !rest.is_empty() {
            let interrupt = Arc::clone(&statement.env.params.interrupt);
            let mut is_again = false;
            let (chunk, committed) = unit.write_with(&interrupt, |writer| {
                if std::mem::replace(&mut is_again, true) {
                    size.lost();
                }
                let found = writer.collection(namespace);
                let Some(collection) = found.filter(|found| found.id == search.collection) else {
                    return Ok(Chunk { done: rest.len(), ..Chunk::new() });
                };
                let part = rest.get(..size.rows()).unwrap_or(rest);
                writer.gathered(&collection, |writer| {
                    write_chunk(writer, &collection, part, statement, write_one)
                })
            })?;
            size.won();
            on_commit(chunk.answers);
            if remember {
                for id in chunk.written {
                    written.insert(id, &statement.env)?;
                }
            }
            if let Some(error) = chunk.error {
                return Err(error);
            }
            last = committed.or(last);
            rest = rest.get(chunk.done..).unwrap_or(&[]);
        }
        if let Some(error) = found.failed {
            return Err(error);
        }
        if search.is_done() {
            search.note_examined(&mut statement.examined);
            return Ok(last);
        }
    }
}

/// The outcome for some candidates.
struct Chunk<T> {
    /// The results of the calls.
    answers: Vec<T>,
    /// The number of candidates that are done.
    done: usize,
    /// The records that were written.
    written: Vec<RecordId>,
    /// The error that ended the statement; earlier writes are kept.
    error: Option<Error>,
}

impl<T> Chunk<T> {
    fn new() -> Self {
        Chunk { answers: Vec::new(), done: 0, written: Vec::new(), error: None }
    }
}

fn write_chunk<T>(
    writer: &mut Writer,
    collection: &Collection,
    ids: &[RecordId],
    statement: &mut Statement,
    write_one: &mut WriteOne<'_, T>,
) -> Attempt<Chunk<T>> {
    let begun = Instant::now();
    let mut chunk = Chunk::new();
    // A transaction that overwrites its own writes buffers less than before.
    let bytes_before = writer.buffered_bytes();
    for id in ids {
        chunk.done += 1;
        let Some(doc) = writer.view().get(collection, *id)? else { continue };
        match write_one(writer, collection, *id, &doc, statement) {
            Ok(None) => {}
            Ok(Some(answer)) => {
                chunk.answers.push(answer);
                chunk.written.push(*id);
            }
            Err(Failure::Error(error)) => {
                chunk.error = Some(error);
                break;
            }
            Err(conflict) => return Err(conflict),
        }
        let full = writer.buffered_bytes().saturating_sub(bytes_before) >= CHUNK_BYTES
            || begun.elapsed() >= CHUNK_TIME
            || writer.is_budget_low();
        if full {
            break;
        }
    }
    Ok(chunk)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modify::statement::Query;
    use crate::modify::{InsertOptions, insert_many};
    use crate::params::ExecParams;
    use crate::unit::testing::Committing;
    use quire_collections::{Store, StoreOptions};
    use quire_document::{Doc, DocBuf, doc};
    use quire_storage::{CommitOptions, Interrupt};
    use std::cell::Cell;

    const DOCS: usize = 2000;
    /// In the test, a chunk with more documents than this meets a conflict.
    const UNDISTURBED: usize = 9;

    /// Updates and deletes of many documents repeated a whole chunk after each conflict: beside
    /// writers that change one document of every large chunk they never ended.
    #[test]
    fn a_statement_ends_beside_writers_that_touch_every_large_chunk() {
        let store =
            Store::open(quire_storage::open_memory().unwrap(), StoreOptions::default()).unwrap();
        let namespace = Namespace::parse("db.c").unwrap();
        let interrupt = Interrupt::new();
        let docs: Vec<DocBuf> = (0..DOCS).map(|id| doc! { "_id": (id as i32), "n": 0 }).collect();
        let docs: Vec<Doc<'_>> = docs.iter().map(DocBuf::as_doc).collect();
        let mut unit = Committing(&store);
        insert_many(&mut unit, &namespace, &docs, InsertOptions::ORDERED, &interrupt).unwrap();

        let query =
            Query::new("db.c", Doc::empty(), Doc::empty(), None, &Default::default(), false);
        let params = ExecParams::new(Interrupt::new(), 0);
        let mut statement = Statement::new(query, None, Doc::empty(), None, &params).unwrap();
        let (mut calls, mut in_chunk, mut attempts, mut conflicts, mut written) = (0, 0, 0, 0, 0);
        let last = Cell::new(None);
        let ended = for_all(
            &mut unit,
            &namespace,
            &mut statement,
            &mut |writer, collection, id, doc, _| {
                calls += 1;
                assert!(calls < 4 * DOCS, "the statement does its work again and again");
                let next = last.replace(Some(id.0)).map(|last: u64| last + 1);
                in_chunk = if next == Some(id.0) { in_chunk + 1 } else { 1 };
                attempts += usize::from(in_chunk == 1);
                // A different document each time, because a key that lost two conflicts is
                // reserved.
                if in_chunk == UNDISTURBED + attempts {
                    conflicts += 1;
                    let other = doc! { "_id": (id.0 as i32 - 1), "n": conflicts };
                    store.write(&CommitOptions::buffered(), &interrupt, |writer| {
                        writer.replace(collection, id, doc.as_doc(), other.as_doc())
                    })?;
                }
                let new = doc! { "_id": (id.0 as i32 - 1), "n": -1 };
                writer.replace(collection, id, doc.as_doc(), new.as_doc())?;
                Ok(Some(()))
            },
            &mut |answers: Vec<()>| {
                written += answers.len();
                last.set(None);
            },
        );
        assert!(ended.unwrap().is_some());
        assert_eq!(written, DOCS);
        assert!(conflicts > 3);
    }
}
