//! What data look like, and what to do about it: pure functions over documents, without a
//! server, a socket or a clock.
//!
//! A [`Source`] hands out collections and documents: a server of MongoDB's protocol, a folder of
//! dumps. [`profile_database`] reads them once and returns a [`DatabaseProfile`]: for each
//! collection its paths with their types, values, bytes and array lengths ([`profile`]), and the
//! references between collections ([`references`]). [`report`] and [`json_schema`] write it down.
//! [`workload`] is what was asked: the statements by shape, which a recorder counts; [`trace`] is the
//! statements of a while, one by one. [`findings`] says of profile and workload what is wrong, what it
//! costs and which command mends it.
//!
//! [`indexes`] is the advice about indexes, which a [`Laboratory`](indexes::Laboratory) measures;
//! [`scaled`] makes numbers of a collection from those of a sample.

mod copies;
mod database;
pub mod findings;
pub mod indexes;
pub mod json_schema;
pub mod profile;
pub mod references;
pub mod report;
pub mod scaled;
mod sketch;
pub mod source;
pub mod trace;
pub mod workload;

pub use copies::Copy;
pub use database::{DatabaseProfile, Progress, profile_database};
pub use profile::{CollectionProfile, Limits};
pub use references::Reference;
pub use scaled::{SampleSize, Scaled};
pub use source::{Extent, IndexUse, Lookup, Source, SourceCollection};
pub use workload::Workload;
