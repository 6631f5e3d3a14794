//! The command line of `quire import`. The options have the names of mongoimport's.

use super::columns::Grace;
use super::csv::{CsvSource, Layout};
use super::json::JsonSource;
use super::source::Source;
use crate::call::Call;
use crate::connect::{self, Target};
use crate::exit::Failure;
use crate::words::{Word, Words};
use lexopt::{Parser, ValueExt};
use quire_document::{DocBuf, doc, extjson};
use std::io::BufRead;
use std::path::PathBuf;

/// Returns the text of `--help`.
pub(crate) fn help() -> String {
    format!(
        "Usage: quire import --collection NAME [OPTIONS] [FILE]

Reads documents from FILE, or from the standard input, and writes them to a collection. Lines that
are not imported are reported; the exit code is 0 only if there are none.

Data:
{}
  -d, --db NAME        The database. Default: that of the URI, or 'test'.
  -c, --collection NAME
                       The collection. Default: the file's name without its extension.

Input:
  --type TYPE          json (the default), csv or tsv. JSON is Extended JSON, one document after
                       the other.
  --file FILE          The same as the argument FILE.
  --jsonArray          The file is one array of documents.
  --headerline         The first row of CSV or TSV has the names of the fields.
  -f, --fields A,B.C   The names of the fields; dots for nested fields.
  --fieldFile FILE     A file with the names, one on each line.
  --columnsHaveTypes   Each name is followed by its type: age.int32(), born.date(2006-01-02).
                       Types: auto() binary(base64|hex) boolean() date(GO) date_go(GO)
                       date_ms(FORMAT) date_oracle(FORMAT) decimal() double() int32() int64()
                       string().
  --parseGrace WHAT    The treatment of a value that does not have its type: stop (the default),
                       autoCast, skipField or skipRow.
  --ignoreBlanks       Omits empty fields.

Import:
  --mode MODE          insert (the default), upsert, merge or delete.
  --upsertFields A,B   The fields that identify a document. Default: _id.
  --drop               Drops the collection first.
  --stopOnError        Stops at the first error.
  --maintainInsertionOrder
                       Inserts in the order of the file; an error ends its batch.
  -j, --numInsertionWorkers N
                       The number of parallel connections. Default: 1.
  --bypassDocumentValidation
                       Bypasses the collection's validator.
  --writeConcern WC    A number, 'majority', or a document.
  --quiet              Shows no progress.
  -h, --help           Shows this help.",
        connect::HELP
    )
}

/// The operation for each document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mode {
    #[default]
    Insert,
    Upsert,
    Merge,
    Delete,
}

/// The source of the documents.
#[derive(Default)]
pub(crate) enum Input {
    #[default]
    Stdin,
    File(PathBuf),
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Json,
    Csv,
    Tsv,
}

/// The parsed command line.
#[derive(Default)]
pub(crate) struct ImportOptions {
    pub(crate) target: Target,
    pub(crate) db: String,
    pub(crate) collection: String,
    pub(crate) file: Input,
    kind: Kind,
    json_array: bool,
    header_line: bool,
    fields: Option<Vec<String>>,
    typed: bool,
    grace: Option<Grace>,
    ignore_blanks: bool,
    pub(crate) mode: Mode,
    pub(crate) upsert_fields: Vec<String>,
    pub(crate) drop: bool,
    pub(crate) stop_on_error: bool,
    pub(crate) maintain_order: bool,
    pub(crate) workers: usize,
    pub(crate) bypass_validation: bool,
    pub(crate) write_concern: Option<DocBuf>,
    pub(crate) quiet: bool,
}

impl ImportOptions {
    /// Parses the command line; `None` if help was requested.
    pub(crate) fn parse(call: &Call) -> Result<Option<ImportOptions>, Failure> {
        let mut options = ImportOptions { workers: 1, ..ImportOptions::default() };
        let mut words = Words::of(call, help());
        while let Some(word) = words.next(&mut options.target)? {
            let word = match word {
                Word::Help => return Ok(None),
                Word::Long(name) => Given::Option(name),
                Word::Short('d') => Given::Option("db".into()),
                Word::Short('c') => Given::Option("collection".into()),
                Word::Short('f') => Given::Option("fields".into()),
                Word::Short('j') => Given::Option("numInsertionWorkers".into()),
                Word::Value(path) => Given::File(path.into()),
                other => return Err(words.unexpected(other)),
            };
            options.set(word, words.parser()).map_err(|text| words.wrong(text))?;
        }
        options.complete().map_err(|text| words.wrong(text))?;
        Ok(Some(options))
    }

