//! The command line of a tool that reads data: the options that name the data and `--help` are the
//! same for all of these tools, so they are read here; the tool reads what is left.

use crate::call::{Call, did_you_mean};
use crate::connect::Target;
use crate::exit::Failure;
use lexopt::{Arg, Parser, ValueExt};
use std::ffi::OsString;
use std::fmt::Display;

/// A word that does not name the data.
#[derive(Debug)]
pub(crate) enum Word {
    /// `--help` or `-h`.
    Help,
    /// An option with a long name, without the two dashes.
    Long(String),
    /// An option of one letter.
    Short(char),
    /// A word that is no option.
    Value(OsString),
}

/// The words of a command line that are not read yet.
pub(crate) struct Words {
    program: String,
    /// The help text, whose options are proposed for a misspelt one.
    help: String,
    parser: Parser,
}

impl Words {
    /// Returns the words behind the subcommand. `help` lists the options of the tool.
    pub(crate) fn of(call: &Call, help: String) -> Words {
        let parser = Parser::from_args(call.words.iter().cloned());
        Words { program: call.program.clone(), help, parser }
    }

    /// Returns the next word. Options that name the data go into `target`.
    ///
    /// # Errors
    /// A malformed option, and a missing value of one that names the data.
    pub(crate) fn next(&mut self, target: &mut Target) -> Result<Option<Word>, Failure> {
        loop {
            let taken = match self.parser.next() {
                Ok(None) => return Ok(None),
                Ok(Some(arg)) => match target.take(&arg) {
                    Some(taken) => Ok(taken),
                    None => return Ok(Some(Word::of(arg))),
                },
                Err(error) => Err(error),
            };
            let set = taken.and_then(|taken| target.set(taken, &mut self.parser));
            set.map_err(|error| self.wrong(error))?;
        }
    }

    /// Returns the value of the option that was returned last.
    ///
    /// # Errors
    /// A missing value.
    pub(crate) fn value(&mut self) -> Result<OsString, Failure> {
        self.parser.value().map_err(|error| self.wrong(error))
    }

    /// Returns the value of the option that was returned last, which is text.
    ///
    /// # Errors
    /// A missing value, and one that is not UTF-8.
    pub(crate) fn text(&mut self) -> Result<String, Failure> {
        let value = self.value()?;
        self.text_of(value)
    }

    /// Returns a word as text.
    ///
    /// # Errors
    /// A word that is not UTF-8.
    pub(crate) fn text_of(&self, word: OsString) -> Result<String, Failure> {
        word.string().map_err(|error| self.wrong(error))
    }

    /// Returns the parser, for a tool that reads the values itself.
    pub(crate) fn parser(&mut self) -> &mut Parser {
        &mut self.parser
    }

    /// Returns the error of a word that the tool does not know.
    pub(crate) fn unexpected(&self, word: Word) -> Failure {
        match word {
            Word::Help => self.wrong("unexpected option '--help'"),
            Word::Long(name) => {
                let names = self.help.split_whitespace().filter(|word| word.starts_with("--"));
                let near = did_you_mean(&format!("--{name}"), names);
                self.wrong(format!("invalid option '--{name}'{near}"))
            }
            Word::Short(name) => self.wrong(lexopt::Error::UnexpectedOption(format!("-{name}"))),
            Word::Value(value) => self.wrong(lexopt::Error::UnexpectedArgument(value)),
        }
    }

    /// Returns an error of the command line, which says where the options are listed.
    pub(crate) fn wrong(&self, text: impl Display) -> Failure {
        Failure::options(format!("{text}\n\n'{} --help' lists the options", self.program))
    }
}

impl Word {
    fn of(arg: Arg<'_>) -> Word {
        match arg {
            Arg::Long("help") | Arg::Short('h') => Word::Help,
            Arg::Long(name) => Word::Long(name.to_owned()),
            Arg::Short(name) => Word::Short(name),
            Arg::Value(value) => Word::Value(value),
        }
    }
}
