//! `$changeStream`, the events of commits, and `$changeStreamSplitLargeEvent`, which cuts an event
//! that is larger than a document may be. The command takes both out of its pipeline before that is
//! parsed.

use super::facts::{BehindChanges, Facts, Reads, Source, Standing};
use super::pipeline::row_of;
use super::registry::StageRow;
use super::resume_token::ResumeToken;
use super::rights::{On, Right, StageAction, When};
use quire_document::{Doc, DocBuf, Timestamp, Value};
use quire_error::{Error, ErrorCode, Result};

const fn on_source(action: StageAction) -> Right {
    Right { action, on: On::Source, when: When::Always }
}

pub(super) const CHANGE_STREAM: StageRow = StageRow {
    name: "$changeStream",
    since: "3.6",
    doc: "The changes of a collection, a database or all databases (docs/change-streams.md).",
    facts: Facts {
        reads: Reads::Changes,
        source: Source::Watched,
        in_lookup: false,
        in_union: false,
        in_view: false,
        in_api: true,
        rights: &[on_source(StageAction::Find), on_source(StageAction::ChangeStream)],
        ..Facts::SERVER
    },
    parse: super::served::NEVER_INSIDE,
};

pub(super) const SPLIT_LARGE_EVENT: StageRow = StageRow {
    name: "$changeStreamSplitLargeEvent",
    since: "7.0",
    doc: "Cuts events that are larger than 16 MB.",
    facts: Facts {
        standing: Standing::Last,
        in_facet: false,
        behind_changes: BehindChanges::Cuts,
        ..Facts::PLAIN
    },
    parse: |name, _, _| {
        let text = format!("{name} can only be used in a $changeStream pipeline");
        Err(Error::new(ErrorCode::IllegalOperation, text))
    },
};

/// The parsed operand of `$changeStream`.
#[derive(Clone, Debug, Default)]
pub struct ChangeStream {
    /// Which events have the document after the change.
    pub full_document: FullDocument,
    /// Which events have the document before the change.
    pub before_change: BeforeChange,
    /// Where the stream begins; `None` for now.
    pub start: Option<StreamStart>,
    /// True for the changes of all databases.
    pub all_changes: bool,
    /// True to show the events of catalog changes, and more about each event.
    pub expanded: bool,
}

/// The place at which a stream begins.
#[derive(Clone, Copy, Debug)]
pub enum StreamStart {
    /// `resumeAfter`: after the event of this token, which must not be an invalidate.
    ResumeAfter(ResumeToken),
    /// `startAfter`: after the event of this token.
    StartAfter(ResumeToken),
    /// `startAtOperationTime`: with the events of this time.
    AtTime(Timestamp),
}

/// The option `fullDocument`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FullDocument {
    /// Inserts and replacements have it.
    #[default]
    Default,
    /// Updates have the document as it is when they are read.
    UpdateLookup,
    /// Updates have the document after the change, or null.
    WhenAvailable,
    /// Updates have the document after the change; without it the stream fails.
    Required,
}

/// The option `fullDocumentBeforeChange`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BeforeChange {
    /// No event has it.
    #[default]
    Off,
    /// Updates, replacements and deletes have it, or null.
    WhenAvailable,
    /// Updates, replacements and deletes have it; without it the stream fails.
    Required,
}

impl ChangeStream {
    /// Parses the operand of the stage.
    ///
    /// # Errors
    /// 6188500 unless it is a document, 40415 for an unknown option, 14 TypeMismatch, 2 BadValue, 323
    /// APIStrictError, 50865 and 40674 for several beginnings; those of [`ResumeToken::parse`].
    pub fn parse(operand: Value<'_>, api_strict: bool) -> Result<Self> {
        let Value::Document(options) = operand else {
            let text = "the $changeStream stage must be specified as an object";
            return Err(Error::location(6188500, text));
        };
        let mut parsed = ChangeStream::default();
        let (mut resume, mut start_after, mut time) = (None, None, None);
        for (name, value) in options.fields() {
            match name {
                "allChangesForCluster" => parsed.all_changes = flag(name, value)?,
                "showExpandedEvents" => {
                    parsed.expanded = flag(name, value)?;
                    if api_strict {
                        let text = "BSON field '$changeStream.showExpandedEvents' is not allowed with apiStrict:true.";
                        return Err(Error::new(ErrorCode::APIStrictError, text));
                    }
                }
                "fullDocument" => parsed.full_document = full_document(name, value)?,
                "fullDocumentBeforeChange" => parsed.before_change = before_change(name, value)?,
                "resumeAfter" => resume = token(name, value)?,
                "startAfter" => start_after = token(name, value)?,
                "startAtOperationTime" => time = timestamp(name, value)?,
                _ => {
                    let text = format!("BSON field '$changeStream.{name}' is an unknown field.");
                    return Err(Error::location(40415, text));
                }
            }
        }
        if resume.is_some() && start_after.is_some() {
            let text =
                "Do not specify both 'resumeAfter' and 'startAfter' in a $changeStream stage";
            return Err(Error::location(50865, text));
        }
        let given = resume.map(StreamStart::ResumeAfter);
        let given = given.or(start_after.map(StreamStart::StartAfter));
        if given.is_some() && time.is_some() {
            let text = "Only one type of resume option is allowed, but multiple were found.";
            return Err(Error::location(40674, text));
        }
        parsed.start = given.or(time.map(StreamStart::AtTime));
        Ok(parsed)
    }
}

