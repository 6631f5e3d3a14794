//! `adviseSchema`: what is wrong with the data of a database and the requests on it, what it costs,
//! and the commands that mend it. docs/advise.md describes the reply.

use super::analyze_schema::{Reading, profile};
use crate::frame::args::{Arg, arguments};
use crate::frame::context::Context;
use crate::frame::service::now_ms;
use quire_access::Action::QueryStatsRead;
use quire_access::Target;
use quire_advisor::Workload;
use quire_advisor::findings::report::report;
use quire_advisor::findings::{Input, Silenced, advise};
use quire_document::limits::USER_DOCUMENT_BYTES_MAX;
use quire_document::{Doc, DocWriter, Value};
use quire_error::{Error, ErrorCode, Result};

/// Runs the command for each collection of the database that the client may read.
pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let first = body.first().map(|first| first.value());
    if first.and_then(|first| first.exact_i64()) != Some(1) {
        let text = "the 'adviseSchema' field must be 1: it is about a whole database";
        return Err(Error::new(ErrorCode::BadValue, text));
    }
    let (mut reading, mut silenced, mut workload) = (Reading::new(), Silenced::default(), None);
    for arg in arguments(cx.command.name, body) {
        match arg.name() {
            "silence" => silenced = entries(&arg)?,
            "workload" => workload = Some(recorded(&arg)?),
            _ if reading.take(&arg)? => {}
            _ => return Err(arg.unknown()),
        }
    }
    let db = cx.db;
    let workload = workload.or_else(|| counted(cx));
    let found = profile(cx, db, None, reading.extent()?)?;
    let input = Input::new(db, &found, workload.as_ref(), now_ms());
    let written = report(&input, &advise(&input, &silenced));
    if written.as_bytes().len() > USER_DOCUMENT_BYTES_MAX {
        let text = "the advice is larger than a reply: silence rules";
        return Err(Error::new(ErrorCode::BSONObjectTooLarge, text));
    }
    reply.append_all(written.as_doc());
    Ok(())
}

/// Returns what the recorder has counted since the start, if the client may see it.
fn counted(cx: &Context<'_>) -> Option<Workload> {
    let recorder = &cx.service.recorder;
    let is_seen = recorder.is_on() && cx.may(Target::Cluster, QueryStatsRead);
    is_seen.then(|| recorder.workload(&cx.service.store))
}

/// Reads the list of what is left out.
fn entries(arg: &Arg<'_>) -> Result<Silenced> {
    let mut silenced = Silenced::default();
    for (at, value) in arg.array()?.iter().enumerate() {
        match value {
            Value::String(entry) => silenced.add(entry).map_err(Error::bad_value)?,
            other => return Err(arg.wrong_element(at, other, "string")),
        }
    }
    Ok(silenced)
}

/// Reads a workload: what `quireRecorder: "show"` returned.
fn recorded(arg: &Arg<'_>) -> Result<Workload> {
    Workload::from_document(arg.document()?).map_err(|error| Error::bad_value(error.to_string()))
}
