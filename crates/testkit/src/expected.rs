//! The cases that are known to differ, each with its reason. A case on the list that agrees is a
//! failure too, so that the list stays correct.

use std::collections::BTreeMap;
use std::path::Path;

/// Reasons by case file and title.
#[derive(Default)]
pub struct Expected {
    reasons: BTreeMap<(String, String), String>,
}

impl Expected {
    /// Reads the list: lines with reasons start with `# `, the name of a file is on its own line,
    /// and the titles of its cases follow, indented.
    pub fn load(path: &Path) -> std::io::Result<Expected> {
        let mut expected = Expected::default();
        let (mut reason, mut file) = (String::new(), String::new());
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error),
        };
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            if let Some(text) = line.strip_prefix("# ") {
                reason = text.to_owned();
            } else if let Some(title) = line.strip_prefix("    ") {
                expected.reasons.insert((file.clone(), title.to_owned()), reason.clone());
            } else {
                file = line.to_owned();
            }
        }
        Ok(expected)
    }

    /// Returns why the case differs, if it is on the list.
    pub fn reason(&self, file: &str, title: &str) -> Option<&str> {
        self.reasons.get(&(file.to_owned(), title.to_owned())).map(String::as_str)
    }

    /// Adds a case.
    pub fn insert(&mut self, file: &str, title: &str, reason: &str) {
        self.reasons.insert((file.to_owned(), title.to_owned()), reason.to_owned());
    }

    /// Returns the number of cases on the list.
    pub fn len(&self) -> usize {
        self.reasons.len()
    }

    /// Returns true if the list is empty.
    pub fn is_empty(&self) -> bool {
        self.reasons.is_empty()
    }

    /// Returns every case on the list.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        self.reasons.iter().map(|((file, title), reason)| (&**file, &**title, &**reason))
    }

    /// Writes the list, sorted by reason, file and title.
    pub fn save(&self, path: &Path) -> std::io::Result<()> {
        let mut by_reason: BTreeMap<&str, BTreeMap<&str, Vec<&str>>> = BTreeMap::new();
        for (file, title, reason) in self.iter() {
            by_reason.entry(reason).or_default().entry(file).or_default().push(title);
        }
        let mut text = String::new();
        for (reason, files) in by_reason {
            text.push_str(&format!("# {reason}\n"));
            for (file, titles) in files {
                text.push_str(&format!("{file}\n"));
                titles.iter().for_each(|title| text.push_str(&format!("    {title}\n")));
            }
            text.push('\n');
        }
        std::fs::write(path, text)
    }
}
