//! How operators read whole numbers from their operands and from documents.

use quire_document::Value;
use quire_document::number::Number;

/// The number cut to a whole one; `None` for what is no number, not finite or beyond 64 bits.
pub fn truncated(value: Value<'_>) -> Option<i64> {
    match value.as_number()? {
        Number::Int(number) => Some(number),
        Number::Double(number) => {
            let cut = number.trunc();
            // The bounds are -2^63 and 2^63; the upper one is no 64-bit number.
            let fits = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&cut);
            fits.then_some(cut as i64)
        }
        Number::Decimal(decimal) => {
            let parts = decimal.parts()?;
            let size = match u32::try_from(parts.exponent) {
                Ok(_) if parts.coefficient == 0 => 0,
                Ok(exponent) => 10u128.checked_pow(exponent)?.checked_mul(parts.coefficient)?,
                Err(_) => 10u128
                    .checked_pow(parts.exponent.unsigned_abs())
                    .map_or(0, |scale| parts.coefficient / scale),
            };
            let size = i128::try_from(size).ok()?;
            i64::try_from(if parts.negative { -size } else { size }).ok()
        }
    }
}

/// The number if it is exactly a whole one within 64 bits.
pub(crate) fn exact(value: Value<'_>) -> Option<i64> {
    value.as_number()?.exact_i64()
}

/// True if the number is NaN or infinite.
pub(crate) fn is_not_finite(value: Value<'_>) -> bool {
    match value.as_number() {
        Some(Number::Double(number)) => !number.is_finite(),
        Some(Number::Decimal(decimal)) => decimal.parts().is_none(),
        _ => false,
    }
}

/// MongoDB's idea of truth: zero, false, null, undefined and missing are false.
pub(crate) fn is_true(value: Value<'_>) -> bool {
    match value {
        Value::Bool(flag) => flag,
        Value::Null | Value::Undefined => false,
        Value::Int32(number) => number != 0,
        Value::Int64(number) => number != 0,
        Value::Double(number) => number != 0.0,
        Value::Decimal(decimal) => decimal.parts().is_none_or(|parts| parts.coefficient != 0),
        _ => true,
    }
}
