//! Natural numbers of 256 bits, for exact sums, products and quotients of coefficients before
//! rounding.

use super::{Parts, digits};
use crate::Decimal128;
use std::cmp::Ordering;

/// A natural number below 2^256, as a high and a low half.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Wide {
    high: u128,
    low: u128,
}

impl Wide {
    pub(super) const fn new(low: u128) -> Self {
        Wide { high: 0, low }
    }

    pub(super) const fn is_zero(self) -> bool {
        self.high == 0 && self.low == 0
    }

    /// Returns the product of two halves; it never overflows.
    pub(super) fn product(a: u128, b: u128) -> Self {
        const LOW: u128 = u64::MAX as u128;
        let (a1, a0, b1, b0) = (a >> 64, a & LOW, b >> 64, b & LOW);
        let (bottom, top) = (a0 * b0, a1 * b1);
        let middle = a0 * b1 + (bottom >> 64);
        let (middle, carry) = middle.overflowing_add(a1 * b0);
        let low = bottom & LOW | middle << 64;
        Wide { high: top + (middle >> 64) + ((carry as u128) << 64), low }
    }

    /// Returns `self * 10^power`, which must be below 10^76.
    pub(super) fn times_ten_to(self, power: u32) -> Self {
        if power > 38 {
            return self.times_ten_to(38).times_ten_to(power - 38);
        }
        let factor = 10u128.pow(power);
        let low = Wide::product(self.low, factor);
        Wide { high: low.high.wrapping_add(self.high.wrapping_mul(factor)), low: low.low }
    }

    pub(super) fn plus(self, other: Wide) -> Self {
        let (low, carry) = self.low.overflowing_add(other.low);
        Wide { high: self.high.wrapping_add(other.high).wrapping_add(carry as u128), low }
    }

    /// Returns `self - other`; `other` must not be larger.
    pub(super) fn minus(self, other: Wide) -> Self {
        let (low, borrow) = self.low.overflowing_sub(other.low);
        Wide { high: self.high.wrapping_sub(other.high).wrapping_sub(borrow as u128), low }
    }

    /// Returns quotient and remainder; the divisor must be below 2^113.
    pub(super) fn divide(self, divisor: u128) -> (Self, u128) {
        if self.high == 0 {
            return (Wide::new(self.low / divisor), self.low % divisor);
        }
        let (mut quotient, mut rest) = (Wide::new(0), self.high % divisor);
        quotient.high = self.high / divisor;
        // Takes the low half in pieces of 15 bits, so that a remainder and the next piece fit in
        // 128 bits.
        let mut left = 128;
        while left > 0 {
            let step = left.min(15);
            left -= step;
            rest = (rest << step) | ((self.low >> left) & ((1 << step) - 1));
            quotient.low = (quotient.low << step) | (rest / divisor);
            rest %= divisor;
        }
        (quotient, rest)
    }

    /// Returns the number of decimal digits.
    pub(super) fn digits(self) -> u32 {
        if self.high == 0 {
            return digits(self.low);
        }
        let bits = 256 - self.high.leading_zeros();
        let guess = (bits - 1) * 30103 / 100_000;
        match self.cmp(&Wide::new(1).times_ten_to(guess + 1)) {
            Ordering::Less => guess + 1,
            _ => guess + 2,
        }
    }

    /// Returns the number if it fits in one half.
    pub(super) fn small(self) -> Option<u128> {
        (self.high == 0).then_some(self.low)
    }

    /// Rounds `self * 10^exponent` to a decimal; `sticky` as in [`Decimal128::round`].
    pub(super) fn round(self, negative: bool, exponent: i32, mut sticky: bool) -> Decimal128 {
        let (mut number, mut exponent) = (self, exponent);
        let mut excess = self.digits().saturating_sub(38);
        while excess > 0 {
            let step = excess.min(33);
            let (quotient, rest) = number.divide(10u128.pow(step));
            number = quotient;
            sticky |= rest != 0;
            exponent += step as i32;
            excess -= step;
        }
        let parts = Parts { negative, coefficient: number.low, exponent };
        Decimal128::round(parts, sticky).0
    }

    /// Returns the integer square root, and whether it is exact.
    pub(super) fn square_root(self) -> (u128, bool) {
        let mut root = 0u128;
        for bit in (0..128).rev() {
            let trial = root | 1 << bit;
            if Wide::product(trial, trial) <= self {
                root = trial;
            }
        }
        (root, Wide::product(root, root) == self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities() {
        let mut seed = 7u128;
        for _ in 0..20_000 {
            seed = seed.wrapping_mul(0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645).wrapping_add(99);
            let (a, b) = (seed >> (seed & 63), ((seed ^ (seed << 61)) % (1 << 113)) | 1);
            let product = Wide::product(a, b);
            assert_eq!(product.divide(b), (Wide::new(a), 0));
            let rest = b / 2;
            assert_eq!(product.plus(Wide::new(rest)).divide(b), (Wide::new(a), rest));
            assert_eq!(product.plus(Wide::new(a)).minus(Wide::new(a)), product);
            let square = Wide::product(a, a);
            assert_eq!(square.square_root(), (a, true));
        }
        assert_eq!(Wide::new(u128::MAX).digits(), 39);
        for power in 0..76 {
            let wide = Wide::new(1).times_ten_to(power);
            assert_eq!(wide.digits(), power + 1);
            assert_eq!(wide.minus(Wide::new(1)).digits(), power);
        }
    }
}
