//! The exact relation between decimals and doubles: the nearest double towards zero, and whether it
//! equals the decimal. Comparison, hashing and key encoding use it.

use super::{Parts, digits};

/// 5^27, the largest power of five below 2^63.
const FIVE_27: u64 = 5u64.pow(27);
/// Enough for 10^308 times a coefficient, and for a quotient of 67 bits times 10^358.
const LIMBS: usize = 20;

/// A natural number of fixed size, with the lowest limb first.
struct Natural([u64; LIMBS]);

/// Returns the largest double that is not greater than `coefficient * 10^exponent`, and whether
/// both are equal. A number above all doubles gives `f64::MAX`, one below all of them zero; neither
/// is equal.
pub(crate) fn truncate_to_f64(coefficient: u128, exponent: i32) -> (f64, bool) {
    if coefficient == 0 {
        return (0.0, true);
    }
    let size = digits(coefficient) as i32 + exponent;
    if size >= 310 {
        return (f64::MAX, false);
    }
    if size < -323 {
        return (0.0, false);
    }
    let Parts { coefficient, exponent, .. } = Parts { negative: false, coefficient, exponent };
    if exponent >= 0 {
        let mut natural = Natural::new(coefficient, 0);
        natural.multiply_by_five_to(exponent as u32);
        return natural.leading_f64(exponent, true);
    }
    let negated = exponent.unsigned_abs();
    let bits = 128 - coefficient.leading_zeros();
    let shift = (negated * 2322 / 1000 + 67).saturating_sub(bits);
    let mut natural = Natural::new(coefficient, shift);
    let exact = natural.divide_by_five_to(negated);
    natural.leading_f64(exponent - shift as i32, exact)
}

impl Natural {
    fn new(number: u128, shift: u32) -> Self {
        let mut limbs = [0; LIMBS];
        let (at, by) = ((shift / 64) as usize, shift % 64);
        let (low, high) = (number as u64, (number >> 64) as u64);
        for (i, limb) in [low, high].into_iter().enumerate() {
            let wide = (limb as u128) << by;
            limbs[at + i] |= wide as u64;
            limbs[at + i + 1] |= (wide >> 64) as u64;
        }
        Natural(limbs)
    }

    fn multiply_by_five_to(&mut self, mut power: u32) {
        while power > 0 {
            let step = power.min(27);
            self.multiply(5u64.pow(step));
            power -= step;
        }
    }

    fn multiply(&mut self, factor: u64) {
        let mut carry = 0u128;
        for limb in &mut self.0 {
            carry += *limb as u128 * factor as u128;
            *limb = carry as u64;
            carry >>= 64;
        }
    }

    /// Divides and rounds down. Returns true if nothing was lost.
    fn divide_by_five_to(&mut self, mut power: u32) -> bool {
        let mut exact = true;
        while power > 0 {
            let step = power.min(27);
            let divisor = if step == 27 { FIVE_27 } else { 5u64.pow(step) };
            exact &= self.divide(divisor) == 0;
            power -= step;
        }
        exact
    }

    fn divide(&mut self, divisor: u64) -> u64 {
        let mut rest = 0u64;
        let top = self.top();
        for limb in self.0[..top].iter_mut().rev() {
            let wide = (rest as u128) << 64 | *limb as u128;
            *limb = (wide / divisor as u128) as u64;
            rest = (wide % divisor as u128) as u64;
        }
        rest
    }

    /// Returns the number of limbs in use.
    fn top(&self) -> usize {
        self.0.iter().rposition(|&limb| limb != 0).map_or(0, |at| at + 1)
    }

    /// Returns the number of bits.
    fn bits(&self) -> i32 {
        match self.top() {
            0 => 0,
            top => top as i32 * 64 - self.0[top - 1].leading_zeros() as i32,
        }
    }

    /// Returns the bits from `from` up, of which there are at most 64, and whether the bits below
    /// are zero.
    fn shifted(&self, from: u32) -> (u64, bool) {
        let (at, by) = ((from / 64) as usize, from % 64);
        let low = self.0.get(at).copied().unwrap_or(0);
        let high = self.0.get(at + 1).copied().unwrap_or(0);
        let wide = (high as u128) << 64 | low as u128;
        let below = self.0.iter().take(at).all(|&limb| limb == 0);
        ((wide >> by) as u64, below && low & ((1u64 << by) - 1) == 0)
    }

    /// Returns `self * 2^exponent` truncated to a double, and whether it is exact. `exact` tells
    /// whether `self` is.
    fn leading_f64(&self, exponent: i32, exact: bool) -> (f64, bool) {
        let bits = self.bits();
        let top = bits - 1 + exponent;
        if top > 1023 {
            return (f64::MAX, false);
        }
        let lowest = (top - 52).max(-1074);
        let cut = lowest - exponent;
        let (mantissa, nothing_lost) = match cut {
            0.. => self.shifted(cut as u32),
            _ => (self.0[0] << -cut, true),
        };
        let biased = if top >= -1022 { (top + 1023) as u64 } else { 0 };
        let bits = biased << 52 | mantissa & ((1 << 52) - 1);
        (f64::from_bits(bits), exact && nothing_lost)
    }
}

#[cfg(test)]
mod tests {
    use super::truncate_to_f64;

    fn check(coefficient: u128, exponent: i32) {
        let nearest: f64 = format!("{coefficient}e{exponent}").parse().unwrap();
        let (cut, exact) = truncate_to_f64(coefficient, exponent);
        assert!(!cut.is_infinite());
        let above = if cut == f64::MAX { f64::INFINITY } else { f64::from_bits(cut.to_bits() + 1) };
        assert!(nearest == cut || (!exact && nearest == above), "{coefficient}e{exponent}: {cut}");
    }

    #[test]
    fn brackets_the_nearest_double() {
        let mut seed = 1u64;
        for _ in 0..20_000 {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let wide = (seed as u128) << 49 ^ seed as u128;
            let coefficient = wide >> (seed >> 58);
            check(coefficient % 10u128.pow(34), (seed >> 20) as i32 % 380);
        }
        check(1, -324);
        check(5, -324);
        check(49, -325);
        check(17976931348623157, 292);
        check(17976931348623159, 292);
    }

    #[test]
    fn exact_ones() {
        assert_eq!(truncate_to_f64(1, 0), (1.0, true));
        assert_eq!(truncate_to_f64(25, -2), (0.25, true));
        assert_eq!(truncate_to_f64(1, 22), (1e22, true));
        let (cut, exact) = truncate_to_f64(1, -1);
        assert!(!exact && cut == f64::from_bits(0.1f64.to_bits() - 1));
        assert_eq!(truncate_to_f64(1 << 53, 0), (9007199254740992.0, true));
        assert_eq!(truncate_to_f64((1 << 53) + 1, 0), (9007199254740992.0, false));
        let tiny = 10u128.pow(33);
        assert_eq!(truncate_to_f64(tiny, -6176), (0.0, false));
        assert_eq!(truncate_to_f64(tiny, 6111), (f64::MAX, false));
    }
}
