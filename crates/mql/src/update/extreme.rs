//! `$min`, `$max`: keeps the smaller or the larger of the field's value and the operand.

use super::apply::{Run, put};
use super::modifier::{Effect, Missing, Modifier, depth};
use super::operator::{FieldOperand, UpdateOperator};
use crate::context::EvalContext;
use quire_document::{Element, ValueBuf};
use quire_error::Result;
use std::cmp::Ordering;

pub(super) const MIN: UpdateOperator = UpdateOperator {
    name: "$min",
    since: "2.6",
    doc: "Sets a field to the value if it is less than the field's, in BSON order.",
    parse: |operand, _| Ok(Extreme::boxed(operand, Ordering::Less)),
};

pub(super) const MAX: UpdateOperator = UpdateOperator {
    name: "$max",
    since: "2.6",
    doc: "Sets a field to the value if it is greater than the field's, in BSON order.",
    parse: |operand, _| Ok(Extreme::boxed(operand, Ordering::Greater)),
};

#[derive(Debug)]
struct Extreme {
    value: ValueBuf,
    depth: usize,
    replaces_when: Ordering,
}

impl Extreme {
    fn boxed(operand: &FieldOperand<'_>, replaces_when: Ordering) -> Box<dyn Modifier> {
        let (value, depth) = (ValueBuf::new(operand.value), depth(operand.value));
        Box::new(Extreme { value, depth, replaces_when })
    }
}

impl Modifier for Extreme {
    fn update(
        &self,
        run: &Run<'_>,
        _: bool,
        element: Element<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Effect> {
        let value = self.value.as_value();
        if compare(run.cx, value, element.value()) != self.replaces_when {
            return Ok(Effect::Kept);
        }
        Ok(put(out, element.key_bytes(), value))
    }

    fn missing(&self, _: &Run<'_>) -> Missing {
        Missing::Create
    }

    fn create(&self, _: &Run<'_>, name: &[u8], out: &mut Vec<u8>) -> Result<()> {
        put(out, name, self.value.as_value());
        Ok(())
    }

    fn depth(&self) -> usize {
        self.depth
    }
}

/// Compares in MongoDB's order, with the update's collation.
pub(super) fn compare(
    cx: &EvalContext<'_>,
    left: quire_document::Value<'_>,
    right: quire_document::Value<'_>,
) -> Ordering {
    quire_document::compare(left, right, cx.collator())
}
