//! `$densify`: adds documents for missing values of a field between others. It is replaced by a
//! `$sort` by the field and the stage that adds the documents.

use super::facts::{BehindChanges, Facts};
use super::pipeline::parse_stage;
use super::registry::StageRow;
use super::{Modified, Needs, Stage, StageBody, write_at};
use crate::context::{EvalContext, ParseContext};
use crate::expression::{Dependencies, Expression, FieldPath, Unit, moved_date, total};
use crate::options::Options;
use quire_document::{Doc, DocBuf, DocWriter, Value, ValueBuf, array, compare, doc};
use quire_error::{Error, Result};
use std::sync::Arc;

pub(super) const DENSIFY: StageRow = StageRow {
    name: "$densify",
    since: "5.1",
    doc: "Adds documents for missing values between others.",
    facts: Facts { behind_changes: BehindChanges::RefusedAs("$sort"), ..Facts::PLAIN },
    parse: |_, value, cx| parse(value, cx),
};

/// The part of a `$densify` that adds documents. Its input is ordered by the field, or by partition
/// and field if the bounds are those of each partition.
#[derive(Debug)]
pub struct Densify {
    field: (FieldPath, Expression),
    partition_by: Vec<(FieldPath, Expression)>,
    step: ValueBuf,
    unit: Option<Unit>,
    bounds: DensifyBounds,
}

/// The range in which documents are added.
#[derive(Clone, Debug, PartialEq)]
pub enum DensifyBounds {
    /// From the smallest to the largest value of all documents.
    Full,
    /// From the smallest to the largest value of the partition.
    Partition,
    /// From the first value (included) to the second (excluded).
    Explicit(ValueBuf, ValueBuf),
}

fn parse(value: Value<'_>, cx: &ParseContext) -> Result<Vec<Stage>> {
    let densify = Densify::parse(value, cx)?;
    let sort = DocBuf::build(|writer| {
        if densify.bounds == DensifyBounds::Partition {
            for (path, _) in &densify.partition_by {
                writer.append(&path.to_string(), 1);
            }
        }
        writer.append(&densify.field.0.to_string(), 1);
    });
    let sort = doc! { "$sort": &sort };
    let mut stages = parse_stage(Value::Document(sort.as_doc()), cx)?;
    stages.push(Stage::Densify(Arc::new(densify)));
    Ok(stages)
}

const OPTIONS: Options<'_> = Options("$densify");
const RANGE: Options<'_> = Options("$densify.range");

/// Parses a path, and the expression that reads it. Fails with 5733201 for a name that begins with
/// a dollar sign.
fn path(name: &str) -> Result<(FieldPath, Expression)> {
    if name.starts_with('$') {
        let message =
            format!("Cannot densify or partition by a field that starts with '$': {name}");
        return Err(Error::location(5733201, message));
    }
    Ok((FieldPath::parse(name)?, Expression::path(name)?))
}

