//! Doubles as text.

/// The shortest text that reads back as the same double, in JavaScript's layout ("1e+21", "0.1",
/// "5"): plain digits from 1e-6 up to 1e21, an exponent outside.
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
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", mantissa),
    };
    let digits: String = mantissa.chars().filter(|&digit| digit != '.').collect();
    let count = digits.len() as i32;
    match exponent {
        -6..0 => format!("{sign}0.{}{digits}", "0".repeat((-exponent - 1) as usize)),
        0..21 if exponent + 1 >= count => {
            format!("{sign}{digits}{}", "0".repeat((exponent + 1 - count) as usize))
        }
        0..21 => {
            let (whole, fraction) = digits.split_at((exponent + 1) as usize);
            format!("{sign}{whole}.{fraction}")
        }
        _ => format!("{sign}{mantissa}e{exponent:+}"),
    }
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
}
