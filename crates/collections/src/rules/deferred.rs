//! A task of a rule that exceeds the budget of its commit. The commit adds a job, which does it later
//! (`jobs/derive.rs`). Other writes can come in between, and deferred tasks of one rule run in any
//! order, so a task must read what it copies when it runs.

use quire_catalog::Uuid;
use quire_document::{Binary, Doc, DocBuf, Value, doc};
use quire_error::{Error, ErrorCode, Result};

/// The kind of the jobs that do deferred tasks.
pub(crate) const DERIVED: &str = "derived";

/// A task of a rule, as the parameters of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deferred {
    /// The collection that has the rule.
    pub collection: Uuid,
    /// The name of the rule.
    pub rule: String,
    /// The number of derived writes between the client's write and this task.
    pub depth: u32,
    /// What the rule has to do; only the rule knows its fields.
    pub task: DocBuf,
}

impl Deferred {
    /// Encodes the task.
    pub fn encode(&self) -> DocBuf {
        let uuid = Value::Binary(Binary { subtype: 4, bytes: &self.collection.0 });
        doc! {
            "collection": uuid,
            "rule": self.rule.as_str(),
            "depth": i64::from(self.depth),
            "task": &self.task
        }
    }

    /// Decodes a task that [`encode`](Self::encode) made.
    ///
    /// # Errors
    /// 301 DataCorruptionDetected for another document.
    pub fn decode(doc: Doc<'_>) -> Result<Self> {
        let (
            Some(Value::Binary(uuid)),
            Some(Value::String(rule)),
            Some(Value::Int64(depth)),
            Some(Value::Document(task)),
        ) = (doc.get("collection"), doc.get("rule"), doc.get("depth"), doc.get("task"))
        else {
            return Err(damaged());
        };
        Ok(Deferred {
            collection: Uuid(uuid.bytes.try_into().map_err(|_| damaged())?),
            rule: rule.to_owned(),
            depth: u32::try_from(depth).map_err(|_| damaged())?,
            task: task.to_owned(),
        })
    }
}

fn damaged() -> Error {
    Error::new(ErrorCode::DataCorruptionDetected, "stored data is damaged: a deferred task")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_task_survives_its_encoding() {
        let task = doc! { "target": 7, "set": { "name": "x" } };
        let deferred = Deferred { collection: Uuid([3; 16]), rule: "copy".into(), depth: 2, task };
        let encoded = deferred.encode();
        assert_eq!(Deferred::decode(encoded.as_doc()).unwrap(), deferred);
        for gone in ["collection", "rule", "depth", "task"] {
            let rest = DocBuf::build(|writer| {
                for (name, value) in encoded.as_doc().fields().filter(|(name, _)| *name != gone) {
                    writer.append(name, value);
                }
            });
            assert!(Deferred::decode(rest.as_doc()).is_err(), "without {gone}");
        }
    }
}
