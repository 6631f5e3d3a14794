//! The literal prefix of all matches of a regular expression.

/// The prefix that a pattern requires of a string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// The literal text; empty if there is none.
    pub text: String,
    /// True if every string with this prefix matches.
    pub exact: bool,
}

const NONE: Prefix = Prefix { text: String::new(), exact: false };

/// Returns the prefix of a pattern with these option letters.
pub(super) fn prefix(pattern: &str, options: &str) -> Prefix {
    let (mut multiline, mut extended) = (false, false);
    for letter in options.chars() {
        match letter {
            'm' => multiline = true,
            's' | 'u' => {}
            'x' => extended = true,
            _ => return NONE,
        }
    }
    let rest = match pattern.strip_prefix("\\A") {
        Some(rest) => rest,
        None => match pattern.strip_prefix('^') {
            Some(rest) if !multiline => rest,
            _ => return NONE,
        },
    };
    if has_alternation(pattern) {
        return NONE;
    }
    scan(rest, extended)
}

/// Returns true if the pattern has an alternation, which disables the prefix.
fn has_alternation(pattern: &str) -> bool {
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' if chars.next() == Some('Q') => {
                let rest = chars.as_str();
                match rest.find("\\E") {
                    Some(end) => chars = rest[end + 2..].chars(),
                    None => return false,
                }
            }
            '|' => return true,
            _ => {}
        }
    }
    false
}

fn scan(pattern: &str, extended: bool) -> Prefix {
    let mut text = String::new();
    let mut chars = pattern.chars();
    let mut exact = true;
    while let Some(c) = chars.next() {
        match c {
            // A quantifier may allow zero occurrences of the character before it.
            '*' | '?' | '{' => {
                text.pop();
                exact = false;
                break;
            }
            '\\' => match chars.next() {
                Some('Q') => {
                    let rest = chars.as_str();
                    let end = rest.find("\\E").unwrap_or(rest.len());
                    text.push_str(&rest[..end]);
                    chars = rest[(end + 2).min(rest.len())..].chars();
                }
                Some('E') => {}
                Some(escaped) if !escaped.is_ascii_alphanumeric() && escaped != '\0' => {
                    text.push(escaped);
                }
                _ => {
                    exact = false;
                    break;
                }
            },
            '^' | '$' | '.' | '[' | '(' | ')' | '+' | '|' => {
                exact = false;
                break;
            }
            '#' if extended => {
                exact = false;
                break;
            }
            c if extended && c.is_ascii_whitespace() => {}
            c => text.push(c),
        }
    }
    if text.is_empty() {
        return NONE;
    }
    Prefix { text, exact }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes() {
        let cases = [
            ("^abc", "", "abc", true),
            ("abc", "", "", false),
            ("^ab.c", "", "ab", false),
            ("^abc?", "", "ab", false),
            ("^abc{0,2}", "", "ab", false),
            ("^abc|def", "", "", false),
            ("^abc\\|d", "", "abc|d", true),
            ("^a\\.b", "", "a.b", true),
            ("^a\\d", "", "a", false),
            ("\\Aabc", "m", "abc", true),
            ("^abc", "m", "", false),
            ("^abc", "i", "", false),
            ("^ab c", "x", "abc", true),
            ("^\\Qa.b\\Ec.d", "", "a.bc", false),
            ("^\\Qa.b\\E", "", "a.b", true),
            ("^a?", "", "", false),
            ("^ab+", "", "ab", false),
            ("^abc.*", "", "abc", false),
        ];
        for (pattern, options, text, exact) in cases {
            let expected = Prefix { text: text.into(), exact };
            assert_eq!(prefix(pattern, options), expected, "{pattern}");
        }
    }
}
