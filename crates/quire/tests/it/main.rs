//! The library as its users see it, on both engines.

#![allow(clippy::unwrap_used)]

mod bulk;
mod closing;
mod cursors;
mod errors;
mod patterns;
mod sessions;
mod shop;
mod threads;
mod time_series;
mod transactions;
mod watching;

use quire::Client;

/// Runs a test on the memory engine and on a new directory.
pub(crate) fn on_both_engines(test: impl Fn(&Client)) {
    test(&Client::in_memory().expect("memory opens"));
    let directory = tempfile::tempdir().expect("a temporary directory");
    test(&Client::open(directory.path()).expect("a new directory opens"));
}
