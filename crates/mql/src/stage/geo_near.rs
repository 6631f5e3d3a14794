//! `$geoNear`: documents near a point, nearest first, with their distances. It is replaced by a `$match`
//! with a search, which an index answers, and by stages that add the fields.

use super::Stage;
use super::facts::{Facts, InFusion, Standing};
use super::matching::{Match, names};
use super::pipeline::parse_stage;
use super::registry::StageRow;
use crate::context::ParseContext;
use crate::expression::{Expression, FieldPath};
use crate::filter::{Features, Filter, NEAR_METADATA, NearQuery, Node};
use quire_document::{Doc, DocBuf, Value, ValueBuf, doc};
use quire_error::{Error, ErrorCode, Result};
use quire_geometry::{Near, NearCenter, number_pair};
use std::sync::Arc;

pub(super) const GEO_NEAR: StageRow = StageRow {
    name: "$geoNear",
    since: "2.4",
    doc: "Documents near a point, nearest first, by a 2dsphere or 2d index.",
    facts: Facts {
        standing: Standing::FirstLeft,
        in_facet: false,
        in_fusion: InFusion::Searches(&["distanceField", "includeLocs"]),
        ..Facts::PLAIN
    },
    parse: |_, value, cx| parse(value, cx),
};

/// The most components of a path in `key`, and in the fields that are added (MongoDB's limits).
const KEY_DEPTH_MAX: usize = 180;
const FIELD_DEPTH_MAX: usize = 199;
/// The most components of any path: beyond them the code is 15.
const DEPTH_MAX: usize = 200;

/// The options of a `$geoNear`.
#[derive(Default)]
struct Options {
    near: Option<ValueBuf>,
    key: String,
    distance_field: Option<String>,
    include_locs: Option<String>,
    query: DocBuf,
    is_spherical: bool,
    min: f64,
    max: Option<f64>,
    multiplier: f64,
}

fn parse(value: Value<'_>, cx: &ParseContext) -> Result<Vec<Stage>> {
    let spec = match value {
        Value::Document(spec) => spec,
        Value::Array(_) => Doc::empty(),
        _ => return Err(Error::location(10065, "$geoNear must be an object")),
    };
    let options = Options::parse(spec, cx)?;
    let Some(near) = &options.near else {
        return Err(Error::location(5860400, "$geoNear requires a 'near' argument"));
    };
    let center = center(near.as_value(), options.is_spherical)?;
    let max = options.max.unwrap_or(f64::INFINITY);
    let search = Near { center, min: options.min, max };
    let search = NearQuery::new("$geoNear", &options.key, near.as_value(), search);
    if names(options.query.as_doc(), "$text") {
        return Err(Error::bad_value("$text is not allowed in the query of a $geoNear"));
    }
    let features = Features { near: false, whole_document: false, ..Features::ALL };
    let query = Filter::parse_exact(options.query.as_doc(), cx, features)?;
    let conditions = vec![Node::Search(Arc::new(search)), query.root().clone()];
    let mut stages = vec![Stage::Match(Arc::new(Match::all_of(conditions)))];
    let found = cx.with_metadata(NEAR_METADATA);
    if let Some(path) = &options.distance_field {
        let distance = doc! { "$meta": "geoNearDistance" };
        let distance = if options.multiplier == 1.0 {
            distance
        } else {
            let parts = quire_document::array![&distance, options.multiplier];
            doc! { "$multiply": &parts }
        };
        stages.extend(adding(path, &distance, &found)?);
    }
    if let Some(path) = &options.include_locs {
        stages.extend(adding(path, &doc! { "$meta": "geoNearPoint" }, &found)?);
    }
    Ok(stages)
}

/// Returns the stages that set a field to the value of an expression. An array on the way to the field
/// is replaced by a document, as in MongoDB, and not filled element by element.
fn adding(path: &str, expression: &DocBuf, cx: &ParseContext) -> Result<Vec<Stage>> {
    let mut stages = Vec::new();
    for (end, _) in path.match_indices('.') {
        let parent = &path[..end];
        let value = format!("${parent}");
        let empty = doc! { "$literal": {} };
        let without_array =
            doc! { "$cond": [{ "$isArray": [value.as_str()] }, &empty, value.as_str()] };
        stages.extend(set(parent, &without_array, cx)?);
    }
    stages.extend(set(path, expression, cx)?);
    Ok(stages)
}

fn set(path: &str, expression: &DocBuf, cx: &ParseContext) -> Result<Vec<Stage>> {
    let fields = DocBuf::build(|writer| {
        writer.append(path, expression);
    });
    let stage = doc! { "$addFields": &fields };
    parse_stage(Value::Document(stage.as_doc()), cx)
}

