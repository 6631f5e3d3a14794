//! Creates files and directories that only this user can read, independent of the umask.

use std::fs::{DirBuilder, OpenOptions};
use std::path::Path;

use quire_storage::Result;

/// Returns the options for a file of a database; a missing file is created.
pub(crate) fn file_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Returns the same options for a file that must not be a symbolic link. With a link, a user who
/// can write into the directory could make this process empty or lock another file.
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

/// Creates a directory and its missing parents.
pub(crate) fn create_directories(path: &Path) -> Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    Ok(builder.create(path)?)
}

/// Removes other users' access to a directory. A directory of another user is left as it is.
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
