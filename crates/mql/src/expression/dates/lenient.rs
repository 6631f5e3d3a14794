//! Parses dates without a format: ISO 8601 and other common notations.

use super::format::{check_date, month};
use super::moment::{days_carried, iso_year_start, local_millis};
use super::zone::Zone;

/// A parsed date in local time, and the offset in the text.
#[derive(Debug)]
pub(super) struct Reading {
    /// Days since 1970-01-01.
    pub(super) days: i64,
    /// Hour, minute, second, millisecond.
    pub(super) time: [i64; 4],
    /// Seconds east of UTC, if the text has an offset or the name of one.
    pub(super) offset_seconds: Option<i64>,
}

impl Reading {
    /// Returns milliseconds since the epoch; `default` is the zone of a text without an offset.
    pub(super) fn millis(&self, default: &Zone) -> Option<i64> {
        let local = local_millis(self.days, self.time);
        match self.offset_seconds {
            Some(seconds) => Zone::Fixed(seconds).to_utc(local),
            None => default.to_utc(local),
        }
    }
}

/// Parses a text such as `2025-01-15T08:30:00Z` to milliseconds since the epoch. The error is a
/// message.
pub(crate) fn parse_text(text: &str) -> Result<i64, String> {
    let reading = read(text)?;
    reading.millis(&Zone::Utc).ok_or_else(|| "The date does not fit".to_owned())
}

/// The parts of a date that were parsed so far.
#[derive(Default)]
struct Parts {
    date: Option<(i64, i64, i64)>,
    days: Option<i64>,
    year: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    time: Option<[i64; 4]>,
    afternoon: Option<bool>,
    offset_seconds: Option<i64>,
}

/// Returns true for characters that may surround a date. Outside ASCII that is only the no-break
/// space.
fn is_blank(letter: char) -> bool {
    letter.is_ascii_whitespace() || matches!(letter, '\0' | '\u{a0}')
}

/// Parses a text. The error is a message.
pub(super) fn read(text: &str) -> Result<Reading, String> {
    let mut parts = Parts::default();
    let mut rest = text.trim_matches(is_blank);
    if rest.is_empty() {
        return Err("Empty string".to_owned());
    }
    let first = epoch_seconds(rest, &mut parts).or_else(|| early_date(rest, &mut parts));
    if let Some(after) = first {
        rest = after;
    }
    while !rest.is_empty() {
        let after = counted_date(rest, &mut parts)
            .or_else(|| date(rest, &mut parts))
            .or_else(|| time(rest, &mut parts))
            .or_else(|| zone(rest, &mut parts))
            .or_else(|| word(rest, &mut parts))
            .or_else(|| number(rest, &mut parts));
        let Some(after) = after else {
            let found: String = rest.chars().take(1).collect();
            return Err(format!("Unexpected character \"{found}\""));
        };
        rest = after.trim_start_matches([' ', ',', '\t']);
    }
    parts.into_reading()
}

impl Parts {
    fn into_reading(self) -> Result<Reading, String> {
        let incomplete =
            || "an incomplete date/time string has been found, with elements missing".to_owned();
        let days = match (self.days, self.date) {
            (Some(days), _) => days,
            (None, date) => {
                let given = || Some((self.year?, self.month?, self.day.unwrap_or(1)));
                let (year, month, day) = date.or_else(given).ok_or_else(incomplete)?;
                check_date(year, month, day)?;
                days_carried(year, month, day)
            }
        };
        let mut time = self.time.unwrap_or_default();
        if let Some(afternoon) = self.afternoon {
            time[0] = time[0] % 12 + if afternoon { 12 } else { 0 };
        }
        Ok(Reading { days, time, offset_seconds: self.offset_seconds })
    }

    fn set_date(&mut self, year: i64, month: i64, day: i64) -> Option<()> {
        if self.date.is_some() {
            return None;
        }
        self.date = Some((year, month, day));
        Some(())
    }
}

/// Splits off at least `count.0` and at most `count.1` digits.
fn digits(text: &str, count: (usize, usize)) -> Option<(i64, &str)> {
    let found = text.bytes().take_while(u8::is_ascii_digit).count();
    if found < count.0 || found > count.1 {
        return None;
    }
    let (number, rest) = text.split_at(found);
    Some((number.parse().ok()?, rest))
}

