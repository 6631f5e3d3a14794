//! The parser of Extended JSON never panics, and its result prints to a canonical text that parses
//! to the same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use quire_document::extjson::{self, Format};
use quire_document::identical;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(value) = extjson::parse(text) else { return };
    for pretty in [false, true] {
        let printed = extjson::print(&value, Format { canonical: true, pretty });
        let again = extjson::parse(&printed).expect("what was printed");
        // The text format has no sign for a decimal NaN.
        let same = identical(value.as_value(), again.as_value());
        assert!(same || printed.contains("NaN"), "{printed}");
    }
});
