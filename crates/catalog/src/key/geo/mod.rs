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

use quire_document::path::{Leaf, Path, expand_keys};
use quire_document::{Doc, DocBuf, Value};
use quire_error::{Error, Result};
use quire_geometry::{CellRange, Fault, Stored, cells_of, ranges_of, ranges_within};
use quire_mql::context::count_work;
use quire_mql::filter::{GeoRelation, GeoTest, Test};
use std::cell::Cell;
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
/// The levels of the largest and the smallest cells. They are kept and shown.
const COARSEST: &str = "coarsestIndexedLevel";
const FINEST: &str = "finestIndexedLevel";
/// The most keys of one document.
const KEYS_MAX: usize = 100_000;
/// The most work for the covering of a query's geometry, in units of about ten nanoseconds.
const COVERING_UNITS: u32 = 20_000_000;

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
    needs_hash: true,
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
    let coarsest = level(options, COARSEST)?;
    let finest = level(options, FINEST)?;
    match (coarsest, finest) {
        (Some(..0), _) => refused(16747, "coarsestIndexedLevel must be >= 0"),
        (_, Some(31..)) => refused(16748, "finestIndexedLevel must be <= 30"),
        (Some(coarsest), Some(finest)) if finest < coarsest => {
            refused(16749, "finestIndexedLevel must be >= coarsestIndexedLevel")
        }
        _ => Ok(()),
    }
}

fn refused(code: i32, text: &str) -> Result<()> {
    Err(Error::location(code, text))
}

fn version(value: Value<'_>) -> Result<()> {
    let unsupported = |shown: String| {
        let text = format!(
            "unsupported geo index version {{ {VERSION} : {shown} }}, only support versions: [1,2,3]"
        );
        Err(Error::new(quire_error::ErrorCode::CannotCreateIndex, text))
    };
    match (value, value.exact_i64()) {
        (Value::Decimal(decimal), _) => unsupported(decimal.to_string()),
        (_, Some(1..=3)) => Ok(()),
        (_, Some(other)) => unsupported(other.to_string()),
        (_, None) => Err(Error::type_mismatch(format!("The field '{VERSION}' must be a number"))),
    }
}

fn level(options: Doc<'_>, name: &str) -> Result<Option<i64>> {
    let Some(value) = options.get(name) else { return Ok(None) };
    match value.to_f64() {
        Some(number) => Ok(Some(number as i64)),
        None => Err(Error::type_mismatch(format!("The field '{name}' must be a number"))),
    }
}

/// Writes the version that an index has if none is given, and a given one as an int.
fn complete(spec: &mut IndexSpec, _: Doc<'_>) -> Result<()> {
    let given = spec.extra.as_doc().get(VERSION);
    let whole = |version: Value<'_>| match version {
        Value::Decimal(_) => None,
        number => number.exact_i64(),
    };
    let version = match given.map(whole) {
        None => 3,
        Some(Some(version)) => i32::try_from(version).unwrap_or(i32::MAX),
        // The check that follows refuses it.
        Some(None) => return Ok(()),
    };
    let options = spec.extra.as_doc();
    let level = |name: &'static str| Some((name, options.get(name)?));
    let first = [Some((VERSION, Value::Int32(version))), level(COARSEST), level(FINEST)];
    spec.extra = ordered(options, first.into_iter().flatten().collect());
    Ok(())
}

/// Returns options of an index with some of them first, in the order in which MongoDB shows them.
fn ordered(options: Doc<'_>, first: Vec<(&'static str, Value<'_>)>) -> DocBuf {
    DocBuf::build(|writer| {
        for (name, value) in &first {
            writer.append(name, *value);
        }
        for (name, value) in options.fields() {
            if !first.iter().any(|(written, _)| *written == name) {
                writer.append(name, value);
            }
        }
    })
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
    /// The components of the path that are arrays.
    arrays: u64,
}

impl<'a> FieldValues<'a> {
    /// Returns the values of an ordinary field, as an ordinary index has them.
    ///
    /// # Errors
    /// Those of the path.
    fn plain(path: &Path, doc: Doc<'a>) -> Result<Self> {
        let mut values = Vec::new();
        let arrays = expand_keys(doc, std::slice::from_ref(path), &mut |key| {
            values.extend_from_slice(key);
        })?;
        Ok(FieldValues { values, arrays: arrays.first().copied().unwrap_or(0) })
    }

    /// Returns the cells or squares of a field. If there are several, conditions may be true of
    /// different ones, as of the elements of arrays.
    fn places(path: &Path, numbers: Vec<i64>) -> Self {
        let components = path.as_str().split('.').count();
        let all = (0..components).fold(0, |all, component| all | MultikeyPaths::bit(component));
        FieldValues {
            arrays: if numbers.len() > 1 { all } else { 0 },
            values: numbers.into_iter().map(|number| Some(Value::Int64(number))).collect(),
        }
    }
}

