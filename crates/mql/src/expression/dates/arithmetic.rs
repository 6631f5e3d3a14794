//! `$dateAdd`, `$dateSubtract`, `$dateDiff`, `$dateTrunc`.

use super::arguments::{does_not_fit, millis, present, type_name, whole, zone};
use super::moment::{Moment, days_carried, days_in_month, local_millis};
use super::units::{Unit, parse_weekday};
use super::zone::Zone;
use crate::column::Column;
use crate::context::EvalContext;
use crate::expression::batch::Batch;
use crate::expression::operator::{Arity, Call, Field, Fields, Operator};
use crate::expression::tree::Expression;
use crate::text;
use quire_document::Value;
use quire_document::calendar::DAY_MS;
use quire_error::{Error, Result};

/// The registry rows of this family.
pub(in crate::expression) const OPERATORS: &[Operator] = &[
    Operator::function("$dateAdd", Arity::Named(&ADD), |call, cx| add(call, cx, 1))
        .doc("A date plus a number of time units.")
        .since("5.0"),
    Operator::function("$dateSubtract", Arity::Named(&ADD), |call, cx| add(call, cx, -1))
        .doc("A date minus a number of time units.")
        .since("5.0"),
    Operator::function("$dateDiff", Arity::Named(&DIFF), difference)
        .doc("The number of boundaries of a time unit between two dates.")
        .since("5.0"),
    Operator::function("$dateTrunc", Arity::Named(&TRUNC), truncate)
        .columns(truncate_column)
        .doc("A date truncated to a time unit.")
        .since("5.0"),
];

const ADD: Fields = Fields {
    fields: &[
        Field::required("startDate", 5166402),
        Field::required("unit", 5166402),
        Field::required("amount", 5166402),
        Field::optional("timezone"),
    ],
    not_object: 5166400,
    unknown: 5166401,
};

/// Returns the largest amount of a unit that may be added. It exceeds the range of dates.
fn amount_max(unit: Unit) -> i64 {
    const YEARS: i64 = 584_942_417;
    match unit {
        Unit::Year => YEARS,
        Unit::Quarter => YEARS * 4,
        Unit::Month => YEARS * 12,
        unit => i64::MAX / unit.millis().unwrap_or(1) * 2 + 1,
    }
}

fn add<'a>(call: &'a Call, cx: &EvalContext<'a>, sign: i64) -> Result<Option<Value<'a>>> {
    let name = call.name();
    let null = Ok(Some(Value::Null));
    let Some(start) = present(call, 0, cx)? else { return null };
    let Some(unit) = present(call, 1, cx)? else { return null };
    let unit = Unit::parse(name, unit)?;
    let Some(amount) = present(call, 2, cx)? else { return null };
    let Some(zone) = zone(call, 3, cx)? else { return null };
    let Some(start) = millis(start) else {
        let message = format!("{name} requires startDate to be convertible to a date");
        return Err(Error::location(5166403, message));
    };
    let Some(amount) = whole(amount) else {
        return Err(Error::location(
            5166405,
            format!("{name} expects integer amount of time units"),
        ));
    };
    let overflow = || Error::location(5166406, format!("{name} overflowed"));
    if unit != Unit::Millisecond && amount.unsigned_abs() > amount_max(unit) as u64 {
        let message = format!("invalid {name} 'amount' parameter value: {amount}");
        return Err(Error::location(5976500, message));
    }
    let Some(amount) = amount.checked_mul(sign) else {
        let message = format!("invalid {name} 'amount' parameter value: {amount}");
        return Err(Error::location(6045000, message));
    };
    shifted(start, unit, amount, &zone).map(|date| Some(Value::Date(date))).ok_or_else(overflow)
}

/// Returns a date moved by an amount of a unit in UTC; `None` if it is out of range.
pub(crate) fn moved_date(start: i64, unit: Unit, amount: i64) -> Option<i64> {
    let is_huge = unit != Unit::Millisecond && amount.unsigned_abs() > amount_max(unit) as u64;
    if is_huge { None } else { shifted(start, unit, amount, &Zone::Utc) }
}

/// Returns a date moved by an amount of a unit. Days and longer units follow the calendar, shorter
/// ones the clock.
fn shifted(start: i64, unit: Unit, amount: i64, zone: &Zone) -> Option<i64> {
    let length = match unit {
        Unit::Year | Unit::Quarter | Unit::Month | Unit::Week | Unit::Day => None,
        unit => unit.millis(),
    };
    if let Some(length) = length {
        return start.checked_add(amount.checked_mul(length)?);
    }
    let moment = Moment::new(start, zone);
    let civil = moment.civil;
    let days = match unit.months() {
        Some(months) => {
            let month = i64::from(civil.month).checked_add(amount.checked_mul(months)?)?;
            let last = days_in_month(civil.year, month);
            days_carried(civil.year, month, i64::from(civil.day).min(last))
        }
        None => moment.days.checked_add(amount.checked_mul(unit.millis()? / DAY_MS)?)?,
    };
    let time = [civil.hour, civil.minute, civil.second, civil.millisecond];
    zone.to_utc(local_millis(days, time.map(i64::from)))
}

