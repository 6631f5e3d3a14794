//! Time zones: Olson names, from the database that jiff contains, and offsets from UTC.
//!
//! Only the name "UTC" is UTC itself; "GMT" is a zone like others, as in mongod.

use super::early::{self, Early};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use quire_error::{Error, Result};
use std::sync::LazyLock;

/// A time zone.
#[derive(Clone, Debug)]
pub(crate) enum Zone {
    /// UTC, without an offset.
    Utc,
    /// An offset in seconds east of UTC.
    Fixed(i64),
    /// A named zone, whose offset depends on the time; its own offsets before 1970, if the database
    /// has those of another zone.
    Named(TimeZone, Option<&'static Early>),
}

static DATABASE: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// The seconds since the epoch for which offsets are known. Outside this range the nearest known
/// offset applies.
const KNOWN_SECONDS: (i64, i64) = (-377_705_023_201, 253_402_207_200);

impl Zone {
    /// Parses `Europe/Paris`, `UTC`, `+05:30`, `+0530` or `+05`. Fails with 40485 for any other
    /// text.
    pub(crate) fn parse(text: &str) -> Result<Zone> {
        if text == "UTC" {
            return Ok(Zone::Utc);
        }
        if let Some(seconds) = parse_offset(text) {
            return Ok(Zone::Fixed(seconds));
        }
        match DATABASE.get(text) {
            Ok(zone) if zone.iana_name() == Some(text) => Ok(Zone::Named(zone, early::find(text))),
            _ => {
                let message = format!("unrecognized time zone identifier: \"{text}\"");
                Err(Error::location(40485, message))
            }
        }
    }

    /// Returns true for "UTC" and for an offset of zero.
    pub(crate) fn is_utc(&self) -> bool {
        matches!(self, Zone::Utc | Zone::Fixed(0))
    }

    /// Returns seconds east of UTC at a point in time.
    pub(crate) fn offset_seconds(&self, millis: i64) -> i64 {
        match self {
            Zone::Utc => 0,
            Zone::Fixed(seconds) => *seconds,
            Zone::Named(_, Some(early)) if millis < 0 => early.offset(millis.div_euclid(1000)),
            Zone::Named(zone, _) => {
                let seconds = millis.div_euclid(1000).clamp(KNOWN_SECONDS.0, KNOWN_SECONDS.1);
                let at = Timestamp::from_second(seconds).unwrap_or(Timestamp::UNIX_EPOCH);
                i64::from(zone.to_offset(at).seconds())
            }
        }
    }

    /// Returns the point in time at which local time is `local` (milliseconds, as if in UTC). If
    /// there are two, returns the first. If local time skips `local`, returns a time that is later
    /// by the length of the gap. `None` if it is out of the range of dates.
    pub(crate) fn to_utc(&self, local: i128) -> Option<i64> {
        let offset = match self {
            Zone::Utc => 0,
            Zone::Fixed(seconds) => *seconds,
            Zone::Named(_, Some(early)) if local < 0 => {
                early.local_offset(i64::try_from(local.div_euclid(1000)).unwrap_or(i64::MIN))
            }
            Zone::Named(zone, _) => local_offset(zone, local),
        };
        i64::try_from(local - i128::from(offset) * 1000).ok()
    }
}

fn local_offset(zone: &TimeZone, local: i128) -> i64 {
    let (first, last) = (KNOWN_SECONDS.0 + 200_000, KNOWN_SECONDS.1 - 200_000);
    let known = local.div_euclid(1000).clamp(first.into(), last.into()) as i64;
    let clock: Option<DateTime> =
        Timestamp::from_second(known).ok().map(|at| TimeZone::UTC.to_datetime(at));
    let found = clock.and_then(|clock| zone.to_ambiguous_timestamp(clock).compatible().ok());
    found.map_or(0, |at| known - at.as_second())
}

/// Parses `+hh`, `+hhmm` or `+hh:mm` to seconds. Hours and minutes are any two digits.
pub(super) fn parse_offset(text: &str) -> Option<i64> {
    let (sign, digits) = match text.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let two = |text: &str| -> Option<i64> {
        let plain = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        if plain { text.parse().ok() } else { None }
    };
    let (hours, minutes) = match digits.len() {
        2 => (two(digits)?, 0),
        4 => (two(digits.get(..2)?)?, two(digits.get(2..)?)?),
        5 if digits.as_bytes().get(2) == Some(&b':') => {
            (two(digits.get(..2)?)?, two(digits.get(3..)?)?)
        }
        _ => return None,
    };
    Some(sign * (hours * 3600 + minutes * 60))
}
