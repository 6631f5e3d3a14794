//! `$unset`: removes a field. An array element becomes null, so that the others keep their
//! positions.

use super::apply::{Run, put};
use super::modifier::{Effect, Missing, Modifier};
use super::operator::UpdateOperator;
use quire_document::{Element, Value};
use quire_error::Result;

pub(super) const UNSET: UpdateOperator = UpdateOperator {
    name: "$unset",
    since: "2.2",
    doc: "Removes a field; an array element becomes null.",
    parse: |_, _| Ok(Box::new(Unset)),
};

#[derive(Debug)]
struct Unset;

impl Modifier for Unset {
    fn update(
        &self,
        _: &Run<'_>,
        in_array: bool,
        element: Element<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Effect> {
        if in_array {
            return Ok(put(out, element.key_bytes(), Value::Null));
        }
        Ok(Effect::Removed)
    }

    fn missing(&self, _: &Run<'_>) -> Missing {
        Missing::Ignore
    }

    fn create(&self, _: &Run<'_>, _: &[u8], _: &mut Vec<u8>) -> Result<()> {
        Ok(())
    }
}