impl Options {
    fn parse(spec: Doc<'_>, cx: &ParseContext) -> Result<Self> {
        let mut options = Options { multiplier: 1.0, ..Options::default() };
        for (name, value) in spec.fields() {
            match name {
                "near" => options.near = Some(constant(value, cx, 5860402, name)?),
                "key" => options.key = key(value)?,
                "distanceField" => options.distance_field = Some(path(name, value, 16606)?),
                "includeLocs" => options.include_locs = Some(path(name, value, 16607)?),
                "query" => match value {
                    Value::Document(query) => options.query = query.to_owned(),
                    other => return Err(wrong_type(name, "object", other)),
                },
                "spherical" => options.is_spherical = is_true(value),
                "minDistance" => {
                    options.min = distance(name, constant(value, cx, 7555701, name)?.as_value())?;
                }
                "maxDistance" => {
                    let max = constant(value, cx, 7555702, name)?;
                    options.max = Some(distance(name, max.as_value())?);
                }
                "distanceMultiplier" => {
                    let Some(multiplier) = value.to_f64() else {
                        return Err(wrong_type(name, "number", value));
                    };
                    if multiplier.is_nan() || multiplier < 0.0 {
                        return Err(Error::bad_value("distanceMultiplier must be nonnegative"));
                    }
                    options.multiplier = multiplier;
                }
                // Without effect since MongoDB 2.6.
                "uniqueDocs" => {}
                "limit" | "num" | "start" => return Err(removed(name)),
                other => {
                    return Err(Error::bad_value(format!("Unknown argument to $geoNear: {other}")));
                }
            }
        }
        Ok(options)
    }
}

/// Returns the error of an option that MongoDB had before 4.2.
fn removed(name: &str) -> Error {
    let code = match name {
        "limit" => 50858,
        "num" => 50857,
        _ => 50856,
    };
    Error::location(code, format!("$geoNear no longer supports '{name}'; use a stage instead"))
}

fn is_true(value: Value<'_>) -> bool {
    match value {
        Value::Bool(flag) => flag,
        Value::Null | Value::Undefined => false,
        other => other.to_f64().is_none_or(|number| number != 0.0),
    }
}

fn wrong_type(name: &str, expected: &str, value: Value<'_>) -> Error {
    let found = value.type_name();
    Error::type_mismatch(format!("$geoNear '{name}' must be a {expected}, not of type {found}"))
}

/// Returns the value of a constant expression.
fn constant(value: Value<'_>, cx: &ParseContext, code: i32, name: &str) -> Result<ValueBuf> {
    let expression = Expression::parse(value, cx)?;
    let constant = expression.as_constant().map(ValueBuf::new);
    constant.ok_or_else(|| {
        Error::location(code, format!("$geoNear requires '{name}' to evaluate to a constant"))
    })
}

fn path(name: &str, value: Value<'_>, code: i32) -> Result<String> {
    let Value::String(path) = value else {
        return Err(Error::location(code, format!("$geoNear requires that '{name}' is a string")));
    };
    if depth(path)? > FIELD_DEPTH_MAX {
        return Err(Error::location(5984700, "FieldPath is too long"));
    }
    FieldPath::parse(path)?;
    Ok(path.to_owned())
}

/// Returns the number of components of a path.
///
/// # Errors
/// 15 Overflow beyond `DEPTH_MAX`.
fn depth(path: &str) -> Result<usize> {
    match path.split('.').count() {
        depth @ 0..=DEPTH_MAX => Ok(depth),
        _ => {
            Err(Error::new(ErrorCode::Overflow, "a path of $geoNear has more than 200 components"))
        }
    }
}

fn key(value: Value<'_>) -> Result<String> {
    let Value::String(key) = value else { return Err(wrong_type("key", "string", value)) };
    if key.is_empty() {
        return Err(Error::bad_value("$geoNear parameter 'key' cannot be the empty string"));
    }
    if depth(key)? > KEY_DEPTH_MAX {
        return Err(Error::location(5729100, "the path in 'key' of $geoNear is too deep"));
    }
    FieldPath::parse(key)?;
    Ok(key.to_owned())
}

fn distance(name: &str, value: Value<'_>) -> Result<f64> {
    let Some(distance) = value.to_f64() else { return Err(wrong_type(name, "number", value)) };
    if distance >= 0.0 {
        return Ok(distance);
    }
    Err(Error::bad_value(format!("{name} must be nonnegative")))
}

fn center(value: Value<'_>, is_spherical: bool) -> Result<NearCenter> {
    if let Value::Document(doc) = value {
        if doc.contains("type") {
            return NearCenter::of_geometry(value);
        }
        if doc.contains("coordinates") {
            return NearCenter::of_geometry(value);
        }
    }
    if !matches!(value, Value::Document(_) | Value::Array(_)) {
        let text = "$geoNear requires near to be a point, as an object or an array";
        return Err(Error::location(5860401, text));
    }
    if value.as_array().is_some_and(|array| array.count() > 3) {
        return Err(Error::bad_value("'near' field must be point"));
    }
    let pair = number_pair(value, false).filter(|pair| pair.x.is_finite() && pair.y.is_finite());
    match pair {
        Some(pair) if !is_spherical => Ok(NearCenter::Flat(pair)),
        Some(pair) if pair.is_on_sphere() => Ok(NearCenter::Radians(pair)),
        Some(_) => Err(Error::bad_value("Legacy point is out of bounds for spherical query")),
        None => Err(Error::bad_value("'near' field must be point")),
    }
}
