//! Finds the modules of its own crate that a source file names, by `use` or by a path:
//! `crate::frame::args`, `crate::{admin, ddl}`, `super::other`, and `crate::Name` if the root of the
//! crate or of a folder re-exports the name.

use std::collections::{BTreeMap, BTreeSet};

/// The modules of one crate: which names each folder has, and what each gives on under a name.
pub struct Modules<'t> {
    /// The path of a folder, empty for the crate's root, and the modules in it.
    folders: BTreeMap<Vec<&'t str>, BTreeSet<&'t str>>,
    /// The path of a folder and a name, and the path of the item that its root gives on under it.
    reexports: BTreeMap<(Vec<&'t str>, &'t str), Vec<&'t str>>,
}

/// A module that a file names: the folder in which both stand, the file's own module and the other
/// one, and the line where it is named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Import<'t> {
    pub folder: Vec<&'t str>,
    pub own: &'t str,
    pub module: &'t str,
    pub line: usize,
}

impl<'t> Modules<'t> {
    /// Returns the modules of a crate. Each file is its path below `src` and its text.
    pub fn new(files: &[(&'t str, &'t str)]) -> Self {
        let mut folders: BTreeMap<Vec<&str>, BTreeSet<&str>> = BTreeMap::new();
        for (path, _) in files {
            let path = module_path(path);
            for (depth, name) in path.iter().enumerate() {
                folders.entry(path[..depth].to_vec()).or_default().insert(name);
            }
        }
        let mut modules = Modules { folders, reexports: BTreeMap::new() };
        for (path, text) in files.iter().filter(|(path, _)| is_root(path)) {
            let folder = module_path(path);
            let statements = ["pub use ", "pub(crate) use ", "pub(super) use "];
            for statement in statements.iter().flat_map(|mark| text.split(mark).skip(1)) {
                let statement = statement.split(';').next().unwrap_or_default();
                for named in tree(statement, 0, &mut Vec::new()).0 {
                    let Some(name) = named.last().copied() else { continue };
                    if let Some(path) = modules.absolute(&named, &folder) {
                        modules.reexports.insert((folder.clone(), name), path);
                    }
                }
            }
        }
        modules
    }

    /// Returns the modules beside its own, in each folder that contains it, that a file names. Tests do
    /// not count, because they may import every module; nor do modules whose names a folder's root
    /// only re-exports, and a folder's root may name all modules of the folder.
    pub fn named_by(&self, path: &'t str, text: &'t str) -> Vec<Import<'t>> {
        let code = &text[..code_end(text)];
        let own = module_path(path);
        let mut found = Vec::new();
        for (at, _) in code.match_indices("::") {
            let start = code[..at].rfind(|c| !is_word(c)).map_or(0, |end| end + 1);
            let (before, word) = (&code[..start], &code[start..at]);
            // A macro's `$crate` is the crate that defines the macro.
            if before.ends_with([':', '$']) || in_comment(before) || is_given_on(before) {
                continue;
            }
            if !matches!(word, "crate" | "super" | "self") {
                continue;
            }
            let line = code[..at].matches('\n').count() + 1;
            for named in tree(code, start, &mut Vec::new()).0 {
                let Some(target) = self.absolute(&named, &own) else { continue };
                found.extend(self.import(&own, &target, line));
            }
        }
        found
    }

    /// Returns the import that the path of an item means for the file `own`: where the two paths part.
    fn import(&self, own: &[&'t str], target: &[&'t str], line: usize) -> Option<Import<'t>> {
        let depth = own.iter().zip(target).take_while(|(one, other)| one == other).count();
        let (module, own_name) = (*target.get(depth)?, *own.get(depth)?);
        let folder = own[..depth].to_vec();
        let is_module = self.folders.get(&folder).is_some_and(|names| names.contains(module));
        is_module.then_some(Import { folder, own: own_name, module, line })
    }

    /// Returns the path of an item from the crate's root, through the names that roots give on.
    fn absolute(&self, named: &[&'t str], own: &[&'t str]) -> Option<Vec<&'t str>> {
        let supers = named.iter().take_while(|word| **word == "super").count();
        let mut path = match *named.first()? {
            "crate" => named.get(1..)?.to_vec(),
            "self" => [own, named.get(1..)?].concat(),
            "super" => [own.get(..own.len().checked_sub(supers)?)?, named.get(supers..)?].concat(),
            // The path of a re-export begins with a module of the folder.
            _ => [own, named].concat(),
        };
        for _ in 0..8 {
            let end = (0..path.len()).find(|depth| !self.is_module(&path[..=*depth]));
            let Some(end) = end else { break };
            let Some(target) = self.reexports.get(&(path[..end].to_vec(), path[end])) else {
                break;
            };
            path = [&target[..], path.get(end + 1..)?].concat();
        }
        Some(path)
    }

    fn is_module(&self, path: &[&str]) -> bool {
        let Some((name, folder)) = path.split_last() else { return true };
        self.folders.get(folder).is_some_and(|names| names.contains(name))
    }
}

