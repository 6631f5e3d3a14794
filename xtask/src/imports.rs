//! Finds the modules of its own crate that a source file names, by `use` or by a path:
//! `crate::frame::args`, `crate::{admin, ddl}`, `super::other`, and `crate::Name` if the crate's root
//! re-exports the name.

use std::collections::{BTreeMap, BTreeSet};

/// The top-level modules of one crate, and the modules of the names that its root re-exports.
pub struct Modules<'t> {
    names: BTreeSet<&'t str>,
    reexports: BTreeMap<&'t str, &'t str>,
}

/// A top-level module that a file names, and the line where it does.
pub struct Import<'t> {
    pub module: &'t str,
    pub line: usize,
}

impl<'t> Modules<'t> {
    /// Returns the modules of a crate. Each file is its path below `src` and its text.
    pub fn new(files: &[(&'t str, &'t str)]) -> Self {
        let names = files.iter().map(|(path, _)| top(path)).collect();
        let mut modules = Modules { names, reexports: BTreeMap::new() };
        for (_, text) in files.iter().filter(|(path, _)| is_root(path)) {
            for statement in text.split("pub use ").chain(text.split("pub(crate) use ")).skip(1) {
                let statement = statement.split(';').next().unwrap_or_default();
                for path in tree(statement, 0, &mut Vec::new()).0 {
                    if let (Some(module), Some(name)) = (path.first(), path.last())
                        && modules.names.contains(module)
                    {
                        modules.reexports.insert(name, module);
                    }
                }
            }
        }
        modules
    }

    /// Returns the top-level modules that a file names, without its own. Tests do not count, because they
    /// may import every module; nor do modules whose names the crate's root only re-exports.
    pub fn named_by(&self, path: &'t str, text: &'t str) -> Vec<Import<'t>> {
        let (own, code) = (top(path), &text[..code_end(text)]);
        let mut own_path: Vec<&str> = path.trim_end_matches(".rs").split('/').collect();
        if own_path.last().is_some_and(|last| ["mod", "lib", "main"].contains(last)) {
            own_path.pop();
        }
        let mut found = Vec::new();
        for (at, _) in code.match_indices("::") {
            let start = code[..at].rfind(|c| !is_word(c)).map_or(0, |end| end + 1);
            let (before, word) = (&code[..start], &code[start..at]);
            // A macro's `$crate` is the crate that defines the macro.
            if before.ends_with([':', '$']) || in_comment(before) {
                continue;
            }
            let modules: Vec<&str> = match word {
                "crate" | "super" => {
                    let paths = tree(code, start, &mut Vec::new()).0;
                    paths.iter().filter_map(|named| self.module_of(named, &own_path)).collect()
                }
                _ if is_root(path) && !is_given_on(before) => {
                    self.names.get(word).copied().into_iter().collect()
                }
                _ => continue,
            };
            let line = code[..at].matches('\n').count() + 1;
            let others = modules.into_iter().filter(|module| *module != own);
            found.extend(others.map(|module| Import { module, line }));
        }
        found
    }

    /// Returns the top-level module of a path that begins with `crate` or `super`.
    fn module_of(&self, named: &[&'t str], own: &[&'t str]) -> Option<&'t str> {
        let supers = named.iter().take_while(|word| **word == "super").count();
        let first = match named.first() {
            Some(&"crate") => *named.get(1)?,
            // The path stays within the file's own top-level module.
            _ if supers < own.len() => *own.first()?,
            _ => *named.get(supers)?,
        };
        let module = self.names.get(first).or_else(|| self.reexports.get(first));
        // Every other name is an item of the root itself.
        Some(module.copied().unwrap_or("lib"))
    }
}

/// Returns the name of the top-level module that contains a file.
pub fn top(path: &str) -> &str {
    path.split('/').next().unwrap_or(path).trim_end_matches(".rs")
}

