//! `$set`, `$setOnInsert`: sets the value of a field.

use super::apply::{Run, put};
use super::modifier::{Effect, Missing, Modifier, depth};
use super::operator::{FieldOperand, UpdateOperator};
use quire_document::{Element, Value, ValueBuf, identical};
use quire_error::Result;

pub(super) const SET: UpdateOperator = UpdateOperator {
    name: "$set",
    since: "2.2",
    doc: "Sets the value of a field, and creates the field and its parents if they are missing.",
    parse: |operand, _| Ok(Set::boxed(operand, false)),
};

pub(super) const SET_ON_INSERT: UpdateOperator = UpdateOperator {
    name: "$setOnInsert",
    since: "2.4",
    doc: "Sets the value of a field if the upsert inserts; has no effect on an existing document.",
    parse: |operand, _| Ok(Set::boxed(operand, true)),
};

#[derive(Debug)]
struct Set {
    value: ValueBuf,
    depth: usize,
    on_insert: bool,
}

impl Set {
    fn boxed(operand: &FieldOperand<'_>, on_insert: bool) -> Box<dyn Modifier> {
        let value = ValueBuf::new(operand.value);
        Box::new(Set { value, depth: depth(operand.value), on_insert })
    }
}

impl Modifier for Set {
    fn update(
        &self,
        run: &Run<'_>,
        _: bool,
        element: Element<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Effect> {
        if self.on_insert && !run.insert || same_bytes(element.value(), self.value.as_value()) {
            return Ok(Effect::Kept);
        }
        Ok(put(out, element.key_bytes(), self.value.as_value()))
    }

    fn missing(&self, run: &Run<'_>) -> Missing {
        if self.on_insert && !run.insert { Missing::Ignore } else { Missing::Create }
    }

    fn create(&self, _: &Run<'_>, name: &[u8], out: &mut Vec<u8>) -> Result<()> {
        put(out, name, self.value.as_value());
        Ok(())
    }

    fn depth(&self) -> usize {
        self.depth
    }
}

/// Returns true if type and bytes are equal: `1` and `1.0` differ, NaN equals itself.
pub(super) fn same_bytes(left: Value<'_>, right: Value<'_>) -> bool {
    left.kind() == right.kind() && identical(left, right)
}
