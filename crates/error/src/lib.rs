//! MongoDB's error codes, labels, and the one `Error` that every layer above the engine uses.
//!
//! A program decides by the code; the message is for people, and no code in this project depends on
//! a message. `codes.csv` lists the codes with a name, and `cargo xtask codes` generates `codes.rs`
//! from it. A *location* code (`Location16702`) identifies one check and is therefore written
//! beside that check (docs/adr/0002-location-codes.md).

mod code;
mod codes;
mod error;

pub use code::{ErrorClass, ErrorCode};
pub use error::{Error, Label, Result};
