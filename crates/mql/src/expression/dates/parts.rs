//! `$dateToParts`, `$dateFromParts`.

use super::arguments::{date, does_not_fit, present, whole, zone};
use super::moment::{Moment, days_carried, iso_year_start, local_millis};
use crate::context::EvalContext;
use crate::expression::operator::{Arity, Call, Field, Fields, Operator};
use crate::text;
use quire_document::Value;
use quire_error::{Error, Result};

/// The registry rows of this family.
pub(in crate::expression) const OPERATORS: &[Operator] = &[
    Operator::function("$dateToParts", Arity::Named(&TO), to_parts)
        .doc("A document with the parts of a date.")
        .since("3.6"),
    Operator::checked("$dateFromParts", Arity::Named(&FROM), check, from_parts)
        .doc("The date with the given parts.")
        .since("3.6"),
];

const TO: Fields = Fields {
    fields: &[
        Field::required("date", 40522),
        Field::optional("timezone"),
        Field::optional("iso8601"),
    ],
    not_object: 40524,
    unknown: 40520,
};

fn to_parts<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
    let value = present(call, 0, cx)?;
    let Some(zone) = zone(call, 1, cx)? else { return Ok(Some(Value::Null)) };
    let iso = match call.arg(2).map(|argument| argument.eval(cx)).transpose()? {
        None => false,
        Some(None | Some(Value::Null | Value::Undefined)) => return Ok(Some(Value::Null)),
        Some(Some(Value::Bool(flag))) => flag,
        Some(Some(other)) => {
            let message = format!("iso8601 must evaluate to a bool, found {}", other.type_name());
            return Err(Error::location(40521, message));
        }
    };
    let Some(value) = value else { return Ok(Some(Value::Null)) };
    let moment = Moment::new(date(value)?, &zone);
    let civil = moment.civil;
    let parts = cx.document(|writer| {
        if iso {
            let (year, week) = moment.iso_week();
            writer.append("isoWeekYear", year as i32);
            writer.append("isoWeek", week as i32);
            writer.append("isoDayOfWeek", moment.iso_weekday() as i32);
        } else {
            writer.append("year", civil.year as i32);
            writer.append("month", civil.month as i32);
            writer.append("day", civil.day as i32);
        }
        writer.append("hour", civil.hour as i32);
        writer.append("minute", civil.minute as i32);
        writer.append("second", civil.second as i32);
        writer.append("millisecond", civil.millisecond as i32);
        Ok(())
    })?;
    Ok(Some(Value::Document(parts)))
}

const FROM: Fields = Fields {
    fields: &[
        Field::optional("year"),
        Field::optional("month"),
        Field::optional("day"),
        Field::optional("hour"),
        Field::optional("minute"),
        Field::optional("second"),
        Field::optional("millisecond"),
        Field::optional("isoWeekYear"),
        Field::optional("isoWeek"),
        Field::optional("isoDayOfWeek"),
        Field::optional("timezone"),
    ],
    not_object: 40519,
    unknown: 40518,
};

const ISO_YEAR: usize = 7;

fn check(call: &Call) -> Result<()> {
    let iso = (ISO_YEAR..ISO_YEAR + 3).any(|index| call.has(index));
    if call.has(0) && iso {
        let message = "$dateFromParts does not allow mixing natural dates with ISO dates";
        return Err(Error::location(40489, message));
    }
    if call.has(ISO_YEAR) && (call.has(1) || call.has(2)) {
        let message = "$dateFromParts does not allow mixing ISO dates with natural dates";
        return Err(Error::location(40525, message));
    }
    if !call.has(0) && !call.has(ISO_YEAR) {
        let message = "$dateFromParts requires either 'year' or 'isoWeekYear' to be present";
        return Err(Error::location(40516, message));
    }
    Ok(())
}

fn from_parts<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
    let null = Ok(Some(Value::Null));
    let iso = call.has(ISO_YEAR);
    let (year_at, month_at, day_at) = if iso { (ISO_YEAR, 8, 9) } else { (0, 1, 2) };
    let Some(hour) = bounded(call, 3, 0, cx)? else { return null };
    let Some(minute) = bounded(call, 4, 0, cx)? else { return null };
    let Some(second) = part(call, 5, 0, cx)? else { return null };
    let Some(millisecond) = part(call, 6, 0, cx)? else { return null };
    let Some(zone) = zone(call, 10, cx)? else { return null };
    let Some(year) = part(call, year_at, 1, cx)? else { return null };
    let Some(month) = bounded(call, month_at, 1, cx)? else { return null };
    let Some(day) = bounded(call, day_at, 1, cx)? else { return null };
    if !(1..=9999).contains(&year) {
        let message = format!(
            "'{}' must evaluate to an integer in the range 1 to 9999, found {year}",
            FROM.fields[year_at].name
        );
        return Err(Error::location(if iso { 31095 } else { 40523 }, message));
    }
    // mongod counts the milliseconds as microseconds.
    millisecond.checked_mul(1000).ok_or_else(does_not_fit)?;
    let days = match iso {
        true => iso_year_start(year) + (month - 1) * 7 + day - 1,
        false => days_carried(year, month, day),
    };
    let local = local_millis(days, [hour, minute, second, millisecond]);
    let date = zone.to_utc(local).ok_or_else(does_not_fit)?;
    Ok(Some(Value::Date(date)))
}

/// Evaluates an argument that must be an integer: the default if it was not given, `None` if it is
/// null or missing.
fn part<'a>(
    call: &'a Call,
    index: usize,
    default: i64,
    cx: &EvalContext<'a>,
) -> Result<Option<i64>> {
    let Some(argument) = call.arg(index) else { return Ok(Some(default)) };
    match argument.eval(cx)? {
        None | Some(Value::Null | Value::Undefined) => Ok(None),
        Some(value) => match whole(value) {
            Some(number) => Ok(Some(number)),
            None => {
                let message = format!(
                    "'{}' must evaluate to an integer, found {} with value {}",
                    FROM.fields[index].name,
                    value.type_name(),
                    text::value(value)
                );
                Err(Error::location(40515, message))
            }
        },
    }
}

/// Like `part`, for parts that must fit in 16 bits.
fn bounded<'a>(
    call: &'a Call,
    index: usize,
    default: i64,
    cx: &EvalContext<'a>,
) -> Result<Option<i64>> {
    let number = part(call, index, default, cx)?;
    match number {
        Some(number) if i16::try_from(number).is_err() => {
            let message = format!(
                "'{}' must evaluate to a value in the range [-32768, 32767]; value {number} is not in range",
                FROM.fields[index].name
            );
            Err(Error::location(31034, message))
        }
        number => Ok(number),
    }
}
