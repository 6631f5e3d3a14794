//! The rows between operators: a record id, with its index key or its document.

use std::sync::Arc;

use bytes::Bytes;
use quire_catalog::key::{KeySpec, Part};
use quire_collections::{IndexEntry, RecordId};
use quire_document::{Doc, DocBuf, DocWriter, Value, ValueBuf};
use quire_error::Result;

use crate::chunks::Chunks;

/// The specification of an index key, and its values.
pub(crate) type KeyValues<'r> = (&'r Arc<KeySpec>, Vec<Option<ValueBuf>>);

/// The output of an operator.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    /// The record id; 0 if the row has none (the output of a `$group`).
    pub record: RecordId,
    /// The document, if it is loaded.
    pub doc: Option<Bytes>,
    /// Other data of the row.
    pub extra: Option<Box<Extra>>,
}

/// The data of a row that only some plans need.
#[derive(Debug, Clone, Default)]
pub(crate) struct Extra {
    /// The index entry of the row.
    pub key: Option<(Arc<KeySpec>, IndexEntry)>,
    /// The sort key, for `$meta: "sortKey"`.
    pub sort_key: Option<ValueBuf>,
    /// The score, for `$meta: "score"`.
    pub score: Option<f64>,
    /// The details, for `$meta: "scoreDetails"`.
    pub score_details: Option<DocBuf>,
    /// The metadata that a search gives, each with its name in `$meta`.
    pub found: Option<DocBuf>,
}

impl Extra {
    /// Returns the part that is written to a spill file: everything except the index entry. `None`
    /// if that is nothing.
    pub fn to_spill(&self) -> Option<DocBuf> {
        let doc = DocBuf::build(|writer| self.write(writer));
        (!doc.as_doc().is_empty()).then_some(doc)
    }

    /// Writes the metadata of the row, each with its name in `$meta`.
    pub fn write(&self, writer: &mut DocWriter<'_>) {
        writer.append_some("sortKey", self.sort_key.as_ref().map(ValueBuf::as_value));
        writer.append_some("score", self.score.map(Value::Double));
        let details = self.score_details.as_ref().map(DocBuf::as_doc);
        writer.append_some("scoreDetails", details.map(Value::Document));
        if let Some(found) = &self.found {
            writer.append_all(found.as_doc());
        }
    }

    /// Bytes that it holds in memory.
    pub fn size(&self) -> usize {
        let key = self.key.as_ref();
        let details = self.score_details.as_ref();
        key.map_or(0, |(_, entry)| 64 + entry.values.len() + entry.type_bits.len())
            + details.map_or(0, |details| 64 + details.as_bytes().len())
            + self.found.as_ref().map_or(0, |found| 64 + found.as_bytes().len())
            + self.sort_key.as_ref().map_or(0, ValueBuf::size)
    }

    /// Reads the result of `to_spill`; no bytes give `None`.
    pub fn from_spill(bytes: &[u8]) -> Option<Box<Extra>> {
        if bytes.is_empty() {
            return None;
        }
        let doc = Doc::from_valid_bytes(bytes);
        let details = doc.get("scoreDetails").and_then(|details| details.as_document());
        let found = DocBuf::build(|writer| {
            let own = ["sortKey", "score", "scoreDetails"];
            for (name, value) in doc.fields().filter(|(name, _)| !own.contains(name)) {
                writer.append(name, value);
            }
        });
        Some(Box::new(Extra {
            key: None,
            sort_key: doc.get("sortKey").map(ValueBuf::new),
            score: doc.get("score").and_then(|score| score.to_f64()),
            score_details: details.map(Doc::to_owned),
            found: (!found.as_doc().is_empty()).then_some(found),
        }))
    }
}

impl Row {
    /// Returns a row with a document.
    pub fn of_document(record: RecordId, doc: Bytes) -> Self {
        Row { record, doc: Some(doc), extra: None }
    }

    /// Returns a row with a new document.
    pub fn made(doc: DocBuf) -> Self {
        Row { record: RecordId(0), doc: Some(Bytes::from(doc.into_bytes())), extra: None }
    }

    /// Returns the row with another document and the same other data.
    pub fn becoming(&self, doc: DocBuf) -> Self {
        Row { record: self.record, extra: self.extra.clone(), ..Row::made(doc) }
    }

    /// Returns a row with only an index entry.
    pub fn of_entry(keys: &Arc<KeySpec>, entry: IndexEntry) -> Self {
        let record = entry.record;
        let key = Some((Arc::clone(keys), entry));
        Row { record, doc: None, extra: Some(Box::new(Extra { key, ..Extra::default() })) }
    }

