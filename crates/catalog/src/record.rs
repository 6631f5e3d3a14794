//! The stored catalog: keys and BSON records in `Space::Meta` (docs/format.md, "Catalog").

use std::collections::BTreeSet;
use std::sync::Arc;

use quire_document::{Array, Binary, Doc, DocBuf, Value, doc};
use quire_error::{Error, Result};

use crate::patterns::{Pattern, Patterns};
use crate::{
    Collection, CollectionId, CollectionOptions, FactsBuf, Index, IndexId, IndexSpec, IndexState,
    Multikey, Namespace, RulesSlot, Uuid,
};

/// The format version of everything above the engine: catalog, documents, record ids, index
/// entries, the change log, declared patterns. A newer version is refused.
pub const CATALOG_FORMAT: i32 = 5;

const FORMAT: u8 = b'f';
const COLLECTION: u8 = b'c';
const MULTIKEY: u8 = b'm';
const LOW_WATER: u8 = b'w';
const DROPPED: u8 = b'd';
const LOG: u8 = b'l';

/// Returns the key of the [`FormatRecord`].
pub fn format_key() -> Vec<u8> {
    vec![FORMAT]
}

/// Returns the key of a collection's record, which every write to the collection guards.
pub fn collection_key(id: CollectionId) -> [u8; 5] {
    tagged(COLLECTION, id.0)
}

/// Returns the collection whose record has this key; `None` for another key.
pub fn parse_collection_key(key: &[u8]) -> Option<CollectionId> {
    match key {
        [COLLECTION, a, b, c, d] => Some(CollectionId(u32::from_be_bytes([*a, *b, *c, *d]))),
        _ => None,
    }
}

/// Returns the range of the keys of all collection records.
pub fn prefix_of_collections() -> ([u8; 1], [u8; 1]) {
    ([COLLECTION], [COLLECTION + 1])
}

/// Returns the id of the collection or index to which a key of `Space::Meta` belongs; `None` for
/// another key.
pub fn number_in_key(key: &[u8]) -> Option<u32> {
    match key {
        [COLLECTION | MULTIKEY | LOW_WATER | DROPPED, a, b, c, d] => {
            Some(u32::from_be_bytes([*a, *b, *c, *d]))
        }
        _ => None,
    }
}

/// Returns the key ranges of all records for which [`number_in_key`] returns an id.
pub fn prefixes_of_numbers() -> [([u8; 1], [u8; 1]); 4] {
    [COLLECTION, MULTIKEY, LOW_WATER, DROPPED].map(|tag| ([tag], [tag + 1]))
}

/// Returns the key of an index's multikey record.
pub fn multikey_key(id: IndexId) -> [u8; 5] {
    tagged(MULTIKEY, id.0)
}

/// Returns the key of a collection's low-water record id.
pub fn low_water_key(id: CollectionId) -> [u8; 5] {
    tagged(LOW_WATER, id.0)
}

/// Returns the key of the record of a dropped collection whose documents the change log needs.
pub fn dropped_key(id: CollectionId) -> [u8; 5] {
    tagged(DROPPED, id.0)
}

/// Returns the range of the keys of all records of dropped collections.
pub fn prefix_of_dropped() -> ([u8; 1], [u8; 1]) {
    ([DROPPED], [DROPPED + 1])
}

/// Returns the key of the record of the beginning of the change log.
pub fn log_key() -> Vec<u8> {
    vec![LOG]
}

/// Returns true for the key of a low-water record id.
pub fn is_low_water_key(key: &[u8]) -> bool {
    matches!(key, [LOW_WATER, _, _, _, _])
}

fn tagged(tag: u8, id: u32) -> [u8; 5] {
    let [a, b, c, d] = id.to_be_bytes();
    [tag, a, b, c, d]
}

/// The record under [`format_key`]: the format version and the next id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FormatRecord {
    /// The [`CATALOG_FORMAT`] of the writer.
    pub format: i32,
    /// The next collection or index id. Never decreases.
    pub next_id: u32,
}

