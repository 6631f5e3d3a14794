//! Offsets before 1970 of the zones that the bundled database gives the history of another zone.
//!
//! The database follows the default build of the IANA data, in which zones with the same clock since
//! 1970 are one: Amsterdam has the history of Brussels. mongod's database keeps their own history.

use std::collections::HashMap;
use std::sync::LazyLock;

/// The offsets of a zone before 1970, in seconds east of UTC.
#[derive(Debug)]
pub(crate) struct Early {
    first: i64,
    /// When an offset begins, in seconds since 1970, and the offset; in order.
    changes: Box<[(i64, i64)]>,
}

static ZONES: LazyLock<HashMap<&str, Early>> = LazyLock::new(|| {
    let lines = include_str!("backzone.txt").lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(parse).collect()
});

fn parse(line: &str) -> Option<(&str, Early)> {
    let mut words = line.split(' ');
    let (name, first) = (words.next()?, words.next()?.parse().ok()?);
    let changes = words.map(|word| {
        let (at, offset) = word.split_once(':')?;
        Some((at.parse().ok()?, offset.parse().ok()?))
    });
    Some((name, Early { first, changes: changes.collect::<Option<_>>()? }))
}

/// Returns the offsets before 1970 of a zone that the bundled database does not have.
pub(crate) fn find(name: &str) -> Option<&'static Early> {
    ZONES.get(name)
}

impl Early {
    /// Returns the offset at a time before 1970, in seconds since 1970.
    pub(super) fn offset(&self, seconds: i64) -> i64 {
        let count = self.changes.partition_point(|(at, _)| *at <= seconds);
        count.checked_sub(1).and_then(|last| self.changes.get(last)).map_or(self.first, |it| it.1)
    }

    /// Returns the offset at a local time before 1970. Of two, it is the first; if local time skips
    /// `local`, it is the offset before the gap.
    pub(super) fn local_offset(&self, local: i64) -> i64 {
        const DAY: i64 = 24 * 3600;
        let before = self.offset(local.saturating_sub(DAY));
        let after = self.offset(local.saturating_add(DAY));
        let is_valid = |offset: i64| self.offset(local.saturating_sub(offset)) == offset;
        if is_valid(after) && !is_valid(before) { after } else { before }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_a_zone_with_rising_changes() {
        let lines = include_str!("backzone.txt").lines().filter(|line| !line.starts_with('#'));
        assert_eq!(ZONES.len(), lines.count());
        for (name, zone) in ZONES.iter() {
            assert!(zone.changes.is_sorted_by(|a, b| a.0 < b.0), "{name}");
            assert!(zone.changes.iter().all(|(at, _)| *at < 0), "{name}");
            assert!(jiff::tz::TimeZoneDatabase::bundled().get(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn folds_give_the_first_time_and_gaps_the_offset_before() {
        let amsterdam = find("Europe/Amsterdam").unwrap();
        // The first change, in April 1916, skips an hour; the second repeats one.
        let [(spring, summer), (autumn, winter), ..] = amsterdam.changes[..] else { panic!() };
        assert_eq!((amsterdam.first, summer, winter), (1172, 4772, 1172));
        assert_eq!(amsterdam.local_offset(spring + winter + 10), winter);
        assert_eq!(amsterdam.local_offset(spring + summer + 10), summer);
        assert_eq!(amsterdam.local_offset(autumn + winter + 10), summer);
        assert_eq!(amsterdam.local_offset(autumn + summer + 10), winter);
    }
}
