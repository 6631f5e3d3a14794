//! Descriptions of damaged files, for error messages.

use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use quire_storage::StorageError;

/// A file that is missing, unreadable, or has other bytes than were written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Damage {
    pub path: PathBuf,
    /// The offset of the damage in the file, in bytes, if it is known.
    pub offset: Option<u64>,
    pub what: String,
}

impl Damage {
    pub fn new(path: &Path, what: impl Into<String>) -> Self {
        Self { path: path.to_owned(), offset: None, what: what.into() }
    }

    pub fn at(path: &Path, offset: u64, what: impl Into<String>) -> Self {
        Self { path: path.to_owned(), offset: Some(offset), what: what.into() }
    }

    /// Describes a file that cannot be read. A missing file that should exist is damage too.
    pub fn unreadable(path: &Path, error: &std::io::Error) -> Self {
        match error.kind() {
            ErrorKind::NotFound => Self::new(path, "is missing"),
            _ => Self::new(path, format!("cannot be read ({error})")),
        }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.offset {
            Some(offset) => write!(f, "{} at byte {offset}: {}", self.path.display(), self.what),
            None => write!(f, "{} {}", self.path.display(), self.what),
        }
    }
}

impl From<Damage> for StorageError {
    fn from(damage: Damage) -> Self {
        Self::Corruption { place: damage.to_string() }
    }
}

/// Returns one error that names all damages, at most ten of them.
pub(crate) fn refusal(damages: &[Damage]) -> StorageError {
    const TOLD_MAX: usize = 10;
    let told: Vec<String> = damages.iter().take(TOLD_MAX).map(Damage::to_string).collect();
    let more = match damages.len().saturating_sub(TOLD_MAX) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    StorageError::Corruption {
        place: format!(
            "{}{more}; nothing was changed; restore a backup, or run `quire check --repair`, which keeps \
             everything that can be read",
            told.join("; ")
        ),
    }
}
