//! The plan of a `$near`: the index whose geometries it searches, and the bounds that other conditions
//! give to other fields of its keys.

use std::sync::Arc;

use quire_document::{Doc, DocWriter};
use quire_error::{Error, ErrorCode, Result};
use quire_geometry::NearCenter;
use quire_mql::filter::{NearQuery, Node as Condition, PathNode, Search};

use super::plane::{self, Plane};
use super::running::{NearMethod, Rings};
use crate::IndexSpec;
use crate::key::ordinary::field_bounds;
use crate::key::{
    Answer, Intervals, KeySpec, Part, Predicate, SearchMethod, SearchPlan, Searched,
    SearchedCollection, Searches, Searching,
};

/// How 2dsphere indexes answer `$near`.
pub(super) const OF_SPHERE: Searches =
    Searches { operator: "$near", answers: answers_sphere, choose, bind, plan, wrong_number };

/// How 2d indexes answer `$near`.
pub(super) const OF_PLANE: Searches =
    Searches { operator: "$near", answers: answers_plane, choose, bind, plan, wrong_number };

fn near(search: &dyn Search) -> Option<&NearQuery> {
    search.as_any().downcast_ref()
}

/// Returns the position of the field with the geometries of a search.
fn geometry_field(keys: &KeySpec, search: &NearQuery) -> Option<usize> {
    let is_it =
        |field: &crate::key::KeyField| field.part == Part::Hash && field.path == search.path();
    keys.fields().iter().position(is_it)
}

fn answers_sphere(keys: &KeySpec, search: &dyn Search) -> bool {
    near(search).is_some_and(|search| {
        matches!(search.near().center, NearCenter::Meters(_) | NearCenter::Radians(_))
            && geometry_field(keys, search).is_some()
    })
}

fn answers_plane(keys: &KeySpec, search: &dyn Search) -> bool {
    near(search).is_some_and(|search| {
        !matches!(search.near().center, NearCenter::Meters(_))
            && geometry_field(keys, search).is_some()
    })
}

/// Finds the path of a search that does not name it, and checks that an index can answer it.
///
/// # Errors
/// 5626500 for `$near` on a time-series collection, 26 NamespaceNotFound and 27 IndexNotFound if the path cannot be found, 16433 for a flat center outside
/// of the index, 291 NoQueryExecutionPlans if no index answers the search.
fn choose(
    search: &dyn Search,
    collection: Option<&SearchedCollection<'_>>,
) -> Result<Option<Arc<dyn Search>>> {
    let Some(search) = near(search) else { return Ok(None) };
    let mut search = search.clone();
    let Some(collection) = collection else {
        if search.is_stage() {
            let text = "$geoNear requires a geo index to run, but the collection does not exist";
            return Err(Error::new(ErrorCode::NamespaceNotFound, text));
        }
        return Ok(Some(Arc::new(search)));
    };
    if collection.is_time_series && !search.is_stage() {
        let text = "$near and $nearSphere are not allowed on a time-series collection";
        return Err(Error::location(5626500, text));
    }
    if search.path().is_empty() {
        search = search.at(only_path(collection)?);
    }
    let mut answering = collection.indexes.iter().filter(|keys| keys.searches(&search).is_some());
    let Some(keys) = answering.next() else {
        return Err(no_index(&collection.name, &search));
    };
    if let (Some(plane), NearCenter::Flat(center)) = (Plane::in_keys(keys), search.near().center) {
        plane.check(center)?;
    }
    Ok(Some(Arc::new(search)))
}

