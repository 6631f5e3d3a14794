//! From the stages of a plan to the stages that run.

use quire_error::{Error, Result};
use quire_mql::filter::{Filter, Node as Condition};
use quire_mql::sort::SortPattern;
use quire_planner::Node;
use quire_planner::explain::NodeStats;

use crate::env::Env;
use crate::operators::fetch::Fetch;
use crate::operators::metadata::SortKeys;
use crate::operators::projection::{self, Project};
use crate::operators::simple::{Count, Limit, ReturnKey, Skip, Subplan};
use crate::operators::sort::Sort;
use crate::operators::union::{Merge, Union};
use crate::operators::{BoxedOperator, Eof};
use crate::scans::collection_scan::CollectionScan;
use crate::scans::distinct_scan::DistinctScan;
use crate::scans::id_lookup::IdLookup;
use crate::scans::index_scan::IndexScanOp;
use crate::scans::random_picks::RandomPicks;

/// What stages above a node need of its rows.
#[derive(Clone, Copy, Default)]
pub(crate) struct Needs {
    /// Index keys are read: by a covered projection, a sort of keys, `returnKey`.
    pub keys: bool,
    /// `$meta: "sortKey"` is read.
    pub sort_keys: bool,
}

/// Builds the stages of a plan's node.
pub(crate) fn build(node: &Node, env: &Env, needs: Needs) -> Result<BoxedOperator> {
    let stats = NodeStats::default();
    let below = |input: &Node| build(input, env, needs);
    Ok(match node {
        Node::Eof => Box::new(Eof),
        Node::CollScan { filter, backward } => {
            Box::new(CollectionScan::new(*backward, compile(filter.as_ref())))
        }
        Node::RandomPicks { size, scan } => Box::new(RandomPicks::new(below(scan)?, *size)),
        Node::IdHack { id } => Box::new(IdLookup { id: id.clone(), stats }),
        Node::IndexScan(scan) => {
            let filter = compile(scan.filter.as_ref());
            Box::new(IndexScanOp::new(scan.clone(), filter, needs.keys, false))
        }
        Node::CountScan(scan) => Box::new(IndexScanOp::new(scan.clone(), None, false, true)),
        Node::DistinctScan { scan, field } => {
            let scan = IndexScanOp::distinct(scan.clone());
            Box::new(DistinctScan { scan, field: *field })
        }
        Node::Fetch { filter: rest, input } => {
            Box::new(Fetch::new(below(input)?, compile(rest.as_ref())))
        }
        Node::Or { inputs } => {
            Box::new(Union::new(inputs.iter().map(below).collect::<Result<_>>()?))
        }
        Node::SortMerge { pattern, inputs } => {
            let pattern = SortPattern::parse(pattern.as_doc(), &env.parse)?;
            let needs = Needs { keys: true, ..needs };
            let inputs = inputs.iter().map(|input| build(input, env, needs));
            Box::new(Merge::new(inputs.collect::<Result<_>>()?, pattern))
        }
        Node::Sort { pattern, limit, simple, input } => {
            let pattern = SortPattern::parse(pattern.as_doc(), &env.parse)?;
            let inner = Needs { keys: needs.keys || !simple, ..needs };
            let input = build(input, env, inner)?;
            Box::new(Sort::new(input, pattern, *limit, needs.sort_keys))
        }
        Node::Skip { count, input } => Box::new(Skip { input: below(input)?, left: *count, stats }),
        Node::Limit { count, input } => {
            Box::new(Limit { input: below(input)?, left: *count, stats })
        }
        Node::Projection { spec, input, .. } => {
            let projection = projection::compile(spec.as_doc(), env)?;
            let metadata = projection.needs().metadata;
            if metadata.contains("sortKey") && !env.project_stage {
                check_sorts(env)?;
            }
            let keys = !input.gives_documents() || metadata.contains("indexKey");
            let needs = Needs {
                keys: needs.keys || keys,
                sort_keys: needs.sort_keys || metadata.contains("sortKey"),
            };
            let input = build_with_sort_keys(input, env, needs)?;
            Box::new(Project::new(input, projection, spec.as_doc()))
        }
        Node::ReturnKey { sort_keys, input } => {
            if !sort_keys.is_empty() {
                check_sorts(env)?;
            }
            let needs = Needs { keys: true, sort_keys: needs.sort_keys || !sort_keys.is_empty() };
            let input = build_with_sort_keys(input, env, needs)?;
            Box::new(ReturnKey { input, sort_keys: sort_keys.clone(), stats })
        }
        Node::Subplan { input } => Box::new(Subplan { input: below(input)?, stats }),
        Node::Count { skip, limit, input } => {
            Box::new(Count { input: below(input)?, skip: *skip, limit: *limit, stats })
        }
        Node::RecordStoreFastCount
        | Node::AndSorted { .. }
        | Node::Update { .. }
        | Node::Delete { .. } => {
            return Err(Error::internal(format!("{} is not run by itself", node.name())));
        }
    })
}

/// Refuses `{$meta: "sortKey"}` in a find that does not sort.
fn check_sorts(env: &Env) -> Result<()> {
    if env.sort.as_doc().is_empty() {
        return Err(Error::bad_value("cannot use sortKey $meta projection without a sort"));
    }
    Ok(())
}

/// The same, with the sort keys that are needed also where an index gives the order.
pub(crate) fn build_with_sort_keys(node: &Node, env: &Env, needs: Needs) -> Result<BoxedOperator> {
    let input = build(node, env, needs)?;
    let sort = env.sort.as_doc();
    if !needs.sort_keys || node.blocks() || sort.is_empty() || sort.contains("$natural") {
        return Ok(input);
    }
    let pattern = SortPattern::parse(sort, &env.parse)?;
    Ok(Box::new(SortKeys::new(input, pattern)))
}

/// The filter that a part of the request's filter is.
pub(crate) fn compile(condition: Option<&Condition>) -> Option<Filter> {
    condition.map(|condition| Filter::from_node(condition.without_implied()))
}
