//! The keys of a join as the parameters of a plan. The plan is made once, with a placeholder in place
//! of the keys (`quire_mql::filter::InList::placeholder`), and each look-up binds it to its keys. The
//! join tests the keys of the rows that the plan returns, so a plan may return more.

use crate::indexes::partial::implies;
use crate::plan::{IndexScan, Inner, KeyedField, Node, Plan};
use quire_catalog::key::Predicate;
use quire_document::path::Path;
use quire_mql::Collation;
use quire_mql::filter::{InList, KeyTypes, Node as Condition, PathNode, Test};
use std::sync::Arc;

/// The keys of one look-up.
pub struct Keys {
    list: InList,
    are_present: bool,
    collation: Option<Arc<Collation>>,
}

impl Keys {
    /// Returns the keys of a look-up; strings are compared by `collation`.
    pub fn new(list: InList, collation: Option<Arc<Collation>>) -> Self {
        let are_present = list.values().all(|key| KeyTypes::Present.contain(key));
        Keys { list, are_present, collation }
    }

    /// Returns the nodes of a plan for these keys. `None` if the plan is not right for a key of such a
    /// type, or has no placeholder: then the join needs the documents of the whole plan.
    pub fn bind(&self, plan: &Plan) -> Option<Node> {
        let mut node = Node::clone(plan.by_keys.as_deref()?);
        self.bind_node(&mut node, plan.filter.as_deref()).then_some(node)
    }

    /// Returns a scan for the keys, which are an example: the estimate of a scan for other keys.
    pub fn bind_example(&self, scan: &IndexScan) -> Option<IndexScan> {
        let mut scan = scan.clone();
        scan.keyed = scan.keyed.map(|keyed| KeyedField { by_partial: false, ..keyed });
        self.bind_scan(&mut scan, None).then_some(scan)
    }

    fn bind_node(&self, node: &mut Node, filter: Option<&Condition>) -> bool {
        match node {
            Node::CollScan { filter: own, .. } => self.bind_test(own),
            Node::ClusteredScan { scan, filter: own } => {
                self.bind_scan(scan, filter) && self.bind_test(own)
            }
            Node::IndexScan(scan) | Node::CountScan(scan) | Node::DistinctScan { scan, .. } => {
                self.bind_scan(scan, filter)
            }
            Node::IdLookups(found) => {
                found.ids = Some(self.list.clone());
                found.scan.keyed.is_none_or(|keyed| self.have(keyed.types))
            }
            Node::Fetch { filter: own, input } => {
                self.bind_test(own) && self.bind_node(input, filter)
            }
            Node::Or { inputs }
            | Node::AndSorted { inputs }
            | Node::SortMerge { inputs, .. }
            | Node::Gather { inputs, .. } => {
                inputs.iter_mut().all(|input| self.bind_node(input, filter))
            }
            Node::Stage { input, inner, .. } => {
                self.bind_inner(inner) && self.bind_node(input, filter)
            }
            Node::Check { input, .. }
            | Node::Sort { input, .. }
            | Node::Skip { input, .. }
            | Node::Limit { input, .. }
            | Node::Projection { input, .. }
            | Node::SortKeys { input, .. }
            | Node::ReturnKey { input, .. }
            | Node::Subplan { input }
            | Node::Count { input, .. }
            | Node::Write { input, .. } => self.bind_node(input, filter),
            Node::Eof
            | Node::OneDocument
            | Node::Served(_)
            | Node::Feed { .. }
            | Node::RandomPicks { .. }
            | Node::IdHack { .. }
            | Node::RecordStoreFastCount { .. } => true,
            // Buckets have no keys: the whole plan finds their points.
            Node::Points { .. } | Node::Buckets(_) => false,
        }
    }

    /// Binds the plans of a `$unionWith` before which the condition on the keys moved.
    fn bind_inner(&self, inner: &mut Inner) -> bool {
        let Inner::Union(plans) = inner else { return true };
        if plans.iter().all(|plan| plan.by_keys.is_none()) {
            return true;
        }
        let bound = |plan: &Plan| match &plan.by_keys {
            None => Some(plan.clone()),
            Some(_) => Some(Plan { root: self.bind(plan)?, by_keys: None, ..plan.clone() }),
        };
        let Some(bound) = plans.iter().map(bound).collect() else { return false };
        *plans = bound;
        true
    }

    fn bind_test(&self, test: &mut Option<Condition>) -> bool {
        test.as_mut().is_none_or(|test| self.bind_condition(test))
    }

