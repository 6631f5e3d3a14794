//! Inserts documents; outside a transaction in chunks.

use std::sync::Arc;

use quire_catalog::time_series::BUCKETS;
use quire_catalog::{Collection, Namespace};
use quire_collections::{
    Attempt, ChunkSize, Effect, EmptyTimestamps, Failure, Keep, Store, Writer, prepare_insert,
    prepare_insert_with,
};
use quire_document::Doc;
use quire_error::{Error, ErrorClass, Result};
use quire_storage::Interrupt;
use smallvec::SmallVec;

use crate::UnitOfWork;
use crate::modify::chunk::{CHUNK_BYTES, CHUNK_DOCS};
use crate::modify::insert_buckets::insert_buckets;
use crate::modify::insert_outcome::InsertOutcome;
use crate::modify::is_conflict;

/// How the documents of an insert are stored.
#[derive(Clone, Copy, Debug)]
pub struct InsertOptions {
    /// True to end with the first error.
    pub ordered: bool,
    /// What happens to empty timestamps.
    pub timestamps: EmptyTimestamps,
}

impl InsertOptions {
    /// An ordered insert that fills in empty timestamps.
    pub const ORDERED: InsertOptions =
        InsertOptions { ordered: true, timestamps: EmptyTimestamps::Filled };
}

/// Inserts documents in order; creates the collection if it does not exist. Those for `system.buckets.X` are buckets, whose
/// points are inserted into `X`. The errors of single
/// documents are in the result. An error of the statement (interrupted, out of space) is returned
/// as an error; earlier commits stay.
pub fn insert_many(
    unit: &mut dyn UnitOfWork,
    namespace: &Namespace,
    docs: &[Doc<'_>],
    options: InsertOptions,
    interrupt: &Arc<Interrupt>,
) -> Result<InsertOutcome> {
    let ordered = options.ordered;
    if namespace.collection().starts_with(BUCKETS) {
        return insert_buckets(unit, namespace, docs, ordered, interrupt);
    }
    unit.admit_inserts(namespace)?;
    let statements: SmallVec<[i32; 8]> = unit.statements().into();
    let mut outcome = InsertOutcome::default();
    let mut at = 0;
    let mut size = ChunkSize::new(CHUNK_DOCS);
    while at < docs.len() {
        let rest = docs.get(at..).unwrap_or(&[]);
        let wanted = |store: &Store| refused(store, rest, ordered).is_none();
        if let Err(error) = unit.ensure_collection(namespace, interrupt, &wanted) {
            // As in mongod, this is an error of the document that needed the collection, and of
            // each later one if they are tried too.
            let failed = if ordered { at..at + 1 } else { at..docs.len() };
            outcome.errors.extend(failed.map(|place| (place, copy_of(&error))));
            break;
        }
        let ids = statements.get(at..).unwrap_or(&[]);
        let mut is_again = false;
        let (chunk, committed) = unit.write_with(interrupt, |writer| {
            if std::mem::replace(&mut is_again, true) {
                size.lost();
            }
            let part = rest.get(..size.rows()).unwrap_or(rest);
            insert_chunk(writer, namespace, part, ids, options)
        })?;
        size.won();
        let Some(chunk) = chunk else {
            if let Some(errors) = refused(unit.store(), rest, ordered) {
                outcome.errors.extend(errors.into_iter().zip(at..).map(|(error, at)| (at, error)));
                break;
            }
            continue;
        };
        outcome.inserted += chunk.inserted;
        outcome.committed = committed.or(outcome.committed);
        let stop = ordered && !chunk.errors.is_empty();
        outcome.errors.extend(chunk.errors.into_iter().map(|(place, error)| (at + place, error)));
        if stop {
            break;
        }
        at += chunk.done;
    }
    Ok(outcome)
}

/// Returns the errors of documents none of which can be stored, so that their collection need not
/// be created; `None` if one of them can. If the documents are ordered, only the first is tried.
fn refused(store: &Store, docs: &[Doc<'_>], ordered: bool) -> Option<Vec<Error>> {
    let tried = if ordered { docs.get(..1) } else { Some(docs) };
    let mut buffer = Vec::new();
    let tried = tried.unwrap_or_default().iter();
    tried.map(|doc| prepare_insert(store, *doc, &mut buffer).err()).collect()
}

fn copy_of(error: &Error) -> Error {
    let copy = Error::new(error.code(), error.message());
    match error.details() {
        Some(details) => copy.with_details(details),
        None => copy,
    }
}

struct Chunk {
    inserted: u64,
    errors: Vec<(usize, Error)>,
    done: usize,
}

fn insert_chunk(
    writer: &mut Writer,
    namespace: &Namespace,
    docs: &[Doc<'_>],
    statements: &[i32],
    options: InsertOptions,
) -> Attempt<Option<Chunk>> {
    let Some(collection) = writer.collection(namespace) else { return Ok(None) };
    let insert = |writer: &mut Writer| insert_into(writer, &collection, docs, statements, options);
    match docs {
        [_] => insert(writer).map(Some),
        _ => writer.gathered(&collection, insert).map(Some),
    }
}

fn insert_into(
    writer: &mut Writer,
    collection: &Collection,
    docs: &[Doc<'_>],
    statements: &[i32],
    options: InsertOptions,
) -> Attempt<Chunk> {
    let store = Arc::clone(writer.store());
    let mut chunk = Chunk { inserted: 0, errors: Vec::new(), done: 0 };
    let mut buffer = Vec::new();
    let bytes_before = writer.buffered_bytes();
    for (at, doc) in docs.iter().enumerate() {
        chunk.done = at + 1;
        let prepared = prepare_insert_with(&store, *doc, options.timestamps, &mut buffer);
        let ended = prepared.map_err(Failure::from).and_then(|doc| {
            writer.insert(collection, doc)?;
            if let Some(statement) = statements.get(at)
                && let Some(id) = doc.get("_id")
            {
                writer.remember(*statement, Effect::Insert, Keep::Id(id));
            }
            Ok(())
        });
        match ended {
            Ok(()) => chunk.inserted += 1,
            Err(failure) if is_conflict(&failure) => return Err(failure),
            Err(failure) => {
                let error = Error::from(failure);
                if error.code().is_a(ErrorClass::Interruption) {
                    return Err(error.into());
                }
                chunk.errors.push((at, error));
                if options.ordered {
                    break;
                }
            }
        }
        if writer.buffered_bytes() - bytes_before >= CHUNK_BYTES || writer.is_budget_low() {
            break;
        }
    }
    Ok(chunk)
}
