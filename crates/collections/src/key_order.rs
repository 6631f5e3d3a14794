//! Eight bytes of a key as a number: a sort compares these first, and compares the whole keys only
//! if they are equal.

/// Returns the length of the common prefix of all `keys`.
pub fn shared_bytes<'k>(mut keys: impl Iterator<Item = &'k [u8]>) -> usize {
    let Some(first) = keys.next() else { return 0 };
    keys.fold(first.len(), |shared, key| {
        let same = first.iter().zip(key).take(shared);
        same.take_while(|(a, b)| a == b).count()
    })
}

/// Returns the eight bytes of `key` from `at` on as a number that has the same order. A shorter key
/// is padded with zeros.
pub fn order_digits(key: &[u8], at: usize) -> u64 {
    let mut digits = [0; 8];
    let rest = key.get(at..).unwrap_or_default();
    digits.iter_mut().zip(rest).for_each(|(digit, byte)| *digit = *byte);
    u64::from_be_bytes(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_after_the_shared_bytes_order_as_the_keys_do() {
        let keys: [&[u8]; 4] = [b"same", b"same\x01", b"same\x01\xffmore than 8", b"samf"];
        let shared = shared_bytes(keys.into_iter());
        assert_eq!(shared, 3);
        let digits = keys.map(|key| order_digits(key, shared));
        assert!(digits.is_sorted());
        assert_eq!(order_digits(b"same", 4), 0);
        assert_eq!(shared_bytes(std::iter::empty()), 0);
        assert_eq!(shared_bytes([&b"alone"[..]].into_iter()), 5);
    }
}
