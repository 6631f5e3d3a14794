//! `$dateToString`.

use super::arguments::{date, format, on_null, present, zone};
use super::format::{self, MONTHS};
use super::moment::Moment;
use crate::context::{EvalContext, Shared};
use crate::expression::operator::{Arity, Call, Field, Fields, Operator};
use quire_document::Value;
use quire_error::{Error, Result};
use std::fmt::Write as _;

/// The registry rows of this family.
pub(in crate::expression) const OPERATORS: &[Operator] =
    &[Operator::function("$dateToString", Arity::Named(&FIELDS), run)
        .doc("The text of a date by a format, in a time zone.")
        .since("3.0")];

const FIELDS: Fields = Fields {
    fields: &[
        Field::required("date", 18628),
        Field::optional("format"),
        Field::optional("timezone"),
        Field::optional("onNull"),
    ],
    not_object: 18629,
    unknown: 18534,
};

fn run<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
    let value = present(call, 0, cx)?;
    let format = format(call, 1, cx, format::TO_TEXT, 18533)?;
    let zone = zone(call, 2, cx)?;
    let Some(value) = value else { return on_null(call, 3, cx) };
    let Some(zone) = zone else { return Ok(Some(Value::Null)) };
    let format = match (call.has(1), format) {
        (true, Some(format)) => format,
        (true, None) => return Ok(Some(Value::Null)),
        (false, _) if zone.is_utc() => "%Y-%m-%dT%H:%M:%S.%LZ",
        (false, _) => "%Y-%m-%dT%H:%M:%S.%L",
    };
    let moment = Moment::new(date(value)?, &zone);
    cx.string(&write(&moment, format, cx.shared)?).map(Some)
}

/// Returns the text of a moment in a format that was checked.
fn write(moment: &Moment, format: &str, shared: &Shared) -> Result<String> {
    let mut out = String::with_capacity(format.len() + 16);
    let mut rest = format.chars();
    while let Some(letter) = rest.next() {
        match (letter, rest.as_str().chars().next()) {
            ('%', Some(specifier)) => {
                rest.next();
                shared.work(8)?;
                append(moment, specifier, &mut out)?;
            }
            _ => out.push(letter),
        }
    }
    Ok(out)
}

fn append(moment: &Moment, specifier: char, out: &mut String) -> Result<()> {
    let civil = moment.civil;
    // Writing to a string cannot fail.
    let _ = match specifier {
        '%' => write!(out, "%"),
        'Y' => write!(out, "{:04}", four_digits(civil.year)?),
        'm' => write!(out, "{:02}", civil.month),
        'd' => write!(out, "{:02}", civil.day),
        'H' => write!(out, "{:02}", civil.hour),
        'M' => write!(out, "{:02}", civil.minute),
        'S' => write!(out, "{:02}", civil.second),
        'L' => write!(out, "{:03}", civil.millisecond),
        'j' => write!(out, "{:03}", moment.day_of_year()),
        'w' => write!(out, "{}", moment.weekday() + 1),
        'u' => write!(out, "{}", moment.iso_weekday()),
        'U' => write!(out, "{:02}", moment.week()),
        'V' => write!(out, "{:02}", moment.iso_week().1),
        'G' => write!(out, "{:04}", four_digits(moment.iso_week().0)?),
        'b' => write!(out, "{}", month_name(civil.month).get(..3).unwrap_or_default()),
        'B' => write!(out, "{}", month_name(civil.month)),
        'z' => {
            let minutes = moment.offset.abs() / 60;
            let sign = if moment.offset < 0 { '-' } else { '+' };
            write!(out, "{sign}{:02}{:02}", minutes / 60, minutes % 60)
        }
        'Z' => write!(out, "{}", moment.offset / 60),
        _ => Ok(()),
    };
    Ok(())
}

/// Fails with 18537 for a year that does not have at most four digits.
fn four_digits(year: i64) -> Result<i64> {
    if (0..=9999).contains(&year) {
        return Ok(year);
    }
    let message = format!(
        "Could not convert date to string: date component was outside the supported range of 0-9999: {year}"
    );
    Err(Error::location(18537, message))
}

fn month_name(month: u32) -> &'static str {
    MONTHS.get(month as usize - 1).copied().unwrap_or_default()
}
