//! What a wildcard index is to one query: the index of one path, or of its regular fields alone.
//!
//! The planner asks for a view of each path that a filter tests. A view has the fields of the
//! index's keys, the wildcard term among them under the name of the path, and the places of
//! arrays in that path.

use std::collections::BTreeSet;
use std::sync::Arc;

use quire_document::path::array_index;
use quire_document::{Array, Doc, Value};

use super::{Looks, Wildcard, nested_mark};
use crate::key::{Interval, Intervals, KeySpec, PathView, Views};
use crate::{Multikey, MultikeyPaths};

/// The largest number of array positions in a path that a wildcard index serves.
const POSITIONS_MAX: usize = 8;

/// The row of the registry that tells how queries see a wildcard index.
pub(super) const VIEWS: Views = Views { of_paths, again, is_of_path, bound_paths };

fn of_paths(spec: &KeySpec, paths: &BTreeSet<String>, facts: &Multikey) -> Vec<PathView> {
    let of_path = paths.iter().filter_map(|path| view_of_path(spec, path, facts));
    view_of_regular_fields(spec).into_iter().chain(of_path).collect()
}

/// Returns the index of one path that this wildcard index holds; `None` if it cannot find all
/// values of the path. `facts` say which paths are arrays.
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
    keys.state = Some(Arc::new(Wildcard { looks: Looks::At(paths), ..wildcard.clone() }));
    let mut multikey = MultikeyPaths(vec![0; spec.fields.len()]);
    *multikey.0.get_mut(wildcard.at + 1)? = bits;
    Some(PathView { keys: Arc::new(keys), multikey })
}

/// Returns the index of the regular fields before the wildcard term, if there are any.
fn view_of_regular_fields(spec: &KeySpec) -> Option<PathView> {
    let wildcard = Wildcard::in_keys(spec).filter(|wildcard| wildcard.at > 0)?;
    let mut keys = spec.clone();
    keys.state = Some(Arc::new(Wildcard { looks: Looks::Everywhere, ..wildcard.clone() }));
    let multikey = MultikeyPaths(vec![0; spec.fields.len()]);
    Some(PathView { keys: Arc::new(keys), multikey })
}

fn again(spec: &KeySpec, facts: &Multikey) -> Option<PathView> {
    let wildcard = Wildcard::in_keys(spec)?;
    match &wildcard.looks {
        Looks::At(paths) => {
            let path = &spec.fields.get(wildcard.at + 1)?.path;
            let view = view_of_path(spec, path, facts)?;
            let same =
                matches!(&Wildcard::in_keys(&view.keys)?.looks, Looks::At(now) if now == paths);
            same.then_some(view)
        }
        Looks::Everywhere => view_of_regular_fields(spec),
    }
}

fn is_of_path(spec: &KeySpec) -> bool {
    Wildcard::in_keys(spec).is_some_and(|wildcard| matches!(wildcard.looks, Looks::At(_)))
}

fn bound_paths(spec: &KeySpec, bounds: &mut [Intervals]) {
    let Some(Wildcard { at, looks, .. }) = Wildcard::in_keys(spec) else { return };
    let Looks::At(paths) = looks else {
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

/// Paths, and what stands in the place of a path for a document without any.
fn any_path() -> Intervals {
    let strings = Interval::new(Value::String(""), true, Value::Document(Doc::empty()), false);
    Intervals::point(Value::MinKey).union(Intervals::of(strings))
}

/// Returns true if the intervals hold documents that are not empty, which have no key of their own.
pub(super) fn hold_documents(intervals: &Intervals) -> bool {
    let (empty, behind) = (Value::Document(Doc::empty()), Value::Array(Array::empty()));
    let documents = Intervals::of(Interval::new(empty, false, behind, false));
    !intervals.intersect(&documents).0.is_empty()
}

/// Finds the paths under which the values of a queried path are stored: with and without each
/// position that follows an array, whose elements have its path.
struct Stored<'q> {
    facts: &'q Multikey,
    components: &'q [&'q str],
    /// The components that are arrays.
    bits: u64,
    paths: Vec<String>,
}

impl<'q> Stored<'q> {
    /// Goes on at component `at`; `path` leads to it. Returns false if the index cannot tell,
    /// because an array stands within an array.
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
