//! Documents and their index entries, written in one storage transaction.
