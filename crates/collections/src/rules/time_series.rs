//! A point of a time-series collection has a date in the time field. It is stored with the time first,
//! then the meta field, then its other fields, and the fields of the meta field are sorted by their
//! names: so MongoDB returns points, and finds the bucket of a source whose fields come in any order.

use std::sync::Arc;

use quire_catalog::Collection;
use quire_document::{ArrayWriter, Doc, DocBuf, DocWriter, Type, Value};
use quire_error::{Error, Result};
use quire_mql::time_series::TimeSeriesOptions;

use super::{Proposal, Rule, RuleWriter};
use crate::failure::Attempt;

/// The rule of one collection.
struct Points(Arc<TimeSeriesOptions>);

/// Returns the rule of a time-series collection.
pub(super) fn compile(collection: &Collection) -> Option<Arc<dyn Rule>> {
    let series = collection.options.time_series()?;
    Some(Arc::new(Points(Arc::clone(series))))
}

impl Points {
    /// Returns the position at which a field is stored.
    fn rank(&self, name: &[u8]) -> u8 {
        match name {
            name if name == self.0.time_field.as_bytes() => 0,
            name if self.0.meta_field.as_ref().is_some_and(|meta| meta.as_bytes() == name) => 1,
            _ => 2,
        }
    }

    fn is_in_order(&self, point: Doc<'_>) -> bool {
        let ranks = point.iter().map(|element| self.rank(element.key_bytes()));
        ranks.is_sorted() && self.meta(point).is_none_or(is_sorted)
    }

    fn meta<'d>(&self, point: Doc<'d>) -> Option<Value<'d>> {
        point.get(self.0.meta_field.as_deref()?)
    }
}

/// Returns true if all documents within a value have their fields in the order of their names.
fn is_sorted(value: Value<'_>) -> bool {
    match value {
        Value::Document(doc) => {
            doc.iter().map(|element| element.key_bytes()).is_sorted()
                && doc.fields().all(|(_, value)| is_sorted(value))
        }
        Value::Array(array) => array.iter().all(is_sorted),
        _ => true,
    }
}

/// Appends a field with the documents within its value sorted.
fn append_sorted(writer: &mut DocWriter<'_>, name: &str, value: Value<'_>) {
    match value {
        Value::Document(doc) => append_fields(&mut writer.document(name), doc),
        Value::Array(array) => {
            let mut elements = writer.array(name);
            array.iter().for_each(|element| push_sorted(&mut elements, element));
        }
        value => {
            writer.append(name, value);
        }
    }
}

fn push_sorted(writer: &mut ArrayWriter<'_>, value: Value<'_>) {
    match value {
        Value::Document(doc) => append_fields(&mut writer.document(), doc),
        Value::Array(array) => {
            let mut elements = writer.array();
            array.iter().for_each(|element| push_sorted(&mut elements, element));
        }
        value => {
            writer.push(value);
        }
    }
}

/// Appends the fields of a document in the order of their names.
fn append_fields(writer: &mut DocWriter<'_>, doc: Doc<'_>) {
    let mut fields: Vec<(&str, Value<'_>)> = doc.fields().collect();
    fields.sort_by_key(|(name, _)| *name);
    fields.into_iter().for_each(|(name, value)| append_sorted(writer, name, value));
}

impl Rule for Points {
    fn name(&self) -> &'static str {
        "timeseries"
    }

    fn complete(
        &self,
        proposal: &Proposal<'_>,
        _writer: &mut dyn RuleWriter,
    ) -> Attempt<Option<DocBuf>> {
        let point = proposal.after;
        if self.is_in_order(point) {
            return Ok(None);
        }
        Ok(Some(DocBuf::build(|writer| {
            for rank in 0..=2 {
                let fields = point.iter().filter(|field| self.rank(field.key_bytes()) == rank);
                for field in fields {
                    match rank {
                        1 => append_sorted(writer, field.key(), field.value()),
                        _ => {
                            writer.append_element(field);
                        }
                    }
                }
            }
        })))
    }

    fn check(&self, proposal: &Proposal<'_>) -> Result<()> {
        let time_field = &self.0.time_field;
        match proposal.after.find(time_field) {
            Some(time) if time.kind() == Type::Date => Ok(()),
            _ => Err(Error::bad_value(format!(
                "'{time_field}' must be present and contain a valid BSON UTC datetime value"
            ))),
        }
    }
}
