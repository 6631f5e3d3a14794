//! Quire in process: the document database of `quire serve` as a library, without sockets.
//!
//! Open a directory (or memory), and use it through the method names of the official MongoDB
//! driver's blocking API: a method returns an action, options are set on it, and `run` executes it.
//!
//! ```
//! use quire::bson::doc;
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Debug, Serialize, Deserialize)]
//! struct Book {
//!     title: String,
//!     year: i32,
//! }
//!
//! # fn main() -> quire::error::Result<()> {
//! let client = quire::Client::in_memory()?; // or Client::open("books-data")
//! let books = client.database("library").collection::<Book>("books");
//! books.insert_one(Book { title: "Dubliners".into(), year: 1914 }).run()?;
//! for book in books.find(doc! { "year": { "$lt": 1920 } }).sort(doc! { "title": 1 }).run()? {
//!     println!("{}", book?.title);
//! }
//! client.shutdown().run()?;
//! # Ok(())
//! # }
//! ```
//!
//! The commands are those of the server: everything in COMPATIBILITY.md works here, through a
//! method or through [`Database::run_command`]. Background jobs (TTL and others) run too. Read in
//! this order: `embedded` (the embedded database), `command`, [`action`].

#![deny(missing_docs)]

pub mod action;
pub mod change_stream;
mod client;
mod collection;
mod command;
mod cursor;
mod database;
mod embedded;
pub mod error;
mod open;
pub mod options;
mod prepare;
mod reply;
pub mod results;
mod session;
mod session_state;
mod setters;
mod transaction;
mod write_model;

pub use bson;
pub use change_stream::ChangeStream;
pub use client::Client;
pub use collection::Collection;
pub use cursor::Cursor;
pub use database::Database;
pub use open::OpenOptions;
pub use options::{IndexModel, Namespace};
pub use quire_commands::log;
pub use session::ClientSession;
pub use write_model::WriteModel;

/// The README's examples are run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
pub struct Readme;

/// The examples of the page about embedding are run as tests, too.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/embedding.md")]
pub struct Embedding;