/// Parses `@86400` and `@-1.5`: seconds since the epoch, only at the beginning of the text.
fn epoch_seconds<'t>(text: &'t str, parts: &mut Parts) -> Option<&'t str> {
    let rest = text.strip_prefix('@')?;
    let (sign, rest) = rest.strip_prefix('-').map_or((1, rest), |rest| (-1, rest));
    let (seconds, mut rest) = digits(rest, (1, 18))?;
    let mut millis = 0;
    if let Some(after) = rest.strip_prefix('.') {
        (millis, rest) = fraction(after)?;
    }
    parts.set_date(1970, 1, 1)?;
    parts.time = Some([0, 0, sign * seconds, sign * millis]);
    parts.offset_seconds = Some(0);
    Some(rest)
}

/// Splits off a fraction of a second, in milliseconds.
fn fraction(text: &str) -> Option<(i64, &str)> {
    let count = text.bytes().take_while(u8::is_ascii_digit).count();
    let (fraction, rest) = text.split_at(count);
    let padded = format!("{fraction:0<3}");
    Some((padded.get(..3)?.parse().ok()?, rest))
}

/// Parses `-2025-01-15`: a year before 0, only at the beginning of the text.
fn early_date<'t>(text: &'t str, parts: &mut Parts) -> Option<&'t str> {
    let (year, rest) = digits(text.strip_prefix('-')?, (4, 4))?;
    let (month, rest) = digits(rest.strip_prefix('-')?, (2, 2))?;
    let (day, rest) = digits(rest.strip_prefix('-')?, (2, 2))?;
    parts.set_date(-year, month, day)?;
    Some(after_date(rest))
}

/// Parses `2025W034`, `2025-W03-4`, `2025015`, `2025-015`: a day given by its week or its number in
/// the year.
fn counted_date<'t>(text: &'t str, parts: &mut Parts) -> Option<&'t str> {
    let (year, rest) = text.split_at_checked(4)?;
    let (year, _) = digits(year, (4, 4))?;
    let plain = rest.strip_prefix('-').unwrap_or(rest);
    if let Some((day, rest)) = digits(plain, (3, 3)).filter(|(day, _)| (1..=366).contains(day)) {
        parts.days = Some(days_carried(year, 1, day));
        return Some(after_date(rest));
    }
    let (week, rest) = plain.strip_prefix('W')?.split_at_checked(2)?;
    let (week, _) = digits(week, (2, 2))?;
    let (day, rest) = digits(rest.strip_prefix('-').unwrap_or(rest), (1, 1)).unwrap_or((1, rest));
    parts.days = Some(iso_year_start(year) + (week - 1) * 7 + day - 1);
    Some(after_date(rest))
}

/// Returns the year of two digits: 70 to 99 are in the last century.
fn full_year(year: i64) -> i64 {
    if year < 70 { 2000 + year } else { 1900 + year }
}

/// Parses `2025-01-15`, `2025/01/15`, `20250115`, `2025-Jan-15`, `01/15/2025`, `1/15/25`,
/// `25-01-15`, `15-01-2025`, `15.01.2025`, `15-Jan-2025`.
fn date<'t>(text: &'t str, parts: &mut Parts) -> Option<&'t str> {
    if let Some((number, rest)) = digits(text, (8, 8)) {
        parts.set_date(number / 10_000, number / 100 % 100, number % 100)?;
        return Some(after_date(rest));
    }
    let (first, rest) = digits(text, (1, 2)).or_else(|| digits(text, (4, 4)))?;
    let separator = rest.chars().next().filter(|letter| matches!(letter, '-' | '/' | '.'))?;
    let rest = rest.strip_prefix(separator)?;
    let begins_with_year = text.len() - rest.len() == 5;
    let Some((second, rest)) = digits(rest, (1, 2)) else {
        let (month, rest) = month_name(rest)?;
        let rest = rest.strip_prefix(separator)?;
        let (year, day, rest) = match begins_with_year {
            true => digits(rest, (1, 2)).map(|(day, rest)| (first, day, rest))?,
            false => digits(rest, (4, 4)).map(|(year, rest)| (year, first, rest))?,
        };
        parts.set_date(year, month, day)?;
        return Some(after_date(rest));
    };
    let third = rest.strip_prefix(separator);
    if begins_with_year {
        let (day, rest) = third.and_then(|rest| digits(rest, (1, 2))).unwrap_or((1, rest));
        parts.set_date(first, second, day)?;
        return Some(after_date(rest));
    }
    if let Some((year, rest)) = digits(third?, (4, 4)) {
        let (month, day) = if separator == '/' { (first, second) } else { (second, first) };
        parts.set_date(year, month, day)?;
        return Some(after_date(rest));
    }
    let (last, rest) = digits(third?, (2, 2))?;
    match separator {
        '/' => parts.set_date(full_year(last), first, second)?,
        '-' => parts.set_date(full_year(first), second, last)?,
        _ => return None,
    }
    Some(after_date(rest))
}

