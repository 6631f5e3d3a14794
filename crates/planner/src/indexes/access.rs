//! Finds which indexes can serve a filter, and how: one candidate plan for each way.

mod merged_leaves;

use self::merged_leaves::merge_leaves;
use crate::indexes::choose::{Statistics, UNCOUNTED_INTERVALS_MAX, cheapest};
use crate::indexes::keys::{is_placeholder, tests_keys, types_in, without_keys};
use crate::indexes::partial::implies;
use crate::indexes::search;
use crate::plan::{IndexScan, KeyedField, Node};
use quire_catalog::key::{Bounds, Intervals, KeySpec, PathView, Predicate, Tightness};
use quire_catalog::{Collection, Index, MultikeyPaths};
use quire_error::Result;
use quire_mql::collation::Collation;
use quire_mql::filter::{Node as Condition, PathNode, Test};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The most predicates that bound one field of an index; the filter tests the others after the scan.
/// Each predicate is compared with each other one.
const PREDICATES_MAX: usize = 200;

/// The most predicates that come first in a plan of their own, if they must not be intersected.
const LEADS_MAX: usize = 16;

/// The most conditions of one `$and` or `$or` that are planned without checks of the interrupt.
const UNCOUNTED_MAX: usize = 100;

/// The number of copied conjuncts after which no further way to answer a conjunction is added.
const CONJUNCTS_COPIED_MAX: usize = 1_000_000;

/// The most pairs of a filter's condition and a partial index's condition that are compared.
const IMPLICATIONS_MAX: usize = 1_000_000;

/// The most views of one index. A filter needs one for each path that it tests.
const VIEWS_MAX: usize = 64;

/// The most branches of an `$or` that are planned; a larger `$or` only filters documents.
const BRANCHES_MAX: usize = 5000;

/// The most conjuncts beside an `$or` whose branches are planned. Each branch reads all of them.
const OUTER_MAX: usize = 100;

/// The most conditions that are read and copied to plan the `$or`s of one conjunction.
const BRANCH_LOOKS_MAX: usize = 100_000;

/// An index that may be used, with the array paths that it is known to have.
#[derive(Debug, Clone)]
pub(crate) struct Candidate {
    pub collection: Arc<Collection>,
    pub index: Arc<Index>,
    /// The content of its keys.
    pub keys: Arc<KeySpec>,
    pub multikey: MultikeyPaths,
    /// True if the index is partial and does not hold every document that the whole filter matches. It
    /// may serve a branch of an `$or`.
    pub of_branches: bool,
}

impl Candidate {
    pub fn new(collection: &Arc<Collection>, index: &Arc<Index>) -> Self {
        let (collection, keys) = (Arc::clone(collection), Arc::clone(&index.keys));
        let multikey = index.multikey_paths();
        Candidate { collection, index: Arc::clone(index), keys, multikey, of_branches: false }
    }

    /// Returns the forms of the index that may serve predicates on these paths: the index itself,
    /// or for a wildcard index one view for each path.
    fn views(self, paths: &BTreeSet<String>) -> Vec<Candidate> {
        let Some(views) = self.keys.views(paths, &self.index.multikey) else { return vec![self] };
        let with = |PathView { keys, multikey }| Candidate { keys, multikey, ..self.clone() };
        views.into_iter().take(VIEWS_MAX).map(with).collect()
    }

    /// Returns a scan of the whole index.
    pub fn scan(&self) -> IndexScan {
        let mut scan = IndexScan::whole(&self.collection, &self.index, self.multikey.clone());
        scan.keys = Arc::clone(&self.keys);
        scan
    }

    /// Returns true if the index can be used without a predicate.
    pub fn stands_alone(&self) -> bool {
        !self.keys.is_seen_in_views()
    }

    /// Returns true if the index holds every document that the filter matches. The filter compares
    /// strings by `collation`, the condition of a partial index by the index's collation.
    pub fn holds_all(&self, filter: &Condition, collation: Option<&Collation>) -> bool {
        self.keys.partial().is_none_or(|partial| {
            self.keys.collation() == collation
                && filter.size().saturating_mul(partial.condition().size()) <= IMPLICATIONS_MAX
                && implies(filter, partial.condition(), self.keys.collator())
        })
    }
}

