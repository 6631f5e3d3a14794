//! Fixed-point numbers of 256 bits with 192 after the point, for a first computation of the functions
//! of decimals.
//!
//! An operation is off by at most a few units of the last place. The callers know how far their
//! results are from the true ones, and [`Fixed::rounded`] returns a number only if that decides how
//! to round it (Ziv's test).

use super::Parts;
use crate::Decimal128;

/// Bits after the point.
const FRACTION: u32 = 192;
/// Bits of binary128's significand.
const BINARY128: u32 = 113;

/// A signed number below 2^63, as limbs from the lowest to the highest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Fixed {
    negative: bool,
    limbs: [u64; 4],
}

impl Fixed {
    pub(super) const ONE: Fixed = Fixed::new([0, 0, 0, 1]);
    pub(super) const LN_2: Fixed =
        Fixed::new([0x40f3_4326_7298_b62e, 0xc9e3_b398_03f2_f6af, 0xb172_17f7_d1cf_79ab, 0]);
    pub(super) const LN_10: Fixed =
        Fixed::new([0x8a3f_b3e7_6977_e43a, 0xa95b_58ae_0b4c_28a3, 0x4d76_3776_aaa2_b05b, 2]);
    pub(super) const INVERSE_LN_10: Fixed =
        Fixed::new([0x1f71_a301_22e4_d101, 0x9aad_d557_d699_ee19, 0x6f2d_ec54_9b94_38ca, 0]);
    pub(super) const HALF_PI: Fixed =
        Fixed::new([0x5204_9c11_14cf_98e8, 0x898c_c517_01b8_39a2, 0x921f_b544_42d1_8469, 1]);
    pub(super) const PI: Fixed =
        Fixed::new([0xa409_3822_299f_31d0, 0x1319_8a2e_0370_7344, 0x243f_6a88_85a3_08d3, 3]);

    const fn new(limbs: [u64; 4]) -> Self {
        Fixed { negative: false, limbs }
    }

    /// Returns a decimal, off by at most one unit; `None` if it is not below 2^59 or has no digit
    /// before the 40th place.
    pub(super) fn of(parts: Parts) -> Option<Self> {
        if parts.exponent >= 0 {
            let scale = 10u128.checked_pow(u32::try_from(parts.exponent).ok()?)?;
            let whole = u64::try_from(parts.coefficient.checked_mul(scale)?).ok()?;
            return (whole < 1 << 59)
                .then_some(Fixed { negative: parts.negative, limbs: [0, 0, 0, whole] });
        }
        let mut left = parts.exponent.unsigned_abs();
        if left > 74 {
            return None;
        }
        let (low, high) = (parts.coefficient as u64, (parts.coefficient >> 64) as u64);
        let mut limbs = [0, 0, 0, low, high];
        while left > 0 {
            let step = left.min(19);
            divide(&mut limbs, 10u64.pow(step));
            left -= step;
        }
        let [a, b, c, d, e] = limbs;
        (e == 0 && d < 1 << 59).then_some(Fixed { negative: parts.negative, limbs: [a, b, c, d] })
    }

    /// Returns `number / 2^128`.
    pub(super) const fn of_fraction(number: u128) -> Self {
        Fixed::new([0, number as u64, (number >> 64) as u64, 0])
    }

    pub(super) fn of_i64(number: i64) -> Self {
        Fixed { negative: number < 0, limbs: [0, 0, 0, number.unsigned_abs()] }
    }

    /// Returns a double below 2^60 without its bits below the last place.
    pub(super) fn of_f64(number: f64) -> Self {
        let (mut limbs, mut rest) = ([0; 4], number.abs());
        for limb in limbs.iter_mut().rev() {
            *limb = rest as u64;
            rest = (rest - *limb as f64) * 18_446_744_073_709_551_616.0;
        }
        Fixed { negative: number < 0.0, limbs }
    }

    pub(super) fn to_f64(self) -> f64 {
        let size = self
            .limbs
            .iter()
            .fold(0.0, |sum, limb| sum / 18_446_744_073_709_551_616.0 + *limb as f64);
        if self.negative { -size } else { size }
    }

    pub(super) fn is_negative(self) -> bool {
        self.negative
    }

    pub(super) fn negate(self) -> Self {
        Fixed { negative: !self.negative, ..self }
    }

    pub(super) fn abs(self) -> Self {
        Fixed { negative: false, ..self }
    }

    pub(super) fn plus(self, other: Fixed) -> Self {
        if self.negative == other.negative {
            return Fixed { limbs: add(self.limbs, other.limbs), ..self };
        }
        let (difference, borrow) = subtract(self.limbs, other.limbs);
        match borrow {
            false => Fixed { limbs: difference, ..self },
            true => Fixed { limbs: subtract(other.limbs, self.limbs).0, ..other },
        }
    }

    pub(super) fn minus(self, other: Fixed) -> Self {
        self.plus(other.negate())
    }

