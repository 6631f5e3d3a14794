//! The plan of a join's foreign side, whose keys explain does not know.

use super::print_stages;
use crate::node_stats::JoinStats;
use crate::plan::{Foreign, Node};
use quire_catalog::key::Intervals;
use quire_document::{ArrayBuf, DocWriter};

/// Stands for the keys of a join in a plan that is not bound to them.
const KEY: &str = "<key>";

/// Prints the plan that finds the foreign documents of a join: those with its keys if there are keys, else all.
/// After running the join, `ran` tells which of the two ran; if both did, both are printed.
pub fn foreign_plan(foreign: &Foreign, ran: Option<&JoinStats>, out: &mut DocWriter<'_>) {
    let mut print = |name, root: &Node| print_stages(root.below_stages(), &mut out.document(name));
    let (by_keys, whole) = (foreign.whole.by_keys.as_deref(), &foreign.whole.root);
    let read_all = ran.is_some_and(|ran| ran.read_all);
    match by_keys.filter(|_| !read_all || ran.is_some_and(|ran| ran.by_keys)) {
        Some(by_keys) => {
            print("foreignPlan", by_keys);
            if read_all {
                print("wholeForeignPlan", whole);
            }
        }
        None => print("foreignPlan", whole),
    }
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
