//! `$changeStream`: the events of commits, as a cursor that waits for more. `scope` says which
//! changes a stream has, `event` makes events of them, `stream` reads them in order and resumes,
//! `source` runs the rest of the pipeline over each, `early` says for which no document need be looked
//! up, and `split` cuts those that are too large.

mod early;
mod event;
mod scope;
mod source;
mod split;
mod stream;

use crate::cursors::cursor_reply::Opening;
use crate::frame::context::Context;
use crate::frame::reply::of_aggregate;
use crate::frame::service::Topology;
use early::EarlyFilter;
use quire_document::{DocBuf, DocWriter, Value};
use quire_error::{Error, ErrorCode, Result};
use quire_executor::{OpenViews, ServerStage, UnitOfWork, Views};
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
    let (spec, scope, cuts) = take(cx, &mut request)?;
    let unit = cx.unit()?;
    let mut views = unit.views()?;
    scope.check_view(views.view().catalog())?;
    // The first token must not name a commit that a crash can undo.
    let visible = views.view().version();
    cx.service.engine.barrier(visible).map_err(crate::frame::reply::from_storage)?;
    let early = EarlyFilter::of(&request, &spec, &cx.parse_context());
    let stream = EventStream::open(&views.view(), scope, spec, cuts);
    let stream = stream.map_err(|error| of_aggregate(&request.namespace, error))?.with_early(early);
    let service = Arc::clone(cx.service);
    let source =
        ChangeStreamSource::new(stream, &request, cuts, (&views, cx.exec_params()), service)?
            .keeping_token(cx.connection.runs_job);
    cx.tally.failed_early = false;
    cx.open_cursor(reply, opening, Box::new(source), &mut views)
        .map_err(|error| of_aggregate(&request.namespace, error))
}

/// Removes the stage from the pipeline of `request`. Returns its options, what it watches, and true if
/// the pipeline cuts large events.
fn take(cx: &Context<'_>, request: &mut AggregateRequest) -> Result<(ChangeStream, Scope, bool)> {
    let refused = |why: &str| {
        let text = format!("The $changeStream stage is only supported on replica sets{why}");
        Err(Error::location(40573, text))
    };
    if cx.service.options.topology == Topology::Standalone {
        return refused("");
    }
    if !cx.service.store.logs_changes() {
        return refused(" that log their changes; start this server with --oplogSize");
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
    Ok((spec, scope, cuts))
}

/// Removes the stage from a pipeline that is explained. Returns it as a stage that has no events yet.
///
/// # Errors
/// Those of [`open`], without those about the place at which the stream begins.
pub fn explained(
    cx: &Context<'_>,
    request: &mut AggregateRequest,
    views: &OpenViews<'_>,
) -> Result<ServerStage> {
    let stage = request.pipeline.first().cloned().unwrap_or_default();
    let (_, scope, _) = take(cx, request)?;
    scope.check_view(views.view().catalog())?;
    Ok(ServerStage { stage, documents: Box::new(Vec::new().into_iter()) })
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