/// Fails with 8993000 for a partition field that is the densified field or inside it, and with 9554500
/// for a densified field inside a partition field.
fn check_apart(field: &str, partition: &str) -> Result<()> {
    let is_inside = |path: &str, other: &str| {
        path.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    if is_inside(partition, field) {
        let message = format!(
            "partitionByFields '{partition}' cannot include field '{field}' that is being densified."
        );
        return Err(Error::location(8993000, message));
    }
    if is_inside(field, partition) {
        let message = format!(
            "field '{field}' that is being densified cannot include partitionByFields '{partition}'."
        );
        return Err(Error::location(9554500, message));
    }
    Ok(())
}

impl Densify {
    fn parse(value: Value<'_>, cx: &ParseContext) -> Result<Self> {
        let Value::Document(spec) = value else {
            let kind = value.type_name();
            let message =
                format!("The $densify stage specification must be an object, found {kind}");
            return Err(Error::location(5733200, message));
        };
        let (mut field, mut partition_by, mut range) = (None, Vec::new(), None);
        for option in OPTIONS.fields(spec) {
            let (name, value) = option?;
            match (name, value) {
                ("field", Value::String(name)) => field = Some(path(name)?),
                ("field", other) => return Err(OPTIONS.wrong_type(name, other, "string")),
                ("partitionByFields", Value::Array(names)) => {
                    for (at, name) in names.iter().enumerate() {
                        cx.part()?;
                        let Value::String(name) = name else {
                            let at = format!("partitionByFields.{at}");
                            return Err(OPTIONS.wrong_type(&at, name, "string"));
                        };
                        partition_by.push(path(name)?);
                    }
                }
                ("partitionByFields", other) => {
                    return Err(OPTIONS.wrong_type(name, other, "array"));
                }
                ("range", Value::Document(doc)) => range = Some(doc),
                ("range", other) => return Err(OPTIONS.wrong_type(name, other, "object")),
                _ => return Err(OPTIONS.unknown(name)),
            }
        }
        let field = field.ok_or_else(|| OPTIONS.missing("field"))?;
        let range = range.ok_or_else(|| OPTIONS.missing("range"))?;
        let (step, unit, bounds) = parse_range(range)?;
        for (partition, _) in &partition_by {
            check_apart(&field.0.to_string(), &partition.to_string())?;
        }
        if bounds == DensifyBounds::Partition && partition_by.is_empty() {
            let message = "One may not specify the bounds as 'partition' without specifying a non-empty array of partitionByFields. You may have meant to specify 'full' bounds.";
            return Err(Error::location(5733408, message));
        }
        Ok(Densify { field, partition_by, step, unit, bounds })
    }

    /// Returns true if documents are partitioned.
    pub fn has_partitions(&self) -> bool {
        !self.partition_by.is_empty()
    }

    /// Returns the range in which documents are added.
    pub fn bounds(&self) -> &DensifyBounds {
        &self.bounds
    }

    /// Returns the value of the field in `cx.root`; `None` if it is null or missing, which is
    /// allowed.
    ///
    /// # Errors
    /// 5733201 for a value that is neither a number nor a date, 6053600 for a date without a unit
    /// or a number with a unit.
    pub fn value<'a>(&'a self, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
        let value = match self.field.1.eval(cx)? {
            None | Some(Value::Null | Value::Undefined) => return Ok(None),
            Some(value) => value,
        };
        match (value, self.unit) {
            (Value::Date(_), Some(_)) => Ok(Some(value)),
            (Value::Date(_), None) => Err(Error::location(
                6053600,
                "Encountered date value in collection when step does not have a date unit.",
            )),
            (value, None) if value.is_number() => Ok(Some(value)),
            (value, Some(_)) if value.is_number() => Err(Error::location(
                6053600,
                "Encountered non-date value in collection when step has a date unit.",
            )),
            _ => Err(Error::location(5733201, "Densify field type must be numeric or a date")),
        }
    }

    /// Returns the values that determine the partition of `cx.root`.
    pub fn partition<'a>(&'a self, cx: &EvalContext<'a>) -> Result<Vec<Option<Value<'a>>>> {
        self.partition_by.iter().map(|(_, expression)| expression.eval(cx)).collect()
    }

    /// Returns the value one step after `value`; `None` if it is beyond the range of dates.
    pub fn step_from(&self, value: Value<'_>) -> Option<ValueBuf> {
        let moved = match (value, self.unit, self.step.as_value()) {
            (Value::Date(date), Some(unit), Value::Int64(amount)) => {
                Value::Date(moved_date(date, unit, amount)?)
            }
            (value, _, step) => total(value, step),
        };
        Some(ValueBuf::new(moved))
    }

    /// Returns the document to add for `value` in the partition with these values.
    pub fn document(&self, partition: &[Option<ValueBuf>], value: &ValueBuf) -> DocBuf {
        let with_value = |doc: &DocBuf, path: &FieldPath, value: &ValueBuf| {
            let path: Vec<&str> = path.components().collect();
            let value = Some(value.as_value());
            DocBuf::build(|writer| write_at(doc.as_doc(), &path, value, writer))
        };
        let mut doc = DocBuf::new();
        for ((path, _), value) in self.partition_by.iter().zip(partition) {
            if let Some(value) = value {
                doc = with_value(&doc, path, value);
            }
        }
        with_value(&doc, &self.field.0, value)
    }
}

