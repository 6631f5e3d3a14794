//! The dotted paths of update operators: which are valid, the meaning of their parts, and their
//! order.

use quire_document::limits::PATH_COMPONENTS_MAX;
use quire_error::{Error, ErrorCode, Result};
use std::cmp::Ordering;

/// Splits a path into its parts, with mongod's checks for update paths.
pub(super) fn parse(path: &str) -> Result<Vec<&str>> {
    if path.is_empty() {
        return Err(Error::new(ErrorCode::EmptyFieldName, "An empty update path is not valid."));
    }
    check_length(path)?;
    let parts: Vec<&str> = path.split('.').collect();
    if parts.iter().any(|part| part.is_empty()) {
        let message =
            format!("The update path '{path}' contains an empty field name, which is not allowed.");
        return Err(Error::new(ErrorCode::EmptyFieldName, message));
    }
    let positional = parts.iter().filter(|part| **part == "$").count();
    if positional > 1 {
        let message = format!("Too many positional (i.e. '$') elements found in path '{path}'");
        return Err(Error::bad_value(message));
    }
    if parts[0] == "$" {
        return Err(Error::bad_value(format!(
            "Cannot have positional (i.e. '$') element in the first position in path '{path}'"
        )));
    }
    if identifier(parts[0]).is_some() {
        return Err(Error::bad_value(format!(
            "Cannot have array filter identifier (i.e. '$[<id>]') element in the first position in path '{path}'"
        )));
    }
    Ok(parts)
}

/// Fails with 15 if a path has more parts than a document may have levels.
pub(super) fn check_length(path: &str) -> Result<()> {
    if path.split('.').count() > PATH_COMPONENTS_MAX {
        let message = format!("The path has more than {PATH_COMPONENTS_MAX} parts");
        return Err(Error::new(ErrorCode::Overflow, message));
    }
    Ok(())
}

/// Returns the name in `$[name]`, which is empty for `$[]`.
pub(super) fn identifier(part: &str) -> Option<&str> {
    part.strip_prefix("$[")?.strip_suffix(']')
}

/// Returns true if a part is `$`, `$[]` or `$[name]`.
pub(super) fn is_dynamic(part: &str) -> bool {
    part == "$" || identifier(part).is_some()
}

/// Returns the array position in a part, if it has only digits.
pub(super) fn index(part: &str) -> Option<u32> {
    if part.is_empty() || !part.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    part.parse().ok()
}

/// Compares two parts in the order in which the children of a path are applied, and so new fields
/// are appended: by name, but by value if both are numbers. Numbers come before letters.
pub(super) fn order(left: &str, right: &str) -> Ordering {
    fn rank(part: &str) -> (u8, u32) {
        match index(part) {
            Some(index) => (1, index),
            None if part.as_bytes() < b"0" => (0, 0),
            None => (2, 0),
        }
    }
    rank(left).cmp(&rank(right)).then_with(|| left.cmp(right))
}

/// A part of a path, ordered by `order`.
#[derive(Clone, Debug)]
pub(super) struct Part(Box<str>);

impl Part {
    pub(super) fn new(part: &str) -> Self {
        Part(part.into())
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl Ord for Part {
    fn cmp(&self, other: &Self) -> Ordering {
        order(&self.0, &other.0)
    }
}

impl PartialOrd for Part {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Part {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Part {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_sort_by_value_and_names_by_bytes() {
        let mut names = ["z", "a", "10", "9", "B", "o"];
        names.sort_by(|a, b| order(a, b));
        assert_eq!(names, ["9", "10", "B", "a", "o", "z"]);
    }

    /// "9" came before "10", "10" before "1a", and "1a" before "9". So a binary search missed
    /// existing parts, and with them conflicts.
    #[test]
    fn any_parts_have_one_order() {
        let parts = ["9", "10", "1a", "007", "7", "-1", "$x", "a", "", "B", "4294967296", "é"];
        for a in parts {
            for b in parts {
                assert_eq!(order(a, b), order(b, a).reverse(), "{a} {b}");
                assert_eq!(order(a, b).is_eq(), a == b, "{a} {b}");
                for c in parts {
                    if order(a, b).is_lt() && order(b, c).is_lt() {
                        assert!(order(a, c).is_lt(), "{a} {b} {c}");
                    }
                }
            }
        }
    }

    #[test]
    fn bad_paths() {
        assert_eq!(parse("").unwrap_err().code(), ErrorCode::EmptyFieldName);
        assert_eq!(parse("a..b").unwrap_err().code(), ErrorCode::EmptyFieldName);
        assert_eq!(parse("$.a").unwrap_err().code(), ErrorCode::BadValue);
        assert_eq!(parse("a.$.b.$").unwrap_err().code(), ErrorCode::BadValue);
        assert_eq!(parse("$[].a").unwrap_err().code(), ErrorCode::BadValue);
        assert_eq!(parse("a.$[].b.$").unwrap().len(), 4);
    }
}
