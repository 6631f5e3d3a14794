//! A step of a job: its effects and the new position are one commit.

use std::sync::Arc;

use quire_document::DocBuf;
use quire_error::Result;
use quire_storage::{CommitOptions, Interrupt};

use crate::failure::Attempt;
use crate::job::Job;
use crate::{ChunkSize, Store, Writer};

/// The largest number of rows that a step is asked to write.
pub const STEP_ROWS_MAX: usize = 500;

/// What a step reports to the table.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// The new position of the job.
    pub position: DocBuf,
    /// The units of work of the step.
    pub done: u64,
    /// Whether and when the next step follows.
    pub rest: Rest,
}

/// What follows a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest {
    /// More steps, at once. The commit stores the position.
    More,
    /// More steps, at once. The step wrote nothing, and to read it again after a crash does no harm,
    /// so nothing is stored.
    MoreUnstored,
    /// The next step is due at this time, in milliseconds since 1970. The commit stores the position.
    Until(i64),
    /// The job has ended, and leaves the table.
    End,
}

/// What became of a job in a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stepped {
    /// The job goes on.
    Goes,
    /// The job has ended.
    Ended,
    /// The table does not have the job any more. The step had no effect.
    Gone,
}

impl Progress {
    /// Returns the progress of a step that ends the job.
    pub fn end(done: u64) -> Self {
        Progress { position: DocBuf::new(), done, rest: Rest::End }
    }
}

impl Store {
    /// Runs one step of `job`: `work` writes, and the same commit stores what it reports, or removes
    /// the job from the table. `is_stored` says that the table has the job; a job that it does not have
    /// is added by the first step that does not end it. After a conflict `work` runs again, on the
    /// newest state. On an error the job stays where it was.
    ///
    /// # Errors
    /// The errors of `work` and of the commit, and of an interrupt.
    pub fn step_job(
        self: &Arc<Self>,
        job: &mut Job,
        is_stored: &mut bool,
        interrupt: &Arc<Interrupt>,
        mut work: impl FnMut(&mut Writer, &Job) -> Attempt<Progress>,
    ) -> Result<Stepped> {
        let options = CommitOptions::buffered();
        let (next, _) = self.write(&options, interrupt, |writer| {
            let stored = writer.job(&job.id)?;
            let is_known = stored.is_some();
            if !is_known && *is_stored {
                return Ok(None);
            }
            // The outcome of the last commit can have been unknown: the row knows it.
            let mut next =
                stored.filter(|row| row.steps > job.steps).unwrap_or_else(|| job.clone());
            let progress = work(writer, &next)?;
            next.steps += 1;
            next.done = next.done.saturating_add_unsigned(progress.done);
            next.position = progress.position;
            next.due_ms = 0;
            match progress.rest {
                Rest::More => writer.put_job(&next)?,
                Rest::Until(due_ms) => {
                    next.due_ms = due_ms;
                    writer.put_job(&next)?;
                }
                Rest::End if is_known => writer.delete_job(&next.id)?,
                Rest::End | Rest::MoreUnstored => {}
            }
            Ok(Some((next, progress.rest)))
        })?;
        let Some((next, rest)) = next else { return Ok(Stepped::Gone) };
        *job = next;
        *is_stored |= matches!(rest, Rest::More | Rest::Until(_));
        Ok(if rest == Rest::End { Stepped::Ended } else { Stepped::Goes })
    }
}

/// Runs all steps of a job that is not in the table, one after the other. `work` gets the largest
/// number of rows of the step.
///
/// # Errors
/// Those of [`Store::step_job`].
pub(super) fn run_to_end(
    store: &Arc<Store>,
    job: &mut Job,
    interrupt: &Arc<Interrupt>,
    mut work: impl FnMut(&mut Writer, &Job, usize) -> Attempt<Progress>,
) -> Result<()> {
    let (mut is_stored, mut size) = (false, ChunkSize::new(STEP_ROWS_MAX));
    loop {
        let mut is_again = false;
        let stepped = store.step_job(job, &mut is_stored, interrupt, |writer, job| {
            if std::mem::replace(&mut is_again, true) {
                size.lost();
            }
            work(writer, job, size.rows())
        })?;
        if stepped != Stepped::Goes {
            return Ok(());
        }
        size.won();
    }
}
