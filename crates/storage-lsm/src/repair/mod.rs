//! What treats a damaged directory: a check opens an image of it, a repair builds damaged keyspaces
//! again.

pub(crate) mod image;
pub(crate) mod rebuild;
pub(crate) mod salvage;
