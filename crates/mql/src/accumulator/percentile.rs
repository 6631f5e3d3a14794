//! `$percentile`, `$median`: the values below which a share of the numbers lies.
//!
//! Up to a certain count the numbers are kept and the result is exact. Beyond it "approximate"
//! continues with a t-digest, which mongod uses from the beginning. "discrete" and "continuous"
//! (which interpolates) keep all numbers.

use super::digest::Digest;
use super::registry::{Accumulator, Parsed};
use super::spec::Argument;
use super::{State, check_memory};
use crate::context::{EvalContext, ParseContext};
use crate::expression::{Expression, Quantiles};
use quire_document::{ArrayBuf, Doc, Value, ValueBuf};
use quire_error::{Error, Result};
use std::sync::Arc;

/// The most numbers of a group that "approximate" keeps without a digest.
const EXACT_MAX: usize = 100_000;

pub(super) const PERCENTILE: Accumulator = Accumulator::own(
    "$percentile",
    "7.0",
    "An array of percentiles of the numbers; null if there are none.",
    |value, cx| {
        let spec = object("$percentile", value)?;
        let quantiles = Quantiles::parse_percentile(spec, cx)?;
        accumulator("$percentile", spec, quantiles, cx)
    },
);

pub(super) const MEDIAN: Accumulator = Accumulator::own(
    "$median",
    "7.0",
    "The median of the numbers; null if there are none.",
    |value, cx| {
        let spec = object("$median", value)?;
        let quantiles = Quantiles::parse_median(spec, cx)?;
        accumulator("$median", spec, quantiles, cx)
    },
);

fn object<'v>(name: &str, value: Value<'v>) -> Result<Doc<'v>> {
    value.as_document().ok_or_else(|| {
        let number = if name == "$median" { 7436100 } else { 7429703 };
        let text =
            format!("specification must be an object; found {name}: {}", crate::text::value(value));
        Error::location(number, text)
    })
}

fn accumulator(
    name: &'static str,
    spec: Doc<'_>,
    quantiles: Quantiles,
    cx: &ParseContext,
) -> Result<Parsed> {
    let input = spec.get("input").unwrap_or(Value::Null);
    Ok(Parsed {
        argument: Argument::One(Expression::parse(input, cx)?),
        n: None,
        make: Arc::new(move |_, _| Box::new(Numbers::new(name, quantiles.clone()))),
    })
}

/// The state of a group: its numbers, or a digest of them.
#[derive(Debug)]
struct Numbers {
    name: &'static str,
    quantiles: Quantiles,
    kept: Kept,
}

#[derive(Debug)]
enum Kept {
    All(Vec<f64>),
    Digest(Box<Digest>),
}

impl Numbers {
    fn new(name: &'static str, quantiles: Quantiles) -> Self {
        Numbers { name, quantiles, kept: Kept::All(Vec::new()) }
    }

    fn push(&mut self, number: f64) -> Result<()> {
        match &mut self.kept {
            Kept::All(numbers) => {
                numbers.push(number);
                if numbers.len() > EXACT_MAX && self.quantiles.approximate {
                    self.digest();
                    return Ok(());
                }
                check_memory(self.name, numbers.len() * 8)
            }
            Kept::Digest(digest) => {
                digest.add(number);
                Ok(())
            }
        }
    }

    /// Returns the digest, after it has replaced the numbers.
    fn digest(&mut self) -> &mut Digest {
        if let Kept::All(numbers) = &self.kept {
            let mut digest = Box::<Digest>::default();
            numbers.iter().for_each(|number| digest.add(*number));
            self.kept = Kept::Digest(digest);
        }
        match &mut self.kept {
            Kept::Digest(digest) => digest,
            Kept::All(_) => unreachable!("the digest has just taken their place"),
        }
    }
}

impl State for Numbers {
    fn add(&mut self, value: Option<Value<'_>>) -> Result<()> {
        match value.and_then(|value| value.to_f64()).filter(|number| !number.is_nan()) {
            Some(number) => self.push(number),
            None => Ok(()),
        }
    }

    fn result<'a>(&self, cx: &EvalContext<'a>) -> Result<Value<'a>> {
        match &self.kept {
            Kept::All(numbers) => self.quantiles.result(&mut numbers.clone(), cx),
            Kept::Digest(digest) => {
                let mut digest = digest.clone();
                self.quantiles.each(cx, |share| digest.quantile(share))
            }
        }
    }

    fn size(&self) -> usize {
        size_of::<Self>()
            + match &self.kept {
                Kept::All(numbers) => numbers.len() * 8,
                Kept::Digest(digest) => digest.bytes(),
            }
    }

    fn save(&self) -> ValueBuf {
        match &self.kept {
            Kept::All(numbers) => numbers.iter().copied().collect::<ArrayBuf>().into(),
            Kept::Digest(digest) => digest.save().into(),
        }
    }

    fn merge(&mut self, saved: Value<'_>) -> Result<()> {
        if let Value::Document(saved) = saved {
            self.digest().merge(saved);
            return Ok(());
        }
        super::elements(saved).try_for_each(|value| self.add(Some(value)))
    }
}
