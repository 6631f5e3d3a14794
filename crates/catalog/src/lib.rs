//! Databases, collections, indexes and their options: persisted and versioned.
