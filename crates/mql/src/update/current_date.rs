//! `$currentDate`: sets a field to the time of the update.

use super::apply::{Run, put};
use super::modifier::{Effect, Missing, Modifier};
use super::operator::{FieldOperand, UpdateOperator};
use super::replacement::now;
use quire_document::{Element, Value};
use quire_error::{Error, Result};

pub(super) const CURRENT_DATE: UpdateOperator = UpdateOperator {
    name: "$currentDate",
    since: "2.6",
    doc: "Sets a field to the current date, or with {$type: \"timestamp\"} to a timestamp.",
    parse: |operand, _| Ok(Box::new(CurrentDate { timestamp: is_timestamp(operand)? })),
};

#[derive(Debug)]
struct CurrentDate {
    timestamp: bool,
}

fn is_timestamp(operand: &FieldOperand<'_>) -> Result<bool> {
    let spec = match operand.value {
        Value::Bool(_) => return Ok(false),
        Value::Document(spec) => spec,
        other => {
            return Err(Error::bad_value(format!(
                "{} is not valid type for $currentDate. Please use a boolean ('true') or a $type expression ({{$type: 'timestamp/date'}}).",
                other.type_name()
            )));
        }
    };
    let mut timestamp = None;
    for (name, value) in spec.fields() {
        if name != "$type" {
            return Err(Error::bad_value(format!("Unrecognized $currentDate option: {name}")));
        }
        timestamp = match value.as_str() {
            Some("date") => Some(false),
            Some("timestamp") => Some(true),
            _ => return Err(bad_type()),
        };
    }
    timestamp.ok_or_else(bad_type)
}

fn bad_type() -> Error {
    Error::bad_value(
        "The '$type' string field is required to be 'date' or 'timestamp': {$currentDate: {field : {$type: 'date'}}}",
    )
}

impl CurrentDate {
    fn value(&self, run: &Run<'_>) -> Value<'static> {
        if self.timestamp {
            Value::Timestamp(now(run.cx))
        } else {
            Value::Date(run.cx.shared.now_ms)
        }
    }
}

impl Modifier for CurrentDate {
    fn update(
        &self,
        run: &Run<'_>,
        _: bool,
        element: Element<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Effect> {
        Ok(put(out, element.key_bytes(), self.value(run)))
    }

    fn missing(&self, _: &Run<'_>) -> Missing {
        Missing::Create
    }

    fn create(&self, run: &Run<'_>, name: &[u8], out: &mut Vec<u8>) -> Result<()> {
        put(out, name, self.value(run));
        Ok(())
    }
}
