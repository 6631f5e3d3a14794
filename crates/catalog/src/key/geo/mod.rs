//! The 2dsphere index: one key for each cell of the sphere that covers a part of a geometry, beside the
//! values of other fields.
//!
//! See "2dsphere Indexes" in MongoDB's manual. A cell is a long, its S2 id; the geometries are in crate
//! `geometry`. A key says only that a geometry may be in its cell, so each match is checked on its
//! document. Read in this order: this file, `search.rs` (the plan of `$near`), `running.rs` (its rings),
//! and `plane.rs` and `flat.rs` (the 2d index, which has squares of the plane instead of cells).

pub(super) mod flat;
mod plane;
mod running;
mod search;

use quire_document::path::{Leaf, Path};
use quire_document::{Doc, Value};
use quire_error::{Error, Result};
use quire_geometry::{CellRange, Stored, cells_of, ranges_of, ranges_within};
use quire_mql::filter::{GeoRelation, GeoTest, Test};
use std::ops::ControlFlow;

use super::{
    Arena, Bounds, GeneratedKeys, Interval, Intervals, KeyField, KeySpec, Kind, Part, Predicate,
    Tightness, ordinary,
};
use crate::index_pattern::plugin_of;
use crate::{IndexSpec, MultikeyPaths, debug_doc};

/// The name in a key pattern.
const NAME: &str = "2dsphere";
/// The version of the keys that MongoDB would have, as it is shown.
const VERSION: &str = "2dsphereIndexVersion";
/// The most keys of one document.
const KEYS_MAX: usize = 100_000;

/// The registry row of this kind.
pub(super) const KIND: Kind = Kind {
    name: NAME,
    doc: "Keys with the cells of the sphere that cover geometries, for `$geoWithin`, `$geoIntersects` and `$near`.",
    fits: |pattern| plugin_of(pattern) == Some(NAME),
    complete,
    check,
    fields: |spec| fields(spec, NAME),
    generate,
    is_touched: ordinary::is_touched,
    bounds,
    tracks_arrays: false,
    shows_bounds: true,
    collates: true,
    is_alone: false,
    searches: Some(&search::OF_SPHERE),
    options: &[],
    same_keys: |_, _| true,
    state: |_| None,
    views: None,
};

/// Checks the options of an index.
fn check(spec: &IndexSpec) -> Result<()> {
    let options = spec.extra.as_doc();
    options.get(VERSION).map_or(Ok(()), version)?;
    let levels = ["coarsestIndexedLevel", "finestIndexedLevel"];
    levels.iter().filter_map(|name| options.get(name)).try_for_each(level)
}

fn version(value: Value<'_>) -> Result<()> {
    match value.exact_i64() {
        Some(1..=3) => Ok(()),
        Some(other) => Err(Error::new(
            quire_error::ErrorCode::CannotCreateIndex,
            format!(
                "unsupported geo index version {{ {VERSION} : {other} }}, only support versions: [1,2,3]"
            ),
        )),
        None => Err(Error::type_mismatch(format!("The field '{VERSION}' must be a number"))),
    }
}

fn level(value: Value<'_>) -> Result<()> {
    match value.exact_i64() {
        Some(0..=30) => Ok(()),
        _ => Err(Error::bad_value("a level of cells must be a number from 0 to 30")),
    }
}

/// Writes the version that an index has if none is given.
fn complete(spec: &mut IndexSpec, _: Doc<'_>) -> Result<()> {
    if !spec.extra.as_doc().contains(VERSION) {
        spec.extra.append(VERSION, 3);
    }
    Ok(())
}

/// Returns the fields of the keys: those whose direction is the kind's name have cells.
fn fields(spec: &IndexSpec, name: &str) -> Vec<KeyField> {
    let mut fields = ordinary::fields(spec);
    for (field, (_, direction)) in fields.iter_mut().zip(spec.key.as_doc().fields()) {
        if direction.as_str() == Some(name) {
            field.part = Part::Hash;
        }
    }
    fields
}

/// The values that one field gives to the keys of a document.
struct FieldValues<'a> {
    values: Vec<Option<Value<'a>>>,
    /// True if an array gave them.
    is_array: bool,
}

/// Returns the values of an ordinary field: the elements of arrays, or null.
fn plain<'a>(path: &Path, doc: Doc<'a>) -> FieldValues<'a> {
    let (mut values, mut is_array) = (Vec::new(), false);
    let _ = path.visit(doc, Leaf::Elements, |found| {
        match found.value {
            // The array itself comes after its elements.
            Some(Value::Array(array)) if array.count() > 0 => is_array = true,
            Some(Value::Array(_)) => values.push(Some(Value::Undefined)),
            value => values.push(value),
        }
        is_array |= found.position.is_some();
        ControlFlow::<()>::Continue(())
    });
    if values.is_empty() {
        values.push(None);
    }
    FieldValues { values, is_array }
}

/// Returns the geometries of a field, of a value or of the elements of arrays.
///
/// # Errors
/// 16755 for a value that is no geometry.
fn geometries(path: &Path, doc: Doc<'_>) -> Result<(Vec<Stored>, bool)> {
    let (mut found, mut is_array) = (Vec::new(), false);
    let extract = |value: Value<'_>| {
        Stored::parse(value).map_err(|error| {
            let text = format!("Can't extract geo keys: {}  {}", debug_doc(doc), error.message());
            Error::location(16755, text)
        })
    };
    let visited = path.visit(doc, Leaf::Whole, |at| {
        is_array |= at.position.is_some();
        let added = match at.value {
            None | Some(Value::Null | Value::Undefined) => Ok(()),
            Some(Value::Array(array)) if Stored::parse(Value::Array(array)).is_err() => {
                is_array = true;
                array.iter().try_for_each(|value| extract(value).map(|stored| found.push(stored)))
            }
            Some(value) => extract(value).map(|stored| found.push(stored)),
        };
        match added {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    });
    match visited {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok((found, is_array)),
    }
}

