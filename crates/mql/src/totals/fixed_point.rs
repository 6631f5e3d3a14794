//! Sums of finite doubles without any rounding: a fixed-point number that has room for every double
//! and for 2^63 of them (the superaccumulator of Kulisch, "Computer Arithmetic and Validity").

/// The number of words. The largest double is below 2^1024 and the unit is 2^-1074, so a double
/// takes 2098 bits; 64 more hold the sum of 2^63 numbers with its sign.
const WORDS: usize = 34;

/// The power of two of the unit, as a positive number.
const UNIT: usize = 1074;

/// The bits of a double's significand.
const SIGNIFICAND_BITS: usize = 53;

/// The number of digits of a decimal block.
pub(super) const BLOCK_DIGITS: i32 = 9;

/// The first number that a decimal block cannot hold.
pub(super) const BLOCK: i64 = 1_000_000_000;

/// An integer multiple of 2^-1074 in two's complement, lowest word first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FixedPoint([u64; WORDS]);

impl Default for FixedPoint {
    fn default() -> Self {
        FixedPoint([0; WORDS])
    }
}

impl FixedPoint {
    /// Adds a finite double.
    pub(super) fn add_f64(&mut self, number: f64) {
        let bits = number.to_bits();
        let exponent = (bits >> 52 & 0x7ff) as usize;
        let fraction = bits & ((1 << 52) - 1);
        let significand = if exponent == 0 { fraction } else { fraction | 1 << 52 };
        self.add_shifted(u128::from(significand), exponent.max(1) - 1, number < 0.0);
    }

    /// Adds an integer.
    pub(super) fn add_i128(&mut self, number: i128) {
        let size = number.unsigned_abs();
        // Two halves, because a shift by up to 63 bits must not lose bits.
        self.add_shifted(size & u128::from(u64::MAX), UNIT, number < 0);
        self.add_shifted(size >> 64, UNIT + 64, number < 0);
    }

    /// Adds `size * 2^shift` units; `size` is below 2^64.
    fn add_shifted(&mut self, size: u128, shift: usize, negative: bool) {
        let (at, offset) = (shift / 64, shift % 64);
        let size = size << offset;
        let mut parts = [size as u64, (size >> 64) as u64].into_iter();
        let mut carry = false;
        for word in self.0.iter_mut().skip(at) {
            let part = parts.next();
            if part.is_none() && !carry {
                break;
            }
            (*word, carry) = step(*word, part.unwrap_or(0), carry, negative);
        }
    }

    fn is_negative(&self) -> bool {
        self.0[WORDS - 1] >> 63 == 1
    }

    /// Returns the number without its sign.
    fn magnitude(&self) -> [u64; WORDS] {
        let mut words = self.0;
        if self.is_negative() {
            let mut carry = true;
            for word in &mut words {
                (*word, carry) = (!*word).overflowing_add(u64::from(carry));
            }
        }
        words
    }

    /// Returns the nearest double, half to even; an infinity beyond all doubles.
    pub(super) fn to_f64(self) -> f64 {
        let words = self.magnitude();
        let Some(top) = words.iter().rposition(|word| *word != 0) else { return 0.0 };
        let len = top * 64 + 64 - words[top].leading_zeros() as usize;
        let size = match len.checked_sub(SIGNIFICAND_BITS) {
            None | Some(0) => f64::from_bits(words[0]),
            Some(shift) => rounded(&words, shift),
        };
        if self.is_negative() { -size } else { size }
    }

    /// Returns the number as decimal blocks: pairs of a position `p` and a value, whose sum of
    /// `value * 10^(9 * p)` is the number.
    pub(super) fn to_blocks(self) -> Vec<(i32, i64)> {
        let sign = if self.is_negative() { -1 } else { 1 };
        let words = self.magnitude();
        let mut whole = shifted_right(&words, UNIT);
        let mut blocks = Vec::new();
        let mut at = 0;
        while whole.iter().any(|word| *word != 0) {
            let block = divide(&mut whole, BLOCK as u64) as i64;
            blocks.push((at, sign * block));
            at += 1;
        }
        let mut fraction = words;
        at = -1;
        loop {
            keep_fraction(&mut fraction);
            if fraction.iter().all(|word| *word == 0) {
                return blocks;
            }
            multiply(&mut fraction, BLOCK as u64);
            let block = shifted_right(&fraction, UNIT)[0] as i64;
            blocks.push((at, sign * block));
            at -= 1;
        }
    }

