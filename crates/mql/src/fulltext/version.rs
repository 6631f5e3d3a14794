//! The versions of text indexes, which differ in languages and folding.

/// The version of a text index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum TextVersion {
    One,
    Two,
    Three,
}
