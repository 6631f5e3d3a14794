//! The command line of `quire export`. The options have the names of mongoexport's.

use crate::call::Call;
use crate::connect::{self, Target};
use crate::exit::Failure;
use crate::words::{Word, Words};
use lexopt::{Parser, ValueExt};
use quire_document::{DocBuf, extjson};
use std::path::PathBuf;

/// Returns the text of `--help`.
pub(crate) fn help() -> String {
    format!(
        "Usage: quire export --collection NAME [OPTIONS]

Writes the documents of a collection to the standard output, or to a file.

Data:
{}
  -d, --db NAME        The database. Default: that of the URI, or 'test'.
  -c, --collection NAME
                       The collection.

Input:
  -q, --query JSON     The filter.
  --queryFile FILE     A file with the filter.
  --sort JSON          The order.
  --skip N             Skips the first N documents.
  --limit N            Writes at most N documents.
  --assertExists       Fails if the collection does not exist.

Output:
  -o, --out FILE       The file.
  --type TYPE          json (the default, one document on each line) or csv.
  --jsonFormat FORMAT  relaxed (the default), or canonical, which keeps every type.
  --jsonArray          Writes one array of all documents.
  --pretty             Indents the JSON.
  -f, --fields A,B.C   The fields to write; required for CSV.
  --fieldFile FILE     A file with the fields, one on each line.
  --noHeaderLine       Omits the header row of CSV.
  --quiet              Shows no progress.
  -h, --help           Shows this help.",
        connect::HELP
    )
}

/// The destination of the documents.
#[derive(Default)]
pub(crate) enum Output {
    #[default]
    Stdout,
    File(PathBuf),
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    #[default]
    Json,
    Csv,
}

/// The parsed command line.
#[derive(Default)]
pub(crate) struct ExportOptions {
    pub(crate) target: Target,
    pub(crate) db: String,
    pub(crate) collection: String,
    pub(crate) query: DocBuf,
    sort: DocBuf,
    pub(crate) skip: i64,
    pub(crate) limit: i64,
    pub(crate) assert_exists: bool,
    pub(crate) output: Output,
    pub(crate) kind: Kind,
    pub(crate) canonical: bool,
    pub(crate) json_array: bool,
    pub(crate) pretty: bool,
    pub(crate) fields: Vec<String>,
    pub(crate) header: bool,
    pub(crate) quiet: bool,
}

impl ExportOptions {
    /// Parses the command line; `None` if help was requested.
    pub(crate) fn parse(call: &Call) -> Result<Option<ExportOptions>, Failure> {
        let mut options = ExportOptions { header: true, ..ExportOptions::default() };
        let mut words = Words::of(call, help());
        while let Some(word) = words.next(&mut options.target)? {
            let name = match word {
                Word::Help => return Ok(None),
                Word::Long(name) => name,
                Word::Short('d') => "db".into(),
                Word::Short('c') => "collection".into(),
                Word::Short('f') => "fields".into(),
                Word::Short('o') => "out".into(),
                Word::Short('q') => "query".into(),
                other => return Err(words.unexpected(other)),
            };
            options.set(&name, words.parser()).map_err(|text| words.wrong(text))?;
        }
        options.complete().map_err(|text| words.wrong(text))?;
        Ok(Some(options))
    }

