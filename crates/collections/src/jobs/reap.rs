//! Deletes the records of retryable writes that can no longer be repeated: a job that reads all of
//! them once, a page a step.

use std::sync::Arc;

use quire_document::{Binary, DocBuf, Value};
use quire_error::Result;
use quire_storage::{Interrupt, Page, ScanRequest, Space};

use super::step::{Progress, Rest, run_to_end};
use crate::failure::Attempt;
use crate::job::{Job, JobId};
use crate::layout::damaged;
use crate::retry::{SESSION, SessionKey, parse_header, parse_suffix};
use crate::{Store, Writer};

/// The kind of the job. There is one.
const KIND: &str = "retryRecords";

/// Returns true if a session is in use. The arguments are its UUID, and its user's digest if it has
/// a user.
pub type IsAlive<'f> = dyn Fn(&[u8; 16], Option<&[u8; 32]>) -> bool + 'f;

/// The session whose records the scan is reading.
struct Current {
    prefix: Vec<u8>,
    number: i64,
    doomed: bool,
}

/// Returns the job.
pub fn reap_job(now_ms: i64) -> Job {
    Job::new(JobId::new(KIND, "all"), DocBuf::new(), now_ms)
}

impl Store {
    /// Runs all steps of the job at once. Returns the number of deleted keys.
    ///
    /// # Errors
    /// Those of [`reap_step`], and of an interrupt.
    pub fn reap_retry_records(
        self: &Arc<Self>,
        before_ms: i64,
        is_alive: &IsAlive<'_>,
        interrupt: &Arc<Interrupt>,
    ) -> Result<u64> {
        let mut job = reap_job(0);
        run_to_end(self, &mut job, interrupt, |writer, job, rows_max| {
            reap_step(writer, job, (before_ms, is_alive), rows_max)
        })?;
        Ok(u64::try_from(job.done).unwrap_or(0))
    }
}

/// Reads the next records, at most `rows_max`, and deletes those of sessions that have not written
/// since `before_ms` and are not in use, and rows that a newer transaction number has replaced.
///
/// # Errors
/// The errors of reading and writing.
pub fn reap_step(
    writer: &mut Writer,
    job: &Job,
    (before_ms, is_alive): (i64, &IsAlive<'_>),
    rows_max: usize,
) -> Attempt<Progress> {
    let from = match job.position.get("from") {
        Some(Value::Binary(from)) => from.bytes,
        _ => &[SESSION],
    };
    let mut current = Current::of_position(&job.position);
    let mut page = Page::default();
    let request = ScanRequest::new(Space::Meta, from, &[SESSION + 1]).rows_max(rows_max.max(1));
    writer.view().snapshot().scan(&request, &mut page)?;
    let mut deleted = 0;
    for (key, value) in &page.rows {
        if is_doomed(key, value, &mut current, (before_ms, is_alive))? {
            writer.txn_mut().delete(Space::Meta, key.clone())?;
            deleted += 1;
        }
    }
    let Some(resume) = page.resume else { return Ok(Progress::end(deleted)) };
    let rest = if deleted > 0 { Rest::More } else { Rest::MoreUnstored };
    Ok(Progress { position: position(&resume, current.as_ref()), done: deleted, rest })
}

impl Current {
    fn of_position(position: &DocBuf) -> Option<Self> {
        let Some(Value::Binary(prefix)) = position.get("session") else { return None };
        Some(Current {
            prefix: prefix.bytes.to_vec(),
            number: position.get("number")?.exact_i64()?,
            doomed: position.get("doomed")?.as_bool()?,
        })
    }
}

fn position(resume: &[u8], current: Option<&Current>) -> DocBuf {
    DocBuf::build(|position| {
        position.append("from", Value::Binary(Binary { subtype: 0, bytes: resume }));
        if let Some(Current { prefix, number, doomed }) = current {
            position.append("session", Value::Binary(Binary { subtype: 0, bytes: prefix }));
            position.append("number", *number).append("doomed", *doomed);
        }
    })
}

/// Returns true if a row can be deleted. `current` is the session of the rows before, and becomes
/// that of this row.
fn is_doomed(
    key: &[u8],
    value: &[u8],
    current: &mut Option<Current>,
    (before_ms, is_alive): (i64, &IsAlive<'_>),
) -> Result<bool> {
    let parsed = SessionKey::parse(key);
    let (id, user, length) = parsed.ok_or_else(|| damaged("a key of retryable writes"))?;
    let (prefix, suffix) = key.split_at(length);
    if suffix.is_empty() {
        let (number, time, _) = parse_header(value)?;
        let doomed = time < before_ms && !is_alive(&id, user.as_ref());
        *current = Some(Current { prefix: prefix.to_vec(), number, doomed });
        return Ok(doomed);
    }
    let (number, _) = parse_suffix(suffix).ok_or_else(|| damaged("a key of retryable writes"))?;
    Ok(match current {
        Some(current) if current.prefix == prefix => current.doomed || number != current.number,
        // The session's first row is gone, so no look-up finds this row.
        _ => true,
    })
}
