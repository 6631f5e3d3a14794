//! Divides long sequences of combining marks. The library orders all marks after a letter together,
//! and looks for contractions among them, in a time that grows with the square of their number: a
//! string of 60 KB took seconds, in which the operation could not end.
//!
//! Unicode's Stream-Safe Text Format divides sequences of 30 marks in the same way (UAX #15, section
//! 13). A longer one, as in the text of real languages, is unknown.

use crate::context::work::units;
use crate::context::work_or_unwind;
use icu_normalizer::properties::CanonicalCombiningClassMapBorrowed;
use std::borrow::Cow;

/// The longest sequence of combining marks that is ordered together.
pub(super) const MARKS_MAX: usize = 256;

/// COMBINING GRAPHEME JOINER, which ends a sequence of marks and has no weight of its own.
const DIVIDER: char = '\u{34f}';

/// The first character that can be a combining mark.
const FIRST_MARK: char = '\u{300}';

/// The bytes between two counts of work.
const PIECE_BYTES: usize = 4096;

/// Returns the string with a divider after each [`MARKS_MAX`] marks in sequence.
pub(super) fn divided(text: &str) -> Cow<'_, str> {
    // A mark has two bytes at least.
    if text.len() <= 2 * MARKS_MAX || text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let (mut out, mut copied, mut marks, mut counted) = (String::new(), 0, 0, 0);
    for (at, character) in text.char_indices() {
        if at - counted >= PIECE_BYTES {
            work_or_unwind(units(16 * PIECE_BYTES));
            counted = at;
        }
        marks = if is_mark(character) { marks + 1 } else { 0 };
        if marks > MARKS_MAX {
            out.push_str(text.get(copied..at).unwrap_or_default());
            out.push(DIVIDER);
            (copied, marks) = (at, 1);
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(text.get(copied..).unwrap_or_default());
    Cow::Owned(out)
}

/// Returns true if the character is ordered among the marks after a letter: it has a combining
/// class, or is decomposed into characters that have one.
fn is_mark(character: char) -> bool {
    const CLASSES: CanonicalCombiningClassMapBorrowed<'static> =
        CanonicalCombiningClassMapBorrowed::new();
    character >= FIRST_MARK
        && (matches!(character, '\u{f73}' | '\u{f75}' | '\u{f81}')
            || CLASSES.get_u8(character) != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_long_sequences_are_divided() {
        let (accent, tibetan) = ("\u{301}", "\u{f71}\u{f80}");
        for text in [
            "a".repeat(5000),
            "\u{e9}".repeat(5000),
            format!("a{}b", accent.repeat(MARKS_MAX)).repeat(3),
            tibetan.repeat(MARKS_MAX / 2),
        ] {
            assert_eq!(divided(&text), text);
        }
        let text = format!("a{}b", accent.repeat(2 * MARKS_MAX + 1));
        let parts = divided(&text);
        let lengths: Vec<usize> = parts.split(DIVIDER).map(|part| part.chars().count()).collect();
        assert_eq!(lengths, [MARKS_MAX + 1, MARKS_MAX, 2]);
        assert_eq!(parts.replace(DIVIDER, ""), text);
        let text = "\u{f81}".repeat(MARKS_MAX + 1);
        assert_eq!(divided(&text).matches(DIVIDER).count(), 1);
    }
}
