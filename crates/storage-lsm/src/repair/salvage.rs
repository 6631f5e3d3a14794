//! Repairs damaged keyspaces. Every byte of every table is verified with its checksum. A keyspace
//! with missing or damaged files is built again from its readable rows, and the old files are kept
//! beside it. The layer above builds lost index entries again from the documents. Change records
//! are kept only if all of them are readable: a reader must not miss one unnoticed.

use std::path::{Path, PathBuf};

use quire_storage::{Result, Space};

use crate::creation;
use crate::directory::damage::{Damage, refusal};
use crate::directory::durable_files::{sync_directory, sync_tree, write_synced};
use crate::directory::layout::{keyspace_path, number_of};
use crate::directory::private::create_directories;
use crate::directory::repair_mark::RepairMark;
use crate::log::journal;
use crate::recovery::inventory::{self, Keyspace};
use crate::repair::rebuild::{self, Rebuilt};
use crate::table::file::{self, Readable};
use crate::table::manifest;

/// Repairs the missing and damaged files of `data`, and adds a text for each to `warnings`. Unknown
/// files are refused.
pub(crate) fn repair(data: &Path, mark: &mut RepairMark, warnings: &mut Vec<String>) -> Result<()> {
    let mut inventory = inventory::take(data);
    if !inventory.unknown.is_empty() {
        return Err(refusal(&inventory.unknown));
    }
    repair_logs(data, &inventory.logs, warnings)?;
    for keyspace in &mut inventory.keyspaces {
        keyspace.damages.extend(damaged_tables(keyspace));
    }
    let fresh = data.with_extension("mending");
    remove(&fresh)?;
    let damaged =
        inventory.keyspaces.iter().zip(Space::ALL).filter(|(found, _)| !found.damages.is_empty());
    for (found, space) in damaged {
        if !fresh.try_exists()? {
            create_directories(&fresh)?;
            creation::make(&fresh)?;
        }
        let (number, name) = (number_of(space), space.name());
        let made = keyspace_path(&fresh, number);
        let what = told(space, &make_again(found, space, &made)?);
        sync_tree(&made)?;
        let aside = mark.replace(number, name, &made)?;
        let aside = aside.map(|aside| format!("; the old files are in {}", aside.display()));
        let places: Vec<String> = found.damages.iter().take(10).map(Damage::to_string).collect();
        let aside = aside.unwrap_or_default();
        warnings
            .push(format!("files of '{name}' were damaged: {what}{aside} ({})", places.join("; ")));
    }
    remove(&fresh)
}

/// Returns the damages of the tables of a keyspace that are in its list and exist.
pub(crate) fn damaged_tables(keyspace: &Keyspace) -> Vec<Damage> {
    let Some(manifest) = &keyspace.manifest else { return Vec::new() };
    let tables = manifest.tables.iter().map(|table| {
        let path = manifest::table_path(&keyspace.path, table.id);
        match path.exists() {
            true => file::verify(&path, table),
            // Already reported as missing.
            false => Ok(()),
        }
    });
    tables.filter_map(Result::err).collect()
}

fn make_again(found: &Keyspace, space: Space, made: &Path) -> Result<Rebuilt> {
    let tables = readable(found)?;
    let has_missing = found.damages.iter().any(|damage| damage.offset.is_none());
    let has_lost = has_missing || tables.iter().any(|table| table.has_lost);
    if space == Space::Log && has_lost {
        return Ok(Rebuilt { rows: 0, damaged_tables: 1 });
    }
    rebuild::fill(made, space, tables)
}

/// Returns the readable rows of the tables in the list; if the list is lost, of all tables that
/// exist.
fn readable(found: &Keyspace) -> Result<Vec<Readable>> {
    if let Some(manifest) = &found.manifest {
        let path = |id| manifest::table_path(&found.path, id);
        return Ok(manifest.tables.iter().map(|t| Readable::find(&path(t.id), t.seqno)).collect());
    }
    let folder = found.path.join(manifest::TABLES);
    let Ok(entries) = std::fs::read_dir(&folder) else { return Ok(Vec::new()) };
    let paths: Vec<PathBuf> =
        entries.map(|entry| entry.map(|entry| entry.path())).collect::<std::io::Result<_>>()?;
    Ok(paths.iter().map(|path| Readable::find(path, 0)).collect())
}

fn told(space: Space, rebuilt: &Rebuilt) -> String {
    let Rebuilt { rows, damaged_tables } = rebuilt;
    let lost = match (damaged_tables, space) {
        (0, _) => "no row of an existing table is lost".to_owned(),
        (_, Space::Idx) => "lost entries are built again from the documents".to_owned(),
        (_, Space::Log) => "the change records are lost".to_owned(),
        (tables, Space::Doc | Space::Meta) => {
            format!(
                "rows of {tables} tables are lost, and older versions of these rows may have become visible"
            )
        }
    };
    format!("{rows} rows were kept, with new indexes and filters; {lost}")
}

/// Creates a missing log and a lost version file: every database has both.
fn repair_logs(data: &Path, damages: &[Damage], warnings: &mut Vec<String>) -> Result<()> {
    for damage in damages {
        warnings.push(format!("{damage}; its content is lost"));
    }
    if journal::numbers(data)?.is_empty() {
        write_synced(&journal::path(data, 0), b"")?;
    }
    let version = data.join(creation::VERSION);
    if std::fs::read(&version).ok().as_deref() != Some(creation::VERSION_TEXT) {
        write_synced(&version, creation::VERSION_TEXT)?;
        warnings.push(format!("{} was lost or damaged and was written again", version.display()));
    }
    sync_directory(data)
}

fn remove(path: &Path) -> Result<()> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}
