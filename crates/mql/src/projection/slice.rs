//! find's form of `$slice`: a number of elements of an array.

use quire_document::number::Number;
use quire_document::{Array, ArrayWriter, Value};

/// The elements to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slice {
    /// The number of elements to skip; counted from the end if negative.
    skip: Option<i32>,
    /// The number of elements to keep; without `skip` the last ones if negative.
    limit: i32,
}

impl Slice {
    /// Parses the operand. Returns `None` if it does not have find's form. The caller then tries
    /// the form of an expression.
    pub(super) fn parse(operand: Value<'_>) -> Option<Slice> {
        match operand {
            Value::Array(array) => match array.to_vec()[..] {
                [skip, limit] if skip.is_number() && limit.is_number() => {
                    let limit = clamped(limit);
                    (limit > 0).then_some(Slice { skip: Some(clamped(skip)), limit })
                }
                _ => None,
            },
            limit if limit.is_number() => Some(Slice { skip: None, limit: clamped(limit) }),
            _ => None,
        }
    }

    /// Writes the elements to keep.
    pub(super) fn write(self, array: Array<'_>, writer: &mut ArrayWriter<'_>) {
        let (start, count) = self.range(array);
        for value in array.iter().skip(start).take(count) {
            writer.push(value);
        }
    }

    fn range(self, array: Array<'_>) -> (usize, usize) {
        let limit = self.limit.unsigned_abs() as usize;
        match self.skip {
            None if self.limit >= 0 => (0, limit),
            None => (array.count().saturating_sub(limit), limit),
            Some(skip) if skip >= 0 => (skip as usize, limit),
            Some(skip) => (array.count().saturating_sub(skip.unsigned_abs() as usize), limit),
        }
    }
}

/// Truncates a number to an integer of 32 bits. NaN is 0; a number out of range becomes the nearest
/// one.
fn clamped(value: Value<'_>) -> i32 {
    let whole = value.as_number().map_or(i64::MAX, |number| match number {
        number if number.is_nan() => 0,
        Number::Double(number) => number as i64,
        Number::Decimal(decimal) if decimal.is_negative() => {
            decimal.to_i64_truncated().unwrap_or(i64::MIN)
        }
        number => number.to_i64_truncated().unwrap_or(i64::MAX),
    });
    whole.clamp(i32::MIN.into(), i32::MAX.into()) as i32
}