    fn set(&mut self, word: Given, parser: &mut Parser) -> Result<(), String> {
        let name = match word {
            Given::File(path) => return self.set_file(path),
            Given::Option(name) => name,
        };
        let mut value = || -> Result<String, String> {
            parser.value().and_then(ValueExt::string).map_err(|error| error.to_string())
        };
        let wrong = |value: &str| format!("'{value}' is not a value of --{name}");
        match name.as_str() {
            "db" => self.db = value()?,
            "collection" => self.collection = value()?,
            "file" => {
                let path = value()?;
                self.set_file(path.into())?;
            }
            "type" => {
                self.kind = match value()?.as_str() {
                    "json" => Kind::Json,
                    "csv" => Kind::Csv,
                    "tsv" => Kind::Tsv,
                    other => return Err(wrong(other)),
                }
            }
            "mode" => {
                self.mode = match value()?.as_str() {
                    "insert" => Mode::Insert,
                    "upsert" => Mode::Upsert,
                    "merge" => Mode::Merge,
                    "delete" => Mode::Delete,
                    other => return Err(wrong(other)),
                }
            }
            "parseGrace" => {
                self.grace = Some(match value()?.as_str() {
                    "stop" => Grace::Stop,
                    "autoCast" => Grace::AutoCast,
                    "skipField" => Grace::SkipField,
                    "skipRow" => Grace::SkipRow,
                    other => return Err(wrong(other)),
                })
            }
            "fields" => self.set_fields(value()?.split(',').map(str::to_owned).collect())?,
            "fieldFile" => {
                let path = value()?;
                let text = std::fs::read_to_string(&path)
                    .map_err(|error| format!("cannot read {path}: {error}"))?;
                self.set_fields(text.lines().map(str::to_owned).collect())?;
            }
            "upsertFields" => {
                self.upsert_fields = value()?.split(',').map(str::to_owned).collect();
            }
            "numInsertionWorkers" => {
                let text = value()?;
                let number = text.parse::<usize>().ok().filter(|number| (1..=64).contains(number));
                self.workers = number.ok_or_else(|| wrong(&text))?;
            }
            "writeConcern" => {
                let text = value()?;
                self.write_concern = Some(write_concern(&text).ok_or_else(|| wrong(&text))?);
            }
            flag => return self.set_flag(flag),
        }
        Ok(())
    }

    /// Sets an option without a value.
    fn set_flag(&mut self, name: &str) -> Result<(), String> {
        let flag = match name {
            "jsonArray" => &mut self.json_array,
            "headerline" => &mut self.header_line,
            "columnsHaveTypes" => &mut self.typed,
            "ignoreBlanks" => &mut self.ignore_blanks,
            "drop" => &mut self.drop,
            "stopOnError" => &mut self.stop_on_error,
            "maintainInsertionOrder" => &mut self.maintain_order,
            "bypassDocumentValidation" => &mut self.bypass_validation,
            "quiet" => &mut self.quiet,
            other => return Err(format!("there is no option --{other}")),
        };
        *flag = true;
        Ok(())
    }

    fn set_file(&mut self, path: PathBuf) -> Result<(), String> {
        if matches!(self.file, Input::File(_)) {
            return Err("more than one file".into());
        }
        self.file = Input::File(path);
        Ok(())
    }

    fn set_fields(&mut self, fields: Vec<String>) -> Result<(), String> {
        match self.fields.replace(fields) {
            None => Ok(()),
            Some(_) => Err("--fields and --fieldFile exclude each other".into()),
        }
    }

