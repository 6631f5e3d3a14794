//! `$bucket`: groups by ranges of a value. It is replaced by a `$group` with a `$switch` and a
//! `$sort`.

use super::Stage;
use super::facts::{BehindChanges, Facts};
use super::pipeline::parse_stage;
use super::registry::StageRow;
use crate::context::ParseContext;
use crate::expression::Expression;
use crate::text;
use quire_document::{Array, Doc, Value, ValueBuf, compare, doc};
use quire_error::{Error, Result};

pub(super) const BUCKET: StageRow = StageRow {
    name: "$bucket",
    since: "3.4",
    doc: "Groups documents by ranges of an expression's value.",
    facts: Facts { behind_changes: BehindChanges::RefusedAs("$group"), ..Facts::PLAIN },
    parse: |_, value, cx| parse(value, cx),
};

fn parse(value: Value<'_>, cx: &ParseContext) -> Result<Vec<Stage>> {
    let Value::Document(spec) = value else {
        let message = format!(
            "Argument to $bucket stage must be an object, but found type: {}.",
            value.type_name()
        );
        return Err(Error::location(40201, message));
    };
    let parts = Parts::parse(spec, cx)?;
    let (Some(group_by), Some(boundaries)) = (parts.group_by, parts.boundaries) else {
        let message = "$bucket requires 'groupBy' and 'boundaries' to be specified.";
        return Err(Error::location(40198, message));
    };
    check_default(&boundaries, parts.default.as_ref(), cx)?;
    let key = switch(group_by, &boundaries, parts.default.as_ref());
    let count = doc! { "count": { "$sum": 1 } };
    let output = parts.output.unwrap_or(count.as_doc());
    let group = quire_document::DocBuf::build(|writer| {
        let mut group = writer.document("$group");
        group.append("_id", &key).append_all(output);
    });
    let sort = doc! { "$sort": { "_id": 1 } };
    let mut stages = parse_stage(Value::Document(group.as_doc()), cx)?;
    stages.extend(parse_stage(Value::Document(sort.as_doc()), cx)?);
    Ok(stages)
}

#[derive(Default)]
struct Parts<'v> {
    group_by: Option<Value<'v>>,
    boundaries: Option<Vec<ValueBuf>>,
    default: Option<ValueBuf>,
    output: Option<Doc<'v>>,
}

impl<'v> Parts<'v> {
    fn parse(spec: Doc<'v>, cx: &ParseContext) -> Result<Self> {
        let mut parts = Parts::default();
        for (name, value) in spec.fields() {
            match name {
                "groupBy" => parts.group_by = Some(group_by("$bucket", 40202, value)?),
                "boundaries" => parts.boundaries = Some(boundaries(value, cx)?),
                "default" => parts.default = Some(constant(value, cx).ok_or_else(|| {
                    let shown = text::value(value);
                    Error::location(40195, format!("The $bucket 'default' field must be a constant expression, but found: {shown}."))
                })?),
                "output" => parts.output = Some(value.as_document().ok_or_else(|| {
                    let kind = value.type_name();
                    Error::location(40196, format!("The $bucket 'output' field must be an object, but found type: {kind}."))
                })?),
                _ => {
                    let message = format!("Unrecognized option to $bucket: {name}.");
                    return Err(Error::location(40197, message));
                }
            }
        }
        Ok(parts)
    }
}

/// Checks that the value is a path or an operator. Fails with `code` for anything else.
pub(super) fn group_by<'v>(stage: &str, code: i32, value: Value<'v>) -> Result<Value<'v>> {
    let fits = match value {
        Value::String(path) => path.starts_with('$'),
        Value::Document(spec) => spec.first().is_some_and(|first| first.key().starts_with('$')),
        _ => false,
    };
    if fits {
        return Ok(value);
    }
    let shown = text::value(value);
    let message = format!(
        "The {stage} 'groupBy' field must be defined as a $-prefixed path or an expression, but found: {shown}."
    );
    Err(Error::location(code, message))
}

