//! `$pop`: removes the first or the last element of an array.

use super::apply::{Run, begin, end, header};
use super::modifier::{Effect, Missing, Modifier};
use super::operator::{FieldOperand, UpdateOperator};
use crate::text;
use quire_document::{Element, Type, Value, write_element, write_index};
use quire_error::{Error, Result};

pub(super) const POP: UpdateOperator = UpdateOperator {
    name: "$pop",
    since: "2.2",
    doc: "Removes the last (1) or first (-1) element of an array.",
    parse: |operand, _| Ok(Box::new(Pop { first: pops_first(operand)? })),
};

#[derive(Debug)]
struct Pop {
    first: bool,
}

fn pops_first(operand: &FieldOperand<'_>) -> Result<bool> {
    let shown = || text::field(operand.path, operand.value);
    let Some(number) = operand.value.as_number() else {
        return Err(Error::failed_to_parse(format!("Expected a number in: {}", shown())));
    };
    let Some(integer) = number.exact_i64() else {
        return Err(Error::failed_to_parse(format!("Expected an integer: {}", shown())));
    };
    match integer {
        1 => Ok(false),
        -1 => Ok(true),
        other => Err(Error::failed_to_parse(format!("$pop expects 1 or -1, found: {other}"))),
    }
}

impl Modifier for Pop {
    fn update(
        &self,
        _: &Run<'_>,
        _: bool,
        element: Element<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Effect> {
        let Value::Array(array) = element.value() else {
            return Err(Error::type_mismatch(format!(
                "Path '{}' contains an element of non-array type '{}'",
                element.key(),
                element.value().type_name()
            )));
        };
        if array.is_empty() {
            return Ok(Effect::Kept);
        }
        let (skip, count) = (usize::from(self.first), array.count());
        header(out, Type::Array, element.key_bytes());
        write_array(out, array.iter().skip(skip).take(count - 1));
        Ok(Effect::Written)
    }

    fn missing(&self, _: &Run<'_>) -> Missing {
        Missing::CheckPath
    }

    fn create(&self, _: &Run<'_>, _: &[u8], _: &mut Vec<u8>) -> Result<()> {
        Ok(())
    }
}

/// Writes the bytes of an array.
pub(super) fn write_array<'v>(out: &mut Vec<u8>, values: impl IntoIterator<Item = Value<'v>>) {
    let start = begin(out);
    let mut name = Vec::with_capacity(8);
    for (index, value) in values.into_iter().enumerate() {
        name.clear();
        write_index(&mut name, index as u32);
        write_element(out, &name, value);
    }
    end(out, start);
}
