//! Properties that must hold for any values.

mod keys;
mod literals;
mod order;
mod validation;
