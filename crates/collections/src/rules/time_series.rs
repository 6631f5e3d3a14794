//! A point of a time-series collection has a date in the time field. It is stored with the time first,
//! then the meta field, then its other fields, which is the order in which MongoDB returns them.

use std::sync::Arc;

use quire_catalog::Collection;
use quire_document::{Doc, DocBuf, Type};
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
        point.iter().map(|element| self.rank(element.key_bytes())).is_sorted()
    }
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
                fields.for_each(|field| {
                    writer.append_element(field);
                });
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
