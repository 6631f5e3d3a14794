//! Builds a declared pattern: each step computes some documents of its collection anew. Writes keep
//! the pattern meanwhile, so one pass is enough. A second pass looks for documents that the pattern
//! would refuse; then the pattern is ready.

use std::sync::Arc;

use quire_catalog::patterns::{Pattern, PatternMeters, PatternState};
use quire_catalog::{Collection, Uuid};
use quire_document::{Value, doc};
use quire_error::Result;
use quire_storage::{CommitOptions, Direction, Interrupt};

use super::step::{Progress, Rest, STEP_ROWS_MAX, Stepped};
use crate::ddl::{CLIENT_BUILD_MS, build_job};
use crate::failure::Attempt;
use crate::job::Job;
use crate::rules::RuleWriter;
use crate::rules::patterns::{Settled, Upkeep, named, upkeep};
use crate::{CollectionCursor, Record, RecordId, Store, WritePolicy, Writer};

/// The bytes of the documents of a step.
const STEP_BYTES: usize = 2 << 20;

/// The pattern that a job builds.
struct Build {
    owner: Arc<Collection>,
    pattern: Arc<Pattern>,
    /// True if documents that the pattern reads are gone since it was ready.
    is_gone: bool,
}

/// Runs a step of a job of the kind `patternBuild`, which writes at most `rows_max` documents.
///
/// # Errors
/// Those of the engine. What the pattern cannot write stops the pattern, and ends the job.
pub fn build_pattern_step(writer: &mut Writer, job: &Job, rows_max: usize) -> Attempt<Progress> {
    let Some(build) = Build::of(writer, job) else { return Ok(Progress::end(0)) };
    let Some(upkeep) = upkeep(&build.pattern) else {
        build.set_state(writer, &PatternState::Ready)?;
        return Ok(Progress::end(0));
    };
    let is_check = job.position.get("check").is_some();
    let from = job.position.get("from").and_then(|from| from.exact_i64()).unwrap_or(0) as u64;
    let (records, more) = build.page(writer, RecordId(from), rows_max)?;
    let done = records.len() as u64;
    let next = records.last().map_or(from, |last| last.id.0 + 1);
    let ended = match is_check {
        true => build.check(&*upkeep, &records, writer),
        false => build.apply(&*upkeep, &records, writer),
    };
    match ended {
        Ok(None) => {}
        Ok(Some(reason)) => {
            build.set_state(writer, &PatternState::Stopped(reason))?;
            return Ok(Progress::end(0));
        }
        Err(failure) => return Err(failure),
    }
    let position = |from: u64| match is_check {
        true => doc! { "from": from as i64, "check": true },
        false => doc! { "from": from as i64 },
    };
    if more {
        return Ok(Progress { position: position(next), done, rest: Rest::More });
    }
    if is_check {
        build.set_state(writer, &PatternState::Ready)?;
        return Ok(Progress::end(done));
    }
    if done > 0 {
        // The next step finds nothing more, and changes the state without writing anything else.
        return Ok(Progress { position: position(next), done, rest: Rest::More });
    }
    build.set_state(writer, &PatternState::Checking)?;
    let position = doc! { "from": 0_i64, "check": true };
    Ok(Progress { position, done, rest: Rest::More })
}

/// Runs the build of a pattern in the thread of the client that has declared it, until the pattern is
/// ready or stopped. The job is in the table: after an error the runner goes on with it.
///
/// # Errors
/// The errors of a step, and of an interrupt.
pub fn build_pattern(
    store: &Arc<Store>,
    (owner, pattern): (&Collection, &Pattern),
    interrupt: &Arc<Interrupt>,
) -> Result<()> {
    let id = build_job(&owner.uuid, pattern);
    let Some(mut job) = store.jobs(|_| {})?.into_iter().find(|job| job.id == id) else {
        return Ok(());
    };
    loop {
        let stepped = store.step_job(&mut job, &mut true, interrupt, |writer, job| {
            let mut progress = build_pattern_step(writer, job, STEP_ROWS_MAX)?;
            if progress.rest == Rest::More {
                let now_ms = i64::try_from(writer.now_ms()).unwrap_or(0);
                progress.rest = Rest::Until(now_ms.saturating_add(CLIENT_BUILD_MS));
            }
            Ok(progress)
        })?;
        if stepped != Stepped::Goes {
            return Ok(());
        }
    }
}