    pub(super) fn times(self, other: Fixed) -> Self {
        let mut product = [0u64; 8];
        for (i, a) in self.limbs.iter().enumerate() {
            let mut carry = 0u128;
            for (j, b) in other.limbs.iter().enumerate() {
                let sum = u128::from(*a) * u128::from(*b) + u128::from(product[i + j]) + carry;
                product[i + j] = sum as u64;
                carry = sum >> 64;
            }
            product[i + 4] = carry as u64;
        }
        let [_, _, _, a, b, c, d, _] = product;
        Fixed { negative: self.negative != other.negative, limbs: [a, b, c, d] }
    }

    /// Returns the number divided by a small one.
    pub(super) fn over(mut self, divisor: u64) -> Self {
        divide(&mut self.limbs, divisor);
        self
    }

    /// Returns the number times 2^-`bits`.
    pub(super) fn shifted_right(self, bits: u32) -> Self {
        let mut limbs = [0; 4];
        let (skip, shift) = ((bits / 64) as usize, bits % 64);
        for (at, limb) in limbs.iter_mut().enumerate() {
            let low = self.limbs.get(at + skip).copied().unwrap_or(0);
            let high = self.limbs.get(at + skip + 1).copied().unwrap_or(0);
            *limb = if shift == 0 { low } else { low >> shift | high << (64 - shift) };
        }
        Fixed { limbs, ..self }
    }

    /// Returns the number times 2^`bits`, which must be below 2^63.
    pub(super) fn shifted_left(self, bits: u32) -> Self {
        let mut limbs = [0; 4];
        let (skip, shift) = ((bits / 64) as usize, bits % 64);
        for at in (skip..4).rev() {
            let high = self.limbs[at - skip];
            let low = if at > skip { self.limbs[at - skip - 1] } else { 0 };
            limbs[at] = if shift == 0 { high } else { high << shift | low >> (64 - shift) };
        }
        Fixed { limbs, ..self }
    }

    /// Returns the number times a power of two.
    pub(super) fn scaled(self, power: i32) -> Self {
        match power < 0 {
            true => self.shifted_right(power.unsigned_abs()),
            false => self.shifted_left(power.unsigned_abs()),
        }
    }

    /// Returns the number of bits up to the highest one, of which 192 are after the point.
    fn bits(self) -> u32 {
        let highest = self.limbs.iter().rposition(|limb| *limb != 0);
        highest.map_or(0, |at| 64 * (at as u32 + 1) - self.limbs[at].leading_zeros())
    }

    /// Returns the magnitude as a number in 1..2, and the power of two that it was divided by;
    /// `None` for zero.
    pub(super) fn normalised(self) -> Option<(Self, i32)> {
        let power = self.bits().checked_sub(1)? as i32 - FRACTION as i32;
        Some((self.abs().scaled(-power), power))
    }

    /// Returns the reciprocal (Newton's method); `None` if it is beyond 2^40.
    pub(super) fn reciprocal(self) -> Option<Self> {
        let guess = 1.0 / self.to_f64();
        if guess.is_nan() || guess.abs() > (1u64 << 40) as f64 {
            return None;
        }
        let mut inverse = Fixed::of_f64(guess);
        for _ in 0..2 {
            let rest = Fixed::ONE.minus(self.times(inverse));
            inverse = inverse.plus(inverse.times(rest));
        }
        Some(inverse)
    }

    /// Returns the square root (Newton's method for its reciprocal); `None` if the number is not
    /// between 2^-20 and 2^40.
    pub(super) fn square_root(self) -> Option<Self> {
        let number = self.to_f64();
        if !(1.0 / 1_048_576.0..1_099_511_627_776.0).contains(&number) {
            return None;
        }
        let mut inverse = Fixed::of_f64(1.0 / number.sqrt());
        for _ in 0..2 {
            let rest = Fixed::ONE.minus(self.times(inverse).times(inverse));
            inverse = inverse.plus(inverse.times(rest).shifted_right(1));
        }
        Some(self.times(inverse))
    }

    /// Rounds the number times 2^`power` to binary128 and from there to a decimal. Returns `None` if
    /// an error of 2^`error_bits` units leaves open how to round, or if the number is too large or
    /// too small to be converted fast.
    pub(super) fn rounded(self, power: i32, error_bits: u32) -> Option<Decimal128> {
        let drop = self.bits().checked_sub(BINARY128).filter(|drop| *drop > error_bits + 2)?;
        let half = Fixed::unit(drop - 1);
        let (error, middle) = (Fixed::unit(error_bits), self.abs().plus(half));
        let significand = middle.plus(error).shifted_right(drop).low();
        if middle.minus(error).shifted_right(drop).low() != significand {
            return None;
        }
        let exponent = drop as i32 - FRACTION as i32 + power;
        Decimal128::of_binary128(self.negative, significand, exponent)
    }

    /// Returns 2^`bits` units of the last place.
    fn unit(bits: u32) -> Fixed {
        Fixed::new([1, 0, 0, 0]).shifted_left(bits)
    }

    /// Returns the two lowest limbs.
    fn low(self) -> u128 {
        u128::from(self.limbs[1]) << 64 | u128::from(self.limbs[0])
    }
}

