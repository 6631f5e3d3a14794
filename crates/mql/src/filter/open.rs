//! Conditions that an operator defines by itself: a [`Search`] of whole documents, which the kind of an
//! index answers (`$text`, `$near`), and a [`ValueTest`] of the values at a path (`$geoWithin`). A new
//! one is a type in the operator's own file; no other file lists them.

use std::any::Any;
use std::fmt::Debug;

use crate::context::Shared;
use quire_document::path::Leaf;
use quire_document::{Doc, DocBuf, DocWriter, Value};
use quire_error::Result;

/// A condition on whole documents that only an index answers. The parser makes it of the operand
/// alone. Before it is planned, the kind of an index replaces it by one that knows the index
/// ([`Node::bind_search`](super::Node::bind_search)).
pub trait Search: Any + Debug + Send + Sync {
    /// Returns the operator's name, with its dollar sign.
    fn operator(&self) -> &'static str;

    /// Returns the search as its own type, for the kind of index that answers it.
    fn as_any(&self) -> &dyn Any;

    /// Returns true if a document passes.
    ///
    /// # Errors
    /// 27 IndexNotFound if no index has been bound.
    fn matches(&self, doc: Doc<'_>) -> Result<bool>;

    /// Returns the names in `$meta` of the metadata that it gives to each document.
    fn metadata(&self) -> &'static [&'static str];

    /// Returns the metadata of a document that passes, each with its name in `$meta`.
    ///
    /// # Errors
    /// As [`matches`](Self::matches).
    fn metadata_of(&self, doc: Doc<'_>) -> Result<DocBuf>;

    /// Returns true if a filter can have the search only as one of the conditions that all must hold, not
    /// below `$or`.
    fn is_conjunct_only(&self) -> bool {
        false
    }

    /// Writes the condition as explain's `parsedQuery` shows it.
    fn write(&self, writer: &mut DocWriter<'_>);

    /// Returns a line about the search for the message of a query that no plan can answer.
    fn describe(&self) -> String;
}

/// A test of one value.
pub trait ValueTest: Any + Debug + Send + Sync {
    /// Returns the operator's name, with its dollar sign.
    fn operator(&self) -> &'static str;

    /// Returns the test as its own type, for the kind of index that finds its matches.
    fn as_any(&self) -> &dyn Any;

    /// Returns true if a value passes. A missing value never does. Counts its work in `shared`.
    ///
    /// # Errors
    /// The interrupt's error.
    fn test(&self, value: Value<'_>, shared: &Shared) -> Result<bool>;

    /// Returns how the test treats an array at the end of the path: as a whole, or also its elements.
    fn leaf(&self) -> Leaf;

    /// Returns why the values at a path passed, or did not pass, for the error of a validator.
    ///
    /// # Errors
    /// The interrupt's error.
    fn reason(&self, values: &[Value<'_>], passed: bool, shared: &Shared) -> Result<&'static str>;

    /// Writes the operator and its operand.
    fn write(&self, writer: &mut DocWriter<'_>);
}