impl FormatRecord {
    /// Encodes the record.
    pub fn encode(&self) -> DocBuf {
        doc! { "format": self.format, "nextId": i64::from(self.next_id) }
    }

    /// Decodes the record.
    pub fn decode(doc: Doc<'_>) -> Result<Self> {
        match (doc.get("format"), doc.get("nextId")) {
            (Some(Value::Int32(format)), Some(Value::Int64(next))) => {
                let next_id = u32::try_from(next).map_err(|_| broken("nextId"))?;
                Ok(FormatRecord { format, next_id })
            }
            _ => Err(broken("format")),
        }
    }
}

/// Encodes a collection's record.
pub fn encode_collection(collection: &Collection) -> DocBuf {
    DocBuf::build(|writer| {
        writer.append("ns", collection.namespace.as_str());
        writer.append("uuid", Value::Binary(Binary { subtype: 4, bytes: &collection.uuid.0 }));
        writer.append("epoch", collection.epoch as i64);
        writer.append("options", collection.options.document());
        let mut indexes = writer.array("indexes");
        for index in &collection.indexes {
            let mut entry = indexes.document();
            entry.append("id", i64::from(index.id.0));
            entry.append("ready", index.state == IndexState::Ready);
            entry.append("spec", &index.to_document());
        }
        indexes.finish();
        if let Some(buckets) = collection.buckets {
            writer.append("buckets", i64::from(buckets.0));
        }
        if !collection.patterns.declared.is_empty() {
            let mut patterns = writer.array("patterns");
            for pattern in &collection.patterns.declared {
                patterns.push(Value::Document(pattern.stored().as_doc()));
            }
        }
    })
}

/// Decodes a collection's record. `multikey` returns the stored [`Multikey`] record of an index, if
/// there is one.
pub fn decode_collection(
    id: CollectionId,
    doc: Doc<'_>,
    mut multikey: impl FnMut(IndexId) -> Result<Option<DocBuf>>,
) -> Result<Collection> {
    let Some(Value::String(namespace)) = doc.get("ns") else { return Err(broken("ns")) };
    let Some(Value::Binary(binary)) = doc.get("uuid") else { return Err(broken("uuid")) };
    let uuid = Uuid(binary.bytes.try_into().map_err(|_| broken("uuid"))?);
    let Some(Value::Int64(epoch)) = doc.get("epoch") else { return Err(broken("epoch")) };
    let Some(Value::Document(options)) = doc.get("options") else { return Err(broken("options")) };
    let Some(Value::Array(entries)) = doc.get("indexes") else { return Err(broken("indexes")) };
    let mut indexes = Vec::new();
    for entry in entries.iter() {
        let Value::Document(entry) = entry else { return Err(broken("indexes")) };
        let (Some(Value::Int64(number)), Some(Value::Bool(ready)), Some(Value::Document(spec))) =
            (entry.get("id"), entry.get("ready"), entry.get("spec"))
        else {
            return Err(broken("indexes"));
        };
        let index_id = IndexId(u32::try_from(number).map_err(|_| broken("indexes.id"))?);
        let state = if ready { IndexState::Ready } else { IndexState::WriteOnly };
        let mut index = Index::new(index_id, IndexSpec::from_document(spec)?, state);
        if let Some(facts) = multikey(index_id)? {
            let facts = FactsBuf::decode(facts.as_doc())?;
            let fields = index.keys.fields().len();
            index.multikey = Arc::new(Multikey::restored(fields, &facts));
        }
        indexes.push(Arc::new(index));
    }
    let buckets = match doc.get("buckets") {
        None => None,
        Some(Value::Int64(number)) => {
            Some(IndexId(u32::try_from(number).map_err(|_| broken("buckets"))?))
        }
        Some(_) => return Err(broken("buckets")),
    };
    let patterns = match doc.get("patterns") {
        None => Patterns::default(),
        Some(Value::Array(stored)) => Patterns { declared: restored(stored)?, readers: Vec::new() },
        Some(_) => return Err(broken("patterns")),
    };
    Ok(Collection {
        id,
        uuid,
        namespace: Namespace::parse(namespace)?,
        options: CollectionOptions::from_document(options.to_owned())?,
        indexes,
        buckets,
        epoch: epoch as u64,
        frozen: false,
        index_filters: Arc::default(),
        plan_cache: crate::PlanCache::default(),
        patterns,
        rules: RulesSlot::default(),
    })
}

