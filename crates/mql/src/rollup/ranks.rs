//! Accumulators that keep the first children in an order: `$min`, `$max`, `$topN` and those like
//! them, and with no bound `$push`.
//!
//! More children are kept than the result has, so that most deletes still leave enough. Only if
//! fewer than `n` are left, and others exist that are not kept, the list is stale.

use super::Contribution;
use crate::accumulator::Argument;
use crate::sort::SortPattern;
use quire_document::{ArrayBuf, Value, ValueBuf, array, compare, identical};
use quire_error::{Error, Result};
use std::cmp::Ordering;
use std::sync::Arc;

/// The most bytes of a list in memory. A parent can have at most 16 MB.
const LIST_BYTES_MAX: usize = 64 << 20;

/// The order and the number of the children that an accumulator keeps.
#[derive(Debug)]
pub(super) struct Ranks {
    order: Order,
    /// True if the result has the last children of the order and not the first.
    from_end: bool,
    /// The most children in the result; `usize::MAX` for all.
    n: usize,
    /// True if the result is one value and not an array.
    single: bool,
    missing: Missing,
}

/// The order of the children.
#[derive(Debug)]
enum Order {
    /// In the order of `_id`.
    Id,
    /// By the value, then by `_id`.
    Value { descending: bool },
    /// By the sort key that precedes the output, then by `_id`.
    SortKey(Arc<SortPattern>),
}

/// What becomes of a child without a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Missing {
    /// The value is null.
    Null,
    /// The child is ignored.
    Ignored,
    /// The child is ignored, also if the value is null.
    NullIgnored,
}

/// A child in a list.
#[derive(Debug, Clone)]
struct Entry {
    id: ValueBuf,
    row: ValueBuf,
}

/// The first children of a group, in order.
#[derive(Debug, Clone, Default)]
pub(super) struct List {
    entries: Vec<Entry>,
    bytes: usize,
    /// True if children exist that are after the last entry and not in the list.
    cut: bool,
}

impl Ranks {
    /// Returns the order of an accumulator; `None` if it has none, an error for a sort by metadata.
    pub(super) fn of(name: &str, argument: &Argument, n: usize) -> Option<Result<Self>> {
        let by_value = |descending| Order::Value { descending };
        let (order, from_end, n, missing) = match (name, argument) {
            ("$min", _) => (by_value(false), false, 1, Missing::NullIgnored),
            ("$max", _) => (by_value(true), false, 1, Missing::NullIgnored),
            ("$minN", _) => (by_value(false), false, n, Missing::NullIgnored),
            ("$maxN", _) => (by_value(true), false, n, Missing::NullIgnored),
            ("$first", _) => (Order::Id, false, 1, Missing::Null),
            ("$last", _) => (Order::Id, true, 1, Missing::Null),
            ("$firstN", _) => (Order::Id, false, n, Missing::Null),
            ("$lastN", _) => (Order::Id, true, n, Missing::Null),
            ("$push", _) => (Order::Id, false, usize::MAX, Missing::Ignored),
            ("$top" | "$topN" | "$bottom" | "$bottomN", Argument::Ranked(ranking)) => {
                let sort = ranking.sort();
                if sort.reads_metadata() {
                    return Some(Err(Error::bad_value("a rollup cannot sort by metadata")));
                }
                let n = if name.ends_with('N') { n } else { 1 };
                (Order::SortKey(Arc::clone(sort)), name.starts_with("$bottom"), n, Missing::Ignored)
            }
            _ => return None,
        };
        let single = matches!(name, "$min" | "$max" | "$first" | "$last" | "$top" | "$bottom");
        Some(Ok(Ranks { order, from_end, n, single, missing }))
    }

    /// Returns the value that a child gives.
    pub(super) fn kept<'v>(&self, value: Option<Value<'v>>) -> Option<Value<'v>> {
        match self.missing {
            Missing::Null => Some(value.unwrap_or(Value::Null)),
            Missing::Ignored => value,
            Missing::NullIgnored => value.filter(|value| !value.is_nullish()),
        }
    }

    /// Returns the length to which a list grows.
    fn capacity(&self) -> usize {
        self.n.saturating_mul(2).saturating_add(8)
    }

    fn compare(&self, a: (Value<'_>, Value<'_>), b: (Value<'_>, Value<'_>)) -> Ordering {
        let ((a_id, a_row), (b_id, b_row)) = (a, b);
        let order = match &self.order {
            Order::Id => Ordering::Equal,
            Order::Value { descending } => {
                let order = compare(a_row, b_row, None);
                if *descending { order.reverse() } else { order }
            }
            Order::SortKey(sort) => sort.compare(&parts(a_row), &parts(b_row)),
        };
        let order = order.then_with(|| compare(a_id, b_id, None));
        if self.from_end { order.reverse() } else { order }
    }

    fn output<'e>(&self, entry: &'e Entry) -> Value<'e> {
        let row = entry.row.as_value();
        match self.order {
            Order::SortKey(_) => parts(row).last().copied().unwrap_or(Value::Null),
            Order::Id | Order::Value { .. } => row,
        }
    }
}

