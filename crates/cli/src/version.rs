//! The output of `--version`.

use quire_commands::MONGODB_VERSION;

/// Quire's own version.
pub(crate) const QUIRE: &str = env!("CARGO_PKG_VERSION");

/// The commit that the program was built from; `None` if its sources were not in a git repository.
pub(crate) const COMMIT: Option<&str> = option_env!("QUIRE_COMMIT");

/// Returns the version in one line.
pub(crate) fn short() -> String {
    let commit = COMMIT.and_then(|commit| commit.get(..12));
    let commit = commit.map_or_else(String::new, |commit| format!("commit {commit}, "));
    format!("quire {QUIRE} ({commit}follows MongoDB {MONGODB_VERSION})")
}

/// Returns the output of `mongod --version`, in which launchers look for the version, and Quire's
/// own.
pub(crate) fn as_mongod() -> String {
    let (arch, system) = (std::env::consts::ARCH, std::env::consts::OS);
    let commit = COMMIT.unwrap_or("nogitversion");
    format!(
        "db version v{MONGODB_VERSION}\nBuild Info: {{\n    \"version\": \"{MONGODB_VERSION}\",\n    \
         \"gitVersion\": \"{commit}\",\n    \"modules\": [],\n    \"allocator\": \"system\",\n    \
         \"environment\": {{\n        \"distarch\": \"{arch}\",\n        \"target_arch\": \"{arch}\",\n        \
         \"target_os\": \"{system}\"\n    }},\n    \"quire\": \"{QUIRE}\"\n}}"
    )
}
