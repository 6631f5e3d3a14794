//! An image of a database directory that a check opens instead of it. An open changes files (it
//! removes tables and lists that a crash has left, begins a log, flushes), and a check must change
//! nothing. The image has copies of the small files, the intact part of each log, and links to the
//! tables, which are never written again. Files are removed and written only in the image.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use quire_storage::Result;

use crate::directory::DATA_VERSION;
use crate::recovery::inventory::Inventory;
use crate::recovery::log_guard::Verdict;
use crate::table::manifest;

/// Fills the empty directory `image` with the files of `directory` that an open needs.
pub(crate) fn make(
    directory: &Path,
    image: &Path,
    inventory: &Inventory,
    logs: &[Verdict],
) -> Result<()> {
    let (from, to) = (directory.join("data"), image.join("data"));
    std::fs::create_dir_all(&to)?;
    std::fs::copy(directory.join(DATA_VERSION), image.join(DATA_VERSION))?;
    for log in logs {
        let Some(name) = log.path.file_name() else { continue };
        let kept = u64::try_from(log.replayed()).unwrap_or(u64::MAX);
        let mut file = File::create(to.join(name))?;
        std::io::copy(&mut File::open(&log.path)?.take(kept), &mut file)?;
        file.flush()?;
    }
    for keyspace in &inventory.keyspaces {
        let Ok(below) = keyspace.path.strip_prefix(&from) else { continue };
        let target = to.join(below);
        std::fs::create_dir_all(target.join(manifest::TABLES))?;
        let Some(manifest) = &keyspace.manifest else { continue };
        let list = format!("v{}", manifest.id);
        for name in [manifest::CURRENT, &list] {
            std::fs::copy(keyspace.path.join(name), target.join(name))?;
        }
        for table in &manifest.tables {
            let source = std::path::absolute(manifest::table_path(&keyspace.path, table.id))?;
            link(&source, &manifest::table_path(&target, table.id))?;
        }
    }
    Ok(())
}

fn link(source: &Path, target: &Path) -> Result<()> {
    #[cfg(unix)]
    std::os::unix::fs::symlink(source, target)?;
    #[cfg(not(unix))]
    std::fs::copy(source, target)?;
    Ok(())
}