    /// Checks the combination of options and sets defaults.
    fn complete(&mut self) -> Result<(), String> {
        let json = self.kind == Kind::Json;
        let of_tables = [
            ("--headerline", self.header_line),
            ("--fields", self.fields.is_some()),
            ("--columnsHaveTypes", self.typed),
            ("--parseGrace", self.grace.is_some()),
            ("--ignoreBlanks", self.ignore_blanks),
        ];
        if let Some((name, _)) = of_tables.iter().find(|(_, given)| *given && json) {
            return Err(format!("{name} goes with --type csv or tsv"));
        }
        if self.json_array && !json {
            return Err("--jsonArray goes with --type json".into());
        }
        if !json && self.header_line == self.fields.is_some() {
            return Err("csv and tsv need either --headerline or --fields".into());
        }
        if self.mode == Mode::Insert && !self.upsert_fields.is_empty() {
            return Err("--upsertFields goes with --mode upsert, merge or delete".into());
        }
        if self.upsert_fields.is_empty() {
            self.upsert_fields.push("_id".into());
        }
        if self.upsert_fields.iter().any(String::is_empty) {
            return Err("--upsertFields has an empty name".into());
        }
        if (self.stop_on_error || self.maintain_order) && self.workers > 1 {
            return Err("--numInsertionWorkers goes neither with --stopOnError nor with \
                        --maintainInsertionOrder: there is no order between connections"
                .into());
        }
        if self.db.is_empty() {
            let named = self.target.database().map_err(|failure| failure.message)?;
            self.db = named.unwrap_or_else(|| "test".into());
        }
        if self.collection.is_empty() {
            self.collection = match &self.file {
                Input::File(path) => path.file_stem().and_then(|stem| stem.to_str()),
                Input::Stdin => None,
            }
            .ok_or("name the collection: --collection NAME")?
            .to_owned();
        }
        Ok(())
    }

    /// Returns the reader for this kind of input.
    pub(crate) fn source<'r>(
        &self,
        input: impl BufRead + 'r,
    ) -> Result<Box<dyn Source + 'r>, Failure> {
        if self.kind == Kind::Json {
            return Ok(Box::new(JsonSource::new(input, self.json_array)));
        }
        let layout = Layout {
            fields: self.fields.clone(),
            typed: self.typed,
            grace: self.grace.unwrap_or_default(),
            ignore_blanks: self.ignore_blanks,
            tabs: self.kind == Kind::Tsv,
        };
        let source = CsvSource::new(input, layout).map_err(Failure::options)?;
        Ok(Box::new(source))
    }
}

/// A word of the command line.
enum Given {
    Option(String),
    File(PathBuf),
}

/// Parses a write concern: `majority`, `2` or a document.
fn write_concern(text: &str) -> Option<DocBuf> {
    if text.starts_with('{') {
        return extjson::parse_doc(text).ok();
    }
    match text.parse::<i32>() {
        Ok(nodes) => Some(doc! { "w": nodes }),
        Err(_) => Some(doc! { "w": text }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Result<ImportOptions, String> {
        crate::call::tests::parsed("quire import", words, ImportOptions::parse)
    }

    #[test]
    fn defaults() {
        let options = parsed(&["/data/books.json"]).ok().unwrap();
        assert_eq!((options.db.as_str(), options.collection.as_str()), ("test", "books"));
        let options = parsed(&["--uri", "mongodb://h/shop", "-c", "x"]).ok().unwrap();
        assert_eq!((options.db.as_str(), options.collection.as_str()), ("shop", "x"));
        assert_eq!(options.upsert_fields, ["_id"]);
    }

    #[test]
    fn options_that_exclude_each_other_are_refused() {
        for (words, reason) in [
            (&[][..], "name the collection"),
            (&["a", "b"], "more than one file"),
            (&["a", "--nonsense"], "no option --nonsense"),
            (&["a", "--type", "xml"], "not a value of --type"),
            (&["a", "--type", "csv"], "either --headerline or --fields"),
            (&["a", "--type", "csv", "--headerline", "-f", "a"], "either --headerline or --fields"),
            (&["a", "--headerline"], "goes with --type csv"),
            (&["a", "--type", "tsv", "--headerline", "--jsonArray"], "goes with --type json"),
            (&["a", "--upsertFields", "x"], "goes with --mode"),
            (&["a", "--numInsertionWorkers", "0"], "not a value"),
            (&["a", "-j", "2", "--stopOnError"], "no order"),
            (&["a", "--uri", "nonsense"], "connection string"),
            (&["a", "--writeConcern", "{"], "not a value"),
        ] {
            let error = parsed(words).err().unwrap_or_else(|| panic!("{words:?}"));
            assert!(error.contains(reason), "{words:?}: {error}");
        }
    }
}
