//! The text of doubles.

use std::ops::Range;

/// Returns the shortest text that parses to the same double, formatted like JavaScript's ("1e+21",
/// "0.1", "5"): plain digits from 1e-6 to below 1e21, otherwise with an exponent.
pub fn shortest_double(number: f64) -> String {
    if !number.is_finite() {
        return match number {
            f64::INFINITY => "Infinity".into(),
            f64::NEG_INFINITY => "-Infinity".into(),
            _ => "NaN".into(),
        };
    }
    if number == 0.0 {
        return "0".into();
    }
    let text = format!("{number:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    plain(mantissa, exponent, -6..21).unwrap_or_else(|| format!("{mantissa}e{exponent:+}"))
}

/// Returns the text of a double as `$toString` formats it: the shortest digits that parse to the
/// same double, plain from 1e-4 to below 1e16, otherwise with an exponent of two digits ("1e+16",
/// "9e-05", "-0", "3").
pub fn conversion_text(number: f64) -> String {
    if !number.is_finite() || number == 0.0 {
        let zero = if number.is_sign_negative() { "-0" } else { "0" };
        return if number == 0.0 { zero.into() } else { shortest_double(number) };
    }
    let text = format!("{number:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    layout(mantissa, exponent.parse().unwrap_or(0))
}

/// Returns the text of a double as error messages show it: 16 significant digits, with `.0`
/// appended if there is no point ("5.0", "0.1", "1e+30.0", "inf.0").
pub fn message_text(number: f64) -> String {
    let mut text = if number.is_nan() {
        "nan".into()
    } else if number.is_infinite() {
        if number < 0.0 { "-inf" } else { "inf" }.into()
    } else if number == 0.0 {
        if number.is_sign_negative() { "-0" } else { "0" }.into()
    } else {
        let text = format!("{number:.15e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let mantissa = mantissa.trim_end_matches('0').trim_end_matches('.');
        layout(mantissa, exponent.parse().unwrap_or(0))
    };
    if !text.contains('.') {
        text.push_str(".0");
    }
    text
}

/// Formats digits as C's `%g` with a precision of 16 does.
fn layout(mantissa: &str, exponent: i32) -> String {
    plain(mantissa, exponent, -4..16).unwrap_or_else(|| {
        let direction = if exponent < 0 { '-' } else { '+' };
        format!("{mantissa}e{direction}{:02}", exponent.abs())
    })
}

/// Writes `mantissa` (with its sign and point) times 10^`exponent` without an exponent; `None` if
/// the exponent is not one of `exponents`.
fn plain(mantissa: &str, exponent: i32, exponents: Range<i32>) -> Option<String> {
    if !exponents.contains(&exponent) {
        return None;
    }
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", mantissa),
    };
    let digits: String = mantissa.chars().filter(|&digit| digit != '.').collect();
    let zeros = |count: i32| "0".repeat(count as usize);
    let whole = exponent + 1;
    Some(match whole - digits.len() as i32 {
        _ if exponent < 0 => format!("{sign}0.{}{digits}", zeros(-whole)),
        missing if missing >= 0 => format!("{sign}{digits}{}", zeros(missing)),
        _ => {
            let (whole, fraction) = digits.split_at(whole as usize);
            format!("{sign}{whole}.{fraction}")
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts() {
        for (number, text) in [
            (1.0, "1"),
            (-1.5, "-1.5"),
            (1e21, "1e+21"),
            (1e20, "100000000000000000000"),
            (123456789012345680000.0, "123456789012345680000"),
            (1e-7, "1e-7"),
            (0.000001, "0.000001"),
            (-0.00012, "-0.00012"),
            (5e-324, "5e-324"),
            (f64::MAX, "1.7976931348623157e+308"),
            (0.1 + 0.2, "0.30000000000000004"),
            (-0.0, "0"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(shortest_double(number), text);
        }
    }

    #[test]
    fn conversions() {
        for (number, text) in [
            (3.0, "3"),
            (-3.15, "-3.15"),
            (-0.0, "-0"),
            (1e16, "1e+16"),
            (9999999999999998.0, "9999999999999998"),
            (1e15, "1000000000000000"),
            (9e-5, "9e-05"),
            (0.0001, "0.0001"),
            (1.0000000000000002, "1.0000000000000002"),
            (2.225073858507201e-308, "2.225073858507201e-308"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(conversion_text(number), text);
        }
    }

    #[test]
    fn messages() {
        for (number, text) in [
            (5.0, "5.0"),
            (0.1, "0.1"),
            (1e30, "1e+30.0"),
            (1.5e30, "1.5e+30"),
            (-0.0, "-0.0"),
            (f64::NAN, "nan.0"),
            (f64::INFINITY, "inf.0"),
            (180.0001, "180.0001"),
            (0.30000000000000004, "0.3"),
            (1e-5, "1e-05.0"),
            (123456789012.5, "123456789012.5"),
        ] {
            assert_eq!(message_text(number), text);
        }
    }
}
