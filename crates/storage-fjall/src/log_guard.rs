//! The guard before every open: what fjall's log is worth after a crash.
//!
//! fjall 3.1 refuses to open when a checksum in its log is wrong, which a torn last record can
//! cause, and silently drops intact records after a hole. So before it opens, every log file is
//! read here: a torn tail (nothing intact after it) is cut off with a warning; damage with intact
//! records after it is refused and left as it is, until an operator asks for a repair.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use quire_storage::Result;

use crate::damage::{Damage, refusal};
use crate::directory::sync_directory;
use crate::journal::{self, Inspection, inspect};

/// What a log file is worth.
pub(crate) struct Verdict {
    pub path: PathBuf,
    /// The bytes from the beginning that fjall may read.
    pub kept: usize,
    /// What an operator should know of what is not kept, if nothing is damaged.
    pub warning: Option<String>,
    /// Why the log must not be opened as it is.
    pub damage: Option<Damage>,
    found: Inspection,
}

/// Reads every log file, oldest first. Changes nothing.
pub(crate) fn judge(data: &Path) -> Result<Vec<Verdict>> {
    let files = journal::files(data)?;
    let newest = files.last().cloned();
    files.iter().map(|path| Ok(judge_file(inspect(path)?, Some(path) == newest.as_ref()))).collect()
}

fn judge_file(found: Inspection, is_newest: bool) -> Verdict {
    let (mut warning, mut damage, mut kept) = (None, None, found.length);
    if let Some(from) = found.damaged_from {
        let after = found.intact_after_damage();
        kept = found.good_end();
        if after == 0 && is_newest {
            warning = Some(format!(
                "{}: the last record, at byte {from}, was not written completely before the crash \
                 and was removed; it had not been acknowledged as durable",
                found.path.display()
            ));
        } else {
            let what = format!("the log is damaged, with {after} intact records after the damage");
            damage = Some(Damage::at(&found.path, u64::try_from(from).unwrap_or(u64::MAX), what));
        }
    }
    Verdict { path: found.path.clone(), kept, warning, damage, found }
}

/// What is damaged.
pub(crate) fn damages(logs: &[Verdict]) -> Vec<Damage> {
    logs.iter().filter_map(|log| log.damage.clone()).collect()
}

/// Makes the log safe to open, or refuses it as it is. Returns what an operator should know.
pub(crate) fn guard(logs: &[Verdict], repair: bool) -> Result<Vec<String>> {
    let damages = damages(logs);
    if !repair && !damages.is_empty() {
        return Err(refusal(&damages));
    }
    let mut told = Vec::new();
    for log in logs {
        if log.damage.is_some() {
            told.push(rewrite(&log.found)?);
        } else if let Some(warning) = &log.warning {
            cut(&log.path, log.kept)?;
            told.push(warning.clone());
        }
    }
    Ok(told)
}

fn cut(path: &Path, length: usize) -> Result<()> {
    let file = OpenOptions::new().write(true).open(path)?;
    file.set_len(u64::try_from(length).unwrap_or(u64::MAX))?;
    file.sync_all()?;
    Ok(())
}

/// Writes the intact batches anew and keeps the damaged file under another name. At every moment
/// one of the two has the name of the log.
fn rewrite(found: &Inspection) -> Result<String> {
    let bytes = std::fs::read(&found.path)?;
    let mended = found.path.with_extension("mended");
    let mut file = File::create(&mended)?;
    for batch in &found.intact {
        file.write_all(bytes.get(batch.clone()).unwrap_or_default())?;
    }
    file.sync_all()?;
    let mut aside = found.path.with_extension("damaged");
    let mut number = 1;
    while aside.try_exists()? {
        number += 1;
        aside = found.path.with_extension(format!("damaged{number}"));
    }
    std::fs::copy(&found.path, &aside)?;
    File::open(&aside)?.sync_all()?;
    if let Some(parent) = found.path.parent() {
        sync_directory(parent)?;
    }
    std::fs::rename(&mended, &found.path)?;
    if let Some(parent) = found.path.parent() {
        sync_directory(parent)?;
    }
    Ok(format!(
        "{}: damaged at byte {}; {} intact records kept, {} of them after the damage; what the \
         damaged bytes said is lost; the damaged file was kept as {}",
        found.path.display(),
        found.damaged_from.unwrap_or_default(),
        found.intact.len(),
        found.intact_after_damage(),
        aside.display()
    ))
}

/// Empties the log after everything it says has reached the tables, so that the next open has
/// nothing to replay.
pub(crate) fn clear(data: &Path) -> Result<()> {
    let mut files = journal::files(data)?;
    if let Some(newest) = files.pop() {
        // The oldest first: those that are left always follow each other.
        for path in files {
            std::fs::remove_file(path)?;
        }
        cut(&newest, 0)?;
        sync_directory(data)?;
    }
    Ok(())
}
