//! Documents as mongod's messages print them: `{ a: 1, b: "x" }`. Only for people: strings are not
//! escaped, and nothing parses the output.

use quire_document::{Doc, Value, message};
use quire_mql::context::{count_work, units};
use std::fmt::{self, Write};

/// Returns the document as an error message shows it. If the operation must end meanwhile, returns
/// the text up to there, because an error is on its way anyway.
pub fn debug_doc(doc: Doc<'_>) -> String {
    debug_value(Value::Document(doc))
}

/// Returns the value as an error message shows it, as [`debug_doc`] does.
pub fn debug_value(value: Value<'_>) -> String {
    let mut text = Text(String::new());
    if write!(text, "{}", message(value)).is_err() {
        text.0.push_str("...");
    }
    text.0
}

/// A text under construction. A document of megabytes takes a tenth of a second.
struct Text(String);

impl fmt::Write for Text {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        count_work(units(part.len())).map_err(|_| fmt::Error)?;
        self.0.push_str(part);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_document::{DocBuf, doc};
    use quire_error::{Error, ErrorCode};
    use quire_mql::context::{InterruptCheck, interruptible};
    use std::sync::Arc;

    #[test]
    fn the_text_of_a_large_document_ends_with_the_operation() {
        let doc = DocBuf::build(|writer| {
            (0..20_000).for_each(|at| {
                writer.append(&format!("f{at}"), at);
            });
        });
        let whole = debug_doc(doc.as_doc());
        let killed: Arc<dyn InterruptCheck> =
            Arc::new(|| Err(Error::new(ErrorCode::Interrupted, "killed")));
        let text = interruptible(&killed, || Ok(debug_doc(doc.as_doc()))).unwrap();
        let shown = text.strip_suffix("...").unwrap();
        assert!(shown.len() < whole.len() && whole.starts_with(shown));
    }

    #[test]
    fn prints_as_mongod_does() {
        let doc = doc! { "a": 1, "b": 1.0, "c": "x", "d": { "e": [1, 2] }, "f": {}, "g": [], "h": -0.0, "i": 0.5 };
        let text = debug_doc(doc.as_doc());
        assert_eq!(
            text,
            r#"{ a: 1, b: 1.0, c: "x", d: { e: [ 1, 2 ] }, f: {}, g: [], h: -0.0, i: 0.5 }"#
        );
        assert_eq!(debug_value(Value::Double(f64::NAN)), "nan.0");
        assert_eq!(debug_value(Value::Double(f64::INFINITY)), "inf.0");
        assert_eq!(debug_value(Value::Double(1e30)), "1e+30.0");
        assert_eq!(debug_value(Value::Double(123456.789)), "123456.789");
    }
}
