//! The privileges that a pipeline requires, from the rows of its stages. Only the namespaces in the
//! client's own stages count: a view runs with the rights on the view.

use super::is_true;
use crate::frame::args::unambiguous;
use crate::frame::context::Context;
use quire_access::{Action, Target};
use quire_document::{Array, Doc, Value};
use quire_error::Result;
use quire_mql::stage::{
    Names, On, Pipelines, READ, Reads, Right, StageAction, StageRow, find_stage,
};

/// Fails unless the client may run the stages over `source`: checks the privileges that the first
/// stage requires on it, and those that each stage requires on the other collections that it names.
///
/// # Errors
/// 13 Unauthorized.
pub fn pipeline(cx: &Context<'_>, source: Target<'_>, stages: Array<'_>) -> Result<()> {
    match stages.iter().next().map(Stage::read).transpose()?.flatten() {
        None => all(cx, source, Doc::empty(), READ, On::Source)?,
        Some(first) => {
            all(cx, source, first.fields, first.row.facts.rights, On::Source)?;
            all(cx, Target::Cluster, first.fields, first.row.facts.rights, On::Cluster)?;
        }
    }
    other_collections(cx, stages)
}

/// Returns true for a stream of the changes of all databases.
pub fn is_of_all(stages: Array<'_>) -> bool {
    let first = stages.iter().next().and_then(|stage| stage.as_document()?.first());
    let Some(first) = first else { return false };
    let watches = find_stage(first.key()).is_some_and(|row| row.facts.reads == Reads::Changes);
    let options = first.value().as_document().filter(|_| watches);
    options.is_some_and(|options| is_true(options.get("allChangesForCluster")))
}

/// Fails unless the client may bypass the validator of the collections that the stages write, if
/// the command does so.
pub fn bypasses_validation(cx: &Context<'_>, body: Doc<'_>, stages: Array<'_>) -> Result<()> {
    if !is_true(body.get("bypassDocumentValidation")) {
        return Ok(());
    }
    for stage in stages.iter() {
        if let Some(stage) = Stage::read(stage)?.filter(|stage| stage.row.facts.writes)
            && let Some(named) = stage.named()
        {
            cx.require(cx.collection_of(named)?, Action::BypassDocumentValidation)?;
        }
    }
    Ok(())
}

/// A stage with its row.
struct Stage<'a> {
    row: &'static StageRow,
    operand: Value<'a>,
    /// The fields of the operand without duplicates; empty if the stage's row uses none.
    fields: Doc<'a>,
}

impl<'a> Stage<'a> {
    /// Returns the stage; `None` if it is unknown, which is refused when it is parsed.
    fn read(stage: Value<'a>) -> Result<Option<Stage<'a>>> {
        let Some(first) = stage.as_document().and_then(|stage| stage.first()) else {
            return Ok(None);
        };
        let Some(row) = find_stage(first.key()) else { return Ok(None) };
        let facts = &row.facts;
        let is_plain = facts.names == Names::Nothing
            && facts.pipelines == Pipelines::None
            && facts.rights == READ;
        let operand = first.value();
        let fields = if is_plain { Doc::empty() } else { unambiguous(operand)? };
        Ok(Some(Stage { row, operand, fields }))
    }

    /// Returns the value that names another collection.
    fn named(&self) -> Option<Value<'a>> {
        self.row.facts.names.of(self.operand, self.fields)
    }

    /// Returns the pipelines inside the stage.
    fn inner(&self) -> Vec<Array<'a>> {
        self.row.facts.pipelines.of(self.fields)
    }
}

fn other_collections(cx: &Context<'_>, stages: Array<'_>) -> Result<()> {
    for stage in stages.iter() {
        let Some(stage) = Stage::read(stage)? else { continue };
        let facts = &stage.row.facts;
        let named = stage.named().map(|named| cx.collection_of(named)).transpose()?;
        if let Some(target) = named {
            all(cx, target, stage.fields, facts.rights, On::Named)?;
        }
        let inner = stage.inner();
        match (facts.reads == Reads::OtherCollection, named) {
            (false, _) => inner.into_iter().try_for_each(|inner| other_collections(cx, inner))?,
            (true, Some(target)) if inner.is_empty() => cx.require(target, Action::Find)?,
            // Without a name the inner pipeline creates its own documents.
            (true, named) => {
                let source = named.unwrap_or(Target::Database(cx.db));
                inner.into_iter().try_for_each(|inner| pipeline(cx, source, inner))?;
            }
        }
    }
    Ok(())
}

/// Fails unless the client has those of `rights` that apply to `on`, which is `target`.
fn all(
    cx: &Context<'_>,
    target: Target<'_>,
    operand: Doc<'_>,
    rights: &[Right],
    on: On,
) -> Result<()> {
    let mut needed = rights.iter().filter(|right| right.on == on && right.when.holds(operand));
    needed.try_for_each(|right| cx.require(target, action(right.action)))
}

fn action(action: StageAction) -> Action {
    match action {
        StageAction::Find => Action::Find,
        StageAction::Insert => Action::Insert,
        StageAction::Update => Action::Update,
        StageAction::Remove => Action::Remove,
        StageAction::ChangeStream => Action::ChangeStream,
        StageAction::CollStats => Action::CollStats,
        StageAction::IndexStats => Action::IndexStats,
        StageAction::Inprog => Action::Inprog,
        StageAction::ListClusterCatalog => Action::ListClusterCatalog,
        StageAction::ListCollections => Action::ListCollections,
        StageAction::ListDatabases => Action::ListDatabases,
        StageAction::ListSearchIndexes => Action::ListSearchIndexes,
        StageAction::ListSessions => Action::ListSessions,
        StageAction::PlanCacheRead => Action::PlanCacheRead,
        StageAction::QuerySettings => Action::QuerySettings,
        StageAction::QueryStatsRead => Action::QueryStatsRead,
        StageAction::ServerStatus => Action::ServerStatus,
        StageAction::ShardedDataDistribution => Action::ShardedDataDistribution,
    }
}
