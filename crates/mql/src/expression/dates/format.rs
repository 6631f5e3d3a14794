//! Date formats: their specifiers, and parsing a text by a format.

use super::lenient::Reading;
use super::moment::{days_carried, days_in_month, iso_year_start};
use quire_error::{Error, Result};

/// The English names of the months.
pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// The specifiers of `$dateToString`.
pub(super) const TO_TEXT: &str = "%bBdGHjLmMSuUVwYzZ";
/// The specifiers of `$dateFromString`.
pub(super) const FROM_TEXT: &str = "%bBdGHjLmMSuVYzZ";

/// Checks a format. Fails with 18536 for an unknown specifier, and with 18535 for a percent sign at
/// its end.
pub(super) fn check(format: &str, known: &str) -> Result<()> {
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            continue;
        }
        match letters.next() {
            None => {
                let message = "Unmatched '%' at end of format string";
                return Err(Error::location(18535, message));
            }
            Some(specifier) if known.contains(specifier) => {}
            Some(specifier) => {
                let message = format!("Invalid format character '%{specifier}' in format string");
                return Err(Error::location(18536, message));
            }
        }
    }
    Ok(())
}

/// The parts of a date that were parsed by a format.
#[derive(Default)]
struct Found {
    year: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    day_of_year: Option<i64>,
    iso_year: Option<i64>,
    iso_week: Option<i64>,
    iso_day: Option<i64>,
    time: [i64; 4],
    offset_seconds: Option<i64>,
}

/// Parses a text by a format that was checked. The error is a message.
pub(super) fn read(text: &str, format: &str) -> Result<Reading, String> {
    let mut found = Found::default();
    let mut rest = text;
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        let specifier =
            if letter == '%' { letters.next().filter(|next| *next != '%') } else { None };
        match specifier {
            Some(specifier) => read_one(specifier, &mut rest, &mut found)?,
            None => {
                rest = rest
                    .strip_prefix(letter)
                    .ok_or_else(|| format!("Format literal not found \"{letter}\""))?;
            }
        }
    }
    if !rest.is_empty() {
        return Err(format!("Trailing data \"{rest}\""));
    }
    found.into_reading()
}

fn read_one(specifier: char, rest: &mut &str, found: &mut Found) -> Result<(), String> {
    match specifier {
        'Y' => found.year = Some(digits(rest, 4, "A four digit year could not be found")?),
        'G' => found.iso_year = Some(digits(rest, 4, "A four digit year could not be found")?),
        'm' => found.month = Some(digits(rest, 2, "A two digit month could not be found")?),
        'd' => found.day = Some(digits(rest, 2, "A two digit day could not be found")?),
        'j' => {
            found.day_of_year =
                Some(digits(rest, 3, "A three digit day-of-year could not be found")?)
        }
        'V' => found.iso_week = Some(digits(rest, 2, "A two digit week could not be found")?),
        'u' => found.iso_day = Some(digits(rest, 1, "A one digit day of week could not be found")?),
        'H' => found.time[0] = digits(rest, 2, "A two digit hour could not be found")?,
        'M' => found.time[1] = digits(rest, 2, "A two digit minute could not be found")?,
        'S' => found.time[2] = digits(rest, 2, "A two digit second could not be found")?,
        'L' => {
            let before = rest.len();
            let number = digits(rest, 3, "A three digit millisecond could not be found")?;
            let scale = [100, 10, 1].get(before - rest.len() - 1).copied().unwrap_or(1);
            found.time[3] = number * scale;
        }
        'b' | 'B' => {
            let letters = rest.chars().take_while(char::is_ascii_alphabetic).count();
            let (name, after) = rest.split_at(letters);
            found.month = Some(month(name).ok_or("A textual month could not be found")?);
            *rest = after;
        }
        'z' => {
            let (seconds, after) = super::lenient::offset_or_name(rest)
                .ok_or("The timezone could not be found in the database")?;
            found.offset_seconds = Some(seconds);
            *rest = after;
        }
        'Z' => {
            let negative = rest.starts_with('-');
            *rest = rest.strip_prefix(['+', '-']).unwrap_or(rest);
            let minutes = digits(rest, 4, "An offset in minutes could not be found")?;
            found.offset_seconds = Some(if negative { -minutes } else { minutes } * 60);
        }
        _ => {}
    }
    Ok(())
}

/// Parses at most `most` digits. The error is `message` if there are none.
fn digits(rest: &mut &str, most: usize, message: &str) -> Result<i64, String> {
    let count = rest.bytes().take(most).take_while(u8::is_ascii_digit).count();
    let (number, after) = rest.split_at(count);
    let number = number.parse().map_err(|_| message.to_owned())?;
    *rest = after;
    Ok(number)
}

/// Returns the number of a month, by its name or its first three letters.
pub(super) fn month(name: &str) -> Option<i64> {
    let lower = name.to_ascii_lowercase();
    let known = MONTHS.iter().map(|month| month.to_ascii_lowercase());
    let at = known
        .into_iter()
        .position(|month| month == lower || (lower.len() == 3 && month.starts_with(&lower)));
    at.map(|at| at as i64 + 1).or(if lower == "sept" { Some(9) } else { None })
}

impl Found {
    fn into_reading(self) -> Result<Reading, String> {
        let iso = self.iso_year.is_some() || self.iso_week.is_some() || self.iso_day.is_some();
        let days = if iso {
            if self.year.is_some() || self.month.is_some() || self.day.is_some() {
                return Err("Mixing of ISO dates with natural dates is not allowed".to_owned());
            }
            let year = self.iso_year.ok_or("The ISO year is missing")?;
            iso_year_start(year) + (self.iso_week.unwrap_or(1) - 1) * 7 + self.iso_day.unwrap_or(1)
                - 1
        } else {
            let year = self
                .year
                .ok_or("an incomplete date/time string has been found, with elements missing")?;
            match self.day_of_year {
                // The day of the year counts from 0, as in mongod's date library.
                Some(day) => days_carried(year, 1, day + 1),
                None => {
                    let (month, day) = (self.month.unwrap_or(1), self.day.unwrap_or(1));
                    check_date(year, month, day)?;
                    days_carried(year, month, day)
                }
            }
        };
        let [hour, minute, second, _] = self.time;
        if hour > 23 || minute > 59 || second > 59 {
            return Err("The parsed time was invalid".to_owned());
        }
        Ok(Reading { days, time: self.time, offset_seconds: self.offset_seconds })
    }
}

/// Fails for a month or day that does not exist.
pub(super) fn check_date(year: i64, month: i64, day: i64) -> Result<(), String> {
    if (1..=12).contains(&month) && (1..=days_in_month(year, month)).contains(&day) {
        return Ok(());
    }
    Err("The parsed date was invalid".to_owned())
}
