//! `$fill`: sets null and missing fields. It is replaced by a `$setWindowFields` with `$locf` and
//! `$linearFill`, and an `$addFields` with `$ifNull`.

use super::Stage;
use super::facts::{BehindChanges, Facts};
use super::pipeline::parse_stage;
use super::registry::StageRow;
use crate::context::ParseContext;
use crate::options::Options;
use quire_document::{Array, Doc, DocBuf, Value, doc};
use quire_error::{Error, Result};

pub(super) const FILL: StageRow = StageRow {
    name: "$fill",
    since: "5.3",
    doc: "Fills null and missing fields.",
    // A `$fill` with only values becomes an `$addFields`, so it is allowed in an update; one with a
    // method is refused there.
    facts: Facts { in_update: true, behind_changes: BehindChanges::WithoutOrder, ..Facts::PLAIN },
    parse: |_, value, cx| parse(value, cx),
};

const OPTIONS: Options<'_> = Options("$fill");

#[derive(Default)]
struct Parts<'v> {
    partition_by: Option<Value<'v>>,
    partition_by_fields: Option<Array<'v>>,
    sort_by: Option<Doc<'v>>,
    output: Option<Doc<'v>>,
}

/// The new value of a field.
enum Filling<'v> {
    /// The value of an expression.
    Value(Value<'v>),
    /// The result of a window function.
    Function(&'static str),
}

fn parse(value: Value<'_>, cx: &ParseContext) -> Result<Vec<Stage>> {
    let parts = Parts::parse(value)?;
    let output = parts.output.ok_or_else(|| OPTIONS.missing("output"))?;
    if output.is_empty() {
        return Err(Error::location(6050203, "$fill requires at least one output field"));
    }
    let fillings = output.fields().map(|(field, spec)| {
        cx.part()?;
        Ok((field, filling(spec)?))
    });
    let fillings: Vec<(&str, Filling<'_>)> = fillings.collect::<Result<_>>()?;
    let mut stages = Vec::new();
    let functions = DocBuf::build(|writer| {
        for (field, filling) in &fillings {
            if let Filling::Function(name) = filling {
                writer.document(field).append(name, format!("${field}").as_str());
            }
        }
    });
    if !functions.as_doc().is_empty() {
        let window = DocBuf::build(|writer| {
            let mut stage = writer.document("$setWindowFields");
            parts.write_partition(&mut stage);
            if let Some(sort_by) = parts.sort_by {
                stage.append("sortBy", sort_by);
            }
            stage.append("output", &functions);
        });
        stages.extend(parse_stage(Value::Document(window.as_doc()), cx)?);
    }
    let values = DocBuf::build(|writer| {
        for (field, filling) in &fillings {
            if let Filling::Value(value) = filling {
                let path = format!("${field}");
                writer.append(field, &doc! { "$ifNull": [path.as_str(), *value] });
            }
        }
    });
    if !values.as_doc().is_empty() {
        let add = doc! { "$addFields": &values };
        stages.extend(parse_stage(Value::Document(add.as_doc()), cx)?);
    }
    Ok(stages)
}

/// Parses an output field. Fails with 6050202 for an unknown method, and with 6050201 unless the
/// field has exactly one of `value` and `method`.
/// exactly one of `value` and `method`.
fn filling<'v>(spec: Value<'v>) -> Result<Filling<'v>> {
    let Value::Document(spec) = spec else {
        return Err(OPTIONS.wrong_type("output", spec, "object"));
    };
    match spec.first().filter(|_| spec.count() == 1).map(|only| (only.key(), only.value())) {
        Some(("value", value)) => Ok(Filling::Value(value)),
        Some(("method", Value::String("locf"))) => Ok(Filling::Function("$locf")),
        Some(("method", Value::String("linear"))) => Ok(Filling::Function("$linearFill")),
        Some(("method", _)) => {
            Err(Error::location(6050202, "Method must be either 'locf' or 'linear'"))
        }
        _ => {
            let message = "Each fill output specification must have exactly one of 'method' or 'value' fields";
            Err(Error::location(6050201, message))
        }
    }
}

impl<'v> Parts<'v> {
    fn parse(value: Value<'v>) -> Result<Self> {
        let Value::Document(spec) = value else {
            let kind = value.type_name();
            let message = format!("The $fill stage specification must be an object, found {kind}");
            return Err(Error::location(6050200, message));
        };
        let mut parts = Parts::default();
        for field in OPTIONS.fields(spec) {
            let (name, value) = field?;
            match (name, value) {
                ("partitionBy", Value::Document(_) | Value::String(_)) => {
                    parts.partition_by = Some(value);
                }
                ("partitionByFields", Value::Array(names)) => {
                    check_names(names)?;
                    parts.partition_by_fields = Some(names);
                }
                ("sortBy", Value::Document(doc)) => parts.sort_by = Some(doc),
                ("output", Value::Document(doc)) => parts.output = Some(doc),
                ("partitionBy", other) => {
                    return Err(OPTIONS.wrong_type(name, other, "[string, object]"));
                }
                ("partitionByFields", other) => {
                    return Err(OPTIONS.wrong_type(name, other, "array"));
                }
                ("sortBy" | "output", other) => {
                    return Err(OPTIONS.wrong_type(name, other, "object"));
                }
                _ => return Err(OPTIONS.unknown(name)),
            }
        }
        if parts.partition_by.is_some() && parts.partition_by_fields.is_some() {
            let message =
                "Maximum one of 'partitionBy' and 'partitionByFields can be specified in '$fill'";
            return Err(Error::location(6050204, message));
        }
        Ok(parts)
    }

    /// Writes the `partitionBy` of the `$setWindowFields`.
    fn write_partition(&self, stage: &mut quire_document::DocWriter<'_>) {
        if let Some(by) = self.partition_by {
            stage.append("partitionBy", by);
        }
        let names = self.partition_by_fields.filter(|names| !names.is_empty());
        let Some(names) = names else { return };
        let names: Vec<&str> = names.iter().filter_map(|name| name.as_str()).collect();
        match names.as_slice() {
            [only] => {
                stage.append("partitionBy", format!("${only}").as_str());
            }
            several => {
                // The fields are named by numbers, because a field name must not have dots.
                let mut by = stage.document("partitionBy");
                for (at, name) in several.iter().enumerate() {
                    by.append(&at.to_string(), format!("${name}").as_str());
                }
            }
        }
    }
}

fn check_names(names: Array<'_>) -> Result<()> {
    for (at, name) in names.iter().enumerate() {
        match name {
            Value::String(name) if !name.starts_with('$') => {}
            Value::String(_) => {
                let message = "'partitionByFields' field names may not start with '$'";
                return Err(Error::location(6050205, message));
            }
            other => {
                let name = format!("partitionByFields.{at}");
                return Err(OPTIONS.wrong_type(&name, other, "string"));
            }
        }
    }
    Ok(())
}