fn cells(path: &Path, doc: Doc<'_>) -> Result<(Vec<i64>, bool)> {
    let (stored, is_array) = geometries(path, doc)?;
    let mut cells = Vec::new();
    for stored in &stored {
        let Some(geometry) = stored.on_sphere() else {
            let text = format!(
                "Can't extract geo keys: {}  longitude/latitude is out of bounds",
                debug_doc(doc)
            );
            return Err(Error::location(16755, text));
        };
        if geometry.has_big_polygon() {
            let text = format!(
                "Can't extract geo keys: {}  strict winding order is not supported by index",
                debug_doc(doc)
            );
            return Err(Error::location(16755, text));
        }
        cells.extend(cells_of(&geometry).into_iter().map(u64::cast_signed));
    }
    cells.sort_unstable();
    cells.dedup();
    Ok((cells, is_array))
}

fn generate<'a>(
    spec: &KeySpec,
    doc: Doc<'a>,
    _: &'a Arena,
    keys: &mut GeneratedKeys<'a>,
) -> Result<()> {
    let mut of_fields = Vec::with_capacity(spec.fields.len());
    let mut has_geometry = false;
    for (field, path) in spec.fields.iter().zip(&spec.paths) {
        of_fields.push(match field.part {
            Part::Hash => {
                let (cells, _) = cells(path, doc)?;
                has_geometry |= !cells.is_empty();
                let is_array = cells.len() > 1;
                let mut values: Vec<_> =
                    cells.into_iter().map(|id| Some(Value::Int64(id))).collect();
                if values.is_empty() {
                    values.push(None);
                }
                FieldValues { values, is_array }
            }
            _ => plain(path, doc),
        });
    }
    // Such an index is sparse: it has nothing of documents without a geometry.
    if !has_geometry {
        return Ok(());
    }
    product(&of_fields, keys)
}

/// Adds all combinations of the fields' values.
fn product<'a>(of_fields: &[FieldValues<'a>], keys: &mut GeneratedKeys<'a>) -> Result<()> {
    let count =
        of_fields.iter().try_fold(1_usize, |all, field| all.checked_mul(field.values.len()));
    let Some(count) = count.filter(|count| *count <= KEYS_MAX) else {
        return Err(Error::location(
            16755,
            format!("Can't extract geo keys: more than {KEYS_MAX} keys"),
        ));
    };
    for number in 0..count {
        let mut rest = number;
        let start = keys.values.len();
        for field in of_fields.iter().rev() {
            keys.values.push(field.values[rest % field.values.len()]);
            rest /= field.values.len();
        }
        keys.values[start..].reverse();
    }
    for (bits, field) in keys.multikey.iter_mut().zip(of_fields) {
        if field.is_array || field.values.len() > 1 {
            *bits |= MultikeyPaths::bit(0);
        }
    }
    Ok(())
}

/// Returns the intervals of ranges of cells.
fn intervals(ranges: &[CellRange]) -> Intervals {
    let interval = |(low, high): &CellRange| {
        Intervals::of(Interval::new(low.cast_signed(), true, high.cast_signed(), true))
    };
    Intervals::union_of(ranges.iter().map(interval))
}

fn bounds(spec: &KeySpec, field: usize, predicate: &Predicate<'_>) -> Option<Bounds> {
    if spec.fields.get(field).is_some_and(|field| field.part != Part::Hash) {
        // The index has no keys of documents without a geometry.
        return None;
    }
    let Predicate { test: Test::Open(test), negated: false, .. } = predicate else { return None };
    let ranges = match test.as_any().downcast_ref::<GeoTest>()?.relation() {
        GeoRelation::Within(region) => ranges_within(region)?,
        GeoRelation::Meets(other) => ranges_of(other),
    };
    Some((intervals(&ranges), Tightness::InexactFetch))
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_document::{DocBuf, doc};

    fn keys(pattern: DocBuf, doc: &DocBuf) -> Result<Vec<usize>> {
        let spec = doc! { "key": &pattern, "name": "x" };
        let keys = KeySpec::new(&IndexSpec::parse(spec.as_doc(), false)?);
        let arena = Arena::new();
        let generated = keys.generate(doc.as_doc(), &arena)?;
        Ok(generated.keys().map(<[_]>::len).collect())
    }

    #[test]
    fn geometries_have_keys_and_other_documents_have_none() {
        let pattern = || doc! { "k": 1, "p": "2dsphere" };
        let point = doc! { "type": "Point", "coordinates": [13.4, 52.5] };
        assert_eq!(keys(pattern(), &doc! { "k": 5, "p": &point }).unwrap(), [2]);
        assert_eq!(keys(pattern(), &doc! { "k": [5, 6], "p": [13.4, 52.5] }).unwrap(), [2, 2]);
        assert!(keys(pattern(), &doc! { "k": 5 }).unwrap().is_empty());
        let ring = doc! { "type": "Polygon", "coordinates": [[[0, 0], [9, 0], [9, 9], [0, 0]]] };
        assert!(keys(pattern(), &doc! { "p": &ring }).unwrap().len() > 3);
        for bad in [doc! { "p": 5 }, doc! { "p": [200, 5] }, doc! { "p": { "type": "Point" } }] {
            assert_eq!(keys(pattern(), &bad).unwrap_err().code().number(), 16755, "{bad:?}");
        }
    }
}
