//! `quire top`: the shapes of the statements that a server runs, live in a terminal.

mod look;
mod options;
mod screen;

use crate::call::{Call, print};
use crate::connect::Client;
use crate::exit::Failure;
use look::{Look, Origin};
use options::TopOptions;
use screen::Screen;
use std::io::IsTerminal;
use std::time::Instant;

/// The width of a terminal that does not tell it.
const WIDTH: usize = 120;
/// Moves the cursor of a terminal to the upper left corner, and clears everything below.
const CLEAR: &str = "\x1b[H\x1b[J";

/// Runs `quire top`.
pub(crate) fn run(call: &Call) -> Result<(), Failure> {
    let Some(options) = TopOptions::parse(call)? else {
        print(&options::help());
        return Ok(());
    };
    let door = options.target.open_server("quire top")?;
    let mut client = door.client()?;
    let done = screens(&mut client, &options);
    drop(client);
    door.close()?;
    done
}

/// Prints a screen after each interval: one, or until the program is stopped.
fn screens(client: &mut Client, options: &TopOptions) -> Result<(), Failure> {
    let redraws = !options.json && !options.once && std::io::stdout().is_terminal();
    let origin = Origin::find(client)?;
    let db = options.db.as_deref();
    let mut before = Look::take(client, origin, db)?;
    let mut next = before.at;
    loop {
        next += options.every;
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
        let now = Look::take(client, origin, db)?;
        let screen = Screen::between(&before, &now, options.order);
        match options.json {
            true => print(&screen.json(options.limit)),
            false => {
                let text = screen.text(options.limit, width());
                let clear = if redraws { CLEAR } else { "" };
                print(&format!("{clear}{text}\n"));
            }
        }
        if options.once {
            return Ok(());
        }
        before = now;
    }
}

/// Returns the width of the terminal as the shell tells it.
fn width() -> usize {
    let told = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    told.unwrap_or(WIDTH)
}
