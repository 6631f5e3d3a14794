//! Letter case and diacritics: which letters a search treats as equal.
//!
//! Letter case folds one character to one character (the simple case folding of the Unicode Standard).
//! A diacritic is removed if the letter's name says that it is a letter *with* it: é becomes e and ά
//! becomes α. Letters with names of their own stay, as ø, ł, the Cyrillic ё and й, and kana with a
//! voicing mark. Combining marks are removed.

use icu_normalizer::properties::{
    CanonicalCombiningClassMapBorrowed, CanonicalDecompositionBorrowed, Decomposed,
};
use std::borrow::Cow;

/// Letters that Unicode decomposes, but whose names are not those of a letter with a diacritic.
const OWN_NAMES: &[char] = &['Ё', 'ё', 'Й', 'й', 'Ї', 'ї', 'Ў', 'ў', 'Ѓ', 'ѓ', 'Ќ', 'ќ'];

/// Appends a character in lower case.
fn push_lower(c: char, turkish: bool, out: &mut String) {
    if c.is_ascii() {
        out.push(if turkish && c == 'I' { 'ı' } else { c.to_ascii_lowercase() });
    } else {
        out.push(folded(c, turkish));
    }
}

fn folded(c: char, turkish: bool) -> char {
    match c {
        'İ' if turkish => return 'i',
        // They have no other letter case in this folding.
        'İ' | 'ı' => return c,
        _ => {}
    }
    let one = |c: char, mut mapped: std::char::ToLowercase| match (mapped.next(), mapped.next()) {
        (Some(only), None) => only,
        _ => c,
    };
    let mut upper = c.to_uppercase();
    let upper = match (upper.next(), upper.next()) {
        (Some(only), None) => only,
        _ => c,
    };
    one(upper, upper.to_lowercase())
}

/// Returns a text in lower case.
pub(super) fn lower(text: &str, turkish: bool) -> String {
    let mut out = String::with_capacity(text.len());
    push_all_lower(text, turkish, &mut out);
    out
}

/// Appends a text in lower case.
pub(super) fn push_all_lower(text: &str, turkish: bool, out: &mut String) {
    if text.is_ascii() && !turkish {
        out.push_str(text);
        let start = out.len() - text.len();
        if let Some(added) = out.get_mut(start..) {
            added.make_ascii_lowercase();
        }
    } else {
        text.chars().for_each(|c| push_lower(c, turkish, out));
    }
}

/// Returns a text without diacritics.
pub(super) fn without_diacritics(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().filter_map(base).collect())
}

/// Returns a character without its diacritics; `None` for a combining mark.
fn base(c: char) -> Option<char> {
    let classes = CanonicalCombiningClassMapBorrowed::new();
    if c.is_ascii() {
        return Some(c);
    }
    if classes.get_u8(c) != 0 {
        return None;
    }
    let keeps = OWN_NAMES.contains(&c) || ('\u{3040}'..='\u{30ff}').contains(&c);
    if keeps {
        return Some(c);
    }
    match CanonicalDecompositionBorrowed::new().decompose(c) {
        Decomposed::Expansion(first, mark) if classes.get_u8(mark) != 0 => base(first),
        _ => Some(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letter_case_folds_to_one_character() {
        assert_eq!(lower("ΟΔΟΣ οδος STRAẞE", false), "οδοσ οδοσ straße");
        assert_eq!((lower("IŞIK", true), lower("IŞIK", false)), ("ışık".into(), "işik".into()));
        assert_eq!(lower("МОРЕ ÉCOLE", false), "море école");
    }

    #[test]
    fn diacritics_go_but_letters_of_their_own_stay() {
        assert_eq!(without_diacritics("café jose\u{301} ά ệ"), "cafe jose α e");
        assert_eq!(without_diacritics("søster łódź ёлка й が 한"), "søster łodz ёлка й が 한");
    }
}
