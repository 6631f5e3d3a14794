//! Keys: bytes sort as values do, no key is a prefix of another, and values are restored exactly.

use quire_document::key::{KeyReader, TypeBits, append_full, skip};
use quire_document::testing::Generator;
use quire_document::{ValueBuf, compare, identical};
use std::cmp::Ordering;

fn encode(value: &ValueBuf, descending: bool) -> (Vec<u8>, TypeBits) {
    let (mut key, mut bits) = (Vec::new(), TypeBits::new());
    append_full(value.as_value(), descending, None, &mut key, &mut bits);
    (key, bits)
}

fn check_pair(a: &ValueBuf, b: &ValueBuf, descending: bool) {
    let ((key_a, _), (key_b, _)) = (encode(a, descending), encode(b, descending));
    let order = compare(a.as_value(), b.as_value(), None);
    let order = if descending { order.reverse() } else { order };
    assert_eq!(key_a.cmp(&key_b), order, "{a:?} {b:?}\n{key_a:02x?}\n{key_b:02x?}");
    let separate = order == Ordering::Equal || !key_b.starts_with(&key_a);
    assert!(separate, "prefix: {a:?} {b:?}");
}

fn check_back(value: &ValueBuf, descending: bool) {
    let (key, bits) = encode(value, descending);
    let mut reader = KeyReader::new(&key, bits.as_bytes());
    let back = reader.next(descending).expect("a key that was just written").expect("a value");
    assert!(identical(back.as_value(), value.as_value()), "{value:?} {back:?}");
    assert!(reader.rest().is_empty());
    let followed = [key.as_slice(), &[7, 0]].concat();
    assert_eq!(skip(&followed, descending).ok(), Some(&[7, 0][..]), "{value:?}");
    for end in 0..key.len() {
        assert!(skip(&key[..end], descending).is_err(), "{value:?} cut after {end}");
    }
}

#[test]
fn numbers_interleave() {
    let mut generator = Generator::new(1);
    for round in 0..60_000 {
        let (a, b) = (generator.number(), generator.number());
        check_pair(&a, &b, round % 2 == 0);
        check_back(&a, round % 2 == 1);
    }
}

#[test]
fn neighbours_of_one_number_interleave() {
    // All forms of one magnitude: the long, the doubles next to it, and decimals between them.
    let mut generator = Generator::new(2);
    for _ in 0..400 {
        let double = generator.double();
        let mut group = Vec::new();
        for step in -2i64..=2 {
            let near = f64::from_bits(double.to_bits().wrapping_add(step as u64));
            group.push(ValueBuf::new(near));
            group.push(ValueBuf::new(near as i64));
            let decimal = quire_document::Decimal128::from_f64_exact(near);
            group.push(ValueBuf::new(decimal));
            if let Some(parts) = decimal.parts() {
                for coefficient in [parts.coefficient + 1, parts.coefficient.saturating_sub(1)] {
                    let parts = quire_document::decimal::Parts { coefficient, ..parts };
                    if coefficient <= quire_document::decimal::COEFFICIENT_MAX {
                        group.push(ValueBuf::new(quire_document::Decimal128::pack(parts)));
                    }
                }
            }
        }
        for a in &group {
            check_back(a, false);
            group.iter().for_each(|b| check_pair(a, b, false));
        }
    }
}

#[test]
fn all_values_order_and_come_back() {
    let mut generator = Generator::new(3);
    let mut kept: Vec<ValueBuf> = Vec::new();
    for round in 0..20_000usize {
        let value = generator.value();
        let descending = round % 2 == 0;
        check_back(&value, descending);
        for other in kept.iter().rev().take(6) {
            check_pair(&value, other, descending);
        }
        kept.push(value);
    }
}

#[test]
fn compound_keys_read_one_value_after_the_other() {
    let mut generator = Generator::new(4);
    for _ in 0..3_000 {
        let values: Vec<ValueBuf> = (0..3).map(|_| generator.value()).collect();
        let (mut key, mut bits) = (Vec::new(), TypeBits::new());
        for (at, value) in values.iter().enumerate() {
            append_full(value.as_value(), at == 1, None, &mut key, &mut bits);
        }
        key.extend_from_slice(&[0, 0, 7]);
        let mut reader = KeyReader::new(&key, bits.as_bytes());
        for (at, value) in values.iter().enumerate() {
            let back = reader.next(at == 1).unwrap().unwrap();
            assert!(identical(back.as_value(), value.as_value()), "{value:?} {back:?}");
        }
        assert_eq!(reader.rest(), [0, 0, 7]);
    }
}

#[test]
fn damaged_keys_are_errors_not_panics() {
    let mut generator = Generator::new(5);
    for _ in 0..20_000 {
        let (mut key, bits) = encode(&generator.value(), false);
        if key.is_empty() {
            continue;
        }
        let at = generator.below(key.len() as u64) as usize;
        key[at] = generator.bits() as u8;
        let _ = KeyReader::new(&key, bits.as_bytes()).next(false);
        key.truncate(at);
        let _ = KeyReader::new(&key, &[0xff; 40]).next(true);
    }
}
