//! Validation never panics; valid bytes can be iterated, compared, printed, converted to keys and
//! parsed again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use quire_document::key::{KeyReader, TypeBits, append_full};
use quire_document::limits::Limits;
use quire_document::{Doc, Value, compare, hash_of, identical, literal, message, validate};

fuzz_target!(|bytes: &[u8]| {
    // Reading is memory safe without validation, too.
    let _ = Doc::from_valid_bytes(bytes).fields().count();
    let Ok(doc) = validate(bytes, &Limits::WIRE) else { return };
    let value = Value::Document(doc);
    assert!(compare(value, value, None).is_eq());
    let _ = (hash_of(value, None), message(value).to_string());
    let text = literal::print(value);
    let _ = literal::parse(&text);
    let (mut key, mut bits) = (Vec::new(), TypeBits::new());
    append_full(value, false, None, &mut key, &mut bits);
    let back = KeyReader::new(&key, bits.as_bytes()).next(false).unwrap().unwrap();
    // The names of array elements are not kept: the arrays are equal, their bytes may differ.
    assert!(compare(back.as_value(), value, None).is_eq());
    assert!(identical(back.as_value(), value) || text.contains('['), "{text}");
});
