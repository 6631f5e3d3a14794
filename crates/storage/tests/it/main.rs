//! The engines of this crate: conformance, simulated crashes and faults, caps on snapshots.

#![allow(clippy::unwrap_used)]

mod conformance;
mod crash;
mod snapshots;
