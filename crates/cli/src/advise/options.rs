//! The command line of `quire advise`.

use crate::call::Call;
use crate::connect;
use crate::exit::Failure;
use crate::profile::options::{INPUT_HELP, ProfileOptions};
use crate::words::{Word, Words};
use lexopt::{Parser, ValueExt};
use quire_advisor::findings::{Language, Severity, Silenced};
use std::path::PathBuf;

/// Returns the text of `--help`.
pub(crate) fn help() -> String {
    format!(
        "Usage: quire advise [OPTIONS]

Names the problems of a database: where, how much they cost, and the commands that mend them.
It only reads. The server may be Quire or MongoDB. Without a server, a dump and a log of
mongod will do. docs/advise.md is a guide, docs/rules.md explains every rule.

Data:
{}

Files and amounts:
{INPUT_HELP}

Output:
  --all-findings       Shows every finding, not only the ten most worthwhile.
  --json               One document as JSON; docs/advise.md describes it.
  --report FILE        Writes a page for a browser, which needs nothing from a network.
  --lang en|zh         The language of the page and of the screen. Default: en.
  --fail-on SEVERITY   Exit code 1 for a finding of this severity or a higher one:
                       low, medium or high.
  --silence RULE[:COLLECTION[.PATH]]
                       Leaves out a rule, everywhere or at a place. Can be given several times.
  --quiet              Shows no progress.
  -h, --help           Shows this help.",
        connect::HELP
    )
}

/// The parsed command line.
pub(crate) struct AdviseOptions {
    /// What is read.
    pub(crate) reading: ProfileOptions,
    pub(crate) json: bool,
    pub(crate) shows_all: bool,
    pub(crate) report: Option<PathBuf>,
    pub(crate) language: Language,
    pub(crate) fail_on: Option<Severity>,
    pub(crate) silenced: Silenced,
}

impl AdviseOptions {
    /// Parses the command line; `None` if help was requested.
    pub(crate) fn parse(call: &Call) -> Result<Option<AdviseOptions>, Failure> {
        let mut options = AdviseOptions {
            reading: ProfileOptions::new(),
            json: false,
            shows_all: false,
            report: None,
            language: Language::English,
            fail_on: None,
            silenced: Silenced::default(),
        };
        let mut words = Words::of(call, help());
        while let Some(word) = words.next(&mut options.reading.target)? {
            let name = match word {
                Word::Help => return Ok(None),
                Word::Long(name) => name,
                Word::Short('d') => "db".into(),
                other => return Err(words.unexpected(other)),
            };
            options.set(&name, words.parser()).map_err(|text| words.wrong(text))?;
        }
        options.reading.complete().map_err(|text| words.wrong(text))?;
        Ok(Some(options))
    }

    fn set(&mut self, name: &str, parser: &mut Parser) -> Result<(), String> {
        match name {
            "json" => self.json = true,
            "all-findings" => self.shows_all = true,
            "report" => {
                let path = parser.value().map_err(|error| error.to_string())?;
                self.report = Some(path.into());
            }
            "lang" | "fail-on" | "silence" => {
                let value = parser.value().and_then(|value| value.string());
                self.set_text(name, value.map_err(|error| error.to_string())?)?;
            }
            "schema" | "expandedSchema" | "collection" => {
                return Err(format!("unexpected option '--{name}'"));
            }
            other => return self.reading.set(other, parser),
        }
        Ok(())
    }

    fn set_text(&mut self, name: &str, value: String) -> Result<(), String> {
        match (name, value.as_str()) {
            ("lang", "en") => self.language = Language::English,
            ("lang", "zh") => self.language = Language::Chinese,
            ("lang", other) => return Err(format!("--lang is en or zh, not '{other}'")),
            ("fail-on", "low") => self.fail_on = Some(Severity::Low),
            ("fail-on", "medium") => self.fail_on = Some(Severity::Medium),
            ("fail-on", "high") => self.fail_on = Some(Severity::High),
            ("fail-on", other) => {
                return Err(format!("--fail-on is low, medium or high, not '{other}'"));
            }
            _ => self.silenced.add(&value)?,
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
        let parse = |words: &[&str]| parsed("quire advise", words, AdviseOptions::parse);
        let found = parse(&[
            "--dump",
            "d/shop",
            "--log",
            "a",
            "--log",
            "b",
            "--silence",
            "A15",
            "--fail-on",
            "high",
        ]);
        let found = found.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((found.reading.logs.len(), found.reading.db.as_str()), (2, "shop"));
        assert_eq!(found.fail_on, Some(Severity::High));
        for (words, said) in [
            (&["--fail-on", "x"][..], "--fail-on is"),
            (&["--silence", "A99"], "there is no rule 'A99'; near names are A9,"),
            (&["--silence", "a15:orders"], "there is no rule 'a15'; near names are A15,"),
            (&["--lang", "fr"], "--lang is"),
            (&["--schema"], "unexpected option"),
            (&["--log", "a", "--workload", "b"], "exclude each other"),
        ] {
            let error = parse(words).err().unwrap_or_default();
            assert!(error.contains(said), "{words:?}: {error}");
        }
    }
}
