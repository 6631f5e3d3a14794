//! What an input gives: documents with their lines, and lines that hold none.

use quire_document::DocBuf;

/// One thing that was read.
#[derive(Debug, PartialEq)]
pub(crate) enum Item {
    /// A document, and the line in which it begins, from 1.
    Document { line: u64, document: DocBuf },
    /// A line that holds no document; reading goes on behind it.
    Bad { line: u64, why: String },
    /// Reading cannot go on.
    End { line: u64, why: String },
}

/// Reads documents one after the other.
pub(crate) trait Source {
    /// Returns the next thing; `None` at the end of the input.
    fn next(&mut self) -> Option<Item>;
}
