//! `$bucketAuto`: groups documents, ordered by a value, into buckets of similar size.

use super::bucket::group_by;
use super::facts::Facts;
use super::granularity::Granularity;
use super::group::check_name;
use super::registry::StageRow;
use super::{Modified, Needs, Stage, StageBody};
use crate::accumulator::{AccumulatorSpec, State, outside_group};
use crate::context::{EvalContext, ParseContext};
use crate::expression::{Dependencies, Expression};
use crate::text;
use quire_document::{Doc, DocBuf, DocWriter, Value, doc};
use quire_error::{Error, Result};
use std::sync::Arc;

pub(super) const BUCKET_AUTO: StageRow = StageRow {
    name: "$bucketAuto",
    since: "3.4",
    doc: "Groups documents into a number of buckets of about the same size.",
    facts: Facts::PLAIN,
    parse: |_, value, cx| Ok(vec![Stage::BucketAuto(Arc::new(BucketAuto::parse(value, cx)?))]),
};

/// A parsed `$bucketAuto`.
#[derive(Debug)]
pub struct BucketAuto {
    group_by: Expression,
    buckets: u32,
    granularity: Option<Granularity>,
    fields: Vec<(Box<str>, AccumulatorSpec)>,
}

impl BucketAuto {
    fn parse(value: Value<'_>, cx: &ParseContext) -> Result<Self> {
        let Value::Document(spec) = value else {
            let message = format!(
                "The argument to $bucketAuto must be an object, but found type: {}.",
                value.type_name()
            );
            return Err(Error::location(40240, message));
        };
        let (mut by, mut buckets, mut granularity, mut fields) = (None, None, None, Vec::new());
        for (name, value) in spec.fields() {
            match name {
                "groupBy" => {
                    let operand = group_by("$bucketAuto", 40239, value)?;
                    by = Some(Expression::parse(operand, cx)?);
                }
                "buckets" => buckets = Some(count(value)?),
                "output" => fields = output(value, cx)?,
                "granularity" => granularity = Some(Granularity::parse(value)?),
                _ => {
                    let message = format!("Unrecognized option to $bucketAuto: {name}.");
                    return Err(Error::location(40245, message));
                }
            }
        }
        let (Some(group_by), Some(buckets)) = (by, buckets) else {
            let message = "$bucketAuto requires 'groupBy' and 'buckets' to be specified.";
            return Err(Error::location(40246, message));
        };
        if fields.is_empty() {
            let count = doc! { "$sum": 1 };
            let spec = AccumulatorSpec::parse("count", Value::Document(count.as_doc()), cx)?;
            fields.push((Box::from("count"), spec));
        }
        Ok(BucketAuto { group_by, buckets, granularity, fields })
    }

    /// Returns the most buckets to make, at least 1.
    pub fn buckets(&self) -> u32 {
        self.buckets
    }

    /// Returns how the bounds of buckets are rounded.
    pub fn granularity(&self) -> Option<Granularity> {
        self.granularity
    }

