//! Parsing decimal text never panics and round-trips; arithmetic on any bits obeys its laws.
#![no_main]

use libfuzzer_sys::fuzz_target;
use quire_document::Decimal128;

fuzz_target!(|bytes: &[u8]| {
    if let Some(decimal) = std::str::from_utf8(bytes).ok().and_then(Decimal128::parse) {
        let text = decimal.to_string();
        assert_eq!(Decimal128::parse(&text).unwrap().to_string(), text);
    }
    let Some((a, rest)) = bytes.split_first_chunk::<16>() else { return };
    let Some((b, _)) = rest.split_first_chunk::<16>() else { return };
    let (a, b) = (Decimal128(*a), Decimal128(*b));
    assert_eq!(a.add(b), b.add(a));
    assert_eq!(a.multiply(b), b.multiply(a));
    let _ = (a.divide(b), a.sqrt(), a.to_f64(), a.to_i64_truncated(), a.floor(), a.ceil());
    if a.is_finite() && b.is_finite() && !b.is_zero() {
        assert!(a.remainder(b).abs().compare(b.abs()).is_lt());
        assert_eq!(a.subtract(b).compare(Decimal128::ZERO), a.compare(b));
    }
});
