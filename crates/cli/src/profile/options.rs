//! The command line of `quire profile`.

use crate::call::Call;
use crate::connect::{self, Target};
use crate::exit::Failure;
use crate::words::{Word, Words};
use lexopt::{Parser, ValueExt};
use quire_advisor::Extent;
use quire_advisor::json_schema::Form;
use std::ffi::OsString;
use std::path::PathBuf;

/// The documents that are read of a collection unless the user says otherwise.
const SAMPLE: u64 = 10_000;
/// The documents that are read a second of a server, so that its other clients do not suffer.
const RATE: u64 = 20_000;

/// The help text of the options that name files and say how much is read.
pub(crate) const INPUT_HELP: &str =
    "  --dump DIR           The folder of one database that mongodump wrote, instead of a server.
  --log FILE           A log of mongod 4.4 or later: what was slow, and how often. Can be given
                       several times, with a dump, with a server or alone.
  --workload FILE      What quireRecorder showed, as JSON, instead of a log.
  -d, --db NAME        The database. Default: that of the URI, the dump's name, or 'test'.
  --sample N           Reads N random documents of each collection. Default: 10000.
  --all                Reads every document.
  --rate N             Reads at most N documents a second of a server. Default: 20000.";

/// Returns the text of `--help`.
pub(crate) fn help() -> String {
    format!(
        "Usage: quire profile [OPTIONS]

Shows what the documents of a database look like: paths, types, values, bytes, lengths of
arrays, and which collection refers to which. It only reads. The server may be Quire or
MongoDB.

Data:
{}

Files and amounts:
{INPUT_HELP}
  -c, --collection NAME
                       Profiles this collection only; can be given several times.

Output:
  --json               One document as JSON; docs/profile.md describes it.
  --schema             A JSON Schema that a validator can use, of one collection.
  --expandedSchema     The same with counts and example values, as Compass writes it.
  --quiet              Shows no progress.
  -h, --help           Shows this help.",
        connect::HELP
    )
}

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    Screen,
    Json,
    Schema(Form),
}

/// The parsed command line.
pub(crate) struct ProfileOptions {
    pub(crate) target: Target,
    pub(crate) dump: Option<PathBuf>,
    pub(crate) logs: Vec<PathBuf>,
    pub(crate) workload: Option<PathBuf>,
    pub(crate) db: String,
    pub(crate) collections: Vec<String>,
    pub(crate) extent: Extent,
    pub(crate) rate: u64,
    pub(crate) output: Report,
    pub(crate) quiet: bool,
}

impl ProfileOptions {
    /// Returns the options of an empty command line.
    pub(crate) fn new() -> ProfileOptions {
        ProfileOptions {
            target: Target::default(),
            dump: None,
            logs: Vec::new(),
            workload: None,
            db: String::new(),
            collections: Vec::new(),
            extent: Extent::Sample(SAMPLE),
            rate: RATE,
            output: Report::Screen,
            quiet: false,
        }
    }

    /// Returns true if a server or a directory is read, which is so unless only files are named.
    pub(crate) fn reads_server(&self) -> bool {
        let files = self.dump.is_some() || !self.logs.is_empty() || self.workload.is_some();
        self.dump.is_none() && (self.target.is_given() || !files)
    }

    /// Parses the command line; `None` if help was requested.
    pub(crate) fn parse(call: &Call) -> Result<Option<ProfileOptions>, Failure> {
        let mut options = ProfileOptions::new();
        let mut words = Words::of(call, help());
        while let Some(word) = words.next(&mut options.target)? {
            let name = match word {
                Word::Help => return Ok(None),
                Word::Long(name) => name,
                Word::Short('d') => "db".into(),
                Word::Short('c') => "collection".into(),
                other => return Err(words.unexpected(other)),
            };
            options.set(&name, words.parser()).map_err(|text| words.wrong(text))?;
        }
        options.complete().map_err(|text| words.wrong(text))?;
        Ok(Some(options))
    }

    pub(crate) fn set(&mut self, name: &str, parser: &mut Parser) -> Result<(), String> {
        match name {
            "all" => self.extent = Extent::All,
            "json" => self.output = Report::Json,
            "schema" => self.output = Report::Schema(Form::Validator),
            "expandedSchema" => self.output = Report::Schema(Form::Expanded),
            "quiet" => self.quiet = true,
            _ => return self.set_value(name, parser),
        }
        Ok(())
    }

    fn set_value(&mut self, name: &str, parser: &mut Parser) -> Result<(), String> {
        if !["dump", "log", "workload", "db", "collection", "sample", "rate"].contains(&name) {
            return Err(format!("unexpected option '--{name}'"));
        }
        let value = parser.value().map_err(|error| error.to_string())?;
        match name {
            "dump" => self.dump = Some(value.into()),
            "log" => self.logs.push(value.into()),
            "workload" => self.workload = Some(value.into()),
            _ => return self.set_text(name, value),
        }
        Ok(())
    }

    fn set_text(&mut self, name: &str, value: OsString) -> Result<(), String> {
        let value = value.string().map_err(|error| error.to_string())?;
        let count = || match value.parse() {
            Ok(count) if count > 0 => Ok(count),
            _ => Err(format!("--{name} takes a number greater than 0, not '{value}'")),
        };
        match name {
            "sample" => self.extent = Extent::Sample(count()?),
            "rate" => self.rate = count()?,
            "db" => self.db = value,
            _ => self.collections.push(value),
        }
        Ok(())
    }

    pub(crate) fn complete(&mut self) -> Result<(), String> {
        if self.workload.is_some() && !self.logs.is_empty() {
            return Err("--log and --workload exclude each other".into());
        }
        if self.dump.is_some() && self.target.is_given() {
            return Err("--dump excludes the options that name a server or a directory".into());
        }
        if self.db.is_empty() {
            let named = self.target.database().map_err(|failure| failure.message)?;
            let folder = self.dump.as_ref().and_then(|path| path.file_name());
            let folder = folder.map(|name| name.to_string_lossy().into_owned());
            self.db = named.or(folder).unwrap_or_else(|| "test".into());
        }
        if matches!(self.output, Report::Schema(_)) && self.collections.len() != 1 {
            return Err("a schema is of one collection: use --collection".into());
        }
        Ok(())
    }
}
