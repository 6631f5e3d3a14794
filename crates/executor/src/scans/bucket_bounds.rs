//! Tells buckets that have no matching point by the smallest and the largest value of each field.

use std::cmp::Ordering;

use quire_collections::PackedBucket;
use quire_document::{ValueBuf, compare};
use quire_mql::filter::{Comparison, Node, Test};

/// Comparisons of fields with numbers, which all must hold for a point.
pub(crate) struct Ranges(Vec<(String, Comparison, ValueBuf)>);

impl Ranges {
    /// Returns the comparisons of a filter that must hold for each point. Strings are left out: their order depends on
    /// the collation.
    pub fn new(filter: Option<&Node>) -> Self {
        let mut ranges = Ranges(Vec::new());
        if let Some(filter) = filter {
            ranges.add(filter);
        }
        ranges
    }

    fn add(&mut self, condition: &Node) {
        match condition {
            Node::And(parts) => parts.iter().for_each(|part| self.add(part)),
            Node::Path(node) => {
                if let Test::Compare(comparison, operand) = &node.test
                    && operand.value().is_number()
                {
                    let operand = ValueBuf::new(operand.value());
                    self.0.push((node.path.as_str().to_owned(), *comparison, operand));
                }
            }
            _ => {}
        }
    }

    /// Returns false if no point of the bucket can match.
    pub fn may_match(&self, bucket: &PackedBucket) -> bool {
        self.0.iter().all(|(path, comparison, operand)| {
            let Some(bounds) = bucket.columns.bounds(path) else { return true };
            // A missing field matches no number.
            let Some((least, most)) = bounds.range else { return false };
            let least = compare(least, operand.as_value(), None);
            let most = compare(most, operand.as_value(), None);
            match comparison {
                Comparison::Eq => least != Ordering::Greater && most != Ordering::Less,
                Comparison::Gt => most == Ordering::Greater,
                Comparison::Gte => most != Ordering::Less,
                Comparison::Lt => least == Ordering::Less,
                Comparison::Lte => least != Ordering::Greater,
            }
        })
    }
}
