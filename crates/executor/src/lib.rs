//! A plan on a read view to batches of documents.
