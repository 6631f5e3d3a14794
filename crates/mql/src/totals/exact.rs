//! Exact sums of numbers of all types, from which a number can also be taken away.
//!
//! `$sum` of MongoDB rounds at each addition, so its result depends on the order of the numbers, and
//! a number that was added cannot be subtracted again. The sums of roll-ups change with each change
//! of a child, in the order of the commits, and must equal a sum that is computed anew. So nothing
//! here is rounded until the result is asked for, and the type of the result depends on the numbers
//! that are in the sum at that time, not on those that were. The types are those of `$sum`: int,
//! long if it does not fit or a long takes part, double, decimal.

use super::fixed_point::{BLOCK, BLOCK_DIGITS, FixedPoint};
use quire_document::{Binary, Decimal128, Doc, DocBuf, Value, array, decimal::Unpacked};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The subtype of binary values that hold words of a sum.
const GENERIC: u8 = 0;

/// An exact sum. Two sums of the same numbers are equal, whatever was added and taken away between.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExactSum {
    ints: i64,
    longs: i64,
    /// The sum of ints and longs.
    whole: i128,
    /// The number of finite doubles.
    doubles: i64,
    binary: FixedPoint,
    /// How many doubles are not finite.
    odd_doubles: Specials,
    /// The number of finite decimals with each exponent, which gives the exponent of the result.
    exponents: BTreeMap<i32, i64>,
    /// The sum of the finite decimals: blocks of nine digits, which are not normalised, because no
    /// number of additions can exceed an `i128`.
    blocks: BTreeMap<i32, i128>,
    odd_decimals: Specials,
}

/// The number of NaNs and infinities in a sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Specials {
    nan: i64,
    positive: i64,
    negative: i64,
}

impl Specials {
    fn count(self) -> i64 {
        self.nan + self.positive + self.negative
    }

    /// Returns NaN or an infinity if one is the sum.
    fn value(self) -> Option<f64> {
        match (self.nan > 0, self.positive > 0, self.negative > 0) {
            (true, _, _) | (_, true, true) => Some(f64::NAN),
            (_, true, _) => Some(f64::INFINITY),
            (_, _, true) => Some(f64::NEG_INFINITY),
            _ => None,
        }
    }

    fn plus(self, other: Specials) -> Specials {
        Specials {
            nan: self.nan + other.nan,
            positive: self.positive + other.positive,
            negative: self.negative + other.negative,
        }
    }

    fn counts(&self) -> [i64; 3] {
        [self.nan, self.positive, self.negative]
    }
}

impl ExactSum {
    /// Adds a value if it is a number, and ignores it otherwise.
    pub fn add(&mut self, value: Value<'_>) {
        self.change(value, 1);
    }

    /// Takes away a value that was added. Returns false if it cannot have been added; the sum is
    /// wrong then.
    #[must_use]
    pub fn take_away(&mut self, value: Value<'_>) -> bool {
        self.change(value, -1);
        self.is_possible()
    }

    fn change(&mut self, value: Value<'_>, sign: i64) {
        match value {
            Value::Int32(number) => {
                self.ints += sign;
                self.whole += i128::from(number) * i128::from(sign);
            }
            Value::Int64(number) => {
                self.longs += sign;
                self.whole += i128::from(number) * i128::from(sign);
            }
            Value::Double(number) if number.is_finite() => {
                self.doubles += sign;
                self.binary.add_f64(if sign < 0 { -number } else { number });
            }
            Value::Double(number) if number.is_nan() => self.odd_doubles.nan += sign,
            Value::Double(number) if number > 0.0 => self.odd_doubles.positive += sign,
            Value::Double(_) => self.odd_doubles.negative += sign,
            Value::Decimal(number) => self.change_decimal(number, sign),
            _ => {}
        }
    }

    fn change_decimal(&mut self, number: Decimal128, sign: i64) {
        let parts = match number.unpack() {
            Unpacked::Finite(parts) => parts,
            Unpacked::Nan => return self.odd_decimals.nan += sign,
            Unpacked::Infinite { negative: false } => return self.odd_decimals.positive += sign,
            Unpacked::Infinite { negative: true } => return self.odd_decimals.negative += sign,
        };
        change_count(&mut self.exponents, parts.exponent, sign);
        let sign = if parts.negative { -sign } else { sign };
        let mut at = parts.exponent.div_euclid(BLOCK_DIGITS);
        let within = parts.exponent.rem_euclid(BLOCK_DIGITS) as u32;
        // The first block takes the digits that its lower end leaves room for.
        let room = 10u128.pow(BLOCK_DIGITS as u32 - within);
        let (mut rest, first) = (parts.coefficient / room, parts.coefficient % room);
        self.change_block(at, first * 10u128.pow(within), sign);
        while rest > 0 {
            at += 1;
            self.change_block(at, rest % BLOCK as u128, sign);
            rest /= BLOCK as u128;
        }
    }

