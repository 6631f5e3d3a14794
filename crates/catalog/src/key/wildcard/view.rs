//! Views of a wildcard index for one query: the index of one path, or of only its regular fields.
//!
//! The planner requests a view of each path that a filter tests. A view has the fields of the
//! index, with the path as the name of the wildcard field, and the array components of that path.

use std::collections::BTreeSet;
use std::sync::Arc;

use quire_document::path::array_index;
use quire_document::{Array, Doc, Value};

use super::{Covered, Wildcard, nested_mark};
use crate::key::{Interval, Intervals, KeySpec, PathView, Views};
use crate::{Multikey, MultikeyPaths};

/// The most array positions in a path for which a view is made.
const POSITIONS_MAX: usize = 8;

/// The registry entry for views of a wildcard index.
pub(super) const VIEWS: Views = Views { of_paths, refresh, is_of_path, bound_paths };

fn of_paths(spec: &KeySpec, paths: &BTreeSet<String>, facts: &Multikey) -> Vec<PathView> {
    let of_path = paths.iter().filter_map(|path| view_of_path(spec, path, facts));
    view_of_regular_fields(spec).into_iter().chain(of_path).collect()
}

/// Returns a wildcard index as the index of one path; `None` if it cannot find all values of the
/// path. `facts` tell which paths are arrays.
pub(super) fn view_of_path(spec: &KeySpec, path: &str, facts: &Multikey) -> Option<PathView> {
    let wildcard = Wildcard::in_keys(spec)?;
    let components: Vec<&str> = path.split('.').collect();
    if components.iter().filter(|part| array_index(part).is_some()).count() > POSITIONS_MAX {
        return None;
    }
    let mut walk = Stored { facts, components: &components, bits: 0, paths: Vec::new() };
    if !walk.walk(0, &mut Vec::new(), false) {
        return None;
    }
    if !walk.paths.iter().all(|path| wildcard.tree.holds(path)) {
        return None;
    }
    let (bits, paths) = (walk.bits, walk.paths);
    let mut keys = spec.clone();
    keys.fields.get_mut(wildcard.at + 1)?.path = path.to_owned();
    keys.state = Some(Arc::new(Wildcard { covered: Covered::Only(paths), ..wildcard.clone() }));
    let mut multikey = MultikeyPaths(vec![0; spec.fields.len()]);
    *multikey.0.get_mut(wildcard.at + 1)? = bits;
    Some(PathView { keys: Arc::new(keys), multikey })
}

/// Returns the index of the regular fields before the wildcard term, if there are any.
fn view_of_regular_fields(spec: &KeySpec) -> Option<PathView> {
    let wildcard = Wildcard::in_keys(spec).filter(|wildcard| wildcard.at > 0)?;
    let mut keys = spec.clone();
    keys.state = Some(Arc::new(Wildcard { covered: Covered::All, ..wildcard.clone() }));
    let multikey = MultikeyPaths(vec![0; spec.fields.len()]);
    Some(PathView { keys: Arc::new(keys), multikey })
}

fn refresh(spec: &KeySpec, facts: &Multikey) -> Option<PathView> {
    let wildcard = Wildcard::in_keys(spec)?;
    match &wildcard.covered {
        Covered::Only(paths) => {
            let path = &spec.fields.get(wildcard.at + 1)?.path;
            let view = view_of_path(spec, path, facts)?;
            let covered = &Wildcard::in_keys(&view.keys)?.covered;
            let same = matches!(covered, Covered::Only(now) if now == paths);
            same.then_some(view)
        }
        Covered::All => view_of_regular_fields(spec),
    }
}

fn is_of_path(spec: &KeySpec) -> bool {
    Wildcard::in_keys(spec).is_some_and(|wildcard| matches!(wildcard.covered, Covered::Only(_)))
}

fn bound_paths(spec: &KeySpec, bounds: &mut [Intervals]) {
    let Some(Wildcard { at, covered, .. }) = Wildcard::in_keys(spec) else { return };
    let Covered::Only(paths) = covered else {
        if let Some(bound) = bounds.get_mut(*at) {
            *bound = any_path();
        }
        return;
    };
    let below = bounds.get(at + 1).is_some_and(hold_documents);
    let intervals = paths.iter().flat_map(|path| {
        let point = Intervals::point(path.as_str());
        let (low, high) = (format!("{path}."), format!("{path}/"));
        let subpaths = || Intervals::of(Interval::new(low.as_str(), true, high.as_str(), false));
        [Some(point), below.then(subpaths)].into_iter().flatten()
    });
    let intervals = Intervals::union_of(intervals);
    if let Some(bound) = bounds.get_mut(*at) {
        *bound = intervals;
    }
}

/// Returns the interval of all paths, and of the value that documents without a path have instead.
fn any_path() -> Intervals {
    let strings = Interval::new(Value::String(""), true, Value::Document(Doc::empty()), false);
    Intervals::point(Value::MinKey).union(Intervals::of(strings))
}

/// Returns true if the intervals contain documents that are not empty. Those have no key of their
/// own.
pub(super) fn hold_documents(intervals: &Intervals) -> bool {
    let (empty, behind) = (Value::Document(Doc::empty()), Value::Array(Array::empty()));
    let documents = Intervals::of(Interval::new(empty, false, behind, false));
    !intervals.intersect(&documents).0.is_empty()
}

/// Finds the paths under which the values of a queried path are stored. If a position follows an
/// array, there are two: with the position, and without it, because the elements of an array have
/// the array's path.
struct Stored<'q> {
    facts: &'q Multikey,
    components: &'q [&'q str],
    /// The components of the queried path that are arrays, as a bit map.
    bits: u64,
    paths: Vec<String>,
}

impl<'q> Stored<'q> {
    /// Adds the stored paths that continue `path` from component `at`. Returns false if the index
    /// cannot find all values, because an array contains arrays.
    fn walk(&mut self, at: usize, path: &mut Vec<&'q str>, in_element: bool) -> bool {
        let Some(component) = self.components.get(at).copied() else {
            self.paths.push(path.join("."));
            return true;
        };
        if array_index(component).is_some() && !in_element && !path.is_empty() {
            let array = path.join(".");
            if self.facts.is_array(&array) {
                if self.facts.is_array(&nested_mark(&array)) {
                    return false;
                }
                if !self.walk(at + 1, path, true) {
                    return false;
                }
            }
        }
        path.push(component);
        if self.facts.is_array(&path.join(".")) {
            self.bits |= MultikeyPaths::bit(at);
        }
        let found = self.walk(at + 1, path, false);
        path.pop();
        found
    }
}
