//! Parses a sort document to a pattern.

use super::pattern::{Direction, MetaKind, SortBy, SortPart, SortPattern};
use crate::context::ParseContext;
use crate::expression::{FieldPath, unavailable};
use crate::text::{show, show_doc};
use quire_document::limits::SORT_KEYS_MAX;
use quire_document::path::Path;
use quire_document::{Doc, Value};
use quire_error::{Error, ErrorCode, Result};

impl SortPattern {
    /// Parses a sort. Codes: 15974 and 15975 for an invalid direction, 17312 and 31138 for an
    /// invalid `$meta`, 40218 for metadata that no stage provides, 13103 for too many fields,
    /// 7472500 for a repeated field, and those of field paths.
    pub fn parse(doc: Doc<'_>, context: &ParseContext) -> Result<SortPattern> {
        let mut parts: Vec<SortPart> = Vec::new();
        for (name, value) in doc.fields() {
            context.part()?;
            parts.push(part(name, value, context)?);
        }
        let fields: Vec<&Path> = parts.iter().filter_map(SortPart::path).collect();
        if fields.len() > SORT_KEYS_MAX {
            return Err(Error::location(13103, "too many compound keys"));
        }
        for (at, path) in fields.iter().enumerate() {
            if fields.iter().take(at).any(|earlier| earlier == path) {
                let text = format!("$sort key must not contain duplicate keys ({})", path.as_str());
                return Err(Error::location(7472500, text));
            }
        }
        Ok(SortPattern::new(parts, context.collator.clone(), doc.to_owned()))
    }

    /// Parses the operand of a `$sort` stage. Fails with 15973 if it is not a document, with 15976
    /// if it is empty, and otherwise as `parse`.
    pub fn parse_stage(value: Value<'_>, context: &ParseContext) -> Result<SortPattern> {
        let Value::Document(doc) = value else {
            return Err(Error::location(15973, "the $sort key specification must be an object"));
        };
        let pattern = SortPattern::parse(doc, context)?;
        if pattern.is_empty() {
            return Err(Error::location(15976, "$sort stage must have at least one sort key"));
        }
        Ok(pattern)
    }
}

/// Returns the direction of `{$natural: 1}` or `{$natural: -1}`; `None` for other sorts. Fails with
/// BadValue for another value, or if there are other fields.
pub fn natural(doc: Doc<'_>) -> Result<Option<Direction>> {
    if doc.is_empty() {
        return Ok(None);
    }
    let Some(value) = doc.get("$natural") else { return Ok(None) };
    if doc.count() > 1 {
        let text = format!("Cannot include '$natural' in compound sort: {}", show_doc(doc));
        return Err(Error::bad_value(text));
    }
    match value.exact_i64() {
        Some(1) => Ok(Some(Direction::Ascending)),
        Some(-1) => Ok(Some(Direction::Descending)),
        _ => {
            let text = "$natural sort cannot be set to a value other than -1 or 1.";
            Err(Error::bad_value(text))
        }
    }
}

fn part(name: &str, value: Value<'_>, context: &ParseContext) -> Result<SortPart> {
    if let Value::Document(doc) = value {
        let kind = meta(doc, context)?;
        return Ok(SortPart { by: SortBy::Meta(kind), direction: Direction::Descending });
    }
    if !value.is_number() {
        let text = format!("Illegal key in $sort specification: {name}: {}", show(value));
        return Err(Error::location(15974, text));
    }
    let direction = match whole(value) {
        Some(1) => Direction::Ascending,
        Some(-1) => Direction::Descending,
        _ => {
            let text = "$sort key ordering must be 1 (for ascending) or -1 (for descending)";
            return Err(Error::location(15975, text));
        }
    };
    check_path(name)?;
    Ok(SortPart { by: SortBy::Field(Path::new(name)), direction })
}

/// Returns the number as a long. Truncates a double, and rounds a decimal half to even.
fn whole(value: Value<'_>) -> Option<i64> {
    match value {
        Value::Double(number) if number.is_nan() => None,
        Value::Double(number) => Some(number as i64),
        Value::Decimal(number) => {
            number.to_i64_rounded(quire_document::decimal::Rounding::HalfEven)
        }
        value => value.exact_i64(),
    }
}

fn check_path(name: &str) -> Result<()> {
    // A path that is deeper than documents may be is an Overflow here; expressions have another
    // code.
    if name.split('.').count() > crate::expression::PATH_COMPONENTS_MAX {
        return Err(Error::new(ErrorCode::Overflow, "FieldPath is too long"));
    }
    FieldPath::parse(name).map(|_| ())
}

fn meta(doc: Doc<'_>, context: &ParseContext) -> Result<MetaKind> {
    let Some(("$meta", value)) = doc.fields().next() else {
        let text = "$meta is the only expression supported by $sort right now";
        return Err(Error::location(17312, text));
    };
    if doc.count() > 1 {
        let text = "Cannot have additional keys in a $meta sort specification";
        return Err(Error::failed_to_parse(text));
    }
    let kind = match value {
        Value::String("textScore") => MetaKind::TextScore,
        Value::String("randVal") => MetaKind::RandVal,
        Value::String("geoNearDistance") => MetaKind::GeoNearDistance,
        Value::String("searchScore") => MetaKind::SearchScore,
        Value::String("vectorSearchScore") => MetaKind::VectorSearchScore,
        Value::String("score") => MetaKind::Score,
        other => {
            let text = format!("Illegal $meta sort: $meta: {}", show(other));
            return Err(Error::location(31138, text));
        }
    };
    let missing = match kind {
        kind if context.metadata.contains(&kind.name()) => return Ok(kind),
        MetaKind::TextScore => "text score",
        MetaKind::GeoNearDistance => "$geoNear distance",
        MetaKind::Score if context.place.as_deref().is_some_and(|place| !place.has_score) => {
            "score"
        }
        // Documents do not have such scores, so they sort as null.
        MetaKind::RandVal
        | MetaKind::SearchScore
        | MetaKind::VectorSearchScore
        | MetaKind::Score => return Ok(kind),
    };
    Err(unavailable(missing))
}
