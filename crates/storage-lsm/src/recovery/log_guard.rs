//! The check of the log before every open: how much of it can be used after a crash.
//!
//! A power cut can lose unsynced pages in any order, also of a full file that was not yet synced
//! when the next one was begun. So everything after damage, in its file and in the later ones, is
//! cut off with a warning if nothing shows that it was on stable storage: no later record (each
//! says how far the log was durable) and not the file `DURABLE`. Any other damage is refused and
//! left as it is until an operator asks for a repair. The state that is opened is always a prefix
//! of the history of commits.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use quire_storage::committer::group_place;
use quire_storage::{Result, Space};

use crate::directory::damage::{Damage, refusal};
use crate::directory::durable_files::sync_directory;
use crate::directory::durable_mark::{self, Durable};
use crate::log::journal::{self, Inspection, inspect};
use crate::recovery::inventory::Inventory;
use crate::table::file::Readable;
use crate::table::manifest;

const MISSING: &str = "commits before this are missing from the log";

/// How much of a log file can be used.
pub(crate) struct Verdict {
    pub path: PathBuf,
    /// The length of the prefix that can be replayed, in bytes.
    pub kept: usize,
    /// The warning for the operator if the rest is cut off without damage.
    pub warning: Option<String>,
    /// The reason why the log must not be opened as it is.
    pub damage: Option<Damage>,
    found: Inspection,
}

impl Verdict {
    /// Returns the end of the last record that can be replayed, without the zeros after it.
    pub fn replayed(&self) -> usize {
        self.kept.min(self.found.good_end())
    }
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
        let keyspace = self.inventory.keyspaces.get(Space::Meta.index());
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
    let mut verdicts = Vec::new();
    let mut history = History::default();
    for path in journal::files(data)? {
        let found = inspect(&path)?;
        let mut verdict = Verdict { path, kept: found.length, warning: None, damage: None, found };
        history.read(verdicts.len(), &mut verdict, known);
        verdicts.push(verdict);
    }
    if let Some(hole) = history.hole.take() {
        history.judge_hole(&hole, &mut verdicts, known);
    }
    let durable = known.durable.version;
    if !history.is_whole_to(durable, known)
        && let Some(newest) = verdicts.last_mut().filter(|log| log.damage.is_none())
    {
        let what = "the log is cut short: commits after this were on stable storage";
        newest.damage = Some(damage_at(&newest.path, newest.found.good_end(), what));
    }
    Ok(verdicts)
}

fn damage_at(path: &Path, at: usize, what: &str) -> Damage {
    Damage::at(path, u64::try_from(at).unwrap_or(u64::MAX), what)
}

/// The history of commits, as far as the files that were read so far show it.
#[derive(Default)]
struct History {
    /// The version up to which it is complete.
    last: Option<u64>,
    /// The first place where it is not.
    hole: Option<Hole>,
    /// The intact records after the hole, and the version up to which they say that the log was on
    /// stable storage.
    after: usize,
    claimed: u64,
}

/// A place where records are damaged, or where those before the next one are missing.
struct Hole {
    /// The number of the verdict on its file.
    file: usize,
    at: usize,
    is_damage: bool,
}

impl History {
    /// Reads the file whose verdict gets this number.
    fn read(&mut self, file: usize, verdict: &mut Verdict, known: &Known<'_>) {
        let damaged = verdict.found.damaged_from;
        let mut is_first = true;
        for (batch, place) in verdict.found.intact.iter().zip(&verdict.found.places) {
            if let Some(at) = damaged.filter(|at| *at < batch.start) {
                self.hole.get_or_insert(Hole { file, at, is_damage: true });
            }
            if self.hole.is_none()
                && let Some(place) = place
            {
                let follows = match (place.before, self.last) {
                    (None, _) => true,
                    (Some(before), Some(last)) => before == last,
                    (Some(before), None) => known.are_in_tables(before),
                };
                // The end of the file before may be lost, if it was not synced.
                if !follows && is_first && self.last.is_some() {
                    self.hole = Some(Hole { file, at: batch.start, is_damage: false });
                } else {
                    if !follows {
                        let damage = damage_at(&verdict.path, batch.start, MISSING);
                        verdict.damage.get_or_insert(damage);
                    }
                    self.last = Some(place.version);
                }
                is_first = false;
            }
            if self.hole.is_some() {
                // A record that does not say how far the log was durable may have been durable
                // itself.
                let claim = place.and_then(|place| place.durable).unwrap_or(u64::MAX);
                self.claimed = self.claimed.max(claim);
                self.after += 1;
            }
        }
        if let Some(at) = damaged {
            self.hole.get_or_insert(Hole { file, at, is_damage: true });
        }
        if !verdict.found.is_searched {
            // A record that was not found may have been durable.
            self.claimed = u64::MAX;
        }
    }

    /// Returns true if all commits up to this version are in the log before the hole, or in tables.
    fn is_whole_to(&self, version: u64, known: &Known<'_>) -> bool {
        match self.last {
            Some(last) => version <= last,
            None => known.are_in_tables(version),
        }
    }

    /// Judges the files from the hole on. It is the result of a failed write, or of a power cut
    /// that lost unsynced records, if neither a later record nor another file shows that the lost
    /// ones were durable.
    fn judge_hole(&self, hole: &Hole, verdicts: &mut [Verdict], known: &Known<'_>) {
        let Some((verdict, later)) =
            verdicts.get_mut(hole.file..).and_then(<[Verdict]>::split_first_mut)
        else {
            return;
        };
        let (at, after) = (hole.at, self.after);
        let damage = match hole.is_damage {
            _ if self.is_whole_to(self.claimed.max(known.durable.version), known) => None,
            false => Some(MISSING.to_owned()),
            true if self.is_whole_to(self.claimed, known) => {
                Some("the log is damaged in a part that was on stable storage".to_owned())
            }
            true => {
                Some(format!("the log is damaged, with {after} intact records after the damage"))
            }
        };
        if let Some(what) = damage {
            verdict.damage.get_or_insert(damage_at(&verdict.path, at, &what));
            return;
        }
        let name = verdict.path.display();
        verdict.warning = Some(match (hole.is_damage, after) {
            (true, 0) => format!(
                "{name}: the last record, at byte {at}, was not written completely before the \
                 crash and was removed; it had not been acknowledged as durable"
            ),
            (true, _) => format!(
                "{name}: the record at byte {at} was not written completely before the crash and \
                 was removed with the {after} records after it; none of them had been acknowledged \
                 as durable"
            ),
            (false, _) => format!(
                "{name}: {after} records were removed, because the crash lost records before them; \
                 none of them had been acknowledged as durable"
            ),
        });
        verdict.kept = if hole.is_damage { verdict.found.good_end() } else { at };
        for verdict in later {
            verdict.kept = 0;
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
        } else if log.kept < log.found.length {
            cut(&log.path, log.kept)?;
            told.extend(log.warning.clone());
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