    fn change_block(&mut self, at: i32, digits: u128, sign: i64) {
        if digits == 0 {
            return;
        }
        let block = self.blocks.entry(at).or_default();
        *block += digits as i128 * i128::from(sign);
        if *block == 0 {
            self.blocks.remove(&at);
        }
    }

    /// Returns false if more numbers were taken away than added.
    fn is_possible(&self) -> bool {
        let odd = self.odd_doubles.counts().into_iter().chain(self.odd_decimals.counts());
        let counts = [self.ints, self.longs, self.doubles].into_iter().chain(odd);
        counts.chain(self.exponents.values().copied()).all(|count| count >= 0)
    }

    /// Returns how many numbers are in the sum.
    pub fn count(&self) -> i64 {
        self.ints + self.longs + self.doubles + self.odd_doubles.count() + self.decimals()
    }

    fn decimals(&self) -> i64 {
        self.exponents.values().sum::<i64>() + self.odd_decimals.count()
    }

    /// Returns the sum, rounded once; 0 if there are no numbers.
    pub fn value(&self) -> Value<'static> {
        if self.decimals() > 0 {
            return Value::Decimal(self.decimal());
        }
        if self.doubles + self.odd_doubles.count() > 0 {
            return Value::Double(self.double());
        }
        match (i32::try_from(self.whole), i64::try_from(self.whole)) {
            (Ok(int), _) if self.longs == 0 => Value::Int32(int),
            (_, Ok(long)) => Value::Int64(long),
            _ => Value::Double(self.whole as f64),
        }
    }

    /// Returns the rounded sum divided by the count; `None` if there are no numbers.
    pub fn mean(&self) -> Option<Value<'static>> {
        let count = self.count();
        match count {
            0 => None,
            _ if self.decimals() == 0 => Some(Value::Double(self.double() / count as f64)),
            _ => {
                let sum = self.decimal();
                let mean = if sum.is_nan() { sum } else { sum.divide(Decimal128::from_i64(count)) };
                Some(Value::Decimal(mean))
            }
        }
    }

    fn double(&self) -> f64 {
        if let Some(odd) = self.odd_doubles.value() {
            return odd;
        }
        if self.doubles == 0 {
            return self.whole as f64;
        }
        let mut total = self.binary;
        total.add_i128(self.whole);
        total.to_f64()
    }

    fn decimal(&self) -> Decimal128 {
        if let Some(odd) = self.odd_doubles.plus(self.odd_decimals).value() {
            return Decimal128::from_f64(odd);
        }
        let mut blocks = self.blocks.clone();
        for (at, block) in self.binary.to_blocks() {
            *blocks.entry(at).or_default() += i128::from(block);
        }
        *blocks.entry(0).or_default() += self.whole;
        // As IEEE 754 adds: the result has the smallest exponent of the numbers, and of the 0 with
        // which a sum begins.
        let exponent = self.exponents.keys().next().map_or(0, |smallest| (*smallest).min(0));
        let text = decimal_text(&blocks, exponent);
        Decimal128::parse(&text).unwrap_or(Decimal128::NAN)
    }

    /// Returns the sum as a document that [`load`](Self::load) reads. Equal sums give equal
    /// documents.
    pub fn save(&self) -> DocBuf {
        DocBuf::build(|writer| {
            for (name, count) in [("i", self.ints), ("l", self.longs), ("d", self.doubles)] {
                if count != 0 {
                    writer.append(name, count);
                }
            }
            if self.whole != 0 {
                with_integer(self.whole, |value| {
                    writer.append("w", value);
                });
            }
            let words = self.binary.save();
            if !words.is_empty() {
                writer.append("b", Value::Binary(Binary { subtype: GENERIC, bytes: &words }));
            }
            for (name, odd) in [("o", &self.odd_doubles), ("p", &self.odd_decimals)] {
                if odd.count() != 0 {
                    let [nan, positive, negative] = odd.counts();
                    writer.append(name, &array![nan, positive, negative]);
                }
            }
            if !self.exponents.is_empty() {
                let mut pairs = writer.array("e");
                for (exponent, count) in &self.exponents {
                    pairs.push(*exponent).push(*count);
                }
            }
            if !self.blocks.is_empty() {
                let mut pairs = writer.array("c");
                for (at, block) in &self.blocks {
                    pairs.push(*at);
                    with_integer(*block, |value| {
                        pairs.push(value);
                    });
                }
            }
        })
    }

    /// Reads a saved sum; `None` if it is damaged.
    pub fn load(saved: Doc<'_>) -> Option<Self> {
        let mut sum = ExactSum::default();
        for (name, value) in saved.fields() {
            match name {
                "i" => sum.ints = long(value)?,
                "l" => sum.longs = long(value)?,
                "d" => sum.doubles = long(value)?,
                "w" => sum.whole = integer(value)?,
                "b" => match value {
                    Value::Binary(words) => sum.binary = FixedPoint::load(words.bytes)?,
                    _ => return None,
                },
                "o" => sum.odd_doubles = specials(value)?,
                "p" => sum.odd_decimals = specials(value)?,
                "e" => sum.exponents = pairs(value, long)?,
                "c" => sum.blocks = pairs(value, integer)?,
                _ => return None,
            }
        }
        sum.is_possible().then_some(sum)
    }
}

