//! Writes rows to new tables. Merges and backups write theirs through lsm-tree.

use std::path::Path;

use lsm_tree::config::BloomConstructionPolicy;
use lsm_tree::table::Writer;
use lsm_tree::{CompressionType, InternalValue, Result};
use quire_storage::Space;

use crate::manifest::{self, TableEntry};
use crate::tuning::{block_bytes, restart_interval};

/// The kind of the tables of an [`Output`].
pub(crate) struct Kind {
    pub space: Space,
    /// The level for which they are written.
    pub level: u8,
    pub compression: CompressionType,
    /// The bits for each key in the filters.
    pub filter_bits: f32,
    /// The bytes of rows after which the next table is begun.
    pub row_bytes: u64,
}

/// The tables that are being written.
pub(crate) struct Output<'k, N> {
    keyspace: &'k Path,
    kind: Kind,
    /// Returns the number of the next table.
    next_number: N,
    writer: Option<Writer>,
    /// The bytes of rows in the table that is being written.
    bytes: u64,
    written: Vec<TableEntry>,
}

impl<'k, N: FnMut() -> u64> Output<'k, N> {
    pub fn new(keyspace: &'k Path, kind: Kind, next_number: N) -> Self {
        Self { keyspace, kind, next_number, writer: None, bytes: 0, written: Vec::new() }
    }

    /// Writes a row. Its key must be greater than that of the row before it.
    pub fn write(&mut self, row: InternalValue) -> Result<()> {
        if self.bytes >= self.kind.row_bytes {
            self.end_table()?;
        }
        self.bytes += bytes_of(&row);
        let writer = match &mut self.writer {
            Some(writer) => writer,
            empty => empty.insert(begin(self.keyspace, &self.kind, (self.next_number)())?),
        };
        writer.write(row)
    }

    /// Ends the table that is being written, if there is one.
    pub fn end_table(&mut self) -> Result<()> {
        self.bytes = 0;
        let finished = self.writer.take().map(Writer::finish).transpose()?;
        if let Some((id, checksum)) = finished.flatten() {
            self.written.push(TableEntry { id, checksum: checksum.into_u128(), seqno: 0 });
        }
        Ok(())
    }

    /// Syncs the last table and returns all.
    pub fn finish(mut self) -> Result<Vec<TableEntry>> {
        self.end_table()?;
        Ok(self.written)
    }
}

/// Returns the bytes of the key and the value.
pub(crate) fn bytes_of(row: &InternalValue) -> u64 {
    (row.key.user_key.len() + row.value.len()) as u64
}

fn begin(keyspace: &Path, kind: &Kind, number: u64) -> Result<Writer> {
    let writer = Writer::new(manifest::table_path(keyspace, number), number, kind.level)?;
    Ok(writer
        .use_bloom_policy(BloomConstructionPolicy::BitsPerKey(kind.filter_bits))
        .use_data_block_size(block_bytes(kind.space))
        .use_data_block_compression(kind.compression)
        .use_data_block_restart_interval(restart_interval(kind.space)))
}