/// Returns the path of the module that a file is: `frame/args.rs` is `frame::args`, and
/// `frame/mod.rs` is `frame`.
fn module_path(path: &str) -> Vec<&str> {
    let mut path: Vec<&str> = path.trim_end_matches(".rs").split('/').collect();
    if path.last().is_some_and(|last| ["mod", "lib", "main"].contains(last)) {
        path.pop();
    }
    path
}

/// Returns true if the file is the root of a folder or of the crate.
fn is_root(path: &str) -> bool {
    ["lib.rs", "main.rs", "mod.rs"].contains(&path.rsplit('/').next().unwrap_or(path))
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns true if the text after `before` is part of a re-export.
fn is_given_on(before: &str) -> bool {
    let statement = before.rsplit(';').next().unwrap_or(before);
    ["pub use", "pub(crate) use", "pub(super) use"].iter().any(|mark| statement.contains(mark))
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

    fn named(files: &[(&'static str, &'static str)], path: &'static str) -> Vec<String> {
        let modules = Modules::new(files);
        let text = files.iter().find(|(name, _)| *name == path).map_or("", |(_, text)| text);
        let named = modules.named_by(path, text).into_iter();
        named.map(|it| [&it.folder[..], &[it.module]].concat().join("::")).collect()
    }

    #[test]
    fn imports_are_found_however_they_are_written() {
        let lib =
            "mod a;\nmod b;\nmod c;\npub use b::{Thing, inner::Other};\npub use c::C as See;\n";
        let files = [
            ("lib.rs", lib),
            ("a/mod.rs", "use crate::{\n    b::{self, x},\n    c,\n};\nuse self::mine::Deep;\n"),
            ("a/deep.rs", "use super::mine;\nfn f() { super::super::c::g() }\n"),
            ("a/mine.rs", "use crate::a::Constant;\nuse super::deep::x;\n"),
            ("b.rs", "// use crate::a;\nmacro_rules! m { () => { $crate::a::f() } }\n"),
            ("c.rs", "use crate::{Thing, See};\n#[cfg(test)]\nmod tests {\n    use crate::a;\n}\n"),
            ("d.rs", "#[cfg(test)]\nmod tests;\nuse crate::Own;\nfn f() { crate::Other::new() }\n"),
        ];
        assert!(named(&files, "lib.rs").is_empty(), "given on only");
        assert_eq!(named(&files, "a/mod.rs"), ["b", "b", "c"]);
        assert_eq!(named(&files, "a/deep.rs"), ["a::mine", "c"], "beside it, and above");
        assert_eq!(named(&files, "a/mine.rs"), ["a::deep"], "an item of the root does not count");
        assert!(named(&files, "b.rs").is_empty(), "a comment and a macro");
        assert_eq!(named(&files, "c.rs"), ["b"], "its own name and that of tests do not count");
        assert_eq!(named(&files, "d.rs"), ["b"]);
    }

    #[test]
    fn names_that_a_folder_gives_on_are_followed() {
        let files = [
            ("lib.rs", "mod a;\nmod b;\n"),
            ("a/mod.rs", "mod deep;\nmod other;\npub(crate) use deep::Deep;\n"),
            ("a/deep.rs", ""),
            ("a/other.rs", "use super::Deep;\n"),
            ("b.rs", "use crate::a::Deep;\n"),
        ];
        assert_eq!(named(&files, "a/other.rs"), ["a::deep"]);
        assert_eq!(named(&files, "b.rs"), ["a"]);
    }
}
