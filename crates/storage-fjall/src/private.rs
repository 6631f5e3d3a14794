//! Files and directories that only this user can read, whatever the process's mask says.

use std::fs::{DirBuilder, OpenOptions};
use std::path::Path;

use quire_storage::Result;

/// Options for a file of a database that is made if it is missing.
pub(crate) fn file_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// The same for a file that must not be a link. With a link, a user who can write into the directory
/// could make this process empty or lock another file.
pub(crate) fn unlinked_options() -> OpenOptions {
    let mut options = file_options();
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        let flags = rustix::fs::OFlags::NOFOLLOW.bits();
        options.custom_flags(i32::try_from(flags).unwrap_or(0));
    }
    options
}

/// Makes a directory with those above it.
pub(crate) fn create_directories(path: &Path) -> Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    Ok(builder.create(path)?)
}

/// Takes a directory from other users. One that belongs to another user stays as that one wants it.
pub(crate) fn restrict(path: &Path) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let Ok(metadata) = path.metadata() else { return };
        if metadata.permissions().mode() & 0o077 != 0 {
            let _ = std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700));
        }
    }
    #[cfg(not(unix))]
    let _ = path;
}
