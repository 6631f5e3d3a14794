//! The parameters that every operation reads, as atomics: a look-up by name searches the table
//! under its lock.

use crate::frame::args::whole;
use crate::frame::parameters::table::{
    DISK_BY_DEFAULT, GROUP_BYTES, NO_TABLE_SCAN, REDACT_LOG, REQUIRE_API_VERSION, SLOW_MS,
    STAGE_BYTES,
};
use quire_document::Value;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};

/// Copies of values of the table. [`Cached::note`] updates them.
#[derive(Default)]
pub struct Cached {
    slow_ms: AtomicI64,
    require_api_version: AtomicBool,
    disk_by_default: AtomicBool,
    no_table_scan: AtomicBool,
    redact_log: AtomicBool,
    stage_bytes_max: AtomicUsize,
    group_bytes_max: AtomicUsize,
}

impl Cached {
    /// Updates the copy of the parameter `name`, if there is one.
    pub fn note(&self, name: &str, value: Value<'_>) {
        let flag = |copy: &AtomicBool| copy.store(value.as_bool() == Some(true), Ordering::Relaxed);
        let number = whole(value).unwrap_or(0);
        let bytes = |copy: &AtomicUsize| {
            copy.store(usize::try_from(number).unwrap_or(usize::MAX), Ordering::Relaxed);
        };
        match name {
            SLOW_MS => self.slow_ms.store(number, Ordering::Relaxed),
            REQUIRE_API_VERSION => flag(&self.require_api_version),
            DISK_BY_DEFAULT => flag(&self.disk_by_default),
            NO_TABLE_SCAN => flag(&self.no_table_scan),
            REDACT_LOG => flag(&self.redact_log),
            STAGE_BYTES => bytes(&self.stage_bytes_max),
            GROUP_BYTES => bytes(&self.group_bytes_max),
            _ => {}
        }
    }

    /// Returns the duration in milliseconds above which operations are logged.
    pub fn slow_ms(&self) -> i64 {
        self.slow_ms.load(Ordering::Relaxed)
    }

    /// Returns true if commands must name an API version.
    pub fn require_api_version(&self) -> bool {
        self.require_api_version.load(Ordering::Relaxed)
    }

    /// Returns true if stages may spill when the request does not set `allowDiskUse`.
    pub fn disk_by_default(&self) -> bool {
        self.disk_by_default.load(Ordering::Relaxed)
    }

    /// Returns true if queries without an index are refused.
    pub fn no_table_scan(&self) -> bool {
        self.no_table_scan.load(Ordering::Relaxed)
    }

    /// Returns true if the log shows no values of commands and documents.
    pub fn redact_log(&self) -> bool {
        self.redact_log.load(Ordering::Relaxed)
    }

    /// Returns the bytes that a blocking stage other than `$group` may hold in memory.
    pub fn stage_bytes_max(&self) -> usize {
        self.stage_bytes_max.load(Ordering::Relaxed)
    }

    /// Returns the bytes that a `$group` may hold in memory.
    pub fn group_bytes_max(&self) -> usize {
        self.group_bytes_max.load(Ordering::Relaxed)
    }
}
