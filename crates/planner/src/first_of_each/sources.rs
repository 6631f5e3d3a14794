//! Plans the first points of each source of a time series, for a `$group` or a `distinct` by the meta field. Points with
//! one meta value are in one group, so the first points of each meta value are enough, in records and in buckets.

use super::{Picks, Search, distinct};
use crate::find::FindQuery;
use crate::indexes::access::Candidate;
use crate::indexes::choose::Statistics;
use crate::indexes::keys::tests_keys;
use crate::plan::{BucketScan, IndexScan, Node, Plan, PointOrder};
use quire_catalog::key::{Interval, Intervals};
use quire_document::Value;
use quire_error::Result;
use quire_mql::filter::{Node as Condition, Test};
use quire_mql::time_series::TimeSeriesOptions;
use std::sync::Arc;

/// Returns a plan that reads one point of each source, for a `distinct` by the path `key`. `None` if the collection is no
/// time series, or if the path is not in its meta field.
///
/// # Errors
/// `BadValue` for a hint that names no index; the interrupt's error.
pub(crate) fn points_of_sources(
    key: &str,
    query: &FindQuery<'_>,
    plan: &Plan,
    stats: &dyn Statistics,
) -> Result<Option<Node>> {
    let Some(collection) = plan.root.collection() else { return Ok(None) };
    if !plan.root.reads_buckets() {
        return Ok(None);
    }
    let search = Search { query, plan, collection, stats };
    let found = search.points_of_each(&[key.to_owned()], &Picks::ANY)?;
    let is_whole = |series: &TimeSeriesOptions| series.meta_field.as_deref() == Some(key);
    Ok(match collection.options.time_series() {
        Some(series) if is_whole(series) => found.map(|node| with_value(node, key)),
        _ => found,
    })
}

/// Returns the plan of the first point of each source that has the field `key`: null and a missing value are one meta value,
/// but only null is a value of a `distinct`.
fn with_value(node: Node, key: &str) -> Node {
    match node {
        Node::Points { order, pattern, inputs } => {
            let inputs = inputs.into_iter().map(|input| with_value(input, key)).collect();
            Node::Points { order, pattern, inputs }
        }
        Node::Fetch { filter, input } => {
            Node::Fetch { filter, input: Box::new(with_value(*input, key)) }
        }
        Node::DistinctScan { scan, field, each, .. } => {
            Node::DistinctScan { scan, field, missing_too: false, each }
        }
        Node::Buckets(mut scan) => {
            let mut conditions: Vec<Condition> = scan.of_meta.take().into_iter().collect();
            conditions.push(Condition::path(key, Test::Exists));
            scan.of_meta = Some(Condition::all(conditions));
            Node::Buckets(scan)
        }
        other => other,
    }
}

impl Search<'_> {
    /// Returns the first points of each meta value, if the paths of the groups are in the meta field and the picks are by
    /// the time.
    pub(super) fn points_of_each(&self, paths: &[String], picks: &Picks) -> Result<Option<Node>> {
        let Some(series) = self.collection.options.time_series() else { return Ok(None) };
        // In a key of several fields null and a missing value differ, which are one meta value.
        let is_whole = |path: &String| series.meta_field.as_ref() == Some(path);
        let by_source = !paths.is_empty()
            && paths.iter().all(|path| series.is_meta(path))
            && (paths.len() == 1 || !paths.iter().any(is_whole));
        let Some(newest_first) = newest_first(picks, series).filter(|_| by_source) else {
            return Ok(None);
        };
        let rows = self.records_of_each(series, newest_first, picks.each)?;
        let node = match (rows, union(&self.plan.root)) {
            (Some(rows), None) => rows,
            (None, None) => return Ok(None),
            (rows, Some((all, scan))) => {
                let order = PointOrder::Sources { backward: false, newest_first };
                let each = Some(picks.each);
                let buckets = Box::new(BucketScan { order, each, ..scan.clone() });
                let rows = rows.unwrap_or_else(|| without_sort(all).clone());
                let inputs = vec![rows, Node::Buckets(buckets)];
                Node::Points { order: PointOrder::Any, pattern: None, inputs }
            }
        };
        let pattern = self.query.sort.as_ref().filter(|_| picks.by_arrival);
        Ok(Some(match pattern {
            Some(pattern) => Node::Sort {
                pattern: Arc::clone(pattern),
                presorted: false,
                limit: 0,
                simple: true,
                input: Box::new(node),
            },
            None => node,
        }))
    }

    /// Returns a scan of the first records of each meta value. `None` without an index on meta field and time, and for a
    /// filter that the index cannot test.
    fn records_of_each(
        &self,
        series: &TimeSeriesOptions,
        newest_first: bool,
        each: u64,
    ) -> Result<Option<Node>> {
        let always = Condition::And(Vec::new());
        let filter = self.query.filter.as_deref().unwrap_or(&always);
        if filter.conjuncts().iter().any(tests_keys) {
            return Ok(None);
        }
        let indexes = self.indexes(filter)?;
        let serves = |candidate: &&Candidate| {
            let keys = &candidate.keys;
            let begins = match keys.fields() {
                [meta, time, ..] => {
                    Some(&meta.path) == series.meta_field.as_ref() && time.path == series.time_field
                }
                _ => false,
            };
            let collation = keys.collation();
            begins
                && super::has_every_document(candidate)
                && !candidate.multikey.any()
                && (collation.is_none() || collation == self.plan.collation.as_deref())
        };
        let Some(candidate) = indexes.iter().find(serves) else { return Ok(None) };
        let mut scan = match self.access().exact_scan(candidate, filter)? {
            Some(scan) => scan,
            None => match self.tested_scan(candidate, filter) {
                Some(scan) => scan,
                None => return Ok(None),
            },
        };
        scan.backward = newest_first != scan.keys.is_descending(1);
        Ok(Some(distinct(scan, 0, each).fetched()))
    }

    /// Returns a scan whose keys are tested by the conditions on the meta field.
    fn tested_scan(&self, candidate: &Candidate, filter: &Condition) -> Option<IndexScan> {
        let divided = BucketScan::new(self.collection, filter, false)?;
        let (first, last) = divided.times;
        let mut scan = candidate.scan();
        if divided.rest.is_some() || !scan.gives_value(0) {
            return None;
        }
        let times = Interval::new(Value::Date(first), true, Value::Date(last), true);
        *scan.bounds.get_mut(1)? = Intervals::of(times);
        scan.filter = divided.of_meta;
        Some(scan)
    }
}

/// Returns true if the newest points of each source are picked, false for the oldest ones or for any; `None` for picks
/// by another field. Within a source the meta field has one value, so an order by it does not matter.
fn newest_first(picks: &Picks, series: &TimeSeriesOptions) -> Option<bool> {
    let Some(order) = &picks.order else { return Some(false) };
    let mut others = order.iter().filter(|part| !series.is_meta(&part.path));
    match (others.next(), others.next()) {
        (Some(time), None) if time.path == series.time_field => Some(time.descending),
        _ => None,
    }
}

/// Returns the two sides of the union of records and buckets in a plan.
fn union(node: &Node) -> Option<(&Node, &BucketScan)> {
    match node {
        Node::Points { inputs, .. } => match inputs.as_slice() {
            [rows, Node::Buckets(scan)] => Some((rows, scan)),
            _ => None,
        },
        other => other.inputs().iter().find_map(union),
    }
}

/// Returns the input of the sorts at the top of a node.
fn without_sort(node: &Node) -> &Node {
    match node {
        Node::Sort { input, .. } => without_sort(input),
        other => other,
    }
}
