//! The list of tables of one keyspace, read without opening it. lsm-tree 3.1 keeps it in two files:
//! `current` (the number of the newest list, little endian, then the xxh3-128 of its file and a
//! zero) and `vN`, an archive (see `archive`).

use std::io::Write;
use std::path::{Path, PathBuf};

use quire_storage::{Result as StorageResult, StorageError};
use twox_hash::XxHash3_128;

use crate::directory::bytes_at::Reader;
use crate::directory::damage::Damage;
use crate::directory::durable_files::write_synced;
use crate::directory::private::{create_directories, file_options};
use crate::table::archive;
use crate::table::tuning::LEVELS;

/// The names of the files of a keyspace.
pub(crate) const CURRENT: &str = "current";
pub(crate) const TABLES: &str = "tables";

/// The section that lists the tables: for each level its runs, for each run its tables.
const TABLES_SECTION: &[u8] = b"tables";

/// The sections of a list of a new keyspace, which has no tables: the versions of the format and of
/// the crate that writes it, the kind of tree, the number of levels, the hash of filters, for each
/// level no run, no values apart from their keys, and no numbers of dead ones.
const NEW: [(&[u8], &[u8]); 8] = [
    (b"format_version", &[3]),
    (b"crate_version", b"3.1.10"),
    (b"tree_type", &[0]),
    (b"level_count", &[LEVELS]),
    (b"filter_hash_type", &[0]),
    (TABLES_SECTION, &[LEVELS, 0, 0, 0, 0, 0, 0, 0]),
    (b"blob_files", &[0; 4]),
    (b"blob_gc_stats", &[0; 4]),
];

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

/// Creates a keyspace without tables: its directory, the one of its tables, and its files, as lsm-tree
/// creates it. Returns what it has created. Nothing of it is synced.
pub(crate) fn create(keyspace: &Path) -> StorageResult<[PathBuf; 4]> {
    let tables = keyspace.join(TABLES);
    create_directories(&tables)?;
    let (list, current) = (keyspace.join("v0"), current_path(keyspace));
    let archive = archive::encode(NEW.into_iter());
    for (path, bytes) in [(&list, &archive), (&current, &encode_current(0, &archive))] {
        file_options().create_new(true).open(path)?.write_all(bytes)?;
    }
    Ok([list, current, tables, keyspace.to_owned()])
}

/// Returns the content of `current` for the list with this number.
fn encode_current(id: u64, archive: &[u8]) -> Vec<u8> {
    let mut current = id.to_le_bytes().to_vec();
    current.extend(XxHash3_128::oneshot(archive).to_le_bytes());
    current.push(0);
    current
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
    write_synced(&current_path(keyspace), &encode_current(id, &archive))
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use lsm_tree::AbstractTree;
    use quire_storage::Space;

    use super::*;
    use crate::directory::layout::{keyspace_path, number_of};
    use crate::table::trees::Trees;

    #[test]
    fn a_new_keyspace_is_what_lsm_tree_creates() {
        let directory = tempfile::tempdir().unwrap();
        let (theirs, ours) = (directory.path().join("theirs"), directory.path().join("ours"));
        drop(Trees::open(&theirs, 1 << 20, &Default::default()).unwrap());
        for space in Space::ALL {
            create(&keyspace_path(&ours, number_of(space))).unwrap();
        }
        let files = |data: &Path| {
            let keyspace = keyspace_path(data, number_of(Space::Doc));
            let mut files = Vec::new();
            for entry in std::fs::read_dir(keyspace).unwrap() {
                let path = entry.unwrap().path();
                files.push((path.file_name().unwrap().to_owned(), std::fs::read(&path).ok()));
            }
            files.sort();
            files
        };
        assert_eq!(files(&ours), files(&theirs));
        let trees = Trees::open(&ours, 1 << 20, &Default::default()).unwrap();
        assert!(Space::ALL.iter().all(|space| trees.of(*space).table_count() == 0));
    }
}
