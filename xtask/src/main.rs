//! `cargo xtask NAME`: the checks and generators of this project. It has no dependencies, so that
//! it builds in a second on a clean checkout.

mod ci;
mod codes;
mod imports;
mod layers;
mod structure;
mod tidy;

use std::path::PathBuf;
use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask NAME

  ci              what CI runs: format, clippy, layers, tidiness, documentation, tests
  layers          compares the crates' dependencies with the table of layers
  tidy            prints long files and functions; fails for undocumented files, dead paths in documents, short doc
                  comments, imports against the order of a crate's folders, two types of one name
  codes           writes crates/error/src/codes.rs from crates/error/codes.csv
  compatibility   writes COMPATIBILITY.md and docs/options.md from the registries
  cases ARGS      runs or records case files; --variants runs their reads in other ways (cargo xtask cases help)
  fuzz [SECONDS]  runs every fuzz target for so long (default 60)
  crash [ROUNDS]  kills a writing engine and a writing server so often and checks what they left (default 200);
                  cuts the power of a recorded engine 50 times as often
  drivers [NAMES] runs a shop through the official drivers and mongodump (tests/drivers)";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let rest = args.get(1..).unwrap_or(&[]);
    let result = match args.first().map(String::as_str) {
        Some("ci") => ci::run(),
        Some("layers") => layers::check(&root()),
        Some("tidy") => tidy::report(&root()),
        Some("codes") => codes::write(&root()),
        Some("compatibility") => ci::compatibility(&root()),
        Some("cases") => ci::cargo_bin("cases", rest),
        Some("fuzz") => ci::fuzz(&root(), rest),
        Some("crash") => ci::crash(rest),
        Some("drivers") => ci::drivers(&root(), rest),
        _ => Err(USAGE.to_owned()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

/// Returns the folder of the workspace for which cargo runs, not of the one in which it was built:
/// two checkouts may share a target directory.
fn root() -> PathBuf {
    let own =
        std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    PathBuf::from(own).parent().map(PathBuf::from).unwrap_or_default()
}