/// Finds the ways in which indexes can serve a filter.
pub(crate) struct Access<'a> {
    pub indexes: Vec<Candidate>,
    pub stats: &'a dyn Statistics,
    /// The collation of the request.
    pub collation: Option<&'a Collation>,
    /// True if the metadata or the order of a search is read.
    pub gathers: bool,
}

/// A predicate on one path that an index field can serve.
#[derive(Clone)]
struct Usable<'p> {
    /// The number of the conjunct that it belongs to.
    conjunct: usize,
    path: String,
    test: &'p Test,
    /// True if the test is negated.
    negated: bool,
    /// The `$elemMatch` nodes around it, outermost first: their paths and identities.
    around: Vec<(usize, usize)>,
}

/// The predicates that each field of an index can serve, by their positions, with their bounds.
type FieldsServed = Vec<Vec<(usize, Bounds)>>;

/// How exactly a scan serves a conjunct.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Served {
    Not,
    By(Tightness),
}

/// One way to answer a conjunction: the node, and which conjuncts it answers exactly.
struct Way {
    node: Node,
    exact: Vec<bool>,
    /// The position of the index among the candidates, by which the branches of `$or` are sorted.
    rank: usize,
}

/// Replaces each wildcard index by its views of the paths that a filter tests.
pub(crate) fn views(indexes: Vec<Candidate>, filter: &Condition) -> Vec<Candidate> {
    if !indexes.iter().any(|candidate| candidate.keys.is_seen_in_views()) {
        return indexes;
    }
    let mut paths = BTreeSet::new();
    tested_paths(filter, "", &mut paths);
    indexes.into_iter().flat_map(|candidate| candidate.views(&paths)).collect()
}

