//! Tests of buckets through the crate's public interface.

#![allow(clippy::unwrap_used)]

mod bounds;
mod damage;
mod points;
mod round_trip;
mod sensors;
mod typed;
