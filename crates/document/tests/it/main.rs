//! Properties that must hold for any values.

#![allow(clippy::unwrap_used)]

mod keys;
mod literals;
mod lookup;
mod order;
mod validation;