fn change_count(counts: &mut BTreeMap<i32, i64>, key: i32, by: i64) {
    let count = counts.entry(key).or_default();
    *count += by;
    if *count == 0 {
        counts.remove(&key);
    }
}

/// Returns the text of a sum of decimal blocks, with the digits down to `exponent` and those below
/// it that are not zero.
fn decimal_text(blocks: &BTreeMap<i32, i128>, exponent: i32) -> String {
    let mut digits = normalised(blocks);
    let negative = digits.last_key_value().is_some_and(|(_, block)| *block < 0);
    if negative {
        let opposite: BTreeMap<i32, i128> = blocks.iter().map(|(at, b)| (*at, -*b)).collect();
        digits = normalised(&opposite);
    }
    digits.retain(|_, block| *block != 0);
    let mut text = String::from(if negative { "-" } else { "" });
    let (Some(low), Some(high)) =
        (digits.first_key_value().map(|(at, _)| *at), digits.last_key_value().map(|(at, _)| *at))
    else {
        return format!("0E{exponent}");
    };
    for at in (low..=high).rev() {
        let block = digits.get(&at).copied().unwrap_or(0);
        let _ = write!(text, "{block:09}");
    }
    let mut last = low * BLOCK_DIGITS;
    while last < exponent && text.ends_with('0') {
        text.pop();
        last += 1;
    }
    while last > exponent
        && significant_digits(&text) < quire_document::decimal::DIGITS_MAX as usize
    {
        text.push('0');
        last -= 1;
    }
    format!("{text}E{last}")
}

fn significant_digits(text: &str) -> usize {
    text.trim_start_matches(['-', '0']).len()
}

/// Carries between blocks, so that all but the last are from 0 to 999,999,999. The last one is -1 if
/// the sum is negative.
fn normalised(blocks: &BTreeMap<i32, i128>) -> BTreeMap<i32, i128> {
    let mut out = BTreeMap::new();
    let mut carry = 0;
    let mut next = None;
    let mut settle = |at: i32, sum: i128| {
        out.insert(at, sum.rem_euclid(i128::from(BLOCK)));
        sum.div_euclid(i128::from(BLOCK))
    };
    for (at, block) in blocks {
        while let Some(due) = next.filter(|due| due < at && carry != 0) {
            carry = settle(due, carry);
            next = Some(due + 1);
        }
        carry = settle(*at, *block + carry);
        next = Some(at + 1);
    }
    while let Some(due) = next.filter(|_| carry != 0 && carry != -1) {
        carry = settle(due, carry);
        next = Some(due + 1);
    }
    if let Some(due) = next.filter(|_| carry == -1) {
        out.insert(due, -1);
    }
    out
}

