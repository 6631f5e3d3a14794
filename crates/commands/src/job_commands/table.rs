//! Where jobs are stored: a definition for each in `admin.system.jobs`, and for an active job a row in
//! the table of jobs. Both change in one commit. A dump has definitions only, so that a restored job is
//! paused until somebody resumes it.

use super::definition::{Definition, When, counter, key};
use super::lanes;
use crate::frame::context::Context;
use crate::frame::lane_name::lane_id;
use quire_catalog::Namespace;
use quire_collections::{
    Attempt, CollectionCursor, Job, JobId, Record, Store, Writer, prepare_insert,
};
use quire_document::{Binary, Doc, DocBuf, Timestamp, Value, doc};
use quire_error::{Error, ErrorCode, Result};
use quire_storage::Direction;
use std::sync::Arc;

/// The kind of the rows.
pub const KIND: &str = "user";
/// The collection of the definitions.
const DEFINITIONS: &str = "admin.system.jobs";
/// The definitions that are read at a time.
const PAGE_DOCS: usize = 256;
const PAGE_BYTES: usize = 1 << 20;

/// A stored job.
pub struct Stored {
    pub definition: Definition,
    /// The document in `admin.system.jobs`.
    pub doc: DocBuf,
    /// The rows of an active job: one, or one for each lane. A paused job has none.
    pub rows: Vec<Job>,
}

/// Returns the identity of the row of a job.
pub fn id(db: &str, name: &str) -> JobId {
    JobId::new(KIND, key(db, name))
}

/// Returns the namespace of the definitions.
pub fn definitions() -> Result<Namespace> {
    Namespace::parse(DEFINITIONS)
}

/// Returns a job as it is stored now; `None` if there is none of this key.
///
/// # Errors
/// The errors of reading, and of the definition.
pub fn find(store: &Arc<Store>, key: &str) -> Result<Option<Stored>> {
    let view = store.read_view()?;
    let view = view.view();
    let Some(collection) = view.collection(&definitions()?) else { return Ok(None) };
    let found = view.get_by_id(&Arc::clone(collection), Value::String(key))?;
    let Some(found) = found else { return Ok(None) };
    let doc = DocBuf::from_valid_bytes(found.doc.into_bytes().to_vec());
    let definition = Definition::of_stored(doc.as_doc())?;
    let rows = rows(&definition, |id| store.job(id))?;
    Ok(Some(Stored { definition, doc, rows }))
}

/// Returns the rows of a job as `row` finds them. None are returned if one is missing.
///
/// # Errors
/// Those of `row`.
pub fn rows<E>(
    definition: &Definition,
    mut row: impl FnMut(&JobId) -> Result<Option<Job>, E>,
) -> Result<Vec<Job>, E> {
    let mut rows = Vec::new();
    for id in ids(definition) {
        match row(&id)?.filter(|row| is_of(row, definition)) {
            Some(row) => rows.push(row),
            None => return Ok(Vec::new()),
        }
    }
    Ok(rows)
}

/// Returns the identities of the rows of a job while it is active.
pub fn ids(definition: &Definition) -> impl Iterator<Item = JobId> + use<> {
    let first = id(&definition.db, &definition.name);
    (0..definition.plan.rows()).map(move |lane| lane_id(&first, lane))
}

/// Returns the documents of all definitions.
///
/// # Errors
/// The errors of reading.
pub fn all(store: &Arc<Store>) -> Result<Vec<DocBuf>> {
    let view = store.read_view()?;
    let view = view.view();
    let Some(collection) = view.collection(&definitions()?).map(Arc::clone) else {
        return Ok(Vec::new());
    };
    let mut cursor = CollectionCursor::new(&collection, Direction::Forward);
    let (mut docs, mut page, mut more) = (Vec::new(), Vec::new(), true);
    while more {
        page.clear();
        more = cursor.next_page(&view, &collection, PAGE_DOCS, PAGE_BYTES, &mut page)?;
        docs.extend(page.iter().map(|record| record.doc.as_doc().to_owned()));
    }
    Ok(docs)
}

/// Returns true if a row is that of the job with this definition, and not of an earlier one.
pub fn is_of(row: &Job, definition: &Definition) -> bool {
    matches!(row.parameters.get("uuid"), Some(Value::Binary(uuid)) if uuid.bytes == definition.uuid)
}

