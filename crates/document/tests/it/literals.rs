//! Literals: the printed text parses back to the same bytes.

use quire_document::literal::{parse, print};
use quire_document::testing::Generator;
use quire_document::{Doc, Value, identical};

/// Returns false for values without a spelling: NaN payloads and decimals that are not canonical.
fn has_spelling(value: Value<'_>) -> bool {
    let fields = |doc: Doc<'_>| doc.iter().all(|element| has_spelling(element.value()));
    match value {
        Value::Double(number) => !number.is_nan() || number.to_bits() == f64::NAN.to_bits(),
        Value::Decimal(decimal) => {
            quire_document::Decimal128::parse(&decimal.to_string()) == Some(decimal)
        }
        Value::Document(doc) => fields(doc),
        Value::Array(array) => array.iter().all(has_spelling),
        Value::CodeWithScope(code) => fields(code.scope),
        _ => true,
    }
}

#[test]
fn print_then_parse() {
    let mut generator = Generator::new(6);
    let mut checked = 0;
    for _ in 0..20_000 {
        let value = generator.value();
        if !has_spelling(value.as_value()) {
            continue;
        }
        checked += 1;
        let text = print(&value);
        let back = parse(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert!(identical(back.as_value(), value.as_value()), "{text}");
        assert_eq!(print(&back), text);
    }
    assert!(checked > 10_000);
}

#[test]
fn any_text_is_an_error_or_a_value() {
    let mut generator = Generator::new(7);
    for _ in 0..20_000 {
        let mut text = print(&generator.value()).into_bytes();
        let at = generator.below(text.len() as u64) as usize;
        text[at] = *generator.pick(b"{}[](),:\"\\/0aE-. \n").unwrap();
        if let Ok(text) = std::str::from_utf8(&text)
            && let Ok(value) = parse(text)
        {
            let _ = print(&value);
        }
    }
}
