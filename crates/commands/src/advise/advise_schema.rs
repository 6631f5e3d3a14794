//! `adviseSchema`: what is wrong with the data of a database and the requests on it, what it costs,
//! and the commands that mend it. docs/advise.md describes the reply.

use crate::advise::server_laboratory::ServerLaboratory;
use crate::advise::workload::some_documents;
use crate::frame::args::{Arg, arguments};
use crate::frame::context::Context;
use crate::frame::service::now_ms;
use crate::read::analyze_schema::{Reading, existing_database, profile};
use quire_access::Action::QueryStatsRead;
use quire_access::Target;
use quire_advisor::findings::report::report;
use quire_advisor::findings::tried::{Trial, trials};
use quire_advisor::findings::{Advice, Input, Silenced, advise};
use quire_advisor::indexes::{IndexBudget, IndexRequest, advise_indexes};
use quire_advisor::{Extent, Workload};
use quire_document::limits::USER_DOCUMENT_BYTES_MAX;
use quire_document::{Doc, DocBuf, DocWriter, Value};
use quire_error::{Error, ErrorCode, Result};
use quire_storage::rng::{self, Rng};

/// The indexes that a collection can have, which is the budget of the advice.
const INDEXES_MAX: usize = 64;
/// The documents of a copy if all documents are profiled.
const COPIED_DEFAULT: u64 = 10_000;

/// Runs the command for each collection of the database that the client may read.
pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let first = body.first().map(|first| first.value());
    if first.and_then(|first| first.exact_i64()) != Some(1) {
        let text = "the 'adviseSchema' field must be 1: it is about a whole database";
        return Err(Error::new(ErrorCode::BadValue, text));
    }
    existing_database(cx)?;
    let (mut reading, mut silenced, mut workload) = (Reading::new(), Silenced::default(), None);
    let mut tries_indexes = true;
    for arg in arguments(cx.command.name, body) {
        match arg.name() {
            "silence" => silenced = entries(&arg)?,
            "workload" => workload = Some(recorded(&arg)?),
            "tryIndexes" => tries_indexes = arg.bool()?,
            _ if reading.take(&arg)? => {}
            _ => return Err(arg.unknown()),
        }
    }
    let db = cx.db;
    let workload = workload.or_else(|| counted(cx));
    let extent = reading.extent()?;
    let found = profile(cx, db, None, extent)?;
    let input = Input::new(db, &found, workload.as_ref(), now_ms());
    let mut advice = advise(&input, &silenced);
    if tries_indexes {
        try_indexes(cx, &input, extent, &silenced, &mut advice)?;
    }
    let written = report(&input, &advice);
    if written.as_bytes().len() > USER_DOCUMENT_BYTES_MAX {
        let text = "the advice is larger than a reply: silence rules";
        return Err(Error::new(ErrorCode::BSONObjectTooLarge, text));
    }
    reply.append_all(written.as_doc());
    Ok(())
}

/// Runs the statements of rule I1 in the laboratory. Where that is not possible, the estimate stays.
fn try_indexes(
    cx: &Context<'_>,
    input: &Input<'_>,
    extent: Extent,
    silenced: &Silenced,
    advice: &mut Advice,
) -> Result<()> {
    let copied = match extent {
        Extent::Sample(documents) => documents,
        Extent::All => COPIED_DEFAULT,
    };
    let mut random = Rng::new(rng::word());
    for trial in trials(input, advice) {
        let documents = some_documents(cx, &trial.collection, &mut random)?;
        let requests = trial.requests(&documents);
        match try_collection(cx, &trial, &requests.requests, copied) {
            Ok(advised) => trial.confirm(input, &requests, advised.as_doc(), silenced, advice),
            Err(error) if is_no_laboratory(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Returns the advice about the indexes of a collection.
fn try_collection(
    cx: &Context<'_>,
    trial: &Trial<'_>,
    requests: &[IndexRequest],
    copied: u64,
) -> Result<DocBuf> {
    let mut laboratory = ServerLaboratory::new(cx, copied, rng::word());
    let budget = IndexBudget { indexes: INDEXES_MAX, bytes: u64::MAX };
    let advised = advise_indexes(&mut laboratory, &trial.collection, requests, budget)?;
    Ok(DocBuf::build(|out| advised.write(out)))
}

/// Returns true if the laboratory cannot copy a collection: the client may not see all of it, it is
/// gone, or not even a small sample fits into the memory.
fn is_no_laboratory(error: &Error) -> bool {
    let codes =
        [ErrorCode::Unauthorized, ErrorCode::NamespaceNotFound, ErrorCode::ExceededMemoryLimit];
    codes.contains(&error.code())
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
