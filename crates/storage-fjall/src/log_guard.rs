//! The check of fjall's log before every open: how much of it can be used after a crash.
//!
//! fjall 3.1 refuses to open when a checksum in its log is wrong, which a torn last record can
//! cause, and silently drops intact records after a hole. So every log file is read here before
//! fjall opens it. A power cut can lose unsynced pages in any order. So everything after damage is
//! cut off with a warning if nothing shows that it was on stable storage: no later record (each
//! says how far the log was durable) and not the file `DURABLE`. Any other damage is refused and
//! left as it is until an operator asks for a repair. The state that is opened is always a prefix
//! of the history of commits.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use quire_storage::committer::group_place;
use quire_storage::{Result, Space};

use crate::damage::{Damage, refusal};
use crate::durable_files::sync_directory;
use crate::durable_mark::{self, Durable};
use crate::inventory::Inventory;
use crate::journal::{self, Inspection, inspect};
use crate::layout::number_of;
use crate::manifest;
use crate::table_file::Readable;

/// How much of a log file can be used.
pub(crate) struct Verdict {
    pub path: PathBuf,
    /// The length of the prefix that fjall may read, in bytes.
    pub kept: usize,
    /// The warning for the operator if the rest is cut off without damage.
    pub warning: Option<String>,
    /// The reason why the log must not be opened as it is.
    pub damage: Option<Damage>,
    found: Inspection,
}

/// What other files say about the history of commits.
pub(crate) struct Known<'k> {
    durable: Durable,
    inventory: &'k Inventory,
}

impl<'k> Known<'k> {
    pub fn of(directory: &Path, inventory: &'k Inventory) -> Self {
        Self { durable: durable_mark::read(directory), inventory }
    }

    /// Returns true if all commits up to this version are in tables. Reads tables only if the last
    /// clean stop did not record it.
    fn are_in_tables(&self, version: u64) -> bool {
        version <= self.durable.in_tables || version <= self.version_in_tables()
    }

    /// Returns the last version in any table.
    fn version_in_tables(&self) -> u64 {
        let meta = usize::try_from(number_of(Space::Meta)).ok();
        let keyspace = meta.and_then(|number| self.inventory.keyspaces.get(number));
        let Some((keyspace, manifest)) = keyspace.and_then(|k| Some((k, k.manifest.as_ref()?)))
        else {
            return 0;
        };
        let rows = manifest.tables.iter().flat_map(|table| {
            let path = manifest::table_path(&keyspace.path, table.id);
            let rows = Readable::find(&path, table.seqno);
            // The engine's own records come first.
            rows.take_while(|row| row.key.user_key.first() == Some(&0))
        });
        let places = rows.filter_map(|row| group_place(&row.key.user_key, &row.value));
        places.map(|place| place.version).max().unwrap_or(0)
    }
}

/// Reads every log file, oldest first, and judges it. Changes nothing.
pub(crate) fn judge(data: &Path, known: &Known<'_>) -> Result<Vec<Verdict>> {
    let files = journal::files(data)?;
    let found = files.iter().map(|path| inspect(path)).collect::<Result<Vec<_>>>()?;
    // An engine whose last write failed can have created another file while it closed, without a
    // record.
    let is_blank = |found: &Inspection| found.intact.is_empty() && found.damaged_from.is_none();
    let newest = found.iter().rposition(|found| !is_blank(found)).unwrap_or(0);
    // The version up to which the history is complete, as far as the log shows.
    let mut last = None;
    let mut verdicts = Vec::new();
    for (number, found) in found.into_iter().enumerate() {
        verdicts.push(judge_file(found, number >= newest, known, &mut last));
    }
    let ends_at = |version: u64| last.is_some_and(|last| last >= version);
    let durable = known.durable.version;
    let is_short = !ends_at(durable) && (last.is_some() || !known.are_in_tables(durable));
    let newest = verdicts.last_mut().filter(|log| is_short && log.damage.is_none());
    if let Some(newest) = newest {
        let what = "the log is cut short: commits after this were on stable storage";
        newest.damage = Some(damage_at(&newest.path, newest.found.good_end(), what));
    }
    Ok(verdicts)
}

fn damage_at(path: &Path, at: usize, what: &str) -> Damage {
    Damage::at(path, u64::try_from(at).unwrap_or(u64::MAX), what)
}

