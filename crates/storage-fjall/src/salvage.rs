//! The repair of damaged tables, as far as there is one: index entries can be made again from the
//! documents, and change records can be done without, so a keyspace of theirs that cannot be read
//! is put aside and begun anew. Documents and the catalog have no second copy.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use fjall::Readable;
use quire_storage::{Result, Space, StorageError};

use crate::backend::Parts;
use crate::inventory::{keyspace_path, number_of};
use crate::skeleton;

/// What can be begun anew, in the order in which it is tried.
const CHOICES: [&[Space]; 4] = [&[], &[Space::Idx], &[Space::Log], &[Space::Idx, Space::Log]];

/// Opens `data` by `open` such that everything but documents and catalog can be read; what was put
/// aside for that is told in `warnings`. The error is that of the directory as it was found, and
/// leaves it so.
pub(crate) fn open(
    data: &Path,
    open: impl Fn() -> Result<Parts>,
    warnings: &mut Vec<String>,
) -> Result<Parts> {
    let mut refused = None;
    for spaces in CHOICES {
        let renewed = Renewed::put_aside(data, spaces)?;
        let parts = match open() {
            Ok(parts) => parts,
            Err(error) => {
                renewed.put_back()?;
                refused.get_or_insert(error);
                continue;
            }
        };
        renewed.tell(warnings);
        let damaged: Vec<Space> = [Space::Idx, Space::Log]
            .into_iter()
            .filter(|space| !is_readable(&parts, *space))
            .collect();
        if damaged.is_empty() {
            return Ok(parts);
        }
        drop(parts);
        Renewed::put_aside(data, &damaged)?.tell(warnings);
        return open();
    }
    Err(refused.unwrap_or(StorageError::Closed))
}

fn is_readable(parts: &Parts, space: Space) -> bool {
    let read = || parts.db.snapshot().iter(parts.space(space)).all(|row| row.into_inner().is_ok());
    // fjall asserts some of what it reads back.
    catch_unwind(AssertUnwindSafe(read)).unwrap_or(false)
}

/// Keyspaces that were replaced by empty ones.
struct Renewed {
    /// Which; where it belongs; where its damaged files are now.
    moved: Vec<(Space, PathBuf, PathBuf)>,
}

impl Renewed {
    fn put_aside(data: &Path, spaces: &[Space]) -> Result<Self> {
        let mut moved = Vec::new();
        if spaces.is_empty() {
            return Ok(Self { moved });
        }
        let empty = data.with_extension("empty");
        remove(&empty)?;
        skeleton::make(&empty)?;
        for space in spaces {
            let place = keyspace_path(data, number_of(*space));
            let aside = free_name(data, *space)?;
            std::fs::rename(&place, &aside)?;
            std::fs::rename(keyspace_path(&empty, number_of(*space)), &place)?;
            moved.push((*space, place, aside));
        }
        remove(&empty)?;
        Ok(Self { moved })
    }

    fn put_back(self) -> Result<()> {
        for (_, place, aside) in self.moved {
            remove(&place)?;
            std::fs::rename(aside, place)?;
        }
        Ok(())
    }

    fn tell(self, warnings: &mut Vec<String>) {
        warnings.extend(self.moved.into_iter().map(|(space, _, aside)| {
            let what = match space {
                Space::Idx => "all index entries are made again",
                Space::Log => "the change records are lost",
                Space::Meta | Space::Doc => "its content is lost",
            };
            format!(
                "tables of '{}' were damaged: {what}; the old ones lie in {}",
                space.name(),
                aside.display()
            )
        }));
    }
}

/// A name beside `data` that nothing has: `data.damaged-idx-0`.
fn free_name(data: &Path, space: Space) -> Result<PathBuf> {
    let mut number = 0;
    loop {
        let name = data.with_extension(format!("damaged-{}-{number}", space.name()));
        if !name.try_exists()? {
            return Ok(name);
        }
        number += 1;
    }
}

fn remove(path: &Path) -> Result<()> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}
