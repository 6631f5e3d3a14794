//! The scan of the buckets of a time-series collection, and how a filter is divided for it: into what decides about a
//! whole bucket and what must be tested for each point.

use std::sync::Arc;

use quire_catalog::Collection;
use quire_document::{Type, Value, ValueBuf};
use quire_mql::filter::{Comparison, Node as Condition, Test};
use quire_mql::time_series::TimeSeriesOptions;

use super::Node;

/// A scan of the points of buckets.
#[derive(Debug, Clone)]
pub struct BucketScan {
    /// The collection that it reads.
    pub collection: Arc<Collection>,
    /// The conditions on the meta field alone. They hold for all points of a bucket or for none.
    pub of_meta: Option<Condition>,
    /// The value that the meta field must be equal to, compared as an index compares values.
    pub meta: Option<ValueBuf>,
    /// The first and the last time of the points, in milliseconds since 1970, both included.
    pub times: (i64, i64),
    /// The other conditions.
    pub rest: Option<Condition>,
    /// The top-level fields of the points that are read; `None` for all.
    pub fields: Option<Vec<String>>,
    /// The order of the points.
    pub order: PointOrder,
    /// The number of points of each meta value that are read, the first ones in the order of the time; `None` for
    /// all. Only with [`PointOrder::Sources`].
    pub each: Option<u64>,
}

/// The order of points of a time-series collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PointOrder {
    /// In any order, bucket by bucket.
    Any,
    /// By the time.
    Time {
        /// True for the newest first.
        backward: bool,
    },
    /// By the meta value and then by the time.
    Sources {
        /// True for the largest meta value first.
        backward: bool,
        /// True for the newest point of each meta value first.
        newest_first: bool,
    },
}

/// What is known of a filter.
struct Divided {
    of_meta: Vec<Condition>,
    meta: Option<ValueBuf>,
    times: (i64, i64),
    rest: Vec<Condition>,
}

impl BucketScan {
    /// Returns the scan of the points that match a filter; `None` for a collection that is no time series.
    /// `compares_bytes` is true if the request compares strings by their bytes.
    pub fn new(
        collection: &Arc<Collection>,
        filter: &Condition,
        compares_bytes: bool,
    ) -> Option<Self> {
        let series = collection.options.time_series()?;
        let mut divided = Divided {
            of_meta: Vec::new(),
            meta: None,
            times: (i64::MIN, i64::MAX),
            rest: Vec::new(),
        };
        divided.add(filter, series);
        let Divided { of_meta, meta, times, rest } = divided;
        let all = |parts: Vec<Condition>| (!parts.is_empty()).then(|| Condition::all(parts));
        Some(BucketScan {
            collection: Arc::clone(collection),
            of_meta: all(of_meta),
            meta: meta.filter(|_| compares_bytes),
            times,
            rest: all(rest),
            fields: None,
            order: PointOrder::Any,
            each: None,
        })
    }

    /// Returns true if whole buckets pass or fail, apart from those at the ends of the times.
    pub fn takes_whole_buckets(&self) -> bool {
        self.rest.is_none()
    }
}

impl Divided {
    fn add(&mut self, condition: &Condition, series: &TimeSeriesOptions) {
        match condition {
            Condition::And(parts) => parts.iter().for_each(|part| self.add(part, series)),
            Condition::Path(node)
                if node.path.as_str() == series.time_field && self.narrows(&node.test) => {}
            // An expression that is tested, too, implies it.
            Condition::Path(node) if matches!(node.test, Test::Implied(..)) => {}
            other if is_about_meta(other, series) => {
                self.meta = self.meta.take().or_else(|| equal_meta(other, series));
                self.of_meta.push(other.clone());
            }
            other => self.rest.push(other.clone()),
        }
    }

    /// Takes a comparison of the time with a date; returns false for any other test.
    fn narrows(&mut self, test: &Test) -> bool {
        let (Test::Compare(comparison, operand) | Test::Implied(comparison, operand)) = test else {
            return false;
        };
        let Value::Date(time) = operand.value() else { return false };
        let (first, last) = &mut self.times;
        match comparison {
            Comparison::Eq => (*first, *last) = ((*first).max(time), (*last).min(time)),
            Comparison::Gte => *first = (*first).max(time),
            Comparison::Lte => *last = (*last).min(time),
            // No time is before the first or after the last.
            Comparison::Gt => match time.checked_add(1) {
                Some(next) => *first = (*first).max(next),
                None => (*first, *last) = (i64::MAX, i64::MIN),
            },
            Comparison::Lt => match time.checked_sub(1) {
                Some(before) => *last = (*last).min(before),
                None => (*first, *last) = (i64::MAX, i64::MIN),
            },
        }
        true
    }
}