    fn bind_condition(&self, condition: &mut Condition) -> bool {
        match condition {
            Condition::And(children) | Condition::Or(children) | Condition::Nor(children) => {
                children.iter_mut().all(|child| self.bind_condition(child))
            }
            Condition::Path(node) => match types_of(&node.test) {
                Some(types) if !self.have(types) => false,
                Some(_) => {
                    *node = PathNode::new(node.path.clone(), Test::In(self.list.clone()));
                    true
                }
                None => true,
            },
            _ => true,
        }
    }

    fn have(&self, types: KeyTypes) -> bool {
        self.are_present || types == KeyTypes::All
    }

    fn bind_scan(&self, scan: &mut IndexScan, filter: Option<&Condition>) -> bool {
        if !self.bind_test(&mut scan.filter) {
            return false;
        }
        let Some(KeyedField { field, types, by_partial }) = scan.keyed.take() else { return true };
        let path = scan.keys.fields().get(field).map(|field| field.path.as_str());
        let (Some(path), true) = (path, self.have(types)) else { return false };
        let test = Test::In(self.list.clone());
        let predicate = Predicate {
            test: &test,
            negated: false,
            path,
            multikey: scan.multikey.field(field),
            collation: self.collation.as_deref(),
        };
        let Some((intervals, _)) = scan.keys.bounds(field, &predicate) else { return false };
        if by_partial && !holds_all(scan, filter, PathNode::new(Path::new(path), test)) {
            return false;
        }
        if let Some(bounds) = scan.bounds.get_mut(field) {
            *bounds = if bounds.is_all() { intervals } else { bounds.intersect(&intervals) };
        }
        scan.keys.bound_paths(&mut scan.bounds);
        true
    }
}

/// Returns true if a partial index has all documents of a filter and of a test of the keys.
fn holds_all(scan: &IndexScan, filter: Option<&Condition>, keys: PathNode) -> bool {
    let given = filter.cloned().into_iter().chain([Condition::Path(keys)]).collect();
    scan.keys.partial().is_none_or(|partial| {
        implies(&Condition::And(given), partial.condition(), scan.keys.collator())
    })
}

/// Returns the types of the keys for which a test is the placeholder.
fn types_of(test: &Test) -> Option<KeyTypes> {
    match test {
        Test::In(list) => list.to_come(),
        _ => None,
    }
}

/// Returns true for the placeholder of a test of the keys.
pub(crate) fn is_placeholder(test: &Test) -> bool {
    types_of(test).is_some()
}

/// Returns true if the condition itself is the placeholder.
pub(crate) fn tests_keys(condition: &Condition) -> bool {
    matches!(condition, Condition::Path(node) if is_placeholder(&node.test))
}

/// Returns true if the condition is the placeholder, for keys that are `_id`s.
pub(crate) fn tests_ids(condition: &Condition) -> bool {
    matches!(condition, Condition::Path(node) if node.path.as_str() == "_id" && is_placeholder(&node.test))
}

/// Returns the condition without the placeholder; `None` if nothing else is left. The placeholder is
/// one of the conditions that all must hold.
pub(crate) fn without_keys(condition: &Condition) -> Option<Condition> {
    match condition {
        Condition::And(children) => {
            let left: Vec<Condition> = children.iter().filter_map(without_keys).collect();
            (!left.is_empty() || children.is_empty()).then(|| Condition::all(left))
        }
        other => (!tests_keys(other)).then(|| other.clone()),
    }
}

/// Returns the types of the keys that the placeholder in a condition stands for; `None` without a
/// placeholder.
pub(crate) fn types_in(condition: &Condition) -> Option<KeyTypes> {
    condition.conjuncts().iter().find_map(|part| match part {
        Condition::Path(node) => types_of(&node.test),
        _ => None,
    })
}

/// Returns the condition with a placeholder for present keys only.
pub(crate) fn of_present_keys(condition: &Condition) -> Condition {
    match condition {
        Condition::And(children) => Condition::And(children.iter().map(of_present_keys).collect()),
        Condition::Path(node) => {
            Condition::Path(PathNode::new(node.path.clone(), present(&node.test)))
        }
        other => other.clone(),
    }
}

/// Returns the test; a placeholder is then one for present keys only.
pub(crate) fn present(test: &Test) -> Test {
    match test {
        Test::In(list) if list.to_come().is_some() => {
            Test::In(InList::placeholder(KeyTypes::Present, list.collator().cloned()))
        }
        other => other.clone(),
    }
}
