//! Properties that hold for all values.

#![allow(clippy::unwrap_used)]

mod keys;
mod literals;
mod lookup;
mod order;
mod validation;