/// Returns the values of a sort key, then the output.
fn parts(row: Value<'_>) -> Vec<Value<'_>> {
    row.as_array().map(|array| array.to_vec()).unwrap_or_default()
}

impl Entry {
    fn pair(&self) -> (Value<'_>, Value<'_>) {
        (self.id.as_value(), self.row.as_value())
    }

    fn size(&self) -> usize {
        self.id.size() + self.row.size()
    }
}

impl List {
    fn find(&self, ranks: &Ranks, entry: &Entry) -> std::result::Result<usize, usize> {
        self.entries.binary_search_by(|known| ranks.compare(known.pair(), entry.pair()))
    }

    /// Adds a child.
    ///
    /// # Errors
    /// 146 ExceededMemoryLimit beyond 64 MiB.
    pub(super) fn add(
        &mut self,
        ranks: &Ranks,
        child: &Contribution,
        row: &ValueBuf,
    ) -> Result<()> {
        let entry = Entry { id: child.id.clone(), row: row.clone() };
        let at = self.find(ranks, &entry).unwrap_or_else(|at| at);
        if at == self.entries.len() && self.cut {
            return Ok(());
        }
        self.bytes += entry.size();
        self.entries.insert(at, entry);
        if self.entries.len() > ranks.capacity() {
            self.bytes -= self.entries.pop().map_or(0, |last| last.size());
            self.cut = true;
        }
        super::check_bytes(self.bytes, LIST_BYTES_MAX)
    }

    /// Takes a child away. Returns false if it is not in the list and must be.
    pub(super) fn take_away(
        &mut self,
        ranks: &Ranks,
        child: &Contribution,
        row: &ValueBuf,
    ) -> bool {
        let entry = Entry { id: child.id.clone(), row: row.clone() };
        let Ok(at) = self.find(ranks, &entry) else {
            // It was after the last entry, or the list is not that of the children.
            let last = self.entries.last();
            return self.cut
                && last.is_some_and(|last| ranks.compare(last.pair(), entry.pair()).is_lt());
        };
        let gone = self.entries.remove(at);
        self.bytes -= gone.size();
        identical(gone.row.as_value(), row.as_value())
    }

    /// Returns false if fewer children are left than the result needs, although others exist.
    pub(super) fn is_enough(&self, ranks: &Ranks) -> bool {
        !self.cut || self.entries.len() >= ranks.n
    }

    /// Returns the result; `None` if it is absent.
    pub(super) fn result(&self, ranks: &Ranks) -> Option<ValueBuf> {
        if ranks.single {
            return self.entries.first().map(|first| ValueBuf::new(ranks.output(first)));
        }
        let first = self.entries.iter().take(ranks.n).map(|entry| ranks.output(entry));
        let array: ArrayBuf = match ranks.from_end {
            true => first.rev().collect(),
            false => first.collect(),
        };
        Some(array.into())
    }

    /// Returns the memory in bytes.
    pub(super) fn size(&self) -> usize {
        self.bytes
    }

    /// Returns the list as a value that [`load`](Self::load) reads.
    pub(super) fn save(&self) -> ValueBuf {
        let flat: ArrayBuf = self
            .entries
            .iter()
            .flat_map(|entry| [entry.id.as_value(), entry.row.as_value()])
            .collect();
        array![self.cut, &flat].into()
    }

    /// Reads a saved list; `None` if it is damaged.
    pub(super) fn load(ranks: &Ranks, saved: Value<'_>) -> Option<Self> {
        let saved = saved.as_array()?.to_vec();
        let [Value::Bool(cut), Value::Array(flat)] = saved[..] else { return None };
        let flat = flat.to_vec();
        let (pairs, odd) = flat.as_chunks::<2>();
        let entry =
            |[id, row]: &[Value<'_>; 2]| Entry { id: ValueBuf::new(*id), row: ValueBuf::new(*row) };
        let entries: Vec<Entry> = pairs.iter().map(entry).collect();
        let ordered =
            entries.is_sorted_by(|a, b| ranks.compare(a.pair(), b.pair()) == Ordering::Less);
        let bytes = entries.iter().map(Entry::size).sum();
        let list = List { entries, bytes, cut };
        (odd.is_empty() && ordered && list.is_enough(ranks)).then_some(list)
    }
}
