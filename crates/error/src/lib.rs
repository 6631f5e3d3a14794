//! MongoDB's error codes, labels, and the one `Error` that every layer above the engine uses.
//!
//! A code answers "what can a client do about it"; the message is for people. Nothing in this
//! project decides by a message. Codes with a name stand in `codes.csv`, from which `codes.rs`
//! is generated (`cargo xtask codes`); a *location* code (`Location16702`) is the identity of
//! one check and so stands beside that check (docs/adr/0002-location-codes.md).

mod code;
mod codes;
mod error;

pub use code::{ErrorClass, ErrorCode};
pub use error::{Error, Label, Result};