impl Access<'_> {
    /// Returns every way to answer the filter with indexes. A node returns keys if they are enough,
    /// and documents if the rest of the filter needs them.
    ///
    /// # Errors
    /// The interrupt's error.
    pub fn nodes(&self, root: &Condition) -> Result<Vec<Node>> {
        if let Condition::Or(branches) = root {
            return Ok(self.any_of(branches, &[])?.map(|way| way.node).into_iter().collect());
        }
        let ways = self.conjunction(root.conjuncts(), &[])?;
        let mut nodes: Vec<Node> = ways.into_iter().map(|way| way.node).collect();
        if nodes.len() > 1 && nodes.iter().any(is_unique_point) {
            nodes.retain(is_unique_point);
            nodes.truncate(1);
        }
        Ok(nodes)
    }

    /// Returns a scan of an index that finds exactly the documents that match a filter, by its bounds and a test of its
    /// keys. The filter need not bound the first field of the index. `None` if the scan would need the documents.
    ///
    /// # Errors
    /// The interrupt's error.
    pub fn exact_scan(&self, candidate: &Candidate, root: &Condition) -> Result<Option<IndexScan>> {
        let keys = &candidate.keys;
        let has_all = !keys.misses_documents() && candidate.holds_all(root, self.collation);
        if !has_all || !keys.serves_paths() || keys.is_seen_in_views() || candidate.multikey.any() {
            return Ok(None);
        }
        let all: Vec<&Condition> = root.conjuncts().iter().collect();
        let usable = collect_usable(&all);
        let served = self.served(candidate, &usable)?;
        let members = |field: &Vec<(usize, Bounds)>| field.iter().map(|(at, _)| *at).collect();
        let assigned: Vec<Vec<usize>> = served.iter().map(members).collect();
        let way = scan_way(0, candidate, &usable, &served, &assigned, &all, root.conjuncts());
        Ok(match way.node {
            Node::IndexScan(scan) => Some(*scan),
            _ => None,
        })
    }

    /// Returns the ways to answer `conjuncts`. The `outer` conjuncts hold too and may help. A way
    /// serves at least one of `conjuncts`.
    fn conjunction(&self, conjuncts: &[Condition], outer: &[Condition]) -> Result<Vec<Way>> {
        let all: Vec<&Condition> = conjuncts.iter().chain(outer).collect();
        if let Some(at) = search::position(conjuncts) {
            return Ok(self.search_ways(at, &all, conjuncts.len()));
        }
        if conjuncts.iter().any(|conjunct| conjunct.search().is_some()) {
            return self.ways_through_or(conjuncts, &all);
        }
        let usable = collect_usable(&all);
        let mut ways = Vec::new();
        let mut whole = None;
        for (rank, candidate) in self.indexes.iter().enumerate() {
            if !candidate.keys.serves_paths() {
                continue;
            }
            if candidate.of_branches {
                let whole = whole.get_or_insert_with(|| {
                    Condition::all(all.iter().map(|condition| (*condition).clone()).collect())
                });
                if !candidate.holds_all(whole, self.collation) {
                    continue;
                }
            }
            let served = self.served(candidate, &usable)?;
            for assigned in assignments(candidate, &usable, &served) {
                let own =
                    assigned.iter().flatten().any(|at| usable[*at].conjunct < conjuncts.len());
                // Each way has a copy of the conjuncts that its bounds do not answer.
                if own && ways.len() * all.len() <= CONJUNCTS_COPIED_MAX {
                    if all.len() > UNCOUNTED_MAX || has_long_bounds(&served) {
                        self.stats.check_interrupt()?;
                    }
                    ways.push(scan_way(
                        rank, candidate, &usable, &served, &assigned, &all, conjuncts,
                    ));
                }
            }
        }
        if all.len() <= OUTER_MAX + 1 {
            ways.extend(self.ways_through_or(conjuncts, &all)?);
        }
        Ok(ways)
    }

    /// Returns the ways to answer a conjunction with a search, which only its index answers. `own` is the
    /// number of the conjuncts that a way must answer; the others hold too.
    fn search_ways(&self, at: usize, all: &[&Condition], own: usize) -> Vec<Way> {
        let Some(Condition::Search(search)) = all.get(at) else { return Vec::new() };
        let others = || (0..all.len()).filter(|place| *place != at && !tests_keys(all[*place]));
        let beside: Vec<&Condition> = others().map(|place| all[place]).collect();
        let holds_all = |candidate: &Candidate| {
            let whole = || Condition::all(beside.iter().map(|one| (*one).clone()).collect());
            !candidate.of_branches || candidate.holds_all(&whole(), self.collation)
        };
        let way = |(rank, candidate): (usize, &Candidate)| {
            let (node, answered) =
                search::node(candidate, search, &beside, self.collation, self.gathers)?;
            let mut exact: Vec<bool> = all.iter().map(|one| !tests_keys(one)).collect();
            others().zip(answered).for_each(|(place, answered)| exact[place] = answered);
            let rest = (0..own).filter(|place| !exact[*place]).map(|place| all[place].clone());
            Some(Way { node: with_rest(node, rest.collect()), exact, rank })
        };
        let candidates = self.indexes.iter().enumerate();
        candidates.filter(|(_, candidate)| holds_all(candidate)).filter_map(way).collect()
    }

    /// Returns a way for each `$or` among the conjuncts. The other conjuncts may help.
    fn ways_through_or(&self, conjuncts: &[Condition], all: &[&Condition]) -> Result<Vec<Way>> {
        let mut ways = Vec::new();
        if !conjuncts.iter().any(|conjunct| matches!(conjunct, Condition::Or(_))) {
            return Ok(ways);
        }
        let size: usize = all.iter().map(|conjunct| conjunct.size()).sum();
        let mut looks = 0;
        for (at, conjunct) in conjuncts.iter().enumerate() {
            let Condition::Or(branches) = conjunct else { continue };
            looks += branches.len() * all.len() + size;
            if looks > BRANCH_LOOKS_MAX {
                break;
            }
            let others: Vec<Condition> = all
                .iter()
                .enumerate()
                .filter(|(other, _)| *other != at)
                .map(|(_, predicate)| (*predicate).clone())
                .collect();
            if let Some(way) = self.any_of(branches, &others)? {
                ways.push(or_conjunct(way, at, all, conjuncts.len()));
            }
        }
        Ok(ways)
    }

    /// Returns the way to answer a disjunction; every branch needs a way. `exact` refers to
    /// `outer`.
    fn any_of(&self, branches: &[Condition], outer: &[Condition]) -> Result<Option<Way>> {
        if branches.len() > BRANCHES_MAX {
            return Ok(None);
        }
        let mut ways: Vec<(Way, Option<&Condition>)> = Vec::with_capacity(branches.len());
        let mut exact = vec![true; outer.len()];
        for branch in branches {
            if branches.len() > UNCOUNTED_MAX {
                self.stats.check_interrupt()?;
            }
            let conjuncts = branch.conjuncts();
            let mut found = self.conjunction(conjuncts, outer)?;
            let nodes: Vec<&Node> = found.iter().map(|way| &way.node).collect();
            let Some(best) = cheapest(&nodes, self.stats)? else { return Ok(None) };
            let way = found.swap_remove(best);
            for (at, flag) in exact.iter_mut().enumerate() {
                *flag &= way.exact.get(conjuncts.len() + at).copied().unwrap_or(false);
            }
            ways.push((way, is_leaf(branch).then_some(branch)));
        }
        // A document that a search finds has metadata, so the search comes first.
        ways.sort_by_key(|(way, _)| (!searches(&way.node), way.rank));
        let rank = ways.first().map_or(0, |(way, _)| way.rank);
        let mut inputs = merge_leaves(ways);
        let node = match inputs.len() {
            1 => inputs.remove(0),
            _ => Node::Or { inputs },
        };
        Ok(Some(Way { node, exact, rank }))
    }

    /// Returns the bounds of a test on a field of an index; `None` if the index cannot serve it.
    fn usable_bounds(
        &self,
        usable: &Usable<'_>,
        candidate: &Candidate,
        field: usize,
    ) -> Option<Bounds> {
        let multikey = candidate.multikey.field(field);
        let predicate = Predicate {
            test: usable.test,
            negated: usable.negated,
            path: &usable.path,
            multikey,
            collation: self.collation,
        };
        let (intervals, tightness) = candidate.keys.bounds(field, &predicate)?;
        if is_placeholder(usable.test) {
            // The join tests the keys of its rows.
            return Some((Intervals::all(), Tightness::Exact));
        }
        let by_document = !usable.around.is_empty()
            || candidate.index.has_long_keys()
            || (multikey && usable.negated);
        Some((intervals, if by_document { Tightness::InexactFetch } else { tightness }))
    }

    /// Returns the bounds of the predicates that the fields of an index can serve.
    fn served(&self, candidate: &Candidate, usable: &[Usable<'_>]) -> Result<FieldsServed> {
        let mut fields = Vec::with_capacity(candidate.keys.fields().len());
        for (field, key) in candidate.keys.fields().iter().enumerate() {
            let mut served = Vec::new();
            for (at, usable) in usable.iter().enumerate() {
                if served.len() == PREDICATES_MAX || usable.path != key.path {
                    continue;
                }
                if let Some(bounds) = self.usable_bounds(usable, candidate, field) {
                    let is_long = bounds.0.0.len() > UNCOUNTED_INTERVALS_MAX;
                    served.push((at, bounds));
                    if served.len() > 1 || is_long {
                        self.stats.check_interrupt()?;
                    }
                }
            }
            fields.push(served);
        }
        Ok(fields)
    }
}

