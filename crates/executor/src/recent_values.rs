//! The values that a `distinct` met last: most values of a column repeat, and need not be encoded
//! and looked up again.

use quire_document::Value;

/// The sets of [`RecentValues`] and the slots of each set: with one slot a thousand values would evict
/// each other.
const RECENT_SETS: usize = 512;
const RECENT_SLOTS: usize = 4;
/// The longest value that fits into a slot, in bytes.
const RECENT_BYTES: usize = 30;

/// The last values, as bytes. A value that is among them need not be encoded and looked up.
#[derive(Default)]
pub(crate) struct RecentValues {
    /// The hash of a value selects its set. Empty before the first value.
    sets: Vec<[[u8; RECENT_BYTES + 2]; RECENT_SLOTS]>,
}

impl RecentValues {
    /// Returns true if this value was among the last ones; else stores it. False for long values
    /// and rare types, which are not stored.
    pub fn has(&mut self, value: Value<'_>) -> bool {
        let number;
        let (kind, bytes) = match value {
            Value::String(text) => (1, text.as_bytes()),
            Value::Int32(int) => {
                number = i64::from(int).to_le_bytes();
                (2, &number[..])
            }
            Value::Int64(int) => {
                number = int.to_le_bytes();
                (3, &number[..])
            }
            Value::Double(double) => {
                number = double.to_bits().to_le_bytes();
                (4, &number[..])
            }
            Value::Date(date) => {
                number = date.to_le_bytes();
                (5, &number[..])
            }
            _ => return false,
        };
        let mut wanted = [0; RECENT_BYTES + 2];
        let [first, length, place @ ..] = &mut wanted;
        let Some(place) = place.get_mut(..bytes.len()) else { return false };
        place.copy_from_slice(bytes);
        (*first, *length) = (kind, bytes.len() as u8);
        if self.sets.is_empty() {
            self.sets.resize(RECENT_SETS, [[0; RECENT_BYTES + 2]; RECENT_SLOTS]);
        }
        let words = wanted.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
        // After multiplication by an odd number (Knuth, TAOCP 6.4) the upper bits depend on all
        // bits.
        let hash = words.fold(0_u64, |hash, word| {
            (hash.rotate_left(5) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15)
        });
        let number = (hash >> 32) as usize % RECENT_SETS;
        let Some(set) = self.sets.get_mut(number) else { return false };
        let known = set.contains(&wanted);
        if !known {
            set.rotate_right(1);
            set[0] = wanted;
        }
        known
    }
}
