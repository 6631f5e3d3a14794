//! Plans searches (`$text`, `$near`): where a filter may have one, and the nodes of the index that
//! answers it (`quire_catalog::key::SearchPlan`).

use crate::indexes::access::Candidate;
use crate::plan::{Node, SearchNode};
use crate::request::{FindRequest, Hint};
use quire_catalog::key::{Answer, SearchPlan, Searched};
use quire_error::{Error, ErrorCode, Result};
use quire_mql::collation::Collation;
use quire_mql::filter::{Node as Condition, Search};
use std::sync::Arc;

/// Checks that a filter may have its search: once, below no `$nor`, and without the options of the
/// request that demand another plan.
///
/// # Errors
/// 2 BadValue.
pub(crate) fn check(filter: &Condition, request: &FindRequest, natural: bool) -> Result<()> {
    let Some(search) = filter.search() else { return Ok(()) };
    // MongoDB's messages name the operator without its dollar sign.
    let name = search.operator().trim_start_matches('$');
    let refused = |why: String| Err(Error::bad_value(why));
    if count(filter) > 1 {
        return refused(format!("Too many {name} expressions"));
    }
    if is_below_nor(filter) {
        return refused(format!("{name} expression not allowed in nor"));
    }
    if natural {
        return refused(format!("{name} expression not allowed with $natural sort order"));
    }
    // `$near` takes the hint of an index.
    let is_index = matches!(request.hint, Some(Hint::Name(_) | Hint::Pattern(_)));
    if request.hint.is_some() && !(is_index && search.is_conjunct_only()) {
        return refused(format!("{name} and hint not allowed in same query"));
    }
    if request.tailable {
        return refused(format!("{name} and tailable cursor not allowed in same query"));
    }
    Ok(())
}

/// Checks that a search that must hold for all documents is one of the conditions that all must hold.
///
/// # Errors
/// 2 BadValue.
pub(crate) fn check_place(filter: &Condition) -> Result<()> {
    match filter.search() {
        Some(search) if search.is_conjunct_only() && position(filter.conjuncts()).is_none() => {
            let text = format!("{} must be top-level expression", search.operator());
            Err(Error::bad_value(text))
        }
        _ => Ok(()),
    }
}

fn count(condition: &Condition) -> usize {
    match condition {
        Condition::Search(_) => 1,
        other => other.children().iter().map(count).sum(),
    }
}

fn is_below_nor(condition: &Condition) -> bool {
    match condition {
        Condition::Nor(_) | Condition::Not(_) => condition.search().is_some(),
        other => other.children().iter().any(is_below_nor),
    }
}

/// Returns the error of a search that no plan answers.
pub(crate) fn no_plan(namespace: &str, filter: &Condition, search: &dyn Search) -> Error {
    let name = search.operator().trim_start_matches('$');
    let below_or = !filter.conjuncts().iter().any(|part| matches!(part, Condition::Search(_)));
    let why = if below_or {
        let upper = name.to_uppercase();
        format!(
            "Failed to produce a solution for {upper} under OR - other non-{upper} clauses under OR have to be indexed as well."
        )
    } else {
        format!(
            "failed to use {name} index to satisfy ${name} query (if {name} index is compound, are equality predicates given for all prefix fields?)"
        )
    };
    Error::new(
        ErrorCode::NoQueryExecutionPlans,
        format!(
            "error processing query: ns={namespace}Tree: {}\n planner returned error :: caused by :: {why}",
            search.describe()
        ),
    )
}

/// Returns the number of the condition that is a search.
pub(crate) fn position(conjuncts: &[Condition]) -> Option<usize> {
    conjuncts.iter().position(|conjunct| matches!(conjunct, Condition::Search(_)))
}

/// Returns the plan of a search beside other conditions, and which of these it answers exactly; `None`
/// if the index cannot answer it. `gathers` says that its metadata or its order is read.
pub(crate) fn node(
    candidate: &Candidate,
    search: &Arc<dyn Search>,
    beside: &[&Condition],
    collation: Option<&Collation>,
    gathers: bool,
) -> Option<(Node, Vec<bool>)> {
    let index = &candidate.index;
    let searches = index.keys.searches(&**search)?;
    let long_keys = index.has_long_keys();
    let searched = Searched { search: &**search, beside, collation, long_keys };
    let SearchPlan { answers, scans, method } = (searches.plan)(&index.keys, &searched)?;
    let by_key = beside.iter().zip(&answers).filter(|(_, answer)| **answer == Answer::ByKey);
    let by_key: Vec<Condition> = by_key.map(|(condition, _)| (*condition).clone()).collect();
    let gathers = gathers || method.always_gathers();
    let search = Arc::new(SearchNode {
        collection: Arc::clone(&candidate.collection),
        index: Arc::clone(index),
        multikey: candidate.multikey.clone(),
        key_filter: (!by_key.is_empty()).then(|| Condition::all(by_key)),
        search: Arc::clone(search),
        method,
    });
    let scans = scans.into_iter().map(|part| Node::IndexScan(Box::new(search.scan(part))));
    let mut inputs: Vec<Node> = scans.collect();
    let found = if gathers {
        Node::Gather { search: Arc::clone(&search), inputs }
    } else {
        let keys = match inputs.len() {
            1 => inputs.remove(0),
            _ => Node::Or { inputs },
        };
        Node::Fetch { filter: None, input: Box::new(keys) }
    };
    let node = match search.method.check_stage() {
        Some(_) => Node::Check { search, input: Box::new(found) },
        None => found,
    };
    let exact = answers.iter().map(|answer| *answer != Answer::None).collect();
    Some((node, exact))
}

/// Returns the metadata in whose order the rows of a node come out, if they are those of one search.
pub(crate) fn order(node: &Node) -> Option<&'static str> {
    match node {
        Node::Gather { search, .. } => search.method.order(),
        Node::Check { input, .. } | Node::Fetch { input, .. } => order(input),
        _ => None,
    }
}
