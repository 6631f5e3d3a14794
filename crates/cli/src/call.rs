//! How a tool was called, and how it prints.

use std::ffi::OsString;
use std::io::Write;

/// How the program was called: its name, and the words after the subcommand.
pub struct Call {
    /// The program's name in messages: `quire serve`, or `mongod`.
    pub program: String,
    /// The whole command line.
    pub line: Vec<String>,
    /// The words after the subcommand.
    pub words: Vec<OsString>,
    /// True if it was called by the name `mongod`.
    pub as_mongod: bool,
}

/// Prints a text; a closed reader (`quire --help | head -1`) is not an error.
pub(crate) fn print(text: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{}", text.trim_end());
}

/// Returns `; did you mean 'NAME'?` with the name that `word` is closest to, if one is close; an
/// empty text otherwise.
pub(crate) fn did_you_mean<'n>(word: &str, names: impl Iterator<Item = &'n str>) -> String {
    /// The similarity (Jaro-Winkler, 0 to 1) from which a name may be a misspelling.
    const CLOSE: f64 = 0.85;
    let word = word.to_lowercase();
    let similar = names.map(|name| (strsim::jaro_winkler(&word, &name.to_lowercase()), name));
    match similar.max_by(|left, right| left.0.total_cmp(&right.0)) {
        Some((likeness, name)) if likeness >= CLOSE => format!("; did you mean '{name}'?"),
        _ => String::new(),
    }
}

/// Helpers for the tests of several tools.
#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::exit::Failure;

    /// Returns the result of parsing these words, or "help" if they request it.
    pub(crate) fn parsed<O>(
        program: &str,
        words: &[&str],
        parse: impl FnOnce(&Call) -> Result<Option<O>, Failure>,
    ) -> Result<O, String> {
        let call = Call {
            program: program.into(),
            line: Vec::new(),
            words: words.iter().map(Into::into).collect(),
            as_mongod: false,
        };
        match parse(&call) {
            Ok(options) => options.ok_or_else(|| "help".to_owned()),
            Err(failure) => Err(failure.message),
        }
    }
}