/// Returns the row of a lane of a job that begins or goes on at a position.
pub fn row_of(definition: &Definition, lane: u32, position: DocBuf, due_ms: i64) -> Job {
    let uuid = Value::Binary(Binary { subtype: 4, bytes: &definition.uuid });
    let parameters = doc! { "uuid": uuid };
    let id = lane_id(&id(&definition.db, &definition.name), lane);
    Job { position, due_ms, ..Job::new(id, parameters, definition.created_ms) }
}

/// Returns the rows of a job all of whose lanes begin at a position.
pub fn rows_at(definition: &Definition, position: &DocBuf, due_ms: i64) -> Vec<Job> {
    let row = |lane| row_of(definition, lane, position.clone(), due_ms);
    (0..definition.plan.rows()).map(row).collect()
}

/// Returns the number of runs of all rows of a job.
pub fn runs(rows: &[Job]) -> i64 {
    rows.iter().map(|row| counter(row.position.as_doc(), "runs")).sum()
}

/// Returns the position of a job that begins now, and when it is due. `time` is the cluster time.
///
/// # Errors
/// 2 for a schedule without a next time.
pub fn beginning(definition: &Definition, now_ms: i64, time: u64) -> Result<(DocBuf, i64)> {
    match &definition.plan.when {
        When::Schedule(schedule) => {
            let next = schedule.next_after(now_ms);
            let next = next.ok_or_else(|| Error::bad_value("the schedule has no next time"))?;
            Ok((doc! { "next": Value::Date(next) }, next))
        }
        When::Changes(changes) => {
            let from = changes.start.unwrap_or_else(|| time.saturating_add(1));
            Ok((doc! { "from": (Timestamp::from_u64(from)) }, 0))
        }
    }
}

/// Returns true for the position of a schedule whose next run was asked for, or has begun.
pub fn is_under_way(position: Doc<'_>) -> bool {
    ["asked", "due", "spilled"].into_iter().any(|name| position.contains(name))
}

/// Writes the document of a definition. `extra` has the fields of a paused job.
pub fn document(definition: &Definition, state: &str, extra: Doc<'_>) -> DocBuf {
    DocBuf::build(|stored| {
        stored.append("_id", definition.key().as_str());
        stored.append("db", definition.db.as_str()).append("name", definition.name.as_str());
        stored.append("uuid", Value::Binary(Binary { subtype: 4, bytes: &definition.uuid }));
        if let Some(owner) = &definition.owner {
            let mut shown = stored.document("owner");
            shown.append("user", owner.user.as_str()).append("db", owner.db.as_str());
        }
        stored.append("created", Value::Date(definition.created_ms));
        stored.append("state", state).append_all(extra);
        stored.append("definition", &definition.given);
    })
}

/// The definition with a key as a writer sees it.
fn stored(
    writer: &mut Writer,
    key: &str,
) -> Attempt<Option<(Arc<quire_catalog::Collection>, Record)>> {
    let Some(collection) = writer.collection(&definitions()?) else { return Ok(None) };
    let found = writer.view().get_by_id(&collection, Value::String(key))?;
    Ok(found.map(|record| (collection, record)))
}

/// Returns the document and the rows of a job as a writer sees them: both can have changed since a
/// command read them. `None` if the job was dropped.
///
/// # Errors
/// The errors of reading.
pub fn read(writer: &mut Writer, definition: &Definition) -> Attempt<Option<(DocBuf, Vec<Job>)>> {
    let Some((_, record)) = stored(writer, &definition.key())? else { return Ok(None) };
    let doc = DocBuf::from_valid_bytes(record.doc.into_bytes().to_vec());
    let rows = rows(definition, |id| writer.job(id))?;
    Ok(Some((doc, rows)))
}

/// Returns true if the stored definition of a job is still this document.
///
/// # Errors
/// The errors of reading.
pub fn is_current(writer: &mut Writer, doc: Doc<'_>) -> Attempt<bool> {
    let key = doc.get("_id").and_then(|id| id.as_str()).unwrap_or_default();
    let found = stored(writer, key)?;
    Ok(found.is_some_and(|(_, record)| record.doc.as_doc().as_bytes() == doc.as_bytes()))
}