    /// Returns the value of `cx.root` that determines its bucket (null if missing), and a document
    /// with the arguments of the accumulators: a field for each, numbered from 0, unless its value
    /// is missing.
    pub fn intake<'a>(&'a self, cx: &EvalContext<'a>) -> Result<(Value<'a>, DocBuf)> {
        let key = self.group_by.eval(cx)?.unwrap_or(Value::Null);
        if let Some(granularity) = self.granularity {
            granularity.check(key)?;
        }
        let mut values = Vec::with_capacity(self.fields.len());
        for (_, spec) in &self.fields {
            values.push(spec.plain_value(cx)?);
        }
        let given = DocBuf::build(|writer| {
            writer.append("key", key);
            for (at, value) in values.into_iter().enumerate() {
                writer.append_some(&at.to_string(), value);
            }
        });
        Ok((key, given))
    }

    /// Returns the states of the accumulators for a new bucket.
    pub fn new_states(&self, cx: &EvalContext<'_>) -> Result<Vec<Box<dyn State>>> {
        let states = self.fields.iter().map(|(_, spec)| spec.new_state(Value::Null, cx));
        states.collect::<Result<_>>().map_err(outside_group)
    }

    /// Adds a document, as returned by `intake`, to the accumulators of a bucket.
    pub fn add(&self, states: &mut [Box<dyn State>], given: Doc<'_>) -> Result<()> {
        for (at, state) in states.iter_mut().enumerate() {
            state.add(given.get(&at.to_string())).map_err(outside_group)?;
        }
        Ok(())
    }

    /// Returns the output document of a bucket.
    pub fn output(
        &self,
        (min, max): (Value<'_>, Value<'_>),
        states: &[Box<dyn State>],
        cx: &EvalContext<'_>,
    ) -> Result<DocBuf> {
        let results: Vec<_> = states.iter().map(|state| state.result(cx)).collect::<Result<_>>()?;
        Ok(DocBuf::build(|writer| {
            writer.document("_id").append("min", min).append("max", max);
            for ((name, _), result) in self.fields.iter().zip(results) {
                writer.append(name, result);
            }
        }))
    }
}

impl StageBody for BucketAuto {
    fn name(&self) -> &'static str {
        BUCKET_AUTO.name
    }

    fn needs(&self) -> Needs {
        let mut reads = Dependencies::default();
        self.group_by.add_dependencies(&mut reads);
        self.fields.iter().for_each(|(_, spec)| spec.add_dependencies(&mut reads));
        Needs::only(reads)
    }

    fn modified(&self) -> Modified {
        Modified::All
    }

    fn print(&self, writer: &mut DocWriter<'_>) {
        let mut inner = writer.document(BUCKET_AUTO.name);
        self.group_by.serialize_to("groupBy", &mut inner);
        inner.append("buckets", i32::try_from(self.buckets).unwrap_or(i32::MAX));
        if let Some(granularity) = self.granularity {
            inner.append("granularity", granularity.name());
        }
        let mut output = inner.document("output");
        for (name, spec) in &self.fields {
            spec.serialize(name, &mut output);
        }
    }
}

/// Parses the number of buckets. Fails with 40241 if it is not a number, with 40242 if it is not an
/// int, and with 40243 if it is below 1.
fn count(value: Value<'_>) -> Result<u32> {
    let Some(number) = value.as_number() else {
        let message = format!(
            "The $bucketAuto 'buckets' field must be a numeric value, but found type: {}.",
            value.type_name()
        );
        return Err(Error::location(40241, message));
    };
    let shown = text::value(value);
    let Some(count) = number.exact_i64().and_then(|count| i32::try_from(count).ok()) else {
        let message = format!(
            "The $bucketAuto 'buckets' field must be representable as a 32-bit integer, but found {shown}."
        );
        return Err(Error::location(40242, message));
    };
    u32::try_from(count).ok().filter(|count| *count > 0).ok_or_else(|| {
        let message =
            format!("The $bucketAuto 'buckets' field must be greater than 0, but found: {shown}.");
        Error::location(40243, message)
    })
}

fn output(value: Value<'_>, cx: &ParseContext) -> Result<Vec<(Box<str>, AccumulatorSpec)>> {
    let Value::Document(spec) = value else {
        let message = format!(
            "The $bucketAuto 'output' field must be an object, but found type: {}.",
            value.type_name()
        );
        return Err(Error::location(40244, message));
    };
    let mut fields = Vec::new();
    for (name, value) in spec.fields() {
        check_name(name)?;
        fields.push((Box::from(name), AccumulatorSpec::parse(name, value, cx)?));
    }
    let count = fields.len();
    fields.iter_mut().for_each(|(_, spec): &mut (_, AccumulatorSpec)| spec.guard_one_of(count));
    Ok(fields)
}
