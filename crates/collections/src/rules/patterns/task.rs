//! A task of a pattern: the documents of its collection that have one value at the pattern's local
//! field must be looked at again. It is stored if its commit cannot do it (`rules/deferred.rs`).

use std::sync::Arc;

use quire_catalog::Collection;
use quire_catalog::patterns::{Pattern, Reader};
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
pub(super) struct PatternTask {
    /// The pattern, and the collection that declares it.
    pub reader: Arc<Reader>,
    /// The value that the documents have.
    pub value: ValueBuf,
    /// What has happened.
    pub cause: Cause,
    /// The key of the index at which the task goes on.
    pub position: Option<Vec<u8>>,
}

impl PatternTask {
    /// Returns a task for the documents that have a value.
    pub fn new(reader: &Arc<Reader>, value: Value<'_>, cause: Cause) -> Self {
        PatternTask {
            reader: Arc::clone(reader),
            value: ValueBuf::new(value),
            cause,
            position: None,
        }
    }

    /// Encodes the task.
    pub fn encode(&self) -> DocBuf {
        let Reader { owner, namespace, pattern } = &*self.reader;
        DocBuf::build(|writer| {
            writer.append("owner", Value::Binary(Binary { subtype: 4, bytes: &owner.0 }));
            writer.append("ns", namespace.as_str());
            writer.append("pattern", pattern.name.as_str());
            writer.append("generation", pattern.generation as i64);
            writer.append("value", self.value.as_value());
            writer.append("gone", self.cause == Cause::Gone);
            if let Some(position) = &self.position {
                let position = Binary { subtype: 0, bytes: position };
                writer.append("position", Value::Binary(position));
            }
        })
    }

    /// Decodes what [`encode`](Self::encode) made. Returns `None` if its pattern is none of `readers`:
    /// it is gone, or was declared anew, and then its build does what the task would.
    ///
    /// # Errors
    /// 301 DataCorruptionDetected for another document.
    pub fn decode<'r>(
        task: Doc<'_>,
        mut readers: impl Iterator<Item = &'r Arc<Reader>>,
    ) -> Result<Option<Self>> {
        let damaged = || {
            let text = "stored data is damaged: a task of a pattern";
            Error::new(ErrorCode::DataCorruptionDetected, text)
        };
        let (
            Some(Value::Binary(owner)),
            Some(Value::String(pattern)),
            Some(Value::Int64(generation)),
            Some(value),
            Some(Value::Bool(gone)),
        ) = (
            task.get("owner"),
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
        let found = readers.find(|reader| {
            reader.owner.0 == *owner.bytes
                && reader.pattern.name == pattern
                && reader.pattern.generation == generation as u64
        });
        Ok(found.map(|reader| PatternTask {
            reader: Arc::clone(reader),
            value: ValueBuf::new(value),
            cause: if gone { Cause::Gone } else { Cause::Changed },
            position,
        }))
    }

    /// Returns the collection and the pattern as `writer` sees them; `None` if one is gone or the
    /// pattern was declared anew, whose build does what the task would.
    pub fn find(&self, writer: &mut dyn RuleWriter) -> Option<(Arc<Collection>, Arc<Pattern>)> {
        let Reader { owner: uuid, namespace, pattern } = &*self.reader;
        let owner = match writer.collection(namespace).filter(|found| found.uuid == *uuid) {
            Some(found) => found,
            None => writer.view().catalog().by_uuid(uuid).cloned()?,
        };
        let found = Arc::clone(owner.patterns.named(&pattern.name)?);
        (found.generation == pattern.generation).then_some((owner, found))
    }
}