/// Returns true if copying and intersecting the bounds takes long.
fn has_long_bounds(served: &FieldsServed) -> bool {
    let mut bounds = served.iter().flatten().map(|(_, (intervals, _))| intervals);
    bounds.any(|intervals| intervals.0.len() > UNCOUNTED_INTERVALS_MAX)
}

/// Returns the way to answer a conjunction by a scan with the assigned bounds. It tests the conjuncts that
/// the bounds do not answer.
fn scan_way(
    rank: usize,
    candidate: &Candidate,
    usable: &[Usable<'_>],
    served: &FieldsServed,
    assigned: &[Vec<usize>],
    all: &[&Condition],
    conjuncts: &[Condition],
) -> Way {
    let mut scan = candidate.scan();
    let mut answered = vec![Served::Not; all.len()];
    for (field, members) in assigned.iter().enumerate() {
        let bounds = served[field].iter().filter(|(at, _)| members.binary_search(at).is_ok());
        for (at, (intervals, tightness)) in bounds {
            let conjunct = usable[*at].conjunct;
            if tests_keys(all[conjunct]) {
                scan.keyed = keyed_field(candidate, field, all);
            }
            scan.bounds[field] = scan.bounds[field].intersect(intervals);
            let tightness = match answered[conjunct] {
                Served::By(other) => (*tightness).max(other),
                Served::Not => *tightness,
            };
            answered[conjunct] = Served::By(tightness);
        }
    }
    candidate.keys.bound_paths(&mut scan.bounds);
    let by_key = !candidate.multikey.any();
    let (mut key_filter, mut checked, mut rest) = (Vec::new(), Vec::new(), Vec::new());
    for (conjunct, answered) in conjuncts.iter().zip(&answered) {
        match answered {
            Served::By(Tightness::Exact) => {}
            Served::By(Tightness::InexactCovered) if by_key => key_filter.push(conjunct.clone()),
            Served::By(_) => checked.push(conjunct.clone()),
            Served::Not => rest.push(conjunct.clone()),
        }
    }
    if !key_filter.is_empty() {
        scan.filter = Some(Condition::all(key_filter));
    }
    checked.extend(rest);
    let exact = answered.iter().map(|one| *one == Served::By(Tightness::Exact)).collect();
    Way { node: with_rest(Node::IndexScan(Box::new(scan)), checked), exact, rank }
}

/// Returns the field of an index that keys bound beside other conditions.
fn keyed_field(candidate: &Candidate, field: usize, all: &[&Condition]) -> Option<KeyedField> {
    let types = all.iter().find_map(|condition| types_in(condition))?;
    let by_partial = candidate.keys.partial().is_some_and(|partial| {
        let others = all.iter().filter_map(|condition| without_keys(condition)).collect();
        !implies(&Condition::And(others), partial.condition(), candidate.keys.collator())
    });
    Some(KeyedField { field, types, by_partial })
}

/// Returns which predicates bound which field. If two predicates must not be intersected, there
/// is one result for each predicate that may come first.
fn assignments(
    candidate: &Candidate,
    usable: &[Usable<'_>],
    served: &FieldsServed,
) -> Vec<Vec<Vec<usize>>> {
    // Before the value a wildcard key has the path, which no predicate tests.
    let first = usize::from(candidate.keys.path_field() == Some(0));
    let leading = served.get(first).map_or(&[][..], Vec::as_slice);
    let mut out: Vec<Vec<Vec<usize>>> = Vec::new();
    for (lead, _) in leading.iter().take(LEADS_MAX) {
        let mut chosen = vec![*lead];
        let mut assigned = vec![vec![*lead]];
        assigned.resize(served.len(), Vec::new());
        assigned.swap(0, first);
        for (field, members) in served.iter().enumerate() {
            for (at, _) in members {
                let fits =
                    chosen.iter().all(|other| together(&usable[*other], &usable[*at], candidate));
                if !chosen.contains(at) && fits {
                    chosen.push(*at);
                    assigned[field].push(*at);
                }
            }
        }
        assigned.iter_mut().for_each(|members| members.sort_unstable());
        let value = candidate.keys.path_field().map(|at| at + 1);
        let finds = (!candidate.keys.views_path()
            || value.is_some_and(|value| !assigned[value].is_empty()))
            && candidate.keys.finds_all(|field| !assigned[field].is_empty());
        if finds && !out.contains(&assigned) {
            out.push(assigned);
        }
        // If all predicates fit together, every other first predicate gives the same result.
        if chosen.len() == served.iter().map(Vec::len).sum::<usize>() {
            break;
        }
    }
    out
}

/// Returns true for a scan of one key of a unique index: no other plan can be better.
fn is_unique_point(node: &Node) -> bool {
    match node {
        Node::Fetch { input, .. } => is_unique_point(input),
        Node::IndexScan(scan) => {
            scan.index.unique && scan.bounds.iter().all(Intervals::is_point) && !scan.multikey.any()
        }
        _ => false,
    }
}

/// Returns the way of a conjunction through one of its `$or`s; the other conjuncts are tested after
/// it.
fn or_conjunct(way: Way, at: usize, all: &[&Condition], own: usize) -> Way {
    let mut exact = Vec::with_capacity(all.len());
    let mut others = way.exact.into_iter();
    for place in 0..all.len() {
        exact.push(if place == at { true } else { others.next().unwrap_or(false) });
    }
    let rest = (0..own).filter(|place| !exact[*place]).map(|place| all[place].clone()).collect();
    Way { node: with_rest(way.node, rest), exact, rank: way.rank }
}

/// Returns true for the plan of a search.
fn searches(node: &Node) -> bool {
    matches!(node, Node::Gather { .. } | Node::Check { .. }) || node.inputs().iter().any(searches)
}

fn with_rest(node: Node, rest: Vec<Condition>) -> Node {
    if rest.is_empty() {
        return node;
    }
    Node::Fetch { filter: Some(Condition::all(rest)), input: Box::new(node) }
}

fn is_leaf(branch: &Condition) -> bool {
    match branch {
        Condition::Path(node) => {
            !matches!(node.test, Test::ElemMatchObject(_) | Test::ElemMatchValue(_))
        }
        other => matches!(other, Condition::Not(_)),
    }
}

/// Returns the tests of single paths among the conjuncts, those inside `$elemMatch` included.
fn collect_usable<'p>(conjuncts: &[&'p Condition]) -> Vec<Usable<'p>> {
    let mut out = Vec::new();
    for (at, condition) in conjuncts.iter().enumerate() {
        collect_from(at, condition, "", &[], &mut out);
    }
    out
}

