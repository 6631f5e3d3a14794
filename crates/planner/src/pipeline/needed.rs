//! The paths that stages read of their input, and the projection that keeps these.

use crate::pipeline::pushing::has_parent;
use crate::plan::Reshape;
use quire_document::DocBuf;
use quire_error::Result;
use quire_mql::ParseContext;
use quire_mql::projection::Projection;
use quire_mql::stage::{Modified, Stage, StageBody};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Returns the paths that stages read of their input; `None` if they may read anything. A path ends
/// before a component that is a number: a filter and a sort treat it as an array index, a
/// projection does not.
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

/// Returns the path up to its first component that may be an array index; the first component of
/// all is a field.
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

/// Returns the projection that keeps only these paths. It is executed (`run`) only if stages copy
/// documents; elsewhere it shows which fields are read.
pub(crate) fn narrowing(
    paths: &BTreeSet<String>,
    run: bool,
    context: &ParseContext,
) -> Result<Reshape> {
    let shortest = paths.iter().filter(|path| !has_parent(paths, path));
    let shown = DocBuf::build(|writer| {
        let mut keeps_id = false;
        for path in shortest {
            keeps_id |= path.as_str() == "_id" || path.starts_with("_id.");
            writer.append(path, 1);
        }
        if !keeps_id {
            writer.append("_id", 0);
        }
    });
    let compile = || Projection::parse_find(shown.as_doc(), None, context).map(Arc::new);
    let projection = run.then(compile).transpose()?;
    Ok(Reshape {
        shown,
        projection,
        show_record_id: false,
        empty_sort_key: false,
        narrows: true,
        values_only: false,
    })
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
