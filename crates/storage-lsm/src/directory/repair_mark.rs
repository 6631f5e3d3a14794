//! The mark of a repair that has begun and not ended: the file `REPAIR`. While it exists, only
//! another repair opens the directory. It lists the keyspaces that are being replaced, so that a
//! repair that continues after a crash puts back the files that were moved away and not yet
//! replaced.
//!
//! It has one line for each such keyspace: its number and the name of the directory, beside `data`,
//! to which its files are moved.

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use quire_storage::{Result, StorageError};

use crate::directory::durable_files::sync_directory;
use crate::directory::layout::keyspace_path;
use crate::directory::private::file_options;

const MARK: &str = "REPAIR";
const UNFINISHED: &str = "REPAIR.new";

/// Returns true if a repair of the directory has begun and not ended.
pub(crate) fn is_there(directory: &Path) -> Result<bool> {
    Ok(directory.join(MARK).try_exists()?)
}

/// Removes the mark. Everything that was repaired must be durable.
pub(crate) fn remove(directory: &Path) -> Result<()> {
    match std::fs::remove_file(directory.join(MARK)) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    sync_directory(directory)
}

/// The mark of a running repair.
pub(crate) struct RepairMark {
    directory: PathBuf,
    moves: Vec<(u64, String)>,
}

impl RepairMark {
    /// Marks durably that a repair begins, or continues one that was interrupted: a keyspace that
    /// was moved away and not replaced is put back, so that it is checked again.
    pub fn begin(directory: &Path) -> Result<Self> {
        let mark = Self { directory: directory.to_owned(), moves: Vec::new() };
        if is_there(directory)? {
            let text = std::fs::read_to_string(directory.join(MARK))?;
            for line in text.lines() {
                mark.put_back(line)?;
            }
        }
        mark.write()?;
        Ok(mark)
    }

    fn put_back(&self, line: &str) -> Result<()> {
        let parsed = line.split_once(' ').and_then(|(number, aside)| {
            let is_name = aside.starts_with("data.damaged-") && !aside.contains('/');
            Some((number.parse().ok()?, aside)).filter(|_| is_name)
        });
        let Some((number, aside)) = parsed else {
            let place = format!("{} has a line of its own", self.directory.join(MARK).display());
            return Err(StorageError::Corruption { place });
        };
        let (place, aside) = (keyspace_path(&self.data(), number), self.directory.join(aside));
        if aside.try_exists()? && !place.try_exists()? {
            std::fs::rename(&aside, &place)?;
            self.sync_names()?;
        }
        Ok(())
    }

    /// Replaces the keyspace `number` by `new`, which must be durable. Returns the directory to
    /// which the old files were moved; `None` if there were none.
    pub fn replace(&mut self, number: u64, name: &str, new: &Path) -> Result<Option<PathBuf>> {
        let place = keyspace_path(&self.data(), number);
        let mut moved = None;
        if place.try_exists()? {
            let aside = self.free_name(name)?;
            self.moves.push((number, aside.clone()));
            self.write()?;
            let aside = self.directory.join(aside);
            std::fs::rename(&place, &aside)?;
            self.sync_names()?;
            moved = Some(aside);
        }
        std::fs::rename(new, &place)?;
        self.sync_names()?;
        Ok(moved)
    }

    /// Syncs the directories whose entries a move changes: the one that holds `data`, and that of
    /// the keyspaces.
    fn sync_names(&self) -> Result<()> {
        sync_directory(&self.data().join("keyspaces"))?;
        sync_directory(&self.directory)
    }

    fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    /// Returns an unused name, such as `data.damaged-idx-0`.
    fn free_name(&self, name: &str) -> Result<String> {
        let mut number = 0;
        loop {
            let free = format!("data.damaged-{name}-{number}");
            if !self.directory.join(&free).try_exists()? {
                return Ok(free);
            }
            number += 1;
        }
    }

    fn write(&self) -> Result<()> {
        let unfinished = self.directory.join(UNFINISHED);
        let mut file = file_options().truncate(true).open(&unfinished)?;
        for (number, aside) in &self.moves {
            writeln!(file, "{number} {aside}")?;
        }
        file.sync_all()?;
        std::fs::rename(&unfinished, self.directory.join(MARK))?;
        sync_directory(&self.directory)
    }
}
