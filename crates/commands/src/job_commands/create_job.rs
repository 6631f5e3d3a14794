//! `createJob`, a command of Quire's own: stores a job and makes it active.

use super::definition::{Changes, Definition, JobPlan, When, given, key};
use super::table::{beginning, document, exists as is_known, find, job_name, put, rows_at};
use crate::frame::args::{arguments, whole};
use crate::frame::context::Context;
use crate::frame::service::Topology;
use quire_catalog::Namespace;
use quire_document::{Doc, DocBuf, DocWriter, Value, doc};
use quire_error::{Error, ErrorCode, Result};
use quire_executor::{FreshViews, OpenViews, open};
use quire_mql::stage::check_behind_changes;
use quire_planner::AggregateRequest;
use quire_storage::rng;

use super::definition::{Action, Pipeline};
use super::run::variables;

/// The errors of a pipeline that do not depend on values: unknown stages, variables and operators.
const ALWAYS_WRONG: &[i32] = &[40323, 40324, 17276, 168];

/// Creates a job in the command's database. `paused: true` leaves it paused.
///
/// # Errors
/// 48 NamespaceExists for a name that a job has; those of the definition; 40573 for a job on changes
/// without a change log.
pub fn run(cx: &mut Context<'_>, body: Doc<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    let name = job_name(body)?;
    let mut paused = false;
    for arg in arguments(cx.command.name, body) {
        if arg.name() == "paused" {
            paused = arg.bool()?;
        }
    }
    let definition = define(cx, name, (rng::uuid(), cx.service.wall_ms()), given(body))?;
    let exists = || {
        let text = format!("the database {} has a job '{name}' already", cx.db);
        Error::new(ErrorCode::NamespaceExists, text)
    };
    if find(&cx.service.store, &key(cx.db, name))?.is_some() {
        return Err(exists());
    }
    let time = cx.service.clock.now().to_u64();
    let (position, due_ms) = beginning(&definition, cx.service.wall_ms(), time)?;
    let rows = rows_at(&definition, &position, due_ms);
    let state = if paused { "paused" } else { "active" };
    let stored = document(&definition, state, Doc::empty());
    cx.change_jobs(|writer| {
        if is_known(writer, &definition.key())? {
            return Err(exists().into());
        }
        // A row of an earlier job of the name cannot be left: it goes with its definition.
        if !paused {
            rows.iter().try_for_each(|row| writer.put_job(row))?;
        }
        put(writer, stored.as_doc())
    })
}

/// Returns a checked definition whose owner is the client.
///
/// # Errors
/// Those of [`JobPlan::parse`], and those of the pipeline.
pub fn define(
    cx: &Context<'_>,
    name: &str,
    (uuid, created_ms): ([u8; 16], i64),
    given: DocBuf,
) -> Result<Definition> {
    Namespace::new(cx.db, "c")?.check_creatable()?;
    if matches!(cx.db, "admin" | "config" | "local") {
        let text = format!("a job cannot be created in the database {}", cx.db);
        return Err(Error::new(ErrorCode::InvalidNamespace, text));
    }
    let plan = JobPlan::parse(given.as_doc(), cx.db, created_ms)?;
    let owner = cx.identity().map(|identity| identity.name.clone());
    let db = cx.db.to_owned();
    let definition = Definition { db, name: name.to_owned(), uuid, owner, created_ms, given, plan };
    match &definition.plan.when {
        When::Changes(changes) => {
            let is_member = matches!(cx.service.options.topology, Topology::ReplicaSet(_));
            if !is_member || !cx.service.store.logs_changes() {
                let text = "a job on changes needs a replica set with a change log";
                return Err(Error::location(40573, text));
            }
            check_behind_changes(&changes.stages)?;
            check_lanes(cx, &definition, changes)?;
            check_pipeline_on_changes(cx, &definition)?;
        }
        When::Schedule(_) => check_pipeline(cx, &definition)?,
    }
    Ok(definition)
}

/// Plans the stage that divides the events, so that its errors are those of the command.
fn check_lanes(cx: &Context<'_>, definition: &Definition, changes: &Changes) -> Result<()> {
    let Some(stage) = changes.lanes.stage(0) else { return Ok(()) };
    let request = AggregateRequest {
        namespace: format!("{}.$cmd.aggregate", definition.db),
        pipeline: vec![doc! { "$documents": [] }, stage],
        ..AggregateRequest::default()
    };
    let views = OpenViews::Fresh(FreshViews::new(&cx.service.store)?);
    open(&request, &views, cx.exec_params()).map(drop)
}

/// Refuses what no event can make right in a pipeline on changes: an unknown stage, variable or
/// operator, and `$out`. Without an event other errors say nothing.
fn check_pipeline_on_changes(cx: &Context<'_>, definition: &Definition) -> Result<()> {
    if let Action::Pipeline(pipeline) = &definition.plan.action
        && pipeline.replaces()
    {
        return Err(Error::bad_value("a job on changes cannot end with $out"));
    }
    match check_pipeline(cx, definition) {
        Err(error) if ALWAYS_WRONG.contains(&error.code().number()) => Err(error),
        _ => Ok(()),
    }
}

/// Plans the pipeline of a job, so that its errors are those of the command.
fn check_pipeline(cx: &Context<'_>, definition: &Definition) -> Result<()> {
    let Action::Pipeline(pipeline) = &definition.plan.action else { return Ok(()) };
    let Pipeline { collection, stages, last } = pipeline;
    pipeline.target(&definition.db)?;
    let of = collection.as_deref().unwrap_or("$cmd.aggregate");
    let event = matches!(definition.plan.when, When::Changes(_)).then(Doc::empty);
    let request = AggregateRequest {
        namespace: format!("{}.{of}", definition.db),
        pipeline: stages.iter().chain([last]).cloned().collect(),
        let_vars: variables(definition, cx.service.wall_ms(), 0, event),
        ..AggregateRequest::default()
    };
    let views = OpenViews::Fresh(FreshViews::new(&cx.service.store)?);
    open(&request, &views, cx.exec_params()).map(drop)
}

/// Returns a whole number of a stored document.
pub fn stored_number(value: Option<Value<'_>>) -> i64 {
    value.and_then(whole).unwrap_or(0)
}
