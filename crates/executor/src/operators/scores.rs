//! The stages that set the score of documents: `$score`, and the parts of `$rankFusion` and
//! `$scoreFusion` that are neither unions nor groups.

use std::sync::Arc;

use bumpalo::Bump;
use bytes::Bytes;
use quire_error::Result;
use quire_mql::EvalContext;
use quire_mql::stage::{FusionInput, Ranks, SetScore};
use quire_planner::explain::NodeStats;

use crate::env::{Run, Scope};
use crate::operators::filtering::renew;
use crate::operators::metadata::metadata_of;
use crate::operators::{BoxedOperator, Filling, Operator, over};
use crate::row::Row;

/// The rows pulled at a time.
const ROWS_MAX: usize = 256;

/// Pulls rows and returns the results of `change`.
fn changed(
    input: &mut BoxedOperator,
    stats: &mut NodeStats,
    run: &mut Run<'_>,
    (max, out): (usize, &mut Vec<Row>),
    change: &mut dyn FnMut(Row, Scope<'_>) -> Result<Row>,
) -> Result<bool> {
    let (mut rows, mut filling) = (Vec::new(), Filling::new(out, max));
    let more = input.next(run, max.min(ROWS_MAX), &mut rows)?;
    for mut row in rows {
        row.know_doc()?;
        stats.returned += 1;
        filling.push(change(row, run.scope())?);
    }
    stats.is_eof = !more;
    Ok(more)
}

/// The last step of an input pipeline of a fusion.
pub(crate) struct FusionInputs {
    input: BoxedOperator,
    stage: Arc<FusionInput>,
    ranks: Ranks,
    stats: NodeStats,
}

impl FusionInputs {
    pub fn new(input: BoxedOperator, stage: Arc<FusionInput>) -> Self {
        FusionInputs { input, stage, ranks: Ranks::default(), stats: NodeStats::default() }
    }
}

impl Operator for FusionInputs {
    fn next(&mut self, run: &mut Run<'_>, max: usize, out: &mut Vec<Row>) -> Result<bool> {
        let (stage, ranks) = (&self.stage, &mut self.ranks);
        changed(&mut self.input, &mut self.stats, run, (max, out), &mut |row, scope| {
            let metadata = metadata_of(&row)?;
            let collator = scope.env.shared.collator.as_deref();
            let collator = collator.map(|collator| collator as &dyn quire_document::Collator);
            Ok(Row::made(stage.envelope(row.doc(), metadata.as_doc(), ranks, collator)))
        })
    }

    fn rest(&mut self) {
        self.input.rest();
    }

    fn stats(&self) -> NodeStats {
        over(&self.input, &self.stats)
    }
}

/// A stage that sets the score of documents.
pub(crate) struct Scores {
    input: BoxedOperator,
    stage: Arc<dyn SetScore>,
    arena: Bump,
    stats: NodeStats,
}

impl Scores {
    pub fn new(input: BoxedOperator, stage: Arc<dyn SetScore>) -> Self {
        Scores { input, stage, arena: Bump::new(), stats: NodeStats::default() }
    }
}

impl Operator for Scores {
    fn next(&mut self, run: &mut Run<'_>, max: usize, out: &mut Vec<Row>) -> Result<bool> {
        let (stage, arena) = (&self.stage, &mut self.arena);
        changed(&mut self.input, &mut self.stats, run, (max, out), &mut |row, scope| {
            scored(&**stage, row, arena, scope)
        })
    }

    fn rest(&mut self) {
        self.input.rest();
    }

    fn stats(&self) -> NodeStats {
        over(&self.input, &self.stats)
    }
}

/// Returns the row with its score and with the document that the stage computes from the row's
/// document.
fn scored(stage: &dyn SetScore, row: Row, arena: &mut Bump, scope: Scope<'_>) -> Result<Row> {
    let Scope { env, variables } = scope;
    renew(arena, env)?;
    let metadata = metadata_of(&row)?;
    let context = EvalContext::new(arena, row.doc(), &env.shared)
        .with_variables(variables)
        .with_metadata(Some(metadata.as_doc()));
    let scored = stage.score(&context)?;
    let bytes = scored.doc.as_bytes();
    let unchanged = bytes.as_ptr() == row.doc().as_bytes().as_ptr();
    let doc = (!unchanged).then(|| Bytes::copy_from_slice(bytes));
    let (score, details) = (scored.score, scored.details);
    let mut row = row;
    row.doc = doc.or(row.doc);
    let extra = row.extra.get_or_insert_default();
    extra.score = Some(score);
    extra.score_details = details;
    Ok(row)
}