/// Replaces the definition of a job, or adds it.
///
/// # Errors
/// The errors of writing.
pub fn put(writer: &mut Writer, doc: Doc<'_>) -> Attempt<()> {
    let key = doc.get("_id").and_then(|id| id.as_str()).unwrap_or_default().to_owned();
    remove(writer, &key)?;
    let namespace = definitions()?;
    let Some(collection) = writer.collection(&namespace) else {
        return Err(Error::internal(format!("{namespace} does not exist")).into());
    };
    let (store, mut buffer) = (Arc::clone(writer.store()), Vec::new());
    let prepared = prepare_insert(&store, doc, &mut buffer)?;
    writer.insert(&collection, prepared).map(drop)
}

/// Returns true if a job has this key.
///
/// # Errors
/// The errors of reading.
pub fn exists(writer: &mut Writer, key: &str) -> Attempt<bool> {
    Ok(stored(writer, key)?.is_some())
}

/// Removes the definition of a job. Returns false if there is none.
///
/// # Errors
/// The errors of writing.
pub fn remove(writer: &mut Writer, key: &str) -> Attempt<bool> {
    let Some((collection, record)) = stored(writer, key)? else { return Ok(false) };
    writer.delete(&collection, record.id, record.doc.as_doc())?;
    Ok(true)
}

/// Makes an active job paused: its rows leave the table, and their positions stand in its definition.
/// `why` is the reason if the server pauses it. Does nothing if the job is paused, or is another one.
///
/// # Errors
/// The errors of writing.
pub fn pause(writer: &mut Writer, definition: &Definition, why: Option<&str>) -> Attempt<()> {
    let rows = rows(definition, |id| writer.job(id))?;
    let Some(first) = rows.first() else { return Ok(()) };
    let extra = DocBuf::build(|extra| {
        if let Some(why) = why {
            extra.append("reason", why);
        }
        extra.append("position", &first.position).append("steps", first.steps);
        extra.append("done", first.done);
        let kept = lanes::kept(&rows);
        if !kept.is_empty() {
            let mut list = extra.array("lanes");
            kept.iter().for_each(|lane| _ = list.push(lane));
        }
    });
    put(writer, document(definition, "paused", extra.as_doc()).as_doc())?;
    rows.iter().try_for_each(|row| writer.delete_job(&row.id))
}

impl Context<'_> {
    /// Returns the job of the command's database that the first field names.
    ///
    /// # Errors
    /// 26 NamespaceNotFound if there is none.
    pub fn named_job(&self, body: Doc<'_>) -> Result<Stored> {
        let name = job_name(body)?;
        let found = find(&self.service.store, &key(self.db, name))?;
        found.ok_or_else(|| not_found(self.db, name))
    }

    /// Changes definitions and rows in one commit, and wakes those that run jobs.
    ///
    /// # Errors
    /// The errors of `change` and of the commit.
    pub fn change_jobs<T>(&self, change: impl FnMut(&mut Writer) -> Attempt<T>) -> Result<T> {
        let _writing = self.service.write_gate.enter(&self.interrupt)?;
        let mut unit = self.server_unit()?;
        unit.own_collection(&definitions()?, &self.interrupt)?;
        let changed = unit.write_durably(&self.interrupt, change)?;
        self.service.store.job_bell().ring();
        Ok(changed)
    }
}

/// Returns the name in the first field of a command.
///
/// # Errors
/// 2 for an empty name, one of more than 200 bytes, and one with a zero byte.
pub fn job_name(body: Doc<'_>) -> Result<&str> {
    let name = body.first().and_then(|first| first.value().as_str()).unwrap_or_default();
    if name.is_empty() || name.contains('\0') || name.len() > 200 {
        let text = "a job has a name of 1 to 200 bytes without a zero byte";
        return Err(Error::bad_value(text));
    }
    Ok(name)
}

/// Returns the error for a job that does not exist.
pub fn not_found(db: &str, name: &str) -> Error {
    let text = format!("the database {db} has no job '{name}'");
    Error::new(ErrorCode::NamespaceNotFound, text)
}
