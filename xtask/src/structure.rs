//! Checks of whole crates: the order of their modules, the names of their types, doc comments that
//! are too short. The lists of exceptions only get shorter.

use crate::imports::{Import, Modules, top};
use std::collections::{BTreeMap, BTreeSet};

/// Crate, and all folders and files below its `src`: each imports only earlier ones.
const ORDERS: &[(&str, &[&str])] = &[
    (
        "mql",
        &[
            "text",
            "names",
            "options",
            "type_set",
            "column",
            "totals",
            "checked_sort",
            "context",
            "collation",
            "regex",
            "expression",
            "sort",
            "schema",
            "filter",
            "accumulator",
            "projection",
            "window",
            "stage",
            "shape",
            "update",
            "chaos",
        ],
    ),
    (
        "catalog",
        &[
            "text",
            "names",
            "ids",
            "multikey",
            "partial",
            "index_pattern",
            "storage_engine",
            "index_spec",
            "key",
            "index_parse",
            "clustered",
            "capped",
            "validator",
            "options",
            "index",
            "index_match",
            "index_filter",
            "query_settings",
            "plan_cache",
            "view",
            "collection",
            "catalog",
            "view_reading",
            "view_graph",
            "record",
        ],
    ),
    (
        "collections",
        &[
            "failure",
            "policy",
            "helper_threads",
            "layout",
            "meta",
            "key_order",
            "entry",
            "duplicate",
            "multikey",
            "chunk_size",
            "spill",
            "sorted_runs",
            "side_writes",
            "low_water",
            "late",
            "id_cache",
            "past_catalogs",
            "changes",
            "log_record",
            "index_builds",
            "job",
            "job_bell",
            "numbers",
            "store",
            "view",
            "scan",
            "index_scan",
            "retry",
            "prepare",
            "prepared",
            "publish",
            "clashes",
            "rules",
            "log_catalog",
            "write",
            "ddl",
            "change_log",
            "open",
            "settings",
            "jobs",
            "findings",
            "check",
        ],
    ),
    (
        "planner",
        &[
            "request",
            "shape",
            "plan",
            "indexes",
            "node_stats",
            "explain",
            "natural",
            "find",
            "count",
            "distinct",
            "pipeline",
            "on_view",
            "planning",
        ],
    ),
    (
        "executor",
        &[
            "params",
            "holding",
            "examined",
            "views",
            "unit",
            "env",
            "chunks",
            "row",
            "record_set",
            "table",
            "sorting",
            "recent_values",
            "distinct_values",
            "taking",
            "operators",
            "columns",
            "execution",
            "scans",
            "statistics",
            "grouping",
            "joins",
            "build",
            "opening",
            "modify",
        ],
    ),
    (
        "session",
        &[
            "session_id",
            "catalog_changes",
            "held_transaction",
            "cursors",
            "plan_source",
            "sessions",
            "autocommit",
            "transaction",
            "transactions",
            "unit",
        ],
    ),
    (
        "commands",
        &[
            "frame", "cursors", "sessions", "users", "admin", "ddl", "write", "read", "requires",
            "registry", "jobs",
        ],
    ),
    (
        "storage-lsm",
        &[
            "error",
            "damage",
            "bytes_at",
            "private",
            "disk_space",
            "options",
            "table_cut",
            "tuning",
            "layout",
            "durable_files",
            "durable_mark",
            "repair_mark",
            "scratch",
            "directory",
            "archive",
            "manifest",
            "journal",
            "log",
            "inventory",
            "block_fields",
            "block_header",
            "block_index",
            "block_rows",
            "table_file",
            "row_tree",
            "table_writer",
            "table_output",
            "log_guard",
            "early_sync",
            "dropped",
            "key_filter",
            "memtable",
            "flush",
            "tables",
            "view",
            "pace",
            "retired",
            "store",
            "replay",
            "skeleton",
            "image",
            "rebuild",
            "salvage",
            "open_table",
            "range_source",
            "range",
            "range_back",
            "lookups",
            "locate",
            "held",
            "sizes",
            "dead",
            "reclaim",
            "tombstones",
            "gaps",
            "heads",
            "snapshot",
            "backup",
            "backend",
            "opening",
        ],
    ),
    (
        "cli",
        &[
            "exit",
            "version",
            "call",
            "engine",
            "progress",
            "connect",
            "export",
            "import",
            "profile",
            "check",
            "backup",
            "serve",
            "compatibility",
        ],
    ),
];

