//! The comparison of two answers: the same documents, in an order that the sort allows.

use quire_document::literal::print;
use quire_document::{ArrayBuf, Doc, DocBuf, Value, ValueBuf, compare};
use std::collections::BTreeMap;

/// The answer of a scan of the collection, without `skip` and `limit`.
pub struct Expected {
    /// The documents in the order of the sort, as text, each with its `_id`.
    rows: Vec<(String, String)>,
    /// The sort key of each row; empty without a sort.
    keys: Vec<ValueBuf>,
}

/// Returns a value with the fields of its documents in the order of their names: a projection from
/// an index key has the order of the key.
fn in_order(value: Value<'_>) -> ValueBuf {
    match value {
        Value::Document(doc) => {
            let fields: BTreeMap<&str, ValueBuf> =
                doc.fields().map(|(name, value)| (name, in_order(value))).collect();
            let ordered = DocBuf::build(|writer| {
                fields.iter().for_each(|(name, value)| {
                    writer.append(name, value);
                });
            });
            ordered.into()
        }
        Value::Array(array) => {
            let elements: Vec<ValueBuf> = array.iter().map(in_order).collect();
            ValueBuf::from(elements.iter().map(ValueBuf::as_value).collect::<ArrayBuf>())
        }
        other => ValueBuf::new(other),
    }
}

/// Returns a value as text in which equal numbers of different types are the same: an index returns
/// another one of them first.
pub fn text_of_any(value: Value<'_>) -> String {
    let alike = match value {
        Value::Int32(number) => ValueBuf::new(f64::from(number)),
        Value::Document(doc) => {
            let fields: Vec<(&str, String)> =
                doc.fields().map(|(name, value)| (name, text_of_any(value))).collect();
            let fields: BTreeMap<&str, String> = fields.into_iter().collect();
            return format!("{fields:?}");
        }
        Value::Array(array) => {
            return format!("{:?}", array.iter().map(text_of_any).collect::<Vec<_>>());
        }
        other => ValueBuf::new(other),
    };
    print(alike.as_value())
}

/// Returns a document as text that does not depend on the order of its fields.
pub fn text(doc: Doc<'_>) -> String {
    print(in_order(Value::Document(doc)).as_value())
}

fn id(doc: Doc<'_>) -> String {
    doc.get("_id").map(print).unwrap_or_default()
}

impl Expected {
    /// `found` has the projected documents, and `sorted` the `_id`s with the sort keys in order.
    pub fn new(found: &[DocBuf], sorted: &[DocBuf]) -> Self {
        let key = |doc: &DocBuf| doc.get("key").map(ValueBuf::new);
        Expected {
            rows: found.iter().map(|doc| (id(doc.as_doc()), text(doc.as_doc()))).collect(),
            keys: sorted.iter().filter_map(key).collect(),
        }
        .sorted_as(sorted)
    }

    /// Puts the rows into the order of these documents, if they have `_id`s.
    fn sorted_as(mut self, sorted: &[DocBuf]) -> Self {
        let places: BTreeMap<String, usize> =
            sorted.iter().enumerate().map(|(at, doc)| (id(doc.as_doc()), at)).collect();
        self.rows.sort_by_key(|(id, _)| places.get(id).copied());
        self
    }

    /// Returns why `answer` is wrong for this `skip` and `limit`; `None` if it is right.
    pub fn difference(&self, answer: &[DocBuf], skip: usize, limit: usize) -> Option<String> {
        let limit = if limit == 0 { usize::MAX } else { limit };
        let count = self.rows.len().saturating_sub(skip).min(limit);
        if answer.len() != count {
            return Some(format!("{} documents in place of {count}", answer.len()));
        }
        let mut left: BTreeMap<&str, usize> = BTreeMap::new();
        self.rows.iter().for_each(|(_, text)| *left.entry(text).or_default() += 1);
        let has_ids = self.rows.iter().all(|(id, _)| !id.is_empty());
        for (at, doc) in answer.iter().enumerate() {
            let shown = text(doc.as_doc());
            match left.get_mut(shown.as_str()) {
                Some(count) if *count > 0 => *count -= 1,
                _ => return Some(format!("{shown} is not in the answer, or not as often")),
            }
            if self.keys.is_empty() || !has_ids {
                continue;
            }
            let row = self.rows.iter().position(|(_, text)| *text == shown);
            let (own, wanted) = (row.and_then(|row| self.keys.get(row)), self.keys.get(skip + at));
            let (Some(own), Some(wanted)) = (own, wanted) else { continue };
            if compare(own.as_value(), wanted.as_value(), None).is_ne() {
                return Some(format!("{shown} has the sort key {own:?} at {at}, not {wanted:?}"));
            }
        }
        None
    }
}
