//! Checks of whole crates: the order of their modules, the names of their types, doc comments that
//! are too short. The lists of exceptions only get shorter.

use crate::imports::{Import, Modules};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Crate, folder below its `src`, and modules in it that need each other, as a recursive function
/// needs itself. Everywhere else the modules of a folder have an order in which each imports only
/// earlier ones; the root of a folder may import all of them.
const CIRCLES: &[(&str, &str, &[&str])] = &[
    // A value can be a document, which has values; what owns their bytes is built from them and
    // lends them.
    ("document", "", &["builder", "doc", "owned", "value"]),
    // `codes` is the generated table of a type in `code`, which looks names up in the table.
    ("error", "", &["code", "codes"]),
    // A join plans, builds and runs the plan inside of it while it runs, once for each batch of
    // keys; that plan can have joins.
    // `taking` lists the forms in which a scan hands its rows to the operator above: columns, batches
    // of sort keys, groups. Each form runs the stages between the scan and the operator, which are in
    // `operators`; and each operator that accepts a form names it.
    ("executor", "", &["build", "joins", "columns", "operators", "sorting", "taking"]),
    // A module that reads and one that writes the same bytes.
    ("document", "key", &["number", "read"]),
    // Nodes of a recursive language: an operand can be any node, and its parser calls that of nodes.
    // A search is an access path, and begins with a candidate of one.
    ("planner", "indexes", &["access", "search"]),
    ("mql", "accumulator", &["n_values", "ranked", "spec"]),
    (
        "mql",
        "expression",
        &["batch", "boolean", "checkpoints", "extract", "kernel", "operator", "parse", "tree"],
    ),
    (
        "mql",
        "filter",
        &["bits", "compare", "expr", "in_list", "modulo", "node", "parse", "regex", "scope"],
    ),
    ("mql", "shape", &["expression", "filter", "projection"]),
    ("mql", "stage", &["fusion", "fusion_input", "replace_root", "score", "transform"]),
    ("mql", "update", &["apply", "modifier", "rename", "tree"]),
    ("mql", "window", &["fill", "output", "partition", "ranks", "sliding"]),
    // A command gets the context, which has the service, whose parts are called with a context.
    (
        "commands",
        "frame",
        &[
            "account",
            "accounts",
            "audit",
            "authorize",
            "change_log",
            "cluster_parameters",
            "command",
            "concern_defaults",
            "config_version",
            "context",
            "dispatch",
            "executions",
            "fail_points",
            "generic_fields",
            "gossip",
            "job_kind",
            "job_list",
            "metrics",
            "operation",
            "operation_session",
            "profiler",
            "query_settings",
            "service",
            "set_name",
            "transactions",
            "usage",
            "write_block",
        ],
    ),
    // Two halves of one thing, each in a file.
    ("cli", "connect", &["login", "socket"]),
    ("commands", "jobs", &["expiry", "runner"]),
    ("commands", "users", &["authenticate", "sasl"]),
    ("executor", "operators", &["window_parts", "windows"]),
    ("mql", "expression/dates", &["format", "lenient"]),
    ("storage", "committer", &["history", "keys", "lines", "views"]),
];

/// The crate and the name of types that are visible in the whole crate and share their name with
/// another one.
const SAME_NAMES: &[(&str, &str)] = &[];

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

/// Crate, folder and module of the tables that have a row for each file of their folder. Such a table
/// imports all of them, as the root of the folder may, and they import the type of its rows.
const TABLES: &[(&str, &str, &str)] = &[
    ("catalog", "key", "kind"),
    ("commands", "jobs", "kinds"),
    ("mql", "accumulator", "registry"),
    ("mql", "expression", "registry"),
    ("mql", "filter", "registry"),
    ("mql", "stage", "registry"),
    ("mql", "update", "operator"),
    ("mql", "window", "registry"),
];

/// The imports between the modules of one folder: module, the one that it imports, and where.
type Edges<'f> = BTreeMap<&'f str, BTreeMap<&'f str, String>>;

/// Returns the imports of each folder, by crate and path.
fn edges<'f>(files: &'f [(String, &'f str)]) -> BTreeMap<(&'f str, String), Edges<'f>> {
    let mut crates: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
    for (name, text) in files {
        if let Some((crate_name, path)) = place(name) {
            crates.entry(crate_name).or_default().push((path, text));
        }
    }
    let mut found: BTreeMap<(&str, String), Edges<'_>> = BTreeMap::new();
    for (crate_name, files) in crates {
        let modules = Modules::new(&files);
        // Tests may import every module.
        let is_test = |path: &str| path.ends_with("tests.rs") || path.contains("tests/");
        for (path, text) in files.into_iter().filter(|(path, _)| !is_test(path)) {
            for Import { folder, own, module, line } in modules.named_by(path, text) {
                let folder = folder.join("/");
                if TABLES.contains(&(crate_name, &*folder, own)) {
                    continue;
                }
                let of_folder = found.entry((crate_name, folder)).or_default();
                let at = || format!("crates/{crate_name}/src/{path}:{line}");
                of_folder.entry(own).or_default().entry(module).or_insert_with(at);
            }
        }
    }
    found
}

