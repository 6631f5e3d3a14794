//! The files of tables: how they are written ([`writer`], from memtables by [`flush`]), which exist
//! ([`manifest`], [`trees`]), and how their blocks are read in place. The format is that of lsm-tree
//! 3.1, which chooses and writes merges.

pub(crate) mod archive;
pub(crate) mod block_fields;
pub(crate) mod block_header;
pub(crate) mod block_index;
pub(crate) mod block_rows;
pub(crate) mod cut;
pub(crate) mod dropped;
pub(crate) mod early_sync;
pub(crate) mod file;
pub(crate) mod flush;
pub(crate) mod locate;
pub(crate) mod manifest;
pub(crate) mod opened;
pub(crate) mod output;
pub(crate) mod trees;
pub(crate) mod tuning;
pub(crate) mod writer;
