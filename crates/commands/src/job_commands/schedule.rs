//! When a job is due: by a cron expression in a time zone, or at equal intervals. No clock is read here.

use super::cron::parse_cron;
use crate::frame::args::{fields, missing, whole};
use croner::Cron;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use quire_document::{Doc, Value};
use quire_error::{Error, Result};

const OWNER: &str = "createJob.schedule";

/// The times at which a job is due.
#[derive(Clone, Debug)]
pub enum Schedule {
    /// By a pattern of five fields, or six with seconds. In a time zone with daylight saving, a time
    /// that is left out is due when the clock has moved on, and one that comes twice is due once,
    /// unless the pattern stands for an interval.
    Cron(Box<Cron>, TimeZone),
    /// Every so many milliseconds, counted from a fixed time.
    Every { ms: i64, from_ms: i64 },
}

impl Schedule {
    /// Reads `{cron, timeZone}` or `{every, unit}`. Intervals are counted from `created_ms`.
    ///
    /// # Errors
    /// 2 for a pattern, a time zone or an interval that makes no sense; 40415 for an unknown field.
    pub fn parse(given: Doc<'_>, created_ms: i64) -> Result<Self> {
        let (mut cron, mut zone, mut every, mut unit) = (None, None, None, None);
        for arg in fields(OWNER, given) {
            match arg.name() {
                "cron" => cron = Some(arg.string()?),
                "timeZone" => zone = Some(arg.string()?),
                "every" => every = Some(arg.integer_from(1)?),
                "unit" => unit = Some(arg.string()?),
                _ => return Err(arg.unknown()),
            }
        }
        match (cron, every) {
            (Some(cron), None) if unit.is_none() => {
                Ok(Schedule::Cron(Box::new(parse_cron(cron)?), parse_zone(zone.unwrap_or("UTC"))?))
            }
            (None, Some(every)) if zone.is_none() => {
                let unit = unit.ok_or_else(|| missing(OWNER, "unit"))?;
                let ms = every.checked_mul(unit_ms(unit)?).ok_or_else(too_long)?;
                Ok(Schedule::Every { ms, from_ms: created_ms })
            }
            _ => Err(Error::bad_value(
                "a schedule has either 'cron' with a 'timeZone' or 'every' with a 'unit'",
            )),
        }
    }

    /// Returns the first due time after `after_ms`, in milliseconds since 1970; `None` if there is
    /// none.
    pub fn next_after(&self, after_ms: i64) -> Option<i64> {
        match self {
            Schedule::Cron(cron, zone) => {
                let after = Timestamp::from_millisecond(after_ms).ok()?.to_zoned(zone.clone());
                let next = cron.find_next_occurrence(&after, false).ok()?;
                Some(next.timestamp().as_millisecond())
            }
            Schedule::Every { ms, from_ms } => {
                let passed = after_ms.checked_sub(*from_ms)?.div_euclid(*ms);
                from_ms.checked_add(passed.checked_add(1)?.max(0).checked_mul(*ms)?)
            }
        }
    }
}

fn parse_zone(name: &str) -> Result<TimeZone> {
    TimeZone::get(name).map_err(|_| Error::bad_value(format!("unknown time zone '{name}'")))
}

fn unit_ms(unit: &str) -> Result<i64> {
    Ok(match unit {
        "second" => 1000,
        "minute" => 60_000,
        "hour" => 3_600_000,
        "day" => 86_400_000,
        "week" => 604_800_000,
        _ => {
            let text = "'unit' of a schedule is second, minute, hour, day or week";
            return Err(Error::bad_value(text));
        }
    })
}

fn too_long() -> Error {
    Error::bad_value("the interval of a schedule is too long")
}

/// Returns a whole number of a stored document.
pub fn number(value: Option<Value<'_>>) -> Option<i64> {
    value.and_then(whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_document::doc;

    fn ms(text: &str) -> i64 {
        text.parse::<Timestamp>().unwrap().as_millisecond()
    }

    /// Returns the due times in an interval, as texts in UTC.
    fn due(schedule: &Schedule, from: &str, until: &str) -> Vec<String> {
        let (mut at, until, mut found) = (ms(from), ms(until), Vec::new());
        while let Some(next) = schedule.next_after(at).filter(|next| *next < until) {
            found.push(Timestamp::from_millisecond(next).unwrap().to_string());
            at = next;
        }
        found
    }

    fn cron(pattern: &str) -> Schedule {
        let given = doc! { "cron": pattern, "timeZone": "Europe/Berlin" };
        Schedule::parse(given.as_doc(), 0).unwrap()
    }

    #[test]
    fn each_due_time_comes_once_when_the_clocks_change() {
        // On 2026-03-29 there is no 02:30 in Berlin, on 2026-10-25 there are two.
        let nightly = cron("30 2 * * *");
        let spring = due(&nightly, "2026-03-28T00:00:00Z", "2026-03-31T00:00:00Z");
        assert_eq!(spring.len(), 3, "{spring:?}");
        assert_eq!((&*spring[0], &*spring[2]), ("2026-03-28T01:30:00Z", "2026-03-30T00:30:00Z"));
        assert!(spring[1].starts_with("2026-03-29T01:"), "{spring:?}");
        let autumn = due(&nightly, "2026-10-24T00:00:00Z", "2026-10-27T00:00:00Z");
        assert_eq!(autumn.len(), 3, "{autumn:?}");
        // An interval goes on through the repeated hour.
        let quarters = cron("*/15 * * * *");
        let night = due(&quarters, "2026-10-24T23:59:00Z", "2026-10-25T03:00:00Z");
        assert_eq!(night.len(), 12, "{night:?}");
    }

    #[test]
    fn intervals_are_counted_from_a_fixed_time() {
        let every = doc! { "every": 5, "unit": "minute" };
        let every = Schedule::parse(every.as_doc(), 7).unwrap();
        assert_eq!(every.next_after(7), Some(300_007));
        assert_eq!(every.next_after(300_006), Some(300_007));
        assert_eq!(every.next_after(300_007), Some(600_007));
        assert_eq!(every.next_after(-300_000), Some(7));
    }

    #[test]
    fn what_is_no_schedule_is_refused() {
        for given in [
            doc! {},
            doc! { "cron": "61 * * * *" },
            doc! { "cron": "* * * *" },
            doc! { "cron": "* * * * *", "timeZone": "Mars/Olympus" },
            doc! { "cron": "* * * * *", "every": 1, "unit": "day" },
            doc! { "every": 0, "unit": "day" },
            doc! { "every": 1, "unit": "fortnight" },
            doc! { "every": 1 },
            doc! { "every": (i64::MAX), "unit": "day" },
            doc! { "on": "Sunday" },
        ] {
            assert!(Schedule::parse(given.as_doc(), 0).is_err(), "{given:?}");
        }
    }
}