/// Returns modules of a folder that import each other in a circle, directly or through others, and
/// that are not in `CIRCLES`; and entries of `CIRCLES` that are no longer in a circle.
pub fn circles(files: &[(String, &str)]) -> Vec<String> {
    let mut problems = Vec::new();
    let found = edges(files);
    for ((crate_name, folder), edges) in &found {
        let rows = CIRCLES.iter().filter(|(one, place, _)| one == crate_name && place == folder);
        let known: BTreeSet<&str> = rows.flat_map(|(_, _, modules)| *modules).copied().collect();
        let mut told = known.clone();
        for own in edges.keys() {
            let Some(way) = way_back(edges, own) else { continue };
            if way.iter().any(|(module, _)| told.contains(module)) {
                continue;
            }
            told.extend(way.iter().map(|(module, _)| *module));
            let steps: Vec<String> =
                way.iter().map(|(module, at)| format!("{module} ({at})")).collect();
            problems.push(format!("{own} imports {}", steps.join(", which imports ")));
        }
        let is_free = |module: &&&str| way_back(edges, module).is_none();
        problems.extend(known.iter().filter(is_free).map(|module| {
            format!("crates/{crate_name}/src/{folder}: {module} is not in a circle: remove it from CIRCLES")
        }));
    }
    problems
}

/// Returns the shortest way of imports from a module back to it: each module and the place where it
/// is imported.
fn way_back<'e>(edges: &'e Edges<'_>, own: &str) -> Option<Vec<(&'e str, &'e str)>> {
    let mut came: BTreeMap<&str, (&str, &str)> = BTreeMap::new();
    let mut next = VecDeque::from([edges.get_key_value(own)?]);
    while let Some((from, imports)) = next.pop_front() {
        for (module, at) in imports {
            if came.contains_key(module) {
                continue;
            }
            came.insert(module, (from, at));
            if *module == own {
                let mut way = Vec::new();
                let mut module = *module;
                loop {
                    let (from, at) = came.get(module)?;
                    way.push((module, *at));
                    if *from == own {
                        way.reverse();
                        return Some(way);
                    }
                    module = from;
                }
            }
            next.extend(edges.get_key_value(module));
        }
    }
    None
}

/// Returns types that the whole crate sees and that have the same name as another one of their
/// crate.
pub fn same_names(files: &[(String, &str)]) -> Vec<String> {
    let mut places: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
    for (name, text) in files {
        let Some((crate_name, _)) = place(name) else { continue };
        for (at, line) in text.lines().enumerate() {
            let line = line.trim_start();
            let rest = line.strip_prefix("pub ").or_else(|| line.strip_prefix("pub(crate) "));
            let Some(rest) = rest else { continue };
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

/// Returns the crate of a source file, and the path of the file below the crate's folder `src`.
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
    fn modules_that_import_each_other_are_found() {
        let mut files = file("crates/wire/src/a.rs", "use crate::b::Thing;\n");
        files.extend(file("crates/wire/src/b/mod.rs", "use crate::c;\nuse self::x::X;\n"));
        files.extend(file("crates/wire/src/b/x.rs", "use super::Root;\nuse crate::b::y;\n"));
        files.extend(file("crates/wire/src/b/y.rs", "use super::z::Z;\n"));
        files.extend(file("crates/wire/src/d.rs", "use crate::a;\n"));
        assert!(circles(&files).is_empty());
        files.extend(file("crates/wire/src/c.rs", "use crate::a::Other;\n"));
        let found = circles(&files);
        assert_eq!(found.len(), 1, "a, b and c, but not d: {found:?}");
        assert!(found[0].contains("c (crates/wire/src/b/mod.rs:1)"), "{}", found[0]);
        files.extend(file("crates/wire/src/b/z.rs", "fn f() { super::x::g() }\n"));
        assert_eq!(circles(&files).len(), 2, "also inside of a folder");
    }

    #[test]
    fn short_docs_and_doubled_names_are_found() {
        let text = "/// A thing.\npub struct A;\n/// Another thing entirely.\npub enum A {}\n";
        let files = file("crates/wire/src/lib.rs", text);
        assert_eq!(short_docs(&files).len(), 1);
        assert_eq!(same_names(&files).len(), 1);
    }
}
