//! What is wrong with a file, in words that name it.

use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use quire_storage::StorageError;

/// A file that is missing, cannot be read, or does not hold what was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Damage {
    pub path: PathBuf,
    /// Where in the file, in bytes, if that is known.
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

    /// The file cannot be read. One that should be there and is not is damage like any other.
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

/// One error that names everything that is wrong, at most ten things.
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
