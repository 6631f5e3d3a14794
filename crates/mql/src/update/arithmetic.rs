//! `$inc`, `$mul`: arithmetic. An int that overflows becomes a long; a long that overflows is an
//! error.

use super::apply::{Run, put};
use super::modifier::{Effect, Missing, Modifier};
use super::operator::{FieldOperand, UpdateOperator};
use crate::text;
use quire_document::{Decimal128, Element, Value, ValueBuf};
use quire_error::{Error, Result};

pub(super) const INC: UpdateOperator = UpdateOperator {
    name: "$inc",
    since: "2.2",
    doc: "Adds a number to a field; a missing field becomes the number.",
    parse: |operand, _| Ok(Box::new(Arithmetic::parse(operand, Op::Add)?)),
};

pub(super) const MUL: UpdateOperator = UpdateOperator {
    name: "$mul",
    since: "2.6",
    doc: "Multiplies a field by a number; a missing field becomes 0 of the number's type.",
    parse: |operand, _| Ok(Box::new(Arithmetic::parse(operand, Op::Multiply)?)),
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Op {
    Add,
    Multiply,
}

impl Op {
    fn name(self) -> &'static str {
        match self {
            Op::Add => "$inc",
            Op::Multiply => "$mul",
        }
    }

    /// Returns the result, or `None` if a long overflows.
    fn apply(self, left: Value<'_>, right: Value<'_>) -> Option<Value<'static>> {
        use Value::{Decimal, Double, Int32, Int64};
        Some(match (left, right) {
            (Int32(left), Int32(right)) => match self.ints(left, right) {
                Some(number) => Int32(number),
                None => Int64(self.longs(left.into(), right.into())?),
            },
            (Decimal(_), _) | (_, Decimal(_)) => {
                let (left, right) = (decimal(left), decimal(right));
                Decimal(match self {
                    Op::Add => left.add(right),
                    Op::Multiply => left.multiply(right),
                })
            }
            (Double(_), _) | (_, Double(_)) => {
                let (left, right) = (double(left), double(right));
                Double(if self == Op::Add { left + right } else { left * right })
            }
            _ => Int64(self.longs(long(left), long(right))?),
        })
    }

    fn ints(self, left: i32, right: i32) -> Option<i32> {
        if self == Op::Add { left.checked_add(right) } else { left.checked_mul(right) }
    }

    fn longs(self, left: i64, right: i64) -> Option<i64> {
        if self == Op::Add { left.checked_add(right) } else { left.checked_mul(right) }
    }
}

fn long(value: Value<'_>) -> i64 {
    match value {
        Value::Int32(number) => number.into(),
        Value::Int64(number) => number,
        _ => 0,
    }
}

fn double(value: Value<'_>) -> f64 {
    match value {
        Value::Double(number) => number,
        other => long(other) as f64,
    }
}

fn decimal(value: Value<'_>) -> Decimal128 {
    match value {
        Value::Decimal(number) => number,
        Value::Double(number) => Decimal128::from_f64(number),
        other => Decimal128::from_i64(long(other)),
    }
}

#[derive(Debug)]
struct Arithmetic {
    op: Op,
    operand: ValueBuf,
}

impl Arithmetic {
    fn parse(operand: &FieldOperand<'_>, op: Op) -> Result<Self> {
        if !operand.value.is_number() {
            let verb = if op == Op::Add { "increment" } else { "multiply" };
            return Err(Error::type_mismatch(format!(
                "Cannot {verb} with non-numeric argument: {{{}}}",
                text::field(operand.path, operand.value)
            )));
        }
        Ok(Arithmetic { op, operand: ValueBuf::new(operand.value) })
    }
}

impl Modifier for Arithmetic {
    fn update(
        &self,
        run: &Run<'_>,
        _: bool,
        element: Element<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Effect> {
        let current = element.value();
        if !current.is_number() {
            return Err(Error::type_mismatch(format!(
                "Cannot apply {} to a value of non-numeric type. {} has the field '{}' of non-numeric type {}",
                self.op.name(),
                text::id_of(run.root),
                element.key(),
                current.type_name()
            )));
        }
        let Some(result) = self.op.apply(current, self.operand.as_value()) else {
            return Err(Error::bad_value(format!(
                "Failed to apply {} operations to current value ((NumberLong){}) for document {}",
                self.op.name(),
                text::value(current),
                text::id_of(run.root)
            )));
        };
        if is_same_number(current, result) {
            return Ok(Effect::Kept);
        }
        Ok(put(out, element.key_bytes(), result))
    }

    fn missing(&self, _: &Run<'_>) -> Missing {
        Missing::Create
    }

    fn create(&self, _: &Run<'_>, name: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let operand = self.operand.as_value();
        let value = match self.op {
            Op::Add => operand,
            Op::Multiply => self.op.apply(Value::Int32(0), operand).unwrap_or(operand),
        };
        put(out, name, value);
        Ok(())
    }
}

/// Returns true if both have the same type and value. Zeros of either sign are the same, and so are
/// NaNs.
fn is_same_number(left: Value<'_>, right: Value<'_>) -> bool {
    match (left, right) {
        (Value::Double(left), Value::Double(right)) => {
            left == right || left.is_nan() && right.is_nan()
        }
        (Value::Decimal(left), Value::Decimal(right)) => left.compare(right).is_eq(),
        (left, right) => super::set::same_bytes(left, right),
    }
}
