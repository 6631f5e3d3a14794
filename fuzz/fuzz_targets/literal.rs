//! The literal parser never panics, and its result prints to a text that parses to the same value.
#![no_main]

use libfuzzer_sys::fuzz_target;
use quire_document::{identical, literal};

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(value) = literal::parse(text) else { return };
    let printed = literal::print(&value);
    let again = literal::parse(&printed).expect("what was printed");
    // The text format has no sign for a decimal NaN.
    assert!(identical(value.as_value(), again.as_value()) || printed.contains("NaN"), "{printed}");
    assert_eq!(literal::print(&again), printed);
});
