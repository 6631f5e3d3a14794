//! The output of `--version`.

use quire_commands::MONGODB_VERSION;

/// Quire's own version.
pub(crate) const QUIRE: &str = env!("CARGO_PKG_VERSION");

/// Returns the version in one line.
pub(crate) fn short() -> String {
    format!("quire {QUIRE} (follows MongoDB {MONGODB_VERSION})")
}

/// Returns the output of `mongod --version`, in which launchers look for the version, and Quire's
/// own.
pub(crate) fn as_mongod() -> String {
    let (arch, system) = (std::env::consts::ARCH, std::env::consts::OS);
    format!(
        "db version v{MONGODB_VERSION}\nBuild Info: {{\n    \"version\": \"{MONGODB_VERSION}\",\n    \
         \"gitVersion\": \"nogitversion\",\n    \"modules\": [],\n    \"allocator\": \"system\",\n    \
         \"environment\": {{\n        \"distarch\": \"{arch}\",\n        \"target_arch\": \"{arch}\",\n        \
         \"target_os\": \"{system}\"\n    }},\n    \"quire\": \"{QUIRE}\"\n}}"
    )
}
