//! The change log: what happened to documents and to the catalog, in the order of commits, within a
//! window of time and size. Writers add records to it (`write/log.rs`); change streams read it.

mod beginning;
mod reader;
mod trim;

pub use beginning::LogBeginning;
pub(crate) use beginning::{discard, dropped_collections, open};
pub use reader::{
    ChangeEntry, ChangePlace, ChangeWhat, EntryCollection, LogReader, Origin, history_lost,
};
pub use trim::{LogWindow, Trimmed};
