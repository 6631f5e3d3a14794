//! The literals of the conformance cases, in shell syntax. Each BSON type has its own spelling, so
//! that values of different types never look alike: `{_id: 1, at:
//! ISODate("2025-01-15T08:30:00.000Z")}`.
//!
//! [`parse`] reads the output of [`print()`] back to the same bytes. The parser also accepts some
//! other spellings: line breaks, trailing commas, `NumberInt(1)`, dates without milliseconds.

pub(crate) mod brackets;
mod parse;
mod print;
pub(crate) mod scan;

pub use parse::{parse, parse_doc, parse_prefix};
pub use print::{print, write};
pub(crate) use print::{quote, write_base64, write_double};
pub use scan::{LiteralError, NESTING_MAX};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DocBuf, identical};

    #[test]
    fn spellings_stay() {
        for text in [
            "{}",
            "[]",
            "1",
            "-2147483648",
            "NumberLong(\"1\")",
            "NumberLong(\"-9223372036854775808\")",
            "1.0",
            "-0.0",
            "1e+21",
            "1.5e-7",
            "NaN",
            "Infinity",
            "-Infinity",
            "NumberDecimal(\"1.10\")",
            "NumberDecimal(\"NaN\")",
            "\"text \\\"q\\\" \\\\ \\n \\u0001 é 😀\"",
            "true",
            "null",
            "undefined",
            "{name: 1, \"a.b\": [2, {$x: 3}], \"\": 4, \"5\": 6, _u: 7}",
            "ObjectId(\"0123456789abcdef01234567\")",
            "ISODate(\"2025-01-15T08:30:00.000Z\")",
            "Date(253402300800000)",
            "Date(-62135596800001)",
            "Timestamp(4294967295, 1)",
            "BinData(0, \"AQID\")",
            "BinData(4, \"AQID\")",
            "BinData(128, \"\")",
            "UUID(\"00112233-4455-6677-8899-aabbccddeeff\")",
            "/^a\\/b/im",
            "/\\d+/",
            "RegExp(\"\", \"\")",
            "RegExp(\"a\\nb\", \"i\")",
            "RegExp(\"a\\\\/b\", \"\")",
            "RegExp(\"x\", \"si\")",
            "MinKey",
            "MaxKey",
            "Code(\"f()\")",
            "Code(\"f()\", {x: 1})",
            "Symbol(\"s\")",
            "DBPointer(\"db.c\", ObjectId(\"0123456789abcdef01234567\"))",
        ] {
            let value = parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(print(&value), text);
        }
    }

    #[test]
    fn other_spellings_are_read() {
        let same = |a: &str, b: &str| {
            let (a, b) = (parse(a).unwrap(), parse(b).unwrap());
            assert!(identical(a.as_value(), b.as_value()), "{a:?} {b:?}");
        };
        same("NumberInt(7)", "7");
        same("NumberInt(\"7\")", "7");
        same("NumberLong(7)", "NumberLong(\"7\")");
        same("4294967296", "NumberLong(\"4294967296\")");
        same("1E3", "1000.0");
        same("{ a : 1 ,\n  b:[ 1,2, ],}", "{a: 1, b: [1, 2]}");
        same("ISODate(\"2021-06-01T10:00:00Z\")", "ISODate(\"2021-06-01T10:00:00.000Z\")");
        same("Date(0)", "ISODate(\"1970-01-01T00:00:00.000Z\")");
        same("Date(\"5\")", "Date(5)");
        same("\"\\ud83d\\ude00\\/\"", "\"😀/\"");
        same("/a/mi", "/a/im");
        same("NumberDecimal(1)", "NumberDecimal(\"1\")");
    }

    #[test]
    fn errors_have_places() {
        for text in [
            "",
            "{",
            "{a",
            "{a:",
            "{a: 1",
            "{a: 1]",
            "[1 2]",
            "\"a",
            "\"\\x\"",
            "\"\\ud83d\"",
            "nul",
            "Foo(1)",
            "ObjectId(\"12\")",
            "ObjectId(1)",
            "NumberLong(\"x\")",
            "1 2",
            "/a",
            "//",
            "99999999999999999999",
            "Timestamp(1)",
            "Timestamp(-1, 0)",
            "BinData(256, \"\")",
            "BinData(0, \"A\")",
            "UUID(\"00\")",
            "ISODate(\"yesterday\")",
            "Code(1)",
            "{1: 2}",
            "\"\u{1}\"",
            "NumberDecimal(\"1e\")",
            "{a\0: 1}",
            "{\"a\\u0000\": 1}",
            "NumberLong(1.5)",
        ] {
            assert!(parse(text).is_err(), "{text:?}");
        }
        let error = parse("{a: 1,\n b: ?}").unwrap_err();
        assert_eq!((error.line, error.column), (2, 5));
        assert!(parse(&"[".repeat(100_000)).unwrap_err().to_string().contains("nested"));
    }

    #[test]
    fn documents_and_prefixes() {
        let doc: DocBuf = parse_doc(" {a: 1} ").unwrap();
        assert_eq!(doc, crate::doc! { "a": 1 });
        assert!(parse_doc("[1]").is_err());
        let (value, used) = parse_prefix("{a: 1} {b: 2}").unwrap();
        assert_eq!((print(&value).as_str(), used), ("{a: 1}", 6));
    }
}
