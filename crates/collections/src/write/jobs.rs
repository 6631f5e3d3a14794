//! The rows of jobs in a writer's transaction.

use quire_document::DocBuf;
use quire_storage::{Space, StorageError};

use super::Writer;
use crate::failure::Attempt;
use crate::job::{Job, JobId};
use crate::meta::{meta_doc, put_meta};

impl Writer {
    /// Adds a job in this writer's commit, which also wakes the runner. Returns false if the table
    /// has the job already; it stays as it is then.
    ///
    /// # Errors
    /// The errors of the engine.
    pub fn add_job(&mut self, job: &Job) -> Attempt<bool> {
        if self.job(&job.id)?.is_some() {
            return Ok(false);
        }
        self.put_job(job)?;
        self.adds_job = true;
        Ok(true)
    }

    /// Returns a job as this writer sees it.
    ///
    /// # Errors
    /// The errors of the engine.
    pub fn job(&self, id: &JobId) -> Result<Option<Job>, StorageError> {
        let key = id.key();
        let row = self.view().snapshot().get(Space::Meta, &key)?;
        // A damaged row counts as none: the step that meets it replaces it.
        Ok(row.and_then(|row| Job::decode(&key, meta_doc(&row).ok()?).ok()))
    }

    /// Stores the row of a job, also one that exists. The runner does not wake by itself.
    ///
    /// # Errors
    /// The errors of the engine.
    pub fn put_job(&mut self, job: &Job) -> Attempt<()> {
        let row = DocBuf::build(|row| job.write(row));
        Ok(put_meta(self.txn_mut(), &job.id.key(), row)?)
    }

    /// Removes a job, if the table has it.
    ///
    /// # Errors
    /// The errors of the engine.
    pub fn delete_job(&mut self, id: &JobId) -> Attempt<()> {
        Ok(self.txn_mut().delete(Space::Meta, id.key().into())?)
    }
}