/// Decodes the declared patterns of a collection.
fn restored(stored: Array<'_>) -> Result<Vec<Arc<Pattern>>> {
    let pattern = |value: Value<'_>| {
        let doc = value.as_document().ok_or_else(|| broken("patterns"))?;
        Pattern::restored(doc).map(Arc::new)
    };
    stored.iter().map(pattern).collect()
}

impl FactsBuf {
    /// Encodes the record of the facts.
    pub fn encode(&self) -> DocBuf {
        DocBuf::build(|writer| {
            let mut array = writer.array("paths");
            for bits in &self.paths {
                array.push(*bits as i64);
            }
            array.finish();
            writer.append("longKeys", self.long_keys);
            if !self.arrays.is_empty() {
                let mut arrays = writer.array("arrays");
                for path in &self.arrays {
                    arrays.push(path.as_str());
                }
            }
        })
    }

    /// Decodes the record of the facts.
    pub fn decode(doc: Doc<'_>) -> Result<Self> {
        let (Some(Value::Array(array)), Some(Value::Bool(long_keys))) =
            (doc.get("paths"), doc.get("longKeys"))
        else {
            return Err(broken("multikey"));
        };
        let bits = |value| match value {
            Value::Int64(bits) => Ok(bits as u64),
            _ => Err(broken("multikey.paths")),
        };
        let paths = array.iter().map(bits).collect::<Result<Vec<u64>>>()?;
        let path = |value| match value {
            Value::String(path) => Ok(path.to_owned()),
            _ => Err(broken("multikey.arrays")),
        };
        let arrays = match doc.get("arrays") {
            None => BTreeSet::new(),
            Some(Value::Array(arrays)) => arrays.iter().map(path).collect::<Result<_>>()?,
            Some(_) => return Err(broken("multikey.arrays")),
        };
        Ok(FactsBuf { paths, long_keys, arrays })
    }
}

fn broken(field: &str) -> Error {
    Error::new(
        quire_error::ErrorCode::DataCorruptionDetected,
        format!("a catalog record is damaged at '{field}'"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back() {
        let mut collection = Collection::new(
            CollectionId(7),
            Uuid([9; 16]),
            Namespace::parse("db.c.d").unwrap(),
            CollectionOptions::default(),
            IndexId(8),
        );
        let spec =
            doc! { "key": { "a.b": 1, "c": -1.0 }, "name": "x", "unique": true, "sparse": false };
        let spec = IndexSpec::parse(spec.as_doc(), false).unwrap();
        collection.indexes.push(Arc::new(Index::new(IndexId(9), spec, IndexState::WriteOnly)));
        let record = encode_collection(&collection);
        let arrays = BTreeSet::from(["a.b".to_owned()]);
        let facts = FactsBuf { paths: vec![0, 1 << 63], long_keys: true, arrays }.encode();
        let back = decode_collection(CollectionId(7), record.as_doc(), |id| {
            Ok((id == IndexId(9)).then(|| facts.clone()))
        })
        .unwrap();
        assert_eq!(encode_collection(&back).as_bytes(), record.as_bytes());
        let index = &back.indexes[1];
        assert!(index.unique && !index.keys.is_sparse() && index.keys.is_descending(1));
        assert_eq!(index.multikey_paths().0, [0, 1 << 63]);
        assert!(index.multikey.is_array("a.b"));
        assert!(index.has_long_keys() && back.id_index().is_some());
        let format = FormatRecord { format: 1, next_id: u32::MAX };
        assert_eq!(FormatRecord::decode(format.encode().as_doc()).unwrap(), format);
    }
}
