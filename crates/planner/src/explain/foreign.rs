//! The plan of a join's foreign side, whose keys explain does not know.

use super::print_stages;
use crate::plan::Foreign;
use quire_catalog::key::Intervals;
use quire_document::{ArrayBuf, DocWriter};

/// Stands for the keys of a join in a plan that is not bound to them.
const KEY: &str = "<key>";

/// Prints the plan that finds the foreign documents of a join: those with its keys if there are keys,
/// else all.
pub fn foreign_plan(foreign: &Foreign, out: &mut DocWriter<'_>) {
    let root = foreign.whole.by_keys.as_deref().unwrap_or(&foreign.whole.root);
    print_stages(root.below_stages(), out);
}

/// Returns the bounds of a field that the keys of a join bound too.
pub(super) fn with_key(others: ArrayBuf, intervals: &Intervals) -> ArrayBuf {
    ArrayBuf::build(|writer| {
        writer.push(KEY);
        if !intervals.is_all() {
            others.as_array().iter().for_each(|text| {
                writer.push(text);
            });
        }
    })
}
