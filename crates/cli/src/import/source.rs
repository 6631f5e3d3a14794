//! The items of an input: documents with their lines, and lines without a document.

use quire_document::DocBuf;

/// One item of the input.
#[derive(Debug, PartialEq)]
pub(crate) enum Item {
    /// A document, and the line in which it begins, from 1.
    Document { line: u64, document: DocBuf },
    /// A line without a document; reading continues after it.
    Bad { line: u64, why: String },
    /// The end of reading after an error.
    End { line: u64, why: String },
}

/// Reads items one after the other.
pub(crate) trait Source {
    /// Returns the next item; `None` at the end of the input.
    fn next(&mut self) -> Option<Item>;
}