/// Returns the path of the only 2d index, or else of the only 2dsphere index.
fn only_path<'c>(collection: &SearchedCollection<'c>) -> Result<&'c str> {
    let not_found = |text: String| Err(Error::new(ErrorCode::IndexNotFound, text));
    for kind in [plane::NAME, super::NAME] {
        let of_kind = collection.indexes.iter().filter(|keys| keys.kind().name == kind);
        let path = |keys: &&'c KeySpec| {
            let mut fields = keys.fields().iter();
            fields.find(|field| field.part == Part::Hash).map(|field| &*field.path)
        };
        let paths: Vec<&str> = of_kind.filter_map(path).collect();
        match paths[..] {
            [] => {}
            [path] => return Ok(path),
            _ => {
                return not_found(format!(
                    "There is more than one {kind} index on {}; unsure which to use for $geoNear",
                    collection.name
                ));
            }
        }
    }
    not_found("$geoNear requires a 2d or 2dsphere index, but none were found".into())
}

/// Returns the error of a search that no index answers. Clients read the path from its text, to make
/// an index.
fn no_index(namespace: &str, search: &NearQuery) -> Error {
    let tree = search.describe();
    let text = format!(
        "error processing query: ns={namespace}Tree: {tree}\nSort: {{}}\nProj: {{}}\n planner returned error :: caused by \
         :: unable to find index for $geoNear query"
    );
    Error::new(ErrorCode::NoQueryExecutionPlans, text)
}

/// The kind chooses the index itself, in [`choose`].
fn wrong_number(_: usize) -> Option<Error> {
    None
}

fn bind(_: &IndexSpec, search: &dyn Search) -> Result<Arc<dyn Search>> {
    match near(search) {
        Some(search) => Ok(Arc::new(search.clone())),
        None => Err(Error::internal("a geo index answers another search")),
    }
}

/// Returns the bounds of the fields beside the geometries.
fn bounds_beside(keys: &KeySpec, searched: &Searched<'_>) -> Vec<Intervals> {
    let bound = |(number, field): (usize, &crate::key::KeyField)| {
        let of_field = searched.beside.iter().find_map(|condition| {
            let Condition::Path(PathNode { path, test, .. }) = condition else { return None };
            if field.part != Part::Value || path.as_str() != field.path || searched.long_keys {
                return None;
            }
            let path = path.as_str();
            let multikey = true;
            let predicate = Predicate { test, negated: false, path, multikey, collation: None };
            field_bounds(keys, number, &predicate)
        });
        of_field.map_or_else(Intervals::all, |(intervals, _)| intervals)
    };
    keys.fields().iter().enumerate().map(bound).collect()
}

fn plan(keys: &KeySpec, searched: &Searched<'_>) -> Option<SearchPlan> {
    let search = near(searched.search)?;
    let field = geometry_field(keys, search)?;
    // Where a collation compares strings, the documents tell instead.
    let bounds = match (&keys.collation, searched.collation) {
        (None, None) => bounds_beside(keys, searched),
        _ => vec![Intervals::all(); keys.fields().len()],
    };
    // As in MongoDB, an index that begins with another field needs a condition on it.
    if field > 0 && bounds.first().is_some_and(Intervals::is_all) {
        return None;
    }
    let method =
        NearMethod { search: Arc::new(search.clone()), bounds, field, plane: Plane::in_keys(keys) };
    Some(SearchPlan {
        answers: vec![Answer::None; searched.beside.len()],
        scans: Vec::new(),
        method: Arc::new(method),
    })
}

impl SearchMethod for NearMethod {
    fn check_stage(&self) -> Option<&'static str> {
        None
    }

    fn write_facts(&self, _: &mut DocWriter<'_>) {}

    fn check(&self, _: Doc<'_>) -> Result<bool> {
        Ok(true)
    }

    fn gather_stage(&self) -> &'static str {
        if self.plane.is_some() { "GEO_NEAR_2D" } else { "GEO_NEAR_2DSPHERE" }
    }

    fn order(&self) -> Option<&'static str> {
        // A sort by the distance puts the greatest first.
        None
    }

    fn always_gathers(&self) -> bool {
        true
    }

    fn begin(&self) -> Box<dyn Searching> {
        Box::new(Rings::new(NearMethod {
            search: Arc::clone(&self.search),
            bounds: self.bounds.clone(),
            field: self.field,
            plane: self.plane,
        }))
    }
}