/// Splits off the name of a month.
fn month_name(text: &str) -> Option<(i64, &str)> {
    let letters = text.bytes().take_while(u8::is_ascii_alphabetic).count();
    let (name, rest) = text.split_at(letters);
    Some((month(name)?, rest))
}

/// Removes the `T` between date and time.
fn after_date(rest: &str) -> &str {
    match rest.strip_prefix(['T', 't']) {
        Some(time) if time.starts_with(|first: char| first.is_ascii_digit()) => time,
        _ => rest,
    }
}

/// Parses `08:30`, `08:30:15.250`, `083015` after a date.
fn time<'t>(text: &'t str, parts: &mut Parts) -> Option<&'t str> {
    if parts.time.is_some() {
        return None;
    }
    let (hour, mut rest) = match digits(text, (1, 2)) {
        Some(found) => found,
        None if parts.date.is_some() => {
            let (number, rest) = digits(text, (6, 6))?;
            parts.time = Some([number / 10_000, number / 100 % 100, number % 100, 0]);
            return Some(rest);
        }
        None => return None,
    };
    let (mut minute, mut second, mut millis) = (0, 0, 0);
    if let Some(after) = rest.strip_prefix(':') {
        (minute, rest) = digits(after, (1, 2))?;
        if let Some(after) = rest.strip_prefix(':') {
            (second, rest) = digits(after, (1, 2))?;
            if let Some(after) = rest.strip_prefix(['.', ',']) {
                (millis, rest) = fraction(after)?;
            }
        }
    } else {
        // A lone hour is valid only before "am" or "pm".
        let word = rest.trim_start().get(..2)?;
        if !word.eq_ignore_ascii_case("am") && !word.eq_ignore_ascii_case("pm") {
            return None;
        }
    }
    if hour > 24 || minute > 59 || second > 60 {
        return None;
    }
    parts.time = Some([hour, minute, second, millis]);
    Some(rest)
}

/// Zones with letters for names, and their hours east of UTC.
const LETTERS: [(&str, i64); 34] = [
    ("Z", 0),
    ("UTC", 0),
    ("GMT", 0),
    ("WET", 0),
    ("WEST", 1),
    ("BST", 1),
    ("CET", 1),
    ("CEST", 2),
    ("EET", 2),
    ("EEST", 3),
    ("EST", -5),
    ("EDT", -4),
    ("CST", -6),
    ("CDT", -5),
    ("MST", -7),
    ("MDT", -6),
    ("PST", -8),
    ("PDT", -7),
    ("AST", -4),
    ("ADT", -3),
    ("AKST", -9),
    ("AKDT", -8),
    ("HST", -10),
    ("MSK", 3),
    ("WAT", 1),
    ("CAT", 2),
    ("SAST", 2),
    ("EAT", 3),
    ("JST", 9),
    ("AWST", 8),
    ("AEST", 10),
    ("AEDT", 11),
    ("NZST", 12),
    ("NZDT", 13),
];

/// Parses `Z`, `UTC`, `EST`, `A`, `+05:30`, `GMT+2`, once in a text.
fn zone<'t>(text: &'t str, parts: &mut Parts) -> Option<&'t str> {
    if parts.offset_seconds.is_some() {
        return None;
    }
    let (seconds, rest) = offset_or_name(text)?;
    parts.offset_seconds = Some(seconds);
    Some(rest)
}

