//! The characters between words.
//!
//! Version 3 of the index separates words at the characters with one of the properties Dash, Hyphen,
//! Pattern_Syntax, Quotation_Mark, Terminal_Punctuation and White_Space of the Unicode Standard
//! (PropList.txt). Older versions know only ASCII.

/// The delimiters above ASCII, as ranges in ascending order, without white space.
const RANGES: &[(u32, u32)] = &[
    (0x00A1, 0x00A7),
    (0x00A9, 0x00A9),
    (0x00AB, 0x00AE),
    (0x00B0, 0x00B1),
    (0x00B6, 0x00B6),
    (0x00BB, 0x00BB),
    (0x00BF, 0x00BF),
    (0x00D7, 0x00D7),
    (0x00F7, 0x00F7),
    (0x037E, 0x037E),
    (0x0387, 0x0387),
    (0x0589, 0x058A),
    (0x05BE, 0x05BE),
    (0x05C3, 0x05C3),
    (0x060C, 0x060C),
    (0x061B, 0x061B),
    (0x061E, 0x061F),
    (0x06D4, 0x06D4),
    (0x0700, 0x070A),
    (0x070C, 0x070C),
    (0x07F8, 0x07F9),
    (0x0830, 0x083E),
    (0x085E, 0x085E),
    (0x0964, 0x0965),
    (0x0E5A, 0x0E5B),
    (0x0F08, 0x0F08),
    (0x0F0D, 0x0F12),
    (0x104A, 0x104B),
    (0x1361, 0x1368),
    (0x1400, 0x1400),
    (0x166D, 0x166E),
    (0x16EB, 0x16ED),
    (0x1735, 0x1736),
    (0x17D4, 0x17D6),
    (0x17DA, 0x17DA),
    (0x1802, 0x1806),
    (0x1808, 0x1809),
    (0x1944, 0x1945),
    (0x1AA8, 0x1AAB),
    (0x1B5A, 0x1B5B),
    (0x1B5D, 0x1B5F),
    (0x1C3B, 0x1C3F),
    (0x1C7E, 0x1C7F),
    (0x2010, 0x2027),
    (0x2030, 0x203E),
    (0x2041, 0x2053),
    (0x2055, 0x205E),
    (0x207B, 0x207B),
    (0x208B, 0x208B),
    (0x2190, 0x2BFF),
    (0x2E00, 0x2E7F),
    (0x3001, 0x3003),
    (0x3008, 0x3020),
    (0x3030, 0x3030),
    (0x30A0, 0x30A0),
    (0x30FB, 0x30FB),
    (0xA4FE, 0xA4FF),
    (0xA60D, 0xA60F),
    (0xA6F3, 0xA6F7),
    (0xA876, 0xA877),
    (0xA8CE, 0xA8CF),
    (0xA92F, 0xA92F),
    (0xA9C7, 0xA9C9),
    (0xAA5D, 0xAA5F),
    (0xAADF, 0xAADF),
    (0xAAF0, 0xAAF1),
    (0xABEB, 0xABEB),
    (0xFD3E, 0xFD3F),
    (0xFE31, 0xFE32),
    (0xFE41, 0xFE46),
    (0xFE50, 0xFE52),
    (0xFE54, 0xFE58),
    (0xFE63, 0xFE63),
    (0xFF01, 0xFF02),
    (0xFF07, 0xFF07),
    (0xFF0C, 0xFF0E),
    (0xFF1A, 0xFF1B),
    (0xFF1F, 0xFF1F),
    (0xFF61, 0xFF65),
];

/// Returns true for a character between words in an index of version 3. An apostrophe is part of an
/// English word.
pub(super) fn is_delimiter(c: char, english: bool) -> bool {
    if c.is_ascii() {
        return match c {
            '\'' => !english,
            '_' => false,
            c => !c.is_ascii_alphanumeric(),
        };
    }
    c.is_whitespace() || in_ranges(c)
}

fn in_ranges(c: char) -> bool {
    let code = u32::from(c);
    let after = RANGES.partition_point(|(_, last)| *last < code);
    RANGES.get(after).is_some_and(|(first, _)| *first <= code)
}

/// Returns true for a character between words in an index of version 1 or 2.
pub(super) fn is_ascii_delimiter(c: char, english: bool) -> bool {
    match c {
        '\'' => !english,
        '_' => false,
        c => c.is_ascii() && !c.is_ascii_alphanumeric(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_ascend() {
        assert!(RANGES.is_sorted_by(|a, b| a.1 < b.0));
        assert!(RANGES.iter().all(|(first, last)| first <= last));
    }

    #[test]
    fn words_end_at_punctuation_of_many_scripts() {
        for c in ['-', '@', '\0', ' ', '\u{a0}', '…', '「', '。', '，', '—', '¿', '«', '‘']
        {
            assert!(is_delimiter(c, false), "{c:?}");
        }
        for c in ['a', '9', '_', 'é', '数', 'は', '한', 'ß', '\u{301}'] {
            assert!(!is_delimiter(c, false), "{c:?}");
        }
        assert!(is_delimiter('\'', false) && !is_delimiter('\'', true));
        assert!(!is_ascii_delimiter('。', true) && is_ascii_delimiter('.', true));
    }
}
