//! Case runner, in-process server and clients for tests.
//!
//! A case file has commands with the replies of a real server (tests/cases/FORMAT.md). [`case`] reads
//! it, [`runner`] runs one case against any [`client::Client`], [`compare`] makes replies comparable,
//! and [`expected`] lists the cases that are known to differ, with reasons. [`variants`] runs the reads
//! of a case in other ways, [`transacted`] all its statements inside transactions, [`closed`] those on time series with
//! closed points.

pub mod case;
pub mod client;
pub mod closed;
pub mod compare;
pub mod expected;
pub mod node;
pub mod runner;
pub mod servers;
pub mod transacted;
pub mod variants;
#[cfg(test)]
mod variants_tests;
