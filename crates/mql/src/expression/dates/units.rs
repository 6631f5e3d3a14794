//! Units of time and weekdays, by their names.

use crate::text;
use quire_document::Value;
use quire_error::{Error, Result};

/// A unit of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A year of twelve months.
    Year,
    /// A quarter of three months.
    Quarter,
    /// A calendar month.
    Month,
    /// A week of seven days.
    Week,
    /// A calendar day.
    Day,
    /// An hour of sixty minutes.
    Hour,
    /// A minute of sixty seconds.
    Minute,
    /// A second of 1,000 milliseconds.
    Second,
    /// A millisecond, the unit of dates.
    Millisecond,
}

impl Unit {
    /// Parses the name of a unit. Fails with 5439013 for a value that is not a string, and with 9
    /// FailedToParse for an unknown name.
    pub(super) fn parse(operator: &str, value: Value<'_>) -> Result<Unit> {
        let Value::String(name) = value else {
            let message =
                format!("{operator} requires 'unit' to be a string, but got {}", value.type_name());
            return Err(Error::location(5439013, message));
        };
        Unit::by_name(name).ok_or_else(|| {
            Error::failed_to_parse(format!(
                "{operator} parameter 'unit' value cannot be recognized as a time unit: {name}"
            ))
        })
    }

    /// Returns the unit with this name.
    pub(crate) fn by_name(name: &str) -> Option<Unit> {
        ALL.iter().find(|(known, _)| *known == name).map(|(_, unit)| *unit)
    }

    /// Returns the name of the unit.
    pub fn name(self) -> &'static str {
        ALL.iter().find(|(_, unit)| *unit == self).map_or("", |(name, _)| name)
    }

    /// Returns the length in milliseconds; `None` for units of varying length.
    pub(crate) fn millis(self) -> Option<i64> {
        match self {
            Unit::Week => Some(7 * 86_400_000),
            Unit::Day => Some(86_400_000),
            Unit::Hour => Some(3_600_000),
            Unit::Minute => Some(60_000),
            Unit::Second => Some(1000),
            Unit::Millisecond => Some(1),
            Unit::Year | Unit::Quarter | Unit::Month => None,
        }
    }

    /// Returns the number of months; `None` for units shorter than a month.
    pub(super) fn months(self) -> Option<i64> {
        match self {
            Unit::Year => Some(12),
            Unit::Quarter => Some(3),
            Unit::Month => Some(1),
            _ => None,
        }
    }
}

/// All units with their names.
const ALL: [(&str, Unit); 9] = [
    ("year", Unit::Year),
    ("quarter", Unit::Quarter),
    ("month", Unit::Month),
    ("week", Unit::Week),
    ("day", Unit::Day),
    ("hour", Unit::Hour),
    ("minute", Unit::Minute),
    ("second", Unit::Second),
    ("millisecond", Unit::Millisecond),
];

/// Parses the name of a weekday, or its first three letters, to 1 for Monday to 7 for Sunday. Fails
/// with 5439015 for a value that is not a string, and with 5439016 for an unknown name.
pub(super) fn parse_weekday(operator: &str, value: Value<'_>) -> Result<i64> {
    let Value::String(name) = value else {
        let message = format!(
            "{operator} requires 'startOfWeek' to be a string, but got {}",
            value.type_name()
        );
        return Err(Error::location(5439015, message));
    };
    const DAYS: [&str; 7] =
        ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
    let lower = name.to_ascii_lowercase();
    let found = DAYS.iter().position(|day| *day == lower || day.get(..3) == Some(lower.as_str()));
    match found {
        Some(at) => Ok(at as i64 + 1),
        None => {
            let shown = text::value(value);
            let message = format!(
                "{operator} parameter 'startOfWeek' value cannot be recognized as a day of a week: {shown}"
            );
            Err(Error::location(5439016, message))
        }
    }
}
