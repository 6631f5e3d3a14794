//! Checks the direction of dependencies: a crate may depend only on crates of lower layers.

use std::collections::BTreeMap;
use std::path::Path;

/// The crates with their layers. Two crates of one layer may depend on each other only as in
/// `SIDEWAYS`.
const LAYERS: &[(&str, u8)] = &[
    ("error", 0),
    ("document", 1),
    ("storage", 1),
    ("storage-lsm", 2),
    ("wire", 2),
    ("access", 2),
    ("tls", 2),
    ("geometry", 2),
    ("columns", 2),
    ("mql", 3),
    ("advisor", 3),
    ("catalog", 4),
    ("collections", 5),
    ("planner", 5),
    ("executor", 6),
    ("session", 7),
    ("commands", 8),
    ("server", 9),
    ("quire", 9),
    ("cli", 10),
    ("testkit", 10),
];

/// Dependencies on lower layers that are forbidden nevertheless.
const FORBIDDEN: &[(&str, &str)] = &[
    ("storage", "error"),
    ("storage", "document"),
    ("storage-lsm", "document"),
    ("document", "storage"),
    ("mql", "storage"),
    ("wire", "storage"),
    ("access", "storage"),
    ("planner", "storage"),
    ("planner", "collections"),
    ("commands", "storage-lsm"),
    ("commands", "wire"),
];

/// Compares every crate's dependencies with the table.
pub fn check(root: &Path) -> Result<(), String> {
    let layers: BTreeMap<&str, u8> = LAYERS.iter().copied().collect();
    let mut problems = Vec::new();
    for (name, dependencies) in manifests(root)? {
        let Some(layer) = layers.get(name.as_str()) else {
            problems.push(format!("{name} stands in no layer (xtask/src/layers.rs)"));
            continue;
        };
        for dependency in dependencies {
            match layers.get(dependency.as_str()) {
                Some(below) if below < layer => {}
                _ => problems.push(format!("{name} may not use {dependency}: the arrow points up")),
            }
            if FORBIDDEN.contains(&(&name, &dependency)) {
                problems.push(format!("{name} must never know {dependency}"));
            }
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
}

/// Returns every crate with the project's crates that it depends on (not for tests).
fn manifests(root: &Path) -> Result<Vec<(String, Vec<String>)>, String> {
    let mut found = Vec::new();
    let folders = std::fs::read_dir(root.join("crates")).map_err(|error| error.to_string())?;
    for folder in folders.flatten() {
        let path = folder.path().join("Cargo.toml");
        let text = std::fs::read_to_string(&path)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        let mut inside = false;
        let mut dependencies = Vec::new();
        for line in text.lines().map(str::trim) {
            if line.starts_with('[') {
                inside = line == "[dependencies]";
            } else if inside && let Some(rest) = line.strip_prefix("quire") {
                let end = rest.find(['.', ' ', '=']).unwrap_or(rest.len());
                // The library's package is `quire`, every other one `quire-<crate>`.
                let dependency = rest[..end].strip_prefix('-').unwrap_or("quire");
                dependencies.push(dependency.to_owned());
            }
        }
        found.push((folder.file_name().to_string_lossy().into_owned(), dependencies));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    #[test]
    fn arrows_point_down() {
        super::check(&crate::root()).unwrap();
    }
}
