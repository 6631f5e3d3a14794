//! Checks of tidiness: file and function lengths, first lines, unfinished marks, dead paths in
//! documents, short doc comments. `structure.rs` has the checks of a whole crate.

use crate::structure;
use std::path::{Path, PathBuf};

const FILE_LINES_MAX: usize = 1000;
const FUNCTION_LINES_MAX: usize = 70;

/// Prints long files and functions and all problems.
pub fn report(root: &Path) -> Result<(), String> {
    for (path, text) in sources(root)? {
        let lines = text.lines().count();
        if lines > 600 {
            println!("{lines:5} lines  {}", shown(root, &path));
        }
        for (line, length) in long_functions(&text) {
            println!("{length:5} lines  {}:{line} (function)", shown(root, &path));
        }
    }
    check(root)
}

/// Fails if there is a problem.
pub fn check(root: &Path) -> Result<(), String> {
    let mut problems = dead_paths(root)?;
    let all = sources(root)?;
    let named: Vec<(String, &str)> =
        all.iter().map(|(path, text)| (shown(root, path), &**text)).collect();
    problems.extend(structure::short_docs(&named));
    problems.extend(structure::circles(&named));
    problems.extend(structure::same_names(&named));
    for (path, text) in &all {
        let name = shown(root, path);
        if !text.starts_with("//!") && !text.starts_with("#![no_main]") {
            problems.push(format!("{name}: the first line does not say what the file is (//!)"));
        }
        if text.lines().count() > FILE_LINES_MAX && !name.ends_with("codes.rs") {
            problems.push(format!("{name}: more than {FILE_LINES_MAX} lines"));
        }
        let marks =
            ["todo!(", "unimplemented!(", concat!("TO", "DO"), concat!("FIX", "ME"), "dbg!("];
        for (at, line) in text.lines().enumerate() {
            if name != "xtask/src/tidy.rs" && marks.iter().any(|mark| line.contains(mark)) {
                problems.push(format!("{name}:{}: unfinished: {}", at + 1, line.trim()));
            }
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
}

/// Returns the paths in documents that do not exist. Records of decisions name files by their crate:
/// `planner/src/plan.rs`.
fn dead_paths(root: &Path) -> Result<Vec<String>, String> {
    let mut documents: Vec<PathBuf> =
        ["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md"].map(|name| root.join(name)).into();
    for folder in ["docs", "docs/adr"] {
        collect(&root.join(folder), "md", &mut documents);
    }
    documents.sort();
    documents.dedup();
    let mut problems = Vec::new();
    for document in documents {
        let name = shown(root, &document);
        let Ok(text) = std::fs::read_to_string(&document) else {
            problems.push(format!("{name} is missing"));
            continue;
        };
        for quoted in text.split('`').skip(1).step_by(2) {
            let starts = ["crates/", "docs/", "tests/", "xtask/", "fuzz/"];
            let plain = !quoted.contains(['*', ' ', '<', '{', '…']);
            let in_crate = quoted.contains("/src/") && root.join("crates").join(quoted).exists();
            let is_path = starts.iter().any(|start| quoted.starts_with(start));
            if plain
                && (is_path || quoted.contains("/src/"))
                && !in_crate
                && !root.join(quoted).exists()
            {
                problems.push(format!("{name}: {quoted} does not exist"));
            }
        }
    }
    Ok(problems)
}

/// Returns the functions that are longer than a screen: first line and length. A function ends at
/// the closing brace in its own column.
fn long_functions(text: &str) -> Vec<(usize, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        let starts =
            ["fn ", "pub fn ", "pub(crate) fn ", "pub(super) fn ", "const fn ", "pub const fn "];
        if !starts.iter().any(|start| code.starts_with(start)) {
            continue;
        }
        let close = format!("{}}}", &line[..line.len() - code.len()]);
        if let Some(length) = lines[at..].iter().position(|line| **line == close)
            && length > FUNCTION_LINES_MAX
        {
            found.push((at + 1, length));
        }
    }
    found
}

fn sources(root: &Path) -> Result<Vec<(PathBuf, String)>, String> {
    let mut paths = Vec::new();
    for folder in ["crates", "xtask", "fuzz/fuzz_targets"] {
        collect(&root.join(folder), "rs", &mut paths);
    }
    paths.sort();
    let read = |path: PathBuf| match std::fs::read_to_string(&path) {
        Ok(text) => Ok((path, text)),
        Err(error) => Err(format!("{}: {error}", path.display())),
    };
    paths.into_iter().map(read).collect()
}

/// The files below a folder whose names end so.
fn collect(folder: &Path, ending: &str, paths: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, ending, paths);
        } else if path.extension().is_some_and(|extension| extension == ending) {
            paths.push(path);
        }
    }
}

fn shown(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned()
}