fn is_root(path: &str) -> bool {
    path == "lib.rs" || path == "main.rs"
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns true if the text after `before` is part of a re-export.
fn is_given_on(before: &str) -> bool {
    let statement = before.rsplit(';').next().unwrap_or(before);
    statement.contains("pub use") || statement.contains("pub(crate) use")
}

fn in_comment(before: &str) -> bool {
    before.rsplit('\n').next().is_some_and(|line| line.contains("//"))
}

/// Returns the position at which the tests of a file begin.
fn code_end(text: &str) -> usize {
    let tests = text.match_indices("#[cfg(test)]").find(|(at, mark)| {
        let next = text[at + mark.len()..].trim_start().lines().next().unwrap_or_default();
        next.starts_with("mod ") && next.ends_with('{')
    });
    tests.map_or(text.len(), |(at, _)| at)
}

/// Returns the paths of a tree of imports that begins at `at`, each with `prefix`, and the end of the tree.
fn tree<'t>(text: &'t str, at: usize, prefix: &mut Vec<&'t str>) -> (Vec<Vec<&'t str>>, usize) {
    let skip = |at: usize, over: &dyn Fn(char) -> bool| {
        text[at..].find(|c| !over(c)).map_or(text.len(), |length| at + length)
    };
    let mut at = skip(at, &char::is_whitespace);
    let (depth, mut paths) = (prefix.len(), Vec::new());
    if text[at..].starts_with('{') {
        at += 1;
        loop {
            at = skip(at, &|c| c.is_whitespace() || c == ',');
            if at >= text.len() || text[at..].starts_with('}') {
                return (paths, (at + 1).min(text.len()));
            }
            let (some, end) = tree(text, at, prefix);
            paths.extend(some);
            // The text is not a list of imports.
            if end == at {
                return (paths, at);
            }
            at = end;
        }
    }
    let end = skip(at, &is_word);
    if end > at {
        prefix.push(&text[at..end]);
        let rest = &text[end..];
        let follows = rest.strip_prefix("::").and_then(|rest| rest.chars().next());
        if follows.is_some_and(|c| is_word(c) || c == '{') {
            let (some, after) = tree(text, end + 2, prefix);
            paths.extend(some);
            at = after;
        } else {
            paths.push(prefix.clone());
            at = end;
            if let Some(renamed) = rest.trim_start().strip_prefix("as ") {
                let name = text.len() - renamed.len();
                at = skip(name, &is_word);
                if let Some(path) = paths.last_mut() {
                    path.push(&text[name..at]);
                }
            }
        }
    }
    prefix.truncate(depth);
    (paths, at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(files: &[(&'static str, &'static str)], path: &'static str) -> Vec<&'static str> {
        let modules = Modules::new(files);
        let text = files.iter().find(|(name, _)| *name == path).map_or("", |(_, text)| text);
        modules.named_by(path, text).into_iter().map(|import| import.module).collect()
    }

    #[test]
    fn imports_are_found_however_they_are_written() {
        let lib =
            "mod a;\nmod b;\nmod c;\npub use b::{Thing, inner::Other};\npub use c::C as See;\n";
        let files = [
            ("lib.rs", lib),
            ("a/mod.rs", "use crate::{\n    b::{self, x},\n    c,\n};\n"),
            ("a/deep.rs", "use super::mine;\nfn f() { super::super::c::g() }\n"),
            ("b.rs", "// use crate::a;\nmacro_rules! m { () => { $crate::a::f() } }\n"),
            ("c.rs", "use crate::{Thing, See};\n#[cfg(test)]\nmod tests {\n    use crate::a;\n}\n"),
            ("d.rs", "#[cfg(test)]\nmod tests;\nuse crate::Own;\nfn f() { crate::Other::new() }\n"),
        ];
        assert_eq!(named(&files, "lib.rs"), Vec::<&str>::new(), "given on only");
        assert_eq!(named(&files, "a/mod.rs"), ["b", "b", "c"]);
        assert_eq!(named(&files, "a/deep.rs"), ["c"]);
        assert_eq!(named(&files, "b.rs"), Vec::<&str>::new(), "a comment and a macro");
        assert_eq!(named(&files, "c.rs"), ["b"], "its own name and that of tests do not count");
        assert_eq!(named(&files, "d.rs"), ["lib", "b"]);
    }
}
