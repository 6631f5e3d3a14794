//! Case files: reading them, and writing them with other replies.

use std::path::{Path, PathBuf};

/// One case file.
pub struct CaseFile {
    /// The path of the file.
    pub path: PathBuf,
    /// Its path below the folder of cases, with `/`.
    pub name: String,
    /// The lines before the first case.
    pub preamble: Vec<String>,
    /// The cases in order.
    pub cases: Vec<Case>,
}

/// One case: a title and its steps.
#[derive(Clone, Debug)]
pub struct Case {
    /// The title without the mark of an older version.
    pub title: String,
    /// True if the reply is that of an older server; the case is not counted.
    pub older: bool,
    /// Its position in the file, from 1: part of its database's name.
    pub number: usize,
    /// The line of the title.
    pub line: usize,
    /// Steps and the text between them.
    pub parts: Vec<Part>,
}

/// A part of a case.
#[derive(Clone, Debug)]
pub enum Part {
    /// A line that is ignored.
    Text(String),
    /// A command and its reply.
    Step(Step),
}

/// A command and the reply that a real server gave.
#[derive(Clone, Debug)]
pub struct Step {
    /// The command's text, several lines.
    pub command: String,
    /// The reply's lines.
    pub reply: Vec<String>,
    /// The command's first line.
    pub line: usize,
}

const OLDER: &str = " [5.0]";

impl CaseFile {
    /// Reads a case file below `root`.
    pub fn load(root: &Path, path: &Path) -> std::io::Result<CaseFile> {
        let text = std::fs::read_to_string(path)?;
        let name = path.strip_prefix(root).unwrap_or(path).to_string_lossy().replace('\\', "/");
        let mut file =
            CaseFile { path: path.to_owned(), name, preamble: Vec::new(), cases: Vec::new() };
        let mut lines = text.trim_end_matches('\n').lines().enumerate().peekable();
        while let Some((at, line)) = lines.next() {
            if let Some(title) = line.strip_prefix("## ") {
                let title = title.trim();
                file.cases.push(Case {
                    title: title.strip_suffix(OLDER).unwrap_or(title).to_owned(),
                    older: title.ends_with(OLDER),
                    number: file.cases.len() + 1,
                    line: at + 1,
                    parts: Vec::new(),
                });
                continue;
            }
            let part = match line.strip_prefix("> ") {
                None => Part::Text(line.to_owned()),
                Some(first) => {
                    let mut step =
                        Step { command: first.to_owned(), reply: Vec::new(), line: at + 1 };
                    while let Some((_, more)) = lines.next_if(|(_, next)| next.starts_with("  ")) {
                        step.command.push('\n');
                        step.command.push_str(&more[2..]);
                    }
                    while let Some((_, reply)) = lines.next_if(|(_, next)| next.starts_with("< ")) {
                        step.reply.push(reply[2..].to_owned());
                    }
                    Part::Step(step)
                }
            };
            match (file.cases.last_mut(), part) {
                (Some(case), part) => case.parts.push(part),
                (None, Part::Text(line)) => file.preamble.push(line),
                (None, Part::Step(step)) => {
                    let place = format!("{}:{}", file.name, step.line);
                    return Err(std::io::Error::other(format!(
                        "{place}: a command before the first case"
                    )));
                }
            }
        }
        Ok(file)
    }

    /// Writes the file to its path.
    pub fn save(&self) -> std::io::Result<()> {
        let mut text = String::new();
        let mut push = |line: &str| {
            text.push_str(line);
            text.push('\n');
        };
        self.preamble.iter().for_each(|line| push(line));
        for case in &self.cases {
            push(&format!("## {}{}", case.title, if case.older { OLDER } else { "" }));
            for part in &case.parts {
                match part {
                    Part::Text(line) => push(line),
                    Part::Step(step) => {
                        for (at, line) in step.command.lines().enumerate() {
                            push(&format!("{}{line}", if at == 0 { "> " } else { "  " }));
                        }
                        step.reply.iter().for_each(|line| push(&format!("< {line}")));
                    }
                }
            }
        }
        std::fs::write(&self.path, text)
    }

    /// Returns the name of the case's database: the file's name and the case's number.
    pub fn database(&self, case: &Case) -> String {
        let stem = self
            .path
            .file_stem()
            .map(|stem| stem.to_string_lossy().into_owned())
            .unwrap_or_default();
        let clean: String = stem
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' })
            .take(40)
            .collect();
        format!("{clean}_{}", case.number)
    }
}

impl Case {
    /// Returns the steps in order.
    pub fn steps(&self) -> impl Iterator<Item = &Step> {
        self.parts
            .iter()
            .filter_map(|part| if let Part::Step(step) = part { Some(step) } else { None })
    }
}

/// Returns every case file below a folder, by name.
pub fn load_all(root: &Path) -> std::io::Result<Vec<CaseFile>> {
    let mut paths = Vec::new();
    collect(root, &mut paths)?;
    paths.sort();
    paths.iter().map(|path| CaseFile::load(root, path)).collect()
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, paths)?;
        } else if path.extension().is_some_and(|extension| extension == "mql") {
            paths.push(path);
        }
    }
    Ok(())
}
