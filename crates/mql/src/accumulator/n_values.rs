//! `$firstN`, `$lastN`, `$minN`, `$maxN`: an array of at most n values.

use super::registry::{Accumulator, Parsed};
use super::spec::Argument;
use super::{State, StringOrder, check_memory};
use crate::context::{EvalContext, ParseContext};
use crate::expression::Expression;
use quire_document::{ArrayBuf, Value, ValueBuf, compare};
use quire_error::{Error, Result};
use std::collections::VecDeque;
use std::sync::Arc;

pub(super) const FIRST_N: Accumulator = Accumulator::own(
    "$firstN",
    "5.2",
    "The values of the first n documents; null for missing ones.",
    |value, cx| parse("$firstN", Keeps::First, value, cx),
);

pub(super) const LAST_N: Accumulator = Accumulator::own(
    "$lastN",
    "5.2",
    "The values of the last n documents; null for missing ones.",
    |value, cx| parse("$lastN", Keeps::Last, value, cx),
);

pub(super) const MIN_N: Accumulator = Accumulator::own(
    "$minN",
    "5.2",
    "The n smallest values in ascending order; null and missing values are ignored.",
    |value, cx| parse("$minN", Keeps::Least, value, cx),
);

pub(super) const MAX_N: Accumulator = Accumulator::own(
    "$maxN",
    "5.2",
    "The n largest values in descending order; null and missing values are ignored.",
    |value, cx| parse("$maxN", Keeps::Greatest, value, cx),
);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keeps {
    First,
    Last,
    Least,
    Greatest,
}

fn parse(name: &'static str, keeps: Keeps, value: Value<'_>, cx: &ParseContext) -> Result<Parsed> {
    let Value::Document(spec) = value else {
        let message =
            format!("specification must be an object; found {name}: {}", crate::text::value(value));
        return Err(Error::location(5787900, message));
    };
    let (mut n, mut input) = (None, None);
    for (field, value) in spec.fields() {
        match field {
            "n" => n = Some(Expression::parse(value, cx)?),
            "input" => input = Some(Expression::parse(value, cx)?),
            _ => {
                let message = format!("Unknown argument for 'n' operator: {field}");
                return Err(Error::location(5787901, message));
            }
        }
    }
    let n = n.ok_or_else(|| Error::location(5787906, "Missing value for 'n'"))?;
    let input = input.ok_or_else(|| Error::location(5787907, "Missing value for 'input'"))?;
    Ok(Parsed {
        argument: Argument::One(input),
        n: Some(n),
        make: Arc::new(move |n, collation| {
            let values = VecDeque::new();
            Box::new(Values { name, keeps, n, collation, values, bytes: 0 })
        }),
    })
}

/// Returns the n of an accumulator, which must be an integer above 0.
pub(crate) fn evaluate_n(n: &Expression, cx: &EvalContext<'_>) -> Result<usize> {
    let value = eval(n, cx)?;
    let number = value.and_then(|value| value.as_number()).and_then(|number| number.exact_i64());
    match number {
        Some(number) if number > 0 => Ok(usize::try_from(number).unwrap_or(usize::MAX)),
        // In `$group` mongod uses an error code of its execution engine.
        _ => Err(Error::location(7548606, "parameter 'n' must be a positive integer")),
    }
}

fn eval<'a>(n: &Expression, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
    let result = n.eval(&cx.with_arena(cx.arena))?;
    result.map(|value| cx.copy(value)).transpose()
}

#[derive(Debug)]
struct Values {
    name: &'static str,
    keeps: Keeps,
    n: usize,
    collation: StringOrder,
    values: VecDeque<ValueBuf>,
    bytes: usize,
}

impl Values {
    fn is_full(&self) -> bool {
        self.values.len() >= self.n
    }

    fn push(&mut self, at: usize, value: Value<'_>) -> Result<()> {
        let value = ValueBuf::new(value);
        self.bytes += value.size();
        self.values.insert(at, value);
        check_memory(self.name, self.bytes)
    }

    fn drop_first(&mut self) {
        if let Some(dropped) = self.values.pop_front() {
            self.bytes -= dropped.size();
        }
    }

    /// Inserts a value in order, best first, and keeps the best n.
    fn rank(&mut self, value: Value<'_>) -> Result<()> {
        let collation = self.collation.as_deref();
        let comes_before = |known: &ValueBuf| {
            let order = compare(known.as_value(), value, collation);
            if self.keeps == Keeps::Least { order.is_le() } else { order.is_ge() }
        };
        let at = self.values.partition_point(comes_before);
        if at >= self.n {
            return Ok(());
        }
        self.push(at, value)?;
        if self.values.len() > self.n
            && let Some(dropped) = self.values.pop_back()
        {
            self.bytes -= dropped.size();
        }
        Ok(())
    }
}

impl State for Values {
    fn add(&mut self, value: Option<Value<'_>>) -> Result<()> {
        match self.keeps {
            Keeps::First if self.is_full() => Ok(()),
            Keeps::First => self.push(self.values.len(), value.unwrap_or(Value::Null)),
            Keeps::Last => {
                if self.is_full() {
                    self.drop_first();
                }
                self.push(self.values.len(), value.unwrap_or(Value::Null))
            }
            Keeps::Least | Keeps::Greatest => match value.filter(|value| !value.is_nullish()) {
                Some(value) => self.rank(value),
                None => Ok(()),
            },
        }
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
        super::elements(saved).try_for_each(|value| self.add(Some(value)))
    }

    fn is_complete(&self) -> bool {
        self.keeps == Keeps::First && self.is_full()
    }
}