/// Returns true if the condition depends on the meta field alone.
fn is_about_meta(condition: &Condition, series: &TimeSeriesOptions) -> bool {
    match condition {
        Condition::And(_) | Condition::Or(_) | Condition::Nor(_) | Condition::Not(_) => {
            let parts = condition.children();
            !parts.is_empty() && parts.iter().all(|part| is_about_meta(part, series))
        }
        Condition::Path(node) => series.is_meta(node.path.as_str()),
        _ => false,
    }
}

/// Returns the value that a condition demands of the whole meta field.
fn equal_meta(condition: &Condition, series: &TimeSeriesOptions) -> Option<ValueBuf> {
    let Condition::Path(node) = condition else { return None };
    let Test::Compare(Comparison::Eq, operand) = &node.test else { return None };
    let is_whole = series.meta_field.as_deref() == Some(node.path.as_str());
    let is_point =
        !matches!(operand.kind(), Type::Null | Type::Undefined | Type::Array | Type::Regex);
    (is_whole && is_point).then(|| ValueBuf::new(operand.value()))
}

impl Node {
    /// Returns true if it reads buckets of a time-series collection.
    pub fn reads_buckets(&self) -> bool {
        matches!(self, Node::Buckets(_)) || self.inputs().iter().any(Node::reads_buckets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_catalog::{CollectionId, CollectionOptions, IndexId, Namespace, Uuid};
    use quire_document::{DocBuf, doc};
    use quire_mql::{Filter, ParseContext};

    fn divided(filter: DocBuf) -> BucketScan {
        let series = doc! { "timeField": "t", "metaField": "m" };
        let series = TimeSeriesOptions::parse("create.timeseries", series.as_doc()).unwrap();
        let options = CollectionOptions::of_series(series);
        let namespace = Namespace::new("db", "points").unwrap();
        let collection =
            Collection::new(CollectionId(1), Uuid::default(), namespace, options, IndexId(1));
        let filter = Filter::parse(filter.as_doc(), &ParseContext::default()).unwrap();
        let condition = filter.into_node().with_implied();
        BucketScan::new(&Arc::new(collection), &condition, true).unwrap()
    }

    #[test]
    fn a_filter_is_divided_into_what_holds_for_buckets_and_what_for_points() {
        let scan = divided(doc! {
            "m": 7, "m.a": { "$gt": 1 }, "v": { "$lt": 5 },
            "t": { "$gt": Value::Date(10), "$lte": Value::Date(20) },
        });
        assert_eq!(scan.times, (11, 20));
        assert_eq!(scan.meta, Some(ValueBuf::new(7)));
        assert_eq!(scan.rest.map(|rest| rest.to_bson()), Some(doc! { "v": { "$lt": 5 } }));
        assert_eq!(scan.of_meta.map(|of_meta| of_meta.conjuncts().len()), Some(2));
        let alternatives = divided(doc! { "$or": [{ "m": 7 }, { "v": 1 }] });
        assert!(alternatives.of_meta.is_none() && alternatives.rest.is_some());
        assert!(divided(doc! { "$or": [{ "m": 7 }, { "m.a": 1 }] }).takes_whole_buckets());
    }

    #[test]
    fn conditions_that_no_time_can_pass_leave_no_times() {
        let (first, last) = divided(doc! { "t": { "$lt": Value::Date(i64::MIN) } }).times;
        assert!(first > last);
        let scan = divided(doc! { "t": { "$gte": "a text" } });
        assert!(scan.times == (i64::MIN, i64::MAX) && scan.rest.is_some());
    }

    #[test]
    fn an_expression_narrows_the_times_and_is_tested_too() {
        let scan = divided(doc! { "$expr": { "$gte": ["$t", Value::Date(5)] } });
        assert_eq!(scan.times, (5, i64::MAX));
        assert!(scan.rest.is_some());
    }
}
