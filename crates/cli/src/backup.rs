//! `quire backup FROM TO`: a consistent copy of a stopped directory, which `quire serve` opens.

use crate::exit::{FAILED, Failure};
use crate::{Call, print};
use lexopt::{Arg, Parser};
use quire_storage_fjall::FjallOptions;
use std::path::PathBuf;

const HELP: &str = "Usage: quire backup FROM TO

Copies the stopped database directory FROM to the new directory TO, which 'quire serve' opens.

Options:
  -h, --help Shows this help.";

/// Copies a directory.
pub(crate) fn run(call: &Call) -> Result<(), Failure> {
    let Some((from, to)) = parse(call)? else {
        print(HELP);
        return Ok(());
    };
    let shown = from.display();
    if !crate::engine::is_database(&from) {
        return Err(Failure::new(FAILED, format!("{shown} is no database directory of Quire")));
    }
    if to.exists() {
        return Err(Failure::new(FAILED, format!("{} exists already", to.display())));
    }
    let opened = crate::engine::open(&from, FjallOptions::default())?;
    opened.warnings.iter().for_each(|warning| print(&format!("warning: {warning}")));
    let failed = |error| Failure::new(FAILED, format!("cannot copy {shown}: {error}"));
    opened.engine.backup(&to).map_err(failed)?;
    opened.engine.close().map_err(failed)?;
    print(&format!("{shown} is copied to {}", to.display()));
    Ok(())
}

fn parse(call: &Call) -> Result<Option<(PathBuf, PathBuf)>, Failure> {
    let bad = |text: String| Failure::options(format!("{text}\n\n{HELP}"));
    let mut parser = Parser::from_args(call.words.iter().cloned());
    let mut paths = Vec::new();
    while let Some(word) = parser.next().map_err(|error| bad(error.to_string()))? {
        match word {
            Arg::Long("help") | Arg::Short('h') => return Ok(None),
            Arg::Value(path) => paths.push(PathBuf::from(path)),
            other => return Err(bad(other.unexpected().to_string())),
        }
    }
    match <[PathBuf; 2]>::try_from(paths) {
        Ok([from, to]) => Ok(Some((from, to))),
        Err(_) => Err(bad("two directories are needed: from and to".to_owned())),
    }
}