    /// Returns the document; an empty one if only a key is known.
    pub fn doc(&self) -> Doc<'_> {
        self.doc.as_ref().map_or(Doc::empty(), |bytes| Doc::from_valid_bytes(bytes))
    }

    /// Copies the bytes of the row. The rows of a scan are slices of the engine's blocks, and each
    /// slice keeps its whole block in memory.
    pub fn detach(&mut self) {
        if let Some(doc) = &mut self.doc {
            *doc = Bytes::copy_from_slice(doc);
        }
    }

    /// Does what `detach` does, with a copy in `chunks`, for rows that are held together.
    pub fn detach_into(&mut self, chunks: &mut Chunks) {
        if let Some(doc) = &mut self.doc {
            *doc = chunks.copy(doc);
        }
    }

    /// Returns the bytes that it holds in memory.
    pub fn size(&self) -> usize {
        size_of::<Row>()
            + self.doc.as_ref().map_or(0, Bytes::len)
            + self.extra.as_ref().map_or(0, |extra| extra.size())
    }

    /// Returns the values of its index key; a missing value is `None`.
    pub fn key_values(&self) -> Result<Option<KeyValues<'_>>> {
        let Some((keys, entry)) = self.extra.as_ref().and_then(|extra| extra.key.as_ref()) else {
            return Ok(None);
        };
        Ok(entry.decode(keys)?.map(|key| (keys, key.values)))
    }

    /// Returns the document, or a document made from the index key: `{"a.b": 1}` becomes `{a: {b:
    /// 1}}`.
    pub fn doc_or_key(&self) -> Result<Bytes> {
        match &self.doc {
            Some(doc) => Ok(doc.clone()),
            None => self.key_as_doc(),
        }
    }

    /// Makes sure that `doc` is the document, or one made from the index key.
    #[inline]
    pub fn know_doc(&mut self) -> Result<()> {
        if self.doc.is_none() {
            self.doc = Some(self.key_as_doc()?);
        }
        Ok(())
    }

    fn key_as_doc(&self) -> Result<Bytes> {
        Ok(match self.key_values()? {
            Some((keys, values)) => {
                let fields: Vec<(&str, &ValueBuf)> = keys
                    .fields()
                    .iter()
                    .zip(&values)
                    .filter(|(field, _)| field.part == Part::Value)
                    .filter_map(|(field, value)| Some((field.path.as_str(), value.as_ref()?)))
                    .collect();
                Bytes::from(nested(&fields).into_bytes())
            }
            None => Bytes::from_static(Doc::empty().as_bytes()),
        })
    }
}

/// Returns a document with these values at these paths. The value of a path contains those of the
/// paths below it.
pub(crate) fn nested(fields: &[(&str, &ValueBuf)]) -> DocBuf {
    DocBuf::build(|writer| {
        if fields.iter().any(|(path, _)| path.contains('.')) {
            return write_nested(fields, 0, writer);
        }
        fields.iter().for_each(|(name, value)| {
            writer.append(name, *value);
        });
    })
}

/// Writes the fields of one level. All of them have the same components before `depth`.
fn write_nested(fields: &[(&str, &ValueBuf)], depth: usize, writer: &mut DocWriter<'_>) {
    let component = |path: &'_ str| path.split('.').nth(depth).unwrap_or("").to_owned();
    let ends_here = |path: &str| path.split('.').count() == depth + 1;
    let mut done: Vec<String> = Vec::new();
    for (path, _) in fields {
        let name = component(path);
        if done.contains(&name) {
            continue;
        }
        let below: Vec<(&str, &ValueBuf)> =
            fields.iter().filter(|(other, _)| component(other) == name).copied().collect();
        match below.iter().find(|(other, _)| ends_here(other)) {
            Some((_, whole)) => {
                writer.append(&name, *whole);
            }
            None => write_nested(&below, depth + 1, &mut writer.document(&name)),
        }
        done.push(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_document::doc;

    #[test]
    fn keys_become_documents() {
        let (one, two, three) = (ValueBuf::new(1), ValueBuf::new(2), ValueBuf::new(3));
        let built = nested(&[("a.b", &one), ("c", &two), ("a.d", &three)]);
        assert_eq!(built, doc! { "a": { "b": 1, "d": 3 }, "c": 2 });
        assert_eq!(nested(&[("c", &two), ("a", &one)]), doc! { "c": 2, "a": 1 });
    }

    /// The value of `a.b` was lost behind that of `a.b.c`.
    #[test]
    fn a_value_comes_before_the_values_below_it() {
        let (one, whole) = (ValueBuf::new(1), ValueBuf::from(doc! { "c": 1, "d": 2 }));
        let expected = doc! { "a": { "b": { "c": 1, "d": 2 } } };
        assert_eq!(nested(&[("a.b.c", &one), ("a.b", &whole)]), expected);
        assert_eq!(nested(&[("a.b", &whole), ("a.b.c", &one)]), expected);
    }
}
