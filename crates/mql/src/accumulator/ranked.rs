//! `$top`, `$bottom`, `$topN`, `$bottomN`: outputs of the first or last documents in a sort order.

use super::registry::{Accumulator, Parsed};
use super::spec::Argument;
use super::{MEMORY_BYTES_MAX, State, check_memory};
use crate::context::{EvalContext, ParseContext};
use crate::expression::{Dependencies, Expression};
use crate::sort::SortPattern;
use quire_document::{Array, ArrayBuf, Value, ValueBuf};
use quire_error::{Error, Result};
use std::sync::Arc;

pub(super) const TOP: Accumulator = Accumulator::own(
    "$top",
    "5.2",
    "The output of the first document in a sort order.",
    |value, cx| parse("$top", false, value, cx),
);

pub(super) const TOP_N: Accumulator = Accumulator::own(
    "$topN",
    "5.2",
    "The outputs of the first n documents in a sort order.",
    |value, cx| parse("$topN", false, value, cx),
);

pub(super) const BOTTOM: Accumulator = Accumulator::own(
    "$bottom",
    "5.2",
    "The output of the last document in a sort order.",
    |value, cx| parse("$bottom", true, value, cx),
);

pub(super) const BOTTOM_N: Accumulator = Accumulator::own(
    "$bottomN",
    "5.2",
    "The outputs of the last n documents in a sort order.",
    |value, cx| parse("$bottomN", true, value, cx),
);

/// The sort and the output expression of a ranking accumulator.
#[derive(Debug)]
pub struct Ranking {
    sort: Arc<SortPattern>,
    output: Expression,
}

impl Ranking {
    /// Returns the sort.
    pub(crate) fn sort(&self) -> &Arc<SortPattern> {
        &self.sort
    }

    /// Returns for `cx.root` an array of the sort key and the output.
    pub(crate) fn eval<'a>(&'a self, cx: &EvalContext<'a>) -> Result<Value<'a>> {
        let key = self.sort.key(cx.root, cx)?;
        let output = self.output.eval(cx)?.unwrap_or(Value::Null);
        let array = cx.array(|writer| {
            for value in &key {
                writer.push(*value);
            }
            writer.push(output);
            Ok(())
        })?;
        Ok(Value::Array(array))
    }

    /// Splits a result of `eval` into bytes that sort like the sort key, and the output.
    pub(crate) fn split<'v>(&self, value: Value<'v>) -> Option<(Vec<u8>, Value<'v>)> {
        let mut key = parts(value);
        let output = key.pop()?;
        let mut bytes = Vec::with_capacity(24);
        self.sort.append_bytes(&key, &mut bytes);
        Some((bytes, output))
    }

    pub(crate) fn add_dependencies(&self, needed: &mut Dependencies) {
        for path in self.sort.parts().iter().filter_map(|part| part.path()) {
            needed.paths.insert(path.as_str().to_owned());
        }
        needed.metadata.extend(self.sort.metadata().map(|kind| kind.name().to_owned()));
        self.output.add_dependencies(needed);
    }
}

fn parse(name: &'static str, bottom: bool, value: Value<'_>, cx: &ParseContext) -> Result<Parsed> {
    let Value::Document(spec) = value else {
        let shown = crate::text::value(value);
        let message = format!("specification must be an object; found {name}: {shown}");
        return Err(Error::location(5788001, message));
    };
    let single = !name.ends_with('N');
    let (mut n, mut output, mut sort) = (None, None, None);
    for (field, value) in spec.fields() {
        match field {
            "n" if !single => n = Some(Expression::parse(value, cx)?),
            "output" => output = Some(Expression::parse(value, cx)?),
            "sortBy" => {
                let Value::Document(pattern) = value else {
                    let shown = crate::text::field("sortBy", value);
                    let message = format!(
                        "expected 'sortBy' to already be an object in the arguments to {name}; found {shown}"
                    );
                    return Err(Error::location(10065, message));
                };
                sort = Some(SortPattern::parse(pattern, cx)?);
            }
            _ => {
                let message = format!("Unknown argument to {name} '{field}'");
                return Err(Error::location(5788002, message));
            }
        }
    }
    if !single && n.is_none() {
        return Err(Error::location(5788003, format!("Missing value for 'n' in {name}")));
    }
    let missing =
        |number, field| Error::location(number, format!("Missing value for '{field}' in {name}"));
    let output = output.ok_or_else(|| missing(5788004, "output"))?;
    let sort = Arc::new(sort.ok_or_else(|| missing(5788005, "sortBy"))?);
    let ranking = Ranking { sort: sort.clone(), output };
    Ok(Parsed {
        argument: Argument::Ranked(ranking),
        n,
        make: Arc::new(move |n, _| {
            let n = if single { 1 } else { n };
            Box::new(Ranked {
                name,
                bottom,
                single,
                n,
                sort: sort.clone(),
                rows: Vec::new(),
                reduced: false,
                bytes: 0,
            })
        }),
    })
}