impl Build {
    /// Returns the pattern of a job; `None` if it is gone or was declared anew.
    fn of(writer: &Writer, job: &Job) -> Option<Self> {
        let Some(Value::Binary(uuid)) = job.parameters.get("collection") else { return None };
        let uuid = Uuid(uuid.bytes.try_into().ok()?);
        let owner = writer.catalog().by_uuid(&uuid).cloned()?;
        let name = job.parameters.get("pattern")?.as_str()?;
        let pattern = Arc::clone(owner.patterns.named(name)?);
        let is_current = job.parameter("generation") == Some(pattern.generation as i64);
        let is_gone = job.parameters.get("gone").and_then(|gone| gone.as_bool()) == Some(true);
        is_current.then_some(Build { owner, pattern, is_gone })
    }

    /// Returns the next documents, and true if there may be more.
    fn page(
        &self,
        writer: &Writer,
        from: RecordId,
        rows_max: usize,
    ) -> Attempt<(Vec<Record>, bool)> {
        let mut records = Vec::new();
        let mut cursor =
            CollectionCursor::between(&self.owner, Direction::Forward, Some(from), None);
        let more =
            cursor.next_page(&writer.view(), &self.owner, rows_max, STEP_BYTES, &mut records)?;
        Ok((records, more))
    }

    /// Writes the documents that differ. Returns why the pattern must stop, if it must.
    fn apply(
        &self,
        upkeep: &dyn Upkeep,
        records: &[Record],
        writer: &mut Writer,
    ) -> Attempt<Option<String>> {
        writer.set_policy(WritePolicy::Derived);
        for record in records {
            let doc = record.doc.as_doc();
            let settled = match self.is_gone {
                true => upkeep.settled(&self.owner, doc, writer),
                false => upkeep.recomputed(&self.owner, doc, writer).map(Settled::from),
            };
            let written = match settled {
                Ok(Settled::Same) => continue,
                Ok(Settled::Changed(new)) => {
                    let by = Some(&self.pattern);
                    RuleWriter::replace(writer, &self.owner, record.id, (doc, new.as_doc()), by)
                }
                Ok(Settled::Deleted) => RuleWriter::delete(writer, &self.owner, record.id, doc),
                Err(failure) => return stopped(failure),
            };
            PatternMeters::add(&self.pattern.meters.derived, 1);
            if let Err(failure) = written {
                return stopped(named(failure, &self.owner, &self.pattern, doc));
            }
        }
        Ok(None)
    }

    /// Returns what the pattern would refuse among the documents, if anything.
    fn check(
        &self,
        upkeep: &dyn Upkeep,
        records: &[Record],
        writer: &mut Writer,
    ) -> Attempt<Option<String>> {
        for record in records {
            let doc = record.doc.as_doc();
            if let Some(problem) = upkeep.problem(&self.owner, doc, writer)? {
                let id = doc.get("_id").map_or_else(String::new, quire_catalog::debug_value);
                return Ok(Some(format!("document with _id {id}: {problem}")));
            }
        }
        Ok(None)
    }

    fn set_state(&self, writer: &Writer, state: &PatternState) -> Result<()> {
        let name = (self.pattern.name.as_str(), self.pattern.generation);
        let options = CommitOptions::buffered();
        writer.store().set_pattern_state(&self.owner.uuid, name, state, &options)?;
        Ok(())
    }
}

/// Returns the reason of a failure that a retry would meet again; passes others on.
fn stopped(failure: crate::failure::Failure) -> Attempt<Option<String>> {
    match failure.error() {
        Some(error) if is_permanent(error) => Ok(Some(error.to_string())),
        _ => Err(failure),
    }
}

/// Returns true for the errors that a document's contents cause.
pub(crate) fn is_permanent(error: &quire_error::Error) -> bool {
    use quire_error::ErrorCode;
    matches!(
        error.code(),
        ErrorCode::DocumentValidationFailure
            | ErrorCode::DuplicateKey
            | ErrorCode::BSONObjectTooLarge
            | ErrorCode::CannotIndexParallelArrays
            | ErrorCode::BadValue
            | ErrorCode::TypeMismatch
    ) || error.code().number() == 17419
}
