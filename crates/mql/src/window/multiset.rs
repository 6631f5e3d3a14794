//! `$minN`, `$maxN`, `$top(N)`, `$bottom(N)`, `$addToSet`, `$setUnion` for windows that values
//! leave: the values in order, each as often as it is in the window.

use super::contents::{Contents, Seen};
use crate::accumulator::{Ranking, StringOrder, array_of, array_result};
use crate::context::EvalContext;
use quire_document::key::{self, TypeBits};
use quire_document::{Value, ValueBuf};
use quire_error::Result;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// The bytes of an entry besides key and values.
const ENTRY_BYTES: usize = 80;

/// The values that a function returns.
#[derive(Clone, Debug)]
pub(super) enum Order {
    /// The n smallest ones; null and missing values are ignored.
    Least(usize),
    /// The n largest ones, in descending order; null and missing values are ignored.
    Greatest(usize),
    /// Each distinct value once.
    Distinct,
    /// Each distinct element of the arrays once.
    DistinctElements,
    /// The outputs of the first n documents in a sort order; a single one if `n` is `None`.
    Top(Arc<Ranking>, Option<usize>),
    /// The outputs of the last n documents in a sort order.
    Bottom(Arc<Ranking>, Option<usize>),
}

/// The values of a window, in order.
#[derive(Debug)]
pub(super) struct Ordered {
    order: Order,
    collation: StringOrder,
    /// The values by their sort keys. Values with equal keys are in order of arrival.
    values: BTreeMap<Vec<u8>, VecDeque<ValueBuf>>,
    bytes: usize,
}

impl Ordered {
    pub fn new(order: Order, collation: StringOrder) -> Self {
        Ordered { order, collation, values: BTreeMap::new(), bytes: 0 }
    }

    /// Calls `visit` with the key and the value of each entry that a value has.
    fn entries(
        order: &Order,
        collation: &StringOrder,
        value: Option<Value<'_>>,
        visit: &mut dyn FnMut(Vec<u8>, Value<'_>),
    ) -> Result<()> {
        let Some(value) = value else { return Ok(()) };
        let by_value = |value: Value<'_>| {
            let mut bytes = Vec::with_capacity(16);
            let bits = &mut TypeBits::new();
            key::append_full(value, false, collation.as_deref(), &mut bytes, bits);
            bytes
        };
        match order {
            Order::Least(_) | Order::Greatest(_) if value.is_nullish() => {}
            Order::Least(_) | Order::Greatest(_) | Order::Distinct => visit(by_value(value), value),
            Order::DistinctElements => {
                for element in array_of("$setUnion", value)?.iter() {
                    visit(by_value(element), element);
                }
            }
            Order::Top(ranking, _) | Order::Bottom(ranking, _) => {
                if let Some((key, output)) = ranking.split(value) {
                    visit(key, output);
                }
            }
        }
        Ok(())
    }

    fn ascending(&self) -> impl DoubleEndedIterator<Item = Value<'_>> {
        self.values.values().flatten().map(ValueBuf::as_value)
    }

    /// Returns the last n values, in ascending order.
    fn last(&self, n: usize) -> Vec<Value<'_>> {
        let mut last: Vec<_> = self.ascending().rev().take(n).collect();
        last.reverse();
        last
    }
}

impl Contents for Ordered {
    fn add(&mut self, value: Option<Value<'_>>) -> Result<()> {
        let Ordered { order, collation, values, bytes } = self;
        Self::entries(order, collation, value, &mut |key, value| {
            let value = ValueBuf::new(value);
            *bytes += value.size();
            match values.get_mut(&key) {
                Some(equal) => equal.push_back(value),
                None => {
                    *bytes += key.len() + ENTRY_BYTES;
                    values.insert(key, VecDeque::from([value]));
                }
            }
        })
    }

    fn remove(&mut self, value: Option<Value<'_>>) -> Result<()> {
        let Ordered { order, collation, values, bytes } = self;
        Self::entries(order, collation, value, &mut |key, _| {
            let Some(equal) = values.get_mut(&key) else { return };
            *bytes -= equal.pop_front().map_or(0, |value| value.size());
            if equal.is_empty() {
                *bytes -= key.len() + ENTRY_BYTES;
                values.remove(&key);
            }
        })
    }

    fn result<'a>(&self, _: Seen<'_>, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
        let single = |value: Option<Value<'_>>| cx.copy(value.unwrap_or(Value::Null)).map(Some);
        match &self.order {
            Order::Least(n) => array_result(self.ascending().take(*n), cx).map(Some),
            Order::Greatest(n) => array_result(self.ascending().rev().take(*n), cx).map(Some),
            Order::Distinct | Order::DistinctElements => {
                let first = self.values.values().filter_map(|equal| equal.front());
                array_result(first.map(ValueBuf::as_value), cx).map(Some)
            }
            Order::Top(_, None) => single(self.ascending().next()),
            Order::Bottom(_, None) => single(self.ascending().next_back()),
            Order::Top(_, Some(n)) => array_result(self.ascending().take(*n), cx).map(Some),
            Order::Bottom(_, Some(n)) => array_result(self.last(*n).into_iter(), cx).map(Some),
        }
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.bytes
    }
}
