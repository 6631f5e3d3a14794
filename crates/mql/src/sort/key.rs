//! The sort key of a document.
//!
//! An array counts with its smallest element in ascending order, and with its largest in descending
//! order: of all keys that an index on the pattern has for the document, the sort key is the first
//! in the pattern's order. A missing field counts as null, and an empty array as undefined, which
//! is below null.

use super::pattern::{Direction, MetaKind, SortBy, SortPattern};
use crate::context::EvalContext;
use quire_document::key::{TypeBits, append_full};
use quire_document::number::Number;
use quire_document::path::{ExpandError, Lookup, expand_keys};
use quire_document::{Doc, Value, ValueBuf};
use quire_error::{Error, Result};
use smallvec::SmallVec;

/// The sort key of a document, borrowed from its bytes: one value for each part.
pub type SortValues<'a> = SmallVec<[Value<'a>; 2]>;

/// The sort key of a document that owns its bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct SortKey(SmallVec<[ValueBuf; 2]>);

impl SortKey {
    /// Returns the values, one for each part of the pattern.
    pub fn values(&self) -> SortValues<'_> {
        self.0.iter().map(ValueBuf::as_value).collect()
    }

    /// Returns the memory in bytes, for memory accounting.
    pub fn size(&self) -> usize {
        self.0.iter().map(ValueBuf::size).sum()
    }
}

impl SortPattern {
    /// Returns the sort key of a document. Fails with BadValue if two parts are in different
    /// arrays. Metadata comes from `cx.metadata`, random values from `cx.shared`.
    #[inline]
    pub fn key<'a>(&self, doc: Doc<'a>, cx: &EvalContext<'_>) -> Result<SortValues<'a>> {
        let mut fields: SortValues<'a> = SmallVec::new();
        for path in &self.paths {
            match path.lookup(doc) {
                Lookup::Missing => fields.push(Value::Null),
                Lookup::Value(Value::Array(_)) | Lookup::Array(..) => {
                    fields = self.key_of_arrays(doc)?;
                    break;
                }
                Lookup::Value(value) => fields.push(value),
            }
        }
        if fields.len() == self.parts().len() {
            return Ok(fields);
        }
        self.with_metadata(fields, cx)
    }

    /// Returns true if the first part of the document's sort key shows that its bytes are greater than `bound`.
    /// `key` is memory to work with. After false the key may still be greater.
    pub fn begins_beyond(&self, doc: Doc<'_>, bound: &[u8], key: &mut Vec<u8>) -> bool {
        let Some(part) = self.parts().first() else { return false };
        let Some(path) = part.path() else { return false };
        let value = match path.lookup(doc) {
            Lookup::Missing => Value::Null,
            Lookup::Value(Value::Array(_)) | Lookup::Array(..) => return false,
            Lookup::Value(value) => value,
        };
        key.clear();
        let descending = part.direction == Direction::Descending;
        append_full(value, descending, self.collator.as_deref(), key, &mut TypeBits::new());
        let shared = key.len().min(bound.len());
        key.get(..shared) > bound.get(..shared)
    }

    /// Returns the sort key as one that owns its bytes.
    pub fn owned_key(&self, doc: Doc<'_>, cx: &EvalContext<'_>) -> Result<SortKey> {
        Ok(SortKey(self.key(doc, cx)?.into_iter().map(ValueBuf::new).collect()))
    }

    fn key_of_arrays<'a>(&self, doc: Doc<'a>) -> Result<SortValues<'a>> {
        let mut best: Option<SortValues<'a>> = None;
        let collator = self.collator.as_deref();
        let directions: SmallVec<[_; 4]> = self
            .parts()
            .iter()
            .filter(|part| part.path().is_some())
            .map(|part| part.direction)
            .collect();
        let expanded = expand_keys(doc, &self.paths, &mut |key| {
            let key: SortValues<'a> =
                key.iter().map(|value| value.unwrap_or(Value::Null)).collect();
            let earlier = best.as_ref().is_none_or(|best| {
                let orders =
                    key.iter().zip(best).zip(&directions).map(|((new, old), direction)| {
                        direction.apply(quire_document::compare(*new, *old, collator))
                    });
                orders.into_iter().find(|order| order.is_ne()).is_some_and(|order| order.is_lt())
            });
            if earlier {
                best = Some(key);
            }
        });
        match expanded {
            Ok(_) => Ok(best.unwrap_or_else(|| SmallVec::from_elem(Value::Null, self.paths.len()))),
            Err(ExpandError::ParallelArrays(..)) => {
                Err(Error::bad_value("cannot sort with keys that are parallel arrays"))
            }
            Err(ExpandError::AmbiguousField(name)) => {
                let text = format!(
                    "Ambiguous field name found in array (do not use numeric field names in embedded elements in an array), field: '{name}'"
                );
                Err(Error::location(16746, text))
            }
        }
    }

    fn with_metadata<'a>(
        &self,
        fields: SortValues<'a>,
        cx: &EvalContext<'_>,
    ) -> Result<SortValues<'a>> {
        let mut fields = fields.into_iter();
        let mut key = SmallVec::new();
        for part in self.parts() {
            key.push(match &part.by {
                SortBy::Field(_) => fields.next().unwrap_or(Value::Null),
                SortBy::Meta(kind) => {
                    let given = cx.metadata.and_then(|metadata| metadata.get(kind.name()));
                    match (given.and_then(|value| value.as_number()), kind) {
                        (Some(Number::Double(score)), _) => Value::Double(score),
                        (_, MetaKind::RandVal) => Value::Double(cx.shared.random_fraction()?),
                        _ => Value::Null,
                    }
                }
            });
        }
        Ok(key)
    }
}
