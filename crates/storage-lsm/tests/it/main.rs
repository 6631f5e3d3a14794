//! The engine on disk: conformance, crashes, damaged logs, bounded memory, freed disk space.

#![allow(clippy::unwrap_used)]

mod any_damage;
mod conformance;
mod crash;
mod cut;
mod damage;
mod damaged_log;
mod directory;
mod long_snapshots;
mod overload;
#[cfg(target_os = "linux")]
mod power_crash;
mod range;
mod space;
mod support;
