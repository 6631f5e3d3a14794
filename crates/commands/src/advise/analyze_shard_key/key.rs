//! A candidate shard key: its fields, and the values that a document has in them.

use crate::frame::args::Arg;
use quire_catalog::IndexSpec;
use quire_catalog::key::{Arena, KeySpec};
use quire_document::{Doc, DocBuf, DocWriter, Value, doc};
use quire_error::{Error, Result};

/// A candidate shard key.
pub struct ShardKey {
    /// The paths, in order.
    pub paths: Vec<String>,
    /// True if one of the fields is hashed.
    pub is_hashed: bool,
    /// The keys by which the shards would be chosen.
    pub keys: KeySpec,
    /// The same with the values themselves in place of their hashes.
    plain: KeySpec,
}

impl ShardKey {
    /// Parses `{a: 1, b: "hashed"}`.
    ///
    /// # Errors
    /// 14 TypeMismatch; 2 BadValue for a pattern that is no shard key.
    pub fn parse(arg: &Arg<'_>) -> Result<ShardKey> {
        let pattern = arg.document()?;
        let wrong = |why: &str| Error::bad_value(format!("Shard key pattern {why}"));
        let (mut paths, mut hashed) = (Vec::new(), 0);
        for (path, value) in pattern.fields() {
            match value {
                Value::String("hashed") => hashed += 1,
                number if number.exact_i64() == Some(1) => {}
                _ => return Err(wrong("can only contain the values 1 and \"hashed\"")),
            }
            if paths.iter().any(|known| known == path) {
                return Err(wrong("cannot contain the same field twice"));
            }
            paths.push(path.to_owned());
        }
        if paths.is_empty() {
            return Err(wrong("cannot be empty"));
        }
        if hashed > 1 {
            return Err(wrong("can contain only one hashed field"));
        }
        let plain = DocBuf::build(|out| {
            for path in &paths {
                out.append(path, 1);
            }
        });
        Ok(ShardKey {
            keys: spec(pattern)?,
            plain: spec(plain.as_doc())?,
            is_hashed: hashed > 0,
            paths,
        })
    }

    /// Appends the values that a document has in the fields; null for one that it does not have.
    ///
    /// # Errors
    /// Those of arrays in several fields.
    pub fn write_values(&self, document: Doc<'_>, out: &mut DocWriter<'_>) -> Result<()> {
        let arena = Arena::new();
        let keys = self.plain.generate(document, &arena)?;
        let values = keys.keys().next().unwrap_or_default();
        for (at, path) in self.paths.iter().enumerate() {
            let value = values.get(at).copied().flatten();
            out.append(path, value.unwrap_or(Value::Null));
        }
        Ok(())
    }

    /// Returns the encoded key of a document: bytes in the order of the keys.
    ///
    /// # Errors
    /// Those of values that a shard key cannot have.
    pub fn encoded(&self, document: Doc<'_>) -> Result<Vec<u8>> {
        let arena = Arena::new();
        let keys = self.keys.generate(document, &arena)?;
        let values = keys.keys().next().unwrap_or_default();
        let mut bytes = Vec::new();
        for at in 0..self.paths.len() {
            // A shard key does not tell a missing field from null.
            let value = values.get(at).copied().flatten().unwrap_or(Value::Null);
            self.keys.append_bound(at, value, &mut bytes);
        }
        Ok(bytes)
    }
}

fn spec(key: Doc<'_>) -> Result<KeySpec> {
    let spec = doc! { "key": key, "name": "shard_key" };
    Ok(KeySpec::new(&IndexSpec::parse(spec.as_doc(), false)?))
}
