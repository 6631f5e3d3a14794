//! Days and calendar dates (proleptic Gregorian), and the ISO 8601 text of a date.
//!
//! Howard Hinnant, "chrono-compatible low-level date algorithms".

/// Milliseconds in a day.
pub const DAY_MS: i64 = 86_400_000;

/// A point in time as date and time of day, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Civil {
    /// The year; 0 is 1 BC.
    pub year: i64,
    /// 1 to 12.
    pub month: u32,
    /// 1 to 31.
    pub day: u32,
    /// 0 to 23.
    pub hour: u32,
    /// 0 to 59.
    pub minute: u32,
    /// 0 to 59.
    pub second: u32,
    /// 0 to 999.
    pub millisecond: u32,
}

/// Returns the days from 1970-01-01 to a date. A day out of range carries over to the following or
/// preceding months; the month must be 1 to 12.
pub const fn days_from_civil(year: i64, month: u32, day: u32) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year - era * 400;
    let shifted = (month as i64 + 9) % 12;
    let of_year = (153 * shifted + 2) / 5 + day as i64 - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Returns year, month and day for a number of days since 1970-01-01.
pub const fn civil_from_days(days: i64) -> (i64, u32, u32) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days - era * 146_097;
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = (of_year - (153 * shifted + 2) / 5 + 1) as u32;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 } as u32;
    let year = year + era * 400 + if month <= 2 { 1 } else { 0 };
    (year, month, day)
}

impl Civil {
    /// Converts milliseconds since the epoch.
    pub const fn from_millis(millis: i64) -> Self {
        Civil::at(millis.div_euclid(DAY_MS), millis.rem_euclid(DAY_MS))
    }

    /// Returns the point in time `days` days after 1970-01-01, at a millisecond of that day (below
    /// [`DAY_MS`]).
    pub const fn at(days: i64, millis: i64) -> Self {
        let (year, month, day) = civil_from_days(days);
        let seconds = millis / 1000;
        Civil {
            year,
            month,
            day,
            hour: (seconds / 3600) as u32,
            minute: (seconds / 60 % 60) as u32,
            second: (seconds % 60) as u32,
            millisecond: (millis % 1000) as u32,
        }
    }

    /// Returns milliseconds since the epoch; `None` on overflow.
    pub fn to_millis(self) -> Option<i64> {
        let days = days_from_civil(self.year, self.month, self.day);
        let minutes = self.hour as i64 * 60 + self.minute as i64;
        let within = (minutes * 60 + self.second as i64) * 1000 + self.millisecond as i64;
        days.checked_mul(DAY_MS)?.checked_add(within)
    }
}

/// The dates with ISO text: from the first millisecond of year 1 to the last of year 9999.
pub const ISO_RANGE: std::ops::Range<i64> = -62_135_596_800_000..253_402_300_800_000;

/// Returns a text like `2025-01-15T08:30:00.000Z`. Years outside 0 to 9999 have a sign or more
/// digits.
pub fn iso_text(millis: i64) -> String {
    let Civil { year, month, day, hour, minute, second, millisecond } = Civil::from_millis(millis);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millisecond:03}Z")
}

/// Parses `YYYY-MM-DD`, optionally followed by `THH:MM[:SS][.fff]` (with `T` or a space) and `Z` or
/// an offset `+HH:MM`. Without a zone the time is UTC. Returns milliseconds since the epoch.
pub fn parse_iso(text: &str) -> Option<i64> {
    let mut scan = Scan(text.as_bytes());
    let year = scan.digits(4)? as i64;
    let month = scan.after(b'-', 2)?;
    let day = scan.after(b'-', 2)?;
    let mut civil = Civil { year, month, day, hour: 0, minute: 0, second: 0, millisecond: 0 };
    let mut offset_minutes = 0i64;
    if scan.take(b'T') || scan.take(b' ') {
        civil.hour = scan.digits(2)?;
        civil.minute = scan.after(b':', 2)?;
        if scan.0.first() == Some(&b':') {
            civil.second = scan.after(b':', 2)?;
        }
        if scan.take(b'.') {
            civil.millisecond = scan.fraction()?;
        }
        offset_minutes = scan.zone()?;
    }
    let days_valid = (1..=12).contains(&month) && (1..=days_in_month(year, month)).contains(&day);
    let time_valid = civil.hour < 24 && civil.minute < 60 && civil.second < 60;
    if !(scan.0.is_empty() && days_valid && time_valid) {
        return None;
    }
    Some(civil.to_millis()? - offset_minutes * 60_000)
}

/// Returns the number of days in a month.
pub const fn days_in_month(year: i64, month: u32) -> u32 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

struct Scan<'a>(&'a [u8]);

impl Scan<'_> {
    fn take(&mut self, byte: u8) -> bool {
        match self.0.split_first() {
            Some((&first, rest)) if first == byte => {
                self.0 = rest;
                true
            }
            _ => false,
        }
    }

    fn digits(&mut self, count: usize) -> Option<u32> {
        let (digits, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        digits.iter().try_fold(0u32, |number, digit| {
            digit.is_ascii_digit().then(|| number * 10 + (digit - b'0') as u32)
        })
    }

    fn after(&mut self, byte: u8, count: usize) -> Option<u32> {
        if self.take(byte) { self.digits(count) } else { None }
    }

    /// Parses a fraction of a second as milliseconds, and ignores further digits.
    fn fraction(&mut self) -> Option<u32> {
        let count = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if count == 0 {
            return None;
        }
        let (kept, padding) = (count.min(3), 3 - count.min(3));
        let millis = self.digits(kept)? * 10u32.pow(padding as u32);
        self.0 = self.0.get(count - kept..)?;
        Some(millis)
    }

    fn zone(&mut self) -> Option<i64> {
        let sign = match self.0.first() {
            None => return Some(0),
            Some(b'Z' | b'z') => {
                self.0 = &self.0[1..];
                return Some(0);
            }
            Some(b'+') => 1,
            Some(b'-') => -1,
            Some(_) => return None,
        };
        self.0 = &self.0[1..];
        let hours = self.digits(2)? as i64;
        self.take(b':');
        let minutes = if self.0.is_empty() { 0 } else { self.digits(2)? as i64 };
        Some(sign * (hours * 60 + minutes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_dates() {
        assert_eq!(iso_text(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(iso_text(ISO_RANGE.start), "0001-01-01T00:00:00.000Z");
        assert_eq!(iso_text(ISO_RANGE.end - 1), "9999-12-31T23:59:59.999Z");
        assert_eq!(parse_iso("2025-01-15T08:30:00.25Z"), Some(1736929800250));
        assert_eq!(parse_iso("2025-01-15T08:30:00+02:00"), Some(1736922600000));
        assert_eq!(parse_iso("2025-02-29"), None);
        assert_eq!(parse_iso("2024-02-29"), Some(1709164800000));
    }

    #[test]
    fn there_and_back() {
        let mut millis = -70_000_000_000_000i64;
        while millis < 260_000_000_000_000 {
            assert_eq!(Civil::from_millis(millis).to_millis(), Some(millis));
            if ISO_RANGE.contains(&millis) {
                assert_eq!(parse_iso(&iso_text(millis)), Some(millis));
            }
            millis += 7_777_777_777;
        }
        let _ = Civil::from_millis(i64::MIN);
        let _ = Civil::from_millis(i64::MAX);
    }
}
