//! Bounds of windows: by the positions of documents, or by the values of the sort field.

use super::SortedBy;
use crate::context::ParseContext;
use crate::expression::{Expression, Unit};
use crate::text;
use quire_document::{Doc, DocWriter, Value, ValueBuf, array, compare};
use quire_error::{Error, Result};

/// One bound of a window.
#[derive(Clone, Debug, PartialEq)]
pub enum Bound<T> {
    /// The start or end of the partition.
    Unbounded,
    /// The current document, or its value.
    Current,
    /// At this distance from the current document.
    Offset(T),
}

/// The documents in a window.
#[derive(Clone, Debug)]
pub enum Bounds {
    /// By position, relative to the current document.
    Documents(Bound<i64>, Bound<i64>),
    /// By the value of the sort field, relative to that of the current document; for dates in this
    /// unit.
    Range(Bound<ValueBuf>, Bound<ValueBuf>, Option<Unit>),
}

impl Bounds {
    /// The whole partition.
    pub const WHOLE: Bounds = Bounds::Documents(Bound::Unbounded, Bound::Unbounded);

    /// Returns true if no value leaves the window while it moves.
    pub fn only_grows(&self) -> bool {
        matches!(self, Bounds::Documents(Bound::Unbounded, _) | Bounds::Range(Bound::Unbounded, ..))
    }

    /// Returns true if the window is the whole partition for every document.
    pub fn is_whole(&self) -> bool {
        matches!(
            self,
            Bounds::Documents(Bound::Unbounded, Bound::Unbounded)
                | Bounds::Range(Bound::Unbounded, Bound::Unbounded, _)
        )
    }

    /// Parses the value of `window`.
    ///
    /// # Errors
    /// 9 FailedToParse for an invalid form, 5339900 for bounds in the wrong order, 5339901 and
    /// 5339902 for a `sortBy` that does not fit the bounds, 8947401 for a descending one.
    pub(super) fn parse(
        window: Value<'_>,
        sorted_by: &SortedBy,
        cx: &ParseContext,
    ) -> Result<Self> {
        let Value::Document(window) = window else {
            return Err(Error::failed_to_parse("'window' field must be an object"));
        };
        if window.is_empty() {
            return Ok(Bounds::WHOLE);
        }
        let [documents, range, unit] = ["documents", "range", "unit"].map(|name| window.get(name));
        let known = [documents, range, unit].iter().flatten().count();
        match (documents, range) {
            (Some(_), _) if range.or(unit).is_some() => Err(Error::failed_to_parse(
                "Window bounds can specify either 'documents' or 'unit', not both.",
            )),
            (Some(_), _) if window.count() > 1 => Err(Error::failed_to_parse(
                "'window' field that specifies documents cannot have other fields",
            )),
            (Some(documents), _) => by_documents(documents, sorted_by, cx),
            (None, Some(range)) if window.count() == known => by_range(range, unit, sorted_by, cx),
            _ => Err(Error::failed_to_parse(
                "'window' field can only contain 'documents' as the only argument or 'range' with an optional 'unit' field",
            )),
        }
    }

    /// Writes the bounds as the field `window`.
    pub(super) fn print(&self, writer: &mut DocWriter<'_>) {
        let mut window = writer.document("window");
        match self {
            Bounds::Documents(low, high) => {
                let [low, high] =
                    [low, high].map(|bound| printed(bound, |n| ValueBuf::new(*n as i32)));
                window.append("documents", &array![&low, &high]);
            }
            Bounds::Range(low, high, unit) => {
                let [low, high] = [low, high].map(|bound| printed(bound, ValueBuf::clone));
                window.append("range", &array![&low, &high]);
                if let Some(unit) = unit {
                    window.append("unit", unit.name());
                }
            }
        }
    }
}

fn printed<T>(bound: &Bound<T>, number: impl Fn(&T) -> ValueBuf) -> ValueBuf {
    match bound {
        Bound::Unbounded => ValueBuf::new("unbounded"),
        Bound::Current => ValueBuf::new("current"),
        Bound::Offset(offset) => number(offset),
    }
}

/// Returns the two elements of `documents` or `range`.
fn two<'v>(name: &str, value: Value<'v>) -> Result<[Value<'v>; 2]> {
    let elements = value.as_array().map(|array| array.to_vec()).unwrap_or_default();
    elements.try_into().map_err(|_| {
        let shown = text::field(name, value);
        Error::failed_to_parse(format!("Window bounds must be a 2-element array: {shown}"))
    })
}