fn add(a: [u64; 4], b: [u64; 4]) -> [u64; 4] {
    let (mut sum, mut carry) = ([0; 4], false);
    for at in 0..4 {
        let (partial, first) = a[at].overflowing_add(b[at]);
        let (limb, second) = partial.overflowing_add(carry.into());
        (sum[at], carry) = (limb, first || second);
    }
    sum
}

/// Returns the difference, and true if `b` is larger.
fn subtract(a: [u64; 4], b: [u64; 4]) -> ([u64; 4], bool) {
    let (mut difference, mut borrow) = ([0; 4], false);
    for at in 0..4 {
        let (partial, first) = a[at].overflowing_sub(b[at]);
        let (limb, second) = partial.overflowing_sub(borrow.into());
        (difference[at], borrow) = (limb, first || second);
    }
    (difference, borrow)
}

/// Divides a natural number. Returns the remainder.
fn divide(limbs: &mut [u64], divisor: u64) -> u64 {
    let mut rest = 0u64;
    if divisor < 1 << 32 {
        // Halves of limbs, so that the processor divides words.
        for limb in limbs.iter_mut().rev() {
            let high = rest << 32 | *limb >> 32;
            let low = (high % divisor) << 32 | *limb & 0xffff_ffff;
            (*limb, rest) = (((high / divisor) << 32) | (low / divisor), low % divisor);
        }
        return rest;
    }
    for limb in limbs.iter_mut().rev() {
        let dividend = u128::from(rest) << 64 | u128::from(*limb);
        (*limb, rest) =
            ((dividend / u128::from(divisor)) as u64, (dividend % u128::from(divisor)) as u64);
    }
    rest
}

/// Limbs of a number with enough bits for a binary128 scaled by a power of ten.
const WIDE: usize = 8;

impl Decimal128 {
    /// Rounds a binary128 number, `significand * 2^exponent`, to a decimal. An exact result has no
    /// trailing zeros. Returns `None` beyond about 10^100 and below 10^-80.
    pub(super) fn of_binary128(negative: bool, significand: u128, exponent: i32) -> Option<Self> {
        // The number is scaled to 37 or 38 digits before the point. The fraction only tells that the
        // number is not exact.
        let highest = i64::from(exponent) + i64::from(128 - significand.leading_zeros());
        let places = (36 - (highest - 1) * 30103 / 100_000) as i32;
        let mut limbs = [0; WIDE];
        (limbs[0], limbs[1]) = (significand as u64, (significand >> 64) as u64);
        let mut sticky = false;
        if places > 119 || exponent > 380 {
            return None;
        }
        let mut left = places.unsigned_abs();
        if places >= 0 {
            while left > 0 {
                let step = left.min(19);
                multiply(&mut limbs, 10u64.pow(step));
                left -= step;
            }
        }
        match exponent < 0 {
            true => sticky = shift_right(&mut limbs, exponent.unsigned_abs()),
            false => shift_left(&mut limbs, exponent.unsigned_abs()),
        }
        while places < 0 && left > 0 {
            let step = left.min(19);
            sticky |= divide(&mut limbs, 10u64.pow(step)) != 0;
            left -= step;
        }
        let [low, high, rest @ ..] = limbs;
        if rest.iter().any(|limb| *limb != 0) {
            return None;
        }
        let coefficient = u128::from(high) << 64 | u128::from(low);
        let parts = Parts { negative, coefficient, exponent: -places };
        let (decimal, exact) = Decimal128::round(parts, sticky);
        match decimal.parts() {
            Some(parts) if exact && parts.coefficient != 0 => {
                Some(Decimal128::pack(parts.without_zeros()))
            }
            _ => Some(decimal),
        }
    }
}

fn multiply(limbs: &mut [u64; WIDE], factor: u64) {
    let mut carry = 0u128;
    for limb in limbs {
        let product = u128::from(*limb) * u128::from(factor) + carry;
        (*limb, carry) = (product as u64, product >> 64);
    }
}

/// Returns true if bits other than zero are lost.
fn shift_right(limbs: &mut [u64; WIDE], bits: u32) -> bool {
    let (skip, shift) = ((bits / 64) as usize, bits % 64);
    let mut lost = limbs.iter().take(skip).any(|limb| *limb != 0);
    lost |= limbs.get(skip).is_some_and(|limb| limb & ((1u64 << shift) - 1) != 0);
    for at in 0..WIDE {
        let low = limbs.get(at + skip).copied().unwrap_or(0);
        let high = limbs.get(at + skip + 1).copied().unwrap_or(0);
        limbs[at] = if shift == 0 { low } else { low >> shift | high << (64 - shift) };
    }
    lost
}

fn shift_left(limbs: &mut [u64; WIDE], bits: u32) {
    let (skip, shift) = ((bits / 64) as usize, bits % 64);
    for at in (0..WIDE).rev() {
        let high = at.checked_sub(skip).map_or(0, |at| limbs[at]);
        let low = at.checked_sub(skip + 1).map_or(0, |at| limbs[at]);
        limbs[at] = if shift == 0 { high } else { high << shift | low >> (64 - shift) };
    }
}
