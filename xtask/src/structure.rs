//! Checks of whole crates: the order of their folders, the names of their types, doc comments that
//! are too short. The lists below contain the known exceptions; they only get shorter.

use std::collections::{BTreeMap, BTreeSet};

/// The folders and files of a crate in order; each may import only earlier ones.
const FOLDERS: &[(&str, &[&str])] = &[
    (
        "commands",
        &[
            "frame", "cursors", "sessions", "users", "admin", "ddl", "write", "read", "requires",
            "registry", "jobs", "lib",
        ],
    ),
    ("cli", &["exit", "version", "engine", "progress", "connect", "export", "import", "lib"]),
];

/// The known imports against the order.
const UPWARD: &[(&str, &str)] = &[];

/// Modules of a crate that import each other in a circle. In every other crate the modules have an
/// order in which each imports only earlier ones.
const CIRCLES: &[(&str, &[&str])] = &[
    ("executor", &["joins", "opening"]),
    (
        "mql",
        &[
            "accumulator",
            "context",
            "expression",
            "filter",
            "loops",
            "projection",
            "regex",
            "schema",
            "sort",
            "stage",
            "update",
            "window",
            "work",
        ],
    ),
    ("planner", &["inner", "pipeline"]),
];

/// Crate and name of public types that have the same name as another one of the crate.
const SAME_NAMES: &[(&str, &str)] = &[("mql", "Needs"), ("mql", "Operand"), ("mql", "Operator")];

/// The smallest number of words of a doc comment.
const WORDS_MIN: usize = 3;

/// Returns doc comments of one line with one or two words.
pub fn short_docs(files: &[(String, &str)]) -> Vec<String> {
    let mut found = Vec::new();
    for (name, text) in files {
        if place(name).is_none() {
            continue;
        }
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let is_doc = |at: Option<&&str>| at.is_some_and(|line| line.starts_with("///"));
        for (at, line) in lines.iter().enumerate() {
            let alone = !is_doc(at.checked_sub(1).and_then(|before| lines.get(before)))
                && !is_doc(lines.get(at + 1));
            if let Some(words) = line.strip_prefix("///")
                && alone
                && words.split_whitespace().count() < WORDS_MIN
            {
                found.push(format!("{name}:{}: a doc comment says too little: {line}", at + 1));
            }
        }
    }
    found
}

/// Returns files that import from a later folder.
pub fn upward_imports(files: &[(String, &str)]) -> Vec<String> {
    let mut problems = Vec::new();
    for (name, text) in files {
        let Some((crate_name, path)) = place(name) else { continue };
        let Some((_, order)) = FOLDERS.iter().find(|(row, _)| *row == crate_name) else { continue };
        let rank = |module: &str| order.iter().position(|row| *row == module);
        let own = path.split('/').next().unwrap_or(path).trim_end_matches(".rs");
        let Some(own_rank) = rank(own) else { continue };
        // Tests may import from any folder.
        let code = text.split("#[cfg(test)]").next().unwrap_or(text);
        for (at, line) in code.lines().enumerate() {
            for target in modules(line) {
                let upward = rank(target).is_some_and(|target| target > own_rank);
                if upward && !UPWARD.contains(&(name, target)) {
                    problems.push(format!("{name}:{}: {own} may not import {target}", at + 1));
                }
            }
        }
    }
    problems
}

/// Returns modules that import each other in a circle, directly or through others, and that are not
/// in `CIRCLES`; and entries of `CIRCLES` that are no longer in a circle.
pub fn circles(files: &[(String, &str)]) -> Vec<String> {
    let mut imports: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    for (name, text) in files {
        let Some((crate_name, path)) = place(name) else { continue };
        let own = path.split('/').next().unwrap_or(path).trim_end_matches(".rs");
        let code = text.split("#[cfg(test)]").next().unwrap_or(text);
        let code = if path.ends_with("tests.rs") { "" } else { code };
        let of_own = imports.entry((crate_name, own)).or_default();
        of_own.extend(code.lines().flat_map(modules).filter(|target| *target != own));
    }
    let mut problems = Vec::new();
    for &(crate_name, own) in imports.keys() {
        let row = CIRCLES.iter().find(|(row, _)| *row == crate_name);
        let known = row.is_some_and(|(_, modules)| modules.contains(&own));
        match (reaches_itself(&imports, crate_name, own), known) {
            (Some(by), false) => problems
                .push(format!("crates/{crate_name}: {own} imports {by}, which needs {own} itself")),
            (None, true) => problems
                .push(format!("crates/{crate_name}: {own} is in no circle: take it off CIRCLES")),
            _ => {}
        }
    }
    problems
}

