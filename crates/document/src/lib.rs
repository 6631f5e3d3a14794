//! BSON as bytes: views, builders, and values.
//!
//! A document is always represented by its bytes, never by a tree. [`Doc`] and [`Array`] are `Copy`
//! views of validated bytes, a [`Value`] borrows from them, [`DocBuf`] and [`ValueBuf`] own bytes,
//! and [`DocWriter`] appends elements to a buffer.

mod builder;
pub mod calendar;
mod compare;
pub mod decimal;
mod display;
mod doc;
pub mod extjson;
pub mod key;
pub mod limits;
pub mod literal;
mod macros;
pub mod memory;
pub mod number;
mod owned;
pub mod path;
mod scalar;
#[cfg(feature = "testing")]
pub mod testing;
mod types;
mod validate;
mod value;

pub use builder::{ArrayWriter, DocWriter, GrowingArray, write_element, write_index};
pub use compare::{
    Collator, ValueKey, compare, compare_documents, equal, hash, hash_of, identical,
    identical_or_absent,
};
pub use display::{Message, message};
pub use doc::{Array, Doc, Element, Iter, first_element};
pub use owned::{ArrayBuf, DocBuf, ValueBuf, ValuesBuf};
pub use path::Path;
pub use scalar::{Decimal128, ObjectId, Timestamp};
pub use types::Type;
pub use validate::{Fault, ValidationError, declared_length, validate};
pub use value::{Binary, CodeWithScope, DbPointer, Regex, Value};
