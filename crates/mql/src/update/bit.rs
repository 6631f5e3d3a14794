//! `$bit`: bitwise and, or, xor of integers.

use super::apply::{Run, put};
use super::modifier::{Effect, Missing, Modifier};
use super::operator::{FieldOperand, UpdateOperator};
use super::set::same_bytes;
use crate::text;
use quire_document::{Element, Value};
use quire_error::{Error, Result};

pub(super) const BIT: UpdateOperator = UpdateOperator {
    name: "$bit",
    since: "2.2",
    doc: "Combines an int or long with another by `and`, `or` or `xor`.",
    parse: |operand, _| Ok(Box::new(Bit { steps: steps(operand)? })),
};

#[derive(Debug)]
struct Bit {
    steps: Vec<(Op, Integer)>,
}

#[derive(Clone, Copy, Debug)]
enum Op {
    And,
    Or,
    Xor,
}

#[derive(Clone, Copy, Debug)]
enum Integer {
    Int(i32),
    Long(i64),
}

impl Integer {
    fn of(value: Value<'_>) -> Option<Integer> {
        match value {
            Value::Int32(number) => Some(Integer::Int(number)),
            Value::Int64(number) => Some(Integer::Long(number)),
            _ => None,
        }
    }

    fn wide(self) -> i64 {
        match self {
            Integer::Int(number) => i64::from(number),
            Integer::Long(number) => number,
        }
    }
}

fn steps(operand: &FieldOperand<'_>) -> Result<Vec<(Op, Integer)>> {
    let Value::Document(spec) = operand.value else {
        return Err(Error::bad_value(format!(
            "The $bit modifier is not compatible with a {}. You must pass in an embedded document: {{$bit: {{field: {{and/or/xor: #}}}}",
            operand.value.type_name()
        )));
    };
    let mut steps = Vec::new();
    for (name, value) in spec.fields() {
        let op = match name {
            "and" => Op::And,
            "or" => Op::Or,
            "xor" => Op::Xor,
            _ => {
                return Err(Error::bad_value(format!(
                    "The $bit modifier only supports 'and', 'or', and 'xor', not '{name}' which is an unknown operator: {{{}}}",
                    text::field(name, value)
                )));
            }
        };
        let Some(integer) = Integer::of(value) else {
            return Err(Error::bad_value(format!(
                "The $bit modifier field must be an Integer(32/64 bit); a '{}' is not supported here: {{{}}}",
                value.type_name(),
                text::field(name, value)
            )));
        };
        steps.push((op, integer));
    }
    if steps.is_empty() {
        return Err(Error::bad_value(
            "You must pass in at least one bitwise operation. The format is: {$bit: {field: {and/or/xor: #}}",
        ));
    }
    Ok(steps)
}

impl Bit {
    fn result(&self, start: Integer) -> Value<'static> {
        let result = self.steps.iter().fold(start, |value, (op, operand)| {
            let (left, right) = (value.wide(), operand.wide());
            let bits = match op {
                Op::And => left & right,
                Op::Or => left | right,
                Op::Xor => left ^ right,
            };
            match (value, operand) {
                (Integer::Int(_), Integer::Int(_)) => Integer::Int(bits as i32),
                _ => Integer::Long(bits),
            }
        });
        match result {
            Integer::Int(number) => Value::Int32(number),
            Integer::Long(number) => Value::Int64(number),
        }
    }
}

impl Modifier for Bit {
    fn update(
        &self,
        run: &Run<'_>,
        _: bool,
        element: Element<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Effect> {
        let Some(start) = Integer::of(element.value()) else {
            return Err(Error::bad_value(format!(
                "Cannot apply $bit to a value of non-integral type.{} has the field {} of non-integer type {}",
                text::id_of(run.root),
                element.key(),
                element.value().type_name()
            )));
        };
        let result = self.result(start);
        if same_bytes(result, element.value()) {
            return Ok(Effect::Kept);
        }
        Ok(put(out, element.key_bytes(), result))
    }

    fn missing(&self, _: &Run<'_>) -> Missing {
        Missing::Create
    }

    fn create(&self, _: &Run<'_>, name: &[u8], out: &mut Vec<u8>) -> Result<()> {
        put(out, name, self.result(Integer::Int(0)));
        Ok(())
    }
}