/// Returns the import through which a module imports itself.
fn reaches_itself<'m>(
    imports: &BTreeMap<(&'m str, &'m str), BTreeSet<&'m str>>,
    crate_name: &'m str,
    own: &'m str,
) -> Option<&'m str> {
    let of = |module: &'m str| imports.get(&(crate_name, module)).into_iter().flatten().copied();
    of(own).find(|first| {
        let (mut seen, mut next) = (BTreeSet::from([*first]), vec![*first]);
        while let Some(module) = next.pop() {
            if module == own {
                return true;
            }
            next.extend(of(module).filter(|target| seen.insert(target)));
        }
        false
    })
}

/// Returns the first modules of the paths in a line that begin with `crate`: `frame` of
/// `crate::frame::args`, and each of `crate::{admin, ddl}`.
fn modules(line: &str) -> Vec<&str> {
    let end = |text: &str| text.find(|c: char| !c.is_alphanumeric() && c != '_');
    let mut found = Vec::new();
    for rest in line.split("crate::").skip(1) {
        match rest.strip_prefix('{') {
            Some(list) => {
                let list = list.split('}').next().unwrap_or(list);
                found.extend(list.split(',').map(|item| {
                    let item = item.trim();
                    &item[..end(item).unwrap_or(item.len())]
                }));
            }
            None => found.push(&rest[..end(rest).unwrap_or(rest.len())]),
        }
    }
    found
}

/// Returns public types that have the same name as another one of their crate.
pub fn same_names(files: &[(String, &str)]) -> Vec<String> {
    let mut places: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
    for (name, text) in files {
        let Some((crate_name, _)) = place(name) else { continue };
        for (at, line) in text.lines().enumerate() {
            let Some(rest) = line.trim_start().strip_prefix("pub ") else { continue };
            let kinds = ["struct ", "enum ", "trait ", "union ", "type "];
            let Some(rest) = kinds.iter().find_map(|kind| rest.strip_prefix(kind)) else {
                continue;
            };
            let end = rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len());
            let place = format!("{name}:{}", at + 1);
            places.entry((crate_name, &rest[..end])).or_default().push(place);
        }
    }
    let twice = places.into_iter().filter(|(key, at)| at.len() > 1 && !SAME_NAMES.contains(key));
    twice.map(|((_, name), at)| format!("two types are named {name}: {}", at.join(", "))).collect()
}

/// Returns the crate of a source file, and the file's path below `src`.
fn place(name: &str) -> Option<(&str, &str)> {
    name.strip_prefix("crates/")?.split_once("/src/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, text: &'static str) -> Vec<(String, &'static str)> {
        vec![(name.to_owned(), text)]
    }

    #[test]
    fn a_frame_file_that_imports_a_command_is_found() {
        let frame = file("crates/commands/src/frame/args.rs", "use crate::{frame, ddl::create};\n");
        assert_eq!(upward_imports(&frame).len(), 1);
        let ddl = file("crates/commands/src/ddl/create.rs", "use crate::frame::args::Arg;\n");
        assert!(upward_imports(&ddl).is_empty());
    }

    #[test]
    fn modules_that_import_each_other_are_found() {
        let mut files = file("crates/wire/src/a.rs", "use crate::b::Thing;\n");
        files.extend(file("crates/wire/src/b/mod.rs", "use crate::c;\n"));
        files.extend(file("crates/wire/src/d.rs", "use crate::a;\n"));
        assert!(circles(&files).is_empty());
        files.extend(file("crates/wire/src/c.rs", "use crate::a::Other;\n"));
        assert_eq!(circles(&files).len(), 3, "a, b and c, but not d");
    }

    #[test]
    fn short_docs_and_doubled_names_are_found() {
        let text = "/// A thing.\npub struct A;\n/// Another thing entirely.\npub enum A {}\n";
        let files = file("crates/wire/src/lib.rs", text);
        assert_eq!(short_docs(&files).len(), 1);
        assert_eq!(same_names(&files).len(), 1);
    }
}
