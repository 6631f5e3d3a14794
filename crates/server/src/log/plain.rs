//! Log lines for people: time, severity, component, message, and the attributes as `name=value`.

use super::json;
use quire_commands::log::{LogLine, Severity};
use quire_document::Value;
use std::fmt::Write;

/// Returns one line without its line break. Control characters of a text are escaped, so that
/// nothing in a client's request can look like a line of its own.
pub(crate) fn line(line: &LogLine<'_>, now_ms: i64) -> String {
    let severity = match line.severity {
        Severity::Fatal => "FATAL",
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "info",
    };
    let time = json::time(now_ms);
    let time = time.get(..23).unwrap_or_default().replace('T', " ");
    let mut out = String::with_capacity(128);
    // Writing to a string cannot fail.
    let _ = write!(out, "{time} {severity:<7} {:<8} ", line.component);
    escaped(&mut out, line.message);
    let attributes = json::bounded(&line.attributes);
    for element in attributes.as_doc().iter() {
        out.push_str("  ");
        escaped(&mut out, element.key());
        out.push('=');
        match element.value() {
            Value::String(text) if is_word(text) => out.push_str(text),
            value => json::append(&mut out, value),
        }
    }
    out
}

/// Returns true if a text needs no quotes.
fn is_word(text: &str) -> bool {
    let plain = |letter: char| !letter.is_control() && !letter.is_whitespace() && letter != '"';
    !text.is_empty() && text.chars().all(plain)
}

fn escaped(out: &mut String, text: &str) {
    for letter in text.chars() {
        match letter.is_control() {
            true => out.extend(letter.escape_default()),
            false => out.push(letter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_document::doc;

    #[test]
    fn a_line_reads_like_a_sentence() {
        let shown = line(
            &LogLine {
                severity: Severity::Warning,
                component: "NETWORK",
                id: 22943,
                context: "listener",
                message: "Connection accepted\nfake",
                attributes: doc! { "remote": "127.0.0.1:1", "n": 5, "why": "a \"b\"\n", "d": { "x": [1] } },
            },
            1_709_210_096_789,
        );
        assert_eq!(
            shown,
            "2024-02-29 12:34:56.789 warning NETWORK  Connection accepted\\nfake  remote=127.0.0.1:1  n=5  \
             why=\"a \\\"b\\\"\\n\"  d={\"x\":[1]}"
        );
    }
}
