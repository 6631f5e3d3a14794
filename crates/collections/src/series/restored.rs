//! What is remembered of a bucket of MongoDB whose points were restored: with its `_id` it is recognised when it comes a
//! second time, and when an entry of MongoDB's oplog adds points to it.

use bytes::Bytes;
use quire_document::{DocBuf, Value, ValueBuf};
use quire_error::Result;

use crate::layout::damaged;
use crate::meta::meta_doc;

/// What is remembered of a restored bucket (docs/format.md, "Buckets of a collection").
#[derive(Debug, Clone, PartialEq)]
pub struct RestoredBucket {
    /// The number of points that came from it.
    pub points: u64,
    /// The meta value of its points; `None` if they have none.
    pub meta: Option<ValueBuf>,
}

impl RestoredBucket {
    /// Returns the stored form.
    pub(crate) fn to_bytes(&self) -> Bytes {
        let value = DocBuf::build(|writer| {
            writer.append("points", self.points as i64);
            writer.append_some("meta", self.meta.as_ref().map(ValueBuf::as_value));
        });
        value.into_bytes().into()
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// 301 DataCorruptionDetected for other bytes.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let value = meta_doc(bytes)?;
        match value.get("points") {
            Some(Value::Int64(points)) if points >= 0 => Ok(RestoredBucket {
                points: points as u64,
                meta: value.get("meta").map(ValueBuf::new),
            }),
            _ => Err(damaged("a restored bucket")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_is_read_back() {
        for meta in [None, Some(ValueBuf::new("a"))] {
            let bucket = RestoredBucket { points: 12, meta };
            assert_eq!(RestoredBucket::from_bytes(&bucket.to_bytes()).unwrap(), bucket);
        }
        assert!(RestoredBucket::from_bytes(b"x").is_err());
    }
}
