//! `$sample`: random documents.

use super::facts::{Facts, InFusion};
use super::limit::printed;
use super::registry::StageRow;
use super::{Modified, Needs, Stage, StageBody};
use crate::expression::Dependencies;
use quire_document::decimal::Rounding;
use quire_document::{DocWriter, Value};
use quire_error::{Error, Result};

pub(super) const SAMPLE: StageRow = StageRow {
    name: "$sample",
    since: "3.2",
    doc: "Passes on n random documents.",
    facts: Facts { in_fusion: InFusion::Selects, ..Facts::PLAIN },
    parse: |_, value, _| Ok(vec![Stage::Sample(Sample(size(value)?))]),
};

/// A parsed `$sample`: the number of documents, at least 1.
#[derive(Clone, Copy, Debug)]
pub struct Sample(pub u64);

impl StageBody for Sample {
    fn name(&self) -> &'static str {
        SAMPLE.name
    }

    fn needs(&self) -> Needs {
        Needs::reading(Dependencies { volatile: true, ..Dependencies::default() })
    }

    fn modified(&self) -> Modified {
        Modified::Nothing
    }

    fn print(&self, writer: &mut DocWriter<'_>) {
        writer.document(SAMPLE.name).append("size", printed(self.0));
    }
}

fn size(value: Value<'_>) -> Result<u64> {
    let Value::Document(spec) = value else {
        let message = "the $sample stage specification must be an object";
        return Err(Error::location(28745, message));
    };
    let mut size = None;
    for (name, value) in spec.fields() {
        if name != "size" {
            let message = format!("unrecognized option to $sample: {name}");
            return Err(Error::location(28748, message));
        }
        size =
            Some(rounded(value).ok_or_else(|| {
                Error::location(28746, "size argument to $sample must be a number")
            })?);
    }
    let Some(size) = size else {
        return Err(Error::location(28749, "$sample stage must specify a size"));
    };
    match u64::try_from(size) {
        Ok(size) if size > 0 => Ok(size),
        _ => Err(Error::location(28747, "size argument to $sample must be a positive integer")),
    }
}

/// Returns the number as a long. Truncates a double and rounds a decimal half to even; a number out
/// of range becomes the nearest long.
fn rounded(value: Value<'_>) -> Option<i64> {
    match value {
        Value::Decimal(number) => {
            let nearest = number.to_i64_rounded(Rounding::HalfEven);
            Some(nearest.unwrap_or_else(|| number.to_f64() as i64))
        }
        value => value.to_f64().map(|number| number as i64),
    }
}
