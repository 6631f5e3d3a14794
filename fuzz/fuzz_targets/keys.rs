//! Damaged keys are errors; the keys of two generated values have the same order as the values.
#![no_main]

use libfuzzer_sys::fuzz_target;
use quire_document::key::{KeyReader, encode};
use quire_document::testing::Generator;
use quire_document::{compare, identical};

fuzz_target!(|bytes: &[u8]| {
    let (bits, key) = bytes.split_at(bytes.len().min(4));
    for descending in [false, true] {
        let mut reader = KeyReader::new(key, bits);
        while !reader.rest().is_empty() {
            let Ok(Some(value)) = reader.next(descending) else { break };
            assert!(identical(value.as_value(), value.as_value()));
        }
    }
    let Ok(seed) = <[u8; 8]>::try_from(bytes.get(..8).unwrap_or_default()) else { return };
    let mut generator = Generator::new(u64::from_le_bytes(seed));
    let (a, b) = (generator.value(), generator.value());
    assert_eq!(encode(&a).cmp(&encode(&b)), compare(a.as_value(), b.as_value(), None));
});
