//! Log lines and BSON values as JSON text (relaxed Extended JSON).

use quire_commands::log::{LogLine, Severity};
use quire_document::calendar::iso_text;
use quire_document::extjson::{self, Format};
use quire_document::{Doc, DocBuf, Value};
use std::borrow::Cow;
use std::fmt::Write;

/// The most bytes of a line's attributes that are written in full. The newest lines stay in memory.
const ATTRIBUTES_BYTES_MAX: usize = 64 * 1024;

/// The most bytes of an attribute in a longer line. MongoDB: `maxLogSizeKB`, 10.
const ATTRIBUTE_BYTES_MAX: usize = 10 * 1024;

/// Returns one line without its line break; `startup` marks it as a startup warning.
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
    let _ = write!(
        out,
        "{{\"t\":{{\"$date\":\"{}\"}},\"s\":{severity:<6}\"c\":{component:<12}\"id\":{id:<9}\"ctx\":",
        time(now_ms)
    );
    append(&mut out, line.context);
    out.push_str(",\"msg\":");
    append(&mut out, line.message);
    if !line.attributes.as_doc().is_empty() {
        out.push_str(",\"attr\":");
        append(&mut out, bounded(&line.attributes).as_doc());
    }
    if startup {
        out.push_str(",\"tags\":[\"startupWarnings\"]");
    }
    out.push('}');
    out
}

/// Returns the attributes, or if they are long those with the size of each long one in its place.
pub(super) fn bounded(attributes: &DocBuf) -> Cow<'_, DocBuf> {
    match attributes.as_bytes().len() {
        0..=ATTRIBUTES_BYTES_MAX => Cow::Borrowed(attributes),
        _ => Cow::Owned(shortened(attributes.as_doc())),
    }
}

/// Returns the attributes with the size of a long one in its place.
fn shortened(attributes: Doc<'_>) -> DocBuf {
    DocBuf::build(|writer| {
        for element in attributes.iter() {
            let bytes = element.value_bytes().len();
            match bytes <= ATTRIBUTE_BYTES_MAX {
                true => writer.append_element(element),
                false => writer.append(element.key(), &*format!("({bytes} bytes)")),
            };
        }
    })
}

/// Returns a time in the log's format: ISO 8601 with milliseconds and the offset of UTC.
pub(crate) fn time(ms: i64) -> String {
    iso_text(ms).replace('Z', "+00:00")
}

/// Appends a value as relaxed Extended JSON.
pub(super) fn append<'v>(out: &mut String, value: impl Into<Value<'v>>) {
    // Writing to a string cannot fail.
    let _ = extjson::write(value.into(), Format::default(), out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_document::{Decimal128, doc};

    #[test]
    fn times_and_lines_look_like_mongods() {
        assert_eq!(time(0), "1970-01-01T00:00:00.000+00:00");
        assert_eq!(time(1_709_210_096_789), "2024-02-29T12:34:56.789+00:00");
        let number = Decimal128::parse("1.50").unwrap();
        let shown = line(
            &LogLine {
                severity: Severity::Info,
                component: "NETWORK",
                id: 22943,
                context: "listener",
                message: "Connection \"accepted\"\n",
                attributes: doc! { "remote": "127.0.0.1:1", "n": [1, 2.5, { "b": true }], "d": number },
            },
            false,
            0,
        );
        assert_eq!(
            shown,
            "{\"t\":{\"$date\":\"1970-01-01T00:00:00.000+00:00\"},\"s\":\"I\",  \"c\":\"NETWORK\",  \
             \"id\":22943,   \"ctx\":\"listener\",\"msg\":\"Connection \\\"accepted\\\"\\n\",\
             \"attr\":{\"remote\":\"127.0.0.1:1\",\"n\":[1,2.5,{\"b\":true}],\"d\":{\"$numberDecimal\":\"1.50\"}}}"
        );
    }

    /// 1,024 lines of 15 MB stayed in memory.
    #[test]
    fn a_line_has_a_limited_length() {
        let attributes = doc! { "a": 1, "text": "x".repeat(1 << 20).as_str() };
        let shown = line(
            &LogLine {
                severity: Severity::Info,
                component: "COMMAND",
                id: 1,
                context: "conn1",
                message: "Slow query",
                attributes,
            },
            false,
            0,
        );
        assert!(shown.contains("\"a\":1,\"text\":\"(1048581 bytes)\""), "{}", &shown[..200]);
        assert!(shown.len() < 300);
    }
}
