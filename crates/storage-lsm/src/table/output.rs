//! Writes rows to new tables, each up to a size. Merges and backups write theirs through lsm-tree.

use std::path::Path;

use lsm_tree::Result;

use crate::table::manifest::{self, TableEntry};
use crate::table::writer::{Kind, NewRow, TableWriter};

/// The tables that are being written.
pub(crate) struct Output<'k, N> {
    keyspace: &'k Path,
    kind: Kind,
    /// The bytes of rows after which the next table is begun.
    table_bytes: u64,
    /// Returns the number of the next table.
    next_number: N,
    writer: Option<(u64, TableWriter)>,
    /// The bytes of rows in the table that is being written.
    bytes: u64,
    written: Vec<TableEntry>,
}

impl<'k, N: FnMut() -> u64> Output<'k, N> {
    pub fn new(keyspace: &'k Path, kind: Kind, table_bytes: u64, next_number: N) -> Self {
        let written = Vec::new();
        Self { keyspace, kind, table_bytes, next_number, writer: None, bytes: 0, written }
    }

    /// Writes a row. Its key must be greater than that of the row before it.
    pub fn write(&mut self, row: NewRow<'_>) -> Result<()> {
        if self.bytes >= self.table_bytes {
            self.end_table()?;
        }
        self.bytes += row.bytes() as u64;
        let (_, writer) = match &mut self.writer {
            Some(writer) => writer,
            empty => {
                let number = (self.next_number)();
                let path = manifest::table_path(self.keyspace, number);
                empty.insert((number, TableWriter::create(&path, number, self.kind)?))
            }
        };
        writer.write(row)
    }

    /// Ends the table that is being written, if there is one.
    pub fn end_table(&mut self) -> Result<()> {
        self.bytes = 0;
        if let Some((id, writer)) = self.writer.take() {
            self.written.push(TableEntry { id, checksum: writer.finish()?, seqno: 0 });
        }
        Ok(())
    }

    /// Syncs the last table and returns all.
    pub fn finish(mut self) -> Result<Vec<TableEntry>> {
        self.end_table()?;
        Ok(self.written)
    }
}
