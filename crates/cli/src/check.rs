//! `quire check [--repair] DIR`: compares every document of a stopped directory with its index
//! entries, in both directions, and the counters; repairs what can be repaired.

use crate::call::{Call, print};
use crate::exit::{FAILED, FOUND, Failure};
use lexopt::{Arg, Parser};
use quire_collections::{Report, Store, StoreOptions};
use quire_error::ErrorCode;
use quire_storage_lsm::{LsmOptions, Opened, is_database};
use std::path::{Path, PathBuf};

const HELP: &str = "Usage: quire check [--repair] DIR

Compares every document of a stopped directory with its index entries, and the counters.
Without --repair, nothing in the directory is changed.

Options:
  --repair   Repairs what can be repaired, and reports the rest.
  -h, --help Shows this help.

The exit code is 0 if there is no problem (or every problem was repaired), else 1.";

struct Request {
    directory: PathBuf,
    repair: bool,
}

/// Checks a directory.
pub(crate) fn run(call: &Call) -> Result<(), Failure> {
    let Some(request) = parse(call)? else {
        print(HELP);
        return Ok(());
    };
    let shown = request.directory.display();
    if !is_database(&request.directory) {
        return Err(Failure::new(FAILED, format!("{shown} is not a database directory of Quire")));
    }
    let options = LsmOptions { repair: request.repair, ..LsmOptions::default() };
    let (opened, damages) = match request.repair {
        true => (crate::engine::open(&request.directory, options)?, 0),
        false => examine(&request.directory, options)?,
    };
    opened.warnings.iter().for_each(|warning| print(&format!("warning: {warning}")));
    let failed = |error: quire_error::Error| {
        let advice = match error.code() {
            ErrorCode::DataCorruptionDetected if request.repair => {
                "; this cannot be repaired; restore a backup"
            }
            ErrorCode::DataCorruptionDetected => "; --repair repairs what can be repaired",
            _ => "",
        };
        Failure::new(FAILED, format!("{shown}: {error}{advice}"))
    };
    let store = Store::open(opened.engine.clone(), StoreOptions::default()).map_err(failed)?;
    let report = quire_collections::check(&store, request.repair).map_err(failed)?;
    drop(store);
    opened.engine.close().map_err(|error| Failure::new(FAILED, format!("{shown}: {error}")))?;
    if request.repair {
        quire_storage_lsm::end_repair(&request.directory)
            .map_err(|error| Failure::new(FAILED, format!("{shown}: {error}")))?;
    }
    show(&report, request.repair, damages)
}

/// Opens an image of the directory, because a check changes nothing. Prints the damages of the
/// files and returns their number.
fn examine(directory: &Path, options: LsmOptions) -> Result<(Opened, usize), Failure> {
    let shown = directory.display();
    let examined = quire_storage_lsm::examine(directory, options)
        .map_err(|error| Failure::new(FAILED, format!("cannot open {shown}: {error}")))?;
    examined.damages.iter().for_each(|damage| print(damage));
    let found = examined.damages.len();
    examined.opened.map(|opened| (opened, found)).ok_or_else(|| {
        let text = format!(
            "{shown}: {found} problems of the files, so the documents were not read; \
             --repair repairs what can be repaired"
        );
        Failure::new(FOUND, text)
    })
}

fn parse(call: &Call) -> Result<Option<Request>, Failure> {
    let bad = |text: String| Failure::options(format!("{text}\n\n{HELP}"));
    let mut parser = Parser::from_args(call.words.iter().cloned());
    let (mut directory, mut repair) = (None, false);
    while let Some(word) = parser.next().map_err(|error| bad(error.to_string()))? {
        match word {
            Arg::Long("repair") => repair = true,
            Arg::Long("help") | Arg::Short('h') => return Ok(None),
            Arg::Value(path) if directory.is_none() => directory = Some(PathBuf::from(path)),
            other => return Err(bad(other.unexpected().to_string())),
        }
    }
    let directory = directory.ok_or_else(|| bad("which directory?".to_owned()))?;
    Ok(Some(Request { directory, repair }))
}

/// Prints the report; `damages` is the number of damages of the files.
fn show(report: &Report, repair: bool, damages: usize) -> Result<(), Failure> {
    for finding in &report.findings {
        let repaired = if finding.repaired { " (repaired)" } else { "" };
        print(&format!("{}: {}{repaired}", finding.place, finding.problem));
    }
    let Report { collections, documents, entries, findings } = report;
    let read = format!("{collections} collections, {documents} documents, {entries} index entries");
    if report.is_clean() && damages == 0 {
        print(&format!("{read}: no problems"));
        return Ok(());
    }
    let open = damages + findings.iter().filter(|finding| !finding.repaired).count();
    let text = match (repair, open) {
        (true, 0) => {
            print(&format!("{read}: {} problems, all repaired", findings.len()));
            return Ok(());
        }
        (true, _) => format!("{read}: {open} of {} problems could not be repaired", findings.len()),
        (false, _) => format!("{read}: {open} problems; --repair repairs what can be repaired"),
    };
    Err(Failure::new(FOUND, text))
}
