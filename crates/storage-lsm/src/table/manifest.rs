//! The list of tables of one keyspace, read without opening it. lsm-tree 3.1 keeps it in two files:
//! `current` (the number of the newest list, little endian, then the xxh3-128 of its file and a
//! zero) and `vN`, an archive (see `archive`).

use std::path::{Path, PathBuf};

use quire_storage::{Result as StorageResult, StorageError};
use twox_hash::XxHash3_128;

use crate::directory::bytes_at::Reader;
use crate::directory::damage::Damage;
use crate::directory::durable_files::write_synced;
use crate::table::archive;

/// The names of the files of a keyspace.
pub(crate) const CURRENT: &str = "current";
pub(crate) const TABLES: &str = "tables";

/// The section that lists the tables: for each level its runs, for each run its tables.
const TABLES_SECTION: &[u8] = b"tables";

/// A table in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TableEntry {
    pub id: u64,
    /// xxh3-128 of the whole file.
    pub checksum: u128,
    /// The number that is added to the sequence numbers of its rows.
    pub seqno: u64,
}

/// The newest list of a keyspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Manifest {
    /// The number of the list; a newer list has a greater one.
    pub id: u64,
    /// Every table, from the upper levels to the lower ones.
    pub tables: Vec<TableEntry>,
}

/// Returns the path of the file that names the newest list.
pub(crate) fn current_path(keyspace: &Path) -> PathBuf {
    keyspace.join(CURRENT)
}

/// Returns the path of a table.
pub(crate) fn table_path(keyspace: &Path, id: u64) -> PathBuf {
    keyspace.join(TABLES).join(id.to_string())
}

/// Reads the newest list of a keyspace and verifies its checksum.
pub(crate) fn read(keyspace: &Path) -> Result<Manifest, Damage> {
    let (id, checksum) = read_current(keyspace)?;
    let path = keyspace.join(format!("v{id}"));
    let bytes = std::fs::read(&path).map_err(|error| Damage::unreadable(&path, &error))?;
    if XxHash3_128::oneshot(&bytes) != checksum {
        return Err(Damage::new(&path, "does not have the checksum that 'current' keeps of it"));
    }
    let damaged = || Damage::new(&path, "is not a list of tables");
    let sections = archive::parse(&bytes).ok_or_else(damaged)?;
    let tables = sections.iter().find(|(name, _)| *name == TABLES_SECTION);
    let tables = tables.and_then(|(_, section)| parse_tables(section)).ok_or_else(damaged)?;
    Ok(Manifest { id, tables })
}

fn read_current(keyspace: &Path) -> Result<(u64, u128), Damage> {
    let path = current_path(keyspace);
    let bytes = std::fs::read(&path).map_err(|error| Damage::unreadable(&path, &error))?;
    let mut reader = Reader::new(&bytes);
    let parsed = (|| {
        let id = u64::from_le_bytes(reader.array()?);
        let checksum = u128::from_le_bytes(reader.array()?);
        (reader.array()? == [0] && reader.is_at_end()).then_some((id, checksum))
    })();
    parsed.ok_or_else(|| Damage::new(&path, "does not name a list of tables"))
}

fn parse_tables(section: &[u8]) -> Option<Vec<TableEntry>> {
    let mut reader = Reader::new(section);
    let mut tables = Vec::new();
    let [levels] = reader.array()?;
    for _ in 0..levels {
        let [runs] = reader.array()?;
        for _ in 0..runs {
            let count = u32::from_le_bytes(reader.array()?);
            for _ in 0..count {
                let id = u64::from_le_bytes(reader.array()?);
                let [0] = reader.array()? else { return None };
                let checksum = u128::from_le_bytes(reader.array()?);
                let seqno = u64::from_le_bytes(reader.array()?);
                tables.push(TableEntry { id, checksum, seqno });
            }
        }
    }
    reader.is_at_end().then_some(tables)
}

/// Replaces the newest list of `keyspace`, which must not be open, by one with these tables in one
/// `level`. The tables are in the order of their keys and do not overlap.
pub(crate) fn write(keyspace: &Path, tables: &[TableEntry], level: u8) -> StorageResult<()> {
    let (id, _) = read_current(keyspace)?;
    let path = keyspace.join(format!("v{id}"));
    let bytes = std::fs::read(&path)?;
    let no_list = || StorageError::from(Damage::new(&path, "is not a list of tables"));
    let sections = archive::parse(&bytes).ok_or_else(no_list)?;
    let levels = sections.iter().find(|(name, _)| *name == TABLES_SECTION);
    let [levels, ..] = levels.ok_or_else(no_list)?.1 else { return Err(no_list()) };
    let listed = encode_tables(tables, level, *levels);
    let sections = sections.iter().map(|(name, section)| match *name == TABLES_SECTION {
        true => (*name, &listed[..]),
        false => (*name, *section),
    });
    let archive = archive::encode(sections);
    write_synced(&path, &archive)?;
    let mut current = id.to_le_bytes().to_vec();
    current.extend(XxHash3_128::oneshot(&archive).to_le_bytes());
    current.push(0);
    write_synced(&current_path(keyspace), &current)
}

fn encode_tables(tables: &[TableEntry], level: u8, levels: u8) -> Vec<u8> {
    let mut section = vec![levels];
    for number in 0..levels {
        if number != level || tables.is_empty() {
            section.push(0);
            continue;
        }
        section.push(1);
        section.extend(u32::try_from(tables.len()).unwrap_or(u32::MAX).to_le_bytes());
        for table in tables {
            section.extend(table.id.to_le_bytes());
            section.push(0);
            section.extend(table.checksum.to_le_bytes());
            section.extend(table.seqno.to_le_bytes());
        }
    }
    section
}