/// Parses one bound of a window: a word, or an expression that is constant; `number` parses its value.
fn bound<T>(
    value: Value<'_>,
    number: impl Fn(Value<'_>) -> Result<T>,
    cx: &ParseContext,
) -> Result<Bound<T>> {
    let wrong = || {
        let message = "Window bounds must be 'unbounded', 'current', or a number.";
        Error::failed_to_parse(message)
    };
    match value {
        Value::String("unbounded") => return Ok(Bound::Unbounded),
        Value::String("current") => return Ok(Bound::Current),
        Value::String(_) => return Err(wrong()),
        value if value.is_number() => return number(value).map(Bound::Offset),
        _ => {}
    }
    let expression = Expression::parse(value, cx)?;
    if !expression.is_constant() {
        let message = "Window bounds expression must be a constant.";
        return Err(Error::failed_to_parse(message));
    }
    let offset = expression.as_constant().filter(Value::is_number).ok_or_else(wrong)?;
    number(offset).map(Bound::Offset)
}

fn by_documents(value: Value<'_>, sorted_by: &SortedBy, cx: &ParseContext) -> Result<Bounds> {
    let integer = |value: Value<'_>| {
        let whole = value.as_number().and_then(|number| number.exact_i64());
        whole.and_then(|number| i32::try_from(number).ok()).map(i64::from).ok_or_else(|| {
            Error::failed_to_parse("Numeric document-based bounds must be an integer")
        })
    };
    let [low, high] = two("documents", value)?;
    let (low, high) = (bound(low, integer, cx)?, bound(high, integer, cx)?);
    let offset = |bound: &Bound<i64>| match bound {
        Bound::Unbounded => None,
        Bound::Current => Some(0),
        Bound::Offset(offset) => Some(*offset),
    };
    if let (Some(low), Some(high)) = (offset(&low), offset(&high))
        && low > high
    {
        return Err(wrong_order(Value::Int64(low), Value::Int64(high)));
    }
    let bounds = Bounds::Documents(low, high);
    if !sorted_by.given && !bounds.is_whole() {
        let message = "Document-based bounds require a sortBy";
        return Err(Error::location(5339901, message));
    }
    Ok(bounds)
}

fn by_range(
    value: Value<'_>,
    unit: Option<Value<'_>>,
    sorted_by: &SortedBy,
    cx: &ParseContext,
) -> Result<Bounds> {
    let unit = unit.map(parse_unit).transpose()?;
    let offset = |value: Value<'_>| match value.as_number().and_then(|number| number.exact_i64()) {
        Some(whole) if unit.is_some() => Ok(ValueBuf::new(whole)),
        None if unit.is_some() => {
            Err(Error::failed_to_parse("With 'unit', range-based bounds must be an integer"))
        }
        _ => Ok(ValueBuf::new(value)),
    };
    let [low, high] = two("range", value)?;
    let (low, high) = (bound(low, offset, cx)?, bound(high, offset, cx)?);
    let zero = ValueBuf::new(0);
    let number = |bound: &Bound<ValueBuf>| match bound {
        Bound::Unbounded => None,
        Bound::Current => Some(zero.clone()),
        Bound::Offset(offset) => Some(offset.clone()),
    };
    if let (Some(low), Some(high)) = (number(&low), number(&high))
        && compare(low.as_value(), high.as_value(), None).is_gt()
    {
        return Err(wrong_order(low.as_value(), high.as_value()));
    }
    match sorted_by.single() {
        None => Err(Error::location(5339902, "Range-based bounds require sortBy a single field")),
        Some((_, false)) => {
            let message = "Range-based bounds require an ascending sortBy";
            Err(Error::location(8947401, message))
        }
        Some((_, true)) => Ok(Bounds::Range(low, high, unit)),
    }
}

fn wrong_order(low: Value<'_>, high: Value<'_>) -> Error {
    let (low, high) = (text::value(low), text::value(high));
    let message = format!("Lower bound must not exceed upper bound: [{low}, {high}]");
    Error::location(5339900, message)
}

/// Parses the name of a unit of time. Fails with 9 FailedToParse for anything else.
pub(super) fn parse_unit(value: Value<'_>) -> Result<Unit> {
    let Value::String(name) = value else {
        return Err(Error::failed_to_parse("'unit' must be a string"));
    };
    Unit::by_name(name)
        .ok_or_else(|| Error::failed_to_parse(format!("unknown time unit value: {name}")))
}

/// Fails with 9 FailedToParse if `doc` has a field that is not in `known`. `message` makes the text
/// from the name.
pub(super) fn only_fields(
    doc: Doc<'_>,
    known: &[&str],
    message: impl Fn(&str) -> String,
) -> Result<()> {
    match doc.fields().find(|(name, _)| !known.contains(name)) {
        None => Ok(()),
        Some((name, _)) => Err(Error::failed_to_parse(message(name))),
    }
}
