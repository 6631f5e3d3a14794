//! Estimates the dead bytes of tables: what deleted and overwritten keys of a range occupy until a
//! compaction removes them.

use bytes::Bytes;
use lsm_tree::Table;
use quire_storage::Result;

use crate::error::storage;
use crate::table::trees::TableList;

/// The content of tables in a range.
#[derive(Default)]
struct Stored {
    /// The number of values and tombstones, counting each version of a key.
    rows: u64,
    tombstones: u64,
    bytes: u64,
}

/// Estimates the bytes of a range of these tables that are dead, as
/// [`Engine::reclaimable_bytes`](quire_storage::Engine::reclaimable_bytes) says.
pub(crate) fn dead_bytes(
    tables: &TableList,
    (start, end): (&[u8], &[u8]),
    live: Option<u64>,
) -> Result<u64> {
    let mut stored = Stored::default();
    for table in tables.tables() {
        stored.add(table, start, end)?;
    }
    Ok(stored.dead_bytes(live))
}

/// Estimates the bytes of these tables that deleted keys occupy. It assumes that each tombstone in
/// the tables hides one value, and does not count the tombstones themselves.
pub(crate) fn deleted_bytes(tables: &TableList) -> u64 {
    let (mut rows, mut tombstones, mut bytes) = (0, 0, 0);
    for table in tables.tables() {
        rows += table.metadata.item_count;
        tombstones += table.metadata.tombstone_count;
        bytes += table.metadata.file_size;
    }
    let values = rows.saturating_sub(tombstones).max(1);
    u64::try_from(u128::from(bytes) * u128::from(tombstones.min(values)) / u128::from(values))
        .unwrap_or(bytes)
}

impl Stored {
    /// Adds the part of a table that lies in the range. For a table wholly inside the range the
    /// metadata is enough; of any other table the rows in the range are read.
    fn add(&mut self, table: &Table, start: &[u8], end: &[u8]) -> Result<()> {
        let (keys, meta) = (&table.metadata.key_range, &table.metadata);
        let is_before_end = |key: &[u8]| end.is_empty() || key < end;
        if keys.max()[..] < *start || !is_before_end(keys.min()) {
            return Ok(());
        }
        if keys.min()[..] >= *start && is_before_end(keys.max()) {
            self.rows += meta.item_count;
            self.tombstones += meta.tombstone_count;
            self.bytes += meta.file_size;
            return Ok(());
        }
        let (mut rows, mut tombstones) = (0, 0);
        for row in table.range(lsm_tree::UserKey::from(Bytes::copy_from_slice(start))..) {
            let row = row.map_err(|error| storage(error, "reading a table"))?;
            if !is_before_end(&row.key.user_key) {
                break;
            }
            rows += 1;
            tombstones += u64::from(row.is_tombstone());
        }
        self.rows += rows;
        self.tombstones += tombstones;
        self.bytes += meta.file_size * rows / meta.item_count.max(1);
        Ok(())
    }

    /// Estimates the bytes of the rows that are not live. If the number of live rows is not known,
    /// each tombstone counts as two dead rows: itself and the row that it deletes.
    fn dead_bytes(&self, live: Option<u64>) -> u64 {
        let dead = match live {
            Some(live) => self.rows.saturating_sub(live),
            None => self.rows.min(self.tombstones * 2),
        };
        self.bytes * dead / self.rows.max(1)
    }
}
