//! From a request of any kind to its plan: one tree for all that it reads.

use crate::choose::Statistics;
use crate::count::plan_count;
use crate::distinct::plan_distinct;
use crate::find::{FindQuery, plan_find};
use crate::pipeline::plan_pipeline;
use crate::plan::{Node, Plan};
use crate::request::{ReadRequest, WriteKind};
use quire_error::Result;
use quire_mql::ParseContext;

/// Plans a request. Filters, sorts, projections and stages are compiled here, once; the plan holds
/// the compiled objects.
///
/// # Errors
/// What `mql` says about them; `BadValue` for a hint that names no index, 51173 to 51176 for `min`
/// and `max` that do not fit.
pub fn plan(
    request: &ReadRequest<'_>,
    context: &ParseContext,
    stats: &dyn Statistics,
) -> Result<Plan> {
    Ok(match request {
        ReadRequest::Find(find) => plan_find(&FindQuery::compile(find, context, stats)?, stats)?,
        ReadRequest::Aggregate(aggregate) => plan_pipeline(aggregate, context, stats)?,
        ReadRequest::Count(count) => plan_count(count, context, stats)?,
        ReadRequest::Distinct(distinct) => plan_distinct(distinct, context, stats)?,
        ReadRequest::Write(find, kind) => {
            let found = plan_find(&FindQuery::compile(find, context, stats)?, stats)?;
            written(found, *kind)
        }
    })
}

/// Puts what a write would do above the plan of its query.
fn written(mut plan: Plan, kind: WriteKind) -> Plan {
    for node in std::iter::once(&mut plan.root).chain(&mut plan.rejected) {
        let input = Box::new(std::mem::replace(node, Node::Eof));
        *node = match kind {
            WriteKind::Update { multi, .. } => Node::Update { multi, input },
            WriteKind::Delete { multi } => Node::Delete { multi, input },
        };
    }
    plan
}
