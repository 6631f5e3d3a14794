//! A point in local time: date and time of day, week, day of the year.

use super::zone::Zone;
use quire_document::calendar::{Civil, DAY_MS, civil_from_days, days_from_civil};

/// A point in time in a zone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    /// The date and time of day.
    pub(super) civil: Civil,
    /// The days from 1970-01-01 to the local date.
    pub(super) days: i64,
    /// Seconds east of UTC.
    pub(super) offset: i64,
}

impl Moment {
    pub(super) fn new(millis: i64, zone: &Zone) -> Self {
        let offset = zone.offset_seconds(millis);
        // Near the ends of the range of dates, the local time would be out of range as a UTC date.
        let (days, within) = (millis.div_euclid(DAY_MS), millis.rem_euclid(DAY_MS));
        let local = within + offset * 1000;
        let days = days + local.div_euclid(DAY_MS);
        Moment { civil: Civil::at(days, local.rem_euclid(DAY_MS)), days, offset }
    }

    /// Returns 0 for Sunday to 6 for Saturday.
    pub(super) fn weekday(&self) -> i64 {
        (self.days + 4).rem_euclid(7)
    }

    /// Returns 1 for Monday to 7 for Sunday.
    pub(super) fn iso_weekday(&self) -> i64 {
        (self.days + 3).rem_euclid(7) + 1
    }

    /// Returns 1 to 366.
    pub(super) fn day_of_year(&self) -> i64 {
        self.days - days_from_civil(self.civil.year, 1, 1) + 1
    }

    /// Returns the week of the year. Weeks begin on Sundays; days before the first Sunday are in
    /// week 0.
    pub(super) fn week(&self) -> i64 {
        (self.day_of_year() + 6 - self.weekday()) / 7
    }

    /// Returns the year of the ISO week, and the week.
    pub(super) fn iso_week(&self) -> (i64, i64) {
        let thursday = self.days - self.iso_weekday() + 4;
        let (year, _, _) = civil_from_days(thursday);
        (year, (thursday - days_from_civil(year, 1, 1)) / 7 + 1)
    }
}

/// Returns the days from 1970-01-01 to the Monday of an ISO year's first week.
pub(super) fn iso_year_start(year: i64) -> i64 {
    let fourth = days_from_civil(year, 1, 4);
    fourth - (fourth + 3).rem_euclid(7)
}

/// Returns the milliseconds of a local date and time whose fields may be out of range and carry
/// over. The result may be outside the range of dates.
pub(super) fn local_millis(days: i64, [hour, minute, second, millis]: [i64; 4]) -> i128 {
    let seconds = (i128::from(hour) * 60 + i128::from(minute)) * 60 + i128::from(second);
    i128::from(days) * i128::from(DAY_MS) + seconds * 1000 + i128::from(millis)
}

/// Returns the days from 1970-01-01 to a date whose month and day may be out of range and carry
/// over.
pub(super) fn days_carried(year: i64, month: i64, day: i64) -> i64 {
    let months = year * 12 + month - 1;
    days_from_civil(months.div_euclid(12), months.rem_euclid(12) as u32 + 1, 1) + day - 1
}

/// Returns the number of days in a month.
pub(super) fn days_in_month(year: i64, month: i64) -> i64 {
    days_carried(year, month + 1, 1) - days_carried(year, month, 1)
}
