//! The engines of this crate: conformance, simulated crashes and faults, caps on snapshots.

mod conformance;
mod crash;
mod snapshots;
