//! `$changeStream`: the events of commits, as a cursor that waits for more. `scope` says which
//! changes a stream has, `event` makes events of them, `stream` reads them in order and resumes,
//! `source` runs the rest of the pipeline over each, and `split` cuts those that are too large.

mod event;
mod scope;
mod source;
mod split;
mod stream;

use crate::cursors::cursor_reply::Opening;
use crate::frame::context::Context;
use crate::frame::service::Topology;
use quire_document::{DocBuf, DocWriter, Value};
use quire_error::{Error, ErrorCode, Result};
use quire_executor::{UnitOfWork, Views};
use quire_mql::stage::{ChangeStream, Reads, check_behind_changes, find_stage, row_of};
use quire_planner::AggregateRequest;
use scope::Scope;
use source::ChangeStreamSource;
use std::sync::Arc;
use stream::EventStream;

/// Returns true if the first stage of a pipeline is `$changeStream`.
pub fn is_change_stream(request: &AggregateRequest) -> bool {
    let Some(stage) = request.pipeline.first().map(DocBuf::as_doc) else { return false };
    let row = stage.first().and_then(|first| find_stage(first.key()));
    row.is_some_and(|row| row.facts.reads == Reads::Changes) && stage.count() == 1
}

/// Returns the error of an explain of a change stream.
pub fn not_explained() -> Error {
    Error::not_built("explain of $changeStream")
}

/// Opens the stream of a pipeline that begins with `$changeStream`, and replies with its cursor.
///
/// # Errors
/// 40573 without a change log; those of the stage's options; 73 InvalidNamespace, 72 InvalidOptions
/// and 166 CommandNotSupportedOnView for what cannot be watched; 20 IllegalOperation for a stage that
/// is not allowed; 260, 280 and 286 for a place at which a stream cannot begin.
pub fn open(
    cx: &mut Context<'_>,
    mut request: AggregateRequest,
    opening: Opening<'_>,
    reply: &mut DocWriter<'_>,
) -> Result<()> {
    let is_standalone = cx.service.options.topology == Topology::Standalone;
    if is_standalone || !cx.service.store.logs_changes() {
        let text = "The $changeStream stage is only supported on replica sets";
        return Err(Error::location(40573, text));
    }
    let first = request.pipeline.remove(0);
    let (_, operand) = row_of(Value::Document(first.as_doc()))?;
    let spec = ChangeStream::parse(operand, cx.generic.api.strict == Some(true))?;
    let scope = Scope::of(&request.namespace, &spec)?;
    let cuts = check_behind_changes(&request.pipeline)?;
    if cuts {
        request.pipeline.pop();
    }
    check_read_concern(cx)?;
    request.fed_by = Some("$changeStream");
    let unit = cx.unit()?;
    let mut views = unit.views()?;
    scope.check_view(views.view().catalog())?;
    // The first token must not name a commit that a crash can undo.
    let visible = views.view().version();
    cx.service.engine.barrier(visible).map_err(crate::frame::reply::from_storage)?;
    let stream = EventStream::open(&views.view(), scope, spec, cuts)?;
    let service = Arc::clone(cx.service);
    let source =
        ChangeStreamSource::new(stream, &request, cuts, (&views, cx.exec_params()), service)?;
    cx.tally.failed_early = false;
    cx.open_cursor(reply, opening, Box::new(source), &mut views)
}

/// Refuses every read concern except `majority`: events are those of durable commits.
fn check_read_concern(cx: &Context<'_>) -> Result<()> {
    let concern = &cx.generic.read_concern;
    match concern.level {
        None => Ok(()),
        Some(level) if level.name() == "majority" => Ok(()),
        Some(level) => {
            let text = format!(
                "$changeStream cannot run with a readConcern other than 'majority', but found {}",
                level.name()
            );
            Err(Error::new(ErrorCode::InvalidOptions, text))
        }
    }
}
