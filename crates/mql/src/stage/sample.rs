//! `$sample`: documents at random.

use super::Stage;
use super::registry::StageRow;
use crate::accumulator::to_f64;
use quire_document::Value;
use quire_error::{Error, Result};

pub(super) const SAMPLE: StageRow = StageRow {
    name: "$sample",
    since: "3.2",
    doc: "Lets through n documents at random.",
    parse: |_, value, _| Ok(vec![Stage::Sample(size(value)?)]),
};

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
        let Some(number) = to_f64(value) else {
            let message = "size argument to $sample must be a number";
            return Err(Error::location(28746, message));
        };
        size = Some(number);
    }
    let Some(size) = size else {
        return Err(Error::location(28749, "$sample stage must specify a size"));
    };
    // Converting cuts off fractions and saturates.
    match size as i64 {
        size if size > 0 => Ok(size as u64),
        _ => Err(Error::location(28747, "size argument to $sample must be a positive integer")),
    }
}
