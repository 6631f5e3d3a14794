//! A task of a pattern: the documents of its collection that have one value at the pattern's local
//! field must be looked at again. It is stored if its commit cannot do it (`rules/deferred.rs`).

use std::sync::Arc;

use quire_catalog::patterns::{Pattern, Reader};
use quire_catalog::{Collection, Namespace, Uuid};
use quire_document::{Binary, Doc, DocBuf, Value, ValueBuf};
use quire_error::{Error, ErrorCode, Result};

use crate::rules::RuleWriter;

/// What has happened to the document that the value names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// It was inserted, or a field that the pattern reads has changed.
    Changed,
    /// It was deleted, or has another value now.
    Gone,
}

/// A task of a pattern.
#[derive(Debug, Clone)]
pub(crate) struct PatternTask {
    /// The collection that declares the pattern.
    pub owner: Uuid,
    /// The name that the collection had.
    pub namespace: String,
    /// The name of the pattern.
    pub pattern: String,
    /// The generation of the pattern.
    pub generation: u64,
    /// The value that the documents have.
    pub value: ValueBuf,
    /// What has happened.
    pub cause: Cause,
    /// The key of the index at which the task goes on.
    pub position: Option<Vec<u8>>,
}

impl PatternTask {
    /// Returns a task for the documents that have a value.
    pub fn new(reader: &Reader, value: Value<'_>, cause: Cause) -> Self {
        PatternTask {
            owner: reader.owner,
            namespace: reader.namespace.to_string(),
            pattern: reader.pattern.name.clone(),
            generation: reader.pattern.generation,
            value: ValueBuf::new(value),
            cause,
            position: None,
        }
    }

    /// Encodes the task.
    pub fn encode(&self) -> DocBuf {
        DocBuf::build(|writer| {
            let owner = Binary { subtype: 4, bytes: &self.owner.0 };
            writer.append("owner", Value::Binary(owner));
            writer.append("ns", self.namespace.as_str());
            writer.append("pattern", self.pattern.as_str());
            writer.append("generation", self.generation as i64);
            writer.append("value", self.value.as_value());
            writer.append("gone", self.cause == Cause::Gone);
            if let Some(position) = &self.position {
                let position = Binary { subtype: 0, bytes: position };
                writer.append("position", Value::Binary(position));
            }
        })
    }

    /// Decodes what [`encode`](Self::encode) made.
    ///
    /// # Errors
    /// 301 DataCorruptionDetected for another document.
    pub fn decode(task: Doc<'_>) -> Result<Self> {
        let damaged = || {
            let text = "stored data is damaged: a task of a pattern";
            Error::new(ErrorCode::DataCorruptionDetected, text)
        };
        let (
            Some(Value::Binary(owner)),
            Some(Value::String(namespace)),
            Some(Value::String(pattern)),
            Some(Value::Int64(generation)),
            Some(value),
            Some(Value::Bool(gone)),
        ) = (
            task.get("owner"),
            task.get("ns"),
            task.get("pattern"),
            task.get("generation"),
            task.get("value"),
            task.get("gone"),
        )
        else {
            return Err(damaged());
        };
        let position = match task.get("position") {
            Some(Value::Binary(position)) => Some(position.bytes.to_vec()),
            _ => None,
        };
        Ok(PatternTask {
            owner: Uuid(owner.bytes.try_into().map_err(|_| damaged())?),
            namespace: namespace.to_owned(),
            pattern: pattern.to_owned(),
            generation: generation as u64,
            value: ValueBuf::new(value),
            cause: if gone { Cause::Gone } else { Cause::Changed },
            position,
        })
    }

    /// Returns the collection and the pattern as `writer` sees them; `None` if one is gone or the
    /// pattern was declared anew, whose build does what the task would.
    pub fn find(&self, writer: &mut dyn RuleWriter) -> Option<(Arc<Collection>, Arc<Pattern>)> {
        let named = Namespace::parse(&self.namespace).ok();
        let found = named.and_then(|namespace| writer.collection(&namespace));
        let owner = match found.filter(|found| found.uuid == self.owner) {
            Some(found) => found,
            None => writer.view().catalog().by_uuid(&self.owner).cloned()?,
        };
        let pattern = Arc::clone(owner.patterns.named(&self.pattern)?);
        (pattern.generation == self.generation).then_some((owner, pattern))
    }
}
