//! `$push`, `$concatArrays`: arrays of all values, or of the elements of all values.

use super::registry::Accumulator;
use super::{State, check_memory};
use crate::context::EvalContext;
use quire_document::{Value, ValueBuf};
use quire_error::{Error, Result};

pub(super) const PUSH: Accumulator = Accumulator::unary(
    "$push",
    "1.0",
    "An array of all values; missing ones are left out.",
    |_| Box::new(Push { name: "$push", flatten: false, values: Vec::new(), bytes: 0 }),
);

pub(super) const CONCAT_ARRAYS: Accumulator =
    Accumulator::unary("$concatArrays", "8.1", "The elements of all arrays, in order.", |_| {
        Box::new(Push { name: "$concatArrays", flatten: true, values: Vec::new(), bytes: 0 })
    });

#[derive(Debug)]
struct Push {
    name: &'static str,
    flatten: bool,
    values: Vec<ValueBuf>,
    bytes: usize,
}

impl Push {
    fn append(&mut self, value: Value<'_>) -> Result<()> {
        let value = ValueBuf::new(value);
        self.bytes += value.size();
        self.values.push(value);
        check_memory(self.name, self.bytes)
    }
}

impl State for Push {
    fn add(&mut self, value: Option<Value<'_>>) -> Result<()> {
        let Some(value) = value else { return Ok(()) };
        if !self.flatten {
            return self.append(value);
        }
        array_of(self.name, value)?.iter().try_for_each(|element| self.append(element))
    }

    fn result<'a>(&self, cx: &EvalContext<'a>) -> Result<Value<'a>> {
        super::array_result(self.values.iter().map(ValueBuf::as_value), cx)
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.bytes
    }

    fn save(&self) -> ValueBuf {
        self.values.iter().collect::<quire_document::ArrayBuf>().into()
    }

    fn merge(&mut self, saved: Value<'_>) -> Result<()> {
        super::elements(saved).try_for_each(|value| self.append(value))
    }
}

/// Returns the array. For any other value fails with the error of `$concatArrays` or `$setUnion`.
pub(crate) fn array_of<'v>(name: &str, value: Value<'v>) -> Result<quire_document::Array<'v>> {
    value.as_array().ok_or_else(|| {
        Error::type_mismatch(format!(
            "{name} requires array inputs, but input {} is of type {}",
            crate::text::value(value),
            value.type_name()
        ))
    })
}
