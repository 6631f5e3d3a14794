//! The command line: `quire serve`, its tools, and the options that launchers of mongod use.
//!
//! [`COMMANDS`] lists the subcommands and [`serve::options::OPTIONS`] every option of the
//! server; help, checks and COMPATIBILITY.md come from these two tables.

mod advise;
mod backup;
mod call;
mod check;
pub mod compatibility;
mod connect;
mod eject;
mod engine;
mod exit;
mod export;
mod import;
mod jobs;
mod profile;
mod progress;
mod requests;
pub mod serve;
mod status;
mod top;
mod trace;
mod version;
mod words;

pub use call::Call;

use call::{did_you_mean, print};
use exit::Failure;
use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

/// A subcommand of `quire`.
pub struct Subcommand {
    /// The word that selects the tool.
    pub name: &'static str,
    /// One line of help.
    pub summary: &'static str,
    run: fn(&Call) -> Result<(), Failure>,
}

/// Every subcommand, in the order of the help.
pub static COMMANDS: &[Subcommand] = &[
    Subcommand { name: "serve", summary: "Starts the server.", run: serve::run },
    Subcommand {
        name: "status",
        summary: "Shows what a server does: connections, operations, memory, waits.",
        run: status::run,
    },
    Subcommand {
        name: "top",
        summary: "Shows the shapes of the statements that a server runs, live.",
        run: top::run,
    },
    Subcommand {
        name: "check",
        summary: "Checks every document and index entry of a stopped directory.",
        run: check::run,
    },
    Subcommand {
        name: "backup",
        summary: "Copies a running server, or a stopped directory, to a new one.",
        run: backup::run,
    },
    Subcommand {
        name: "import",
        summary: "Imports documents from JSON, CSV or TSV into a collection.",
        run: import::run,
    },
    Subcommand {
        name: "export",
        summary: "Writes the documents of a collection as JSON or CSV.",
        run: export::run,
    },
    Subcommand {
        name: "eject",
        summary: "Writes the patterns of a database as a script for a plain MongoDB.",
        run: eject::run,
    },
    Subcommand {
        name: "jobs",
        summary: "Lists, shows and runs the jobs of a server.",
        run: jobs::run,
    },
    Subcommand {
        name: "profile",
        summary: "Shows the fields, types and references of a database or a dump.",
        run: profile::run,
    },
    Subcommand {
        name: "advise",
        summary: "Names the problems of a database or a dump, with commands.",
        run: advise::run,
    },
    Subcommand {
        name: "record",
        summary: "Writes the statements that a server runs for a while into a file.",
        run: trace::record::run,
    },
    Subcommand {
        name: "replay",
        summary: "Runs the statements of such a file again and compares their times.",
        run: trace::replay::run,
    },
];

/// Runs the program. All files that it creates (data, logs, exports, copies) are readable by this
/// user only.
pub fn run(words: Vec<OsString>) -> ExitCode {
    #[cfg(unix)]
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    let line: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let name = line.first().map(Path::new).and_then(Path::file_stem);
    let as_mongod = name.is_some_and(|name| name == "mongod");
    let result = if as_mongod {
        let words = words.into_iter().skip(1).collect();
        serve::run(&Call { program: "mongod".into(), line, words, as_mongod })
    } else {
        subcommand(words, line)
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // The reader may have closed the stream.
            let _ = writeln!(std::io::stderr(), "{}", failure.message);
            ExitCode::from(failure.code)
        }
    }
}

fn subcommand(words: Vec<OsString>, line: Vec<String>) -> Result<(), Failure> {
    let first = line.get(1).map_or("--help", String::as_str);
    if let Some(command) = COMMANDS.iter().find(|command| command.name == first) {
        let program = format!("quire {first}");
        let words = words.into_iter().skip(2).collect();
        return (command.run)(&Call { program, line, words, as_mongod: false });
    }
    match first {
        "--help" | "-h" | "help" => print(&help()),
        "--version" | "-V" | "version" => print(&version::short()),
        other => {
            let names = COMMANDS.iter().map(|command| command.name);
            let near = did_you_mean(other, names.chain(["--help", "--version"]));
            let text = format!("'{other}' is not a command of quire{near}\n\n{}", help());
            return Err(Failure::options(text));
        }
    }
    Ok(())
}

fn help() -> String {
    let mut text = format!("{}\n\nUsage: quire COMMAND [OPTIONS]\n\nCommands:\n", version::short());
    for command in COMMANDS {
        text.push_str(&format!("  {:<10} {}\n", command.name, command.summary));
    }
    text.push_str("\n'quire COMMAND --help' tells more.");
    text
}
