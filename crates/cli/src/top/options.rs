//! The command line of `quire top`.

use super::screen::Order;
use crate::call::Call;
use crate::connect::{self, Target};
use crate::exit::Failure;
use crate::words::{Word, Words};
use std::time::Duration;

/// The seconds between two screens without `--every`.
const SECONDS: f64 = 2.0;
/// The most seconds between two screens.
const SECONDS_MAX: f64 = 86_400.0;
/// The rows of a screen without `--limit`.
const ROWS: usize = 20;

/// Returns the text of `--help`.
pub(super) fn help() -> String {
    format!(
        "Usage: quire top [OPTIONS]

Shows what a server is asked, while it runs: the shapes of statements with how often they ran,
the time they took and the documents they examined since the last screen. The server may be
Quire or MongoDB. The user needs the role clusterMonitor.

  --sort COLUMN        time, examined or count. Default: time.
  --every SECONDS      The time between two screens. Default: {SECONDS}.
  --once               One screen, of the time of --every, and the end.
  --json               A document a line in place of a screen.
  --limit N            The rows of a screen. Default: {ROWS}.
  -d, --db DB          Only the statements on this database.
  -h, --help           Shows this help.

Server:
{}",
        connect::server_help()
    )
}

/// The parsed command line.
pub(super) struct TopOptions {
    pub(super) target: Target,
    pub(super) order: Order,
    pub(super) every: Duration,
    pub(super) once: bool,
    pub(super) json: bool,
    pub(super) limit: usize,
    pub(super) db: Option<String>,
}

impl TopOptions {
    /// Parses the command line; `None` if help was requested.
    pub(super) fn parse(call: &Call) -> Result<Option<TopOptions>, Failure> {
        let mut options = TopOptions {
            target: Target::default(),
            order: Order::Time,
            every: Duration::from_secs_f64(SECONDS),
            once: false,
            json: false,
            limit: ROWS,
            db: None,
        };
        let mut words = Words::of(call, help());
        while let Some(word) = words.next(&mut options.target)? {
            match word {
                Word::Help => return Ok(None),
                Word::Long(name) => options.set(&name, &mut words)?,
                Word::Short('d') => options.db = Some(words.text()?),
                other => return Err(words.unexpected(other)),
            }
        }
        if options.db.is_none() {
            options.db = options.target.database()?;
        }
        Ok(Some(options))
    }

    fn set(&mut self, name: &str, words: &mut Words) -> Result<(), Failure> {
        match name {
            "once" => self.once = true,
            "json" => self.json = true,
            "db" => self.db = Some(words.text()?),
            "sort" => {
                let column = words.text()?;
                let text = || format!("--sort is time, examined or count, not '{column}'");
                self.order = Order::parse(&column).ok_or_else(|| words.wrong(text()))?;
            }
            "every" => {
                let seconds: f64 = words.text()?.parse().unwrap_or(f64::NAN);
                if !(0.1..=SECONDS_MAX).contains(&seconds) {
                    return Err(words.wrong(format!("--every takes 0.1 to {SECONDS_MAX} seconds")));
                }
                self.every = Duration::from_secs_f64(seconds);
            }
            "limit" => {
                let rows = words.text()?.parse().ok().filter(|rows| *rows > 0);
                self.limit = rows.ok_or_else(|| words.wrong("--limit takes a number from 1"))?;
            }
            _ => return Err(words.unexpected(Word::Long(name.to_owned()))),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::tests::parsed;

    #[test]
    fn options_are_read_and_wrong_ones_refused() {
        let parse = |words: &[&str]| parsed("quire top", words, TopOptions::parse);
        let found = parse(&["--sort", "examined", "--once", "--json", "--every", "0.5", "-d", "a"]);
        let found = found.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((found.order, found.once, found.json), (Order::Examined, true, true));
        assert_eq!((found.every, found.limit), (Duration::from_millis(500), ROWS));
        assert_eq!(found.db.as_deref(), Some("a"));
        let found = parse(&["--uri", "mongodb://h/shop"]).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(found.db.as_deref(), Some("shop"));
        for (words, said) in [
            (&["--sort", "name"][..], "--sort is time, examined or count"),
            (&["--every", "0"], "--every takes 0.1"),
            (&["--limit", "0"], "--limit takes"),
            (&["--all"], "invalid option"),
            (&["now"], "unexpected argument"),
        ] {
            let error = parse(words).err().unwrap_or_default();
            assert!(error.contains(said), "{words:?}: {error}");
        }
        assert_eq!(parse(&["--help"]).err(), Some("help".into()));
    }
}
