//! `quire serve`: from the command line to a listening server, and its clean stop.

mod allocator;
mod audit;
mod encryption;
mod given;
mod help;
mod key_file;
mod machine;
pub mod options;
mod request_memory;
mod settings;
mod start;
mod watch;

use crate::call::{Call, print};
use crate::exit::Failure;
use crate::version;
use given::Given;
use settings::Settings;

/// Runs the server until a signal or the `shutdown` command ends it.
pub(crate) fn run(call: &Call) -> Result<(), Failure> {
    let mut given = Given::from_words(&call.words, &call.program)?;
    if given.flag("help") {
        print(&help::short(&call.program));
        return Ok(());
    }
    if given.flag("help-all") {
        print(&help::all(&call.program));
        return Ok(());
    }
    if given.flag("version") {
        print(&version::as_mongod());
        return Ok(());
    }
    if let Some(path) = given.text("config").map(str::to_owned) {
        let text = std::fs::read_to_string(&path).map_err(|error| {
            Failure::options(format!("Error opening config file {path}: {error}"))
        })?;
        given.add_file(&text, &path)?;
    }
    let settings = Settings::new(&given, call.as_mongod)?;
    allocator::return_memory_when_idle();
    start::serve(settings, call)
}
