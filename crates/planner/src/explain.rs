//! Printing plans as MongoDB's `explain` does.