/// The rows of a group, each with sort key and output. Up to 2n rows are gathered and then reduced
/// to the best n, so the total time is n log n in any order of arrival. The best n rows may use
/// [`MEMORY_BYTES_MAX`], and all gathered rows twice as much.
#[derive(Debug)]
struct Ranked {
    name: &'static str,
    bottom: bool,
    single: bool,
    n: usize,
    sort: Arc<SortPattern>,
    rows: Vec<ValueBuf>,
    /// True if the first `n` rows are the best so far, in order. A new row is then skipped unless
    /// it comes before the last of them (at the bottom: after the first).
    reduced: bool,
    bytes: usize,
}

impl Ranked {
    /// Returns the positions of the best n rows in sort order. Rows with equal keys stay in order
    /// of arrival.
    fn best_rows(&self) -> Vec<usize> {
        let rows = self.rows.iter().map(|row| parts(row.as_value()));
        let mut ranked: Vec<_> = rows.enumerate().collect();
        ranked.sort_by(|(_, left), (_, right)| self.sort.compare(left, right));
        let rest = ranked.len().saturating_sub(self.n);
        let from = if self.bottom { rest } else { 0 };
        ranked.into_iter().skip(from).take(self.n).map(|(at, _)| at).collect()
    }

    fn in_order(&self) -> impl Iterator<Item = &ValueBuf> {
        self.best_rows().into_iter().filter_map(|at| self.rows.get(at))
    }

    fn reduce(&mut self) {
        let best = self.best_rows();
        let mut rows: Vec<_> = std::mem::take(&mut self.rows).into_iter().map(Some).collect();
        self.rows = best.into_iter().filter_map(|at| rows.get_mut(at)?.take()).collect();
        self.bytes = self.rows.iter().map(ValueBuf::size).sum();
        self.reduced = true;
    }

    fn may_be_best(&self, row: Value<'_>) -> bool {
        let edge = if self.bottom { 0 } else { self.n.saturating_sub(1) };
        let Some(edge) = self.rows.get(edge).filter(|_| self.reduced) else { return true };
        let order = self.sort.compare(&parts(row), &parts(edge.as_value()));
        if self.bottom { order.is_ge() } else { order.is_lt() }
    }
}

/// Returns the values of the sort key, then the output.
fn parts(row: Value<'_>) -> Vec<Value<'_>> {
    row.as_array().unwrap_or(Array::empty()).to_vec()
}

fn output(row: &ValueBuf) -> Value<'_> {
    parts(row.as_value()).last().copied().unwrap_or(Value::Null)
}

impl State for Ranked {
    fn add(&mut self, row: Option<Value<'_>>) -> Result<()> {
        let Some(row) = row.filter(|row| self.may_be_best(*row)) else { return Ok(()) };
        let owned = ValueBuf::new(row);
        self.bytes += owned.size();
        self.rows.push(owned);
        let many = self.rows.len() >= self.n.saturating_mul(2);
        if many || self.bytes > 2 * MEMORY_BYTES_MAX {
            self.reduce();
        }
        if self.rows.len() > self.n {
            return Ok(());
        }
        check_memory(self.name, self.bytes)
    }

    fn result<'a>(&self, cx: &EvalContext<'a>) -> Result<Value<'a>> {
        if self.single {
            return self.in_order().next().map_or(Ok(Value::Null), |row| cx.copy(output(row)));
        }
        super::array_result(self.in_order().map(output), cx)
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.bytes
    }

    fn save(&self) -> ValueBuf {
        self.in_order().collect::<ArrayBuf>().into()
    }

    fn merge(&mut self, saved: Value<'_>) -> Result<()> {
        super::elements(saved).try_for_each(|row| self.add(Some(row)))
    }
}