    /// Returns the number as bytes: the index of the first word that is not zero, then the words up
    /// to the one from which the sign fills the rest. Empty for zero.
    pub(super) fn save(&self) -> Vec<u8> {
        let Some(low) = self.0.iter().position(|word| *word != 0) else { return Vec::new() };
        let fill = if self.is_negative() { u64::MAX } else { 0 };
        let sign_of = |word: u64| if word >> 63 == 1 { u64::MAX } else { 0 };
        let mut end = WORDS;
        while end > low + 1 && self.0[end - 1] == fill && sign_of(self.0[end - 2]) == fill {
            end -= 1;
        }
        let mut bytes = vec![low as u8];
        self.0[low..end].iter().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
        bytes
    }

    /// Reads what [`save`](Self::save) wrote; `None` for other bytes.
    pub(super) fn load(bytes: &[u8]) -> Option<Self> {
        let Some((low, rest)) = bytes.split_first() else { return Some(FixedPoint::default()) };
        let (words, odd) = rest.as_chunks::<8>();
        let low = usize::from(*low);
        if !odd.is_empty() || words.is_empty() || low + words.len() > WORDS {
            return None;
        }
        let mut all = [0; WORDS];
        let end = low + words.len();
        for (word, stored) in all[low..end].iter_mut().zip(words) {
            *word = u64::from_le_bytes(*stored);
        }
        let fill = if all[end - 1] >> 63 == 1 { u64::MAX } else { 0 };
        all[end..].fill(fill);
        Some(FixedPoint(all))
    }
}

/// Adds a word and a carry, or subtracts them. Returns the result and the next carry.
fn step(word: u64, part: u64, carry: bool, negative: bool) -> (u64, bool) {
    let carry = u64::from(carry);
    if negative {
        let (word, first) = word.overflowing_sub(part);
        let (word, second) = word.overflowing_sub(carry);
        return (word, first | second);
    }
    let (word, first) = word.overflowing_add(part);
    let (word, second) = word.overflowing_add(carry);
    (word, first | second)
}

/// Returns the double nearest to a number that has 53 bits and `shift` more.
fn rounded(words: &[u64; WORDS], shift: usize) -> f64 {
    let bit = |at: usize| words[at / 64] >> (at % 64) & 1 == 1;
    let mut significand = shifted_right(words, shift)[0] & ((1 << SIGNIFICAND_BITS) - 1);
    let half = bit(shift - 1);
    let rest = (0..(shift - 1) / 64).any(|word| words[word] != 0)
        || words[(shift - 1) / 64] & ((1 << ((shift - 1) % 64)) - 1) != 0;
    if half && (rest || significand & 1 == 1) {
        significand += 1;
    }
    let overflow = usize::from(significand >> SIGNIFICAND_BITS == 1);
    let exponent = (shift + overflow + 1) as u64;
    if exponent >= 0x7ff {
        return f64::INFINITY;
    }
    let fraction = significand >> overflow & ((1 << 52) - 1);
    f64::from_bits(exponent << 52 | fraction)
}

fn shifted_right(words: &[u64; WORDS], bits: usize) -> [u64; WORDS] {
    let (skip, offset) = (bits / 64, bits % 64);
    let word = |at: usize| u128::from(words.get(at).copied().unwrap_or(0));
    let mut out = [0; WORDS];
    for (at, out) in out.iter_mut().enumerate() {
        let pair = word(at + skip) | word(at + skip + 1) << 64;
        *out = (pair >> offset) as u64;
    }
    out
}

/// Divides in place and returns the remainder.
fn divide(words: &mut [u64; WORDS], divisor: u64) -> u64 {
    let mut rest = 0;
    for word in words.iter_mut().rev() {
        let dividend = u128::from(rest) << 64 | u128::from(*word);
        *word = (dividend / u128::from(divisor)) as u64;
        rest = (dividend % u128::from(divisor)) as u64;
    }
    rest
}