/// Passes an integer as a long if it fits, and as 16 bytes otherwise.
fn with_integer(number: i128, take: impl FnOnce(Value<'_>)) {
    match i64::try_from(number) {
        Ok(long) => take(Value::Int64(long)),
        Err(_) => {
            let bytes = number.to_le_bytes();
            take(Value::Binary(Binary { subtype: GENERIC, bytes: &bytes }));
        }
    }
}

fn integer(value: Value<'_>) -> Option<i128> {
    match value {
        Value::Int64(long) => Some(i128::from(long)),
        Value::Binary(binary) => Some(i128::from_le_bytes(binary.bytes.try_into().ok()?)),
        _ => None,
    }
}

fn long(value: Value<'_>) -> Option<i64> {
    match value {
        Value::Int64(long) => Some(long),
        _ => None,
    }
}

fn specials(value: Value<'_>) -> Option<Specials> {
    let counts = value.as_array()?.to_vec();
    let [nan, positive, negative] = counts[..] else { return None };
    Some(Specials { nan: long(nan)?, positive: long(positive)?, negative: long(negative)? })
}

fn pairs<T>(value: Value<'_>, read: fn(Value<'_>) -> Option<T>) -> Option<BTreeMap<i32, T>> {
    let flat = value.as_array()?.to_vec();
    let (pairs, odd) = flat.as_chunks::<2>();
    if !odd.is_empty() {
        return None;
    }
    let pair = |[key, value]: &[Value<'_>; 2]| match *key {
        Value::Int32(key) => Some((key, read(*value)?)),
        _ => None,
    };
    pairs.iter().map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::totals::Sum;
    use quire_document::testing::Generator;
    use quire_document::{ValueBuf, compare, identical};

    fn decimal(text: &str) -> Value<'static> {
        Value::Decimal(Decimal128::parse(text).unwrap())
    }

    fn sum(values: &[Value<'_>]) -> ExactSum {
        let mut sum = ExactSum::default();
        values.iter().for_each(|value| sum.add(*value));
        sum
    }

    fn shown(values: &[Value<'_>]) -> String {
        format!("{:?}", sum(values).value())
    }

    #[test]
    fn the_type_is_that_of_the_numbers_in_the_sum() {
        use Value::{Double, Int32, Int64};
        assert!(identical(sum(&[]).value(), Int32(0)));
        assert!(identical(sum(&[Int32(1), Int32(2)]).value(), Int32(3)));
        assert!(identical(sum(&[Int32(i32::MAX), Int32(1)]).value(), Int64(1 << 31)));
        assert!(identical(sum(&[Int32(1), Int64(1)]).value(), Int64(2)));
        assert!(identical(sum(&[Int64(i64::MAX), Int32(1)]).value(), Double(2f64.powi(63))));
        assert!(identical(sum(&[Int32(1), Double(0.5)]).value(), Double(1.5)));
        let mut total = sum(&[Int32(1), Int64(5), Double(0.5), decimal("1.10")]);
        assert_eq!(format!("{:?}", total.value()), format!("{:?}", decimal("7.60")));
        assert!(total.take_away(decimal("1.10")));
        assert!(identical(total.value(), Double(6.5)));
        assert!(total.take_away(Double(0.5)));
        assert!(identical(total.value(), Int64(6)));
        assert!(total.take_away(Int64(5)));
        assert!(identical(total.value(), Int32(1)));
        assert!(!total.take_away(Double(0.5)), "no double is left");
    }

    #[test]
    fn decimals_keep_their_digits_as_an_addition_does() {
        assert_eq!(shown(&[decimal("1.10"), decimal("2.20")]), format!("{:?}", decimal("3.30")));
        assert_eq!(shown(&[decimal("1.10"), decimal("-1.10")]), format!("{:?}", decimal("0.00")));
        assert_eq!(shown(&[decimal("1E+3"), Value::Int32(5)]), format!("{:?}", decimal("1005")));
        assert_eq!(shown(&[decimal("-0.05"), decimal("-7")]), format!("{:?}", decimal("-7.05")));
        assert_eq!(shown(&[decimal("5E+10")]), format!("{:?}", decimal("50000000000")));
        assert_eq!(
            shown(&[decimal("1E+6000"), decimal("1"), decimal("-1E+6000")]),
            format!("{:?}", decimal("1"))
        );
        assert_eq!(
            shown(&[decimal("9.99E+6144"), decimal("9.99E+6144")]),
            format!("{:?}", decimal("Infinity"))
        );
    }

    #[test]
    fn nan_and_infinities_are_what_sum_gives() {
        use Value::Double;
        let (nan, plus, minus) = (Double(f64::NAN), Double(f64::INFINITY), Double(-f64::INFINITY));
        for values in [
            &[nan][..],
            &[plus, Double(1.0)],
            &[plus, minus],
            &[minus, minus],
            &[plus, decimal("1")],
            &[decimal("Infinity"), Double(1.0)],
            &[decimal("NaN"), plus],
            &[decimal("-Infinity"), plus],
        ] {
            let mut reference = Sum::default();
            values.iter().for_each(|value| reference.push(*value));
            let (given, wanted) = (sum(values).value(), reference.value());
            assert_eq!(given.type_name(), wanted.type_name(), "{values:?}");
            assert!(compare(given, wanted, None).is_eq(), "{values:?}");
        }
        let mut total = sum(&[plus, Double(2.0), nan]);
        assert!(total.take_away(nan) && total.take_away(plus));
        assert!(identical(total.value(), Double(2.0)));
    }

    #[test]
    fn a_mean_is_the_sum_over_the_count() {
        let mean = |values: &[Value<'_>]| sum(values).mean().unwrap();
        assert!(sum(&[Value::Null]).mean().is_none());
        assert!(identical(mean(&[Value::Int32(1), Value::Int32(2)]), Value::Double(1.5)));
        assert!(identical(mean(&[decimal("1"), Value::Int32(2)]), decimal("1.5")));
        assert!(identical(mean(&[Value::Double(0.1); 10]), Value::Double(0.1)));
    }

    /// A value of any numeric type and size.
    fn drawn(random: &mut Generator) -> ValueBuf {
        let bits = random.below(u64::MAX);
        match random.below(5) {
            0 => ValueBuf::new(bits as i32 >> random.below(31)),
            1 => ValueBuf::new(bits as i64 >> random.below(63)),
            2 => ValueBuf::new(f64::from_bits(bits)),
            3 => ValueBuf::new((bits >> 40) as f64 / 100.0),
            _ => {
                let exponent = random.below(60) as i32 - 30;
                let exponent = if random.below(9) == 0 { exponent * 200 } else { exponent };
                let text = format!("{}E{exponent}", bits as i64 >> random.below(63));
                ValueBuf::new(Value::Decimal(Decimal128::parse(&text).unwrap()))
            }
        }
    }

    #[test]
    fn neither_the_order_nor_what_was_taken_away_shows() {
        let mut random = Generator::new(11);
        for _ in 0..200 {
            let kept: Vec<_> = (0..random.below(10)).map(|_| drawn(&mut random)).collect();
            let gone: Vec<_> = (0..random.below(10)).map(|_| drawn(&mut random)).collect();
            let mut long = ExactSum::default();
            gone.iter().for_each(|value| long.add(value.as_value()));
            kept.iter().rev().for_each(|value| long.add(value.as_value()));
            assert_eq!(ExactSum::load(long.save().as_doc()).as_ref(), Some(&long));
            assert!(gone.iter().all(|value| long.take_away(value.as_value())));
            let mut short = ExactSum::default();
            kept.iter().for_each(|value| short.add(value.as_value()));
            assert_eq!(long, short);
            assert_eq!(long.save(), short.save());
            assert!(identical(long.value(), short.value()), "{kept:?}");
        }
    }

    #[test]
    fn integers_and_single_decimals_are_what_sum_gives() {
        let mut random = Generator::new(12);
        for _ in 0..800 {
            let count = random.below(4) as usize;
            let value = drawn(&mut random);
            let mut values = vec![value.as_value()];
            values.extend((0..count).map(|n| Value::Int32(n as i32 * 7 - 5)));
            if matches!(value.as_value(), Value::Double(number) if number.is_finite()) {
                continue;
            }
            let mut reference = Sum::default();
            values.iter().for_each(|value| reference.push(*value));
            let (given, wanted) = (sum(&values).value(), reference.value());
            assert_eq!(given.type_name(), wanted.type_name(), "{values:?}");
            let nan = |value: Value<'_>| format!("{value:?}").contains("NaN");
            assert!(identical(given, wanted) || nan(given), "{values:?}: {given:?} {wanted:?}");
        }
    }

    #[test]
    fn damaged_sums_are_refused() {
        let good = sum(&[Value::Int32(1), decimal("1.5"), Value::Double(0.5)]).save();
        assert!(ExactSum::load(good.as_doc()).is_some());
        let mut other = good.clone();
        other.append("z", 1);
        assert!(ExactSum::load(other.as_doc()).is_none());
        for (name, _) in good.as_doc().fields() {
            let broken = DocBuf::build(|writer| {
                for (field, value) in good.as_doc().fields() {
                    writer.append(field, if field == name { Value::Null } else { value });
                }
            });
            assert!(ExactSum::load(broken.as_doc()).is_none(), "{name}");
        }
    }
}