/// Returns the geometries of a field: several if an array on the path has documents. As in MongoDB, an
/// array at its end is a legacy pair, not a list of geometries.
///
/// # Errors
/// 16755 for a value that is no geometry; the interrupt's error.
fn geometries(path: &Path, doc: Doc<'_>) -> Result<Vec<Stored>> {
    let mut found = Vec::new();
    let mut take = |value: Value<'_>| match Stored::parse(value, &count_work) {
        Ok(stored) => {
            found.push(stored);
            Ok(())
        }
        Err(fault) => Err(fault),
    };
    let visited = path.visit(doc, Leaf::Whole, |at| {
        let added = match at.value {
            None | Some(Value::Null | Value::Undefined) => Ok(()),
            Some(Value::Array(array)) if array.is_empty() => Ok(()),
            Some(Value::Document(doc)) if doc.is_empty() => Ok(()),
            Some(value) => take(value),
        };
        added.map_or_else(ControlFlow::Break, ControlFlow::Continue)
    });
    match visited {
        ControlFlow::Break(Fault::Invalid(fault)) => {
            let text = format!("Can't extract geo keys: {}  {fault}", debug_doc(doc));
            Err(Error::location(16755, text))
        }
        ControlFlow::Break(Fault::Ended(error)) => Err(error),
        ControlFlow::Continue(()) => Ok(found),
    }
}

/// Returns the cells of all geometries of a field, each once.
fn cells(path: &Path, doc: Doc<'_>) -> Result<Vec<i64>> {
    let mut cells = Vec::new();
    for stored in geometries(path, doc)? {
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
        cells.extend(cells_of(&geometry, &count_work)?.into_iter().map(u64::cast_signed));
    }
    cells.sort_unstable();
    cells.dedup();
    Ok(cells)
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
                let mut places = FieldValues::places(path, cells(path, doc)?);
                has_geometry |= !places.values.is_empty();
                if places.values.is_empty() {
                    places.values.push(None);
                }
                places
            }
            _ => FieldValues::plain(path, doc)?,
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
        *bits |= field.arrays;
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
    if spec.fields.get(field)?.part != Part::Hash {
        return ordinary::field_bounds(spec, field, predicate);
    }
    let Predicate { test: Test::Open(test), negated: false, .. } = predicate else { return None };
    let ranges = covering(test.as_any().downcast_ref::<GeoTest>()?.relation())?;
    Some((intervals(&ranges), Tightness::InexactFetch))
}

/// Returns the ranges of cells in which the index has all that may match; `None` for a flat region, and
/// for a geometry so entangled that its covering takes more than `COVERING_UNITS` of work: the scan
/// then tests all documents, and looks at the interrupt.
fn covering(relation: &GeoRelation) -> Option<Vec<CellRange>> {
    let left = Cell::new(COVERING_UNITS);
    let work = |units: u32| match left.get().checked_sub(units) {
        Some(rest) => {
            left.set(rest);
            Ok(())
        }
        None => Err(Error::internal("a covering takes too much work")),
    };
    match relation {
        GeoRelation::Within(region) => ranges_within(region, &work).ok()?,
        GeoRelation::Meets(other) => ranges_of(other, &work).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_document::{ArrayBuf, DocBuf, array, doc};
    use quire_error::ErrorCode;
    use quire_mql::context::{InterruptCheck, interruptible};
    use std::sync::Arc;

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

    #[test]
    fn the_version_is_a_whole_number_and_no_decimal() {
        let code = |version: Value<'_>| {
            let spec = doc! { "key": { "p": "2dsphere" }, "name": "x", VERSION: version };
            IndexSpec::parse(spec.as_doc(), false).map_or_else(|error| error.code().number(), |_| 0)
        };
        let three = quire_document::Decimal128::parse("3").unwrap();
        for (version, wanted) in [
            (Value::Int32(3), 0),
            (Value::Double(2.0), 0),
            (Value::Int64(4), 67),
            (Value::Decimal(three), 67),
            (Value::Double(2.5), 14),
            (Value::String("3"), 14),
        ] {
            assert_eq!(code(version), wanted, "{version:?}");
        }
    }

    /// The keys of a polygon of 50,000 vertices, and the covering of a query's, take as long as a few
    /// checks of the interrupt.
    #[test]
    fn the_keys_of_a_large_polygon_check_the_interrupt() {
        let corner = |number: u32| {
            let angle = std::f64::consts::TAU * f64::from(number % 50_000) / 50_000.0;
            array![10.0 * angle.cos(), 10.0 * angle.sin()]
        };
        let corners: Vec<ArrayBuf> = (0..=50_000).map(corner).collect();
        let ring: ArrayBuf = corners.iter().collect();
        let large = doc! { "type": "Polygon", "coordinates": &array![&ring] };
        let large = doc! { "p": &large };
        assert!(!keys(doc! { "p": "2dsphere" }, &large).unwrap().is_empty());
        let killed: Arc<dyn InterruptCheck> =
            Arc::new(|| Err(Error::new(ErrorCode::Interrupted, "killed")));
        let ended = interruptible(&killed, || keys(doc! { "p": "2dsphere" }, &large));
        assert_eq!(ended.unwrap_err().code(), ErrorCode::Interrupted);
    }

    #[test]
    fn ordinary_fields_have_the_keys_of_an_ordinary_index() {
        let arrays = doc! { "k": [[1, 2], 3], "p": [13.4, 52.5] };
        let spec = doc! { "key": { "k": 1, "p": "2dsphere" }, "name": "x" };
        let spec = KeySpec::new(&IndexSpec::parse(spec.as_doc(), false).unwrap());
        let arena = Arena::new();
        let generated = spec.generate(arrays.as_doc(), &arena).unwrap();
        let first: Vec<_> = generated.keys().map(|key| key[0].map(crate::debug_value)).collect();
        assert_eq!(first, [Some("[ 1, 2 ]".to_owned()), Some("3".to_owned())]);
    }
}
