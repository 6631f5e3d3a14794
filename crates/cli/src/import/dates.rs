//! Converts the three kinds of date formats in mongoimport's columns to strptime's: Go's reference
//! date, Microsoft SQL Server's letters, Oracle's letters.

use jiff::civil::DateTime;
use jiff::fmt::strtime;
use jiff::tz::TimeZone;

/// A format of dates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DateFormat {
    format: String,
}

/// Pieces of a format with their strptime names; a longer piece precedes its prefixes.
type Words = &'static [(&'static str, &'static str)];

const GO: Words = &[
    ("January", "%B"),
    ("Monday", "%A"),
    ("-07:00", "%:z"),
    ("Z07:00", "%:z"),
    ("-0700", "%z"),
    ("2006", "%Y"),
    (".000", "%.f"),
    ("Jan", "%b"),
    ("Mon", "%a"),
    ("01", "%m"),
    ("02", "%d"),
    ("15", "%H"),
    ("03", "%I"),
    ("04", "%M"),
    ("05", "%S"),
    ("06", "%y"),
    ("PM", "%p"),
    ("_2", "%e"),
    ("1", "%m"),
    ("2", "%d"),
    ("3", "%I"),
    ("4", "%M"),
    ("5", "%S"),
];
const MICROSOFT: Words = &[
    ("yyyy", "%Y"),
    ("MMMM", "%B"),
    ("dddd", "%A"),
    (".fff", "%.f"),
    ("MMM", "%b"),
    ("ddd", "%a"),
    ("zzz", "%:z"),
    ("yy", "%y"),
    ("MM", "%m"),
    ("dd", "%d"),
    ("HH", "%H"),
    ("hh", "%I"),
    ("mm", "%M"),
    ("ss", "%S"),
    ("tt", "%p"),
    ("M", "%m"),
    ("d", "%d"),
    ("H", "%H"),
    ("h", "%I"),
    ("m", "%M"),
    ("s", "%S"),
];
const ORACLE: Words = &[
    ("MONTH", "%B"),
    ("HH24", "%H"),
    ("HH12", "%I"),
    ("YYYY", "%Y"),
    ("MON", "%b"),
    ("DAY", "%A"),
    ("TZH:TZM", "%:z"),
    (".FF3", "%.f"),
    ("DY", "%a"),
    ("YY", "%y"),
    ("MM", "%m"),
    ("DD", "%d"),
    ("HH", "%I"),
    ("MI", "%M"),
    ("SS", "%S"),
    ("AM", "%p"),
    ("PM", "%p"),
];

impl DateFormat {
    /// Parses `date(2006-01-02)`, `date_go(...)`, `date_ms(yyyy-MM-dd)` or
    /// `date_oracle(YYYY-MM-DD)`.
    pub(crate) fn parse(kind: &str, argument: &str) -> Option<DateFormat> {
        let words = match kind {
            "date" | "date_go" => GO,
            "date_ms" => MICROSOFT,
            "date_oracle" => ORACLE,
            _ => return None,
        };
        let mut format = String::new();
        let mut rest = argument;
        while let Some(first) = rest.chars().next() {
            match words.iter().find(|(word, _)| rest.starts_with(word)) {
                Some((word, strptime)) => {
                    format.push_str(strptime);
                    rest = &rest[word.len()..];
                }
                None => {
                    format.push_str(if first == '%' { "%" } else { "" });
                    format.push(first);
                    rest = &rest[first.len_utf8()..];
                }
            }
        }
        Some(DateFormat { format }).filter(|format| format.format.contains('%'))
    }

    /// Returns the milliseconds since 1970; without a time zone in UTC, without a time at midnight.
    pub(crate) fn millis(&self, text: &str) -> Option<i64> {
        let parsed = strtime::parse(&self.format, text).ok()?;
        if parsed.offset().is_some() {
            return Some(parsed.to_timestamp().ok()?.as_millisecond());
        }
        let at: DateTime = match parsed.to_datetime() {
            Ok(at) => at,
            Err(_) => parsed.to_date().ok()?.to_datetime(jiff::civil::Time::midnight()),
        };
        Some(at.to_zoned(TimeZone::UTC).ok()?.timestamp().as_millisecond())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_ways_to_describe_a_date() {
        for (kind, format, text) in [
            ("date", "2006-01-02T15:04:05Z07:00", "2025-01-15T10:30:00+02:00"),
            ("date", "Jan 2, 2006 3:04PM", "Jan 15, 2025 8:30AM"),
            ("date_go", "02.01.2006 15:04", "15.01.2025 08:30"),
            ("date_ms", "dd/MM/yyyy HH:mm:ss", "15/01/2025 08:30:00"),
            ("date_oracle", "DD-MON-YYYY HH24:MI:SS", "15-Jan-2025 08:30:00"),
        ] {
            let found = DateFormat::parse(kind, format).unwrap().millis(text);
            assert_eq!(found, Some(1_736_929_800_000), "{format}");
        }
        let day = DateFormat::parse("date", "2006-01-02").unwrap();
        assert_eq!(day.millis("1970-01-02"), Some(86_400_000));
        for text in ["1970-02-30", "1970-01-02 ", "", "yesterday"] {
            assert_eq!(day.millis(text), None, "{text}");
        }
        assert_eq!(DateFormat::parse("date", ""), None);
        assert_eq!(DateFormat::parse("time", "2006"), None);
    }
}