/// Adds the paths of all tests in a filter to `out`.
fn tested_paths(condition: &Condition, prefix: &str, out: &mut BTreeSet<String>) {
    match condition {
        Condition::And(children) | Condition::Or(children) => {
            children.iter().for_each(|child| tested_paths(child, prefix, out));
        }
        Condition::Not(child) => tested_paths(child, prefix, out),
        Condition::Path(node) => {
            let path = joined(prefix, node.path.as_str());
            match &node.test {
                Test::ElemMatchObject(scope) => tested_paths(&scope.node, &path, out),
                _ => {
                    out.insert(path);
                }
            }
        }
        _ => {}
    }
}

fn joined(prefix: &str, path: &str) -> String {
    match (prefix, path) {
        ("", path) => path.to_owned(),
        (_, "") => prefix.to_owned(),
        (prefix, path) => format!("{prefix}.{path}"),
    }
}

fn collect_from<'p>(
    conjunct: usize,
    condition: &'p Condition,
    prefix: &str,
    around: &[(usize, usize)],
    out: &mut Vec<Usable<'p>>,
) {
    let (node, negated): (&PathNode, bool) = match condition {
        Condition::Path(node) => (node, false),
        Condition::Not(child) => match &**child {
            Condition::Path(node) => (node, true),
            _ => return,
        },
        _ => return,
    };
    let path = joined(prefix, node.path.as_str());
    if let Test::ElemMatchObject(scope) = &node.test {
        if negated {
            return;
        }
        let mut around = around.to_vec();
        around.push((path.split('.').count(), std::ptr::from_ref(node) as usize));
        for child in scope.node.conjuncts() {
            collect_from(conjunct, child, &path, &around, out);
        }
        return;
    }
    out.push(Usable { conjunct, path, test: &node.test, negated, around: around.to_vec() });
}

/// Returns true if both bounds may be used in one scan: they must refer to the same element of
/// every array on a path that they share.
fn together(a: &Usable<'_>, b: &Usable<'_>, candidate: &Candidate) -> bool {
    if !candidate.multikey.any() {
        return true;
    }
    let shared = a.path.split('.').zip(b.path.split('.')).take_while(|(x, y)| x == y).count();
    let arrays = |path: &str| {
        let field = candidate.keys.field(path);
        field.and_then(|field| candidate.multikey.0.get(field)).copied().unwrap_or(0)
    };
    let bits = arrays(&a.path) | arrays(&b.path);
    let deepest = (0..shared).rev().find(|component| bits & MultikeyPaths::bit(*component) != 0);
    let Some(deepest) = deepest else { return true };
    a.around
        .iter()
        .zip(&b.around)
        .take_while(|(x, y)| x == y)
        .any(|((components, _), _)| *components > deepest)
}
