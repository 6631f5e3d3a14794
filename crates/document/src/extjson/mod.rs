//! Extended JSON, version 2: the text in which MongoDB's tools exchange documents. The canonical
//! format keeps every type; the relaxed format writes plain numbers and dates for people.
//!
//! [`parse_doc`] reads the output of [`print`](fn@print) in the canonical format back to the same
//! bytes, except for two limits of the format: a NaN loses its payload, and a document that looks
//! like a wrapped value (`{$oid: "..."}`) becomes that value.

mod parse;
mod print;

pub use crate::literal::scan::{decode_base64, decode_hex};
pub use parse::{parse, parse_doc};
pub use print::{Format, print, write};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::literal::parse as literal;
    use crate::{Value, doc, identical};

    const CANONICAL: Format = Format { canonical: true, pretty: false };
    const RELAXED: Format = Format { canonical: false, pretty: false };

    /// Values in shell spelling, in canonical and in relaxed Extended JSON.
    const SPELLINGS: &[(&str, &str, &str)] = &[
        ("1.0", r#"{"$numberDouble":"1.0"}"#, "1.0"),
        ("-0.0", r#"{"$numberDouble":"-0.0"}"#, "-0.0"),
        ("1.5e-7", r#"{"$numberDouble":"1.5e-7"}"#, "1.5e-7"),
        ("1e+21", r#"{"$numberDouble":"1e+21"}"#, "1e+21"),
        ("NaN", r#"{"$numberDouble":"NaN"}"#, r#"{"$numberDouble":"NaN"}"#),
        ("-Infinity", r#"{"$numberDouble":"-Infinity"}"#, r#"{"$numberDouble":"-Infinity"}"#),
        (r#""a\"\\\n\u0001é😀""#, r#""a\"\\\n\u0001é😀""#, r#""a\"\\\n\u0001é😀""#),
        ("{}", "{}", "{}"),
        ("[]", "[]", "[]"),
        (r#"BinData(0, "AQID")"#, r#"{"$binary":{"base64":"AQID","subType":"00"}}"#, ""),
        (r#"BinData(128, "")"#, r#"{"$binary":{"base64":"","subType":"80"}}"#, ""),
        (
            r#"UUID("00112233-4455-6677-8899-aabbccddeeff")"#,
            r#"{"$binary":{"base64":"ABEiM0RVZneImaq7zN3u/w==","subType":"04"}}"#,
            "",
        ),
        ("undefined", r#"{"$undefined":true}"#, ""),
        (r#"ObjectId("0123456789abcdef01234567")"#, r#"{"$oid":"0123456789abcdef01234567"}"#, ""),
        ("true", "true", "true"),
        ("null", "null", "null"),
        (
            r#"ISODate("2025-01-15T08:30:00.000Z")"#,
            r#"{"$date":{"$numberLong":"1736929800000"}}"#,
            r#"{"$date":"2025-01-15T08:30:00Z"}"#,
        ),
        (
            r#"ISODate("2025-01-15T08:30:00.012Z")"#,
            r#"{"$date":{"$numberLong":"1736929800012"}}"#,
            r#"{"$date":"2025-01-15T08:30:00.012Z"}"#,
        ),
        ("Date(-1)", r#"{"$date":{"$numberLong":"-1"}}"#, ""),
        ("Date(9223372036854775807)", r#"{"$date":{"$numberLong":"9223372036854775807"}}"#, ""),
        ("/a\\/b/im", r#"{"$regularExpression":{"pattern":"a/b","options":"im"}}"#, ""),
        (r#"RegExp("", "si")"#, r#"{"$regularExpression":{"pattern":"","options":"si"}}"#, ""),
        (
            r#"DBPointer("d.c", ObjectId("0123456789abcdef01234567"))"#,
            r#"{"$dbPointer":{"$ref":"d.c","$id":{"$oid":"0123456789abcdef01234567"}}}"#,
            "",
        ),
        (r#"Code("f()")"#, r#"{"$code":"f()"}"#, ""),
        (
            r#"Code("f()", {x: NumberLong("1")})"#,
            r#"{"$code":"f()","$scope":{"x":{"$numberLong":"1"}}}"#,
            r#"{"$code":"f()","$scope":{"x":1}}"#,
        ),
        (r#"Symbol("s")"#, r#"{"$symbol":"s"}"#, ""),
        ("2147483647", r#"{"$numberInt":"2147483647"}"#, "2147483647"),
        (
            "Timestamp(4294967295, 4294967295)",
            r#"{"$timestamp":{"t":4294967295,"i":4294967295}}"#,
            "",
        ),
        (
            r#"NumberLong("-9223372036854775808")"#,
            r#"{"$numberLong":"-9223372036854775808"}"#,
            "-9223372036854775808",
        ),
        (r#"NumberDecimal("1.10E+3")"#, r#"{"$numberDecimal":"1.10E+3"}"#, ""),
        (r#"NumberDecimal("-Infinity")"#, r#"{"$numberDecimal":"-Infinity"}"#, ""),
        ("MinKey", r#"{"$minKey":1}"#, ""),
        ("MaxKey", r#"{"$maxKey":1}"#, ""),
    ];

    #[test]
    fn every_type_has_its_spelling() {
        for (shell, canonical, relaxed) in SPELLINGS {
            let value = literal(shell).unwrap();
            assert_eq!(print(&value, CANONICAL), *canonical, "{shell}");
            let relaxed = if relaxed.is_empty() { canonical } else { relaxed };
            assert_eq!(print(&value, RELAXED), *relaxed, "{shell}");
            let read = parse(canonical).unwrap_or_else(|error| panic!("{canonical}: {error}"));
            assert!(identical(read.as_value(), value.as_value()), "{canonical}: {read:?}");
            parse(relaxed).unwrap_or_else(|error| panic!("{relaxed}: {error}"));
        }
    }

    #[test]
    fn all_types_nested_come_back_byte_for_byte() {
        let inner = SPELLINGS.iter().enumerate().map(|(at, (shell, ..))| format!("f{at}: {shell}"));
        let inner = inner.collect::<Vec<_>>().join(", ");
        let text =
            format!("{{{inner}, nested: {{a: [{{{inner}}}, [{{{inner}}}]]}}, f1: 2, '': 3}}");
        let original = crate::literal::parse_doc(&text.replace('\'', "\"")).unwrap();
        for pretty in [false, true] {
            let text = print(&original, Format { canonical: true, pretty });
            assert_eq!(parse_doc(&text).unwrap().as_bytes(), original.as_bytes());
        }
    }

    #[test]
    fn older_spellings_are_read() {
        for (text, shell) in [
            (r#"{"$binary":"AQID","$type":"80"}"#, r#"BinData(128, "AQID")"#),
            (r#"{"$uuid":"00112233-4455-6677-8899-aabbccddeeff"}"#, SPELLINGS[11].0),
            (r#"{"$regex":"^a","$options":"i"}"#, "/^a/i"),
            (r#"{"$date":1736929800000}"#, SPELLINGS[16].0),
            (r#"{"$date":"2025-01-15T10:30:00+02:00"}"#, SPELLINGS[16].0),
            (r#"{"$timestamp":{"t":{"$numberInt":"1"},"i":2}}"#, "Timestamp(1, 2)"),
            (r#"{"$numberLong":5}"#, r#"NumberLong("5")"#),
            ("4294967296", r#"NumberLong("4294967296")"#),
            ("18446744073709551616", "18446744073709551616.0"),
            (" [ 1 , 2.50 ] ", "[1, 2.5]"),
            (r#"{"$numberDouble":"1"}"#, "1.0"),
        ] {
            let read = parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            let expected = literal(shell).unwrap();
            assert!(identical(read.as_value(), expected.as_value()), "{text}: {read:?}");
        }
    }

    #[test]
    fn operators_stay_documents() {
        for text in [
            r#"{"a":{"$gt":5,"$lt":6}}"#,
            r#"{"a":{"$regex":"^a"}}"#,
            r#"{"a":{"$regex":{"$regularExpression":{"pattern":"a","options":""}},"$options":"i"}}"#,
            r#"{"a":{"$type":2}}"#,
            r#"{"$ref":"c","$id":1}"#,
            r#"{"x":1,"$oid":"2"}"#,
        ] {
            let read = parse_doc(text).unwrap();
            assert_eq!(print(&read, RELAXED), text);
        }
        let read = parse_doc(r#"{"a":{"$gt":{"$date":{"$numberLong":"5"}}}}"#).unwrap();
        assert_eq!(read, doc! { "a": { "$gt": Value::Date(5) } });
    }

    #[test]
    fn mistakes_have_places() {
        for text in [
            "",
            "{",
            "{a:1}",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1",
            "{\"a\":1,}",
            "[1,]",
            "[1 2]",
            "{} {}",
            "nul",
            "NaN",
            "01",
            "1.",
            "+1",
            ".5",
            "1e",
            "\"a",
            "\"\\x\"",
            "\"\n\"",
            "'a'",
            "{\"a\":1]",
            r#"{"a\u0000":1}"#,
            r#"{"$oid":"zz"}"#,
            r#"{"$oid":1}"#,
            r#"{"$oid":"0123456789abcdef01234567","x":1}"#,
            r#"{"$numberInt":"2147483648"}"#,
            r#"{"$numberInt":"1","x":1}"#,
            r#"{"$date":"yesterday"}"#,
            r#"{"$date":true}"#,
            r#"{"$binary":{"base64":"A","subType":"00"}}"#,
            r#"{"$binary":{"base64":"AQID","subType":"100"}}"#,
            r#"{"$binary":{"base64":"AQID"}}"#,
            r#"{"$timestamp":{"t":-1,"i":0}}"#,
            r#"{"$timestamp":{"t":1}}"#,
            r#"{"$minKey":2}"#,
            r#"{"$undefined":false}"#,
            r#"{"$code":1}"#,
            r#"{"$code":"","$scope":1}"#,
            r#"{"$symbol":1}"#,
            r#"{"$regularExpression":{"pattern":"a"}}"#,
            r#"{"$regularExpression":{"pattern":"\u0000","options":""}}"#,
            r#"{"$dbPointer":{"$ref":"a"}}"#,
            r#"{"$numberDecimal":"x"}"#,
            r#"{"$numberDouble":"x"}"#,
            r#"{"$uuid":"00"}"#,
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        let error = parse_doc("{\"a\": 1,\n \"b\": ?}").unwrap_err();
        assert_eq!((error.line, error.column), (2, 7));
        assert!(parse_doc("[1]").is_err());
        assert!(parse(&"[".repeat(100_000)).unwrap_err().to_string().contains("nested"));
    }

    #[test]
    fn pretty_is_indented() {
        let value = doc! { "a": 1, "b": [1i64, { "c": "x" }], "d": {}, "e": Value::Date(5) };
        let text = print(&value, Format { canonical: false, pretty: true });
        let lines = [
            "{",
            "\t\"a\": 1,",
            "\t\"b\": [",
            "\t\t1,",
            "\t\t{",
            "\t\t\t\"c\": \"x\"",
            "\t\t}",
            "\t],",
            "\t\"d\": {},",
            "\t\"e\": {\"$date\":\"1970-01-01T00:00:00.005Z\"}",
            "}",
        ];
        assert_eq!(text, lines.join("\n"));
    }
}
