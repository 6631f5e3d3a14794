//! Checks that all files are present before a database is opened. lsm-tree creates missing files
//! (an empty tree, if its `current` is missing) and removes unknown ones. So every open first
//! compares the directory with the files that a database always has: four keyspaces, the newest
//! list of tables of each, every table in it, and logs whose numbers have no gap. The check reads
//! names, and two small files of each keyspace.

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use quire_storage::Space;

use crate::directory::damage::Damage;
use crate::directory::layout::{keyspace_path, number_of};
use crate::log::journal;
use crate::table::manifest::{self, Manifest};

/// The keyspace in which older versions kept the names of the others.
const NAMES: u64 = 0;

/// A keyspace and its table files.
pub(crate) struct Keyspace {
    /// The directory of the files.
    pub path: PathBuf,
    /// Its list of tables; `None` if it cannot be read.
    pub manifest: Option<Manifest>,
    /// Its missing and damaged files.
    pub damages: Vec<Damage>,
}

/// The result of the comparison.
pub(crate) struct Inventory {
    /// The keyspaces of the spaces, in their order.
    pub keyspaces: Vec<Keyspace>,
    /// The damages of the logs.
    pub logs: Vec<Damage>,
    /// The files that no database has.
    pub unknown: Vec<Damage>,
}

impl Inventory {
    /// Returns all damages.
    pub fn damages(&self) -> Vec<Damage> {
        let keyspaces = self.keyspaces.iter().flat_map(|keyspace| &keyspace.damages);
        keyspaces.chain(&self.logs).chain(&self.unknown).cloned().collect()
    }
}

/// Compares a database with what must be there. Changes nothing.
pub(crate) fn take(data: &Path) -> Inventory {
    let mut unknown = Vec::new();
    let numbers = Space::ALL.map(number_of);
    let keyspaces = numbers.map(|number| keyspace(data, number, &mut unknown)).into();
    let known = |name: &OsString| {
        let number = name.to_str().and_then(|name| name.parse::<u64>().ok());
        number.is_some_and(|number| number == NAMES || numbers.contains(&number))
    };
    let folder = data.join("keyspaces");
    for name in names(&folder, &mut unknown) {
        if !known(&name) && folder.join(&name).is_dir() {
            unknown.push(Damage::new(&folder.join(name), "is not a keyspace of this database"));
        }
    }
    Inventory { keyspaces, logs: logs(data), unknown }
}

fn keyspace(data: &Path, number: u64, unknown: &mut Vec<Damage>) -> Keyspace {
    let path = keyspace_path(data, number);
    let mut found = Keyspace { path, manifest: None, damages: Vec::new() };
    if !found.path.is_dir() {
        found.damages.push(Damage::new(&found.path, "is missing"));
        return found;
    }
    match manifest::read(&found.path) {
        Ok(manifest) => {
            check_tables(&found.path, &manifest, &mut found.damages, unknown);
            found.manifest = Some(manifest);
        }
        Err(damage) => found.damages.push(damage),
    }
    for name in names(&found.path, &mut found.damages) {
        let name = name.to_string_lossy();
        let is_list = |rest: &str| rest.bytes().all(|byte| byte.is_ascii_digit());
        // lsm-tree removes every file with this prefix except the newest list.
        if name.strip_prefix('v').is_some_and(|rest| !is_list(rest)) {
            unknown.push(Damage::new(&found.path.join(&*name), "is not a file of a keyspace"));
        }
    }
    found
}

/// Checks that every table in the list exists. Other tables are left from a flush or a compaction
/// that a crash interrupted.
fn check_tables(
    keyspace: &Path,
    manifest: &Manifest,
    damages: &mut Vec<Damage>,
    unknown: &mut Vec<Damage>,
) {
    let folder = keyspace.join(manifest::TABLES);
    let mut there = HashSet::new();
    for name in names(&folder, damages) {
        match name.to_str().and_then(|name| name.parse::<u64>().ok()) {
            Some(id) => {
                there.insert(id);
            }
            None if name.to_string_lossy().starts_with("._") || name == ".DS_Store" => {}
            None => unknown.push(Damage::new(&folder.join(name), "is not a table")),
        }
    }
    for table in &manifest.tables {
        if !there.contains(&table.id) {
            damages.push(Damage::new(&manifest::table_path(keyspace, table.id), "is missing"));
        }
    }
}

/// Checks that a log exists and that the numbers of the logs have no gap: the oldest are removed
/// first.
fn logs(data: &Path) -> Vec<Damage> {
    let numbers = match journal::numbers(data) {
        Ok(numbers) => numbers,
        Err(error) => return vec![Damage::new(data, format!("cannot be read ({error})"))],
    };
    if numbers.is_empty() {
        return vec![Damage::new(&data.join("*.jnl"), "is missing: a database always has a log")];
    }
    let gaps = numbers.windows(2).filter_map(|pair| match pair {
        [before, after] => (before + 1 < *after).then_some(before + 1),
        _ => None,
    });
    gaps.map(|missing| Damage::new(&journal::path(data, missing), "is missing")).collect()
}

/// Returns the names in a directory.
fn names(directory: &Path, damages: &mut Vec<Damage>) -> Vec<OsString> {
    let read = std::fs::read_dir(directory)
        .and_then(|entries| entries.map(|entry| Ok(entry?.file_name())).collect());
    read.unwrap_or_else(|error| {
        damages.push(Damage::unreadable(directory, &error));
        Vec::new()
    })
}
