//! The steps of an open: lock the directory, check that all files exist, judge the log, and only
//! then open it. A start refuses a damaged directory and leaves it as it is, a check
//! opens an image of it, a repair repairs it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use quire_storage::{Result, StorageError};

use crate::LsmOptions;
use crate::backend::LsmBackend;
use crate::creation::{self, Creation};
use crate::directory::Directory;
use crate::directory::damage::{Damage, refusal};
use crate::directory::durable_mark;
use crate::directory::private::restrict;
use crate::directory::repair_mark::{self, RepairMark};
use crate::directory::scratch::{self, Scratch};
use crate::log::journal;
use crate::recovery::inventory::{self, Inventory};
use crate::recovery::log_guard::{self, Known, Verdict};
use crate::recovery::replay;
use crate::repair::image;
use crate::repair::salvage;
use crate::store::{Running, Store};
use crate::table::dropped::DroppedRanges;

/// The damages that a check found before and during the open, and the opened image.
pub(crate) struct ExaminedFiles {
    /// An engine on an image of the directory; `None` if the directory is too damaged.
    pub backend: Option<LsmBackend>,
    pub warnings: Vec<String>,
    pub damages: Vec<Damage>,
}

impl LsmBackend {
    /// Opens a directory for use, or creates one. The texts are warnings for the operator.
    pub fn open(path: &Path, options: &LsmOptions) -> Result<(Self, Vec<String>)> {
        let directory = Directory::lock(path, options.repair)?;
        let data = directory.data();
        let dropped = Arc::new(DroppedRanges::default());
        let open = || open_store(&data, options, &dropped);
        let mut warnings = Vec::from_iter(directory.warning());
        let (mut made, running);
        if data.try_exists()? {
            made = Vec::new();
            running = match options.repair {
                true => repair(path, &data, open, &mut warnings)?,
                false => {
                    warnings.extend(make_safe(path, &data)?);
                    open()?
                }
            };
        } else {
            directory.begin_creation()?;
            made = creation::prepare(&data)?;
            running = open()?;
        }
        // lsm-tree creates its files with the umask of the process.
        restrict(&data);
        let creation = match directory.is_complete() {
            true => Creation::done(),
            false => Creation::start(std::mem::take(&mut made), directory.completion())?,
        };
        Ok((Self::new(running, directory, creation, dropped, options)?, warnings))
    }

    /// Checks a directory without changing it.
    pub(crate) fn examine(path: &Path, options: &LsmOptions) -> Result<ExaminedFiles> {
        scratch::sweep(&std::env::temp_dir());
        let directory = Directory::lock_unchanged(path)?;
        let data = directory.data();
        let inventory = inventory::take(&data);
        let logs = log_guard::judge(&data, &Known::of(path, &inventory))?;
        let mut damages = inventory.damages();
        damages.extend(log_guard::damages(&logs));
        if repair_mark::is_there(path)? {
            damages.push(Damage::new(path, "is under a repair that has begun and not ended"));
        }
        let can_open = damages.is_empty();
        damages.extend(inventory.keyspaces.iter().flat_map(salvage::damaged_tables));
        let warnings = logs.iter().filter_map(|log| log.warning.clone());
        let warnings = warnings.chain(durable_mark::warning(path)).collect();
        let mut examined = ExaminedFiles { backend: None, warnings, damages };
        if !can_open {
            return Ok(examined);
        }
        match open_image(path, directory, &inventory, &logs, options) {
            Ok(backend) => examined.backend = Some(backend),
            // The damage that prevents the open is already in the list.
            Err(StorageError::Corruption { .. }) if !examined.damages.is_empty() => {}
            Err(StorageError::Corruption { place }) => {
                examined.damages.push(Damage::new(&data, place));
            }
            Err(error) => return Err(error),
        }
        Ok(examined)
    }
}

/// Refuses a damaged directory, and cuts off a record that a crash left incomplete.
fn make_safe(path: &Path, data: &Path) -> Result<Vec<String>> {
    let inventory = inventory::take(data);
    let damages = inventory.damages();
    if !damages.is_empty() {
        return Err(refusal(&damages));
    }
    let logs = log_guard::judge(data, &Known::of(path, &inventory))?;
    let mut warnings = log_guard::guard(&logs, false)?;
    warnings.extend(durable_mark::warning(path));
    Ok(warnings)
}

/// Repairs the directory under the mark, which stays until the layer above has finished its part.
fn repair(
    path: &Path,
    data: &Path,
    open: impl Fn() -> Result<Running>,
    warnings: &mut Vec<String>,
) -> Result<Running> {
    let unknown = inventory::take(data).unknown;
    if !unknown.is_empty() {
        return Err(refusal(&unknown));
    }
    let mut mark = RepairMark::begin(path)?;
    salvage::repair(data, &mut mark, warnings)?;
    let logs = log_guard::judge(data, &Known::of(path, &inventory::take(data)))?;
    warnings.extend(log_guard::guard(&logs, true)?);
    durable_mark::remove(path)?;
    open()
}

/// Opens the trees, replays the log and begins a new log file.
fn open_store(data: &Path, options: &LsmOptions, dropped: &Arc<DroppedRanges>) -> Result<Running> {
    // lsm-tree asserts some properties of the data that it reads.
    let open = AssertUnwindSafe(|| {
        let logs = journal::numbered(data)?;
        let next = match logs.last() {
            Some((last, path)) if path.metadata()?.len() > 0 => last + 1,
            last => last.map_or(0, |(last, _)| *last),
        };
        let store = Store::open(data, options, dropped, next)?;
        let running = Running::start(store, options.merge_threads)?;
        replay::replay(running.store(), &logs)?;
        Ok(running)
    });
    catch_unwind(open).unwrap_or_else(|_| {
        Err(StorageError::Corruption { place: format!("opening {}", data.display()) })
    })
}

fn open_image(
    path: &Path,
    directory: Directory,
    inventory: &Inventory,
    logs: &[Verdict],
    options: &LsmOptions,
) -> Result<LsmBackend> {
    let place = std::env::temp_dir();
    let scratch = Scratch::new(&place).ok_or_else(|| {
        StorageError::Io(format!("cannot make a directory in {}", place.display()))
    })?;
    image::make(path, scratch.path(), inventory, logs)?;
    let directory = directory.with_image(scratch);
    let dropped = Arc::new(DroppedRanges::default());
    // The image gets few writes, and none of them is kept.
    let options = LsmOptions { reserve_bytes: 0, ..options.clone() };
    let running = open_store(&directory.data(), &options, &dropped)?;
    LsmBackend::new(running, directory, Creation::done(), dropped, &options)
}
