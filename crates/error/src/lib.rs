//! MongoDB's error codes, labels, and the one `Error` that every layer above the engine uses.
//!
//! A program decides by the code what to do; the message is for people, and no code in this project
//! depends on a message. Codes with a name are listed in `codes.csv`, from which `codes.rs`
//! is generated (`cargo xtask codes`); a *location* code (`Location16702`) identifies
//! one check, and so is written beside that check (docs/adr/0002-location-codes.md).

mod code;
mod codes;
mod error;

pub use code::{ErrorClass, ErrorCode};
pub use error::{Error, Label, Result};
