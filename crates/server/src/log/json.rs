//! Log lines and BSON values as JSON text (relaxed Extended JSON).

use quire_commands::log::{LogLine, Severity};
use quire_document::{Doc, Value};
use std::fmt::Write;

/// One line without its line break; `startup` tags it as a startup warning.
pub(crate) fn line(line: &LogLine<'_>, startup: bool, now_ms: i64) -> String {
    let severity = match line.severity {
        Severity::Fatal => "F",
        Severity::Error => "E",
        Severity::Warning => "W",
        Severity::Info => "I",
    };
    let mut out = String::with_capacity(256);
    let component = format!("\"{}\",", line.component);
    let id = format!("{},", line.id);
    let severity = format!("\"{severity}\",");
    // Writing to a string cannot fail.
    let _ = write!(
        out,
        "{{\"t\":{{\"$date\":\"{}\"}},\"s\":{severity:<6}\"c\":{component:<12}\"id\":{id:<9}\"ctx\":",
        time(now_ms)
    );
    text(&mut out, line.context);
    out.push_str(",\"msg\":");
    text(&mut out, line.message);
    if !line.attributes.as_doc().is_empty() {
        out.push_str(",\"attr\":");
        document(&mut out, line.attributes.as_doc());
    }
    if startup {
        out.push_str(",\"tags\":[\"startupWarnings\"]");
    }
    out.push('}');
    out
}

/// A time of day in ISO 8601 with milliseconds, in UTC. (Civil-from-days, H. Hinnant's
/// "chrono-compatible low-level date algorithms".)
pub(crate) fn time(ms: i64) -> String {
    let (days, rest) = (ms.div_euclid(86_400_000), ms.rem_euclid(86_400_000));
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute) = (rest / 3_600_000, rest / 60_000 % 60);
    let (second, milli) = (rest / 1000 % 60, rest % 1000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}+00:00")
}

fn document(out: &mut String, doc: Doc<'_>) {
    out.push('{');
    for (at, (name, inner)) in doc.fields().enumerate() {
        if at > 0 {
            out.push(',');
        }
        text(out, name);
        out.push(':');
        value(out, inner);
    }
    out.push('}');
}

fn value(out: &mut String, shown: Value<'_>) {
    let _ = match shown {
        Value::String(inner) => return text(out, inner),
        Value::Document(inner) => return document(out, inner),
        Value::Array(inner) => {
            out.push('[');
            for (at, element) in inner.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                value(out, element);
            }
            out.push(']');
            return;
        }
        Value::Bool(inner) => write!(out, "{inner}"),
        Value::Int32(inner) => write!(out, "{inner}"),
        Value::Int64(inner) => write!(out, "{inner}"),
        Value::Double(inner) if inner.is_finite() => write!(out, "{inner:?}"),
        Value::Null => write!(out, "null"),
        Value::Date(inner) => write!(out, "{{\"$date\":\"{}\"}}", time(inner)),
        Value::ObjectId(inner) => {
            out.push_str("{\"$oid\":\"");
            inner.0.iter().for_each(|byte| {
                let _ = write!(out, "{byte:02x}");
            });
            out.push_str("\"}");
            return;
        }
        Value::Timestamp(inner) => {
            write!(out, "{{\"$timestamp\":{{\"t\":{},\"i\":{}}}}}", inner.seconds, inner.increment)
        }
        Value::Binary(inner) => {
            out.push_str("{\"$binary\":{\"base64\":\"");
            base64(out, inner.bytes);
            write!(out, "\",\"subType\":\"{:02x}\"}}}}", inner.subtype)
        }
        other => return text(out, &format!("{other:?}")),
    };
}

/// Base 64 with padding (RFC 4648, section 4).
fn base64(out: &mut String, bytes: &[u8]) {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            let digit = DIGITS.get((bits >> (18 - 6 * at)) as usize & 63).copied().unwrap_or(b'=');
            out.push(if at <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
}

fn text(out: &mut String, shown: &str) {
    out.push('"');
    for letter in shown.chars() {
        let _ = match letter {
            '"' => write!(out, "\\\""),
            '\\' => write!(out, "\\\\"),
            '\n' => write!(out, "\\n"),
            '\r' => write!(out, "\\r"),
            '\t' => write!(out, "\\t"),
            control if (control as u32) < 0x20 => write!(out, "\\u{:04x}", control as u32),
            other => {
                out.push(other);
                Ok(())
            }
        };
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_document::doc;

    #[test]
    fn bytes_are_base64() {
        let encoded = |bytes: &[u8]| {
            let mut out = String::new();
            base64(&mut out, bytes);
            out
        };
        assert_eq!(encoded(b""), "");
        assert_eq!(encoded(b"f"), "Zg==");
        assert_eq!(encoded(b"fo"), "Zm8=");
        assert_eq!(encoded(b"foobar"), "Zm9vYmFy");
    }

    #[test]
    fn times_and_lines_look_like_mongods() {
        assert_eq!(time(0), "1970-01-01T00:00:00.000+00:00");
        assert_eq!(time(1_709_210_096_789), "2024-02-29T12:34:56.789+00:00");
        let shown = line(
            &LogLine {
                severity: Severity::Info,
                component: "NETWORK",
                id: 22943,
                context: "listener",
                message: "Connection \"accepted\"\n",
                attributes: doc! { "remote": "127.0.0.1:1", "n": [1, 2.5, { "b": true }] },
            },
            false,
            0,
        );
        assert_eq!(
            shown,
            "{\"t\":{\"$date\":\"1970-01-01T00:00:00.000+00:00\"},\"s\":\"I\",  \"c\":\"NETWORK\",  \
             \"id\":22943,   \"ctx\":\"listener\",\"msg\":\"Connection \\\"accepted\\\"\\n\",\
             \"attr\":{\"remote\":\"127.0.0.1:1\",\"n\":[1,2.5,{\"b\":true}]}}"
        );
    }
}
