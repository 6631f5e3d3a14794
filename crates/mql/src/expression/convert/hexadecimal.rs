//! Hexadecimal floating-point numbers in C's notation: `0X1.8P1` is 3.

/// The most bits of the significand that are kept; lower bits only affect the rounding.
const BITS_MAX: u32 = 60;

/// Parses a number. As in mongod, a lower-case `0x` is valid only after a sign.
pub(super) fn double(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let negative = text.starts_with('-');
    let signed = unsigned.len() < text.len();
    let rest =
        unsigned.strip_prefix("0X").or_else(|| unsigned.strip_prefix("0x").filter(|_| signed))?;
    let (digits, exponent) = match rest.split_once(['p', 'P']) {
        Some((digits, exponent)) => (digits, power(exponent)?),
        None => (rest, 0),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut significand = 0u64;
    let mut exponent = exponent - 4 * fraction.len() as i64;
    for digit in whole.chars().chain(fraction.chars()) {
        let digit = u64::from(digit.to_digit(16)?);
        if significand >> (BITS_MAX - 4) == 0 {
            significand = significand << 4 | digit;
        } else {
            // One bit represents all dropped bits, so that the rounding is correct.
            significand |= u64::from(digit != 0);
            exponent += 4;
        }
    }
    let number = scaled(significand as f64, exponent);
    Some(if negative { -number } else { number })
}

/// Parses a decimal exponent with its sign. A huge exponent is reduced to one that is still out of
/// range.
fn power(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let size = digits.parse::<i64>().unwrap_or(i64::MAX).min(1 << 40);
    Some(if text.starts_with('-') { -size } else { size })
}

/// Returns `number` times 2^`exponent`, multiplied in steps that are valid doubles.
fn scaled(mut number: f64, exponent: i64) -> f64 {
    let mut left = exponent.clamp(-3000, 3000) as i32;
    while left != 0 && number != 0.0 && number.is_finite() {
        let step = left.clamp(-1000, 1000);
        number *= 2f64.powi(step);
        left -= step;
    }
    number
}

#[cfg(test)]
mod tests {
    use super::double;

    #[test]
    fn numbers_and_other_types() {
        for (text, number) in [
            ("0X1P0", 1.0),
            ("+0x1.8p1", 3.0),
            ("-0xffp0", -255.0),
            ("+0xff", 255.0),
            ("0X.8", 0.5),
            ("0X1.FFFFFFFFFFFFF8P0", 2.0),
            ("0X1.FFFFFFFFFFFFF4P0", 2.0 - f64::EPSILON),
            ("0X1P-1074", f64::from_bits(1)),
            ("0X1P99999999999999999999", f64::INFINITY),
            ("0X1P-99999999999999999999", 0.0),
            ("0X123456789ABCDEF01", 2.0988295479420645e19),
        ] {
            assert_eq!(double(text), Some(number), "{text}");
        }
        for text in
            ["0x1p0", "0X", "0XP0", "0X.", "0X.P0", "0X1P", "0XG", "1P0", "0X1.1.1", "0X1P1.0"]
        {
            assert_eq!(double(text), None, "{text}");
        }
    }
}