fn parse_range(range: Doc<'_>) -> Result<(ValueBuf, Option<Unit>, DensifyBounds)> {
    let (mut step, mut unit, mut bounds) = (None, None, None);
    for option in RANGE.fields(range) {
        match option? {
            ("step", value) => step = Some(value),
            ("unit", Value::String(text)) => {
                let known = Unit::by_name(text).ok_or_else(|| {
                    Error::failed_to_parse(format!("unknown time unit value: {text}"))
                })?;
                unit = Some(known);
            }
            ("unit", other) => return Err(RANGE.wrong_type("unit", other, "string")),
            ("bounds", value) => bounds = Some(value),
            (name, _) => return Err(RANGE.unknown(name)),
        }
    }
    let step = step.ok_or_else(|| RANGE.missing("step"))?;
    let bounds = bounds.ok_or_else(|| RANGE.missing("bounds"))?;
    if !step.is_number() || compare(step, Value::Int32(0), None).is_le() {
        let message =
            "The step parameter in a range statement must be a strictly positive numeric value";
        return Err(Error::location(5733401, message));
    }
    let step = match (unit, step.as_number().and_then(|number| number.exact_i64())) {
        (None, _) => ValueBuf::new(step),
        (Some(_), Some(whole)) => ValueBuf::new(whole),
        (Some(_), None) => {
            let message = "The step parameter in a range satement must be a whole number when densifying a date range";
            return Err(Error::location(6586400, message));
        }
    };
    Ok((step, unit, parse_bounds(bounds, unit)?))
}

fn parse_bounds(bounds: Value<'_>, unit: Option<Unit>) -> Result<DensifyBounds> {
    let refuse = |number, message| Err(Error::location(number, message));
    let array = match bounds {
        Value::String("full") => return Ok(DensifyBounds::Full),
        Value::String("partition") => return Ok(DensifyBounds::Partition),
        Value::String(_) => {
            return refuse(5946802, "Bounds string must either be 'full' or 'partition'");
        }
        Value::Array(array) => array,
        _ => {
            return refuse(
                5733404,
                "The bounds in a range statement must be the string 'full', 'partition', or an ascending array of two numbers or two dates",
            );
        }
    };
    let Ok([low, high]) = <[Value<'_>; 2]>::try_from(array.to_vec()) else {
        return refuse(
            5733403,
            "A bounding array in a range statement must have exactly two elements",
        );
    };
    let dates = matches!((low, high), (Value::Date(_), Value::Date(_)));
    let fits = dates || (low.is_number() && high.is_number());
    if !fits || compare(low, high, None).is_gt() {
        return refuse(
            5733402,
            "A bounding array must be an ascending array of either two dates or two numbers",
        );
    }
    match (dates, unit) {
        (false, Some(_)) => refuse(5733409, "Numeric bounds may not have unit parameter"),
        (true, None) => refuse(5733410, "Date bounds must have a unit parameter"),
        _ => Ok(DensifyBounds::Explicit(ValueBuf::new(low), ValueBuf::new(high))),
    }
}

impl StageBody for Densify {
    fn name(&self) -> &'static str {
        "$_internalDensify"
    }

    fn needs(&self) -> Needs {
        let mut reads = Dependencies::default();
        let expressions = self.partition_by.iter().chain([&self.field]);
        expressions.for_each(|(_, expression)| expression.add_dependencies(&mut reads));
        Needs::reading(reads)
    }

    fn modified(&self) -> Modified {
        Modified::All
    }

    fn print(&self, writer: &mut DocWriter<'_>) {
        let mut inner = writer.document(self.name());
        inner.append("field", self.field.0.to_string().as_str());
        {
            let mut fields = inner.array("partitionByFields");
            for (path, _) in &self.partition_by {
                fields.push(path.to_string().as_str());
            }
        }
        let mut range = inner.document("range");
        range.append("step", &self.step);
        match &self.bounds {
            DensifyBounds::Full => range.append("bounds", "full"),
            DensifyBounds::Partition => range.append("bounds", "partition"),
            DensifyBounds::Explicit(low, high) => range.append("bounds", &array![low, high]),
        };
        if let Some(unit) = self.unit {
            range.append("unit", unit.name());
        }
    }
}