/// Modules of a crate that need each other, as a recursive function needs itself. In every other
/// crate the modules have an order in which each imports only earlier ones.
const CIRCLES: &[(&str, &[&str])] = &[
    // A value can be a document, which has values; what owns their bytes is built from them and
    // lends them.
    ("document", &["builder", "doc", "owned", "value"]),
    // `codes` is the generated table of a type in `code`, which looks names up in the table.
    ("error", &["code", "codes"]),
    // A join plans, builds and runs the plan inside of it while it runs, once for each batch of
    // keys; that plan can have joins.
    ("executor", &["build", "joins"]),
    // `taking` lists the forms in which a scan hands its rows to the operator above: columns, batches
    // of sort keys, groups. Each form runs the stages between the scan and the operator, which are in
    // `operators`; and each operator that accepts a form names it.
    ("executor", &["columns", "operators", "sorting", "taking"]),
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

/// The imports of each crate's files: crate, module, file name and what the file imports.
struct Imports<'f>(Vec<(&'f str, &'f str, &'f str, Vec<Import<'f>>)>);

impl<'f> Imports<'f> {
    fn of(files: &'f [(String, &'f str)]) -> Self {
        let mut crates: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
        for (name, text) in files {
            if let Some((crate_name, path)) = place(name) {
                crates.entry(crate_name).or_default().push((path, text));
            }
        }
        let mut found = Vec::new();
        for (name, text) in files {
            let Some((crate_name, path)) = place(name) else { continue };
            // Tests may import every module.
            if path.ends_with("tests.rs") || path.contains("tests/") {
                continue;
            }
            let modules = crates.get(crate_name).map(|files| Modules::new(files));
            let imports = modules.map(|modules| modules.named_by(path, text));
            found.push((crate_name, top(path), name.as_str(), imports.unwrap_or_default()));
        }
        Imports(found)
    }
}

/// Returns files that import a later module of their crate, and modules that are not in its order.
pub fn upward_imports(files: &[(String, &str)]) -> Vec<String> {
    let mut problems = Vec::new();
    for (crate_name, own, name, imports) in &Imports::of(files).0 {
        let Some((_, order)) = ORDERS.iter().find(|(row, _)| row == crate_name) else { continue };
        let rank = |module: &str| order.iter().position(|row| *row == module);
        // The root of a crate may import all of its modules.
        if matches!(*own, "lib" | "main") {
            continue;
        }
        let Some(own_rank) = rank(own) else {
            problems.push(format!("{name}: {own} has no place in ORDERS"));
            continue;
        };
        for Import { module, line } in imports {
            let upward = rank(module).is_none_or(|rank| rank > own_rank);
            // The root has the constants of the whole crate.
            if upward && *module != "lib" && !in_circle(crate_name, own, module) {
                problems.push(format!("{name}:{line}: {own} may not import {module}"));
            }
        }
    }
    problems
}

/// Returns true if `CIRCLES` says that two modules of a crate need each other.
fn in_circle(crate_name: &str, one: &str, other: &str) -> bool {
    let mut rows = CIRCLES.iter().filter(|(row, _)| *row == crate_name);
    rows.any(|(_, modules)| modules.contains(&one) && modules.contains(&other))
}

/// Returns modules that import each other in a circle, directly or through others, and that are not
/// in `CIRCLES`; and entries of `CIRCLES` that are no longer in a circle.
pub fn circles(files: &[(String, &str)]) -> Vec<String> {
    let mut imports: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    let found = Imports::of(files).0;
    for (crate_name, own, _, named) in &found {
        let of_own = imports.entry((*crate_name, *own)).or_default();
        of_own.extend(named.iter().map(|import| import.module));
    }
    let mut problems = Vec::new();
    for &(crate_name, own) in imports.keys() {
        match (reaches_itself(&imports, crate_name, own), in_circle(crate_name, own, own)) {
            (Some(by), false) => problems
                .push(format!("crates/{crate_name}: {own} imports {by}, which needs {own} itself")),
            (None, true) => problems.push(format!(
                "crates/{crate_name}: {own} is not in a circle: remove it from CIRCLES"
            )),
            _ => {}
        }
    }
    problems
}

/// Returns the first import of a circle that leads from a module back to it.
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
    fn a_frame_file_that_imports_a_command_is_found() {
        let mut files = file("crates/commands/src/lib.rs", "mod ddl;\npub use ddl::Create;\n");
        files.extend(file("crates/commands/src/ddl/create.rs", "use crate::frame::args::Arg;\n"));
        assert!(upward_imports(&files).is_empty());
        let uses = "use crate::{\n    frame,\n    ddl::create,\n};\nuse crate::Create;\n";
        files.extend(file("crates/commands/src/frame/args.rs", uses));
        assert_eq!(upward_imports(&files).len(), 2, "also through the root's name");
        files.extend(file("crates/commands/src/new.rs", ""));
        assert_eq!(upward_imports(&files).len(), 3, "and a module without a place");
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