/// Returns the value of a constant expression.
fn constant(value: Value<'_>, cx: &ParseContext) -> Option<ValueBuf> {
    let expression = Expression::parse(value, cx).ok()?;
    expression.as_constant().map(ValueBuf::new)
}

fn boundaries(value: Value<'_>, cx: &ParseContext) -> Result<Vec<ValueBuf>> {
    let Value::Array(values) = value else {
        let message = format!(
            "The $bucket 'boundaries' field must be an array, but found type: {}.",
            value.type_name()
        );
        return Err(Error::location(40200, message));
    };
    let constants = constants(values, cx)?;
    if constants.len() < 2 {
        let message = format!(
            "The $bucket 'boundaries' field must have at least 2 values, but found {} value(s).",
            constants.len()
        );
        return Err(Error::location(40192, message));
    }
    for (at, (low, high)) in constants.iter().zip(constants.iter().skip(1)).enumerate() {
        let (low, high) = (low.as_value(), high.as_value());
        if low.kind().rank() != high.kind().rank() {
            let message = format!(
                "All values in the the 'boundaries' option to $bucket must have the same type. Found conflicting types {} and {}.",
                low.type_name(),
                high.type_name()
            );
            return Err(Error::location(40193, message));
        }
        if compare(low, high, cx.collator.as_deref()).is_ge() {
            let message = format!(
                "The 'boundaries' option to $bucket must be sorted, but elements {at} and {} are not in ascending order ({} is not less than {}).",
                at + 1,
                text::value(low),
                text::value(high)
            );
            return Err(Error::location(40194, message));
        }
    }
    Ok(constants)
}

fn constants(values: Array<'_>, cx: &ParseContext) -> Result<Vec<ValueBuf>> {
    // Without the interrupt, because an interruption must not decide whether a value is constant.
    let mut uninterrupted = cx.clone();
    uninterrupted.interrupt = None;
    let constants = values.iter().map(|value| {
        cx.work()?;
        constant(value, &uninterrupted).ok_or_else(|| {
            let shown = text::value(value);
            Error::location(40191, format!("The $bucket 'boundaries' field must be an array of constant values, but found value: {shown}."))
        })
    });
    constants.collect()
}

/// Checks that the default is not in a bucket.
fn check_default(
    boundaries: &[ValueBuf],
    default: Option<&ValueBuf>,
    cx: &ParseContext,
) -> Result<()> {
    let (Some(lowest), Some(highest), Some(default)) =
        (boundaries.first(), boundaries.last(), default)
    else {
        return Ok(());
    };
    let order = |boundary: &ValueBuf| {
        compare(default.as_value(), boundary.as_value(), cx.collator.as_deref())
    };
    if order(lowest).is_ge() && order(highest).is_lt() {
        let message = "The $bucket 'default' field must be less than the lowest boundary or greater than or equal to the highest boundary.";
        return Err(Error::location(40199, message));
    }
    Ok(())
}

/// Returns `{$switch: {branches: [{case: {$and: [{$gte: [by, low]}, {$lt: [by, high]}]}, then:
/// low}], default}}`.
fn switch(
    by: Value<'_>,
    boundaries: &[ValueBuf],
    default: Option<&ValueBuf>,
) -> quire_document::DocBuf {
    quire_document::DocBuf::build(|writer| {
        let mut switch = writer.document("$switch");
        {
            let mut branches = switch.array("branches");
            for (low, high) in boundaries.iter().zip(boundaries.iter().skip(1)) {
                let (low, high) = (doc! { "$const": low }, doc! { "$const": high });
                let mut branch = branches.document();
                {
                    let mut case = branch.document("case");
                    let mut and = case.array("$and");
                    and.push(&doc! { "$gte": [by, &low] });
                    and.push(&doc! { "$lt": [by, &high] });
                }
                branch.append("then", &low);
            }
        }
        if let Some(default) = default {
            switch.append("default", &doc! { "$const": default });
        }
    })
}
