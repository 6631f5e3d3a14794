//! The common parts of write commands: their statements, `ordered`, and the reply with its write
//! errors.

use crate::frame::args::{Arg, missing};
use crate::frame::context::Context;
use crate::frame::profiler::SYSTEM_PROFILE;
use crate::frame::query_args::{empty_timestamps, write_policy};
use crate::frame::reply::write_write_error;
use crate::write::statement_ids::StatementIds;
use crate::write::writes::{fails_command, write_repeated};
use quire_catalog::{Namespace, SYSTEM_VIEWS};
use quire_collections::{EmptyTimestamps, WritePolicy};
use quire_document::limits::USER_DOCUMENT_BYTES_MAX;
use quire_document::{Doc, DocWriter, Value, ValueBuf};
use quire_error::{Error, ErrorCode, Result};

/// The largest number of statements in a command. MongoDB: 100,000 (16 InvalidLength).
pub const STATEMENTS_MAX: usize = 100_000;
/// The bytes of the texts and details of errors in a reply. Further errors are reported by their
/// codes alone.
const ERROR_BYTES_MAX: usize = 1024 * 1024;
/// The bytes of the beginning, and of the end, of a text that is too long by itself.
const END_BYTES: usize = 1000;

/// The common arguments of write commands besides their statements.
#[derive(Clone, Debug)]
pub struct WriteOptions {
    /// True to stop at the first error.
    pub ordered: bool,
    /// `stmtId` and `stmtIds`.
    pub statements: StatementIds,
    /// `bypassDocumentValidation`, as the policy of the writes.
    pub policy: WritePolicy,
    /// `bypassEmptyTsReplacement`: true if empty timestamps are stored as they are.
    pub timestamps: EmptyTimestamps,
}

impl Default for WriteOptions {
    fn default() -> Self {
        let (statements, policy) = (StatementIds::default(), WritePolicy::default());
        let timestamps = EmptyTimestamps::default();
        WriteOptions { ordered: true, statements, policy, timestamps }
    }
}

impl WriteOptions {
    /// Reads one of the common fields. Returns false if the argument is not one of them.
    pub fn read(&mut self, arg: &Arg<'_>) -> Result<bool> {
        match arg.name() {
            "ordered" if !arg.is_null() => self.ordered = arg.bool()?,
            "bypassDocumentValidation" => self.policy = write_policy(arg)?,
            "ordered" => {}
            "bypassEmptyTsReplacement" => self.timestamps = empty_timestamps(arg)?,
            "isTimeseriesNamespace" if !arg.is_null() => {
                arg.bool()?;
            }
            "isTimeseriesNamespace" => {}
            "encryptionInformation" | "collectionUUID" => {
                return Err(Error::not_built(arg.name()));
            }
            _ => return self.statements.read(arg),
        }
        Ok(true)
    }
}

/// Returns the statements of a write: an argument, or a document sequence with that name.
pub fn statements<'c>(
    cx: &'c Context<'_>,
    name: &'static str,
    arg: Option<Arg<'c>>,
) -> Result<Vec<Doc<'c>>> {
    let found = match (arg, cx.sequence(name)) {
        (Some(arg), None) => {
            let mut found = Vec::new();
            for (at, value) in arg.array()?.iter().enumerate() {
                match value {
                    Value::Document(statement) => found.push(statement),
                    // As MongoDB's parser of lists does.
                    Value::Null | Value::Undefined => {}
                    _ => return Err(arg.wrong_element(at, value, "object")),
                }
            }
            found
        }
        (None, Some(sequence)) => sequence.to_vec(),
        (Some(_), Some(_)) => {
            let text = format!("BSON field '{}.{name}' is a duplicate field", cx.command.name);
            return Err(Error::new(ErrorCode::IDLDuplicateField, text));
        }
        (None, None) => return Err(missing(cx.command.name, name)),
    };
    if found.is_empty() || found.len() > STATEMENTS_MAX {
        let text = format!(
            "Write batch sizes must be between 1 and {STATEMENTS_MAX}. Got {} operations.",
            found.len()
        );
        return Err(Error::new(ErrorCode::InvalidLength, text));
    }
    Ok(found)
}

/// Returns the namespace of a write, whose collection may be created.
pub fn write_target(cx: &Context<'_>, body: Doc<'_>) -> Result<Namespace> {
    let namespace = cx.target(body)?;
    if cx.in_transaction() && namespace.collection().starts_with("system.") {
        let text = format!("Cannot write to system collection {namespace} within a transaction.");
        return Err(Error::location(50791, text));
    }
    namespace.check_creatable()?;
    if matches!(namespace.collection(), SYSTEM_PROFILE | SYSTEM_VIEWS) {
        let text = format!("cannot write to {namespace}");
        return Err(Error::new(ErrorCode::InvalidNamespace, text));
    }
    Ok(namespace)
}

/// Shortens the errors of a command, as they come, to what its reply has room for. An error can
/// have the text of a key twice, and a command 100,000 errors.
#[derive(Default)]
pub struct Shortening {
    bytes: usize,
}

impl Shortening {
    /// Returns the error if the reply has room for it, and otherwise one without its text and its
    /// details. The first error always has a text: of one that is too long the beginning and the end,
    /// where the cause stands.
    pub fn shorten(&mut self, error: Error) -> Error {
        let is_first = self.bytes == 0;
        self.bytes += error.message().len() + error.details().map_or(0, <[u8]>::len);
        match self.bytes > ERROR_BYTES_MAX {
            true if is_first => Error::new(error.code(), ends_of(error.message())),
            true => Error::new(error.code(), ""),
            false => error,
        }
    }
}

