//! Which paths of their input stages read.

use quire_mql::stage::{Modified, Stage, StageBody};
use std::collections::BTreeSet;

/// Returns the paths that stages read of their input; `None` if they may need anything. A path ends
/// before a component that is a number: a filter and a sort take it as a position in an array, which
/// a projection does not.
pub(crate) fn needed_paths<'s>(
    stages: impl IntoIterator<Item = &'s Stage>,
) -> Option<BTreeSet<String>> {
    let mut paths = BTreeSet::new();
    for stage in stages {
        let needs = stage.needs();
        if needs.reads.whole_document || !needs.reads.metadata.is_empty() {
            return None;
        }
        paths.extend(needs.reads.paths.into_iter().map(before_number));
        if needs.exhaustive {
            return Some(paths);
        }
        if matches!(stage.modified(), Modified::All) {
            return None;
        }
    }
    None
}

/// Returns the path up to its first component that may be a position; the first of all is a field.
fn before_number(path: String) -> String {
    let is_number = |component: &str| component.bytes().all(|byte| byte.is_ascii_digit());
    let mut dots = path.match_indices('.').map(|(at, _)| at).peekable();
    while let Some(at) = dots.next() {
        let end = dots.peek().copied().unwrap_or(path.len());
        if path.get(at + 1..end).is_some_and(is_number) {
            return path.get(..at).unwrap_or_default().to_owned();
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_end_before_a_position() {
        for (path, kept) in [
            ("a", "a"),
            ("0", "0"),
            ("a.b", "a.b"),
            ("a.0", "a"),
            ("a.b.12.c", "a.b"),
            ("a.0b", "a.0b"),
        ] {
            assert_eq!(before_number(path.to_owned()), kept);
        }
    }
}