fn wrong_type(name: &str, value: Value<'_>, expected: &str) -> Error {
    let found = value.type_name();
    Error::type_mismatch(format!(
        "BSON field '$changeStream.{name}' is the wrong type '{found}', expected type '{expected}'"
    ))
}

fn flag(name: &str, value: Value<'_>) -> Result<bool> {
    match value {
        Value::Bool(flag) => Ok(flag),
        other => Err(wrong_type(name, other, "bool")),
    }
}

/// Returns the text of an option that is one of several; `None` for null.
fn choice<'v>(name: &str, value: Value<'v>) -> Result<Option<&'v str>> {
    match value {
        Value::String(text) => Ok(Some(text)),
        Value::Null => Ok(None),
        other => Err(wrong_type(name, other, "string")),
    }
}

fn no_choice(name: &str, text: &str) -> Error {
    let text = format!(
        "Enumeration value '{text}' for field '$changeStream.{name}' is not a valid value."
    );
    Error::bad_value(text)
}

fn full_document(name: &str, value: Value<'_>) -> Result<FullDocument> {
    Ok(match choice(name, value)? {
        None | Some("default") => FullDocument::Default,
        Some("updateLookup") => FullDocument::UpdateLookup,
        Some("whenAvailable") => FullDocument::WhenAvailable,
        Some("required") => FullDocument::Required,
        Some(other) => return Err(no_choice(name, other)),
    })
}

fn before_change(name: &str, value: Value<'_>) -> Result<BeforeChange> {
    Ok(match choice(name, value)? {
        None | Some("off") => BeforeChange::Off,
        Some("whenAvailable") => BeforeChange::WhenAvailable,
        Some("required") => BeforeChange::Required,
        Some(other) => return Err(no_choice(name, other)),
    })
}

fn token(name: &str, value: Value<'_>) -> Result<Option<ResumeToken>> {
    match value {
        Value::Document(token) => ResumeToken::parse(token).map(Some),
        Value::Null => Ok(None),
        other => Err(wrong_type(name, other, "object")),
    }
}

fn timestamp(name: &str, value: Value<'_>) -> Result<Option<Timestamp>> {
    match value {
        Value::Timestamp(time) => Ok(Some(time)),
        Value::Null => Ok(None),
        other => Err(wrong_type(name, other, "timestamp")),
    }
}

/// Checks the stages that follow `$changeStream`. Returns true if the last one cuts large events.
///
/// # Errors
/// 20 IllegalOperation for a stage that is not allowed there; 7182802 for a stage after the one that
/// cuts events, 7182800 if that has an operand; 40602 for a second `$changeStream`.
pub fn check_behind_changes(stages: &[DocBuf]) -> Result<bool> {
    for (at, stage) in stages.iter().enumerate() {
        let (row, operand) = row_of(Value::Document(stage.as_doc()))?;
        let refuse = |name: &str| {
            let text = format!("{name} is not permitted in a $changeStream pipeline");
            Err(Error::new(ErrorCode::IllegalOperation, text))
        };
        match row.facts.behind_changes {
            _ if row.facts.reads == Reads::Changes => {
                return Err(super::registry::first_only(row.name));
            }
            BehindChanges::Allowed => {}
            BehindChanges::Refused => return refuse(row.name),
            BehindChanges::RefusedAs(name) => return refuse(name),
            BehindChanges::WithoutOrder => match operand.as_document() {
                Some(operand) if operand.contains("sortBy") => return refuse("$sort"),
                Some(operand) if has_method(operand) => {
                    return refuse("$_internalSetWindowFields");
                }
                _ => {}
            },
            BehindChanges::Cuts => return cuts(operand, at + 1 == stages.len()),
        }
    }
    Ok(false)
}

/// Returns true if an output of a `$fill` is computed from other documents.
fn has_method(operand: Doc<'_>) -> bool {
    let outputs = operand.get("output").and_then(|output| output.as_document());
    let mut outputs = outputs.into_iter().flat_map(|outputs| outputs.fields());
    outputs.any(|(_, output)| output.as_document().is_some_and(|output| output.contains("method")))
}

fn cuts(operand: Value<'_>, is_last: bool) -> Result<bool> {
    if !operand.as_document().is_some_and(Doc::is_empty) {
        let text = "$changeStreamSplitLargeEvent spec should be an empty object";
        return Err(Error::location(7182800, text));
    }
    if !is_last {
        let text = "$changeStreamSplitLargeEvent must be the last stage in the pipeline";
        return Err(Error::location(7182802, text));
    }
    Ok(true)
}