    fn set(&mut self, name: &str, parser: &mut Parser) -> Result<(), String> {
        let mut value = || -> Result<String, String> {
            parser.value().and_then(ValueExt::string).map_err(|error| error.to_string())
        };
        let wrong = |value: &str| format!("'{value}' is not a value of --{name}");
        let document =
            |text: &str| extjson::parse_doc(text).map_err(|error| format!("--{name}: {error}"));
        let number = |text: &str| match text.parse::<i64>() {
            Ok(number) if number >= 0 => Ok(number),
            _ => Err(wrong(text)),
        };
        let file = |path: &str| {
            std::fs::read_to_string(path).map_err(|error| format!("cannot read {path}: {error}"))
        };
        match name {
            "db" => self.db = value()?,
            "collection" => self.collection = value()?,
            "query" => self.query = document(&value()?)?,
            "queryFile" => self.query = document(&file(&value()?)?)?,
            "sort" => self.sort = document(&value()?)?,
            "skip" => self.skip = number(&value()?)?,
            "limit" => self.limit = number(&value()?)?,
            "out" => self.output = Output::File(value()?.into()),
            "type" => {
                self.kind = match value()?.as_str() {
                    "json" => Kind::Json,
                    "csv" => Kind::Csv,
                    other => return Err(wrong(other)),
                }
            }
            "jsonFormat" => {
                self.canonical = match value()?.as_str() {
                    "relaxed" => false,
                    "canonical" => true,
                    other => return Err(wrong(other)),
                }
            }
            "fields" => self.fields = value()?.split(',').map(str::to_owned).collect(),
            "fieldFile" => {
                self.fields = file(&value()?)?.lines().map(str::to_owned).collect();
            }
            "jsonArray" => self.json_array = true,
            "pretty" => self.pretty = true,
            "noHeaderLine" => self.header = false,
            "assertExists" => self.assert_exists = true,
            "quiet" => self.quiet = true,
            other => return Err(format!("there is no option --{other}")),
        }
        Ok(())
    }

    fn complete(&mut self) -> Result<(), String> {
        if self.collection.is_empty() {
            return Err("name the collection: --collection NAME".into());
        }
        if self.kind == Kind::Csv && self.fields.is_empty() {
            return Err("CSV needs --fields or --fieldFile".into());
        }
        if self.fields.iter().any(String::is_empty) {
            return Err("--fields has an empty name".into());
        }
        let of_json = self.canonical || self.json_array || self.pretty;
        if self.kind == Kind::Csv && of_json {
            return Err("--jsonFormat, --jsonArray and --pretty go with --type json".into());
        }
        if self.kind == Kind::Json && !self.header {
            return Err("--noHeaderLine goes with --type csv".into());
        }
        if self.db.is_empty() {
            let named = self.target.database().map_err(|failure| failure.message)?;
            self.db = named.unwrap_or_else(|| "test".into());
        }
        Ok(())
    }

    /// Returns the command that finds the documents.
    pub(crate) fn find(&self) -> DocBuf {
        DocBuf::build(|find| {
            find.append("find", self.collection.as_str());
            find.append("filter", &self.query).append("sort", &self.sort);
            find.append("skip", self.skip).append("limit", self.limit);
            if !self.fields.is_empty() {
                let mut projection = find.document("projection");
                self.fields.iter().for_each(|field| {
                    projection.append(field, 1);
                });
                // As in mongoexport: `_id` is always exported to JSON, and to CSV only if it is
                // named.
                if self.kind == Kind::Csv && !self.fields.iter().any(|field| field == "_id") {
                    projection.append("_id", 0);
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_document::doc;

    fn parsed(words: &[&str]) -> Result<ExportOptions, String> {
        crate::call::tests::parsed("quire export", words, ExportOptions::parse)
    }

    #[test]
    fn the_find_has_the_given_options() {
        let words =
            ["-c", "a", "-q", "{\"x\":{\"$gt\":1}}", "--sort", "{\"x\":-1}", "--limit", "5"];
        let found = parsed(&[&words[..], &["--type", "csv", "-f", "x,y.z"]].concat());
        let expected = doc! {
            "find": "a", "filter": { "x": { "$gt": 1 } }, "sort": { "x": -1 }, "skip": 0i64,
            "limit": 5i64, "projection": { "x": 1, "y.z": 1, "_id": 0 },
        };
        assert_eq!(found.ok().unwrap().find(), expected);
    }

    #[test]
    fn options_that_exclude_each_other_are_refused() {
        for (words, reason) in [
            (&[][..], "name the collection"),
            (&["-c", "a", "--type", "csv"], "needs --fields"),
            (&["-c", "a", "--type", "csv", "-f", "a", "--pretty"], "go with --type json"),
            (&["-c", "a", "--noHeaderLine"], "goes with --type csv"),
            (&["-c", "a", "-q", "{x:1}"], "--query"),
            (&["-c", "a", "--limit", "-1"], "not a value of --limit"),
            (&["-c", "a", "--nonsense"], "no option"),
            (&["-c", "a", "file"], "unexpected"),
        ] {
            let error = parsed(words).err().unwrap_or_else(|| panic!("{words:?}"));
            assert!(error.contains(reason), "{words:?}: {error}");
        }
    }
}
