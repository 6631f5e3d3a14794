//! The table of jobs: reading it, adding a job, removing one.

use std::sync::Arc;

use bytes::Bytes;
use quire_error::Result;
use quire_storage::{CommitOptions, Interrupt, Page, ScanRequest, Space};

use crate::Store;
use crate::failure::from_storage;
use crate::job::{JOB, Job, JobId};
use crate::meta::meta_doc;

impl Store {
    /// Returns a job; `None` if the table has none of this identity, or a damaged row.
    ///
    /// # Errors
    /// The errors of the engine.
    pub fn job(&self, id: &JobId) -> Result<Option<Job>> {
        let (key, snapshot) = (id.key(), self.engine().snapshot().map_err(from_storage)?);
        let row = snapshot.get(Space::Meta, &key).map_err(from_storage)?;
        Ok(row.and_then(|row| Job::decode(&key, meta_doc(&row).ok()?).ok()))
    }

    /// Returns all jobs, ordered by kind and name. Calls `damaged` with the key of each row that is
    /// not one of a job, and leaves it out.
    ///
    /// # Errors
    /// The errors of the engine.
    pub fn jobs(&self, mut damaged: impl FnMut(&[u8])) -> Result<Vec<Job>> {
        let snapshot = self.engine().snapshot().map_err(from_storage)?;
        let (mut from, mut page, mut jobs) =
            (Bytes::from_static(&[JOB]), Page::default(), Vec::new());
        loop {
            let request = ScanRequest::new(Space::Meta, &from, &[JOB + 1]);
            snapshot.scan(&request, &mut page).map_err(from_storage)?;
            for (key, value) in &page.rows {
                match meta_doc(value).and_then(|row| Job::decode(key, row)) {
                    Ok(job) => jobs.push(job),
                    Err(_) => damaged(key),
                }
            }
            match page.resume.take() {
                Some(resume) => from = resume,
                None => return Ok(jobs),
            }
        }
    }

    /// Adds a job in a commit of its own. Returns false if the table has it already.
    ///
    /// # Errors
    /// The errors of the commit, and of an interrupt.
    pub fn add_job(
        self: &Arc<Self>,
        job: &Job,
        options: &CommitOptions,
        interrupt: &Arc<Interrupt>,
    ) -> Result<bool> {
        self.write(options, interrupt, |writer| writer.add_job(job)).map(|(added, _)| added)
    }

    /// Removes a job. A step that runs at that time has no effect. Returns false if the table does
    /// not have it.
    ///
    /// # Errors
    /// The errors of the commit, and of an interrupt.
    pub fn remove_job(
        self: &Arc<Self>,
        id: &JobId,
        options: &CommitOptions,
        interrupt: &Arc<Interrupt>,
    ) -> Result<bool> {
        let removed = self.write(options, interrupt, |writer| {
            let known = writer.job(id)?.is_some();
            if known {
                writer.delete_job(id)?;
            }
            Ok(known)
        });
        self.job_bell().ring();
        removed.map(|(known, _)| known)
    }
}