/// Parses an offset from UTC at the start of a text, or the abbreviation of one, in seconds. Names of
/// zones such as `Europe/Paris` are no offsets: mongod refuses them in texts.
pub(super) fn offset_or_name(text: &str) -> Option<(i64, &str)> {
    let plain = text.trim_start_matches([' ', '\t', '(']);
    let after_name = plain.get(..3).filter(|name| name.eq_ignore_ascii_case("GMT"));
    let signed = after_name.and_then(|_| plain.get(3..)).unwrap_or(plain);
    let (seconds, rest) = offset(signed).or_else(|| {
        let letters = plain.bytes().take_while(u8::is_ascii_alphabetic).count();
        let (name, rest) = plain.split_at(letters);
        // The rest of a name of a zone.
        let is_whole = !rest.starts_with(['/', '_', '-', '+']);
        let hours = hours_of(name).filter(|_| is_whole)?;
        Some((hours * 3600, rest))
    })?;
    Some((seconds, rest.trim_start_matches(')')))
}

/// Returns the hours east of UTC of an abbreviation or a military letter: A to M (without J) are 1 to
/// 12, N to Y are -1 to -12.
fn hours_of(name: &str) -> Option<i64> {
    if let Some((_, hours)) = LETTERS.iter().find(|(known, _)| name.eq_ignore_ascii_case(known)) {
        return Some(*hours);
    }
    let [letter] = name.as_bytes() else { return None };
    let place = i64::from(letter.to_ascii_uppercase()) - i64::from(b'A');
    match place {
        0..=8 => Some(place + 1),
        10..=12 => Some(place),
        13..=24 => Some(12 - place),
        _ => None,
    }
}

/// Parses an offset from UTC at the start of a text, in seconds.
pub(super) fn offset(text: &str) -> Option<(i64, &str)> {
    let length = 1 + text
        .get(1..)?
        .bytes()
        .take_while(|byte| byte.is_ascii_digit() || *byte == b':')
        .count();
    let (offset, rest) = text.split_at(length);
    if let Some(seconds) = super::zone::parse_offset(offset) {
        return Some((seconds, rest));
    }
    // The forms `+5` and `+530`.
    let (sign, digits) = match offset.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let number: i64 = digits.parse().ok()?;
    let seconds = match digits.len() {
        1 => number * 3600,
        3 => (number / 100 * 60 + number % 100) * 60,
        _ => return None,
    };
    Some((sign * seconds, rest))
}

/// Parses names of months and weekdays, `am`, `pm`, `noon` and `midnight`.
fn word<'t>(text: &'t str, parts: &mut Parts) -> Option<&'t str> {
    let letters = text.bytes().take_while(u8::is_ascii_alphabetic).count();
    let (word, rest) = text.split_at(letters);
    let rest = rest.trim_start_matches('.');
    let lower = word.to_ascii_lowercase();
    if matches!(lower.as_str(), "am" | "pm") && parts.time.is_some() {
        parts.afternoon = Some(lower == "pm");
        return Some(rest);
    }
    if let Some(hour) = ["midnight", "noon"].iter().position(|name| *name == lower) {
        parts.time = Some([12 * hour as i64, 0, 0, 0]);
        return Some(rest);
    }
    if matches!(lower.as_str(), "st" | "nd" | "rd" | "th" | "of") && parts.day.is_some() {
        return Some(rest);
    }
    if let Some(number) = month(word).filter(|_| parts.month.is_none()) {
        parts.month = Some(number);
        return Some(rest);
    }
    let weekdays = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
    let weekday = weekdays.iter().any(|day| lower.len() >= 3 && day.starts_with(&lower));
    weekday.then_some(rest)
}

/// Parses a day of the month, or a year, next to the name of a month.
fn number<'t>(text: &'t str, parts: &mut Parts) -> Option<&'t str> {
    if let Some((day, rest)) = digits(text, (1, 2)).filter(|_| parts.day.is_none()) {
        parts.day = Some(day);
        return Some(rest);
    }
    let (year, rest) =
        digits(text, (4, 4)).filter(|_| parts.year.is_none() && parts.date.is_none())?;
    parts.year = Some(year);
    Some(rest)
}
