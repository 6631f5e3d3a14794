//! Documents as mongod's messages print them: `{ a: 1, b: "x" }`. Only for people: strings are not
//! escaped, and nothing parses the output.

use quire_document::{Doc, Value, message};

/// Returns the document as an error message shows it.
pub fn debug_doc(doc: Doc<'_>) -> String {
    message(doc).to_string()
}

/// Returns the value as an error message shows it.
pub fn debug_value(value: Value<'_>) -> String {
    message(value).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_document::doc;

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
