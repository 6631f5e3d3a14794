//! A row of the table of jobs (docs/format.md, "Jobs").

use std::fmt;

use quire_document::{Doc, DocBuf, DocWriter, Value};
use quire_error::Result;

use crate::layout::damaged;

/// The first byte of every key.
pub(crate) const JOB: u8 = b'j';

/// The identity of a job. It is also its place in the table.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JobId {
    /// The name of the kind, which says what a step does.
    pub kind: String,
    /// The name of the job, unique within its kind.
    pub name: String,
}

/// A job as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// The identity of the job.
    pub id: JobId,
    /// What the job is about. It never changes.
    pub parameters: DocBuf,
    /// How far the job has come.
    pub position: DocBuf,
    /// When the job was added, in milliseconds since 1970.
    pub created_ms: i64,
    /// When the next step may run, in milliseconds since 1970; 0 for at once.
    pub due_ms: i64,
    /// The number of steps.
    pub steps: i64,
    /// The units of work of all steps, for example deleted documents.
    pub done: i64,
}

impl JobId {
    /// Returns the identity of a job. The kind must not contain a zero byte.
    pub fn new(kind: &str, name: impl Into<String>) -> Self {
        JobId { kind: kind.to_owned(), name: name.into() }
    }

    /// Returns the key of the job's row in `Space::Meta`.
    pub(crate) fn key(&self) -> Vec<u8> {
        let mut key = vec![JOB];
        key.extend_from_slice(self.kind.as_bytes());
        key.push(0);
        key.extend_from_slice(self.name.as_bytes());
        key
    }

    fn parse(key: &[u8]) -> Option<Self> {
        let mut parts = key.strip_prefix(&[JOB])?.splitn(2, |byte| *byte == 0);
        let mut text = || String::from_utf8(parts.next()?.to_vec()).ok();
        Some(JobId { kind: text()?, name: text()? })
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.name)
    }
}

impl Job {
    /// Returns a new job that has not begun.
    pub fn new(id: JobId, parameters: DocBuf, created_ms: i64) -> Self {
        let position = DocBuf::new();
        Job { id, parameters, position, created_ms, due_ms: 0, steps: 0, done: 0 }
    }

    /// Returns a whole number among the parameters; `None` if there is none of this name.
    pub fn parameter(&self, name: &str) -> Option<i64> {
        self.parameters.get(name)?.exact_i64()
    }

    /// Appends the fields of the row.
    pub fn write(&self, row: &mut DocWriter<'_>) {
        row.append("parameters", &self.parameters);
        row.append("position", &self.position);
        row.append("created", Value::Date(self.created_ms));
        if self.due_ms != 0 {
            row.append("due", Value::Date(self.due_ms));
        }
        row.append("steps", self.steps).append("done", self.done);
    }

    /// Decodes a row.
    ///
    /// # Errors
    /// `DataCorruptionDetected` if the key or the row is not one of a job.
    pub(crate) fn decode(key: &[u8], row: Doc<'_>) -> Result<Self> {
        let id = JobId::parse(key).ok_or_else(|| damaged("the key of a job"))?;
        let document = |name: &str| row.get(name)?.as_document().map(Doc::to_owned);
        let date = |name: &str| match row.get(name) {
            Some(Value::Date(ms)) => Some(ms),
            _ => None,
        };
        let number = |name: &str| row.get(name)?.exact_i64();
        let decoded = || {
            Some(Job {
                parameters: document("parameters")?,
                position: document("position")?,
                created_ms: date("created")?,
                due_ms: date("due").unwrap_or(0),
                steps: number("steps")?,
                done: number("done")?,
                id: id.clone(),
            })
        };
        decoded().ok_or_else(|| damaged("the row of a job"))
    }
}

#[cfg(test)]
mod tests {
    use quire_document::doc;

    use super::*;

    #[test]
    fn a_row_keeps_everything_and_others_are_refused() {
        let mut job = Job::new(JobId::new("count", "a/b"), doc! { "of": 7 }, 12);
        (job.position, job.due_ms, job.steps, job.done) = (doc! { "at": 3 }, 99, 4, -5);
        let row = DocBuf::build(|row| job.write(row));
        assert_eq!(job.id.key(), b"jcount\0a/b");
        assert_eq!(Job::decode(&job.id.key(), row.as_doc()).unwrap(), job);
        for key in [&b"jcount"[..], b"kcount\0a", b"j\xff\0a"] {
            assert!(Job::decode(key, row.as_doc()).is_err(), "{key:?}");
        }
        assert!(Job::decode(&job.id.key(), doc! { "steps": 1 }.as_doc()).is_err());
    }
}