fn multiply(words: &mut [u64; WORDS], factor: u64) {
    let mut carry = 0;
    for word in words {
        let product = u128::from(*word) * u128::from(factor) + carry;
        *word = product as u64;
        carry = product >> 64;
    }
}

/// Clears the bits of the integer part.
fn keep_fraction(words: &mut [u64; WORDS]) {
    words[UNIT / 64] &= (1 << (UNIT % 64)) - 1;
    words[UNIT / 64 + 1..].fill(0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_document::testing::Generator;

    fn sum(numbers: &[f64]) -> FixedPoint {
        let mut sum = FixedPoint::default();
        numbers.iter().for_each(|number| sum.add_f64(*number));
        sum
    }

    #[test]
    fn every_double_is_its_own_sum() {
        let mut random = Generator::new(3);
        let edges = [
            0.0,
            5e-324,
            f64::MIN_POSITIVE,
            1.0,
            0.1,
            f64::MAX,
            f64::from_bits(0xf_ffff_ffff_ffff),
        ];
        let drawn = (0..1500).map(|_| f64::from_bits(random.below(u64::MAX)));
        for number in edges.into_iter().chain(drawn).filter(|number| number.is_finite()) {
            for number in [number, -number] {
                let sum = sum(&[number]);
                assert_eq!(sum.to_f64(), number, "{number:e}");
                assert_eq!(FixedPoint::load(&sum.save()), Some(sum), "{number:e}");
            }
        }
    }

    #[test]
    fn sums_are_rounded_once_and_to_even() {
        assert_eq!(sum(&[0.1, 0.2, 0.3]).to_f64(), 0.6);
        assert_eq!(sum(&[1e100, 1.0, -1e100]).to_f64(), 1.0);
        assert_eq!(sum(&[f64::MAX, f64::MAX, -f64::MAX]).to_f64(), f64::MAX);
        assert_eq!(sum(&[f64::MAX, f64::MAX]).to_f64(), f64::INFINITY);
        let tie = 2f64.powi(-53);
        assert_eq!(sum(&[1.0, tie]).to_f64(), 1.0);
        assert_eq!(sum(&[1.0, tie, 5e-324]).to_f64(), 1.0 + f64::EPSILON);
        assert_eq!(sum(&[1.0 + f64::EPSILON, tie]).to_f64(), 1.0 + 2.0 * f64::EPSILON);
        assert_eq!(sum(&[2.0 - f64::EPSILON, tie]).to_f64(), 2.0);
    }

    #[test]
    fn what_was_added_can_be_taken_away_in_any_order() {
        let mut random = Generator::new(5);
        for _ in 0..100 {
            let numbers: Vec<f64> = (0..random.below(20))
                .map(|_| f64::from_bits(random.below(u64::MAX)))
                .filter(|number| number.is_finite())
                .collect();
            let mut total = sum(&numbers);
            let reversed: Vec<f64> = numbers.iter().rev().copied().collect();
            assert_eq!(total, sum(&reversed));
            assert_eq!(FixedPoint::load(&total.save()), Some(total));
            numbers.iter().for_each(|number| total.add_f64(-number));
            assert_eq!(total, FixedPoint::default());
        }
    }

    #[test]
    fn integers_and_doubles_share_the_unit() {
        for number in [0, 1, -1, i128::from(i64::MAX), i128::from(i64::MIN), 1 << 100, -(1 << 100)]
        {
            let mut sum = FixedPoint::default();
            sum.add_i128(number);
            assert_eq!(sum.to_f64(), number as f64);
            sum.add_i128(-number);
            assert_eq!(sum, FixedPoint::default());
        }
    }

    #[test]
    fn blocks_are_the_digits() {
        assert_eq!(
            sum(&[-12_345_678_901.5]).to_blocks(),
            [(0, -345_678_901), (1, -12), (-1, -500_000_000)]
        );
        assert_eq!(sum(&[0.1]).to_blocks().len(), 7);
        assert!(sum(&[]).to_blocks().is_empty());
    }

    #[test]
    fn other_bytes_are_refused() {
        for bytes in [&[0][..], &[0, 1, 2], &[34, 1, 0, 0, 0, 0, 0, 0, 0]] {
            assert_eq!(FixedPoint::load(bytes), None);
        }
    }
}
