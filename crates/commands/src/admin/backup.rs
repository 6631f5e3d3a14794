//! `quireBackup`: writes a consistent copy of all data to a directory of the server's machine while
//! reads and writes continue. Quire's own command; MongoDB has no counterpart.

use crate::frame::args::{Arg, arguments};
use crate::frame::context::Context;
use crate::frame::reply::from_storage;
use quire_document::{Doc, DocWriter, Timestamp};
use quire_error::{Error, ErrorCode, Result};
use quire_storage::StorageError;
use std::path::{Component, Path, PathBuf};

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    if let Some(arg) = arguments(cx.command.name, body).next() {
        return Err(arg.unknown());
    }
    // Without logins the only protection is that the client must be on the same machine.
    if cx.connection.info.is_remote() {
        let text = "quireBackup must run from localhost when running db without auth";
        return Err(Error::new(ErrorCode::Unauthorized, text));
    }
    let Some(first) = body.first() else { return Err(Error::internal("a command without name")) };
    let text = Arg::new(cx.command.name, first).string()?;
    let target = target(Path::new(text), cx.service.options.data_directory.as_deref())?;
    let copied = cx.service.engine.backup(&target, &cx.interrupt).map_err(|error| match error {
        StorageError::Io(why) => refused(format!("cannot write the backup: {why}")),
        StorageError::Unavailable(why) => refused(format!("cannot write the backup: {why}")),
        other => from_storage(other),
    })?;
    reply.append("directory", text);
    reply.append("clusterTime", Timestamp::from_u64(copied.cluster_time.0));
    reply.append("bytes", bytes_in(&target));
    Ok(())
}

fn refused(text: String) -> Error {
    Error::new(ErrorCode::OperationFailed, text)
}

/// Checks the directory that a client names: the server must write only into a new directory of its
/// own.
fn target(path: &Path, data: Option<&Path>) -> Result<PathBuf> {
    let shown = path.display();
    if !path.is_absolute() || path.components().any(|part| part == Component::ParentDir) {
        return Err(Error::bad_value(format!("'{shown}' is no absolute path without '..'")));
    }
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(Error::bad_value(format!("'{shown}' names no directory")));
    };
    let parent = parent.canonicalize().map_err(|error| {
        Error::bad_value(format!("the directory that '{shown}' lies in: {error}"))
    })?;
    let target = parent.join(name);
    // A symbolic link would lead to another directory than the one named.
    match std::fs::symlink_metadata(&target) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(Error::bad_value(format!("'{shown}': {error}"))),
        Ok(found) if !found.is_dir() => {
            return Err(Error::bad_value(format!("'{shown}' is there and is no directory")));
        }
        Ok(_) => {
            let mut entries = target.read_dir().map_err(|error| {
                Error::bad_value(format!("cannot look into '{shown}': {error}"))
            })?;
            if entries.next().is_some() {
                return Err(Error::bad_value(format!("the directory '{shown}' is not empty")));
            }
        }
    }
    let data = data.and_then(|data| data.canonicalize().ok());
    if data.is_some_and(|data| target.starts_with(data)) {
        let text = format!("'{shown}' lies in the server's data directory");
        return Err(Error::bad_value(text));
    }
    Ok(target)
}

/// Returns the bytes of all files below a directory; unreadable files do not count.
fn bytes_in(directory: &Path) -> i64 {
    let Ok(entries) = directory.read_dir() else { return 0 };
    let sizes = entries.flatten().map(|entry| match entry.metadata() {
        Ok(found) if found.is_dir() => bytes_in(&entry.path()),
        Ok(found) => i64::try_from(found.len()).unwrap_or(i64::MAX),
        Err(_) => 0,
    });
    sizes.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_new_places_are_taken() {
        let root = std::env::temp_dir().join(format!("quire-backup-{}", std::process::id()));
        let data = root.join("data");
        std::fs::create_dir_all(&data).unwrap();
        std::fs::create_dir_all(root.join("empty")).unwrap();
        std::fs::write(data.join("file"), "x").unwrap();
        std::os::unix::fs::symlink(root.join("empty"), root.join("link")).unwrap();
        let asked = |path: PathBuf| target(&path, Some(&data));
        for path in [
            PathBuf::from("relative"),
            PathBuf::from("/"),
            root.join("a/../b"),
            root.join("missing/b"),
            root.join("link"),
            data.clone(),
            data.join("file"),
            data.join("inside"),
        ] {
            let refused = asked(path.clone());
            assert!(refused.is_err(), "{}: {refused:?}", path.display());
        }
        assert!(asked(root.join("new")).is_ok());
        assert!(asked(root.join("empty")).is_ok());
        assert_eq!(bytes_in(&data), 1);
        std::fs::remove_dir_all(&root).unwrap();
    }
}
