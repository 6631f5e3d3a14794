//! What must be there before fjall opens a database. fjall makes what it misses (a keyspace without
//! its `current` is removed and begun anew, a missing log too) and removes what it does not know. So
//! every open first compares the directory with what a database of ours always has: five keyspaces,
//! the newest list of tables of each, every table in it, and logs whose numbers have no gap. Reads
//! names, and two small files of each keyspace.

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::damage::Damage;
use crate::journal;
use crate::layout::keyspace_path;
use crate::manifest::{self, Manifest};

/// The file that fjall locks; it refuses a database without it.
pub(crate) const LOCK: &str = "lock";
/// Keyspaces of a database: fjall's own and the four spaces.
const KEYSPACES: u64 = 5;

/// A keyspace and its table files.
pub(crate) struct Keyspace {
    /// The directory of the files.
    pub path: PathBuf,
    /// Its list of tables, where it can be read.
    pub manifest: Option<Manifest>,
    /// What is wrong with it.
    pub damages: Vec<Damage>,
}

/// What was found.
pub(crate) struct Inventory {
    /// In the order of their numbers.
    pub keyspaces: Vec<Keyspace>,
    /// What is wrong with the logs and the file that fjall locks.
    pub logs: Vec<Damage>,
    /// What does not belong there.
    pub unknown: Vec<Damage>,
}

impl Inventory {
    /// Everything that is wrong.
    pub fn damages(&self) -> Vec<Damage> {
        let keyspaces = self.keyspaces.iter().flat_map(|keyspace| &keyspace.damages);
        keyspaces.chain(&self.logs).chain(&self.unknown).cloned().collect()
    }
}

/// Looks at a database without changing anything.
pub(crate) fn take(data: &Path) -> Inventory {
    let mut unknown = Vec::new();
    let keyspaces = (0..KEYSPACES).map(|number| keyspace(data, number, &mut unknown)).collect();
    let known = |name: &OsString| {
        let number = name.to_str().and_then(|name| name.parse::<u64>().ok());
        number.is_some_and(|number| number < KEYSPACES)
    };
    let folder = data.join("keyspaces");
    for name in names(&folder, &mut unknown) {
        // fjall passes over files here, and removes directories.
        if !known(&name) && folder.join(&name).is_dir() {
            unknown.push(Damage::new(&folder.join(name), "is no keyspace of this database"));
        }
    }
    let mut logs = logs(data);
    let lock = data.join(LOCK);
    if !lock.exists() {
        logs.push(Damage::new(&lock, "is missing"));
    }
    Inventory { keyspaces, logs, unknown }
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
        // fjall removes every file that begins so, but for the newest list.
        if name.strip_prefix('v').is_some_and(|rest| !is_list(rest)) {
            unknown.push(Damage::new(&found.path.join(&*name), "is no file of a keyspace"));
        }
    }
    found
}

/// Every table in the list is there. Others are left of a flush or a compaction that a crash ended.
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
            None => unknown.push(Damage::new(&folder.join(name), "is no table")),
        }
    }
    for table in &manifest.tables {
        if !there.contains(&table.id) {
            damages.push(Damage::new(&manifest::table_path(keyspace, table.id), "is missing"));
        }
    }
}

/// There is always a log, and the numbers of several follow each other: fjall removes the oldest.
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

/// The names in a directory.
fn names(directory: &Path, damages: &mut Vec<Damage>) -> Vec<OsString> {
    let read = std::fs::read_dir(directory)
        .and_then(|entries| entries.map(|entry| Ok(entry?.file_name())).collect());
    read.unwrap_or_else(|error| {
        damages.push(Damage::unreadable(directory, &error));
        Vec::new()
    })
}
