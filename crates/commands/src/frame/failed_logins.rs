//! Failed logins by client address. A client that guesses passwords may open a new connection for
//! each guess, so a pause on one connection does not slow it down. After many failures the next
//! login from the address waits before its first reply.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The number of failures of an address without a pause: users mistype passwords.
const FREE: u32 = 10;
/// The first pause; it doubles with each further failure.
const PAUSE: Duration = Duration::from_millis(10);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// After this time without a failure the count of an address falls by one.
const FORGET: Duration = Duration::from_secs(2);
/// The largest count, so that an address is forgotten two minutes after its last failure.
const COUNT_MAX: u32 = 60;
/// The number of addresses in the table. A further address replaces the one with the oldest last
/// failure.
const ADDRESSES_MAX: usize = 4096;

/// The addresses with recent failed logins.
#[derive(Default)]
pub struct FailedLogins(Mutex<HashMap<IpAddr, Row>>);

#[derive(Clone, Copy)]
struct Row {
    count: u32,
    /// The time of the last failure, when `count` was correct.
    at: Instant,
}

impl Row {
    fn count_at(self, now: Instant) -> u32 {
        let forgotten = now.saturating_duration_since(self.at).as_millis() / FORGET.as_millis();
        self.count.saturating_sub(u32::try_from(forgotten).unwrap_or(u32::MAX))
    }
}

impl FailedLogins {
    /// Notes a failure.
    pub fn note(&self, address: IpAddr, now: Instant) {
        let mut rows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if rows.len() >= ADDRESSES_MAX && !rows.contains_key(&address) {
            rows.retain(|_, row| row.count_at(now) > 0);
            let oldest = rows.iter().min_by_key(|(_, row)| row.at).map(|(address, _)| *address);
            if let Some(oldest) = oldest.filter(|_| rows.len() >= ADDRESSES_MAX) {
                rows.remove(&oldest);
            }
        }
        let row = rows.entry(address).or_insert(Row { count: 0, at: now });
        *row = Row { count: (row.count_at(now) + 1).min(COUNT_MAX), at: now };
    }

    /// Returns how long the next login from an address must wait.
    pub fn pause(&self, address: IpAddr, now: Instant) -> Duration {
        let rows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = rows.get(&address).map_or(0, |row| row.count_at(now));
        match count.saturating_sub(FREE) {
            0 => Duration::ZERO,
            beyond => PAUSE.saturating_mul(1 << (beyond - 1).min(10)).min(PAUSE_MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: u32) -> IpAddr {
        std::net::Ipv4Addr::from(number).into()
    }

    #[test]
    fn an_address_that_fails_often_waits_and_is_forgiven() {
        let (failures, start) = (FailedLogins::default(), Instant::now());
        let pause = |seconds| failures.pause(address(1), start + Duration::from_secs(seconds));
        for _ in 0..FREE {
            failures.note(address(1), start);
        }
        assert_eq!(pause(0), Duration::ZERO);
        failures.note(address(1), start);
        assert_eq!(pause(0), PAUSE);
        for _ in 0..10_000 {
            failures.note(address(1), start);
        }
        assert_eq!(pause(0), PAUSE_MAX);
        assert_eq!(failures.pause(address(2), start), Duration::ZERO);
        assert_eq!(pause(60), PAUSE_MAX);
        assert_eq!(pause(100), Duration::ZERO);
    }

    #[test]
    fn the_table_is_bounded() {
        let (failures, start) = (FailedLogins::default(), Instant::now());
        for number in 0..10_000 {
            failures.note(address(number), start + Duration::from_micros(number.into()));
        }
        assert_eq!(failures.0.lock().map(|rows| rows.len()).ok(), Some(ADDRESSES_MAX));
    }
}
