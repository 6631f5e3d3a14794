//! A point of a time-series collection has a date in the time field. It is stored with the time first,
//! then the meta field, then its other fields, and the fields of the meta field are sorted by their
//! names: so MongoDB returns points, and finds the bucket of a source whose fields come in any order.

use std::sync::Arc;

use quire_catalog::Collection;
use quire_document::{ArrayWriter, Doc, DocBuf, DocWriter, Element, Type, Value};
use quire_error::{Error, Result};
use quire_mql::time_series::TimeSeriesOptions;
use smallvec::SmallVec;

use super::{Proposal, Rule, RuleWriter};
use crate::failure::Attempt;

/// The rule of one collection.
struct Points(Arc<TimeSeriesOptions>);

/// Where a field of a point is stored, in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Time,
    Meta,
    Other,
}

/// Returns the rule of a time-series collection.
pub(super) fn compile(collection: &Collection) -> Option<Arc<dyn Rule>> {
    let series = collection.options.time_series()?;
    Some(Arc::new(Points(Arc::clone(series))))
}

impl Points {
    /// Returns where a field is stored.
    fn rank(&self, name: &[u8]) -> Rank {
        match name {
            name if name == self.0.time_field.as_bytes() => Rank::Time,
            name if self.0.meta_field.as_ref().is_some_and(|meta| meta.as_bytes() == name) => {
                Rank::Meta
            }
            _ => Rank::Other,
        }
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
        let ranked = point.iter().map(|field| (self.rank(field.key_bytes()), field));
        let fields: SmallVec<[(Rank, Element<'_>); 16]> = ranked.collect();
        let of = |rank| fields.iter().filter(move |field| field.0 == rank).map(|(_, field)| *field);
        if fields.is_sorted_by_key(|(rank, _)| *rank)
            && of(Rank::Meta).all(|meta| is_sorted(meta.value()))
        {
            return Ok(None);
        }
        let mut bytes = Vec::with_capacity(point.len());
        let mut writer = DocWriter::new(&mut bytes);
        of(Rank::Time).for_each(|field| {
            writer.append_element(field);
        });
        of(Rank::Meta).for_each(|meta| append_sorted(&mut writer, meta.key(), meta.value()));
        of(Rank::Other).for_each(|field| {
            writer.append_element(field);
        });
        writer.finish();
        Ok(Some(DocBuf::from_valid_bytes(bytes)))
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
