//! The engines of this crate: conformance, simulated crashes and faults, caps on snapshots.

#![allow(clippy::unwrap_used)]

mod change_log;
mod conformance;
mod crash;
mod snapshots;
mod watch;
