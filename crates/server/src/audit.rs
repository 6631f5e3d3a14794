//! The file of the audit log: one JSON document on each line, readable by its owner only.

use crate::clients::lock;
use crate::log::set_aside;
use quire_commands::AuditSink;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// A file that events are appended to.
pub struct AuditFile {
    file: Mutex<File>,
    path: PathBuf,
}

impl AuditFile {
    /// Opens the file for appending; creates it if it is missing. Only its owner can read it.
    ///
    /// # Errors
    /// The errors of the file operation.
    pub fn open(path: &Path) -> io::Result<AuditFile> {
        Ok(AuditFile { file: Mutex::new(append_to(path)?), path: path.to_owned() })
    }
}

impl AuditSink for AuditFile {
    fn write(&self, line: &str) -> io::Result<()> {
        // One write, so that a line is complete or missing if the process ends.
        lock(&self.file).write_all(format!("{line}\n").as_bytes())
    }

    fn rotate(&self) -> io::Result<String> {
        let mut file = lock(&self.file);
        let old = set_aside(&self.path)?;
        *file = append_to(&self.path)?;
        Ok(old.to_string_lossy().into_owned())
    }
}

fn append_to(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    Ok(file)
}
