//! `$addToSet`: appends values that the array does not contain.

use super::apply::{Run, header};
use super::modifier::{Effect, Missing, Modifier, depth};
use super::operator::{FieldOperand, UpdateOperator};
use super::value_set::{LINEAR_MAX, ValueSet, without_repeats};
use super::{extreme, pop};
use crate::context::work::search_units;
use crate::text;
use quire_document::{ArrayBuf, Element, Type, Value};
use quire_error::{Error, Result};

pub(super) const ADD_TO_SET: UpdateOperator = UpdateOperator {
    name: "$addToSet",
    since: "2.2",
    doc: "Appends a value, or those of `$each`, to an array that does not contain it.",
    parse: |operand, _| Ok(Box::new(AddToSet::parse(operand)?)),
};

#[derive(Debug)]
struct AddToSet {
    values: ArrayBuf,
    depth: usize,
}

impl AddToSet {
    fn parse(operand: &FieldOperand<'_>) -> Result<Self> {
        let values = match each(operand)? {
            Some(values) => values,
            None => std::iter::once(operand.value).collect(),
        };
        let depth = depth(Value::Array(values.as_array()));
        Ok(AddToSet { values, depth })
    }

    /// Returns the values that are not in `present`, each once.
    fn new_values<'v>(&'v self, run: &Run<'_>, present: &[Value<'_>]) -> Result<Vec<Value<'v>>> {
        let values = without_repeats(self.values.as_array().to_vec(), run.cx)?;
        if values.len() <= LINEAR_MAX {
            let known = |value: &Value<'_>| {
                present.iter().any(|known| extreme::compare(run.cx, *known, *value).is_eq())
            };
            return Ok(values.into_iter().filter(|value| !known(value)).collect());
        }
        let present = ValueSet::new(present.to_vec(), run.cx)?;
        run.cx.shared.work(search_units(values.len(), present.len()))?;
        Ok(values.into_iter().filter(|value| !present.contains(*value, run.cx)).collect())
    }
}

/// Returns the values of `$each`, if it is the first field of the operand.
fn each(operand: &FieldOperand<'_>) -> Result<Option<ArrayBuf>> {
    let Value::Document(spec) = operand.value else { return Ok(None) };
    let Some(("$each", values)) = spec.fields().next() else { return Ok(None) };
    let Value::Array(values) = values else {
        return Err(Error::type_mismatch(format!(
            "The argument to $each in $addToSet must be an array but it was of type {}",
            values.type_name()
        )));
    };
    if spec.count() > 1 {
        let shown = text::doc(spec);
        return Err(Error::bad_value(format!(
            "Found unexpected fields after $each in $addToSet: {shown}"
        )));
    }
    Ok(Some(values.iter().collect()))
}

impl Modifier for AddToSet {
    fn update(
        &self,
        run: &Run<'_>,
        _: bool,
        element: Element<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Effect> {
        let Value::Array(array) = element.value() else {
            return Err(Error::bad_value(format!(
                "Cannot apply $addToSet to non-array field. Field named '{}' has non-array type {}",
                element.key(),
                element.value().type_name()
            )));
        };
        let present = array.to_vec();
        let new = self.new_values(run, &present)?;
        if new.is_empty() {
            return Ok(Effect::Kept);
        }
        header(out, Type::Array, element.key_bytes());
        pop::write_array(out, present.into_iter().chain(new));
        Ok(Effect::Written)
    }

    fn missing(&self, _: &Run<'_>) -> Missing {
        Missing::Create
    }

    fn create(&self, run: &Run<'_>, name: &[u8], out: &mut Vec<u8>) -> Result<()> {
        header(out, Type::Array, name);
        pop::write_array(out, self.new_values(run, &[])?);
        Ok(())
    }

    fn depth(&self) -> usize {
        self.depth
    }
}