const DIFF: Fields = Fields {
    fields: &[
        Field::required("startDate", 5166303),
        Field::required("endDate", 5166304),
        Field::required("unit", 5166305),
        Field::optional("timezone"),
        Field::optional("startOfWeek"),
    ],
    not_object: 5166301,
    unknown: 5166302,
};

fn required_date(name: &str, field: &str, value: Value<'_>) -> Result<i64> {
    millis(value).ok_or_else(|| {
        let kind = type_name(Some(value));
        Error::location(5166307, format!("{name} requires '{field}' to be a date, but got {kind}"))
    })
}

/// Evaluates the first day of the week: Sunday if it was not given, `None` if it is null or
/// missing.
fn start_of_week<'a>(
    call: &'a Call,
    index: usize,
    unit: Unit,
    cx: &EvalContext<'a>,
) -> Result<Option<i64>> {
    if unit != Unit::Week || !call.has(index) {
        return Ok(Some(7));
    }
    match present(call, index, cx)? {
        Some(day) => parse_weekday(call.name(), day).map(Some),
        None => Ok(None),
    }
}

fn difference<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
    let name = call.name();
    let null = Ok(Some(Value::Null));
    let Some(start) = present(call, 0, cx)? else { return null };
    let Some(end) = present(call, 1, cx)? else { return null };
    let Some(unit) = present(call, 2, cx)? else { return null };
    let unit = Unit::parse(name, unit)?;
    let Some(first_day) = start_of_week(call, 4, unit, cx)? else { return null };
    let Some(zone) = zone(call, 3, cx)? else { return null };
    let start = required_date(name, "startDate", start)?;
    let end = required_date(name, "endDate", end)?;
    if unit == Unit::Millisecond {
        let overflow = || Error::location(5166308, "$dateDiff overflowed");
        return end.checked_sub(start).map(|diff| Some(Value::Int64(diff))).ok_or_else(overflow);
    }
    Ok(Some(Value::Int64(boundaries(start, end, unit, first_day, &zone))))
}

/// Counts the unit boundaries between two dates, for units longer than a millisecond, so that the
/// count cannot overflow.
fn boundaries(start: i64, end: i64, unit: Unit, first_day: i64, zone: &Zone) -> i64 {
    let (first, last) = (Moment::new(start, zone), Moment::new(end, zone));
    let months = |moment: &Moment| moment.civil.year * 12 + i64::from(moment.civil.month) - 1;
    if let Some(length) = unit.months() {
        return months(&last).div_euclid(length) - months(&first).div_euclid(length);
    }
    let week = |moment: &Moment| (moment.days + 4 - first_day).div_euclid(7);
    match unit {
        Unit::Week => week(&last) - week(&first),
        Unit::Day => last.days - first.days,
        unit => {
            let length = unit.millis().unwrap_or(1);
            let local = |millis: i64, moment: &Moment| {
                // Divides into whole units and a remainder, because the local time may be out of
                // the range of dates.
                let (whole, rest) = (millis.div_euclid(length), millis.rem_euclid(length));
                whole + (rest + moment.offset * 1000).div_euclid(length)
            };
            // Changes of the zone's offset between the two dates are not counted.
            let moved = (last.offset - first.offset) * 1000 / length;
            local(end, &last) - local(start, &first) - moved
        }
    }
}

const TRUNC: Fields = Fields {
    fields: &[
        Field::required("date", 5439009),
        Field::required("unit", 5439010),
        Field::optional("binSize"),
        Field::optional("timezone"),
        Field::optional("startOfWeek"),
    ],
    not_object: 5439007,
    unknown: 5439008,
};

/// How `$dateTrunc` truncates.
struct Bins {
    unit: Unit,
    size: i64,
    first_day: i64,
    zone: Zone,
}

fn truncate<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
    let null = Ok(Some(Value::Null));
    let Some(date) = present(call, 0, cx)? else { return null };
    let Some(bins) = bins(call, cx)? else { return null };
    let date = required_date(call.name(), "date", date)?;
    truncated(date, &bins).map(|date| Some(Value::Date(date)))
}

/// Truncates a column of dates, for which the other arguments are evaluated once.
fn truncate_column<'a>(
    call: &'a Call,
    batch: &'a Batch<'a>,
    cx: &EvalContext<'a>,
) -> Result<Option<Column<'a>>> {
    let Some(date) = call.arg(0) else { return Ok(None) };
    if (1..5).any(|at| call.arg(at).is_some_and(|argument| !argument.is_constant())) {
        return Ok(None);
    }
    let dates = date.columns(batch, cx)?;
    let Column::Date(dates) = &*dates else { return Ok(None) };
    let Some(bins) = bins(call, cx)? else { return Ok(None) };
    let mut bin = Bin { start: i64::MAX, end: i64::MIN };
    let start = |date: &i64| {
        if !bin.has(*date) {
            bin = Bin::of(*date, &bins)?;
        }
        Ok(bin.start)
    };
    Ok(Some(Column::Date(dates.iter().map(start).collect::<Result<_>>()?)))
}

