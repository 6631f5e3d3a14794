//! The order of values, in one place so that every operator asks the same.

pub(crate) use quire_document::{compare, equal};
