//! Replacement updates: replace the whole document except its `_id`.

use super::apply::{begin, dollar_prefixed, end, header, put};
use super::limits;
use super::modifier::depth;
use crate::context::EvalContext;
use quire_document::{Doc, DocBuf, Timestamp, Type, Value};
use quire_error::{Error, ErrorCode, Result};

/// The new document.
#[derive(Debug)]
pub(super) struct Replacement {
    document: DocBuf,
    /// True if it has a top-level `Timestamp(0, 0)`, which is replaced by the time of the update.
    stamps: bool,
}

impl Replacement {
    /// Checks a replacement.
    pub(super) fn parse(document: Doc<'_>) -> Result<Self> {
        for (at, (name, _)) in document.fields().enumerate() {
            if at > 0 && name.starts_with('$') {
                return Err(dollar_prefixed(name));
            }
        }
        if depth(Value::Document(document)) > limits::DEPTH_MAX {
            return Err(limits::too_deep());
        }
        let stamps = document.fields().any(|(_, value)| is_zero_timestamp(value));
        Ok(Replacement { document: document.to_owned(), stamps })
    }

    /// Keeps the timestamps that are otherwise replaced.
    pub(super) fn keep_stamps(&mut self) {
        self.stamps = false;
    }

    /// Returns true if `original` counts as modified by `written`: if it differs from the
    /// replacement, or a timestamp was set.
    pub(super) fn changes(&self, original: Doc<'_>, written: Doc<'_>) -> bool {
        self.document.as_bytes() != original.as_bytes()
            || (self.stamps && written.as_bytes() != original.as_bytes())
    }

    /// Writes the replacement of `original` to `out`, with `_id` first.
    pub(super) fn apply(
        &self,
        original: Doc<'_>,
        cx: &EvalContext<'_>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let document = self.document.as_doc();
        let id = document.find("_id").or_else(|| original.find("_id"));
        let start = begin(out);
        if let Some(id) = id {
            header(out, id.kind(), b"_id");
            out.extend_from_slice(id.value_bytes());
        }
        for element in document.iter().filter(|element| element.key_bytes() != b"_id") {
            if self.stamps && is_zero_timestamp(element.value()) {
                put(out, element.key_bytes(), Value::Timestamp(now(cx)));
            } else {
                header(out, element.kind(), element.key_bytes());
                out.extend_from_slice(element.value_bytes());
            }
        }
        end(out, start);
        Ok(())
    }
}

fn is_zero_timestamp(value: Value<'_>) -> bool {
    matches!(value, Value::Timestamp(Timestamp { seconds: 0, increment: 0 }))
}

/// Returns the cluster time, or a timestamp of the clock if there is none.
pub(super) fn now(cx: &EvalContext<'_>) -> Timestamp {
    let seconds = (cx.shared.now_ms / 1000).clamp(0, i64::from(u32::MAX)) as u32;
    cx.shared.cluster_time.unwrap_or(Timestamp { seconds, increment: 1 })
}

/// Checks that a new document keeps the `_id` of the original.
pub(super) fn check_id(original: Doc<'_>, updated: Doc<'_>) -> Result<()> {
    let (old, new) = (original.find("_id"), updated.find("_id"));
    let Some(new) = new else {
        return match old {
            None => Ok(()),
            Some(old) => {
                let message = format!(
                    "After applying the update, the '_id' (required and immutable) field was found to have been removed --{{ {} }}",
                    crate::text::element(old)
                );
                Err(Error::new(ErrorCode::ImmutableField, message))
            }
        };
    };
    if new.kind() == Type::Array {
        let message = "After applying the update to the document, the (immutable) field '_id' was found to be an array or array descendant.";
        return Err(Error::new(ErrorCode::NotSingleValueField, message));
    }
    let same =
        |old: quire_document::Element<'_>| quire_document::equal(old.value(), new.value(), None);
    if old.is_none_or(same) {
        return Ok(());
    }
    let message = format!(
        "After applying the update, the (immutable) field '_id' was found to have been altered to {}",
        crate::text::element(new)
    );
    Err(Error::new(ErrorCode::ImmutableField, message))
}