/// Returns the beginning and the end of a text.
fn ends_of(text: &str) -> String {
    let (first, last) = (text.floor_char_boundary(END_BYTES), text.len().saturating_sub(END_BYTES));
    let last = text.ceil_char_boundary(last);
    if first >= last {
        return text.to_owned();
    }
    format!("{} ... {}", &text[..first], &text[last..])
}

/// The room for the `_id`s of upserted documents in a reply.
#[derive(Default)]
pub struct IdRoom {
    used: usize,
}

impl IdRoom {
    /// Fails with 146 ExceededMemoryLimit if the ids so far leave no room: the next statement must
    /// not run, because its id could not be returned.
    pub fn check(&self) -> Result<()> {
        if self.used <= USER_DOCUMENT_BYTES_MAX {
            return Ok(());
        }
        let text = "the ids of the documents that were upserted before fill the reply";
        Err(Error::new(ErrorCode::ExceededMemoryLimit, text))
    }

    /// Counts an id that the reply returns.
    pub fn take(&mut self, id: &ValueBuf) {
        self.used += id.size();
    }
}

/// The results of the statements of a write command, for its reply.
#[derive(Default)]
pub struct Written<'w> {
    /// The number of documents that the statements have inserted, matched or deleted.
    pub count: i32,
    /// The number of changed documents, for an update.
    pub modified: Option<i32>,
    /// The `_id`s of upserted documents with the positions of their statements.
    pub upserted: &'w [(usize, ValueBuf)],
    /// The errors of the statements.
    pub errors: WriteErrors,
    /// The ids of the statements that were executed before.
    pub repeated: &'w [i32],
}

impl Written<'_> {
    /// Appends the results. A client that asked for no acknowledgement gets `n: 0`, and no error.
    pub fn write(&self, cx: &Context<'_>, reply: &mut DocWriter<'_>) {
        if cx.is_unacknowledged() {
            reply.append("n", 0);
            return;
        }
        reply.append("n", self.count);
        reply.append_some("nModified", self.modified.map(Value::Int32));
        if !self.upserted.is_empty() {
            let mut list = reply.array("upserted");
            for (at, id) in self.upserted {
                list.document().append("index", *at as i32).append("_id", id);
            }
        }
        self.errors.write(cx, reply);
        write_repeated(self.repeated, reply);
    }
}

/// The errors of a write's statements.
#[derive(Default)]
pub struct WriteErrors {
    errors: Vec<(usize, Error)>,
    shortening: Shortening,
}

impl WriteErrors {
    /// Notes a statement's error. Returns true if an ordered write must stop.
    ///
    /// # Errors
    /// The error itself, if it fails the whole command.
    pub fn note(&mut self, index: usize, error: Error, ordered: bool) -> Result<bool> {
        if fails_command(&error) {
            return Err(error);
        }
        self.extend([(index, error)]);
        Ok(ordered)
    }

    /// Adds the errors of a batch.
    pub fn extend(&mut self, errors: impl IntoIterator<Item = (usize, Error)>) {
        for (index, error) in errors {
            self.errors.push((index, self.shortening.shorten(error)));
        }
    }

    /// Appends `writeErrors`, if there are any; they abort the transaction of the command.
    fn write(&self, cx: &Context<'_>, reply: &mut DocWriter<'_>) {
        if self.errors.is_empty() {
            return;
        }
        cx.statement_failed.set(true);
        let mut list = reply.array("writeErrors");
        for (index, error) in &self.errors {
            write_write_error(&mut list.document(), *index as i32, error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_error::ErrorCode;

    #[test]
    fn an_interruption_fails_the_whole_command() {
        let mut errors = WriteErrors::default();
        let duplicate = Error::new(ErrorCode::DuplicateKey, "twice");
        assert_eq!(errors.note(0, duplicate, false).ok(), Some(false));
        for code in [ErrorCode::MaxTimeMSExpired, ErrorCode::Interrupted] {
            let refused = errors.note(1, Error::new(code, "stopped"), false);
            assert_eq!(refused.err().map(|error| error.code()), Some(code));
        }
    }

    #[test]
    fn many_long_errors_are_kept_by_their_codes() {
        let mut errors = WriteErrors::default();
        let long = || Error::new(ErrorCode::DuplicateKey, "x".repeat(400_000));
        for at in 0..100 {
            let details =
                quire_document::doc! { "keyValue": { "a": "y".repeat(400_000).as_str() } };
            errors.note(at, long().with_details(details.as_bytes()), false).unwrap();
        }
        let kept = errors.errors.iter().map(|(_, error)| error.message().len()).collect::<Vec<_>>();
        assert_eq!((kept[0], kept[1..].iter().sum::<usize>()), (400_000, 0));
        assert!(errors.errors.iter().skip(1).all(|(_, error)| error.details().is_none()));
        assert!(errors.errors.iter().all(|(_, error)| error.code() == ErrorCode::DuplicateKey));
    }

    /// A self-crossing polygon of 100,000 vertices was refused without a text.
    #[test]
    fn a_first_error_that_is_too_long_keeps_its_beginning_and_its_end() {
        let mut errors = WriteErrors::default();
        let long = || {
            let text = format!("Can't extract geo keys: {}  Edges cross", "\u{e4}".repeat(600_000));
            Error::location(16755, text)
        };
        errors.extend([(0, long()), (1, long())]);
        let kept: Vec<_> = errors.errors.iter().map(|(_, error)| error.message()).collect();
        assert!(kept[0].starts_with("Can't extract geo keys: ") && kept[0].len() < 2100);
        assert!(kept[0].ends_with("  Edges cross"), "{}", kept[0]);
        assert_eq!(kept[1], "");
    }
}