fn judge_file(
    found: Inspection,
    is_newest: bool,
    known: &Known<'_>,
    last: &mut Option<u64>,
) -> Verdict {
    let path = found.path.clone();
    let mut damage = None;
    let from = found.damaged_from.unwrap_or(usize::MAX);
    let mut claimed = 0;
    for (batch, place) in found.intact.iter().zip(&found.places) {
        if batch.start > from {
            // A record that does not say how far the log was durable may have been durable itself.
            claimed = claimed.max(place.and_then(|place| place.durable).unwrap_or(u64::MAX));
            continue;
        }
        let Some(place) = place else { continue };
        let follows = match (place.before, *last) {
            (None, _) => true,
            (Some(before), Some(last)) => before == last,
            (Some(before), None) => known.are_in_tables(before),
        };
        if !follows {
            let what = "commits before this are missing from the log";
            damage.get_or_insert(damage_at(&path, batch.start, what));
        }
        *last = Some(place.version);
    }
    let mut verdict = Verdict { path, kept: found.length, warning: None, damage, found };
    if verdict.found.damaged_from.is_some() {
        verdict.judge_damage(from, claimed, is_newest, known, *last);
    }
    verdict
}

impl Verdict {
    /// Judges a damaged log. Damage at the end of the newest file with records is the result of a
    /// failed write, or of a power cut that lost unsynced records, if neither a later record nor
    /// another file shows that they were durable.
    fn judge_damage(
        &mut self,
        from: usize,
        claimed: u64,
        is_newest: bool,
        known: &Known<'_>,
        last: Option<u64>,
    ) {
        let after = self.found.intact_after_damage();
        let is_whole_to = |version: u64| match last {
            Some(last) => version <= last,
            None => known.are_in_tables(version),
        };
        self.kept = self.found.good_end();
        let name = self.path.display();
        if !is_newest || !is_whole_to(claimed) {
            let what = format!("the log is damaged, with {after} intact records after the damage");
            self.damage.get_or_insert(damage_at(&self.path, from, &what));
        } else if !is_whole_to(known.durable.version) {
            let what = "the log is damaged in a part that was on stable storage";
            self.damage.get_or_insert(damage_at(&self.path, from, what));
        } else {
            self.warning = Some(match after {
                0 => format!(
                    "{name}: the last record, at byte {from}, was not written completely before \
                     the crash and was removed; it had not been acknowledged as durable"
                ),
                _ => format!(
                    "{name}: the record at byte {from} was not written completely before the crash \
                     and was removed with the {after} records after it; none of them had been \
                     acknowledged as durable"
                ),
            });
        }
    }
}

/// Returns the damages of the logs.
pub(crate) fn damages(logs: &[Verdict]) -> Vec<Damage> {
    logs.iter().filter_map(|log| log.damage.clone()).collect()
}

/// Cuts the logs so that they can be opened, or refuses them unchanged. Returns the warnings for
/// the operator.
pub(crate) fn guard(logs: &[Verdict], repair: bool) -> Result<Vec<String>> {
    let damages = damages(logs);
    if !repair && !damages.is_empty() {
        return Err(refusal(&damages));
    }
    let mut told = Vec::new();
    for log in logs {
        if let Some(damage) = &log.damage {
            told.push(match log.found.damaged_from {
                Some(_) => rewrite(&log.found)?,
                None => format!("{damage}; they are lost"),
            });
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

/// Writes the intact batches to a new file and keeps the damaged file under another name. At every
/// moment one of the two files has the name of the log.
fn rewrite(found: &Inspection) -> Result<String> {
    let bytes = std::fs::read(&found.path)?;
    let repaired = found.path.with_extension("mended");
    let mut file = File::create(&repaired)?;
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
    std::fs::rename(&repaired, &found.path)?;
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

/// Empties the log after all its records are in tables, so that the next open replays nothing.
pub(crate) fn clear(data: &Path) -> Result<()> {
    let mut files = journal::files(data)?;
    if let Some(newest) = files.pop() {
        // The oldest first, so that the numbers of the remaining files have no gap.
        for path in files {
            std::fs::remove_file(path)?;
        }
        cut(&newest, 0)?;
        sync_directory(data)?;
    }
    Ok(())
}