/// Dates that are truncated to the same date: those from `start` on that are before `end`. Most columns of dates are
/// sorted, so that many dates after one another are in one bin.
struct Bin {
    start: i64,
    /// At most the end of the bin.
    end: i64,
}

impl Bin {
    /// Returns the bin of a date.
    fn of(date: i64, bins: &Bins) -> Result<Self> {
        let start = truncated(date, bins)?;
        let end = least_length(bins).and_then(|length| start.checked_add(length));
        Ok(Bin { start, end: end.unwrap_or(start) })
    }

    fn has(&self, date: i64) -> bool {
        self.start <= date && date < self.end
    }
}

/// Returns a number of milliseconds that no bin is shorter than; `None` if there is none, or if it does not fit.
fn least_length(bins: &Bins) -> Option<i64> {
    const DAYS_OF_MONTH_MIN: i64 = 28;
    let Bins { unit, size, ref zone, .. } = *bins;
    let is_of_days = matches!(unit, Unit::Week | Unit::Day) || unit.months().is_some();
    if is_of_days && matches!(zone, Zone::Named(..)) {
        return None;
    }
    match (unit.months(), unit.millis()) {
        (Some(months), _) => months.checked_mul(DAYS_OF_MONTH_MIN)?.checked_mul(86_400_000),
        (None, length) => length,
    }?
    .checked_mul(size)
}

/// Returns the bins of the arguments besides the date; `None` if one of them is null.
fn bins<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<Option<Bins>> {
    let size = match call.has(2) {
        false => 1,
        true => match present(call, 2, cx)? {
            Some(size) => bin_size(size)?,
            None => return Ok(None),
        },
    };
    let Some(unit) = present(call, 1, cx)? else { return Ok(None) };
    let unit = Unit::parse(call.name(), unit)?;
    let Some(first_day) = start_of_week(call, 4, unit, cx)? else { return Ok(None) };
    // For other units it only matters whether it is null, and only if the date is not a constant.
    let constant = call.arg(0).is_none_or(Expression::is_constant);
    if unit != Unit::Week && !constant && call.has(4) && present(call, 4, cx)?.is_none() {
        return Ok(None);
    }
    let zone = zone(call, 3, cx)?;
    Ok(zone.map(|zone| Bins { unit, size, first_day, zone }))
}

fn bin_size(value: Value<'_>) -> Result<i64> {
    let Some(size) = whole(value) else {
        let message = format!(
            "$dateTrunc requires 'binSize' to be a 64-bit integer, but got value '{}' of type {}",
            text::value(value),
            value.type_name()
        );
        return Err(Error::location(5439017, message));
    };
    if size <= 0 {
        let message =
            format!("$dateTrunc requires 'binSize' to be greater than 0, but got value {size}");
        return Err(Error::location(5439018, message));
    }
    Ok(size)
}

/// Truncates a date to the start of its bin. Bins are counted from the beginning of 2000; weeks
/// from the first `first_day` of 2000.
fn truncated(date: i64, bins: &Bins) -> Result<i64> {
    let Bins { unit, size, first_day, ref zone } = *bins;
    const BIN_MAX: i64 = 100_000_000_000;
    let too_large = |code| Error::location(code, "$dateTrunc unsupported binSize value: too large");
    let start_2000 = days_carried(2000, 1, 1);
    if let Some(months) = unit.months() {
        if size > BIN_MAX {
            return Err(too_large(5439006));
        }
        let moment = Moment::new(date, zone);
        let length = size * months;
        let since = (moment.civil.year - 2000) * 12 + i64::from(moment.civil.month) - 1;
        let days = days_carried(2000, since.div_euclid(length) * length + 1, 1);
        return zone.to_utc(local_millis(days, [0; 4])).ok_or_else(does_not_fit);
    }
    match unit {
        Unit::Week | Unit::Day => {
            if size > BIN_MAX {
                return Err(too_large(5439005));
            }
            let (length, reference) = match unit {
                Unit::Week => {
                    let weekday = (start_2000 + 3).rem_euclid(7) + 1;
                    (size * 7, start_2000 + (first_day - weekday).rem_euclid(7))
                }
                _ => (size, start_2000),
            };
            let days =
                (Moment::new(date, zone).days - reference).div_euclid(length) * length + reference;
            zone.to_utc(local_millis(days, [0; 4])).ok_or_else(does_not_fit)
        }
        unit => {
            let length = unit.millis().unwrap_or(1).checked_mul(size);
            let length = length.ok_or_else(|| too_large(5439002))?;
            let overflow = |code| Error::location(code, "$dateTrunc overflowed");
            let reference = zone.to_utc(local_millis(start_2000, [0; 4]));
            let since = reference.and_then(|reference| date.checked_sub(reference));
            let since = since.ok_or_else(|| overflow(5439000))?;
            date.checked_sub(since.rem_euclid(length)).ok_or_else(|| overflow(5439001))
        }
    }
}
