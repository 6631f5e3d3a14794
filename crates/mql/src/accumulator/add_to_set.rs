//! `$addToSet`, `$setUnion`: the distinct values, or the distinct elements of all values.

use super::registry::Accumulator;
use super::{State, StringOrder, check_memory};
use crate::context::EvalContext;
use quire_document::{ArrayBuf, Value, ValueBuf, equal, hash_of};
use quire_error::Result;
use std::collections::HashMap;

pub(super) const ADD_TO_SET: Accumulator = Accumulator::unary(
    "$addToSet",
    "1.0",
    "An array of the distinct values; missing ones are left out.",
    |collation| Box::new(Set::new("$addToSet", false, collation)),
);

pub(super) const SET_UNION: Accumulator = Accumulator::unary(
    "$setUnion",
    "8.1",
    "An array of the distinct elements of all arrays.",
    |collation| Box::new(Set::new("$setUnion", true, collation)),
);

/// A set of distinct values, found by their hash.
#[derive(Debug)]
struct Set {
    name: &'static str,
    flatten: bool,
    collation: StringOrder,
    values: Vec<ValueBuf>,
    /// The positions of the values with each hash.
    by_hash: HashMap<u64, Vec<u32>>,
    bytes: usize,
}

impl Set {
    fn new(name: &'static str, flatten: bool, collation: StringOrder) -> Self {
        let (values, by_hash) = (Vec::new(), HashMap::new());
        Set { name, flatten, collation, values, by_hash, bytes: 0 }
    }

    fn insert(&mut self, value: Value<'_>) -> Result<()> {
        let collator = self.collation.as_deref();
        let places = self.by_hash.entry(hash_of(value, collator)).or_default();
        let known = places.iter().filter_map(|place| self.values.get(*place as usize));
        if known.into_iter().any(|known| equal(known.as_value(), value, collator)) {
            return Ok(());
        }
        places.push(self.values.len() as u32);
        let value = ValueBuf::new(value);
        self.bytes += value.size() + 32;
        self.values.push(value);
        check_memory(self.name, self.bytes)
    }
}

impl State for Set {
    fn add(&mut self, value: Option<Value<'_>>) -> Result<()> {
        let Some(value) = value else { return Ok(()) };
        if !self.flatten {
            return self.insert(value);
        }
        super::push::array_of(self.name, value)?.iter().try_for_each(|element| self.insert(element))
    }

    fn result<'a>(&self, cx: &EvalContext<'a>) -> Result<Value<'a>> {
        super::array_result(self.values.iter().map(ValueBuf::as_value), cx)
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.bytes
    }

    fn save(&self) -> ValueBuf {
        self.values.iter().collect::<ArrayBuf>().into()
    }

    fn merge(&mut self, saved: Value<'_>) -> Result<()> {
        super::elements(saved).try_for_each(|value| self.insert(value))
    }
}
