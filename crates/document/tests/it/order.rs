//! The order of values is total, and equality, hashes and arithmetic agree with it.

use quire_document::testing::Generator;
use quire_document::{Decimal128, ValueBuf, compare, equal, hash_of};
use std::cmp::Ordering;

#[test]
fn order_is_total_and_hashes_agree() {
    let mut generator = Generator::new(8);
    for round in 0..20_000 {
        let mut next = || if round % 2 == 0 { generator.number() } else { generator.value() };
        let values: Vec<ValueBuf> = (0..3).map(|_| next()).collect();
        let at = |i: usize| values[i].as_value();
        let order = |i: usize, j: usize| compare(at(i), at(j), None);
        assert_eq!(order(0, 1), order(1, 0).reverse(), "{values:?}");
        assert_eq!(order(0, 0), Ordering::Equal);
        if order(0, 1) == order(1, 2) {
            assert_eq!(order(0, 2), order(0, 1), "{values:?}");
        }
        if equal(at(0), at(1), None) {
            assert_eq!(hash_of(at(0), None), hash_of(at(1), None), "{values:?}");
        }
    }
}

#[test]
fn equal_numbers_of_other_types_hash_alike() {
    let mut generator = Generator::new(9);
    for _ in 0..20_000 {
        let number = generator.integer();
        let forms = [
            ValueBuf::new(number),
            ValueBuf::new(Decimal128::from_i64(number)),
            ValueBuf::new(number as f64),
            ValueBuf::new(
                Decimal128::from_i64(number).multiply(Decimal128::parse("1.000").unwrap()),
            ),
        ];
        for a in &forms {
            for b in &forms {
                if equal(a.as_value(), b.as_value(), None) {
                    assert_eq!(hash_of(a.as_value(), None), hash_of(b.as_value(), None));
                }
            }
        }
        assert!(equal(forms[0].as_value(), forms[1].as_value(), None));
        assert!(equal(forms[0].as_value(), forms[3].as_value(), None));
    }
}

#[test]
fn decimal_arithmetic_agrees_with_order() {
    let mut generator = Generator::new(10);
    for _ in 0..20_000 {
        let (a, b) = (generator.decimal(), generator.decimal());
        if !a.is_finite() || !b.is_finite() {
            continue;
        }
        assert_eq!(a.add(b), b.add(a), "{a} + {b}");
        assert_eq!(a.multiply(b), b.multiply(a), "{a} * {b}");
        let difference = a.subtract(b);
        assert_eq!(difference.compare(Decimal128::ZERO), a.compare(b), "{a} - {b}");
        if !b.is_zero() {
            let rest = a.remainder(b);
            assert_eq!(rest.abs().compare(b.abs()), Ordering::Less, "{a} mod {b}");
            assert!(rest.is_zero() || rest.is_negative() == a.is_negative());
        }
        let root = a.abs().sqrt();
        assert!(root.is_finite() && !root.is_negative());
        let text = a.to_string();
        assert_eq!(Decimal128::parse(&text).unwrap().to_string(), text);
    }
}
